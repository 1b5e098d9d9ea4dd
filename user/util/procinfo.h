/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What /proc/PID/stat says of a process, for messages and start-up checks. */
#ifndef VP_PROCINFO_H
#define VP_PROCINFO_H

#include "err.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct vp_procinfo {
	pid_t tgid; /* the process that PID belongs to */
	bool kernel_thread;
	bool zombie;	    /* dead as a whole: no thread of it is left */
	uint64_t cpu_ticks; /* user and system time of all its threads, 1/sysconf(_SC_CLK_TCK) s */
	char comm[64];
};

/* pid may be a thread's. 0, -ESRCH if there is none, or what reading /proc gave. */
int vp_procinfo_read(pid_t pid, struct vp_procinfo *out);

/*
 * Whether pid is a live process with user memory; else -ESRCH with e filled: "PID 7: no such
 * process", "… is a kernel thread", "… is a zombie".
 */
int vp_procinfo_check(pid_t pid, struct vp_procinfo *out, struct vp_err *e);

#endif
