/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Abbreviations and forms: how a debugging information entry (DIE) is read, and how it is passed
 * over at a few nanoseconds, which is what happens to nearly all of them. DWARF 5, 7.5.
 */
#ifndef VP_DWARF_ABBREV_H
#define VP_DWARF_ABBREV_H

#include "dwarf_bytes.h"

/* What the size of some forms depends on. */
struct dwarf_params {
	uint8_t version;   /* 2 … 5 */
	uint8_t addr_size; /* 4 or 8 */
	uint8_t off_size;  /* 4 or 8 */
};

struct dwarf_attr {
	uint16_t name;	  /* DW_AT_* */
	uint16_t form;	  /* DW_FORM_* */
	int32_t implicit; /* the value of DW_FORM_implicit_const */
};

/* Passes over `bytes` bytes, then one value of variable size. */
struct dwarf_skip_op {
	uint8_t bytes;
	uint8_t kind;
};

struct dwarf_abbrev {
	uint32_t code;
	uint32_t first_attr, first_op;
	uint16_t attr_cnt, op_cnt;
	uint16_t tag;	    /* DW_TAG_* */
	uint8_t tail_bytes; /* behind the last op */
	bool has_children, has_sibling;
};

/* A table may be shared by units. */
struct dwarf_abbrevs {
	struct dwarf_abbrev *abbrev;
	struct dwarf_attr *attr;
	struct dwarf_skip_op *op;
	size_t cnt, cap, attr_cnt, attr_cap, op_cnt, op_cap;
	bool dense; /* codes are 1, 2, 3, … */
	/* for the cache of tables: */
	uint64_t offset;
	struct dwarf_params params;
	uint32_t user_cnt;
};

/*
 * Reads the table at c, the whole or (stop_at) until that code was found. -ENOEXEC: damaged,
 * -ENOMEM. Free with dwarf_abbrevs_free in any case.
 */
int dwarf_abbrevs_read(struct dwarf_abbrevs *t, struct dwarf_cursor *c, struct dwarf_params params,
		       uint64_t stop_at);
void dwarf_abbrevs_free(struct dwarf_abbrevs *t);
size_t dwarf_abbrevs_bytes(const struct dwarf_abbrevs *t);

/* NULL: no such code. */
const struct dwarf_abbrev *dwarf_abbrevs_find_sparse(const struct dwarf_abbrevs *t, uint64_t code);

static inline const struct dwarf_abbrev *dwarf_abbrevs_find(const struct dwarf_abbrevs *t,
							    uint64_t code)
{
	if (t->dense)
		return code - 1 < t->cnt ? &t->abbrev[code - 1] : NULL;
	return dwarf_abbrevs_find_sparse(t, code);
}

/* Passes over all attributes of a DIE. */
void dwarf_skip_die(struct dwarf_cursor *c, const struct dwarf_abbrevs *t,
		    const struct dwarf_abbrev *a);

enum dwarf_kind {
	DWARF_NONE,
	DWARF_CONST, /* also flags */
	DWARF_ADDR,
	DWARF_ADDRX,	 /* index in .debug_addr */
	DWARF_STR_HERE,	 /* offset in the section that is read */
	DWARF_STRP,	 /* offset in .debug_str */
	DWARF_LINE_STRP, /* offset in .debug_line_str */
	DWARF_STRX,	 /* index in .debug_str_offsets */
	DWARF_STR_ALT,	 /* offset in .debug_str of the supplementary file */
	DWARF_REF_UNIT,	 /* offset in the unit */
	DWARF_REF_INFO,	 /* offset in .debug_info */
	DWARF_REF_ALT,	 /* offset in .debug_info of the supplementary file */
	DWARF_SEC_OFFSET,
	DWARF_RNGLISTX, /* index of a list */
	DWARF_OTHER,	/* passed over */
};

struct dwarf_value {
	enum dwarf_kind kind;
	uint64_t v;
};

struct dwarf_value dwarf_read_form(struct dwarf_cursor *c, struct dwarf_params params,
				   uint16_t form, int32_t implicit);

#endif
