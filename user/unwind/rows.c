/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "rows.h"
#include "cfi_entries.h"
#include "code_rows.h"
#include "arch_x86.h"
#include "row_image.h"
#include "rule_dict.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Rows under construction; see struct vp_rows. */
struct row_list {
	uint32_t *key;
	uint16_t *rule;
	size_t cnt, cap;
};

struct compiler {
	struct cfi_space space;
	struct rule_dict dict;
	struct vp_rows_stats stats;
};

/* The rows of one section. */
struct section_rows {
	struct compiler *c;
	const struct cfi_entries *entries;
	struct row_list *rows;
	uint32_t end; /* of the last FDE */
};

static void row_list_free(struct row_list *l)
{
	free(l->key);
	free(l->rule);
	*l = (struct row_list){0};
}

static int row_list_grow(struct row_list *l)
{
	size_t cap = l->cap ? l->cap * 2 : 4096;
	uint32_t *key;
	uint16_t *rule;

	if (l->cnt >= VP_ROWS_MAX_CNT)
		return VP_ROWS_TOO_LARGE;
	key = reallocarray(l->key, cap, sizeof(*key));
	if (!key)
		return -ENOMEM;
	l->key = key;
	rule = reallocarray(l->rule, cap, sizeof(*rule));
	if (!rule)
		return -ENOMEM;
	l->rule = rule;
	l->cap = cap;
	return 0;
}

/* Keys ascend. Rows that say what the one before them does are none, nor are first ones of rule 0. */
static inline int row_list_add(struct row_list *l, uint32_t key, uint16_t rule)
{
	if (l->cnt ? l->rule[l->cnt - 1] == rule : !rule)
		return 0;
	if (l->cnt == l->cap) {
		int err = row_list_grow(l);

		if (err)
			return err;
	}
	l->key[l->cnt] = key;
	l->rule[l->cnt++] = rule;
	return 0;
}

/* The number of the rule that a state means, 0 if there is none; -ENOMEM. */
static int rule_number(struct compiler *c, const struct cfi_run *run)
{
	struct vp_rule rule;
	int number;

	if (cfi_rule(&run->now, run->cie->is_signal_frame, &rule)) {
		c->stats.odd_rule_cnt++;
		return 0;
	}
	number = rule_dict_add(&c->dict, &rule);
	if (number == -ENOSPC) {
		c->stats.rule_full_cnt++;
		return 0;
	}
	return number;
}

/* Stops at the first damage; what it has added by then is for the caller to take back. */
static int add_fde_rows(struct section_rows *s, const struct cfi_fde *fde, struct cfi_run *run)
{
	int more;

	while ((more = cfi_run_next(run)) > 0) {
		int number = rule_number(s->c, run), err;

		if (number < 0)
			return number;
		err = row_list_add(s->rows, fde->key + (uint32_t)run->from, (uint16_t)number);
		if (err)
			return err;
	}
	return more ? VP_ROWS_BAD_CFI : 0;
}

static int run_fde(struct section_rows *s, const struct cfi_fde *fde, uint32_t len)
{
	const struct cfi_entries *e = s->entries;
	const uint8_t *program = e->pointers.bytes + fde->program;
	struct cfi_run run; /* large; what need not be set is not */

	run.cie = &e->cies[fde->cie];
	run.pointers = &e->pointers;
	run.program = (struct cfi_cursor){.p = program, .end = program + fde->program_len};
	run.vaddr = fde->vaddr;
	run.len = len;
	run.to = 0;
	run.in_cie = false;
	run.remembered_cnt = 0;
	run.now = run.cie->initial;
	return add_fde_rows(s, fde, &run);
}

/* len: up to the next FDE, if that begins before this one's end. */
static int add_fde(struct section_rows *s, const struct cfi_fde *fde, uint32_t len)
{
	size_t cnt;
	int err = 0;

	if (s->end < fde->key)
		err = row_list_add(s->rows, s->end, 0);
	if (err)
		return err;
	cnt = s->rows->cnt;
	err = run_fde(s, fde, len);
	if (err == VP_ROWS_BAD_CFI) {
		s->c->stats.bad_fde_cnt++;
		s->rows->cnt = cnt;
		err = row_list_add(s->rows, fde->key, 0);
	}
	s->end = fde->key + len;
	return err;
}

/* Of FDEs that overlap, the later start cuts the earlier; of equal ones, the first counts. */
static int add_entries(struct section_rows *s)
{
	const struct cfi_entries *e = s->entries;

	for (size_t i = 0; i < e->fde_cnt; i++) {
		const struct cfi_fde *fde = &e->fdes[i], *next = fde + 1;
		const struct cfi_fde *end = e->fdes + e->fde_cnt;
		uint32_t len = fde->len;
		int err;

		if (i && fde->key == fde[-1].key)
			continue;
		while (next < end && next->key == fde->key)
			next++;
		if (next < end && next->key - fde->key < len)
			len = next->key - fde->key;
		err = add_fde(s, fde, len);
		if (err)
			return err;
	}
	return s->end < s->c->space.span ? row_list_add(s->rows, s->end, 0) : 0;
}

