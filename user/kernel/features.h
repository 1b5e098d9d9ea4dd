/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What this kernel can do, asked of the kernel and never derived from its version (danger.h is
 * the one exception). Each feature is probed at most once, when first asked for: vmlinux BTF
 * costs tens of milliseconds to load, a trial load about one.
 */
#ifndef VP_FEATURES_H
#define VP_FEATURES_H

#include <stdbool.h>

enum vp_feature_id {
	VP_FEAT_PROC,
	VP_FEAT_SYSFS,
	VP_FEAT_SYSTEM_CALLS,
	VP_FEAT_BPF_SYSCALL,
	VP_FEAT_PERF_EVENTS,
	VP_FEAT_NET,
	VP_FEAT_BPF_EVENTS,
	VP_FEAT_JIT,
	VP_FEAT_BTF,
	VP_FEAT_FIND_VMA,
	VP_FEAT_LOOP,
	VP_FEAT_TASK_VMA,
	VP_FEAT_RINGBUF,
	VP_FEAT_PROBE_READ,
	VP_FEAT_CPU_CLOCK,
	VP_FEAT_PROC_EVENTS,
	VP_FEAT_SAFE_USER_READ,
	VP_FEAT_CYCLES,
	VP_FEAT_TASK_FILTER,
	VP_FEAT_FENTRY,
	VP_FEAT_KPROBE,
	VP_FEAT_SIDEBAND,
	VP_FEAT_LIVE_TRACKING,
	VP_FEAT_TASK_WORK,
	VP_FEAT_MAPLE_WALK,
	VP_FEAT_MM_LOCK_SEQ,
	VP_FEAT_IRQ_FIND_VMA,
	VP_FEAT_MMAP_LOCK_FIX,
	VP_FEAT_MAP_FILES,
	VP_FEAT_KALLSYMS,
	VP_FEAT_CGROUP2,
	VP_FEAT_INIT_PID_NS,
	VP_FEAT_CNT
};

struct vp_feature {
	const char *name;    /* stable: programs read it from doctor --json */
	const char *since;   /* version or commit that brought it, for people */
	const char *without; /* what is lost without it */
	const char *hint;    /* how to get it */
	bool required;	     /* record cannot work without it */
	bool present;
	const char *needs;  /* a feature without which this one cannot be: not asked for; or NULL */
	int err;	    /* why it could not be asked or was refused: negative errno; else 0 */
	const char *detail; /* what the probe found, possibly ""; cgroup2: the mount point */
};

struct vp_features;
struct vp_err;

/* Probes nothing yet. 0 or -ENOMEM; the caller frees *out with vp_features_free(). */
int vp_features_new(struct vp_features **out);

/* vp_features_new(), then probes all of them. */
int vp_features_probe(struct vp_features **out);

void vp_features_free(struct vp_features *f);

/* Probes id unless that was done; borrowed from f. */
const struct vp_feature *vp_features_get(struct vp_features *f, enum vp_feature_id id);

/* vp_features_get()->present */
bool vp_features_have(struct vp_features *f, enum vp_feature_id id);

/*
 * May record begin at all? 0, or -ENOSYS with e filled as by vp_features_explain(). Asks only what
 * takes no longer than a system call.
 */
int vp_features_check(struct vp_err *e);

/*
 * After a failure, other than a refusal, of something that needs the kernel: if this kernel lacks what record
 * cannot do without, that is the reason; e then says so ("this kernel lacks WHAT: LOSS (HOW TO
 * GET IT)"), and the answer is true.
 */
bool vp_features_explain(int err, struct vp_err *e);

/*
 * Has the running kernel's struct or union `type` a member of this name, also inside anonymous
 * structs and unions? False without vmlinux BTF.
 */
bool vp_features_has_member(struct vp_features *f, const char *type, const char *member);

#endif
