/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "sym_ask.h"
#include "sym_jit.h"
#include "sym_module.h"

#include "../kernel/finder.h"
#include "../kernel/vsyscall.h"
#include "../model/mapping_text.h"
#include "../symbolize/kernel_debug.h"
#include "../util/array.h"
#include "../util/index.h"
#include "../util/procinfo.h"
#include "../util/strings.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A run of bpf_find_vma; more addresses are asked for in several. */
#define FIND_MAX 65536

#define NO_MODULE UINT32_MAX

/* A mapping of the process, by where it starts; a later word on one start counts. */
struct mapping {
	uint64_t start;
	uint32_t module; /* or NO_MODULE: not a file */
	uint32_t name;	 /* in strings */
};

/* What is asked of a module. */
struct query {
	uint64_t vaddr;	 /* as linked */
	uint64_t offset; /* in the file; UINT64_MAX: in no segment */
	uint32_t module;
	uint32_t answer;
};

struct vp_sym {
	struct vp_symbolizer *symbolizer;
	struct kernel_debug *kernel_debug;
	struct vp_strings strings;
	struct vp_finder *finder; /* NULL: a file's addresses */
	pid_t tgid;
	struct vp_sym_jit *jit; /* NULL: nothing was asked of made code yet */
	bool jit_is_read;	/* for this question */
	bool demangle;
	struct vp_sym_module **module; /* pointers: a module is its own callback's context */
	struct mapping *mapping;
	struct vp_index by_start; /* of mapping */
	struct vp_find *find;
	struct query *query;
	struct vp_sym_answer *answer;
	struct vp_sym_frame *frame;
	size_t module_cnt, module_cap, mapping_cnt, mapping_cap, query_cnt, query_cap, answer_cap,
		frame_cnt, frame_cap;
	size_t *first_frame; /* of each answer: frames move while they grow */
	size_t first_cap;
};

/* ---- frames ---- */

/* The stable copy of a string; NULL stays NULL. */
static int keep(struct vp_sym *s, const char *text, const char **out)
{
	uint32_t i;

	*out = NULL;
	if (!text)
		return 0;
	i = vp_strings_add(&s->strings, text);
	if (i == VP_INDEX_NONE)
		return -ENOMEM;
	*out = s->strings.str[i];
	return 0;
}

static int add_frame(struct vp_sym *s, uint32_t answer, const struct vp_sym_frame *f)
{
	struct vp_sym_answer *a = &s->answer[answer];

	if (vp_array_room((void **)&s->frame, &s->frame_cap, s->frame_cnt, 1, sizeof(*f)))
		return -ENOMEM;
	if (!a->frame_cnt)
		s->first_frame[answer] = s->frame_cnt;
	a->frame_cnt++;
	a->reason = NULL;
	s->frame[s->frame_cnt++] = *f;
	return 0;
}

static int add_symbol(struct vp_sym *s, uint32_t answer, const struct vp_symbol *sym)
{
	const struct vp_sym_frame f = {
		.function = sym->name,
		.offset = sym->offset,
		.source = vp_sym_source_text(sym->source),
	};

	return add_frame(s, answer, &f);
}

static int add_dwarf(struct vp_sym *s, uint32_t answer, const struct dwarf_frame *d, size_t cnt,
		     const struct vp_symbol *sym)
{
	int err = 0;

	for (size_t i = 0; i < cnt && !err; i++) {
		const struct dwarf_frame named = debug_info_named(&d[i], sym);
		struct vp_sym_frame f = {
			.source = "dwarf",
			.offset = named.offset,
			.line = named.line,
			.inlined = named.inlined,
		};

		err = keep(s, named.function, &f.function);
		if (!err)
			err = keep(s, named.file, &f.file);
		if (!err)
			err = add_frame(s, answer, &f);
	}
	return err;
}

static int answer_by_dwarf(struct vp_sym *s, const struct vp_sym_module *m, const struct query *q,
			   const struct vp_symbol *sym)
{
	const struct dwarf_frame *d = NULL;
	size_t cnt = m->info ? debug_info_find(m->info, q->vaddr, &d) : 0;

	return add_dwarf(s, q->answer, d, cnt, sym);
}

