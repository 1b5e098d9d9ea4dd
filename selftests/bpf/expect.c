/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "expect.h"

#include "spinner.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include <inttypes.h>
#include <string.h>

const char *name_of_file(const struct record_log *l, uint32_t file_id)
{
	for (size_t i = 0; i < l->cnt; i++) {
		const struct log_item *it = &l->item[i];

		if (it->hdr.kind == VP_REC_MMAP2 && it->mmap2.file_id == file_id)
			return it->name;
	}
	return "";
}

static void expect_frame_as_maps(const struct record_log *l, const struct procmaps *m,
				 const struct vp_frame *f)
{
	const struct procmaps_row *row = procmaps_find(m, log_frame_at(f));

	if (f->verdict == VP_VERDICT_BUSY)
		return;
	if (!row || row->prot[2] != 'x') {
		cr_expect(ne(u32, f->verdict, VP_VERDICT_FILE), "%" PRIx64, (uint64_t)f->pc);
		cr_expect(zero(u64, f->offset));
		return;
	}
	if (!row->ino)
		return;
	cr_assert(eq(u32, f->verdict, VP_VERDICT_FILE), "%" PRIx64 " %s", (uint64_t)f->pc,
		  row->name);
	cr_assert(eq(u64, f->offset, f->pc - row->start + row->pgoff), "%s", row->name);
	cr_assert(eq(str, (char *)name_of_file(l, f->file_id), row->name));
}

void expect_all_as_maps(const struct record_log *l, const struct procmaps *m, uint32_t tgid)
{
	for (size_t i = 0; i < l->cnt; i++) {
		const struct log_item *it = &l->item[i];

		if (it->hdr.kind != VP_REC_SAMPLE || it->sample.proc.tgid != tgid)
			continue;
		for (size_t j = 0; j < it->sample.user_cnt; j++) {
			expect_frame_as_maps(l, m, &it->user[j]);
			cr_expect(eq(int, !!(it->user[j].flags & VP_FRAME_F_LEAF), j == 0));
			cr_expect(eq(int, !!(it->user[j].flags & VP_FRAME_F_FP), j != 0));
		}
	}
}

void expect_all_announced(const struct recorder *r, size_t at_least)
{
	char text[512];
	size_t frames, bad;

	cr_expect(zero(u64, recorder_counter(r, VP_CNT_LOST_MMAP2)));
	cr_expect(zero(u64, recorder_counter(r, VP_CNT_LOST_EVENT)));
	bad = record_log_unannounced(&r->log, text, sizeof(text), &frames);
	cr_expect(zero(sz, bad), "of %zu: %s", frames, text);
	cr_expect(ge(sz, frames, at_least));
}

void expect_only(const struct record_log *l, uint32_t tgid, uint32_t tid)
{
	for (size_t i = 0; i < l->cnt; i++) {
		const struct log_item *it = &l->item[i];

		if (it->hdr.kind == VP_REC_FORK)
			cr_expect(eq(u32, it->fork.parent_tgid, tgid));
		else
			cr_expect(eq(u32, it->sample.proc.tgid, tgid), "kind %u", it->hdr.kind);
		if (it->hdr.kind == VP_REC_SAMPLE && tid)
			cr_expect(eq(u32, it->sample.tid, tid));
	}
}

/* Deferred samples that came without being joined, in the kernel's own words. */
static uint64_t ended_by_the_sampler(const struct record_log *raw)
{
	uint64_t n = 0;

	for (size_t i = 0; i < raw->cnt; i++)
		n += raw->item[i].hdr.kind == VP_REC_SAMPLE &&
		     !(raw->item[i].hdr.flags & VP_SAMPLE_F_DEFERRED);
	return n;
}

void expect_accounts(const struct recorder *r)
{
	const struct vp_joiner *j = &r->joiner;
	uint64_t samples = recorder_counter(r, VP_CNT_SAMPLES);

	cr_assert(r->keep_raw);
	cr_expect(eq(u64, record_log_count(&r->raw, VP_REC_SAMPLE), samples));
	cr_expect(eq(u64, record_log_count(&r->log, VP_REC_SAMPLE), samples));
	cr_expect(eq(u64,
		     j->joined_cnt + j->exited_cnt + j->in_kernel_cnt + j->full_cnt +
			     ended_by_the_sampler(&r->raw),
		     samples));
	cr_expect(zero(u64, j->full_cnt));
	cr_expect(zero(u64, j->forgotten_cnt));
	cr_expect(zero(sz, record_log_count(&r->log, VP_REC_USER_STACK)));
}

size_t first_of(const struct record_log *l, uint16_t kind, uint32_t tgid)
{
	for (size_t i = 0; i < l->cnt; i++) {
		const struct log_item *it = &l->item[i];
		uint32_t of = kind == VP_REC_FORK      ? it->fork.child.tgid
			      : kind == VP_REC_INHERIT ? it->inherit.proc.tgid
						       : it->sample.proc.tgid;

		if (it->hdr.kind == kind && of == tgid)
			return i;
	}
	return l->cnt;
}

size_t count_spinning(const struct record_log *l, uint32_t tgid, size_t cnt, uint16_t end)
{
	size_t n = 0;

	for (size_t i = 0; i < l->cnt; i++) {
		const struct log_item *it = &l->item[i];

		if (it->hdr.kind == VP_REC_SAMPLE && it->sample.proc.tgid == tgid &&
		    it->sample.user_cnt == cnt && is_in(it->user[0].pc, spin_leaf)) {
			cr_expect(eq(u32, it->sample.user_end, end));
			n++;
		}
	}
	return n;
}
