/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Live tracking without a sampler: what a process maps while it is tracked, against a walk over the
 * same process afterwards. Every failure fails the test.
 */
#ifndef LIVE_ENV_H
#define LIVE_ENV_H

#include "record_log.h"

#include "kernel/features.h"
#include "kernel/live.h"
#include "kernel/walker.h"

#include "vp_target.h"

#define PAGE 4096UL

struct track;

struct live_env {
	enum vp_track_rung rung;
	uint32_t filter;
	size_t sideband_bytes;
	struct vp_shared_maps maps;
	struct vp_walker filling, checking; /* one fills the tables, one reports all there is */
	struct track *track;
	struct vp_live *live;
	struct vp_ring *ring;
	struct vp_decoder d;
	struct record_log log;
};

extern struct live_env live_env;
/* A directory for files to be mapped. */
extern char live_dir[];

bool live_have(enum vp_feature_id id);

/* For suites; rung, filter and sideband_bytes may be changed before live_open. */
void live_set_up(enum vp_track_rung rung);
void live_tear_down(void);

/* Loads all; nothing is tracked yet but execs and forks, and the ring has no thread. */
void live_open(void);
/* Attaches the rung. */
void live_attach(void);
/* Adds a target (a tgid or tid by the filter); flags: VP_TARGET_F_*. */
void live_want(pid_t id, uint32_t flags);
void live_walk(struct vp_walker *w, pid_t pid);
void live_start_reading(void);
/* All that was mapped until now is in the log then: the thread looks once more before it ends. */
void live_stop_reading(void);
uint64_t live_counter(int which);

/* In the child: DIR/name with cnt pages; its descriptor. */
int live_new_file(const char *name, size_t pages);
uint64_t live_map_at(void *at, int fd, size_t pages, off_t offset, int prot, int flags);
uint64_t live_map_exec(int fd, size_t pages, off_t offset, int flags);
/* Maps nine executable mappings of files, and memory; told when to begin, tells when it is through. */
void live_map_all_kinds(void *arg);

bool live_is_mapping_of(const struct log_item *it, pid_t pid);
size_t live_count_of(pid_t pid);
/* Records of pid among the first n that are of the same mapping as `walked`; the last in *out. */
size_t live_count_same(const struct log_item *walked, pid_t pid, size_t n,
		       const struct log_item **out);
/*
 * Each executable mapping that pid has now was reported exactly once, memory without a name
 * never; how many were found by live tracking.
 */
size_t live_expect_all_once(pid_t pid);
/* The one mapping that starts at addr, as the log has it from n on, was reported once before. */
void live_expect_start_once(pid_t pid, uint64_t addr, size_t n);

#endif
