/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kernel/features.h"
#include "kernel/privileges.h"

static struct vp_features *features;

static void setup(void)
{
	cr_assert(zero(int, vp_features_new(&features)));
}

static void teardown(void)
{
	vp_features_free(features);
}

TestSuite(features, .init = setup, .fini = teardown);

static bool have(enum vp_feature_id id)
{
	return vp_features_have(features, id);
}

Test(features, all_that_record_needs_is_there)
{
	for (int i = 0; i < VP_FEAT_CNT; i++) {
		const struct vp_feature *f = vp_features_get(features, (enum vp_feature_id)i);

		cr_expect(f->present || !f->required, "%s: %s (%s)", f->name, f->detail,
			  strerror(-f->err));
	}
}

Test(features, privileges_are_sufficient)
{
	cr_assert(zero(int, vp_privileges_check(NULL)));
}

Test(features, finds_members_also_in_anonymous_structs)
{
	cr_expect(vp_features_has_member(features, "task_struct", "pid"));
	/* since 6.1 all of mm_struct is one anonymous struct and a bitmap */
	cr_expect(vp_features_has_member(features, "mm_struct", "mmap_lock"));
	/* a union's */
	cr_expect(vp_features_has_member(features, "bpf_iter_link_info", "map"));
}

Test(features, a_made_up_member_or_type_is_not_found)
{
	cr_expect(not(vp_features_has_member(features, "mm_struct", "vp_no_such_member")));
	cr_expect(not(vp_features_has_member(features, "vp_no_such_struct", "pid")));
	cr_expect(not(vp_features_has_member(features, "mm_struct", "")));
	/* a name inside a named member is not the outer struct's */
	cr_expect(not(vp_features_has_member(features, "vm_area_struct", "mmap_base")));
}

/* fd of a program that does nothing, attached to by BTF id; negative if refused */
static int load_fentry(void)
{
	struct bpf_insn insns[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0},
		{.code = BPF_JMP | BPF_EXIT},
	};
	struct btf *btf = btf__load_vmlinux_btf();
	int id = btf__find_by_name_kind(btf, "perf_event_mmap", BTF_KIND_FUNC);
	LIBBPF_OPTS(bpf_prog_load_opts, opts, .expected_attach_type = BPF_TRACE_FENTRY,
		    .attach_btf_id = (__u32)id);

	btf__free(btf);
	return bpf_prog_load(BPF_PROG_TYPE_TRACING, "trial", "Dual BSD/GPL", insns, 2, &opts);
}

Test(features, fentry_is_what_a_trial_says)
{
	int prog = load_fentry();
	int link = prog < 0 ? -1 : bpf_raw_tracepoint_open(NULL, prog);

	cr_assert(eq(int, have(VP_FEAT_FENTRY), link >= 0));
	close(link);
	close(prog);
}

Test(features, hardware_cycles_are_what_a_trial_says)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_HARDWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_HW_CPU_CYCLES,
		.disabled = 1,
	};
	long fd = syscall(SYS_perf_event_open, &attr, getpid(), -1, -1, 0);

	cr_assert(eq(int, have(VP_FEAT_CYCLES), fd >= 0));
}

Test(features, a_maple_tree_came_before_the_sequence_of_its_lock)
{
	/* 6.4 brought mm_lock_seq, 6.1 the tree: one without the other is a broken probe */
	cr_assert(have(VP_FEAT_MAPLE_WALK) || !have(VP_FEAT_MM_LOCK_SEQ));
	/* 6.18 and 6.1 likewise */
	cr_assert(have(VP_FEAT_TASK_FILTER) || !have(VP_FEAT_TASK_WORK));
}

Test(features, cgroup2_names_its_mount_point)
{
	const struct vp_feature *f = vp_features_get(features, VP_FEAT_CGROUP2);
	char path[512];

	if (!f->present)
		cr_skip("no cgroup2 mounted");
	snprintf(path, sizeof(path), "%s/cgroup.procs", f->detail);
	cr_assert(zero(int, access(path, R_OK)), "%s", path);
}
