/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "report_builder.h"

#include "../util/array.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* A label, its text owned by the builder's strings. */
struct label_key {
	uint32_t text; /* numbers in strings */
	uint32_t module;
	uint32_t kind;
};

/* What a frame became; found again by the frame. */
struct named_at {
	struct vp_at at;
	uint32_t proc; /* only where the frame means nothing without its process */
	uint32_t label;
	uint32_t module; /* in strings: whom to blame when nameless */
	enum vp_sym_reason reason;
	bool nameless;
};

struct builder {
	struct vp_recording *r;
	struct vp_symbolizer *s;
	struct vp_built_report *out;
	struct vp_strings strings;
	struct label_key *labels;
	size_t label_cnt, label_cap;
	struct vp_index label_index;
	struct named_at *named;
	size_t named_cnt, named_cap;
	struct vp_index named_index;
	uint64_t *blamed; /* frames without a name, by named[] */
	struct vp_label *label_store;
	const struct vp_label **label_ptrs;
	struct vp_stack *stacks;
	const struct vp_label **frames;
};

static bool is_same_label(const void *ctx, uint32_t item, const void *key)
{
	return !memcmp(&((const struct builder *)ctx)->labels[item], key, sizeof(struct label_key));
}

static bool is_same_at(const void *ctx, uint32_t item, const void *key)
{
	const struct named_at *a = &((const struct builder *)ctx)->named[item], *b = key;

	return a->proc == b->proc && !memcmp(&a->at, &b->at, sizeof(a->at));
}

/* Number of the label, or VP_INDEX_NONE: out of memory. */
static uint32_t get_label(struct builder *b, const char *text, const char *module,
			  enum vp_label_kind kind)
{
	struct label_key k = {
		.text = vp_strings_add(&b->strings, text),
		.module = vp_strings_add(&b->strings, module),
		.kind = kind,
	};
	uint64_t hash = vp_hash(0, &k, sizeof(k));
	uint32_t i = vp_index_find(&b->label_index, hash, is_same_label, b, &k);

