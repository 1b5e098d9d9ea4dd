/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "recorder.h"

#include "target.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include "kernel/loader.h"

#define WAIT_MS 20000

void recorder_open(struct recorder *r, uint32_t filter, uint64_t ring_bytes)
{
	const struct vp_session_opts o = {
		.filter = filter, .freq_hz = RECORDER_HZ, .ring_bytes = ring_bytes};
	struct vp_err e = {""};

	vp_loader_capture_messages(false);
	record_log_init(&r->log);
	r->d = (struct vp_decoder){.ops = &record_log_ops, .ctx = &r->log};
	cr_assert(zero(int, vp_session_open(&r->s, &o, &r->d, true, &e)), "%s", e.text);
}

void recorder_add(struct recorder *r, pid_t id, uint32_t flags)
{
	struct vp_err e = {""};

	cr_assert(zero(int, vp_session_add_target(r->s, id, flags, &e)), "%s", e.text);
}

void recorder_start(struct recorder *r, pid_t pid)
{
	struct vp_err e = {""};

	cr_assert(vp_session_track(r->s));
	cr_assert(zero(int, vp_session_walk(r->s, &pid, pid ? 1 : 0, &e)), "%s", e.text);
	cr_assert(zero(int, vp_session_start(r->s, &e)), "%s", e.text);
}

struct wanted {
	struct record_log *log;
	size_t samples;
};

static bool are_there(void *arg)
{
	const struct wanted *w = arg;

	return record_log_samples(w->log) >= w->samples;
}

void recorder_wait(struct recorder *r, size_t samples)
{
	struct wanted w = {&r->log, record_log_samples(&r->log) + samples};

	cr_assert(wait_until(are_there, &w, WAIT_MS), "%zu samples instead of %zu",
		  record_log_samples(&r->log), w.samples);
}

void recorder_stop(struct recorder *r)
{
	cr_assert(zero(int, vp_session_stop(r->s, NULL, NULL)));
	cr_expect(zero(u64, r->d.bad_cnt));
	cr_expect(zero(u64, r->d.unknown_cnt));
}

void recorder_close(struct recorder *r)
{
	vp_session_close(r->s);
	record_log_clear(&r->log);
}

uint64_t recorder_counter(const struct recorder *r, int which)
{
	uint64_t c[VP_CNT_CNT];

	cr_assert(zero(int, vp_session_counters(r->s, c)));
	return c[which];
}
