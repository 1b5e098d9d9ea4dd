/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Finding the files in which a process's JIT tells of its code. They lie where the process sees
 * them, under the number that it knows itself by, and anybody may put something there: a file counts
 * that is the process's own or root's, has no other name, and is younger than the process (an older
 * one is of another that had its number).
 */
#ifndef VP_JIT_PROCESS_H
#define VP_JIT_PROCESS_H

#include "../../include/vp_record.h"
#include "symbolizer.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

/* What is known of a process, also when it is gone; all zero: nothing. */
struct jit_process {
	uint32_t ns_tgid;  /* in its innermost pid namespace */
	uid_t uid;	   /* its effective one */
	uid_t ns_root;	   /* root of its user namespace, as we number it */
	uint64_t start_ns; /* CLOCK_REALTIME */
	bool known;
	bool has_our_root; /* it sees the file system as we do */
};

/*
 * The process's root as an O_PATH descriptor, which the caller closes, and *p filled if the life is
 * still there. When it is gone, ours stands in if it was the same or nothing is known of it; else
 * -ESRCH.
 */
int jit_process_open(struct jit_process *p, const struct vp_proc_id *life);

/* The life that a process has now, exec_id 0. -ESRCH: there is none. */
int jit_process_life(uint32_t tgid, struct vp_proc_id *out);

/*
 * Its parent, if it is a copy of that one and runs no program of its own: then all addresses that
 * the kernel has told it at its start are the parent's. -ENOENT: it is none, or that cannot be seen.
 */
int jit_process_copied_from(const struct vp_proc_id *life, struct vp_proc_id *from);

/* Each a descriptor for reading and *st the file's, or negative errno: there is none that counts. */

/* /tmp/perf-NUMBER.map */
int jit_process_open_map(const struct jit_process *p, int root_fd, struct stat *st);

/*
 * The jitdump that it maps (NULL: none is known of), /tmp/jit-NUMBER.dump, or the youngest
 * jit-NUMBER.dump below .debug/jit of its JITDUMPDIR or HOME, where perf's Java agent writes.
 */
int jit_process_open_dump(const struct jit_process *p, const struct vp_proc_id *life, int root_fd,
			  const struct vp_mapped_file *mapped, struct stat *st);

/* Whether a mapped file has the name of a jitdump: mapping it executable is how one is announced. */
bool jit_is_dump_name(const char *name);

#endif
