/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "decode.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static bool is_terminated(const char *s, size_t len)
{
	return memchr(s, '\0', len) != NULL;
}

/* A deferred one has its user frames in another record, any other one has no such record. */
static bool is_either_deferred_or_whole(const struct vp_rec_sample *s)
{
	if (s->hdr.flags & VP_SAMPLE_F_DEFERRED)
		return s->user_cnt == 0;
	return s->cookie == 0;
}

/* The record's size must be exactly what its tail's counts say. */
static bool is_whole_sample(const struct vp_rec_sample *s, size_t size)
{
	size_t want;

	if (size < sizeof(*s) || !is_terminated(s->comm, sizeof(s->comm)))
		return false;
	if (s->kern_cnt > VP_MAX_KERN_FRAMES || s->user_cnt > VP_MAX_USER_FRAMES)
		return false;
	if (!is_either_deferred_or_whole(s))
		return false;
	want = sizeof(*s) + s->kern_cnt * sizeof(uint64_t) + s->user_cnt * sizeof(struct vp_frame);
	return size == want;
}

static bool is_whole_user_stack(const struct vp_rec_user_stack *r, size_t size)
{
	if (size < sizeof(*r) || r->user_cnt > VP_MAX_USER_FRAMES)
		return false;
	if (r->user_end == 0 || r->user_end >= VP_END_CNT)
		return false;
	return size == sizeof(*r) + r->user_cnt * sizeof(struct vp_frame);
}

static bool is_whole_mmap2(const struct vp_rec_mmap2 *r, size_t size)
{
	const char *name = (const char *)(r + 1);

	if (size < sizeof(*r) || !is_terminated(r->comm, sizeof(r->comm)))
		return false;
	if (r->name_bytes == 0 || r->name_bytes % 8 || size != sizeof(*r) + r->name_bytes)
		return false;
	if (r->perf.size != sizeof(r->perf) + r->name_bytes)
		return false;
	if (r->name_bytes > VP_PATH_MAX + 8 || r->perf.addr + r->perf.len < r->perf.addr)
		return false;
	return name[r->name_bytes - 1] == '\0';
}

static void set_name_size(struct vp_mmap2 *m)
{
	size_t len = strlen(m->name), padded = (len + 8) & ~(size_t)7;

	memset(m->name + len, 0, padded - len);
	m->rec.name_bytes = padded;
	m->rec.perf.size = sizeof(m->rec.perf) + padded;
	m->rec.hdr.size = sizeof(m->rec) + padded;
}

static const char suffix[] = " (deleted)";

static bool ends_deleted(const char *name)
{
	size_t len = strlen(name), n = strlen(suffix);

	return len > n && !strcmp(name + len - n, suffix);
}

/* As d_path says it of a file without a name, which the walk of parts does not. */
static void append_deleted(struct vp_mmap2 *m)
{
	size_t len = strlen(m->name);

	if (len + sizeof(suffix) <= VP_PATH_MAX)
		memcpy(m->name + len, suffix, sizeof(suffix));
}

/* "libc.so.6\0lib\0usr" of `len` bytes → "/usr/lib/libc.so.6". The sum of lengths is the same. */
static void join_parts(struct vp_mmap2 *m, const char *parts, size_t len)
{
	char *out = m->name;
	size_t end = len;

	while (end > 0) {
		size_t start = end;

		while (start > 0 && parts[start - 1] != '\0')
			start--;
		*out++ = '/';
		memcpy(out, parts + start, end - start);
		out += end - start;
		end = start > 0 ? start - 1 : 0;
	}
	*out = '\0';
}

static void name_from_parts(struct vp_mmap2 *m, const char *parts)
{
	size_t len = m->rec.name_bytes;

	while (len > 0 && parts[len - 1] == '\0')
		len--;
	if (len + 1 >= VP_PATH_MAX || (m->rec.hdr.flags & VP_MMAP2_F_NAME_CUT)) {
		strcpy(m->name, "//toolong");
		return;
	}
	join_parts(m, parts, len);
	if (m->rec.hdr.flags & (VP_MMAP2_F_DELETED | VP_MMAP2_F_NAMELESS))
		append_deleted(m);
}

