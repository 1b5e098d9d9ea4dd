/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "dwarf_object.h"
#include "dwarf_relocate.h"
#include "elf_inflate.h"

#include "../util/array.h"

#include <dwarf.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define UNIT_MAX_CNT	   (1U << 22)
#define SECTION_NAME_BYTES 40
/* What is read of tables of abbreviations, to what is in the file. */
#define ABBREV_MAX_RATIO   16

static const char *const sect_names[DWARF_SECT_CNT] = {
	[DWARF_INFO] = "info",
	[DWARF_ABBREV] = "abbrev",
	[DWARF_LINE] = "line",
	[DWARF_STR] = "str",
	[DWARF_LINE_STR_SECT] = "line_str",
	[DWARF_RANGES] = "ranges",
	[DWARF_RNGLISTS] = "rnglists",
	[DWARF_ADDR_SECT] = "addr",
	[DWARF_STR_OFFSETS] = "str_offsets",
	[DWARF_ARANGES] = "aranges",
	[DWARF_CU_INDEX] = "cu_index",
};

/* ---- sections ---- */

/* Which one, or DWARF_SECT_CNT. "debug_info" with or without the dot, z and .dwo. */
static enum dwarf_sect sect_of(const char *name, bool *is_dwo, bool *is_gnu)
{
	char full[SECTION_NAME_BYTES];

	*is_gnu = !strncmp(name, ".zdebug_", strlen(".zdebug_"));
	if (!*is_gnu && strncmp(name, ".debug_", strlen(".debug_")) != 0)
		return DWARF_SECT_CNT;
	name = strchr(name, '_') + 1;
	for (int i = 0; i < DWARF_SECT_CNT; i++) {
		*is_dwo = false;
		if (!strcmp(name, sect_names[i]))
			return (enum dwarf_sect)i;
		snprintf(full, sizeof(full), "%s.dwo", sect_names[i]);
		*is_dwo = true;
		if (!strcmp(name, full))
			return (enum dwarf_sect)i;
	}
	return DWARF_SECT_CNT;
}

static int inflate_section(struct dwarf_object *o, struct dwarf_section *s, bool is_gnu,
			   uint64_t *max)
{
	enum elf_inflate_header header = o->elf->is_64bit ? ELF_INFLATE_64 : ELF_INFLATE_32;
	uint8_t *packed = malloc(s->size);
	size_t size = 0;
	int err;

	if (!packed)
		return -ENOMEM;
	err = elf_file_read(o->elf, s->offset, packed, s->size);
	if (!err)
		err = elf_inflate(packed, s->size, is_gnu ? ELF_INFLATE_GNU : header, *max,
				  &s->bytes, &size);
	free(packed);
	s->size = err ? 0 : size;
	*max -= size;
	return err;
}

/* The first of a name counts. */
static int add_section(struct dwarf_object *o, enum dwarf_sect i, const GElf_Shdr *shdr,
		       bool is_gnu, uint64_t *max)
{
	struct dwarf_section *s = &o->sect[i];

	if (s->size || shdr->sh_type == SHT_NOBITS || !shdr->sh_size ||
	    shdr->sh_offset > o->elf->size || shdr->sh_size > o->elf->size - shdr->sh_offset)
		return 0;
	*s = (struct dwarf_section){
		.elf = o->elf, .offset = shdr->sh_offset, .size = shdr->sh_size};
	if (is_gnu || (shdr->sh_flags & SHF_COMPRESSED))
		return inflate_section(o, s, is_gnu, max);
	return 0;
}

static bool has_split_info(const struct elf_file *f, size_t strings)
{
	GElf_Shdr shdr;
	bool is_split = false;

	for (size_t i = 1; i < f->section_cnt && !elf_file_section(f, i, &shdr); i++) {
		const char *name = elf_strptr(f->elf, strings, shdr.sh_name);

		if (name && !strcmp(name, ".debug_info"))
			return false;
		is_split |= name && !strcmp(name, ".debug_info.dwo");
	}
	return is_split;
}

