/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "joiner.h"

#include "../util/index.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Not an errno, which an inner op may return, too: nothing is left that could make room. */
#define NO_ROOM 1

#define BLOCK_STEP     128 /* bytes between the sizes of blocks */
#define MIN_BUCKET_CNT 64
#define FRAME_STEP     32 /* a thread's room for frames grows by this */

/* A user stack, wherever it lies. */
struct user_part {
	const struct vp_frame *frames;
	uint16_t cnt;
	uint16_t end;
};

/*
 * A thread of which something is kept. All its samples are of this life and cookie: others end
 * their wait. It exists while samples wait or has_stack.
 */
struct thread {
	struct vp_link by_tid, by_tgid;
	struct vp_link by_age;	/* in stacks if there are frames */
	struct vp_list samples; /* in order of arrival */
	struct vp_proc_id life;
	uint64_t cookie;
	uint64_t seen;
	struct vp_frame *frames; /* kept for the next user part when has_stack is false */
	uint32_t tid;
	uint16_t frame_cap;
	uint16_t user_cnt, user_end;
	bool has_stack; /* frames are the user part of cookie */
};

struct sample {
	struct vp_link by_age, by_thread;
	struct thread *thread;
	uint64_t seen;
	struct vp_rec_sample rec;
	uint64_t kern[];
};

/* Memory that waits for being used again as a thread or sample. */
struct vp_joiner_block {
	struct vp_joiner_block *next;
};

/* Threads whose tid, and threads whose tgid has this hash. */
struct vp_joiner_bucket {
	struct vp_list by_tid, by_tgid;
};

_Static_assert(sizeof(struct thread) <= BLOCK_STEP, "the smallest block");
_Static_assert(sizeof(struct sample) + VP_MAX_KERN_FRAMES * sizeof(uint64_t) <=
		       VP_JOINER_CLASS_CNT * BLOCK_STEP,
	       "the largest block");

static const struct vp_frame no_frame[1];
static const struct user_part exited = {.frames = no_frame, .end = VP_END_EXITED};
static const struct user_part in_kernel = {.frames = no_frame, .end = VP_END_IN_KERNEL};

/* ---- threads -------------------------------------------------------------------------------- */

static struct vp_joiner_bucket *bucket_of(const struct vp_joiner *j, uint32_t id)
{
	return &j->buckets[vp_hash(0, &id, sizeof(id)) & (j->bucket_cnt - 1)];
}

static struct thread *find_thread(const struct vp_joiner *j, uint32_t tid)
{
	struct vp_link *l = j->bucket_cnt ? bucket_of(j, tid)->by_tid.first : NULL;

	for (; l; l = l->next) {
		struct thread *t = vp_list_item(l, struct thread, by_tid);

		if (t->tid == tid)
			return t;
	}
	return NULL;
}

static void link_thread(struct vp_joiner *j, struct thread *t)
{
	vp_list_append(&bucket_of(j, t->tid)->by_tid, &t->by_tid);
	vp_list_append(&bucket_of(j, t->life.tgid)->by_tgid, &t->by_tgid);
}

static void unlink_thread(struct vp_joiner *j, struct thread *t)
{
	vp_list_remove(&bucket_of(j, t->tid)->by_tid, &t->by_tid);
	vp_list_remove(&bucket_of(j, t->life.tgid)->by_tgid, &t->by_tgid);
}

/* Where there is no room for more buckets, those there are have to do. */
static void grow_buckets(struct vp_joiner *j)
{
	struct vp_joiner_bucket *old = j->buckets, *bigger = NULL;
	size_t old_cnt = j->bucket_cnt, cnt = old_cnt ? 2 * old_cnt : MIN_BUCKET_CNT;

	if (j->bytes + cnt * sizeof(*bigger) <= j->max_bytes)
		bigger = calloc(cnt, sizeof(*bigger));
	if (!bigger)
		return;
	j->buckets = bigger;
	j->bucket_cnt = cnt;
	j->bytes += (cnt - old_cnt) * sizeof(*bigger);
	for (size_t i = 0; i < old_cnt; i++) {
		struct vp_link *l = old[i].by_tid.first, *next;

		for (; l; l = next) {
			next = l->next;
			link_thread(j, vp_list_item(l, struct thread, by_tid));
		}
	}
	free(old);
}

