/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "report_builder.h"

#include "../util/array.h"
#include "namer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define DEBUG_MAX_BYTES (256ULL << 20)

struct builder {
	struct vp_namer namer;
	struct vp_built_report *out;
	struct vp_label *label_store;
	const struct vp_label **label_ptrs;
	struct vp_line *lines; /* of all labels */
	struct vp_stack *stacks;
	const struct vp_label **frames;
};

/*
 * A frame whose mapping was unknown when it was sampled: what the process's records say now.
 * Only a mapping counts that was reported for the same life of the process.
 */
static bool stitch(const struct vp_process *proc, struct vp_at *at)
{
	const struct vp_xmap *x = vp_process_find(proc, at->value);

	if (!x)
		return false;
	at->verdict = x->verdict;
	at->remapped = !!(x->flags & VP_XMAP_F_REMAPPED);
	at->file_id = VP_FILE_ID_NONE;
	if (x->verdict == VP_VERDICT_FILE || x->verdict == VP_VERDICT_VDSO) {
		at->value = at->value - x->start + x->pgoff;
		at->file_id = x->file_id;
	}
	return true;
}

/* Other processes' code of that address or offset is other code. */
static bool is_process_code(const struct vp_recording *r, const struct vp_at *at)
{
	const struct vp_file *file = vp_files_get(&r->files, at->file_id);

	return at->verdict == VP_VERDICT_ANON_EXEC || (file && vp_file_is_memory(file));
}

static uint32_t resolve(struct builder *b, const struct vp_at *sampled, const struct vp_tally *t)
{
	const struct vp_recording *r = b->namer.r;
	struct vp_at at = *sampled;
	bool busy = at.verdict == VP_VERDICT_BUSY;
	bool stitched = busy && stitch(&r->procs.proc[t->proc], &at);

	if (stitched)
		b->out->stitched_cnt += t->count;
	else if (busy)
		b->out->unresolved_cnt += t->count;
	return vp_namer_add(&b->namer, &at,
			    (busy && !stitched) || is_process_code(r, &at) ? t->proc : 0);
}

/*
 * Frames as numbers of the namer's first: it names them when it knows all. One pass over all
 * tallies, into one array, outermost first.
 */
static int resolve_all(struct builder *b, uint32_t *numbers)
{
	const struct vp_stacks *st = &b->namer.r->stacks;
	size_t pos = 0;

	for (size_t i = 0; i < st->tally_cnt; i++) {
		const struct vp_tally *t = &st->tally[i];
		const struct vp_stack_ref *ref = &st->stack[t->stack];

		for (uint32_t j = ref->cnt; j-- > 0; pos++) {
			const struct vp_at *at = &st->frames[ref->first + j];

			numbers[pos] = resolve(b, at, t);
			if (numbers[pos] == VP_INDEX_NONE)
				return -ENOMEM;
			b->namer.named[numbers[pos]].count += t->count;
			if (at->verdict != VP_AT_KERNEL)
				b->out->user_frame_cnt += t->count;
		}
	}
	return 0;
}

/* ---- labels and their lines ---- */

static int make_labels(struct builder *b)
{
	const struct vp_namer *n = &b->namer;

	b->label_store = calloc(n->label_cnt + 1, sizeof(*b->label_store));
	b->label_ptrs = calloc(n->label_cnt + 1, sizeof(*b->label_ptrs));
	if (!b->label_store || !b->label_ptrs)
		return -ENOMEM;
	for (size_t i = 0; i < n->label_cnt; i++) {
		const struct vp_label_key *k = &n->label[i];

		b->label_store[i] = (struct vp_label){
			.text = n->strings.str[k->text],
			.module = n->strings.str[k->module],
			.kind = (enum vp_label_kind)k->kind,
			.id = (uint32_t)i,
		};
		b->label_ptrs[i] = &b->label_store[i];
	}
	return 0;
}

/* Frames of a label that were at a line. */
struct hit {
	struct vp_shown at;
	uint64_t count;
};

static int by_line(const void *va, const void *vb)
{
	const struct vp_shown *a = &((const struct hit *)va)->at,
			      *b = &((const struct hit *)vb)->at;
	int diff = vp_cmp_u64(a->label, b->label);

	if (!diff)
		diff = vp_cmp_u64(a->file, b->file);
	return diff ? diff : vp_cmp_u64(a->line, b->line);
}

