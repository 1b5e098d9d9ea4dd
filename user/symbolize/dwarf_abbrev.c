/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "dwarf_abbrev.h"

#include "../util/array.h"

#include <dwarf.h>
#include <stdlib.h>

#define ABBREV_MAX_CNT (1U << 20)
#define ATTR_MAX_CNT   (1U << 22)
#define INDIRECT_MAX   4

enum skip_kind {
	SKIP_NOTHING, /* more fixed bytes than an op holds */
	SKIP_LEB,
	SKIP_BLOCK1,
	SKIP_BLOCK2,
	SKIP_BLOCK4,
	SKIP_BLOCK,
	SKIP_STRING,
	SKIP_INDIRECT,
};

/* 0 and *bytes, or the kind of a form without fixed size; -1: not known. */
static int form_size(struct dwarf_params p, uint16_t form, unsigned int *bytes)
{
	*bytes = 0;
	switch (form) {
	case DW_FORM_flag_present:
	case DW_FORM_implicit_const:
		return 0;
	case DW_FORM_data1:
	case DW_FORM_ref1:
	case DW_FORM_flag:
	case DW_FORM_strx1:
	case DW_FORM_addrx1:
		*bytes = 1;
		return 0;
	case DW_FORM_data2:
	case DW_FORM_ref2:
	case DW_FORM_strx2:
	case DW_FORM_addrx2:
		*bytes = 2;
		return 0;
	case DW_FORM_strx3:
	case DW_FORM_addrx3:
		*bytes = 3;
		return 0;
	case DW_FORM_data4:
	case DW_FORM_ref4:
	case DW_FORM_strx4:
	case DW_FORM_addrx4:
	case DW_FORM_ref_sup4:
		*bytes = 4;
		return 0;
	case DW_FORM_data8:
	case DW_FORM_ref8:
	case DW_FORM_ref_sig8:
	case DW_FORM_ref_sup8:
		*bytes = 8;
		return 0;
	case DW_FORM_data16:
		*bytes = 16;
		return 0;
	case DW_FORM_addr:
		*bytes = p.addr_size;
		return 0;
	case DW_FORM_ref_addr:
		*bytes = p.version <= 2 ? p.addr_size : p.off_size;
		return 0;
	case DW_FORM_strp:
	case DW_FORM_line_strp:
	case DW_FORM_sec_offset:
	case DW_FORM_strp_sup:
	case DW_FORM_GNU_ref_alt:
	case DW_FORM_GNU_strp_alt:
		*bytes = p.off_size;
		return 0;
	case DW_FORM_udata:
	case DW_FORM_sdata:
	case DW_FORM_ref_udata:
	case DW_FORM_strx:
	case DW_FORM_addrx:
	case DW_FORM_loclistx:
	case DW_FORM_rnglistx:
	case DW_FORM_GNU_addr_index:
	case DW_FORM_GNU_str_index:
		return SKIP_LEB;
	case DW_FORM_block1:
		return SKIP_BLOCK1;
	case DW_FORM_block2:
		return SKIP_BLOCK2;
	case DW_FORM_block4:
		return SKIP_BLOCK4;
	case DW_FORM_block:
	case DW_FORM_exprloc:
		return SKIP_BLOCK;
	case DW_FORM_string:
		return SKIP_STRING;
	case DW_FORM_indirect:
		return SKIP_INDIRECT;
	default:
		return -1;
	}
}

static int add_op(struct dwarf_abbrevs *t, struct dwarf_abbrev *a, unsigned int bytes, int kind)
{
	if (vp_array_room((void **)&t->op, &t->op_cap, t->op_cnt, 1, sizeof(*t->op)))
		return -ENOMEM;
	t->op[t->op_cnt++] = (struct dwarf_skip_op){(uint8_t)bytes, (uint8_t)kind};
	a->op_cnt++;
	return 0;
}

/* *run: fixed bytes that no op passes over yet. */
static int add_attr(struct dwarf_abbrevs *t, struct dwarf_abbrev *a, struct dwarf_attr attr,
		    struct dwarf_params params, unsigned int *run)
{
	unsigned int bytes;
	int kind = form_size(params, attr.form, &bytes), err = 0;

	if (kind < 0 || t->attr_cnt == ATTR_MAX_CNT || a->attr_cnt == UINT16_MAX)
		return -ENOEXEC;
	if (vp_array_room((void **)&t->attr, &t->attr_cap, t->attr_cnt, 1, sizeof(*t->attr)))
		return -ENOMEM;
	t->attr[t->attr_cnt++] = attr;
	a->attr_cnt++;
	a->has_sibling |= attr.name == DW_AT_sibling;
	if (*run + bytes > UINT8_MAX) {
		err = add_op(t, a, *run, SKIP_NOTHING);
		*run = 0;
	}
	*run += bytes;
	if (!err && kind > 0) {
		err = add_op(t, a, *run, kind);
		*run = 0;
	}
	return err;
}

static int read_abbrev(struct dwarf_abbrevs *t, struct dwarf_cursor *c, struct dwarf_params params,
		       struct dwarf_abbrev *a)
{
	unsigned int run = 0;

