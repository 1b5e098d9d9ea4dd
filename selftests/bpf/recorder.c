/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "recorder.h"

#include "spinner.h"
#include "target.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include <bpf/bpf.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "kernel/btf_mentions.h"
#include "kernel/loader.h"
#include "util/clock.h"

#define WAIT_MS	     20000
#define JOINER_BYTES (64ULL << 20)
#define FDS_LOOK     1024

/* ---- from the decoder to the log ------------------------------------------------------------ */

static int on_mmap2(void *ctx, const struct vp_mmap2 *m)
{
	struct recorder *r = ctx;

	if (r->keep_raw)
		record_log_ops.mmap2(&r->raw, m);
	return vp_joiner_ops.mmap2(&r->joiner, m);
}

static int on_sample(void *ctx, const struct vp_rec_sample *s, const uint64_t *kern,
		     const struct vp_frame *user)
{
	struct recorder *r = ctx;

	if (r->keep_raw)
		record_log_ops.sample(&r->raw, s, kern, user);
	return vp_joiner_ops.sample(&r->joiner, s, kern, user);
}

static int on_exec(void *ctx, const struct vp_rec_exec *rec)
{
	struct recorder *r = ctx;

	if (r->keep_raw)
		record_log_ops.exec(&r->raw, rec);
	return vp_joiner_ops.exec(&r->joiner, rec);
}

static int on_fork(void *ctx, const struct vp_rec_fork *rec)
{
	struct recorder *r = ctx;

	if (r->keep_raw)
		record_log_ops.fork(&r->raw, rec);
	return vp_joiner_ops.fork(&r->joiner, rec);
}

static int on_exit_rec(void *ctx, const struct vp_rec_exit *rec)
{
	struct recorder *r = ctx;

	if (r->keep_raw)
		record_log_ops.exit(&r->raw, rec);
	return vp_joiner_ops.exit(&r->joiner, rec);
}

static int on_inherit(void *ctx, const struct vp_rec_inherit *rec)
{
	struct recorder *r = ctx;

	if (r->keep_raw)
		record_log_ops.inherit(&r->raw, rec);
	return vp_joiner_ops.inherit(&r->joiner, rec);
}

static int on_comm(void *ctx, const struct vp_rec_comm *rec)
{
	struct recorder *r = ctx;

	if (r->keep_raw)
		record_log_ops.comm(&r->raw, rec);
	return vp_joiner_ops.comm(&r->joiner, rec);
}

static int on_user_stack(void *ctx, const struct vp_rec_user_stack *rec,
			 const struct vp_frame *user)
{
	struct recorder *r = ctx;

	if (r->keep_raw)
		record_log_ops.user_stack(&r->raw, rec, user);
	return vp_joiner_ops.user_stack(&r->joiner, rec, user);
}

static const struct vp_record_ops recorder_ops = {
	.mmap2 = on_mmap2,
	.sample = on_sample,
	.exec = on_exec,
	.fork = on_fork,
	.exit = on_exit_rec,
	.inherit = on_inherit,
	.comm = on_comm,
	.user_stack = on_user_stack,
};

/* ---- the session ---------------------------------------------------------------------------- */

bool recorder_can_defer(void)
{
	return vp_btf_mentions("bpf_task_work_schedule_resume");
}

void recorder_defer(struct recorder *r)
{
	if (!recorder_can_defer())
		cr_skip_test("this kernel cannot run BPF in a task's context");
	r->mode = VP_UNWIND_DEFERRED;
}

void recorder_open(struct recorder *r, uint32_t filter, uint64_t ring_bytes)
{
	const struct vp_session_opts o = {
		.filter = filter,
		.freq_hz = r->freq_hz ? r->freq_hz : RECORDER_HZ,
		.unwind_mode = r->mode,
		.call_graph = r->call_graph,
		.no_mm_walk = r->no_mm_walk,
		.track = r->live ? r->track : VP_TRACK_OFF,
		.ring_bytes = ring_bytes,
		.procs_max = r->procs_max,
	};
	struct vp_err e = {""};

	vp_loader_capture_messages(false);
	record_log_init(&r->log);
	record_log_init(&r->raw);
	r->joiner = (struct vp_joiner){
		.inner = &record_log_ops, .inner_ctx = &r->log, .max_bytes = JOINER_BYTES};
	r->d = (struct vp_decoder){.ops = &recorder_ops, .ctx = r};
	cr_assert(zero(int, vp_session_open(&r->s, &o, &r->d, true, &e)), "%s", e.text);
}