static int compile_section(struct compiler *c, const struct cfi_section *section,
			   struct row_list *out)
{
	struct cfi_entries entries;
	struct section_rows s = {.c = c, .entries = &entries, .rows = out};
	int err = cfi_entries_read(&entries, section, &c->space);

	if (!err)
		err = add_entries(&s);
	c->stats.fde_cnt += entries.seen_cnt;
	c->stats.bad_fde_cnt += entries.bad_cnt;
	if (!section->is_eh)
		c->stats.from_debug_cnt += entries.fde_cnt;
	cfi_entries_free(&entries);
	return err;
}

/* Rows of `top`, and where it has none, those of `bottom`. */
static int overlay(const struct row_list *top, const struct row_list *bottom, struct row_list *out)
{
	uint16_t above = 0, below = 0;
	size_t t = 0, b = 0;

	while (t < top->cnt || b < bottom->cnt) {
		uint32_t key = t < top->cnt ? top->key[t] : VP_ROWS_NO_KEY;
		int err;

		if (b < bottom->cnt && bottom->key[b] < key)
			key = bottom->key[b];
		if (t < top->cnt && top->key[t] == key)
			above = top->rule[t++];
		if (b < bottom->cnt && bottom->key[b] == key)
			below = bottom->rule[b++];
		err = row_list_add(out, key, above ? above : below);
		if (err)
			return err;
	}
	return 0;
}

typedef int (*read_section)(const struct elf_file *f, struct cfi_section *s);

static int compile_one(struct compiler *c, const struct elf_file *f, read_section read,
		       struct row_list *out)
{
	struct cfi_section section;
	int err = read(f, &section);

	if (!err)
		err = section.bytes ? compile_section(c, &section, out) : VP_ROWS_NO_CFI;
	cfi_section_free(&section);
	if (err)
		row_list_free(out);
	return err;
}

static void row_list_move(struct row_list *to, struct row_list *from)
{
	row_list_free(to);
	*to = *from;
	*from = (struct row_list){0};
}

/* Either section is enough. */
static int compile_sections(struct compiler *c, const struct elf_file *f, struct row_list *out)
{
	struct row_list debug = {0}, both = {0};
	int err = compile_one(c, f, cfi_read_eh_frame, out), debug_err;

	if (err == -ENOMEM)
		return err;
	debug_err = compile_one(c, f, cfi_read_debug_frame, &debug);
	if (debug_err) {
		if (debug_err == -ENOMEM || err == VP_ROWS_NO_CFI)
			err = debug_err;
		return err;
	}
	err = overlay(out, &debug, &both);
	if (!err)
		row_list_move(out, &both);
	row_list_free(&debug);
	row_list_free(&both);
	return err;
}

/* A rule of code without an FDE: the return address is where it always is. */
static int code_rule(struct compiler *c, int32_t cfa_off)
{
	static const struct vp_rule outermost = {.cfa = VP_CFA_END};
	struct vp_rule rule = {.cfa_off = cfa_off, .cfa = VP_CFA_REG, .reg = ARCH_REG_SP};

	if (!cfa_off)
		return rule_dict_add(&c->dict, &outermost);
	for (int i = 0; i < VP_SAVED_CNT; i++)
		rule.saved[i] = i == VP_SAVED_RA ? -1 : VP_SAVED_SAME;
	return rule_dict_add(&c->dict, &rule);
}

/* What the code tells, where no FDE says more. */
static int add_told_rows(struct compiler *c, const struct elf_file *f, struct row_list *list)
{
	struct row_list known = {0}, both = {0};
	struct code_row rows[CODE_ROWS_MAX];
	size_t cnt = code_rows_find(f, &c->space, rows);
	int err = 0;

	for (size_t i = 0; i < cnt && !err; i++) {
		int rule = code_rule(c, rows[i].cfa_off);

		if (rule < 0)
			return rule == -ENOSPC ? 0 : rule;
		if (i && rows[i - 1].end < rows[i].key)
			err = row_list_add(&known, rows[i - 1].end, 0);
		if (!err)
			err = row_list_add(&known, rows[i].key, (uint16_t)rule);
	}
	if (!err && cnt)
		err = row_list_add(&known, rows[cnt - 1].end, 0);
	if (!err && cnt)
		err = overlay(list, &known, &both);
	if (!err && cnt) {
		c->stats.from_code_cnt += cnt;
		row_list_move(list, &both);
	}
	row_list_free(&known);
	row_list_free(&both);
	return err;
}

