/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Everything of a recording that lives in the kernel: objects, maps, attachments. */
#ifndef VP_SESSION_H
#define VP_SESSION_H

#include "live.h"
#include "perf_events.h"
#include "ring.h"
#include "shared_maps.h"
#include "walker.h"

#include "vp_target.h"

#include <stdbool.h>
#include <sys/types.h>

struct vp_session;

/* Where user stacks are taken: in the sample's interrupt, or by the task on its way to user mode. */
enum vp_unwind_mode { VP_UNWIND_AUTO, VP_UNWIND_INLINE, VP_UNWIND_DEFERRED };

struct vp_session_opts {
	uint32_t filter; /* VP_FILTER_* */
	enum vp_unwind_mode unwind_mode;
	uint32_t call_graph; /* VP_CALL_GRAPH_* */
	uint32_t freq_hz;
	const char *event;	  /* NULL: the best there is */
	enum vp_track_rung track; /* how new mappings are seen */
	size_t sideband_bytes;	  /* see vp_live_opts */
	bool all_maps;
	bool no_mm_walk;      /* bpf_find_vma alone, one answer a sample */
	bool sequential_load; /* only to compare */
	uint64_t ring_bytes;  /* 0: by the number of CPUs */
	uint32_t procs_max;   /* processes with a table of mappings; 0: as many as usual */
};

/*
 * Opens the events and loads all objects; nothing runs yet. d is borrowed. On failure of the
 * load the logs go to standard error if `verbose`.
 */
int vp_session_open(struct vp_session **out, const struct vp_session_opts *o, struct vp_decoder *d,
		    bool verbose, struct vp_err *e);
void vp_session_close(struct vp_session *s);

/* flags: VP_TARGET_F_*. id: a tgid or tid, by the filter. */
int vp_session_add_target(struct vp_session *s, pid_t id, uint32_t flags, struct vp_err *e);

/* cgroup_fd: a directory of the cgroup v2 file system. */
int vp_session_set_cgroup(struct vp_session *s, int cgroup_fd, struct vp_err *e);

/* exec, fork and exit; false: this kernel cannot, and children cannot be followed. */
bool vp_session_track(struct vp_session *s);

/*
 * New mappings, by the rung that the options name; called first of these four. What is mapped
 * between this call and the walk is reported once all the same.
 */
int vp_session_track_live(struct vp_session *s, struct vp_err *e);
/* Which it is; VP_TRACK_OFF: none, and new mappings are found when samples hit them. */
enum vp_track_rung vp_session_rung(const struct vp_session *s);

/* Fills the tables with what is mapped now; cnt 0: of all processes. */
int vp_session_walk(struct vp_session *s, const pid_t *tgids, size_t cnt, struct vp_err *e);

/* Starts the reader thread and, last, the sampler. */
int vp_session_start(struct vp_session *s, struct vp_err *e);

/*
 * Ends sampling, reads what is left. In deferred mode the threads that were sampled last may not
 * have returned to user mode yet: they get a moment, as long as missing() says that there are
 * any (NULL: none). 0 or the first error of the decoder.
 */
int vp_session_stop(struct vp_session *s, bool (*missing)(void *ctx), void *ctx);

int vp_session_counters(const struct vp_session *s, uint64_t out[VP_CNT_CNT]);

/* Whether mappings are also looked up in the kernel's tree of VMAs: see mm_walk.h. */
bool vp_session_walks_mm(const struct vp_session *s);

/* Of live tracking by the sideband; after the stop. */
void vp_session_sideband_stats(const struct vp_session *s, struct vp_sideband_stats *out);

/* Which mode was taken. */
bool vp_session_is_deferred(const struct vp_session *s);

/* Maps that user/unwind/row_store.h fills. */
int vp_session_row_arrays_fd(const struct vp_session *s);
int vp_session_row_files_fd(const struct vp_session *s);

/* What is sampled by which event; borrowed. */
const struct vp_perf_events *vp_session_events(const struct vp_session *s);

#endif