/* ---- memory --------------------------------------------------------------------------------- */

static size_t class_of(size_t size)
{
	return (size - 1) / BLOCK_STEP;
}

/* Back to those that are used again. */
static void put_block(struct vp_joiner *j, void *block, size_t size)
{
	struct vp_joiner_block *b = block, **unused = &j->unused[class_of(size)];

	b->next = *unused;
	*unused = b;
}

static void *take_unused(struct vp_joiner *j, size_t class)
{
	struct vp_joiner_block *b = j->unused[class];

	if (b)
		j->unused[class] = b->next;
	return b;
}

static bool free_unused(struct vp_joiner *j)
{
	for (size_t i = 0; i < VP_JOINER_CLASS_CNT; i++) {
		void *block = take_unused(j, i);

		if (block) {
			free(block);
			j->bytes -= (i + 1) * BLOCK_STEP;
			return true;
		}
	}
	return false;
}

static size_t sample_size(uint16_t kern_cnt)
{
	return sizeof(struct sample) + kern_cnt * sizeof(uint64_t);
}

static void free_frames(struct vp_joiner *j, struct thread *t)
{
	if (!t->frames)
		return;
	vp_list_remove(&j->stacks, &t->by_age);
	free(t->frames);
	j->bytes -= t->frame_cap * sizeof(*t->frames);
	t->frames = NULL;
	t->has_stack = false;
}

/* Nothing of it waits any more. */
static void drop_thread(struct vp_joiner *j, struct thread *t)
{
	free_frames(j, t);
	unlink_thread(j, t);
	j->thread_cnt--;
	put_block(j, t, sizeof(*t));
}

static void drop_if_idle(struct vp_joiner *j, struct thread *t)
{
	if (!t->samples.first && !t->has_stack)
		drop_thread(j, t);
}

static void drop_sample(struct vp_joiner *j, struct sample *s)
{
	vp_list_remove(&j->samples, &s->by_age);
	vp_list_remove(&s->thread->samples, &s->by_thread);
	atomic_fetch_sub_explicit(&j->waiting_cnt, 1, memory_order_relaxed);
	put_block(j, s, sample_size(s->rec.kern_cnt));
}

/* ---- the end of a wait ---------------------------------------------------------------------- */

/* As the sampler would have sent it with its user frames. */
static int pass_on(struct vp_joiner *j, const struct vp_rec_sample *s, const uint64_t *kern,
		   const struct user_part *u)
{
	struct vp_rec_sample whole = *s;

	whole.hdr.flags &= (uint16_t)~VP_SAMPLE_F_DEFERRED;
	whole.hdr.size = (uint32_t)(sizeof(whole) + s->kern_cnt * sizeof(*kern) +
				    u->cnt * sizeof(*u->frames));
	whole.user_cnt = u->cnt;
	whole.user_end = u->end;
	whole.cookie = 0;
	return j->inner->sample ? j->inner->sample(j->inner_ctx, &whole, kern, u->frames) : 0;
}

static int end_wait(struct vp_joiner *j, struct sample *s, const struct user_part *u)
{
	int err = pass_on(j, &s->rec, s->kern, u);

	drop_sample(j, s);
	return err;
}

/* Of all that waits for t's user part. t is gone when there was an error and nothing waits now. */
static int end_waits(struct vp_joiner *j, struct thread *t, const struct user_part *u,
		     uint64_t *counter)
{
	while (t->samples.first) {
		int err = end_wait(j, vp_list_item(t->samples.first, struct sample, by_thread), u);

		(*counter)++;
		if (err) {
			drop_if_idle(j, t);
			return err;
		}
	}
	return 0;
}

