/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "namer.h"

#include "../symbolize/debug_info.h"
#include "../util/array.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- labels ---- */

static bool is_same_label(const void *ctx, uint32_t item, const void *key)
{
	return !memcmp(&((const struct vp_namer *)ctx)->label[item], key,
		       sizeof(struct vp_label_key));
}

/* Number of the label, or VP_INDEX_NONE: out of memory. */
static uint32_t get_label(struct vp_namer *n, const char *text, const char *module,
			  enum vp_label_kind kind)
{
	struct vp_label_key k = {
		.text = vp_strings_add(&n->strings, text),
		.module = vp_strings_add(&n->strings, module),
		.kind = kind,
	};
	uint64_t hash = vp_hash(0, &k, sizeof(k));
	uint32_t i = vp_index_find(&n->label_index, hash, is_same_label, n, &k);

	if (i != VP_INDEX_NONE)
		return i;
	if (k.text == VP_INDEX_NONE || k.module == VP_INDEX_NONE ||
	    vp_array_room((void **)&n->label, &n->label_cap, n->label_cnt, 1, sizeof(*n->label)) ||
	    vp_index_add(&n->label_index, hash, (uint32_t)n->label_cnt))
		return VP_INDEX_NONE;
	n->label[n->label_cnt] = k;
	return (uint32_t)n->label_cnt++;
}

/* One more frame that m is shown as, below those before it. place: where its line is, or NULL. */
static int show(struct vp_namer *n, struct vp_named *m, uint32_t label,
		const struct dwarf_frame *place)
{
	struct vp_shown shown = {.label = label, .file = VP_INDEX_NONE};

	if (place && place->file) {
		shown.line = place->line;
		shown.file = vp_strings_add(&n->strings, place->file);
		if (shown.file == VP_INDEX_NONE)
			return -ENOMEM;
	}
	if (label == VP_INDEX_NONE ||
	    vp_array_room((void **)&n->shown, &n->shown_cap, n->shown_cnt, 1, sizeof(shown)))
		return -ENOMEM;
	if (!m->cnt)
		m->first = (uint32_t)n->shown_cnt;
	m->cnt++;
	n->shown[n->shown_cnt++] = shown;
	return 0;
}

static int show_as(struct vp_namer *n, struct vp_named *m, const char *text, const char *module,
		   enum vp_label_kind kind)
{
	return show(n, m, get_label(n, text, module, kind), NULL);
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

static uint32_t nameless_label(struct vp_namer *n, struct vp_named *m, const char *module,
			       const struct vp_symbol *sym)
{
	char text[320], marked[320];

	m->nameless = true;
	m->reason = sym->reason;
	snprintf(text, sizeof(text), "%.255s+0x%" PRIx64, module, (uint64_t)m->at.value);
	return get_label(n, text, shown_module(&m->at, module, marked), VP_LABEL_USER);
}

/* What strings and shown have grown by since they had so many. */
static void count_debug_bytes(struct vp_namer *n, size_t string_cnt, size_t shown_cnt)
{
	n->debug_bytes += (n->shown_cnt - shown_cnt) * sizeof(*n->shown);
	for (size_t i = string_cnt; i < n->strings.cnt; i++)
		n->debug_bytes += strlen(n->strings.str[i]) + sizeof(struct vp_label);
	n->debug_cut |= n->debug_bytes > n->max_debug_bytes;
}

/* The cnt frames, innermost first, of m's address, whose symbol is sym: it is of that kind. */
static int show_frames(struct vp_namer *n, struct vp_named *m, const struct dwarf_frame *frames,
		       size_t cnt, const struct vp_symbol *sym, const char *module,
		       enum vp_label_kind kind)
{
	char marked[320];
	const char *shown = shown_module(&m->at, module, marked);
	size_t string_cnt = n->strings.cnt, shown_cnt = n->shown_cnt;
	int err = 0;

