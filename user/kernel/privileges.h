/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What this process may do: its effective capabilities and the sysctls that matter, with what
 * is lost without each. What each capability is needed for was found by dropping the others:
 *
 *   CAP_BPF + CAP_PERFMON    load perf_event, tracing (iterators, tp_btf, fentry) programs
 *   CAP_BPF                  create maps, load BTF
 *   CAP_PERFMON              perf_event_open for a CPU or another user's process
 *   CAP_CHECKPOINT_RESTORE   open /proc/self/map_files/…
 *     + CAP_SYS_PTRACE + CAP_DAC_READ_SEARCH   … of another user's process
 *   CAP_SYSLOG               addresses in /proc/kallsyms, unless kptr_restrict is 0 and
 *                            perf_event_paranoid below 2
 *
 * Debian and others patch perf_event_open: with perf_event_paranoid above 2, Debian's default,
 * it takes CAP_SYS_ADMIN, and CAP_PERFMON alone is refused.
 *
 * CAP_SYS_ADMIN does for CAP_BPF, CAP_PERFMON and CAP_CHECKPOINT_RESTORE, not for the others.
 * CAP_SYS_RESOURCE is not needed: since 5.11 BPF memory is charged to the cgroup, not to
 * RLIMIT_MEMLOCK.
 */
#ifndef VP_PRIVILEGES_H
#define VP_PRIVILEGES_H

#include <linux/types.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

struct vp_err;

#define VP_SYSCTL_UNKNOWN INT_MIN

struct vp_privileges {
	__u64 effective;   /* bit n is capability n */
	bool user_ns;	   /* not the initial user namespace: the kernel ignores effective */
	bool perf_refused; /* CAP_PERFMON is held and was not enough (see above) */
	char exe[512];	   /* of this process, for the command that grants */
	int unprivileged_bpf_disabled;
	int perf_event_paranoid;
	int kptr_restrict;
	int perf_event_max_sample_rate;
};

struct vp_capability {
	const char *name; /* "CAP_BPF" */
	int number;
	bool admin_covers;   /* CAP_SYS_ADMIN is as good */
	bool required;	     /* record cannot work without it */
	const char *without; /* what is lost without it */
};

/* The capabilities that count, required ones first; the table ends with a NULL name. */
extern const struct vp_capability vp_capabilities[];

/* Reads what this process has. Never fails: what cannot be read counts as not held. */
void vp_privileges_read(struct vp_privileges *p);

bool vp_privileges_have(const struct vp_privileges *p, const struct vp_capability *c);

/*
 * Writes the names of the capabilities that are missing (only the required ones if
 * required_only) to buf, with ", " between them; returns how many.
 */
int vp_privileges_missing(const struct vp_privileges *p, bool required_only, char *buf, size_t len);

/* Writes the command or advice that would grant everything to buf, cut at len. */
void vp_privileges_hint(const struct vp_privileges *p, char *buf, size_t len);

/* vp_privileges_check() for given privileges. */
int vp_privileges_judge(const struct vp_privileges *p, struct vp_err *e);

/* May this process record? 0, or -EPERM with e filled ("missing CAP_BPF, … (…)"). */
int vp_privileges_check(struct vp_err *e);

#endif