	a->tag = (uint16_t)dwarf_uleb(c);
	a->has_children = dwarf_u8(c);
	a->first_attr = (uint32_t)t->attr_cnt;
	a->first_op = (uint32_t)t->op_cnt;
	for (;;) {
		uint64_t name = dwarf_uleb(c), form = dwarf_uleb(c);
		struct dwarf_attr attr = {.name = (uint16_t)name, .form = (uint16_t)form};

		if (c->bad || name > UINT16_MAX || form > UINT16_MAX)
			return -ENOEXEC;
		if (!name && !form)
			break;
		if (form == DW_FORM_implicit_const)
			attr.implicit = (int32_t)dwarf_sleb(c);
		int err = add_attr(t, a, attr, params, &run);
		if (err)
			return err;
	}
	a->tail_bytes = (uint8_t)run;
	return 0;
}

static int by_code(const void *a, const void *b)
{
	const struct dwarf_abbrev *x = a, *y = b;

	return (x->code > y->code) - (x->code < y->code);
}

int dwarf_abbrevs_read(struct dwarf_abbrevs *t, struct dwarf_cursor *c, struct dwarf_params params,
		       uint64_t stop_at)
{
	t->dense = true;
	t->params = params;
	t->offset = dwarf_cursor_at(c);
	for (;;) {
		uint64_t code = dwarf_uleb(c);

		if (c->bad || code > UINT32_MAX || t->cnt == ABBREV_MAX_CNT)
			return -ENOEXEC;
		if (!code)
			break;
		if (vp_array_room((void **)&t->abbrev, &t->cap, t->cnt, 1, sizeof(*t->abbrev)))
			return -ENOMEM;
		struct dwarf_abbrev *a = &t->abbrev[t->cnt];
		*a = (struct dwarf_abbrev){.code = (uint32_t)code};
		int err = read_abbrev(t, c, params, a);
		if (err)
			return err;
		t->dense &= code == ++t->cnt;
		if (code == stop_at)
			break;
	}
	if (!t->dense)
		qsort(t->abbrev, t->cnt, sizeof(*t->abbrev), by_code);
	return 0;
}

void dwarf_abbrevs_free(struct dwarf_abbrevs *t)
{
	free(t->abbrev);
	free(t->attr);
	free(t->op);
	*t = (struct dwarf_abbrevs){0};
}

size_t dwarf_abbrevs_bytes(const struct dwarf_abbrevs *t)
{
	return t->cap * sizeof(*t->abbrev) + t->attr_cap * sizeof(*t->attr) +
	       t->op_cap * sizeof(*t->op);
}

const struct dwarf_abbrev *dwarf_abbrevs_find_sparse(const struct dwarf_abbrevs *t, uint64_t code)
{
	struct dwarf_abbrev key = {.code = (uint32_t)code};

	if (code > UINT32_MAX || !t->cnt)
		return NULL;
	return bsearch(&key, t->abbrev, t->cnt, sizeof(key), by_code);
}

static void skip_form(struct dwarf_cursor *c, struct dwarf_params params, uint16_t form);

static void skip_kind(struct dwarf_cursor *c, struct dwarf_params params, int kind)
{
	switch (kind) {
	case SKIP_LEB:
		while (dwarf_u8(c) & 0x80)
			;
		break;
	case SKIP_BLOCK1:
		dwarf_skip(c, dwarf_u8(c));
		break;
	case SKIP_BLOCK2:
		dwarf_skip(c, dwarf_u16(c));
		break;
	case SKIP_BLOCK4:
		dwarf_skip(c, dwarf_u32(c));
		break;
	case SKIP_BLOCK:
		dwarf_skip(c, dwarf_uleb(c));
		break;
	case SKIP_STRING:
		dwarf_skip_string(c);
		break;
	case SKIP_INDIRECT:
		skip_form(c, params, (uint16_t)dwarf_uleb(c));
		break;
	default:
		break;
	}
}

static void skip_form(struct dwarf_cursor *c, struct dwarf_params params, uint16_t form)
{
	unsigned int bytes;
	int kind = form_size(params, form, &bytes);

	/* An indirect form that is itself indirect has no reason to be. */
	if (kind < 0 || kind == SKIP_INDIRECT)
		c->bad = true;
	else if (kind)
		skip_kind(c, params, kind);
	else
		dwarf_skip(c, bytes);
}

void dwarf_skip_die(struct dwarf_cursor *c, const struct dwarf_abbrevs *t,
		    const struct dwarf_abbrev *a)
{
	for (uint16_t i = 0; i < a->op_cnt && !c->bad; i++) {
		struct dwarf_skip_op op = t->op[a->first_op + i];

		dwarf_skip(c, op.bytes);
		skip_kind(c, t->params, op.kind);
	}
	dwarf_skip(c, a->tail_bytes);
}

static struct dwarf_value other(struct dwarf_cursor *c, struct dwarf_params params, uint16_t form)
{
	skip_form(c, params, form);
	return (struct dwarf_value){.kind = DWARF_OTHER};
}