static int read_sections(struct dwarf_object *o, uint64_t max)
{
	const struct elf_file *f = o->elf;
	size_t index[DWARF_SECT_CNT] = {0};
	bool is_dwo, is_gnu;
	GElf_Shdr shdr;
	size_t strings;
	int err = 0;

	if (!f->section_cnt || elf_getshdrstrndx(f->elf, &strings))
		return -ENOENT;
	o->is_split = has_split_info(f, strings);
	for (size_t i = 1; !err && i < f->section_cnt && !elf_file_section(f, i, &shdr); i++) {
		const char *name = elf_strptr(f->elf, strings, shdr.sh_name);
		enum dwarf_sect sect = name ? sect_of(name, &is_dwo, &is_gnu) : DWARF_SECT_CNT;

		if (sect == DWARF_SECT_CNT)
			continue;
		if (is_dwo != o->is_split && sect != DWARF_CU_INDEX)
			continue;
		err = add_section(o, sect, &shdr, is_gnu, &max);
		if (!index[sect] && o->sect[sect].size)
			index[sect] = i;
	}
	if (!err && !f->is_linked && f->code_section)
		err = dwarf_relocate(o, index, &max);
	/* A supplementary file may have strings alone. */
	if (!err && !o->sect[DWARF_STR].size &&
	    (!o->sect[DWARF_INFO].size || !o->sect[DWARF_ABBREV].size))
		return -ENOENT;
	return err;
}

/* Of a debug file, too, whose segments have addresses but no bytes. */
static void read_code_bounds(struct dwarf_object *o)
{
	GElf_Shdr code;

	o->exec_lo = UINT64_MAX;
	if (o->elf->code_section && !elf_file_section(o->elf, o->elf->code_section, &code)) {
		o->exec_lo = 0;
		o->exec_hi = code.sh_size;
	}
	for (size_t i = 0; i < o->elf->phdr_cnt; i++) {
		GElf_Phdr p;

		if (!gelf_getphdr(o->elf->elf, (int)i, &p) || p.p_type != PT_LOAD ||
		    !(p.p_flags & PF_X) || !p.p_memsz || p.p_memsz > UINT64_MAX - p.p_vaddr)
			continue;
		if (p.p_vaddr < o->exec_lo)
			o->exec_lo = p.p_vaddr;
		if (p.p_vaddr + p.p_memsz > o->exec_hi)
			o->exec_hi = p.p_vaddr + p.p_memsz;
	}
}

struct dwarf_cursor *dwarf_object_at(struct dwarf_object *o, enum dwarf_sect sect, uint64_t at)
{
	struct dwarf_cursor *c = &o->cursor[sect];

	dwarf_cursor_set(c, &o->sect[sect], at, o->sect[sect].size);
	return c;
}

/* ---- units ---- */

static bool params_are_good(struct dwarf_params p)
{
	return p.version >= 2 && p.version <= 5 && (p.addr_size == 4 || p.addr_size == 8);
}

/*
 * The header of a unit at c. False: no more units can be found behind it. A unit of a kind that
 * is not known has is_bad.
 */
static bool read_unit_header(struct dwarf_cursor *c, struct dwarf_unit *u)
{
	uint64_t length;

	u->offset = dwarf_cursor_at(c);
	u->params.off_size = 4;
	length = dwarf_u32(c);
	if (length == UINT32_MAX) {
		u->params.off_size = 8;
		length = dwarf_u64(c);
	}
	if (c->bad || length > c->limit - dwarf_cursor_at(c))
		return false;
	u->end = dwarf_cursor_at(c) + length;
	u->params.version = (uint8_t)dwarf_u16(c);
	u->type = DW_UT_compile;
	if (u->params.version >= 5) {
		u->type = dwarf_u8(c);
		u->params.addr_size = dwarf_u8(c);
		u->abbrev_offset = dwarf_uint(c, u->params.off_size);
		if (u->type == DW_UT_skeleton || u->type == DW_UT_split_compile)
			u->id = dwarf_u64(c);
		else if (u->type == DW_UT_type || u->type == DW_UT_split_type)
			dwarf_skip(c, sizeof(uint64_t) + u->params.off_size);
	} else {
		u->abbrev_offset = dwarf_uint(c, u->params.off_size);
		u->params.addr_size = dwarf_u8(c);
	}
	u->die_offset = dwarf_cursor_at(c);
	u->is_bad = c->bad || u->die_offset >= u->end || !params_are_good(u->params);
	return true;
}

static int add_unit(struct dwarf_object *o, const struct dwarf_unit *u)
{
	if (o->unit_cnt == UNIT_MAX_CNT)
		return -EFBIG;
	if (vp_array_room((void **)&o->unit, &o->unit_cap, o->unit_cnt, 1, sizeof(*u)))
		return -ENOMEM;
	o->unit[o->unit_cnt++] = *u;
	return 0;
}

static int read_units(struct dwarf_object *o)
{
	struct dwarf_cursor *c = dwarf_object_at(o, DWARF_INFO, 0);
	int err = 0;

	while (!err && dwarf_cursor_at(c) < c->limit) {
		struct dwarf_unit u = {.obj = o};

		if (!read_unit_header(c, &u))
			break;
		c->bad = false;
		if (!u.is_bad)
			err = add_unit(o, &u);
		dwarf_cursor_seek(c, u.end);
	}
	return err;
}

