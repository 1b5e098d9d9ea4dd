/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Lets prog/ops.bpf.c call things in an interrupt or a system call of this process. */
#ifndef OPS_RUN_H
#define OPS_RUN_H

#include "prog/ops.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct bpf_link;
struct bpf_program;

enum ops_where {
	OPS_IN_INTERRUPT, /* IRQs off */
	OPS_IN_SYSCALL,	  /* IRQs on */
	OPS_IN_MMAP,	  /* the same, and mmap_lock is held for writing */
};

/*
 * Has ops[0…cnt) called, in this order, `times` times at least while this process does what is needed;
 * the answers are in ops afterwards. The case ends if that cannot be done. How often they were called.
 */
uint64_t ops_run(enum ops_where where, struct op *ops, size_t cnt, uint64_t times);

/* The same in samples of other tasks: those with one of these PF_ flags. */
uint64_t ops_run_in(uint32_t task_flags, struct op *ops, size_t cnt, uint64_t times);

/*
 * Has one op called in children that are about to exit: with IRQs on, of tasks that are not the current
 * one. Eight children a turn.
 */
void op_run_of_exiting(struct op *op, size_t turns);

/*
 * Runs prog in samples, 2,000 a second: of a timer on this process (pid 0), or one on each CPU (-1).
 * Ends the case if there are none. How many links; the caller destroys them.
 */
size_t attach_samples(struct bpf_program *prog, pid_t pid, struct bpf_link **links, size_t max);

/* All of its answers were `times` times one error (0, -EBUSY, …). */
bool op_always(const struct op *op, int err);

/*
 * The same, but less than half may be -EBUSY: a sample can hit the kernel while it has the lock, or come
 * before what the last one left to be done. Few do; one in eight of an emulated guest on a busy machine.
 */
bool op_mostly(const struct op *op, int err);

/* "ok 3, busy 0, …" in a buffer of its own. */
const char *op_text(const struct op *op);

#endif
