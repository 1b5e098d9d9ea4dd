/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the log of the workload churner says an address was at a moment. */
#ifndef CHURN_ORACLE_H
#define CHURN_ORACLE_H

#include "../workloads/churn_log.h"

#include <stdbool.h>
#include <stddef.h>

/* Entries of one address space and page, in their order. */
struct churn_list {
	uint32_t first, cnt;
};

/* Where an address space came from. */
struct churn_mm {
	uint32_t other_mm;
	uint64_t before_ns, after_ns;
};

struct churn_oracle {
	struct churn_log *log;
	uint32_t entry_cnt, mm_cnt;
	uint32_t *order; /* entries by list */
	struct churn_list *list;
	struct churn_mm *mm;
};

/*
 * When a stack was taken: not before lo_ns, not after hi_ns. Its own thread's operations stand
 * still meanwhile, and are as they were at own_ns. What was true trust_ns before that may be
 * believed still, where a change cannot be noticed.
 */
struct churn_moment {
	uint64_t lo_ns, hi_ns, own_ns;
	uint32_t tid;
	uint64_t trust_ns;
};

#define CHURN_MAYBE_MAX 16

/* All that an address may have been. */
struct churn_maybe {
	uint32_t cnt; /* 0: the churner knows nothing of it; _MAX: there may be more */
	struct {
		uint16_t state; /* CHURN_NONE, _FILE, _ANON */
		uint32_t file;
		uint64_t offset; /* of the address, in the file */
	} is[CHURN_MAYBE_MAX];
};

/* An empty log; the churner writes to it. 0 or negative errno. */
int churn_log_create(const char *path);

/* Reads what a churner that has ended has written. 0 or negative errno. */
int churn_oracle_open(struct churn_oracle *o, const char *path);
void churn_oracle_close(struct churn_oracle *o);

/* The address space of tgid after that many execs of the churner; 0: not known. */
uint32_t churn_oracle_mm(const struct churn_oracle *o, uint32_t tgid, uint32_t execs);

/* Whether that life of tgid had begun to exec: then it may have lost its mappings. */
bool churn_oracle_execs(const struct churn_oracle *o, uint32_t tgid, uint32_t execs,
			uint64_t hi_ns);

void churn_oracle_look(const struct churn_oracle *o, uint32_t mm, uint64_t addr,
		       const struct churn_moment *when, struct churn_maybe *out);

/* Whether anything changed in [start, end) from from_ns to to_ns. */
bool churn_oracle_changed(const struct churn_oracle *o, uint32_t mm, uint64_t start, uint64_t end,
			  uint64_t from_ns, uint64_t to_ns);

/* Whether somebody was changing mm: then the kernel may not be able to answer. */
bool churn_oracle_is_locked(const struct churn_oracle *o, uint32_t mm,
			    const struct churn_moment *when);

/* The log around a moment, for a message: times in µs from own_ns. */
void churn_oracle_tell(const struct churn_oracle *o, uint32_t mm, uint64_t addr,
		       const struct churn_moment *when, char *text, size_t size);

#endif