struct dwarf_unit *dwarf_object_unit_at(struct dwarf_object *o, uint64_t offset)
{
	size_t lo = 0, n = o->unit_cnt;

	while (n) {
		size_t half = n / 2;

		if (o->unit[lo + half].offset <= offset) {
			lo += half + 1;
			n -= half + 1;
		} else {
			n = half;
		}
	}
	if (!lo || offset < o->unit[lo - 1].die_offset || offset >= o->unit[lo - 1].end)
		return NULL;
	return &o->unit[lo - 1];
}

void dwarf_object_count_abbrevs(struct dwarf_object *o, uint64_t bytes)
{
	o->abbrev_left -= bytes < o->abbrev_left ? bytes : o->abbrev_left;
}

/* ---- the first DIE ---- */

static void root_value(struct dwarf_root *r, uint16_t name, struct dwarf_value v)
{
	switch (name) {
	case DW_AT_low_pc:
		r->low = v;
		break;
	case DW_AT_high_pc:
		r->high = v;
		break;
	case DW_AT_ranges:
		r->ranges = v;
		break;
	case DW_AT_stmt_list:
		r->stmt_list = v;
		break;
	case DW_AT_comp_dir:
		r->comp_dir = v;
		break;
	case DW_AT_dwo_name:
	case DW_AT_GNU_dwo_name:
		r->dwo_name = v;
		break;
	case DW_AT_str_offsets_base:
		r->str_offsets_base = v.v;
		break;
	case DW_AT_addr_base:
	case DW_AT_GNU_addr_base:
		r->addr_base = v.v;
		break;
	case DW_AT_rnglists_base:
		r->rnglists_base = v.v;
		break;
	case DW_AT_GNU_ranges_base:
		r->ranges_base = v.v;
		break;
	default:
		break;
	}
}

/* Of a package, units are only ever read when they are asked for, and so not counted. */
static int read_root_abbrev(struct dwarf_unit *u, uint64_t code, struct dwarf_abbrevs *one)
{
	struct dwarf_object *o = u->obj;
	struct dwarf_cursor *c = dwarf_object_at(o, DWARF_ABBREV, u->abbrev_offset);
	int err;

	if (o->unit_cnt && !o->abbrev_left)
		return -ENOEXEC;
	err = dwarf_abbrevs_read(one, c, u->params, code);
	dwarf_object_count_abbrevs(o, dwarf_cursor_at(c) - u->abbrev_offset);
	return err;
}

static int read_root(struct dwarf_unit *u, struct dwarf_abbrevs *one)
{
	struct dwarf_object *o = u->obj;
	struct dwarf_cursor *c = dwarf_object_at(o, DWARF_INFO, u->die_offset);
	uint64_t code = dwarf_uleb(c);
	int err;

	if (c->bad || !code || u->abbrev_offset >= o->sect[DWARF_ABBREV].size)
		return -ENOEXEC;
	err = read_root_abbrev(u, code, one);
	if (err)
		return err;
	const struct dwarf_abbrev *a = dwarf_abbrevs_find(one, code);
	if (!a)
		return -ENOEXEC;
	u->root.tag = a->tag;
	for (uint16_t i = 0; i < a->attr_cnt && !c->bad; i++) {
		const struct dwarf_attr *attr = &one->attr[a->first_attr + i];
		struct dwarf_value v = dwarf_read_form(c, u->params, attr->form, attr->implicit);

		root_value(&u->root, attr->name, v);
		if (attr->name == DW_AT_GNU_dwo_id)
			u->id = v.v;
	}
	return c->bad ? -ENOEXEC : 0;
}

/*
 * A split unit has no attributes for its bases: its contribution begins with a header that is as
 * long as the format says, or (before DWARF 5) has none.
 */
static void set_split_bases(struct dwarf_unit *u)
{
	uint64_t header = u->params.version < 5 ? 0 : u->params.off_size == 4 ? 8 : 16;

	if (!u->obj->is_split)
		return;
	u->root.str_offsets_base += header;
	u->root.rnglists_base += u->params.off_size == 4 ? 12 : 20;
}

int dwarf_unit_read_root(struct dwarf_unit *u)
{
	struct dwarf_abbrevs one = {0};
	int err = 0;

	if (u->root_read)
		return u->is_bad ? -ENOEXEC : 0;
	err = read_root(u, &one);
	dwarf_abbrevs_free(&one);
	if (err == -ENOMEM)
		return err;
	u->root_read = true;
	u->is_bad |= err != 0;
	set_split_bases(u);
	if (!err && dwarf_unit_addr(u, u->root.low, &u->root.low_pc))
		u->root.low_pc = 0;
	return err;
}