	if (i != VP_INDEX_NONE)
		return i;
	if (k.text == VP_INDEX_NONE || k.module == VP_INDEX_NONE ||
	    vp_array_room((void **)&b->labels, &b->label_cap, b->label_cnt, 1,
			  sizeof(*b->labels)) ||
	    vp_index_add(&b->label_index, hash, (uint32_t)b->label_cnt))
		return VP_INDEX_NONE;
	b->labels[b->label_cnt] = k;
	return (uint32_t)b->label_cnt++;
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

/* A call's return address may be the next function's: the call is the byte before. */
static uint64_t call_site(const struct vp_at *at)
{
	return at->leaf || at->value == 0 ? at->value : at->value - 1;
}

/* The functions are the file's, but the memory is not: no page of it is the file's. */
static const char *shown_module(const struct vp_at *at, const char *module, char buf[320])
{
	if (!at->remapped)
		return module;
	snprintf(buf, 320, "%.255s (remapped)", module);
	return buf;
}

static uint32_t nameless_label(struct builder *b, struct named_at *n, const char *module,
			       const struct vp_symbol *sym)
{
	char text[320], marked[320];

	n->nameless = true;
	n->reason = sym->reason;
	snprintf(text, sizeof(text), "%.255s+0x%" PRIx64, module, (uint64_t)n->at.value);
	return get_label(b, text, shown_module(&n->at, module, marked), VP_LABEL_USER);
}

/* The process that was sampled in it is most likely gone; the name still leads to the file. */
static void load_late(struct builder *b, struct vp_file *file, uint32_t file_id)
{
	const struct vp_mapped_file m = vp_file_mapped(file, 0, NULL);

	if (!file->requested) {
		file->requested = true;
		vp_symbolizer_load(b->s, file_id, &m);
	}
}

/* Where the process has mapped the file's offset: code of a JIT in a memfd. */
static uint64_t address_in(const struct vp_process *proc, const struct vp_at *at)
{
	uint64_t offset = call_site(at);

	for (size_t i = 0; i < proc->xmap_cnt; i++) {
		const struct vp_xmap *x = &proc->xmaps[i];

		if (x->file_id == at->file_id && offset >= x->pgoff &&
		    offset - x->pgoff < x->end - x->start)
			return x->start + offset - x->pgoff;
	}
	return 0;
}

/* Code that a JIT has made, for it alone knows what that is. */
static uint32_t name_jit(struct builder *b, struct named_at *n, const char *module)
{
	const struct vp_process *proc = &b->r->procs.proc[n->proc];
	char name[VP_JIT_NAME_BYTES];
	uint64_t addr = call_site(&n->at);

	if (n->at.verdict == VP_VERDICT_FILE)
		addr = address_in(proc, &n->at);
	if (b->r->jit && !vp_jit_find(b->r->jit, &proc->id, addr, name))
		return get_label(b, name, module, VP_LABEL_JIT);
	n->nameless = true;
	return get_label(b, "[jit]", module, VP_LABEL_JIT);
}

static uint32_t name_file(struct builder *b, struct named_at *n)
{
	struct vp_file *file = vp_files_get(&b->r->files, n->at.file_id);
	const char *module = file ? base_name(file->name) : "[unknown]";
	struct vp_symbol sym = {.reason = VP_SYM_NOT_LOADED};
	char marked[320];

	n->module = vp_strings_add(&b->strings, file ? file->name : "[unknown]");
	if (file) {
		load_late(b, file, n->at.file_id);
		if (!vp_symbolizer_file(b->s, n->at.file_id, call_site(&n->at), &sym))
			return get_label(b, sym.name, shown_module(&n->at, module, marked),
					 VP_LABEL_USER);
		if (sym.reason == VP_SYM_NOT_ELF && vp_file_is_memory(file)) {
			n->reason = sym.reason;
			return name_jit(b, n, module);
		}
	}
	return nameless_label(b, n, module, &sym);
}

static uint32_t name_vdso(struct builder *b, struct named_at *n)
{
	struct vp_symbol sym;

	n->module = vp_strings_add(&b->strings, "[vdso]");
	if (!vp_symbolizer_vdso(b->s, call_site(&n->at), &sym))
		return get_label(b, sym.name, "[vdso]", VP_LABEL_USER);
	n->nameless = true;
	n->reason = sym.reason;
	return get_label(b, "[vdso]", "[vdso]", VP_LABEL_USER);
}

static bool is_vsyscall(uint64_t addr)
{
	return addr >= VP_VSYSCALL_ADDR && addr < VP_VSYSCALL_END;
}

static uint32_t name_kernel(struct builder *b, struct named_at *n)
{
	struct vp_symbol sym;
	char text[64];

	/* Its calls are faults: the kernel's unwinder ends there, since the address is its half's. */
	if (is_vsyscall(n->at.value))
		return get_label(b, "[vsyscall]", "[vsyscall]", VP_LABEL_USER);
	if (!vp_symbolizer_kernel(b->s, call_site(&n->at), &sym))
		return get_label(b, sym.name, sym.module ? sym.module : "[kernel]",
				 VP_LABEL_KERNEL);
	if (sym.reason == VP_SYM_HIDDEN)
		return get_label(b, "[kernel]", "[kernel]", VP_LABEL_KERNEL);
	snprintf(text, sizeof(text), "[kernel]+0x%" PRIx64, (uint64_t)n->at.value);
	return get_label(b, text, "[kernel]", VP_LABEL_KERNEL);
}

static uint32_t name_unknown(struct builder *b, struct named_at *n, const char *text,
			     enum vp_label_kind kind)
{
	n->nameless = true;
	n->reason = VP_SYM_OK;
	n->module = vp_strings_add(&b->strings, text);
	return get_label(b, text, text, kind);
}

static uint32_t name_frame(struct builder *b, struct named_at *n)
{
	switch (n->at.verdict) {
	case VP_AT_KERNEL:
		return name_kernel(b, n);
	case VP_VERDICT_FILE:
		return name_file(b, n);
	case VP_VERDICT_VDSO:
		return name_vdso(b, n);
	case VP_VERDICT_ANON_EXEC:
		n->module = vp_strings_add(&b->strings, "[jit]");
		return name_jit(b, n, "[jit]");
	case VP_VERDICT_SPECIAL:
		/* The only executable one besides the vdso. */
		return name_unknown(b, n, "[uprobes]", VP_LABEL_USER);
	case VP_VERDICT_NO_VMA:
		if (is_vsyscall(n->at.value))
			return name_unknown(b, n, "[vsyscall]", VP_LABEL_USER);
		return name_unknown(b, n, "[unknown]", VP_LABEL_UNKNOWN);
	default:
		return name_unknown(b, n, "[unknown]", VP_LABEL_UNKNOWN);
	}
}

/*
 * A frame whose mapping was unknown when it was sampled: what the process's records say now.
 * Only a mapping counts that was reported for the same life of the process.
 */
static bool stitch(const struct builder *b, struct named_at *n)
{
	const struct vp_process *proc = &b->r->procs.proc[n->proc];
	const struct vp_xmap *x = vp_process_find(proc, n->at.value);

	if (!x)
		return false;
	n->at.verdict = x->verdict;
	n->at.remapped = !!(x->flags & VP_XMAP_F_REMAPPED);
	n->at.file_id = VP_FILE_ID_NONE;
	if (x->verdict == VP_VERDICT_FILE || x->verdict == VP_VERDICT_VDSO) {
		n->at.value = n->at.value - x->start + x->pgoff;
		n->at.file_id = x->file_id;
	}
	return true;
}

/* Number in named[], or VP_INDEX_NONE: out of memory. */
static uint32_t name_at(struct builder *b, struct named_at *n)
{
	uint64_t hash = vp_hash(n->proc, &n->at, sizeof(n->at));
	uint32_t i = vp_index_find(&b->named_index, hash, is_same_at, b, n);

	if (i != VP_INDEX_NONE)
		return i;
	n->label = name_frame(b, n);
	if (n->label == VP_INDEX_NONE ||
	    vp_array_room((void **)&b->named, &b->named_cap, b->named_cnt, 1, sizeof(*b->named)) ||
	    vp_index_add(&b->named_index, hash, (uint32_t)b->named_cnt))
		return VP_INDEX_NONE;
	b->named[b->named_cnt] = *n;
	return (uint32_t)b->named_cnt++;
}

/* Other processes' code of that address or offset is other code. */
static bool is_process_code(const struct builder *b, const struct vp_at *at)
{
	const struct vp_file *file = vp_files_get(&b->r->files, at->file_id);

	return at->verdict == VP_VERDICT_ANON_EXEC || (file && vp_file_is_memory(file));
}

static uint32_t resolve(struct builder *b, const struct vp_at *at, const struct vp_tally *t)
{
	struct named_at n = {.at = *at, .proc = t->proc};
	bool busy = at->verdict == VP_VERDICT_BUSY, stitched = busy && stitch(b, &n);

	if (stitched)
		b->out->stitched_cnt += t->count;
	else if (busy)
		b->out->unresolved_cnt += t->count;
	if ((!busy || stitched) && !is_process_code(b, &n.at))
		n.proc = 0;
	return name_at(b, &n);
}

/*
 * Frames as numbers first: labels[] moves while it grows. One pass over all tallies, into
 * one array of numbers, outermost first.
 */
static int resolve_all(struct builder *b, uint32_t *numbers)
{
	const struct vp_stacks *st = &b->r->stacks;
	size_t pos = 0;

	for (size_t i = 0; i < st->tally_cnt; i++) {
		const struct vp_tally *t = &st->tally[i];
		const struct vp_stack_ref *ref = &st->stack[t->stack];

		for (uint32_t j = ref->cnt; j-- > 0; pos++) {
			const struct vp_at *at = &st->frames[ref->first + j];

			numbers[pos] = resolve(b, at, t);
			if (numbers[pos] == VP_INDEX_NONE)
				return -ENOMEM;
			if (at->verdict != VP_AT_KERNEL)
				b->out->user_frame_cnt += t->count;
		}
	}
	return 0;
}

static int make_labels(struct builder *b)
{
	b->label_store = calloc(b->label_cnt + 1, sizeof(*b->label_store));
	b->label_ptrs = calloc(b->label_cnt + 1, sizeof(*b->label_ptrs));
	if (!b->label_store || !b->label_ptrs)
		return -ENOMEM;
	for (size_t i = 0; i < b->label_cnt; i++) {
		const struct label_key *k = &b->labels[i];

		b->label_store[i] = (struct vp_label){
			.text = b->strings.str[k->text],
			.module = b->strings.str[k->module],
			.kind = (enum vp_label_kind)k->kind,
			.id = (uint32_t)i,
		};
		b->label_ptrs[i] = &b->label_store[i];
	}
	return 0;
}

/* Numbers become pointers; what has no name is put to its module's account. */
static void make_stacks(struct builder *b, const uint32_t *numbers)
{
	const struct vp_recording *r = b->r;
	size_t pos = 0;

	for (size_t i = 0; i < r->stacks.tally_cnt; i++) {
		const struct vp_tally *t = &r->stacks.tally[i];
		size_t cnt = r->stacks.stack[t->stack].cnt;

		b->stacks[i] = (struct vp_stack){
			.comm = r->comms.str[t->comm],
			.tgid = r->procs.proc[t->proc].id.tgid,
			.tid = t->tid,
			.count = t->count,
			.frame_cnt = cnt,
			.frames = b->frames + pos,
		};
		for (size_t j = 0; j < cnt; j++, pos++) {
			const struct named_at *n = &b->named[numbers[pos]];

			b->frames[pos] = b->label_ptrs[n->label];
			if (n->nameless) {
				b->blamed[numbers[pos]] += t->count;
				b->out->user_nameless_cnt += t->count;
			}
		}
		b->out->report.sample_cnt += t->count;
	}
}

static size_t total_frames(const struct vp_stacks *st)
{
	size_t n = 0;

	for (size_t i = 0; i < st->tally_cnt; i++)
		n += st->stack[st->tally[i].stack].cnt;
	return n;
}

static int by_frames(const void *a, const void *b)
{
	uint64_t ca = ((const struct vp_nameless *)a)->frame_cnt;
	uint64_t cb = ((const struct vp_nameless *)b)->frame_cnt;

	return (ca < cb) - (ca > cb);
}

/* Sums the blame by module: named[] has an entry for each address. */
static int make_nameless(struct builder *b)
{
	struct vp_nameless *by_module = calloc(b->strings.cnt + 1, sizeof(*by_module));
	size_t n = 0;

	if (!by_module)
		return -ENOMEM;
	for (size_t i = 0; i < b->named_cnt; i++) {
		struct vp_nameless *m = &by_module[b->named[i].module];

		if (b->blamed[i] == 0 || b->named[i].module == VP_INDEX_NONE)
			continue;
		m->module = b->strings.str[b->named[i].module];
		m->frame_cnt += b->blamed[i];
		m->reason = b->named[i].reason;
	}
	for (size_t i = 0; i < b->strings.cnt; i++) {
		if (by_module[i].frame_cnt)
			by_module[n++] = by_module[i];
	}
	qsort(by_module, n, sizeof(*by_module), by_frames);
	b->out->nameless = by_module;
	b->out->nameless_cnt = n;
	return 0;
}

static int build(struct builder *b, uint32_t *numbers, size_t frame_cnt)
{
	int err = resolve_all(b, numbers);

	if (!err)
		err = make_labels(b);
	if (err)
		return err;
	b->blamed = calloc(b->named_cnt + 1, sizeof(*b->blamed));
	b->stacks = calloc(b->r->stacks.tally_cnt + 1, sizeof(*b->stacks));
	b->frames = calloc(frame_cnt + 1, sizeof(*b->frames));
	if (!b->blamed || !b->stacks || !b->frames)
		return -ENOMEM;
	make_stacks(b, numbers);
	return make_nameless(b);
}

int vp_report_build(struct vp_built_report *out, struct vp_recording *r, struct vp_symbolizer *s,
		    const struct vp_meta *meta)
{
	size_t frame_cnt = total_frames(&r->stacks);
	uint32_t *numbers = calloc(frame_cnt + 1, sizeof(*numbers));
	struct builder *b = calloc(1, sizeof(*b));
	int err = -ENOMEM;

	*out = (struct vp_built_report){.storage = b};
	if (b && numbers) {
		b->r = r;
		b->s = s;
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
	out->report.label_cnt = b->label_cnt;
	return 0;
}

void vp_report_free(struct vp_built_report *out)
{
	struct builder *b = out->storage;

	free(out->nameless);
	if (b) {
		vp_strings_free(&b->strings);
		vp_index_free(&b->label_index);
		vp_index_free(&b->named_index);
		free(b->labels);
		free(b->named);
		free(b->blamed);
		free(b->label_store);
		free(b->label_ptrs);
		free(b->stacks);
		free(b->frames);
		free(b);
	}
	*out = (struct vp_built_report){0};
}
