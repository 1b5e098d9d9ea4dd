/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "record_log.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *copy_of(const void *p, size_t size)
{
	void *copy = malloc(size + 1);

	if (!copy)
		abort();
	memcpy(copy, p, size);
	return copy;
}

static void add(struct record_log *l, const struct log_item *item)
{
	pthread_mutex_lock(&l->lock);
	if (l->cnt == l->cap) {
		l->cap = l->cap * 2 + 1024;
		l->item = reallocarray(l->item, l->cap, sizeof(*l->item));
		if (!l->item)
			abort();
	}
	l->item[l->cnt++] = *item;
	if (item->hdr.kind == VP_REC_SAMPLE)
		l->sample_cnt++;
	pthread_mutex_unlock(&l->lock);
}

static int on_mmap2(void *ctx, const struct vp_mmap2 *m)
{
	struct log_item it = {.mmap2 = m->rec, .name = copy_of(m->name, m->rec.name_bytes)};

	add(ctx, &it);
	return 0;
}

static int on_sample(void *ctx, const struct vp_rec_sample *s, const uint64_t *kern,
		     const struct vp_frame *user)
{
	struct record_log *l = ctx;
	struct log_item it = {.sample = *s};

	pthread_mutex_lock(&l->gate);
	pthread_mutex_unlock(&l->gate);
	if (l->only_tgid && s->proc.tgid != l->only_tgid)
		return 0;
	it.kern = copy_of(kern, s->kern_cnt * sizeof(*kern));
	it.user = copy_of(user, s->user_cnt * sizeof(*user));
	add(l, &it);
	return 0;
}

static int on_exec(void *ctx, const struct vp_rec_exec *r)
{
	struct log_item it = {.exec = *r};

	add(ctx, &it);
	return 0;
}

static int on_fork(void *ctx, const struct vp_rec_fork *r)
{
	struct log_item it = {.fork = *r};

	add(ctx, &it);
	return 0;
}

static int on_exit_rec(void *ctx, const struct vp_rec_exit *r)
{
	struct log_item it = {.exit = *r};

	add(ctx, &it);
	return 0;
}

static int on_inherit(void *ctx, const struct vp_rec_inherit *r)
{
	struct log_item it = {.inherit = *r};

	add(ctx, &it);
	return 0;
}

static int on_comm(void *ctx, const struct vp_rec_comm *r)
{
	struct log_item it = {.comm = *r};

	add(ctx, &it);
	return 0;
}

static int on_user_stack(void *ctx, const struct vp_rec_user_stack *r, const struct vp_frame *user)
{
	struct log_item it = {.user_stack = *r};

	it.user = copy_of(user, r->user_cnt * sizeof(*user));
	add(ctx, &it);
	return 0;
}

const struct vp_record_ops record_log_ops = {
	.mmap2 = on_mmap2,
	.sample = on_sample,
	.exec = on_exec,
	.fork = on_fork,
	.exit = on_exit_rec,
	.inherit = on_inherit,
	.comm = on_comm,
	.user_stack = on_user_stack,
};

void record_log_init(struct record_log *l)
{
	*l = (struct record_log){.lock = PTHREAD_MUTEX_INITIALIZER,
				 .gate = PTHREAD_MUTEX_INITIALIZER};
}

void record_log_clear(struct record_log *l)
{
	for (size_t i = 0; i < l->cnt; i++) {
		free(l->item[i].name);
		free(l->item[i].kern);
		free(l->item[i].user);
	}
	l->cnt = 0;
	l->sample_cnt = 0;
}

size_t record_log_samples(struct record_log *l)
{
	size_t n;

	pthread_mutex_lock(&l->lock);
	n = l->sample_cnt;
	pthread_mutex_unlock(&l->lock);
	return n;
}

size_t record_log_count(const struct record_log *l, uint16_t kind)
{
	size_t n = 0;

	for (size_t i = 0; i < l->cnt; i++)
		n += l->item[i].hdr.kind == kind;
	return n;
}

const struct log_item *record_log_nth(const struct record_log *l, uint16_t kind, size_t i)
{
	for (size_t j = 0; j < l->cnt; j++) {
		if (l->item[j].hdr.kind == kind && i-- == 0)
			return &l->item[j];
	}
	return NULL;
}

