/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "privileges.h"

#include <ctype.h>
#include <errno.h>
#include <linux/capability.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../util/err.h"

/* Numbers of uapi/linux/capability.h: older headers lack the newest of them. */
#define VP_CAP_DAC_READ_SEARCH	  2
#define VP_CAP_SYS_PTRACE	  19
#define VP_CAP_SYS_ADMIN	  21
#define VP_CAP_SYSLOG		  34
#define VP_CAP_PERFMON		  38
#define VP_CAP_BPF		  39
#define VP_CAP_CHECKPOINT_RESTORE 40

/* Inode of the initial user namespace in nsfs: PROC_USER_INIT_INO (linux/proc_ns.h). */
#define VP_INIT_USER_NS_INO 0xEFFFFFFDU

#define LOWER_PARANOID "sudo sysctl kernel.perf_event_paranoid=2"

const struct vp_capability vp_capabilities[] = {
	{"CAP_BPF", VP_CAP_BPF, true, true, "no maps and no programs can be loaded"},
	{"CAP_PERFMON", VP_CAP_PERFMON, true, true, "no sampling, no tracing programs"},
	{"CAP_CHECKPOINT_RESTORE", VP_CAP_CHECKPOINT_RESTORE, true, false,
	 "deleted files and those of containers stay without symbols"},
	{"CAP_SYS_PTRACE", VP_CAP_SYS_PTRACE, false, false,
	 "files that other users' processes map stay without symbols"},
	{"CAP_DAC_READ_SEARCH", VP_CAP_DAC_READ_SEARCH, false, false,
	 "files that other users' processes map stay without symbols"},
	{"CAP_SYSLOG", VP_CAP_SYSLOG, false, false,
	 "kernel functions may have no names (see kallsyms)"},
	{},
};

/*
 * Asked of the kernel itself: without /proc a process has no fewer capabilities. A kernel without
 * CONFIG_MULTIUSER lacks the call: everybody may do everything there.
 */
static void read_effective(struct vp_privileges *p)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {};

	p->effective = 0;
	if (syscall(SYS_capget, &header, data) == 0)
		p->effective = (__u64)data[1].effective << 32 | data[0].effective;
	else if (errno == ENOSYS)
		p->effective = ~0ULL;
}

static int read_sysctl(const char *name)
{
	char path[128];
	int value;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/sys/kernel/%s", name);
	f = fopen(path, "re");
	if (!f)
		return VP_SYSCTL_UNKNOWN;
	if (fscanf(f, "%d", &value) != 1) // NOLINT(cert-err34-c): the kernel wrote it
		value = VP_SYSCTL_UNKNOWN;
	fclose(f);
	return value;
}

static bool holds(const struct vp_privileges *p, int capability)
{
	return !p->user_ns && (p->effective & (1ULL << capability)) != 0;
}

/* Even an event of our own, in user mode, is refused where perf_event_paranoid forbids all. */
static bool perf_is_refused(const struct vp_privileges *p)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = PERF_ATTR_SIZE_VER5,
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.disabled = 1,
		.exclude_kernel = 1,
	};
	bool refused;
	long fd;

	if (p->perf_event_paranoid <= 2 || !holds(p, VP_CAP_PERFMON))
		return false;
	fd = syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	refused = fd < 0 && errno == EACCES;
	if (fd >= 0)
		close((int)fd);
	return refused;
}

void vp_privileges_read(struct vp_privileges *p)
{
	struct stat st;
	ssize_t len;

	*p = (struct vp_privileges){};
	read_effective(p);
	p->user_ns = stat("/proc/self/ns/user", &st) == 0 && st.st_ino != VP_INIT_USER_NS_INO;
	len = readlink("/proc/self/exe", p->exe, sizeof(p->exe) - 1);
	p->exe[len > 0 ? len : 0] = '\0';
	p->unprivileged_bpf_disabled = read_sysctl("unprivileged_bpf_disabled");
	p->perf_event_paranoid = read_sysctl("perf_event_paranoid");
	p->kptr_restrict = read_sysctl("kptr_restrict");
	p->perf_event_max_sample_rate = read_sysctl("perf_event_max_sample_rate");
	p->perf_refused = perf_is_refused(p);
}

bool vp_privileges_have(const struct vp_privileges *p, const struct vp_capability *c)
{
	/* The kernel asks for these in the initial user namespace: root elsewhere has none. */
	return holds(p, c->number) || (c->admin_covers && holds(p, VP_CAP_SYS_ADMIN));
}

int vp_privileges_missing(const struct vp_privileges *p, bool required_only, char *buf, size_t len)
{
	size_t used = 0;
	int n = 0;

	if (len)
		buf[0] = '\0';
	for (const struct vp_capability *c = vp_capabilities; c->name; c++) {
		if ((required_only && !c->required) || vp_privileges_have(p, c))
			continue;
		if (used < len)
			used += (size_t)snprintf(buf + used, len - used, "%s%s", n ? ", " : "",
						 c->name);
		n++;
	}
	return n;
}

/* "cap_bpf,cap_perfmon,…": all of the table, as setcap wants them */
static void setcap_list(char *buf, size_t len)
{
	size_t used = 0;

	buf[0] = '\0';
	for (const struct vp_capability *c = vp_capabilities; c->name && used < len; c++)
		used += (size_t)snprintf(buf + used, len - used, "%s%s", used ? "," : "", c->name);
	for (; *buf; buf++)
		*buf = (char)tolower((unsigned char)*buf);
}

void vp_privileges_hint(const struct vp_privileges *p, char *buf, size_t len)
{
	char list[256];

	if (p->user_ns) {
		snprintf(buf, len,
			 "this is a user namespace, where capabilities do not count: "
			 "run as root outside of it, or in a privileged container");
		return;
	}
	setcap_list(list, sizeof(list));
	snprintf(buf, len, "run as root, or: %ssudo setcap %s+ep %s",
		 p->perf_event_paranoid > 2 ? LOWER_PARANOID " && " : "", list,
		 p->exe[0] ? p->exe : "vmaprof");
}

int vp_privileges_judge(const struct vp_privileges *p, struct vp_err *e)
{
	char missing[128];
	char hint[900];

	if (!vp_privileges_missing(p, true, missing, sizeof(missing))) {
		if (!p->perf_refused)
			return 0;
		return vp_err_set(e, -EPERM,
				  "kernel.perf_event_paranoid is %d and refuses perf "
				  "events to all but CAP_SYS_ADMIN (run as root, or: %s)",
				  p->perf_event_paranoid, LOWER_PARANOID);
	}
	vp_privileges_hint(p, hint, sizeof(hint));
	return vp_err_set(e, -EPERM, "missing %s (%s)", missing, hint);
}

int vp_privileges_check(struct vp_err *e)
{
	struct vp_privileges p;

	vp_privileges_read(&p);
	return vp_privileges_judge(&p, e);
}