/* ---- split units ---- */

/* Columns of .debug_cu_index that matter: DW_SECT_* of DWARF 5 and of the GNU format before. */
struct contribution {
	uint64_t info, abbrev, str_offsets, rnglists;
};

static void set_contribution(struct contribution *k, uint32_t version, uint32_t sect, uint32_t at)
{
	if (sect == DW_SECT_INFO)
		k->info = at;
	else if (sect == DW_SECT_ABBREV)
		k->abbrev = at;
	else if (sect == DW_SECT_STR_OFFSETS)
		k->str_offsets = at;
	else if (version == 5 && sect == DW_SECT_RNGLISTS)
		k->rnglists = at;
}

/* Where the tables of an index begin; all inside of the section. */
struct cu_index {
	uint32_t version, column_cnt, unit_cnt, slot_cnt;
	uint64_t rows, columns, offsets, sizes;
};

static bool read_cu_index(struct dwarf_object *o, struct cu_index *x)
{
	struct dwarf_cursor *c = dwarf_object_at(o, DWARF_CU_INDEX, 0);
	uint64_t table;

	x->version = dwarf_u32(c) & 0xffff; /* 2 bytes and padding in DWARF 5 */
	x->column_cnt = dwarf_u32(c);
	x->unit_cnt = dwarf_u32(c);
	x->slot_cnt = dwarf_u32(c);
	if (c->bad || (x->version != 2 && x->version != 5) || !x->slot_cnt ||
	    (x->slot_cnt & (x->slot_cnt - 1)) || !x->column_cnt || x->column_cnt > 16)
		return false;
	table = 4ULL * x->column_cnt * x->unit_cnt;
	x->rows = 16 + 8ULL * x->slot_cnt;
	x->columns = x->rows + 4ULL * x->slot_cnt;
	x->offsets = x->columns + 4ULL * x->column_cnt;
	x->sizes = x->offsets + table;
	return x->sizes + table <= c->limit;
}

static uint32_t u32_at(struct dwarf_object *o, uint64_t at)
{
	return dwarf_u32(dwarf_object_at(o, DWARF_CU_INDEX, at));
}

/* The row of a unit in the index's hash table, from 1; 0: it is not there. */
static uint32_t find_row(struct dwarf_object *o, const struct cu_index *x, uint64_t id)
{
	uint32_t mask = x->slot_cnt - 1, slot = (uint32_t)id & mask;
	uint32_t step = ((uint32_t)(id >> 32) & mask) | 1;

	for (uint32_t i = 0; i < x->slot_cnt; i++) {
		uint64_t at = 16 + 8ULL * slot;
		uint64_t its = dwarf_u64(dwarf_object_at(o, DWARF_CU_INDEX, at));
		uint32_t row = u32_at(o, x->rows + 4ULL * slot);

		if (its == id && row)
			return row <= x->unit_cnt ? row : 0;
		if (!row)
			return 0;
		slot = (slot + step) & mask;
	}
	return 0;
}

static bool find_contribution(struct dwarf_object *o, uint64_t id, struct contribution *k)
{
	struct cu_index x;
	uint32_t row = read_cu_index(o, &x) ? find_row(o, &x, id) : 0;

	if (!row)
		return false;
	*k = (struct contribution){0};
	for (uint32_t i = 0; i < x.column_cnt; i++) {
		uint64_t cell = 4 * ((uint64_t)(row - 1) * x.column_cnt + i);

		set_contribution(k, x.version, u32_at(o, x.columns + 4ULL * i),
				 u32_at(o, x.offsets + cell));
	}
	return true;
}

static bool read_packed(struct dwarf_object *o, uint64_t id, const struct contribution *k,
			struct dwarf_unit *out)
{
	struct dwarf_cursor *c = dwarf_object_at(o, DWARF_INFO, k->info);

	*out = (struct dwarf_unit){.obj = o};
	if (c->bad || !read_unit_header(c, out) || out->is_bad)
		return false;
	out->id = id;
	out->abbrev_offset += k->abbrev;
	out->root.str_offsets_base = k->str_offsets;
	out->root.rnglists_base = k->rnglists;
	return true;
}