	while (cnt-- > 0 && !err) {
		const struct dwarf_frame d = debug_info_named(&frames[cnt], sym);

		if (d.function)
			err = show(n, m,
				   get_label(n, d.function, shown,
					     d.inlined ? VP_LABEL_INLINED : kind),
				   &d);
		else if (!d.inlined)
			err = show(n, m, nameless_label(n, m, module, sym), &d);
	}
	count_debug_bytes(n, string_cnt, shown_cnt);
	return err;
}

/* ---- frames that are not a file's ---- */

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
static int name_jit(struct vp_namer *n, struct vp_named *m, const char *module)
{
	const struct vp_process *proc = &n->r->procs.proc[m->proc];
	struct vp_jit_symbol sym;
	uint64_t addr = call_site(&m->at);

	if (m->at.verdict == VP_VERDICT_FILE)
		addr = address_in(proc, &m->at);
	if (n->r->jit && !vp_jit_look_up(n->r->jit, &proc->id, addr, &sym)) {
		const struct dwarf_frame place = {
			.file = n->inlines && sym.line ? sym.file : NULL,
			.line = sym.line,
		};

		return show(n, m, get_label(n, sym.name, module, VP_LABEL_JIT), &place);
	}
	m->nameless = true;
	return show_as(n, m, "[jit]", module, VP_LABEL_JIT);
}

static int name_vdso(struct vp_namer *n, struct vp_named *m)
{
	struct vp_symbol sym;

	m->module = vp_strings_add(&n->strings, "[vdso]");
	if (!vp_symbolizer_vdso(n->s, call_site(&m->at), &sym))
		return show_as(n, m, sym.name, "[vdso]", VP_LABEL_USER);
	m->nameless = true;
	m->reason = sym.reason;
	return show_as(n, m, "[vdso]", "[vdso]", VP_LABEL_USER);
}

static bool is_vsyscall(uint64_t addr)
{
	return addr >= VP_VSYSCALL_ADDR && addr < VP_VSYSCALL_END;
}

static int name_kernel_function(struct vp_namer *n, struct vp_named *m, const struct vp_symbol *sym)
{
	const char *module = sym->module ? sym->module : "[kernel]";
	const struct dwarf_frame *frames;
	size_t cnt = 0;

	if (n->kernel && !n->debug_cut)
		cnt = kernel_debug_find(n->kernel, call_site(&m->at), sym, &frames);
	if (!cnt)
		return show_as(n, m, sym->name, module, VP_LABEL_KERNEL);
	return show_frames(n, m, frames, cnt, sym, module, VP_LABEL_KERNEL);
}

static int name_kernel(struct vp_namer *n, struct vp_named *m)
{
	struct vp_symbol sym;
	char text[64];

	/* Its calls are faults: the kernel's unwinder ends there, since the address is its half's. */
	if (is_vsyscall(m->at.value))
		return show_as(n, m, "[vsyscall]", "[vsyscall]", VP_LABEL_USER);
	if (!vp_symbolizer_kernel(n->s, call_site(&m->at), &sym))
		return name_kernel_function(n, m, &sym);
	if (sym.reason == VP_SYM_HIDDEN)
		return show_as(n, m, "[kernel]", "[kernel]", VP_LABEL_KERNEL);
	snprintf(text, sizeof(text), "[kernel]+0x%" PRIx64, (uint64_t)m->at.value);
	return show_as(n, m, text, "[kernel]", VP_LABEL_KERNEL);
}

static int name_unknown(struct vp_namer *n, struct vp_named *m, const char *text,
			enum vp_label_kind kind)
{
	m->nameless = true;
	m->reason = VP_SYM_OK;
	m->module = vp_strings_add(&n->strings, text);
	return show_as(n, m, text, text, kind);
}

static int name_other(struct vp_namer *n, struct vp_named *m)
{
	switch (m->at.verdict) {
	case VP_AT_KERNEL:
		return name_kernel(n, m);
	case VP_VERDICT_VDSO:
		return name_vdso(n, m);
	case VP_VERDICT_ANON_EXEC:
		m->module = vp_strings_add(&n->strings, "[jit]");
		return name_jit(n, m, "[jit]");
	case VP_VERDICT_SPECIAL:
		/* The only executable one besides the vdso. */
		return name_unknown(n, m, "[uprobes]", VP_LABEL_USER);
	case VP_VERDICT_NO_VMA:
		if (is_vsyscall(m->at.value))
			return name_unknown(n, m, "[vsyscall]", VP_LABEL_USER);
		return name_unknown(n, m, "[unknown]", VP_LABEL_UNKNOWN);
	default:
		return name_unknown(n, m, "[unknown]", VP_LABEL_UNKNOWN);
	}
}

/* ---- frames of a file ---- */

/* The frames of one file, while they are named. */
struct file_frames {
	struct vp_file *file; /* NULL: it was never told of */
	const char *module;
	const uint32_t *numbers; /* in named */
	size_t cnt;
	struct debug_info *debug; /* NULL: names only */
};

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

/* The process that was sampled in it is most likely gone; the name still leads to the file. */
static int load_late(struct vp_namer *n, struct vp_file *file, uint32_t file_id)
{
	const struct vp_mapped_file m = vp_file_mapped(file, 0, NULL);

	if (file->requested)
		return 0;
	file->requested = true;
	return vp_symbolizer_load(n->s, file_id, &m);
}

/* The function and the calls inlined there. 0, also if there is nothing to show; -ENOMEM. */
static int show_chain(struct vp_namer *n, struct vp_named *m, const struct file_frames *f,
		      const struct vp_symbol *sym)
{
	const struct elf_file *elf = debug_info_elf(f->debug);
	const struct dwarf_frame *frames = NULL;
	uint64_t vaddr;
	size_t cnt;

	if (elf_segments_vaddr(elf->exec, elf->exec_cnt, call_site(&m->at), &vaddr))
		return 0;
	cnt = debug_info_find(f->debug, vaddr, &frames);
	return show_frames(n, m, frames, cnt, sym, f->module, VP_LABEL_USER);
}

static int name_in_file(struct vp_namer *n, struct vp_named *m, const struct file_frames *f)
{
	struct vp_symbol sym = {.reason = VP_SYM_NOT_LOADED};
	char marked[320];

	m->module = vp_strings_add(&n->strings, f->file ? f->file->name : "[unknown]");
	if (f->file)
		vp_symbolizer_file(n->s, m->at.file_id, call_site(&m->at), &sym);
	if (f->debug && !n->debug_cut) {
		int err = show_chain(n, m, f, &sym);

		if (err || m->cnt)
			return err;
	}
	if (sym.name)
		return show_as(n, m, sym.name, shown_module(&m->at, f->module, marked),
			       VP_LABEL_USER);
	if (sym.reason == VP_SYM_NOT_ELF && vp_file_is_memory(f->file)) {
		m->reason = sym.reason;
		return name_jit(n, m, f->module);
	}
	return show(n, m, nameless_label(n, m, f->module, &sym), NULL);
}

/*
 * Only of a file that was read well: of others there is nothing to learn, and one whose file system
 * does not answer would not answer now. 0 or -ENOMEM; *out may be NULL.
 */
static int open_debug_info(struct vp_namer *n, uint32_t file_id, const struct vp_file *file,
			   struct debug_info **out)
{
	const struct debug_origin at = {.tgid = file->rec.proc.tgid, .path = file->name};
	struct debug_files files;
	struct vp_file_info info;
	int fd, err;

