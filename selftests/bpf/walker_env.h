/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A walker with its maps and its ring, and files to be mapped. Every failure fails the test. */
#ifndef WALKER_ENV_H
#define WALKER_ENV_H

#include "record_log.h"

#include <sys/types.h>

#include "kernel/ring.h"
#include "kernel/shared_maps.h"
#include "kernel/walker.h"

#define PAGE 4096UL

struct walker_env {
	struct vp_shared_maps maps;
	struct vp_walker w;
	struct vp_ring *ring;
	struct vp_decoder d;
	struct record_log log;
};

extern struct walker_env walker_env;
/* A directory for files to be mapped. */
extern char walker_dir[];

/* For suites; the second one closes what the test has opened. */
void walker_set_up(void);
void walker_tear_down(void);

void walker_open(uint64_t ring_bytes, bool all_maps, bool fills_table);
/* Clears the log and walks; all of the walk is in the log then. */
void walker_walk(const pid_t *tgids, size_t cnt);
void walker_walk_one(pid_t tgid);
uint64_t walker_counter(int which);
/* The record with that start, or NULL. */
const struct log_item *walker_record_at(uint64_t addr);

/* DIR/name with that many pages; its descriptor, or -1. */
int walker_file(const char *name, size_t pages);
/* In the child. */
uint64_t walker_map_exec(int fd, size_t pages, off_t offset, int flags);
/* In the child: opens DIR/name, maps its first page executable and tells where. */
void walker_map_and_tell(const char *name);

#endif
