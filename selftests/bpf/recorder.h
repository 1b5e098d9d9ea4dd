/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A session whose records are kept; every failure fails the test. One per test. */
#ifndef RECORDER_H
#define RECORDER_H

#include "record_log.h"

#include "kernel/session.h"

struct recorder {
	struct vp_session *s;
	struct vp_decoder d;
	struct record_log log;
};

#define RECORDER_HZ 997

void recorder_open(struct recorder *r, uint32_t filter, uint64_t ring_bytes);
/* Adds a target (a tgid or tid by the filter). */
void recorder_add(struct recorder *r, pid_t id, uint32_t flags);
/* Tracks, walks (pid 0: everything), starts. */
void recorder_start(struct recorder *r, pid_t pid);
/* Until that many samples more than there are now have been read. */
void recorder_wait(struct recorder *r, size_t samples);
/* After it the log is the caller's alone. */
void recorder_stop(struct recorder *r);
void recorder_close(struct recorder *r);

uint64_t recorder_counter(const struct recorder *r, int which);

#endif