	if (vp_symbolizer_file_info(n->s, file_id, &info))
		return 0;
	if (info.reason != VP_SYM_OK && info.reason != VP_SYM_NO_SYMBOLS &&
	    info.reason != VP_SYM_OVER_LIMIT)
		return 0;
	fd = vp_symbolizer_open(n->s, file_id);
	if (fd < 0) {
		n->debug_gone_cnt += info.has_debug != 0;
		return 0;
	}
	vp_symbolizer_open_debug(n->s, file_id, &files);
	err = debug_info_open(out, fd, &files, vp_symbolizer_finder(n->s), &at, true);
	if (!err && debug_info_is_there(*out)) {
		n->debug_cnt++;
		return 0;
	}
	n->debug_gone_cnt += info.has_debug != 0;
	debug_info_close(*out);
	*out = NULL;
	return err == -ENOMEM ? err : 0;
}

/* In the order that is the quickest for what is read of the debug information. */
static int order_frames(const struct vp_namer *n, const struct file_frames *f, uint32_t *order)
{
	const struct elf_file *elf = debug_info_elf(f->debug);
	uint64_t *vaddr = calloc(f->cnt, sizeof(*vaddr));

	if (!vaddr)
		return -ENOMEM;
	for (size_t i = 0; i < f->cnt; i++) {
		const struct vp_at *at = &n->named[f->numbers[i]].at;

		if (elf_segments_vaddr(elf->exec, elf->exec_cnt, call_site(at), &vaddr[i]))
			vaddr[i] = 0;
	}
	debug_info_sort(f->debug, vaddr, order, f->cnt);
	free(vaddr);
	return 0;
}

static int name_with_debug_info(struct vp_namer *n, const struct file_frames *f)
{
	uint32_t *order = calloc(f->cnt, sizeof(*order));
	int err = order ? order_frames(n, f, order) : -ENOMEM;

	for (size_t i = 0; i < f->cnt && !err; i++)
		err = name_in_file(n, &n->named[f->numbers[order[i]]], f);
	free(order);
	return err;
}

/* Without memory they are named one by one. */
static void expect_names(struct vp_namer *n, uint32_t file_id, const struct file_frames *f)
{
	uint64_t *offset = calloc(f->cnt, sizeof(*offset));

	for (size_t i = 0; offset && i < f->cnt; i++)
		offset[i] = call_site(&n->named[f->numbers[i]].at);
	if (offset)
		vp_symbolizer_expect(n->s, file_id, offset, f->cnt);
	free(offset);
}

static int name_file(struct vp_namer *n, const uint32_t *numbers, size_t cnt)
{
	const uint32_t file_id = n->named[numbers[0]].at.file_id;
	struct vp_file *file = vp_files_get(&n->r->files, file_id);
	struct file_frames f = {
		.file = file,
		.module = file ? base_name(file->name) : "[unknown]",
		.numbers = numbers,
		.cnt = cnt,
	};
	int err = file ? load_late(n, file, file_id) : 0;

	if (!err && file)
		expect_names(n, file_id, &f);
	if (!err && file && n->inlines && !n->debug_cut)
		err = open_debug_info(n, file_id, file, &f.debug);
	if (!err && f.debug)
		err = name_with_debug_info(n, &f);
	for (size_t i = 0; i < cnt && !err && !f.debug; i++)
		err = name_in_file(n, &n->named[numbers[i]], &f);
	debug_info_close(f.debug);
	return err;
}

/* ---- all of them ---- */

static bool is_same_at(const void *ctx, uint32_t item, const void *key)
{
	const struct vp_named *a = &((const struct vp_namer *)ctx)->named[item], *b = key;

	return a->proc == b->proc && !memcmp(&a->at, &b->at, sizeof(a->at));
}

uint32_t vp_namer_add(struct vp_namer *n, const struct vp_at *at, uint32_t proc)
{
	const struct vp_named m = {.at = *at, .proc = proc};
	uint64_t hash = vp_hash(proc, at, sizeof(*at));
	uint32_t i = vp_index_find(&n->named_index, hash, is_same_at, n, &m);

	if (i != VP_INDEX_NONE)
		return i;
	if (vp_array_room((void **)&n->named, &n->named_cap, n->named_cnt, 1, sizeof(m)) ||
	    vp_index_add(&n->named_index, hash, (uint32_t)n->named_cnt))
		return VP_INDEX_NONE;
	n->named[n->named_cnt] = m;
	return (uint32_t)n->named_cnt++;
}

/* Files together, each from its beginning to its end. */
static int by_place(const void *va, const void *vb, void *ctx)
{
	const struct vp_namer *n = ctx;
	uint32_t na = *(const uint32_t *)va, nb = *(const uint32_t *)vb;
	const struct vp_at *a = &n->named[na].at, *b = &n->named[nb].at;
	int diff = vp_cmp_u64(a->verdict, b->verdict);

	if (!diff)
		diff = vp_cmp_u64(a->file_id, b->file_id);
	if (!diff)
		diff = vp_cmp_u64(a->value, b->value);
	return diff ? diff : vp_cmp_u64(na, nb);
}

static size_t same_file(const struct vp_namer *n, const uint32_t *numbers, size_t max)
{
	const struct vp_at *first = &n->named[numbers[0]].at;
	size_t cnt = 1;

	while (cnt < max && n->named[numbers[cnt]].at.verdict == first->verdict &&
	       n->named[numbers[cnt]].at.file_id == first->file_id)
		cnt++;
	return cnt;
}

int vp_namer_run(struct vp_namer *n)
{
	uint32_t *numbers = calloc(n->named_cnt + 1, sizeof(*numbers));
	int err = numbers ? 0 : -ENOMEM;

	for (size_t i = 0; i < n->named_cnt && !err; i++)
		numbers[i] = (uint32_t)i;
	if (!err)
		qsort_r(numbers, n->named_cnt, sizeof(*numbers), by_place, n);
	for (size_t i = 0, cnt; i < n->named_cnt && !err; i += cnt) {
		struct vp_named *m = &n->named[numbers[i]];

		cnt = 1;
		if (m->at.verdict == VP_VERDICT_FILE) {
			cnt = same_file(n, numbers + i, n->named_cnt - i);
			err = name_file(n, numbers + i, cnt);
		} else {
			err = name_other(n, m);
		}
	}
	free(numbers);
	return err;
}

void vp_namer_free(struct vp_namer *n)
{
	vp_strings_free(&n->strings);
	vp_index_free(&n->label_index);
	vp_index_free(&n->named_index);
	free(n->label);
	free(n->named);
	free(n->shown);
}