static int answer_query(struct vp_sym *s, const struct query *q)
{
	const struct vp_sym_module *m = s->module[q->module];
	struct vp_sym_answer *a = &s->answer[q->answer];
	struct vp_symbol sym = {.reason = VP_SYM_NO_SEGMENT};
	struct vp_file_info info;
	int err;

	a->module = m->name;
	a->build_id = m->build_id[0] ? m->build_id : NULL;
	if (q->offset != UINT64_MAX)
		vp_symbolizer_file(s->symbolizer, m->file_id, q->offset, &sym);
	else if (!vp_symbolizer_file_info(s->symbolizer, m->file_id, &info) && !m->elf)
		sym.reason = info.reason;
	a->reason = vp_sym_reason_text(sym.reason);
	err = answer_by_dwarf(s, m, q, &sym);
	if (!err && !a->frame_cnt && sym.name)
		err = add_symbol(s, q->answer, &sym);
	return err;
}

/* ---- addresses to modules ---- */

static int add_query(struct vp_sym *s, const struct query *q)
{
	if (vp_array_room((void **)&s->query, &s->query_cap, s->query_cnt, 1, sizeof(*q)))
		return -ENOMEM;
	s->query[s->query_cnt++] = *q;
	return 0;
}

static int by_module(const void *a, const void *b)
{
	const struct query *x = a, *y = b;

	if (x->module != y->module)
		return x->module < y->module ? -1 : 1;
	return (x->answer > y->answer) - (x->answer < y->answer);
}

static void expect_names(struct vp_sym *s, const struct query *q, size_t cnt, uint64_t *offset)
{
	for (size_t i = 0; i < cnt; i++)
		offset[i] = q[i].offset;
	vp_symbolizer_expect(s->symbolizer, s->module[q->module]->file_id, offset, cnt);
}

static int answer_module(struct vp_sym *s, const struct query *q, size_t cnt)
{
	const struct vp_sym_module *m = s->module[q->module];
	uint64_t *vaddr = calloc(cnt, sizeof(*vaddr));
	uint32_t *order = calloc(cnt, sizeof(*order));
	int err = vaddr && order ? 0 : -ENOMEM;

	if (!err)
		expect_names(s, q, cnt, vaddr);
	for (size_t i = 0; i < cnt && !err; i++) {
		vaddr[i] = q[i].vaddr;
		order[i] = (uint32_t)i;
	}
	if (!err && m->info)
		debug_info_sort(m->info, vaddr, order, cnt);
	for (size_t i = 0; i < cnt && !err; i++)
		err = answer_query(s, &q[order[i]]);
	free(vaddr);
	free(order);
	return err;
}

static int answer_queries(struct vp_sym *s)
{
	int err = 0;

	if (s->query_cnt)
		qsort(s->query, s->query_cnt, sizeof(*s->query), by_module);
	for (size_t i = 0, n; i < s->query_cnt && !err; i += n) {
		for (n = 1; i + n < s->query_cnt; n++) {
			if (s->query[i + n].module != s->query[i].module)
				break;
		}
		err = answer_module(s, &s->query[i], n);
	}
	return err;
}

static int ask_file(struct vp_sym *s, size_t cnt)
{
	const struct elf_file *elf = s->module[0]->elf;
	int err = 0;

	for (size_t i = 0; i < cnt && !err; i++) {
		struct query q = {.vaddr = s->answer[i].addr, .answer = (uint32_t)i};

		if (!elf || elf_segments_offset(elf->exec, elf->exec_cnt, q.vaddr, &q.offset))
			q.offset = UINT64_MAX;
		err = add_query(s, &q);
	}
	return err;
}

/* ---- a process ---- */

static bool starts_at(const void *ctx, uint32_t item, const void *key)
{
	return ((const struct vp_sym *)ctx)->mapping[item].start == *(const uint64_t *)key;
}

static struct mapping *mapping_at(struct vp_sym *s, uint64_t start)
{
	uint32_t i = vp_index_find(&s->by_start, vp_hash(0, &start, sizeof(start)), starts_at, s,
				   &start);

	return i == VP_INDEX_NONE ? NULL : &s->mapping[i];
}

static bool is_module(const struct vp_sym_module *m, const struct vp_mapped_file *f)
{
	return m->key.ino == f->user_ino && m->key.dev_major == f->user_dev_major &&
	       m->key.dev_minor == f->user_dev_minor && !strcmp(m->name, f->name);
}

