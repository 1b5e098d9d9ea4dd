/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A made-up recording for tests of the perf.data writer: mappings are the test process's own,
 * so that perf finds symbols; everything else is invented. One per test; pds_open() makes its
 * directory, which is also perf's HOME (its build-id cache and configuration).
 */
#ifndef PERFDATA_SESSION_H
#define PERFDATA_SESSION_H

#include "output/perfdata.h"

#include <stdint.h>
#include <stdio.h>

/* Above any tgid that exists, so that nothing real is found for it. */
#define PDS_TGID 4200000

struct pds {
	char dir[64];
	char file[96];
	FILE *f;
	struct vp_perfdata *w;
	struct vp_meta meta;
	/* of the next record */
	struct vp_proc_id proc;
	uint64_t now_ns;
	char comm[VP_COMM_LEN];
	uint32_t prot; /* r-x */
};

/* Whether perf is there, for cr_skip. */
int pds_have_perf(void);

/* Session starts at 1 s, as process PDS_TGID "worker"; all failures abort the test. */
void pds_open(struct pds *s);
void pds_open_kernel(struct pds *s, uint64_t stext, uint64_t etext);
/* finish, free, close. The file stays for perf. */
void pds_close(struct pds *s);
/* Removes the directory. */
void pds_remove(struct pds *s);

/* PERF_RECORD_MMAP2 with flags VP_MMAP2_F_*; a live one carries now_ns. */
void pds_map(struct pds *s, uint16_t flags, uint64_t start, uint64_t len, uint64_t pgoff,
	     const char *name);
/* The executable mappings of the test process as if they were s->proc's. */
void pds_map_self(struct pds *s, uint16_t flags);

/* A sample at now_ns of thread tid (0: the leader), cpu 1, period 1000. */
void pds_sample(struct pds *s, uint32_t tid, uint16_t flags, const uint64_t *kern,
		uint32_t kern_cnt, const uint64_t *user, uint32_t user_cnt);
/* The same with one user frame. */
void pds_sample_at(struct pds *s, uint64_t pc);

void pds_fork(struct pds *s, struct vp_proc_id child, uint32_t child_tid);
void pds_inherit(struct pds *s, struct vp_proc_id proc, struct vp_proc_id from);
void pds_exec(struct pds *s, const char *comm);
void pds_exit(struct pds *s, uint32_t tid);
/* The thread is called s->comm from now on. */
void pds_comm(struct pds *s, uint32_t tid);

/*
 * Runs "perf ARGS -i FILE" and returns what it printed (malloc). Its standard error must be
 * empty and its exit code 0.
 */
char *pds_perf(struct pds *s, const char *args);
/* perf script with a fixed set of fields: "worker 42/42 [001] 1.000000000: 1000 cpu-clock:" */
char *pds_script(struct pds *s);

/* Non-overlapping occurrences of needle. */
int pds_count(const char *text, const char *needle);

/* Records of a type in the data section, read without perf; misc_bits: those all must have. */
int pds_records(struct pds *s, uint32_t type, uint16_t misc_bits);

#endif