/* Behind a clone() the parent's frame is as before it, and the child has none. */
static int fill_clone_gaps(struct compiler *c, const struct elf_file *f, struct row_list *l)
{
	for (size_t i = 1; i + 1 < l->cnt; i++) {
		const struct vp_rule *rules = c->dict.rules;
		struct vp_rule rule = rules[l->rule[i - 1]];
		int number;

		if (l->rule[i] ||
		    !code_rows_is_clone(f, &c->space, l->key[i], &rule, &rules[l->rule[i + 1]]))
			continue;
		rule.cfa = VP_CFA_CLONE;
		number = rule_dict_add(&c->dict, &rule);
		if (number < 0)
			return number == -ENOSPC ? 0 : number;
		l->rule[i] = (uint16_t)number;
		c->stats.from_code_cnt++;
	}
	return 0;
}

static int add_code_rows(struct compiler *c, const struct elf_file *f, struct row_list *list)
{
	int err = add_told_rows(c, f, list);

	return err ? err : fill_clone_gaps(c, f, list);
}

/* Takes list and dictionary over. */
static int finish(struct compiler *c, struct row_list *list, struct vp_rows **out)
{
	struct vp_rows *rows;

	if (!list->cnt)
		return c->stats.bad_fde_cnt ? VP_ROWS_BAD_CFI : VP_ROWS_NO_CFI;
	if (list->cnt > VP_ROWS_MAX_CNT || !row_image_fits(list->key, list->cnt))
		return VP_ROWS_TOO_LARGE;
	rows = malloc(sizeof(*rows));
	if (!rows)
		return -ENOMEM;
	*rows = (struct vp_rows){
		.base = c->space.base,
		.span = c->space.span,
		.cnt = (uint32_t)list->cnt,
		.key = list->key,
		.rule = list->rule,
		.rule_cnt = c->dict.cnt,
		.rules = c->dict.rules,
		.stats = c->stats,
	};
	*list = (struct row_list){0};
	c->dict.rules = NULL;
	*out = rows;
	return VP_ROWS_OK;
}

static int compile_elf(struct vp_rows **out, const struct elf_file *f)
{
	struct compiler c = {.stats = {0}};
	struct row_list list = {0};
	GElf_Ehdr ehdr;
	int err;

	if (!gelf_getehdr(f->elf, &ehdr))
		return VP_ROWS_NOT_ELF;
	if (!f->is_64bit || ehdr.e_machine != ARCH_ELF_MACHINE)
		return VP_ROWS_FOREIGN;
	if (!f->is_linked) /* it is never mapped to run, and its entries say nothing yet */
		return VP_ROWS_NO_CFI;
	err = cfi_space_init(&c.space, f);
	if (!err)
		err = rule_dict_init(&c.dict);
	if (!err)
		err = compile_sections(&c, f, &list);
	if (!err)
		err = add_code_rows(&c, f, &list);
	if (!err)
		err = finish(&c, &list, out);
	row_list_free(&list);
	rule_dict_free(&c.dict);
	return err;
}

static int compile_and_close(struct vp_rows **out, struct elf_file *f, int err)
{
	*out = NULL;
	if (err)
		return err == -ENOMEM ? err : err == -EFBIG ? VP_ROWS_TOO_LARGE : VP_ROWS_NOT_ELF;
	err = compile_elf(out, f);
	elf_file_close(f);
	return err;
}

int vp_rows_compile(struct vp_rows **out, int fd)
{
	struct elf_file *f = NULL;
	int err = elf_file_open(&f, fd);

	return compile_and_close(out, f, err);
}

int vp_rows_compile_memory(struct vp_rows **out, const void *image, size_t size)
{
	struct elf_file *f = NULL;
	int err = elf_file_open_memory(&f, image, size);

	return compile_and_close(out, f, err);
}

void vp_rows_free(struct vp_rows *rows)
{
	if (!rows)
		return;
	free(rows->key);
	free(rows->rule);
	free(rows->rules);
	free(rows);
}

const char *vp_rows_reason_text(enum vp_rows_reason reason)
{
	switch (reason) {
	case VP_ROWS_OK:
		return "has unwind rows";
	case VP_ROWS_NOT_ELF:
		return "no ELF file, or a damaged one";
	case VP_ROWS_FOREIGN:
		return "for another architecture";
	case VP_ROWS_NO_CFI:
		return "without unwind information";
	case VP_ROWS_BAD_CFI:
		return "with damaged unwind information";
	case VP_ROWS_TOO_LARGE:
		return "with more unwind information than is accepted";
	}
	return "unknown";
}

const struct vp_rule *vp_rows_find(const struct vp_rows *rows, uint64_t offset, uint64_t *first)
{
	uint32_t low = 0, high = rows->cnt, key;

	if (offset < rows->base || offset - rows->base >= rows->span)
		return NULL;
	key = (uint32_t)(offset - rows->base);
	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (rows->key[mid] <= key)
			low = mid + 1;
		else
			high = mid;
	}
	if (!low)
		return NULL;
	if (first)
		*first = rows->base + rows->key[low - 1];
	return &rows->rules[rows->rule[low - 1]];
}