static int add_module(struct vp_sym *s, struct vp_sym_module **out)
{
	struct vp_sym_module *m = calloc(1, sizeof(*m));

	*out = m;
	if (m)
		m->demangle = s->demangle;
	if (!m || vp_array_room((void **)&s->module, &s->module_cap, s->module_cnt, 1, sizeof(m))) {
		free(m);
		return -ENOMEM;
	}
	s->module[s->module_cnt++] = m;
	m->file_id = (uint32_t)s->module_cnt;
	return 0;
}

static int module_of(struct vp_sym *s, const struct vp_mapped_file *f, uint32_t *module)
{
	struct vp_sym_module *m;
	int err;

	for (size_t i = 0; i < s->module_cnt; i++) {
		if (is_module(s->module[i], f)) {
			*module = (uint32_t)i;
			return 0;
		}
	}
	*module = (uint32_t)s->module_cnt;
	err = add_module(s, &m);
	if (!err)
		err = vp_sym_module_open_mapped(m, s->symbolizer, f);
	return err;
}

static int on_mapping(void *ctx, const struct vp_mmap2 *mapping)
{
	struct vp_sym *s = ctx;
	struct vp_mmap2 stripped = *mapping;
	const struct vp_perf_mmap2 *perf = &mapping->rec.perf;
	struct mapping *known = mapping_at(s, perf->addr);
	struct mapping m = {.start = perf->addr, .module = NO_MODULE};
	int err = 0;

	vp_mapping_strip_deleted(&stripped);
	m.name = vp_strings_add(&s->strings, stripped.name);
	if (m.name == VP_INDEX_NONE)
		return -ENOMEM;
	if (mapping->rec.verdict == VP_VERDICT_FILE) {
		const struct vp_mapped_file f = {
			.tgid = (uint32_t)s->tgid,
			.start = perf->addr,
			.end = perf->addr + perf->len,
			.name = stripped.name,
			.key = mapping->rec.file,
			.user_dev_major = perf->maj,
			.user_dev_minor = perf->min,
			.user_ino = perf->ino,
		};

		err = module_of(s, &f, &m.module);
	}
	if (err)
		return err;
	if (known) {
		*known = m;
		return 0;
	}
	if (vp_array_room((void **)&s->mapping, &s->mapping_cap, s->mapping_cnt, 1, sizeof(m)))
		return -ENOMEM;
	s->mapping[s->mapping_cnt] = m;
	return vp_index_add(&s->by_start, vp_hash(0, &m.start, sizeof(m.start)),
			    (uint32_t)s->mapping_cnt++);
}

static const char *verdict_reason(uint32_t verdict)
{
	switch (verdict) {
	case VP_VERDICT_ANON_EXEC:
		return "code made at run time, which no perf map or jitdump names";
	case VP_VERDICT_SPECIAL:
		return "the kernel's own page in the process";
	case VP_VERDICT_NOT_EXEC:
		return "mapped, but not executable";
	case VP_VERDICT_NO_VMA:
		return "nothing is mapped there";
	default:
		return "could not be asked: the process changes its mappings all the time";
	}
}

/* Nothing of the process is there, but the kernel may be. */
static int answer_kernel(struct vp_sym *s, uint32_t answer)
{
	struct vp_sym_answer *a = &s->answer[answer];
	const struct dwarf_frame *d;
	struct vp_symbol sym;
	size_t cnt;

	if (a->addr >= VP_VSYSCALL_ADDR && a->addr < VP_VSYSCALL_END && vp_vsyscall_prot()) {
		a->module = "[vsyscall]";
		a->reason = verdict_reason(VP_VERDICT_SPECIAL);
		return 0;
	}
	if (a->addr < 1ULL << 63)
		return 0;
	a->module = "[kernel]";
	if (vp_symbolizer_kernel(s->symbolizer, a->addr, &sym)) {
		a->reason = vp_sym_reason_text(sym.reason);
		return 0;
	}
	a->module = sym.module;
	a->build_id = kernel_debug_build_id(s->kernel_debug, sym.module);
	cnt = kernel_debug_find(s->kernel_debug, a->addr, &sym, &d);
	return cnt ? add_dwarf(s, answer, d, cnt, &sym) : add_symbol(s, answer, &sym);
}