void recorder_add(struct recorder *r, pid_t id, uint32_t flags)
{
	struct vp_err e = {""};

	cr_assert(zero(int, vp_session_add_target(r->s, id, flags, &e)), "%s", e.text);
}

static void add_file(struct recorder *r, const struct log_item *it)
{
	for (size_t i = 0; i < r->file_cnt; i++) {
		if (r->files[i].file_id == it->mmap2.file_id)
			return;
	}
	r->files = reallocarray(r->files, r->file_cnt + 1, sizeof(*r->files));
	cr_assert(r->files != NULL);
	r->files[r->file_cnt++] = (struct recorder_file){
		.file_id = it->mmap2.file_id,
		.mapped = {.tgid = it->mmap2.proc.tgid,
			   .start = it->mmap2.perf.addr,
			   .end = it->mmap2.perf.addr + it->mmap2.perf.len,
			   .name = it->name,
			   .key = it->mmap2.file,
			   .user_dev_major = it->mmap2.perf.maj,
			   .user_dev_minor = it->mmap2.perf.min,
			   .user_ino = it->mmap2.perf.ino},
	};
}

void recorder_walk(struct recorder *r, pid_t pid)
{
	struct vp_err e = {""};

	cr_assert(vp_session_track(r->s));
	cr_assert(zero(int, vp_session_walk(r->s, &pid, pid ? 1 : 0, &e)), "%s", e.text);
	for (size_t i = 0; i < r->log.cnt; i++) {
		const struct log_item *it = &r->log.item[i];

		if (it->hdr.kind == VP_REC_MMAP2 && it->mmap2.file_id != VP_FILE_ID_NONE)
			add_file(r, it);
	}
}

static void open_store(struct recorder *r)
{
	const struct vp_row_store_opts o = {
		.arrays_fd = vp_session_row_arrays_fd(r->s),
		.files_fd = vp_session_row_files_fd(r->s),
		.max_bytes = 1ULL << 30,
	};
	struct vp_err e = {""};

	cr_assert(zero(int, vp_row_store_new(&r->rows, &o, &e)), "%s", e.text);
}

void recorder_load_rows(struct recorder *r)
{
	if (!r->rows)
		open_store(r);
	vp_row_store_load_vdso(r->rows);
	for (size_t i = 0; i < r->file_cnt; i++)
		vp_row_store_load(r->rows, r->files[i].file_id, &r->files[i].mapped);
}

void recorder_free_rows(struct recorder *r)
{
	vp_row_store_trim(r->rows, vp_now_ns() + (100ULL << VP_ROW_USED_SHIFT));
}

void recorder_attach(struct recorder *r)
{
	struct vp_err e = {""};

	cr_assert(zero(int, vp_session_start(r->s, &e)), "%s", e.text);
}