static struct dwarf_value string_here(struct dwarf_cursor *c)
{
	uint64_t at = dwarf_cursor_at(c);

	dwarf_skip_string(c);
	return (struct dwarf_value){DWARF_STR_HERE, at};
}

#define VALUE(kind, v) ((struct dwarf_value){kind, v})

static struct dwarf_value read_form(struct dwarf_cursor *c, struct dwarf_params params,
				    uint16_t form, int32_t implicit)
{
	switch (form) {
	case DW_FORM_flag_present:
		return VALUE(DWARF_CONST, 1);
	case DW_FORM_implicit_const:
		return VALUE(DWARF_CONST, (uint64_t)(int64_t)implicit);
	case DW_FORM_flag:
	case DW_FORM_data1:
		return VALUE(DWARF_CONST, dwarf_u8(c));
	case DW_FORM_data2:
		return VALUE(DWARF_CONST, dwarf_u16(c));
	case DW_FORM_data4:
		/* Before DWARF 4 offsets had no form of their own. */
		return VALUE(params.version < 4 ? DWARF_SEC_OFFSET : DWARF_CONST, dwarf_u32(c));
	case DW_FORM_data8:
		return VALUE(params.version < 4 ? DWARF_SEC_OFFSET : DWARF_CONST, dwarf_u64(c));
	case DW_FORM_udata:
		return VALUE(DWARF_CONST, dwarf_uleb(c));
	case DW_FORM_sdata:
		return VALUE(DWARF_CONST, (uint64_t)dwarf_sleb(c));
	case DW_FORM_addr:
		return VALUE(DWARF_ADDR, dwarf_uint(c, params.addr_size));
	case DW_FORM_addrx:
	case DW_FORM_GNU_addr_index:
		return VALUE(DWARF_ADDRX, dwarf_uleb(c));
	case DW_FORM_addrx1:
		return VALUE(DWARF_ADDRX, dwarf_u8(c));
	case DW_FORM_addrx2:
		return VALUE(DWARF_ADDRX, dwarf_u16(c));
	case DW_FORM_addrx3:
		return VALUE(DWARF_ADDRX, dwarf_u24(c));
	case DW_FORM_addrx4:
		return VALUE(DWARF_ADDRX, dwarf_u32(c));
	case DW_FORM_string:
		return string_here(c);
	case DW_FORM_strp:
		return VALUE(DWARF_STRP, dwarf_uint(c, params.off_size));
	case DW_FORM_line_strp:
		return VALUE(DWARF_LINE_STRP, dwarf_uint(c, params.off_size));
	case DW_FORM_strp_sup:
	case DW_FORM_GNU_strp_alt:
		return VALUE(DWARF_STR_ALT, dwarf_uint(c, params.off_size));
	case DW_FORM_strx:
	case DW_FORM_GNU_str_index:
		return VALUE(DWARF_STRX, dwarf_uleb(c));
	case DW_FORM_strx1:
		return VALUE(DWARF_STRX, dwarf_u8(c));
	case DW_FORM_strx2:
		return VALUE(DWARF_STRX, dwarf_u16(c));
	case DW_FORM_strx3:
		return VALUE(DWARF_STRX, dwarf_u24(c));
	case DW_FORM_strx4:
		return VALUE(DWARF_STRX, dwarf_u32(c));
	case DW_FORM_ref1:
		return VALUE(DWARF_REF_UNIT, dwarf_u8(c));
	case DW_FORM_ref2:
		return VALUE(DWARF_REF_UNIT, dwarf_u16(c));
	case DW_FORM_ref4:
		return VALUE(DWARF_REF_UNIT, dwarf_u32(c));
	case DW_FORM_ref8:
		return VALUE(DWARF_REF_UNIT, dwarf_u64(c));
	case DW_FORM_ref_udata:
		return VALUE(DWARF_REF_UNIT, dwarf_uleb(c));
	case DW_FORM_ref_addr:
		return VALUE(DWARF_REF_INFO, dwarf_uint(c, params.version <= 2 ? params.addr_size
									       : params.off_size));
	case DW_FORM_ref_sup4:
		return VALUE(DWARF_REF_ALT, dwarf_u32(c));
	case DW_FORM_ref_sup8:
		return VALUE(DWARF_REF_ALT, dwarf_u64(c));
	case DW_FORM_GNU_ref_alt:
		return VALUE(DWARF_REF_ALT, dwarf_uint(c, params.off_size));
	case DW_FORM_sec_offset:
		return VALUE(DWARF_SEC_OFFSET, dwarf_uint(c, params.off_size));
	case DW_FORM_rnglistx:
		return VALUE(DWARF_RNGLISTX, dwarf_uleb(c));
	default:
		return other(c, params, form);
	}
}

struct dwarf_value dwarf_read_form(struct dwarf_cursor *c, struct dwarf_params params,
				   uint16_t form, int32_t implicit)
{
	if (form == DW_FORM_indirect)
		form = (uint16_t)dwarf_uleb(c);
	return read_form(c, params, form, implicit);
}