static int answer_vdso(struct vp_sym *s, uint32_t answer, uint64_t offset)
{
	struct vp_sym_answer *a = &s->answer[answer];
	struct vp_symbol sym;

	a->module = "[vdso]";
	a->reason = "the vdso of 32-bit programs, which is not the one that is known";
	if (a->addr <= UINT32_MAX)
		return 0;
	a->reason = NULL;
	if (!vp_symbolizer_vdso(s->symbolizer, offset, &sym))
		return add_symbol(s, answer, &sym);
	a->reason = vp_sym_reason_text(sym.reason);
	return 0;
}

/* Once a question, and not at all if that is of nothing that a JIT has made. */
static int read_jit(struct vp_sym *s, struct vp_err *e)
{
	if (s->jit_is_read)
		return 0;
	s->jit_is_read = true;
	return s->jit ? vp_sym_jit_read(s->jit) : vp_sym_jit_open(&s->jit, s->tgid, e);
}

static int answer_jit(struct vp_sym *s, uint32_t answer, struct vp_err *e)
{
	struct vp_sym_answer *a = &s->answer[answer];
	struct vp_sym_frame f = {0};
	struct vp_jit_symbol sym;
	int err = read_jit(s, e);

	a->reason = verdict_reason(VP_VERDICT_ANON_EXEC);
	if (err || vp_sym_jit_find(s->jit, a->addr, &sym))
		return err;
	err = keep(s, sym.name, &f.function);
	if (!err && sym.line)
		err = keep(s, sym.file, &f.file);
	f.line = sym.line;
	f.offset = sym.offset;
	f.source = sym.source;
	return err ? err : add_frame(s, answer, &f);
}

/* Code that a JIT has put into a file of its own, without a program around it. */
static bool is_jit_file(const struct vp_sym_module *m)
{
	return !m->elf && !strncmp(m->name, "/memfd:", 7);
}

static int on_found(struct vp_sym *s, const struct vp_find *find, uint32_t answer, struct vp_err *e)
{
	struct vp_sym_answer *a = &s->answer[answer];
	const struct mapping *m = find->end ? mapping_at(s, find->start) : NULL;
	const uint64_t offset = find->addr - find->start + find->pgoff;
	struct query q = {.offset = offset, .answer = answer};
	const struct elf_file *elf;

	a->reason = verdict_reason(find->verdict);
	if (m && s->strings.str[m->name][0])
		a->module = s->strings.str[m->name];
	if (find->verdict == VP_VERDICT_NO_VMA)
		return answer_kernel(s, answer);
	if (find->verdict == VP_VERDICT_VDSO)
		return answer_vdso(s, answer, find->addr - find->start);
	if (find->verdict == VP_VERDICT_ANON_EXEC) {
		a->module = "[jit]";
		return answer_jit(s, answer, e);
	}
	if (find->verdict != VP_VERDICT_FILE || !m || m->module == NO_MODULE)
		return 0;
	q.module = m->module;
	if (is_jit_file(s->module[m->module]))
		return answer_jit(s, answer, e);
	elf = s->module[m->module]->elf;
	if (elf && elf_segments_vaddr(elf->exec, elf->exec_cnt, offset, &q.vaddr))
		q.offset = UINT64_MAX;
	return add_query(s, &q);
}

static int ask_process(struct vp_sym *s, size_t cnt, struct vp_err *e)
{
	int err = 0;

	for (size_t at = 0, n; at < cnt && !err; at += n) {
		n = cnt - at < FIND_MAX ? cnt - at : FIND_MAX;
		for (size_t i = 0; i < n; i++)
			s->find[i] = (struct vp_find){.addr = s->answer[at + i].addr};
		err = vp_finder_ask(s->finder, s->tgid, s->find, n, e);
		for (size_t i = 0; i < n && !err; i++)
			err = on_found(s, &s->find[i], (uint32_t)(at + i), e);
	}
	return err;
}

/* ---- questions ---- */

static int make_room(struct vp_sym *s, size_t cnt)
{
	if (vp_array_room((void **)&s->answer, &s->answer_cap, 0, cnt, sizeof(*s->answer)) ||
	    vp_array_room((void **)&s->first_frame, &s->first_cap, 0, cnt, sizeof(*s->first_frame)))
		return -ENOMEM;
	vp_index_free(&s->by_start);
	s->query_cnt = s->frame_cnt = s->mapping_cnt = 0;
	s->jit_is_read = false;
	return 0;
}