static int expire(struct vp_joiner *j, struct thread *t)
{
	return end_waits(j, t, &exited, &j->exited_cnt);
}

static int end_thread(struct vp_joiner *j, struct thread *t)
{
	int err = expire(j, t);

	if (!err)
		drop_thread(j, t);
	return err;
}

/* ---- making room ---------------------------------------------------------------------------- */

/* Gives up what has been kept longest: a sample's wait or a thread's last user part. */
static int evict(struct vp_joiner *j)
{
	struct sample *s = NULL;
	struct thread *t = NULL;
	int err;

	if (j->samples.first)
		s = vp_list_item(j->samples.first, struct sample, by_age);
	if (j->stacks.first)
		t = vp_list_item(j->stacks.first, struct thread, by_age);
	if (!s && !t)
		return NO_ROOM;

	if (t && (!s || t->seen < s->seen)) {
		j->forgotten_cnt += t->has_stack;
		free_frames(j, t);
		drop_if_idle(j, t);
		return 0;
	}
	t = s->thread;
	j->full_cnt++;
	err = end_wait(j, s, &in_kernel);
	drop_if_idle(j, t);
	return err;
}

static int free_something(struct vp_joiner *j)
{
	return free_unused(j) ? 0 : evict(j);
}

/*
 * 0, NO_ROOM, -ENOMEM, or what the inner op returned for a sample that had to go. Any thread
 * found before may be gone afterwards.
 */
static int take_block(struct vp_joiner *j, size_t size, void **block)
{
	size_t class = class_of(size), bytes = (class + 1) * BLOCK_STEP;

	for (;;) {
		int err;

		*block = take_unused(j, class);
		if (*block)
			return 0;
		if (j->bytes + bytes <= j->max_bytes)
			break;
		err = free_something(j);
		if (err)
			return err;
	}
	*block = malloc(bytes);
	if (!*block)
		return -ENOMEM;
	j->bytes += bytes;
	return 0;
}

/* Room for cnt frames; what was there is lost. The thread must have no samples. */
static int take_frames(struct vp_joiner *j, struct thread *t, uint16_t cnt)
{
	size_t cap = (cnt / FRAME_STEP + 1) * FRAME_STEP, bytes = cap * sizeof(*t->frames);
	int err = 0;

	if (t->frames && cnt <= t->frame_cap)
		return 0;
	/* Now it is in no list from which it could be evicted. */
	free_frames(j, t);
	/* Nobody has to go for what would not fit anyway. */
	if (bytes + BLOCK_STEP + j->bucket_cnt * sizeof(*j->buckets) > j->max_bytes)
		return NO_ROOM;
	while (j->bytes + bytes > j->max_bytes && !err)
		err = free_something(j);
	if (err)
		return err;
	t->frames = malloc(bytes);
	if (!t->frames)
		return -ENOMEM;
	t->frame_cap = (uint16_t)cap;
	j->bytes += bytes;
	vp_list_append(&j->stacks, &t->by_age);
	return 0;
}

/* ---- keeping -------------------------------------------------------------------------------- */

static void touch(struct vp_joiner *j, struct thread *t)
{
	t->seen = ++j->now;
	if (!t->frames)
		return;
	vp_list_remove(&j->stacks, &t->by_age);
	vp_list_append(&j->stacks, &t->by_age);
}

static bool is_life(const struct thread *t, const struct vp_proc_id *life)
{
	return !memcmp(&t->life, life, sizeof(*life));
}

static int add_thread(struct vp_joiner *j, uint32_t tid, const struct vp_proc_id *life,
		      struct thread **out)
{
	void *block;
	int err;

