/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "made_records.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

void made_init(struct made *m, const struct vp_record_ops *ops, void *ctx)
{
	*m = (struct made){
		.ops = ops,
		.ctx = ctx,
		.proc = {.start_ns = 1, .tgid = MADE_TGID, .exec_id = 1},
		.ts_ns = 1000000000,
		.comm = "made",
	};
}

static void set_identity(struct vp_rec_mmap2 *rec, const char *name)
{
	struct stat st;

	if (stat(name, &st))
		return;
	rec->file = (struct vp_file_key){
		.ino = st.st_ino,
		.mtime_ns = (uint64_t)st.st_mtim.tv_sec * 1000000000 + (uint64_t)st.st_mtim.tv_nsec,
		.dev = major(st.st_dev) << 20 | minor(st.st_dev),
	};
	rec->perf.maj = major(st.st_dev);
	rec->perf.min = minor(st.st_dev);
	rec->perf.ino = st.st_ino;
}

int made_map(struct made *m, uint64_t start, uint64_t end, uint64_t pgoff, uint32_t file_id,
	     uint32_t verdict, const char *name)
{
	struct vp_mmap2 r = {0};
	size_t padded = (strlen(name) + 8) & ~(size_t)7;

	r.rec.hdr = (struct vp_rec_hdr){.kind = VP_REC_MMAP2,
					.flags = m->map_flags,
					.size = (uint32_t)(sizeof(r.rec) + padded),
					.ts_ns = m->ts_ns};
	r.rec.proc = m->proc;
	r.rec.file_id = file_id;
	r.rec.verdict = (uint16_t)verdict;
	r.rec.name_bytes = (uint16_t)padded;
	snprintf(r.rec.comm, sizeof(r.rec.comm), "%s", m->comm);
	r.rec.perf = (struct vp_perf_mmap2){
		.type = VP_PERF_RECORD_MMAP2,
		.misc = VP_PERF_MISC_USER,
		.size = (uint16_t)(sizeof(r.rec.perf) + padded),
		.pid = m->proc.tgid,
		.tid = m->proc.tgid,
		.addr = start,
		.len = end - start,
		.pgoff = pgoff,
		.prot = 5,
		.flags = 2,
	};
	if (file_id)
		set_identity(&r.rec, name);
	snprintf(r.name, sizeof(r.name), "%s", name);
	return m->ops->mmap2(m->ctx, &r);
}

struct vp_frame made_file_frame(uint32_t file_id, uint64_t pc, uint64_t offset)
{
	return (struct vp_frame){
		.pc = pc, .offset = offset, .file_id = file_id, .verdict = VP_VERDICT_FILE};
}

struct vp_frame made_frame(uint32_t verdict, uint64_t pc)
{
	return (struct vp_frame){.pc = pc, .verdict = (uint16_t)verdict};
}

static uint32_t tid_of(const struct made *m)
{
	return m->tid ? m->tid : m->proc.tgid;
}

/* In memory of exactly their size, so that a sanitizer sees each step beyond. */
static struct vp_frame *copy_frames(const struct vp_frame *user, size_t cnt)
{
	struct vp_frame *frames = malloc(cnt * sizeof(*frames) + !cnt);

	if (!frames)
		abort();
	for (size_t i = 0; i < cnt; i++) {
		frames[i] = user[i];
		frames[i].flags |= i == 0 ? VP_FRAME_F_LEAF : VP_FRAME_F_FP;
	}
	return frames;
}

static struct vp_rec_sample sample_rec(const struct made *m, size_t kern_cnt, size_t user_cnt)
{
	struct vp_rec_sample s = {
		.hdr = {.kind = VP_REC_SAMPLE,
			.size = (uint32_t)(sizeof(s) + kern_cnt * sizeof(uint64_t) +
					   user_cnt * sizeof(struct vp_frame)),
			.ts_ns = m->ts_ns},
		.proc = m->proc,
		.tid = tid_of(m),
		.kern_cnt = (uint16_t)kern_cnt,
		.user_cnt = (uint16_t)user_cnt,
		.period = 1000,
	};

	snprintf(s.comm, sizeof(s.comm), "%s", m->comm);
	return s;
}

int made_sample(struct made *m, const uint64_t *kern, size_t kern_cnt, const struct vp_frame *user,
		size_t user_cnt, uint16_t end)
{
	struct vp_rec_sample s = sample_rec(m, kern_cnt, user_cnt);
	struct vp_frame *frames = copy_frames(user, user_cnt);
	int err;

	s.user_end = end;
	err = m->ops->sample(m->ctx, &s, kern, frames);
	free(frames);
	return err;
}

int made_deferred(struct made *m, const uint64_t *kern, size_t kern_cnt, uint64_t cookie)
{
	struct vp_rec_sample s = sample_rec(m, kern_cnt, 0);
	struct vp_frame *frames = copy_frames(NULL, 0);
	int err;

	s.hdr.flags = VP_SAMPLE_F_KERNEL_MODE | VP_SAMPLE_F_DEFERRED;
	s.cookie = cookie;
	err = m->ops->sample(m->ctx, &s, kern, frames);
	free(frames);
	return err;
}

int made_user_stack(struct made *m, const struct vp_frame *user, size_t user_cnt, uint16_t end,
		    uint64_t cookie)
{
	const struct vp_rec_user_stack r = {
		.hdr = {.kind = VP_REC_USER_STACK,
			.size = (uint32_t)(sizeof(r) + user_cnt * sizeof(struct vp_frame)),
			.ts_ns = m->ts_ns},
		.proc = m->proc,
		.tid = tid_of(m),
		.user_cnt = (uint16_t)user_cnt,
		.user_end = end,
		.cookie = cookie,
	};
	struct vp_frame *frames = copy_frames(user, user_cnt);
	int err = m->ops->user_stack(m->ctx, &r, frames);

	free(frames);
	return err;
}

int made_exec(struct made *m)
{
	struct vp_rec_exec r = {
		.hdr = {.kind = VP_REC_EXEC, .size = sizeof(r), .ts_ns = m->ts_ns},
		.proc = m->proc,
		.tid = tid_of(m),
	};

	snprintf(r.comm, sizeof(r.comm), "%s", m->comm);
	return m->ops->exec(m->ctx, &r);
}

int made_exit(struct made *m)
{
	const struct vp_rec_exit r = {
		.hdr = {.kind = VP_REC_EXIT, .size = sizeof(r), .ts_ns = m->ts_ns},
		.proc = m->proc,
		.tid = tid_of(m),
		.parent_tgid = 1,
	};

	return m->ops->exit(m->ctx, &r);
}

int made_inherit(struct made *m, struct vp_proc_id proc, struct vp_proc_id from)
{
	const struct vp_rec_inherit r = {
		.hdr = {.kind = VP_REC_INHERIT, .size = sizeof(r), .ts_ns = m->ts_ns},
		.proc = proc,
		.from = from,
	};

	return m->ops->inherit(m->ctx, &r);
}
