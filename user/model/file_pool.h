/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The threads that open mapped files, so that the reader never does: for unwind rows, which
 * samples wait for, and for symbols, which only the report needs.
 *
 * One thread for each CPU, at least four and at most sixteen, all blocking all signals. Of T
 * threads no more than T - 1 are at large files' rows or at symbols, and no more than T - 2 at
 * those that no sample waits for: a small file's rows never wait behind a large one's, and a
 * large one's never behind symbols. Two more are for what JITs tell, so that this is read while
 * the process is there, however many symbols there are to be read; and four more open the files
 * that symbols are read from later, since many a file can only be reached through the process.
 */
#ifndef VP_FILE_POOL_H
#define VP_FILE_POOL_H

#include "../symbolize/jit.h"
#include "../symbolize/symbolizer.h"
#include "../unwind/row_store.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct vp_file_pool;

enum vp_file_job {
	VP_FILE_ROWS,	    /* rows; a sample waits for them */
	VP_FILE_ROWS_AHEAD, /* rows that may be needed */
	VP_FILE_SYMBOLS,
};

/* Over so many bytes a file counts as large. */
#define VP_FILE_LARGE_BYTES (8ULL << 20)

/* What the jobs are; called by the threads, several at once. */
struct vp_file_work {
	void *ctx;
	/*
	 * A descriptor for symbols(), or negative errno: called for every file, as soon as may be.
	 * NULL: symbols() is given -1.
	 */
	int (*open)(void *ctx, const struct vp_mapped_file *f);
	/* Takes fd. */
	void (*symbols)(void *ctx, uint32_t file_id, const struct vp_mapped_file *f, int fd);
	/* What the JIT of a process tells of its code; dump may be NULL. NULL: not wanted. */
	void (*jit)(void *ctx, const struct vp_proc_id *life, const struct vp_mapped_file *dump);
	/* NULL: nobody wants rows, and the rest is not called. */
	void (*rows)(void *ctx, uint32_t file_id, const struct vp_mapped_file *f);
	/* Bytes of a file that rows are to be loaded for. */
	uint64_t (*size)(void *ctx, uint32_t file_id, const struct vp_mapped_file *f);
	/* Called each tidy_ns, or later if all threads are at work. */
	void (*tidy)(void *ctx, uint64_t now_ns);
	uint64_t tidy_ns;
};

/*
 * Reads symbols into s, what JITs tell into jit (NULL: is ignored), rows into `rows` (NULL: requests for rows are ignored), which is trimmed
 * each second. All are borrowed until vp_file_pool_stop(). 0 or negative errno with e filled.
 */
int vp_file_pool_start(struct vp_file_pool **out, struct vp_symbolizer *s, struct vp_jit *jit,
		       struct vp_row_store *rows, struct vp_err *e);

/* The same with other work; thread_cnt 0: as above, else at least 3. */
int vp_file_pool_start_work(struct vp_file_pool **out, const struct vp_file_work *work,
			    unsigned int thread_cnt, struct vp_err *e);

/*
 * Has the job done, soon; f's name is copied. Rows of VP_FILE_ID_NONE are the vdso's,
 * and its symbols the kernel's. Opens nothing and waits for nothing. Rows of a file that a thread is at are not asked for again: it may be
 * hanging. 0 or -ENOMEM.
 */
int vp_file_pool_request(struct vp_file_pool *p, enum vp_file_job job, uint32_t file_id,
			 const struct vp_mapped_file *f);

/* The same for what the JIT of a process tells; dump: a jitdump that it maps, or NULL. */
int vp_file_pool_request_jit(struct vp_file_pool *p, const struct vp_proc_id *life,
			     const struct vp_mapped_file *dump);

/*
 * Waits until no request for rows is left, or until CLOCK_MONOTONIC is at deadline_ns. How many
 * are left: those go on.
 */
size_t vp_file_pool_wait_rows(struct vp_file_pool *p, uint64_t deadline_ns);

/*
 * No sample needs rows any more: forgets the requests for rows that no thread is at, ignores
 * later ones, and tidies no more.
 */
void vp_file_pool_end_rows(struct vp_file_pool *p);

/*
 * Waits until all that was requested is done, or until nothing has been for ten seconds: a file
 * system that does not answer. How many requests are left.
 */
size_t vp_file_pool_wait(struct vp_file_pool *p);

/*
 * Ends each thread after the file it is at, and forgets the rest; NULL is fine. False: threads hang,
 * as vp_file_pool_wait() has found; they are left behind, and what they use must be, too.
 */
bool vp_file_pool_stop(struct vp_file_pool *p);

#endif