static int decode_mmap2(struct vp_decoder *d, const struct vp_rec_mmap2 *r)
{
	struct vp_mmap2 m;

	m.rec = *r;
	if (r->hdr.flags & VP_MMAP2_F_NAME_PARTS) {
		name_from_parts(&m, (const char *)(r + 1));
		set_name_size(&m);
	} else {
		memcpy(m.name, r + 1, r->name_bytes);
	}
	/*
	 * A file without a place in a tree counts as deleted when it is called so: not
	 * anon_inode:[…].
	 */
	if ((r->hdr.flags & VP_MMAP2_F_NAMELESS) && ends_deleted(m.name))
		m.rec.hdr.flags |= VP_MMAP2_F_DELETED;
	m.rec.hdr.flags &= ~(VP_MMAP2_F_NAME_PARTS | VP_MMAP2_F_NAMELESS);
	return d->ops->mmap2 ? d->ops->mmap2(d->ctx, &m) : 0;
}

static int decode_sample(struct vp_decoder *d, const struct vp_rec_sample *s)
{
	const uint64_t *kern = (const uint64_t *)(s + 1);
	const struct vp_frame *user = (const struct vp_frame *)(kern + s->kern_cnt);

	return d->ops->sample ? d->ops->sample(d->ctx, s, kern, user) : 0;
}

static int decode_user_stack(struct vp_decoder *d, const struct vp_rec_user_stack *r)
{
	const struct vp_frame *user = (const struct vp_frame *)(r + 1);

	return d->ops->user_stack ? d->ops->user_stack(d->ctx, r, user) : 0;
}

static int count(uint64_t *counter)
{
	(*counter)++;
	return 0;
}

/* A record without a tail: its size is its structure's. */
#define DECODE_FIXED(d, op, type, data, size)                                                      \
	((size) != sizeof(struct type) ? count(&(d)->bad_cnt)                                      \
	 : (d)->ops->op		       ? (d)->ops->op((d)->ctx, (const struct type *)(data))       \
				       : 0)

static int decode_exec(struct vp_decoder *d, const struct vp_rec_exec *r, size_t size)
{
	if (size == sizeof(*r) && !is_terminated(r->comm, sizeof(r->comm)))
		return count(&d->bad_cnt);
	return DECODE_FIXED(d, exec, vp_rec_exec, r, size);
}

void vp_mmap2_set_name(struct vp_mmap2 *m, const char *name)
{
	snprintf(m->name, VP_PATH_MAX + 1, "%s", name);
	set_name_size(m);
}

static int decode_comm(struct vp_decoder *d, const struct vp_rec_comm *r, size_t size)
{
	if (size == sizeof(*r) && !is_terminated(r->comm, sizeof(r->comm)))
		return count(&d->bad_cnt);
	return DECODE_FIXED(d, comm, vp_rec_comm, r, size);
}

int vp_decode(struct vp_decoder *d, const void *data, size_t size)
{
	const struct vp_rec_hdr *hdr = data;

	if (size < sizeof(*hdr) || hdr->size != size)
		return count(&d->bad_cnt);

	switch (hdr->kind) {
	case VP_REC_MMAP2:
		if (!is_whole_mmap2(data, size))
			return count(&d->bad_cnt);
		return decode_mmap2(d, data);
	case VP_REC_SAMPLE:
		if (!is_whole_sample(data, size))
			return count(&d->bad_cnt);
		return decode_sample(d, data);
	case VP_REC_USER_STACK:
		if (!is_whole_user_stack(data, size))
			return count(&d->bad_cnt);
		return decode_user_stack(d, data);
	case VP_REC_EXEC:
		return decode_exec(d, data, size);
	case VP_REC_FORK:
		return DECODE_FIXED(d, fork, vp_rec_fork, data, size);
	case VP_REC_EXIT:
		return DECODE_FIXED(d, exit, vp_rec_exit, data, size);
	case VP_REC_INHERIT:
		return DECODE_FIXED(d, inherit, vp_rec_inherit, data, size);
	case VP_REC_COMM:
		return decode_comm(d, data, size);
	default:
		return count(&d->unknown_cnt);
	}
}