void recorder_start(struct recorder *r, pid_t pid)
{
	recorder_walk(r, pid);
	recorder_attach(r);
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

struct place {
	struct record_log *log;
	uint32_t tgid;
	uint64_t start, bytes;
	size_t samples;
};

static bool are_in_place(void *arg)
{
	const struct place *p = arg;
	size_t n = 0;

	pthread_mutex_lock(&p->log->lock);
	for (size_t i = 0; i < p->log->cnt; i++) {
		const struct log_item *it = &p->log->item[i];

		n += it->hdr.kind == VP_REC_SAMPLE && it->sample.proc.tgid == p->tgid &&
		     it->sample.user_cnt && it->user[0].pc - p->start < p->bytes;
	}
	pthread_mutex_unlock(&p->log->lock);
	return n >= p->samples;
}

void recorder_wait_in(struct recorder *r, pid_t tgid, const void *start, size_t bytes,
		      size_t samples)
{
	struct place p = {&r->log, (uint32_t)tgid, (uint64_t)start, bytes, samples};

	cr_assert(wait_until(are_in_place, &p, WAIT_MS), "not %zu of %zu samples at %p", samples,
		  record_log_samples(&r->log), start);
}

void recorder_wait_in_function(struct recorder *r, pid_t tgid, void (*fn)(void), size_t samples)
{
	recorder_wait_in(r, tgid, (const void *)fn, FUNCTION_MAX, samples);
}

/* There is no counter of user stacks, but one of their frames. */
bool recorder_has_read_all(void *recorder)
{
	struct recorder *r = recorder;
	uint64_t samples = recorder_counter(r, VP_CNT_SAMPLES);
	uint64_t frames = recorder_counter(r, VP_CNT_FRAMES), seen = 0;
	bool all;

	pthread_mutex_lock(&r->raw.lock);
	for (size_t i = 0; i < r->raw.cnt; i++) {
		if (r->raw.item[i].hdr.kind == VP_REC_USER_STACK)
			seen += r->raw.item[i].user_stack.user_cnt;
	}
	all = seen >= frames && r->raw.sample_cnt >= samples;
	pthread_mutex_unlock(&r->raw.lock);
	return all;
}

/*
 * Of what has been sampled, nothing is in the ring any more and nothing waits, unless what it waits
 * for has been lost.
 */
static bool is_settled(void *arg)
{
	const struct recorder *r = arg;
	uint64_t seen = recorder_counter(r, VP_CNT_SAMPLES);
	size_t there = record_log_samples((struct record_log *)&r->log);

	if (recorder_counter(r, VP_CNT_LOST_USER_STACK))
		there += vp_joiner_waiting(&r->joiner);
	return there >= seen;
}

/* Whether descriptor fd is open and, as /proc shows it, `what`. */
static bool is_fd_of(int fd, const char *what)
{
	char path[64], is[64];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	n = readlink(path, is, sizeof(is) - 1);
	if (n < 0)
		return false;
	is[n] = '\0';
	return !strcmp(is, what);
}

void recorder_settle(struct recorder *r)
{
	size_t events = 0;

	for (int fd = 0; fd < FDS_LOOK; fd++) {
		if (!is_fd_of(fd, "anon_inode:[perf_event]"))
			continue;
		cr_assert(zero(int, ioctl(fd, PERF_EVENT_IOC_DISABLE, 0)));
		events++;
	}
	cr_assert(eq(sz, events, vp_session_events(r->s)->cnt));
	cr_assert(wait_until(is_settled, r, WAIT_MS),
		  "%zu samples of %" PRIu64 ", %" PRIu64 " wait; %" PRIu64
		  " user stacks lost, %" PRIu64 " not taken",
		  record_log_samples(&r->log), recorder_counter(r, VP_CNT_SAMPLES),
		  vp_joiner_waiting(&r->joiner), recorder_counter(r, VP_CNT_LOST_USER_STACK),
		  recorder_counter(r, VP_CNT_DEFER_FAILED));
}

static bool is_one_missing(void *joiner)
{
	return vp_joiner_waiting(joiner) > 0;
}

void recorder_stop(struct recorder *r)
{
	cr_assert(zero(int, vp_session_stop(r->s, is_one_missing, &r->joiner)));
	cr_assert(zero(int, vp_joiner_flush(&r->joiner)));
	cr_expect(zero(u64, r->d.bad_cnt));
	cr_expect(zero(u64, r->d.unknown_cnt));
}

void recorder_close(struct recorder *r)
{
	vp_row_store_free(r->rows);
	r->rows = NULL;
	free(r->files);
	r->files = NULL;
	vp_session_close(r->s);
	r->s = NULL;
	vp_joiner_free(&r->joiner);
	record_log_clear(&r->log);
	record_log_clear(&r->raw);
}

uint64_t recorder_counter(const struct recorder *r, int which)
{
	uint64_t c[VP_CNT_CNT];

	cr_assert(zero(int, vp_session_counters(r->s, c)));
	return c[which];
}

/* By name among our descriptors: another recorder may have maps of the same name. */
int recorder_map_fd(const char *name)
{
	for (int fd = 0; fd < FDS_LOOK; fd++) {
		struct bpf_map_info info = {0};
		__u32 len = sizeof(info);

		if (is_fd_of(fd, "anon_inode:bpf-map") &&
		    !bpf_obj_get_info_by_fd(fd, &info, &len) && !strcmp(info.name, name))
			return fd;
	}
	cr_assert(false, "no map is called %s", name);
	return -1;
}