/* ---- the property --------------------------------------------------------------------------- */

/* One life and what was announced for it, newest last. */
struct life {
	struct vp_proc_id id;
	struct vp_xmap *xmap;
	size_t cnt, cap;
};

struct lives {
	struct life *life;
	size_t cnt, cap;
};

static struct life *life_of(struct lives *ls, const struct vp_proc_id *id)
{
	for (size_t i = ls->cnt; i-- > 0;) {
		if (!memcmp(&ls->life[i].id, id, sizeof(*id)))
			return &ls->life[i];
	}
	if (ls->cnt == ls->cap) {
		ls->cap = ls->cap * 2 + 64;
		ls->life = reallocarray(ls->life, ls->cap, sizeof(*ls->life));
		if (!ls->life)
			abort();
	}
	ls->life[ls->cnt] = (struct life){.id = *id};
	return &ls->life[ls->cnt++];
}

static void announce(struct life *life, const struct vp_xmap *x)
{
	if (life->cnt == life->cap) {
		life->cap = life->cap * 2 + 64;
		life->xmap = reallocarray(life->xmap, life->cap, sizeof(*life->xmap));
		if (!life->xmap)
			abort();
	}
	life->xmap[life->cnt++] = *x;
}

static void inherit(struct lives *ls, const struct vp_rec_inherit *r)
{
	size_t cnt = life_of(ls, &r->from)->cnt;

	for (size_t i = 0; i < cnt; i++) {
		struct vp_xmap x = life_of(ls, &r->from)->xmap[i];

		announce(life_of(ls, &r->proc), &x);
	}
}

static bool is_announced(const struct life *life, const struct vp_frame *f)
{
	uint64_t at = log_frame_at(f);

	for (size_t i = life->cnt; i-- > 0;) {
		const struct vp_xmap *x = &life->xmap[i];

		if (at >= x->start && at < x->end && x->file_id == f->file_id &&
		    x->verdict == f->verdict && f->pc - x->start + x->pgoff == f->offset)
			return true;
	}
	return false;
}

size_t record_log_unannounced(const struct record_log *l, char *text, size_t size,
			      size_t *frame_cnt)
{
	struct lives ls = {0};
	size_t bad = 0;

	*frame_cnt = 0;
	text[0] = '\0';
	for (size_t i = 0; i < l->cnt; i++) {
		const struct log_item *it = &l->item[i];

		if (it->hdr.kind == VP_REC_MMAP2) {
			const struct vp_xmap x = {
				.start = it->mmap2.perf.addr,
				.end = it->mmap2.perf.addr + it->mmap2.perf.len,
				.pgoff = it->mmap2.perf.pgoff,
				.file_id = it->mmap2.file_id,
				.verdict = it->mmap2.verdict,
			};

			announce(life_of(&ls, &it->mmap2.proc), &x);
		} else if (it->hdr.kind == VP_REC_INHERIT) {
			inherit(&ls, &it->inherit);
		} else if (it->hdr.kind == VP_REC_SAMPLE) {
			for (size_t j = 0; j < it->sample.user_cnt; j++) {
				const struct vp_frame *f = &it->user[j];

				if (f->verdict != VP_VERDICT_FILE && f->verdict != VP_VERDICT_VDSO)
					continue;
				++*frame_cnt;
				if (is_announced(life_of(&ls, &it->sample.proc), f))
					continue;
				if (bad++ == 0)
					snprintf(text, size,
						 "item %zu, %u/%u exec %u '%s' frame %zu: pc "
						 "%" PRIx64 " offset %" PRIx64
						 " file %u verdict %u flags %u",
						 i, it->sample.proc.tgid, it->sample.tid,
						 it->sample.proc.exec_id, it->sample.comm, j,
						 (uint64_t)f->pc, (uint64_t)f->offset, f->file_id,
						 f->verdict, f->flags);
			}
		}
	}
	for (size_t i = 0; i < ls.cnt; i++)
		free(ls.life[i].xmap);
	free(ls.life);
	return bad;
}