bool dwarf_object_split_unit(struct dwarf_object *o, uint64_t id, struct dwarf_unit *out)
{
	struct contribution k;

	if (o->sect[DWARF_CU_INDEX].size)
		return find_contribution(o, id, &k) && read_packed(o, id, &k, out);
	for (size_t i = 0; i < o->unit_cnt; i++) {
		struct dwarf_unit *u = &o->unit[i];

		if (u->type == DW_UT_type || u->type == DW_UT_split_type)
			continue;
		if (!dwarf_unit_read_root(u) && u->id == id) {
			*out = *u;
			return true;
		}
	}
	return false;
}

/* ---- values ---- */

int dwarf_unit_addr(const struct dwarf_unit *u, struct dwarf_value v, uint64_t *addr)
{
	const struct dwarf_unit *base = u->skeleton ? u->skeleton : u;
	struct dwarf_cursor *c;

	*addr = v.v;
	if (v.kind == DWARF_ADDR)
		return 0;
	if (v.kind != DWARF_ADDRX || v.v > UINT32_MAX)
		return -ENOEXEC;
	c = dwarf_object_at(base->obj, DWARF_ADDR_SECT,
			    base->root.addr_base + v.v * u->params.addr_size);
	*addr = dwarf_uint(c, u->params.addr_size);
	return c->bad ? -ENOEXEC : 0;
}

static char *string_at(struct dwarf_object *o, enum dwarf_sect sect, uint64_t at, size_t max)
{
	return dwarf_string(dwarf_object_at(o, sect, at), max);
}

static char *indexed_string(const struct dwarf_unit *u, uint64_t index, size_t max)
{
	struct dwarf_cursor *c;
	uint64_t at;

	if (index > UINT32_MAX)
		return NULL;
	c = dwarf_object_at(u->obj, DWARF_STR_OFFSETS,
			    u->root.str_offsets_base + index * u->params.off_size);
	at = dwarf_uint(c, u->params.off_size);
	return c->bad ? NULL : string_at(u->obj, DWARF_STR, at, max);
}

char *dwarf_unit_string(const struct dwarf_unit *u, struct dwarf_value v, size_t max)
{
	switch (v.kind) {
	case DWARF_STR_HERE:
		return string_at(u->obj, DWARF_INFO, v.v, max);
	case DWARF_STRP:
		return string_at(u->obj, DWARF_STR, v.v, max);
	case DWARF_LINE_STRP:
		return string_at(u->obj, DWARF_LINE_STR_SECT, v.v, max);
	case DWARF_STR_ALT:
		return u->obj->alt ? string_at(u->obj->alt, DWARF_STR, v.v, max) : NULL;
	case DWARF_STRX:
		return indexed_string(u, v.v, max);
	default:
		return NULL;
	}
}

/* ---- life ---- */

size_t dwarf_object_bytes(const struct dwarf_object *o)
{
	size_t bytes = sizeof(*o) + o->unit_cap * sizeof(*o->unit);

	for (int i = 0; i < DWARF_SECT_CNT; i++)
		bytes += o->sect[i].bytes ? o->sect[i].size : 0;
	return bytes;
}

/* Takes elf over. */
static int open_object(struct dwarf_object **out, struct elf_file *elf, uint64_t max_inflate)
{
	struct dwarf_object *o = calloc(1, sizeof(*o));
	int err;

	if (!o) {
		elf_file_close(elf);
		return -ENOMEM;
	}
	o->elf = elf;
	o->fd = -1;
	err = read_sections(o, max_inflate);
	if (!err)
		read_code_bounds(o);
	o->abbrev_left = ABBREV_MAX_RATIO * (o->sect[DWARF_INFO].size + o->sect[DWARF_ABBREV].size);
	if (!err && !o->sect[DWARF_CU_INDEX].size)
		err = read_units(o);
	if (err) {
		dwarf_object_close(o);
		return err;
	}
	*out = o;
	return 0;
}

int dwarf_object_open(struct dwarf_object **out, int fd, uint64_t max_inflate)
{
	struct elf_file *elf = NULL;
	int err = elf_file_open(&elf, fd);

	return err ? err : open_object(out, elf, max_inflate);
}

int dwarf_object_open_memory(struct dwarf_object **out, const void *image, size_t size,
			     uint64_t max_inflate)
{
	struct elf_file *elf = NULL;
	int err = elf_file_open_memory(&elf, image, size);

	return err ? err : open_object(out, elf, max_inflate);
}

void dwarf_object_close(struct dwarf_object *o)
{
	if (!o)
		return;
	for (int i = 0; i < DWARF_SECT_CNT; i++) {
		free(o->sect[i].bytes);
		dwarf_cursor_free(&o->cursor[i]);
	}
	dwarf_cursor_free(&o->walk);
	free(o->unit);
	elf_file_close(o->elf);
	if (o->fd >= 0)
		close(o->fd);
	free(o);
}