static int by_label_and_count(const void *va, const void *vb)
{
	const struct hit *a = va, *b = vb;
	int diff = vp_cmp_u64(a->at.label, b->at.label);

	if (!diff)
		diff = vp_cmp_u64(b->count, a->count);
	return diff ? diff : by_line(va, vb);
}

static size_t collect_hits(const struct vp_namer *n, struct hit *hits)
{
	size_t cnt = 0;

	for (size_t i = 0; i < n->named_cnt; i++) {
		const struct vp_named *m = &n->named[i];

		for (uint32_t k = m->first; k < m->first + m->cnt; k++) {
			if (n->shown[k].file != VP_INDEX_NONE)
				hits[cnt++] = (struct hit){n->shown[k], m->count};
		}
	}
	return cnt;
}

/* Each line once, the most frequent of a label first. */
static size_t merge_hits(struct hit *hits, size_t cnt)
{
	size_t n = 0;

	qsort(hits, cnt, sizeof(*hits), by_line);
	for (size_t i = 0; i < cnt; i++) {
		if (n && !by_line(&hits[n - 1], &hits[i]))
			hits[n - 1].count += hits[i].count;
		else
			hits[n++] = hits[i];
	}
	qsort(hits, n, sizeof(*hits), by_label_and_count);
	return n;
}

static int make_lines(struct builder *b)
{
	const struct vp_namer *n = &b->namer;
	struct hit *hits = calloc(n->shown_cnt + 1, sizeof(*hits));
	size_t cnt;

	if (!hits)
		return -ENOMEM;
	cnt = merge_hits(hits, collect_hits(n, hits));
	b->lines = calloc(cnt + 1, sizeof(*b->lines));
	for (size_t i = 0; i < cnt && b->lines; i++) {
		struct vp_label *l = &b->label_store[hits[i].at.label];

		b->lines[i] = (struct vp_line){
			.file = n->strings.str[hits[i].at.file],
			.line = hits[i].at.line,
			.count = hits[i].count,
		};
		if (!l->line_cnt)
			l->lines = &b->lines[i];
		l->line_cnt++;
	}
	free(hits);
	return b->lines ? 0 : -ENOMEM;
}

/* ---- stacks ---- */

static size_t total_frames(const struct vp_stacks *st)
{
	size_t n = 0;

	for (size_t i = 0; i < st->tally_cnt; i++)
		n += st->stack[st->tally[i].stack].cnt;
	return n;
}

static size_t total_shown(const struct vp_namer *n, const uint32_t *numbers, size_t cnt)
{
	size_t total = 0;

	for (size_t i = 0; i < cnt; i++)
		total += n->named[numbers[i]].cnt;
	return total;
}

/* A thousand calls may have been inlined into one frame: then each is shown as its function. */
static void bound_frames(struct vp_namer *n, const uint32_t *numbers, size_t cnt)
{
	size_t more = total_shown(n, numbers, cnt) - cnt;

	if (more * sizeof(struct vp_label *) <= n->max_debug_bytes)
		return;
	n->debug_cut = true;
	for (size_t i = 0; i < n->named_cnt; i++)
		n->named[i].cnt = 1;
}

/* The labels of cnt frames, at `to`; how many those are. */
static size_t put_frames(struct builder *b, const struct vp_label **to, const uint32_t *numbers,
			 size_t cnt)
{
	const struct vp_namer *n = &b->namer;
	size_t put = 0;

	for (size_t i = 0; i < cnt; i++) {
		const struct vp_named *m = &n->named[numbers[i]];

		for (uint32_t k = 0; k < m->cnt; k++)
			to[put++] = b->label_ptrs[n->shown[m->first + k].label];
	}
	return put;
}

static int make_stacks(struct builder *b, const uint32_t *numbers, size_t frame_cnt)
{
	const struct vp_recording *r = b->namer.r;
	const struct vp_label **to;

	b->stacks = calloc(r->stacks.tally_cnt + 1, sizeof(*b->stacks));
	b->frames = calloc(total_shown(&b->namer, numbers, frame_cnt) + 1, sizeof(*b->frames));
	if (!b->stacks || !b->frames)
		return -ENOMEM;
	to = b->frames;
	for (size_t i = 0; i < r->stacks.tally_cnt; i++) {
		const struct vp_tally *t = &r->stacks.tally[i];
		size_t cnt = r->stacks.stack[t->stack].cnt;

		b->stacks[i] = (struct vp_stack){
			.comm = r->comms.str[t->comm],
			.tgid = r->procs.proc[t->proc].id.tgid,
			.tid = t->tid,
			.count = t->count,
			.frame_cnt = put_frames(b, to, numbers, cnt),
			.frames = to,
		};
		to += b->stacks[i].frame_cnt;
		numbers += cnt;
		b->out->report.sample_cnt += t->count;
	}
	return 0;
}