	if (j->thread_cnt >= j->bucket_cnt)
		grow_buckets(j);
	if (!j->bucket_cnt)
		return NO_ROOM;
	err = take_block(j, sizeof(struct thread), &block);
	if (err)
		return err;
	*out = block;
	**out = (struct thread){.tid = tid, .life = *life};
	link_thread(j, *out);
	j->thread_cnt++;
	return 0;
}

/*
 * The thread in that life and with that cookie, added if new; what waits of another life or
 * cookie is over. The caller has to give it a sample or a stack, or to drop it.
 */
static int get_thread(struct vp_joiner *j, uint32_t tid, const struct vp_proc_id *life,
		      uint64_t cookie, struct thread **out)
{
	struct thread *t = find_thread(j, tid);
	int err = 0;

	if (t && !is_life(t, life)) {
		err = end_thread(j, t);
		t = NULL;
	} else if (t && t->cookie != cookie) {
		err = expire(j, t);
	}
	if (!err && !t)
		err = add_thread(j, tid, life, &t);
	if (err)
		return err;
	if (t->cookie != cookie)
		t->has_stack = false;
	t->cookie = cookie;
	touch(j, t);
	*out = t;
	return 0;
}

static int keep_sample(struct vp_joiner *j, const struct vp_rec_sample *rec, const uint64_t *kern)
{
	size_t size = sample_size(rec->kern_cnt);
	struct sample *s;
	void *block;
	int err = take_block(j, size, &block);

	if (err)
		return err;
	s = block;
	err = get_thread(j, rec->tid, &rec->proc, rec->cookie, &s->thread);
	if (err) {
		put_block(j, block, size);
		return err;
	}
	s->seen = ++j->now;
	s->rec = *rec;
	memcpy(s->kern, kern, rec->kern_cnt * sizeof(*kern));
	vp_list_append(&j->samples, &s->by_age);
	vp_list_append(&s->thread->samples, &s->by_thread);
	atomic_fetch_add_explicit(&j->waiting_cnt, 1, memory_order_relaxed);
	return 0;
}

static int keep_stack(struct vp_joiner *j, struct thread *t, const struct user_part *u)
{
	int err = take_frames(j, t, u->cnt);

	if (err) {
		drop_if_idle(j, t);
		return err;
	}
	memcpy(t->frames, u->frames, u->cnt * sizeof(*u->frames));
	t->user_cnt = u->cnt;
	t->user_end = u->end;
	t->has_stack = true;
	return 0;
}

/* ---- records -------------------------------------------------------------------------------- */

static int on_sample(void *ctx, const struct vp_rec_sample *s, const uint64_t *kern,
		     const struct vp_frame *user)
{
	struct vp_joiner *j = ctx;
	struct thread *t;
	int err;

	if (!(s->hdr.flags & VP_SAMPLE_F_DEFERRED))
		return j->inner->sample ? j->inner->sample(j->inner_ctx, s, kern, user) : 0;

	t = find_thread(j, s->tid);
	if (t && t->has_stack && t->cookie == s->cookie && is_life(t, &s->proc)) {
		const struct user_part last = {t->frames, t->user_cnt, t->user_end};

		touch(j, t);
		j->joined_cnt++;
		return pass_on(j, s, kern, &last);
	}
	err = keep_sample(j, s, kern);
	if (err != NO_ROOM)
		return err;
	j->full_cnt++;
	return pass_on(j, s, kern, &in_kernel);
}

static int on_user_stack(void *ctx, const struct vp_rec_user_stack *r, const struct vp_frame *user)
{
	const struct user_part u = {user, r->user_cnt, r->user_end};
	struct vp_joiner *j = ctx;
	struct thread *t = find_thread(j, r->tid);
	int err = 0;

	if (t && t->cookie == r->cookie && is_life(t, &r->proc))
		err = end_waits(j, t, &u, &j->joined_cnt);
	if (!err)
		err = get_thread(j, r->tid, &r->proc, r->cookie, &t);
	if (!err)
		err = keep_stack(j, t, &u);
	if (err != NO_ROOM)
		return err;
	j->forgotten_cnt++;
	return 0;
}

