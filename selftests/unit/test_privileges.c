/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "kernel/privileges.h"
#include "util/err.h"

#define CAP(n) (1ULL << (n))

#define SYS_ADMIN CAP(21)
#define SYSLOG	  CAP(34)
#define PERFMON	  CAP(38)
#define BPF	  CAP(39)

/* "CapEff:\t000001ffffffffff" of this process */
static __u64 effective_by_proc(void)
{
	FILE *f = fopen("/proc/self/status", "r");
	unsigned long long caps = 0;
	char line[256];

	while (f && fgets(line, sizeof(line), f) && sscanf(line, "CapEff: %llx", &caps) != 1)
		;
	if (f)
		fclose(f);
	return caps;
}

Test(privileges, effective_capabilities_are_those_of_status)
{
	struct vp_privileges p;

	vp_privileges_read(&p);
	cr_assert(eq(u64, p.effective, effective_by_proc()));
}

static int missing_required(__u64 effective)
{
	struct vp_privileges p = {.effective = effective};
	char buf[256];

	return vp_privileges_missing(&p, true, buf, sizeof(buf));
}

Test(privileges, needs_bpf_and_perfmon_or_sys_admin)
{
	cr_expect(eq(int, missing_required(0), 2));
	cr_expect(eq(int, missing_required(BPF), 1));
	cr_expect(eq(int, missing_required(PERFMON), 1));
	cr_expect(eq(int, missing_required(BPF | PERFMON), 0));
	cr_expect(eq(int, missing_required(SYS_ADMIN), 0));
	cr_expect(eq(int, missing_required(SYSLOG), 2));
	cr_expect(eq(int, missing_required(~0ULL), 0));
}

Test(privileges, sys_admin_does_not_stand_for_every_capability)
{
	struct vp_privileges p = {.effective = SYS_ADMIN};
	char buf[256];

	cr_assert(eq(int, vp_privileges_missing(&p, false, buf, sizeof(buf)), 3));
	cr_assert(eq(str, buf, "CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH, CAP_SYSLOG"));
}

Test(privileges, do_not_count_in_a_user_namespace)
{
	struct vp_privileges p = {.effective = ~0ULL, .user_ns = true};
	struct vp_err e = {};

	cr_assert(eq(int, vp_privileges_judge(&p, &e), -EPERM));
	cr_assert(ne(ptr, strstr(e.text, "user namespace"), NULL), "%s", e.text);
}

Test(privileges, refusal_names_what_is_missing_and_the_command_that_grants_it)
{
	struct vp_privileges p = {.effective = BPF, .exe = "/opt/x/vmaprof"};
	struct vp_err e = {};

	cr_assert(eq(int, vp_privileges_judge(&p, &e), -EPERM));
	cr_expect(eq(str, e.text,
		     "missing CAP_PERFMON (run as root, or: sudo setcap "
		     "cap_bpf,cap_perfmon,cap_checkpoint_restore,cap_sys_ptrace,"
		     "cap_dac_read_search,cap_syslog+ep /opt/x/vmaprof)"));
	cr_expect(eq(int, vp_privileges_judge(&p, NULL), -EPERM));

	p.effective = 0;
	vp_privileges_judge(&p, &e);
	cr_expect(ne(ptr, strstr(e.text, "missing CAP_BPF, CAP_PERFMON ("), NULL), "%s", e.text);
}

Test(privileges, perfmon_is_not_enough_where_paranoid_refuses_perf_events)
{
	struct vp_privileges p = {
		.effective = BPF | PERFMON,
		.perf_event_paranoid = 3,
		.perf_refused = true,
		.exe = "/opt/x/vmaprof",
	};
	struct vp_err e = {};

	cr_assert(eq(int, vp_privileges_judge(&p, &e), -EPERM));
	cr_expect(eq(str, e.text,
		     "kernel.perf_event_paranoid is 3 and refuses perf events to all but "
		     "CAP_SYS_ADMIN (run as root, or: sudo sysctl kernel.perf_event_paranoid=2)"));

	/* the command that grants everything must then lower it, too */
	p.effective = 0;
	p.perf_refused = false;
	vp_privileges_judge(&p, &e);
	cr_expect(ne(ptr, strstr(e.text, "sysctl kernel.perf_event_paranoid=2 && sudo setcap "),
		     NULL),
		  "%s", e.text);
}

Test(privileges, nothing_is_said_when_nothing_required_is_missing)
{
	struct vp_privileges p = {.effective = BPF | PERFMON};
	struct vp_err e = {};

	cr_assert(zero(int, vp_privileges_judge(&p, &e)));
	cr_assert(eq(str, e.text, ""));
}

Test(privileges, names_are_cut_at_the_buffers_end)
{
	struct vp_privileges p = {};
	char buf[12];

	memset(buf, 'x', sizeof(buf));
	cr_assert(eq(int, vp_privileges_missing(&p, true, buf, sizeof(buf)), 2));
	cr_assert(eq(str, buf, "CAP_BPF, CA"));
	cr_assert(eq(int, vp_privileges_missing(&p, true, buf, 0), 2));
}

Test(privileges, reads_those_of_this_process)
{
	struct vp_privileges p;

	vp_privileges_read(&p);
	cr_assert(ne(ptr, strstr(p.exe, "/"), NULL), "%s", p.exe);
	cr_assert(ne(int, p.perf_event_paranoid, VP_SYSCTL_UNKNOWN));
}
