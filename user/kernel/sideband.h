/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * New mappings where the kernel lets no program see them: perf's own PERF_RECORD_MMAP2 records,
 * which say that a process mapped code at an address; what is there now is then asked by
 * kern/resolve.bpf.c, which enters and reports it. Records of memory without a file, of
 * processes that are not sampled, and of processes that map too often end here.
 */
#ifndef VP_SIDEBAND_USER_H
#define VP_SIDEBAND_USER_H

#include "loader.h"
#include "ring.h"
#include "shared_maps.h"

#include <stdint.h>
#include <sys/types.h>

struct vp_sideband;

struct vp_sideband_stats {
	uint64_t seen_cnt;    /* records of perf's, all of executable memory */
	uint64_t asked_cnt;   /* addresses that were answered */
	uint64_t lost_cnt;    /* records that found no room in perf's buffers */
	uint64_t limited_cnt; /* not asked for: their process maps too often */
	uint64_t locked_cnt;  /* not answered: their process was changing its mappings */
};

/* What the map `targets` does not tell of other tasks than the current one. */
struct vp_sideband_targets {
	pid_t *tgids; /* VP_FILTER_TID: processes of which threads are sampled */
	size_t cnt, cap;
	uint64_t cgroup_id; /* VP_FILTER_CGROUP: the inode number of its directory */
};

struct vp_sideband_opts {
	uint32_t filter;			   /* VP_FILTER_* */
	const struct vp_sideband_targets *targets; /* borrowed */
	size_t ring_bytes; /* of each CPU's buffer, a power of two of pages; 0: the default */
};

/* Opens the object; the caller loads `unit`. maps is borrowed until the close. */
int vp_sideband_open(struct vp_sideband **out, const struct vp_sideband_opts *o,
		     struct vp_shared_maps *maps, struct vp_load_unit *unit, struct vp_err *e);
/* NULL is fine. */
void vp_sideband_close(struct vp_sideband *s);

/*
 * From now on perf buffers records. Nobody looks at them before the thread of `ring` runs, or
 * vp_sideband_look() is called.
 */
int vp_sideband_attach(struct vp_sideband *s, struct vp_ring *ring, struct vp_err *e);

/* Reads all that is buffered and asks. On the thread that reads the ring, or before it runs. */
void vp_sideband_look(void *sideband);

/* No records from here on. */
void vp_sideband_detach(struct vp_sideband *s);

/* After the reader has ended, or on its thread. */
void vp_sideband_get_stats(const struct vp_sideband *s, struct vp_sideband_stats *out);

#endif