/* ---- accounts ---- */

static int by_frames(const void *a, const void *b)
{
	return vp_cmp_u64(((const struct vp_nameless *)b)->frame_cnt,
			  ((const struct vp_nameless *)a)->frame_cnt);
}

static void blame(struct builder *b, const struct vp_named *m, struct vp_nameless *module)
{
	struct vp_file_info info;

	module->module = b->namer.strings.str[m->module];
	module->frame_cnt += m->count;
	module->reason = m->reason;
	if (m->at.verdict == VP_VERDICT_FILE &&
	    !vp_symbolizer_file_info(b->namer.s, m->at.file_id, &info)) {
		module->has_build_id = info.build_id_len > 0;
		module->has_symtab = info.symtab_cnt > 0;
	}
}

/* What has no name is put to its module's account: named[] has an entry for each address. */
static int make_nameless(struct builder *b)
{
	const struct vp_namer *n = &b->namer;
	struct vp_nameless *by_module = calloc(n->strings.cnt + 1, sizeof(*by_module));
	size_t cnt = 0;

	if (!by_module)
		return -ENOMEM;
	for (size_t i = 0; i < n->named_cnt; i++) {
		const struct vp_named *m = &n->named[i];

		if (m->at.verdict != VP_AT_KERNEL)
			b->out->inlined_cnt += m->count * (m->cnt - 1);
		if (!m->nameless)
			continue;
		b->out->user_nameless_cnt += m->count;
		if (m->module != VP_INDEX_NONE)
			blame(b, m, &by_module[m->module]);
	}
	for (size_t i = 0; i < n->strings.cnt; i++) {
		if (by_module[i].frame_cnt)
			by_module[cnt++] = by_module[i];
	}
	qsort(by_module, cnt, sizeof(*by_module), by_frames);
	b->out->nameless = by_module;
	b->out->nameless_cnt = cnt;
	b->out->debug_cnt = n->debug_cnt;
	b->out->debug_gone_cnt = n->debug_gone_cnt;
	b->out->debug_cut = n->debug_cut;
	return 0;
}

static int build(struct builder *b, uint32_t *numbers, size_t frame_cnt)
{
	int err = resolve_all(b, numbers);

	if (!err)
		err = vp_namer_run(&b->namer);
	if (!err) {
		bound_frames(&b->namer, numbers, frame_cnt);
		err = make_labels(b);
	}
	if (!err)
		err = make_lines(b);
	if (!err)
		err = make_stacks(b, numbers, frame_cnt);
	return err ? err : make_nameless(b);
}

int vp_report_build(struct vp_built_report *out, struct vp_recording *r, struct vp_symbolizer *s,
		    const struct vp_meta *meta, const struct vp_report_opts *opts)
{
	size_t frame_cnt = total_frames(&r->stacks);
	uint32_t *numbers = calloc(frame_cnt + 1, sizeof(*numbers));
	struct builder *b = calloc(1, sizeof(*b));
	int err = -ENOMEM;

	*out = (struct vp_built_report){.storage = b};
	if (b && numbers) {
		b->namer.r = r;
		b->namer.s = s;
		if (opts) {
			b->namer.inlines = opts->inlines;
			b->namer.kernel = opts->kernel;
		}
		b->namer.max_debug_bytes =
			opts && opts->max_bytes ? opts->max_bytes : DEBUG_MAX_BYTES;
		b->out = out;
		err = build(b, numbers, frame_cnt);
	}
	free(numbers);
	if (err) {
		vp_report_free(out);
		return err;
	}
	out->report.meta = meta;
	out->report.stacks = b->stacks;
	out->report.stack_cnt = r->stacks.tally_cnt;
	out->report.labels = b->label_ptrs;
	out->report.label_cnt = b->namer.label_cnt;
	return 0;
}

void vp_report_free(struct vp_built_report *out)
{
	struct builder *b = out->storage;

	free(out->nameless);
	if (b) {
		vp_namer_free(&b->namer);
		free(b->label_store);
		free(b->label_ptrs);
		free(b->lines);
		free(b->stacks);
		free(b->frames);
		free(b);
	}
	*out = (struct vp_built_report){0};
}