int vp_sym_ask(struct vp_sym *s, const uint64_t *addrs, size_t cnt,
	       const struct vp_sym_answer **out, struct vp_err *e)
{
	int err = make_room(s, cnt);

	for (size_t i = 0; i < cnt && !err; i++)
		s->answer[i] = (struct vp_sym_answer){.addr = addrs[i]};
	if (!err)
		err = s->finder ? ask_process(s, cnt, e) : ask_file(s, cnt);
	if (!err)
		err = answer_queries(s);
	for (size_t i = 0; i < cnt && !err; i++) {
		if (s->answer[i].frame_cnt)
			s->answer[i].frames = &s->frame[s->first_frame[i]];
	}
	*out = s->answer;
	if (err == -ENOMEM && !e->text[0])
		vp_err_set(e, err, "out of memory");
	return err;
}

/* ---- life ---- */

static int open_kernel(struct vp_sym *s)
{
	const struct kernel_debug_opts opts = {
		.names = s->symbolizer,
		.finder = vp_symbolizer_finder(s->symbolizer),
		.demangle = s->demangle,
	};

	return kernel_debug_new(&s->kernel_debug, &opts);
}

static int open_sym(struct vp_sym **out, bool demangle, struct vp_err *e)
{
	const struct vp_symbolizer_opts opts = {.demangle = demangle};
	struct vp_sym *s = calloc(1, sizeof(*s));

	*out = s;
	if (s)
		s->demangle = demangle;
	if (!s || vp_symbolizer_new(&s->symbolizer, &opts) || open_kernel(s)) {
		vp_sym_close(s);
		vp_err_set(e, -ENOMEM, "out of memory");
		return -ENOMEM;
	}
	return 0;
}

static int check_file(struct vp_sym *s, const char *path, struct vp_err *e)
{
	struct vp_file_info info;
	const struct vp_sym_module *m = s->module[0];

	if (m->elf)
		return 0;
	if (m->is_found)
		return vp_err_set(e, -ENOEXEC, "%s: not an ELF file (name a program or library)",
				  path);
	if (!vp_symbolizer_file_info(s->symbolizer, m->file_id, &info))
		return vp_err_set(e, -ENOENT, "%s: %s (check the path)", path,
				  vp_sym_reason_text(info.reason));
	return -ENOENT;
}

int vp_sym_open_file(struct vp_sym **out, const char *path, bool demangle, struct vp_err *e)
{
	struct vp_sym_module *m;
	struct vp_sym *s;
	int err = open_sym(&s, demangle, e);

	if (err)
		return err;
	err = add_module(s, &m);
	if (!err)
		err = vp_sym_module_open_path(m, s->symbolizer, path);
	if (err)
		vp_err_set(e, err, "out of memory");
	else
		err = check_file(s, path, e);
	if (err) {
		vp_sym_close(s);
		return err;
	}
	*out = s;
	return 0;
}

int vp_sym_open_process(struct vp_sym **out, pid_t pid, bool demangle, struct vp_err *e)
{
	struct vp_procinfo info;
	struct vp_sym *s;
	int err = vp_procinfo_check(pid, &info, e);

	if (!err)
		err = open_sym(&s, demangle, e);
	if (err)
		return err;
	s->tgid = info.tgid;
	s->find = calloc(FIND_MAX, sizeof(*s->find));
	err = s->find ? vp_finder_open(&s->finder, FIND_MAX, on_mapping, s, e)
		      : vp_err_set(e, -ENOMEM, "out of memory");
	if (err) {
		vp_sym_close(s);
		return err;
	}
	*out = s;
	return 0;
}

void vp_sym_close(struct vp_sym *s)
{
	if (!s)
		return;
	vp_finder_close(s->finder);
	vp_sym_jit_close(s->jit);
	for (size_t i = 0; i < s->module_cnt; i++) {
		vp_sym_module_close(s->module[i]);
		free(s->module[i]);
	}
	free(s->module);
	free(s->mapping);
	vp_index_free(&s->by_start);
	free(s->find);
	free(s->query);
	free(s->answer);
	free(s->first_frame);
	free(s->frame);
	vp_strings_free(&s->strings);
	kernel_debug_free(s->kernel_debug);
	vp_symbolizer_free(s->symbolizer);
	free(s);
}
