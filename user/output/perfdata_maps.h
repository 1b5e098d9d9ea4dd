/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a perf.data file has said about each process's executable mappings, so that the writer
 * can say it again for a forked child, or earlier in time for a sample that came first.
 * Bounded by bytes: what does not fit is forgotten (processes that exited first, then those
 * longest without a change) and counted; the file written so far stays right.
 */
#ifndef VP_PERFDATA_MAPS_H
#define VP_PERFDATA_MAPS_H

#include "../../include/vp_record.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

/* A path, stored once for all mappings that carry it. */
struct pd_name;

/* One mapping as its MMAP2 record said. */
struct pd_map {
	uint64_t start, end;
	uint64_t pgoff;
	uint64_t ino, ino_generation;
	uint64_t time_ns; /* the earliest time at which the file says so */
	uint32_t maj, min;
	uint32_t prot, flags;
	struct pd_name *name;
	uint16_t misc;
	bool replaced; /* something else was there before; set by pd_maps_add */
};

/* One life of a process. Read by the writer, changed only through the functions below. */
struct pd_proc {
	TAILQ_ENTRY(pd_proc) age;
	struct pd_proc *next; /* in its hash bucket */
	struct vp_proc_id id;
	uint64_t newest_ns; /* the latest time_ns ever given to a mapping */
	bool born;	    /* its FORK, EXEC or INHERIT was seen: it did not exist before */
	bool exited;
	bool pinned; /* set by the caller while it walks maps */
	uint32_t cnt, cap;
	struct pd_map *maps; /* by start, disjoint */
};

struct pd_maps;

/* NULL without memory. max_bytes bounds everything but two fixed tables of 128 KiB. */
struct pd_maps *pd_maps_new(uint64_t max_bytes);
void pd_maps_free(struct pd_maps *m);

/* NULL: unknown. Borrowed until the next call that changes m, unless pinned. */
struct pd_proc *pd_maps_find(const struct pd_maps *m, const struct vp_proc_id *id);

/* Finds or creates, and makes it the last to be forgotten. NULL without room or memory. */
struct pd_proc *pd_maps_get(struct pd_maps *m, const struct vp_proc_id *id);

/* Whether the same tgid is known with another start or image. */
bool pd_maps_other_life(const struct pd_maps *m, const struct vp_proc_id *id);

/* The mapping of p that holds addr, or NULL. */
struct pd_map *pd_proc_at(const struct pd_proc *p, uint64_t addr);
bool pd_proc_overlaps(const struct pd_proc *p, uint64_t start, uint64_t end);

/*
 * Adds a mapping; older ones give way where they overlap, as in perf. map->name is ignored:
 * name is copied. A mapping that finds no room, or no process (p NULL), is counted as dropped.
 */
void pd_maps_add(struct pd_maps *m, struct pd_proc *p, const struct pd_map *map, const char *name);
const char *pd_map_name(const struct pd_map *map);

/* The process is a new image: all its other lives are forgotten. */
void pd_maps_exec(struct pd_maps *m, const struct vp_proc_id *id);
/* The leader is gone. Kept a while: a child may still inherit, other threads may live on. */
void pd_maps_exit(struct pd_maps *m, const struct vp_proc_id *id);

/* Mappings of living processes forgotten for want of room. */
uint64_t pd_maps_dropped(const struct pd_maps *m);
uint64_t pd_maps_bytes(const struct pd_maps *m);

#endif
