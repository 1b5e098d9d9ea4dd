/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Walks over iter/task_vma, read by read: what prog/task_vma.bpf.c is asked for, and what it saw. */
#ifndef VMA_WALK_H
#define VMA_WALK_H

#include "prog/task_vma.h"

#include "task_vma.skel.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Whose mappings the kernel is asked for; all 0: everybody's. */
struct walk_filter {
	uint32_t tid, pid;
	int pid_fd;
};

struct walk {
	struct task_vma_bpf
		*s; /* s->bss: the program's variables; seen_cnt is the length of seen */
	const struct seen *seen;
	struct bpf_link *link;
	int fd; /* that is read; -1: none */
};

/*
 * Loads the program and asks it for the mappings of this process; s->bss->wanted_tgid = 0 and others
 * are for the case to set. Ends the case if it does not load.
 */
void walk_load(struct walk *w);

/* The same of the sleepable program. -errno and the verifier's log if it does not load. */
int walk_load_sleepable(struct walk *w, char *log, size_t log_size);

/* 0 or -errno. Skips the case if it asks for a filter and the kernel has none (they came with 6.1). */
int walk_attach(struct walk *w, const struct walk_filter *filter);

/* A new pass, with nothing seen so far. Ends the case if it cannot be had. */
void walk_open(struct walk *w);

/* Attaches and opens. filter: NULL for none. Ends the case if that cannot be. */
void walk_begin(struct walk *w, const struct walk_filter *filter);

/* One read: what it returned, or -errno. */
ssize_t walk_read(struct walk *w);

/*
 * Reads until there is no more, and on where it says -EAGAIN. Ends the case at an error, or when
 * that takes reads_max reads. Returns how many it took.
 */
size_t walk_to_end(struct walk *w, size_t reads_max);

/* ---- what was seen ---------------------------------------------------------------------------- */

/* Of a thread; pid 0: of any of that process. */
size_t walk_cnt_of(const struct walk *w, uint32_t tgid, uint32_t pid);

/* Of a range, in any task. */
size_t walk_cnt_of_range(const struct walk *w, uint64_t start, uint64_t end);

/* How many threads of a process have records. */
size_t walk_thread_cnt(const struct walk *w, uint32_t tgid);

#endif