static int on_mmap2(void *ctx, const struct vp_mmap2 *m)
{
	struct vp_joiner *j = ctx;

	return j->inner->mmap2 ? j->inner->mmap2(j->inner_ctx, m) : 0;
}

/*
 * All threads of the process are gone, and the one that exec'd has the leader's tid from now on,
 * whatever it had before. That goes for what was sampled in the new life already, too: passed on
 * later, it would follow its exec with an earlier time.
 */
static int end_process(struct vp_joiner *j, uint32_t tgid)
{
	struct vp_link *l = j->bucket_cnt ? bucket_of(j, tgid)->by_tgid.first : NULL, *next;
	int err = 0;

	for (; l && !err; l = next) {
		struct thread *t = vp_list_item(l, struct thread, by_tgid);

		next = l->next;
		if (t->life.tgid == tgid)
			err = end_thread(j, t);
	}
	return err;
}

static int on_exec(void *ctx, const struct vp_rec_exec *r)
{
	struct vp_joiner *j = ctx;
	int err = end_process(j, r->proc.tgid);
	struct thread *t = find_thread(j, r->tid);

	/* of a life whose end was not seen */
	if (!err && t)
		err = end_thread(j, t);
	if (err)
		return err;
	return j->inner->exec ? j->inner->exec(j->inner_ctx, r) : 0;
}

static int on_fork(void *ctx, const struct vp_rec_fork *r)
{
	struct vp_joiner *j = ctx;

	return j->inner->fork ? j->inner->fork(j->inner_ctx, r) : 0;
}

static int on_exit_rec(void *ctx, const struct vp_rec_exit *r)
{
	struct vp_joiner *j = ctx;
	struct thread *t = find_thread(j, r->tid);
	int err = t ? end_thread(j, t) : 0;

	if (err)
		return err;
	return j->inner->exit ? j->inner->exit(j->inner_ctx, r) : 0;
}

static int on_inherit(void *ctx, const struct vp_rec_inherit *r)
{
	struct vp_joiner *j = ctx;

	return j->inner->inherit ? j->inner->inherit(j->inner_ctx, r) : 0;
}

static int on_comm(void *ctx, const struct vp_rec_comm *r)
{
	struct vp_joiner *j = ctx;

	return j->inner->comm ? j->inner->comm(j->inner_ctx, r) : 0;
}

const struct vp_record_ops vp_joiner_ops = {
	.mmap2 = on_mmap2,
	.sample = on_sample,
	.exec = on_exec,
	.fork = on_fork,
	.exit = on_exit_rec,
	.inherit = on_inherit,
	.comm = on_comm,
	.user_stack = on_user_stack,
};

int vp_joiner_flush(struct vp_joiner *j)
{
	int err = 0;

	while (j->samples.first && !err) {
		struct sample *s = vp_list_item(j->samples.first, struct sample, by_age);
		struct thread *t = s->thread;

		j->in_kernel_cnt++;
		err = end_wait(j, s, &in_kernel);
		drop_if_idle(j, t);
	}
	return err;
}

uint64_t vp_joiner_waiting(const struct vp_joiner *j)
{
	return atomic_load_explicit(&j->waiting_cnt, memory_order_relaxed);
}

void vp_joiner_free(struct vp_joiner *j)
{
	while (j->samples.first) {
		struct sample *s = vp_list_item(j->samples.first, struct sample, by_age);
		struct thread *t = s->thread;

		drop_sample(j, s);
		drop_if_idle(j, t);
	}
	while (j->stacks.first)
		drop_thread(j, vp_list_item(j->stacks.first, struct thread, by_age));
	while (free_unused(j))
		;
	free(j->buckets);
	j->bytes -= j->bucket_cnt * sizeof(*j->buckets);
	j->buckets = NULL;
	j->bucket_cnt = 0;
}
