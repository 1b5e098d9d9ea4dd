/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A session whose records are kept; every failure fails the test. One per test.
 *
 *     ring → decoder → (raw, if keep_raw) → joiner → log
 */
#ifndef RECORDER_H
#define RECORDER_H

#include "record_log.h"

#include "kernel/session.h"
#include "model/joiner.h"
#include "unwind/row_store.h"

struct recorder_file {
	uint32_t file_id;
	struct vp_mapped_file mapped;
};

struct recorder {
	/* the test's, before it opens */
	enum vp_unwind_mode mode;
	uint32_t call_graph;	  /* VP_CALL_GRAPH_* */
	uint32_t freq_hz;	  /* 0: RECORDER_HZ */
	bool live;		  /* new mappings are tracked … */
	enum vp_track_rung track; /* … by this rung */
	bool no_mm_walk;	  /* as the option of that name */
	uint32_t procs_max;	  /* as of the session's options */
	bool keep_raw;		  /* raw gets what the joiner gets */

	struct vp_session *s;
	struct vp_decoder d;
	struct vp_joiner joiner;
	struct vp_row_store *rows;   /* NULL: none were loaded */
	struct recorder_file *files; /* those that the walk found */
	size_t file_cnt;
	struct record_log log, raw;
};

#define RECORDER_HZ 997

/* Samples as they are without any option of unwinding. */
#define RECORDER_PLAIN                                                                             \
	{                                                                                          \
		.mode = VP_UNWIND_INLINE, .call_graph = VP_CALL_GRAPH_FP                           \
	}

/* Whether this kernel can take stacks in tasks. */
bool recorder_can_defer(void);
/* Deferred mode; where the kernel cannot, the test is skipped. */
void recorder_defer(struct recorder *r);

void recorder_open(struct recorder *r, uint32_t filter, uint64_t ring_bytes);
/* Adds a target (a tgid or tid by the filter). */
void recorder_add(struct recorder *r, pid_t id, uint32_t flags);
/* Tracks, walks (pid 0: everything), starts. Nothing has rows. */
void recorder_start(struct recorder *r, pid_t pid);
/* … or one by one. Until it attaches, the log is the caller's alone. */
void recorder_walk(struct recorder *r, pid_t pid);
/* The rows of all files that the walk found and of the vdso, as far as they are not loaded. */
void recorder_load_rows(struct recorder *r);
/* Frees all but the vdso's, as if nobody had used them for long. */
void recorder_free_rows(struct recorder *r);
void recorder_attach(struct recorder *r);
/* Until that many samples more than there are now have been read. */
void recorder_wait(struct recorder *r, size_t samples);
/*
 * Until that many of a process have their innermost user frame in the code at start: what it does
 * on its way there, which on a slow machine takes many samples, is no part of what a test counts.
 */
void recorder_wait_in(struct recorder *r, pid_t tgid, const void *start, size_t bytes,
		      size_t samples);
/* … in a function of those that is_in() knows */
void recorder_wait_in_function(struct recorder *r, pid_t tgid, void (*fn)(void), size_t samples);
/*
 * For wait_until(): whether all that the kernel side had sent when it was called is in the log
 * or waits. Needs keep_raw, and that nothing is lost.
 */
bool recorder_has_read_all(void *recorder);
/* No samples from here on, until all stacks that wait have come: for targets that run. */
void recorder_settle(struct recorder *r);
/* After it the log is the caller's alone; samples without a stack are in it, too. */
void recorder_stop(struct recorder *r);
/* Once more is fine. */
void recorder_close(struct recorder *r);

uint64_t recorder_counter(const struct recorder *r, int which);

/* Our own descriptor of one of the session's maps. */
int recorder_map_fd(const char *name);

#endif
