/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the workload churner mapped where, and when: a file of fixed size that all its processes
 * map, the header first. An entry is begun before the operation and ended after it; so at a time
 * within the two its range is what it was or what it becomes. Looked at when the churner has
 * ended.
 */
#ifndef CHURN_LOG_H
#define CHURN_LOG_H

#include <stdint.h>

#define CHURN_ENTRIES (1U << 18)
#define CHURN_FILES   24

/* All code that is mapped by number of page lies here, in every image. */
#define CHURN_ARENA    0x10000000000UL
#define CHURN_PAGE     4096UL
#define CHURN_SECTIONS 4  /* one for each thread that changes mappings */
#define CHURN_PAGES    32 /* of a section */

/* What a range is. */
#define CHURN_VOID 0 /* the entry says nothing: the operation failed */
#define CHURN_NONE 1 /* no code: not mapped, or not executable */
#define CHURN_FILE 2
#define CHURN_ANON 3 /* executable memory without a file */
#define CHURN_BIND 4 /* no range: the memory of process tgid after execs execs is mm */

#define CHURN_OPS(X)                                                                               \
	X(START)                                                                                   \
	X(MAP)                                                                                     \
	X(UNMAP)                                                                                   \
	X(PROTECT)                                                                                 \
	X(JIT)                                                                                     \
	X(MOVE)                                                                                    \
	X(GROW)                                                                                    \
	X(SHRINK)                                                                                  \
	X(REPLACE) /* code that runs, by the same code of another file */                          \
	X(DLOPEN)                                                                                  \
	X(DLCLOSE)                                                                                 \
	X(FORK)                                                                                    \
	X(VFORK)                                                                                   \
	X(CLONE_VM)                                                                                \
	X(EXEC)

#define CHURN_OP(name) CHURN_OP_##name,
enum { CHURN_OPS(CHURN_OP) CHURN_OP_CNT };
#undef CHURN_OP

struct churn_entry {
	uint64_t before_ns; /* CLOCK_MONOTONIC; 0: not begun */
	uint64_t after_ns;  /* 0: not ended */
	uint64_t start, end;
	uint64_t pgoff;	   /* bytes, of start */
	uint32_t mm;	   /* number of the address space */
	uint32_t other_mm; /* BIND: what mm began as a copy of; 0: of nothing */
	uint32_t tgid, tid;
	uint32_t file; /* of FILE: in churn_log.file */
	uint32_t execs;
	uint16_t op;
	uint16_t state;
	uint32_t reserved;
};

struct churn_file {
	uint32_t maj, min;
	uint64_t ino;
};

struct churn_log {
	uint32_t next; /* atomic; beyond CHURN_ENTRIES nothing is written */
	uint32_t mm;   /* atomic: the last number given out */
	uint32_t file_cnt;
	uint32_t reserved;
	uint64_t end_ns; /* when all end */
	struct churn_file file[CHURN_FILES];
	struct churn_entry entry[CHURN_ENTRIES];
};

#endif
