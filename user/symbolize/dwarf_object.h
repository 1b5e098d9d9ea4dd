/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One file's debug sections and the units in them: a program or its debug file, a supplementary
 * file (dwz), a .dwo or a .dwp. Not thread-safe: cursors are shared by all who read.
 */
#ifndef VP_DWARF_OBJECT_H
#define VP_DWARF_OBJECT_H

#include "dwarf_abbrev.h"

enum dwarf_sect {
	DWARF_INFO,
	DWARF_ABBREV,
	DWARF_LINE,
	DWARF_STR,
	DWARF_LINE_STR_SECT,
	DWARF_RANGES,
	DWARF_RNGLISTS,
	DWARF_ADDR_SECT,
	DWARF_STR_OFFSETS,
	DWARF_ARANGES,
	DWARF_CU_INDEX,
	DWARF_SECT_CNT,
};

/* What a unit's first DIE says about the unit; 0 and DWARF_NONE where it says nothing. */
struct dwarf_root {
	uint64_t str_offsets_base, addr_base, rnglists_base;
	uint64_t ranges_base; /* of a split unit's ranges before DWARF 5 */
	uint64_t low_pc;      /* what range lists are relative to */
	struct dwarf_value low, high, ranges, stmt_list, comp_dir, dwo_name;
	uint16_t tag;
};

struct dwarf_unit {
	struct dwarf_object *obj;
	const struct dwarf_unit
		*skeleton;		  /* whose addresses and lines a split unit uses, or NULL */
	struct dwarf_loaded *loaded;	  /* dwarf_info.c's; NULL: nothing is */
	struct dwarf_abbrevs *abbrevs;	  /* NULL: not read */
	uint64_t offset, die_offset, end; /* in .debug_info */
	uint64_t abbrev_offset;
	uint64_t id; /* of split units and their skeletons */
	struct dwarf_root root;
	struct dwarf_params params;
	uint8_t type; /* DW_UT_*; DW_UT_compile before DWARF 5 */
	bool root_read, is_bad;
};

struct dwarf_object {
	struct elf_file *elf;
	int fd; /* owned; -1: borrowed by elf */
	bool is_split;
	struct dwarf_section sect[DWARF_SECT_CNT];
	struct dwarf_cursor cursor[DWARF_SECT_CNT]; /* for random access */
	struct dwarf_cursor walk;		    /* along .debug_info */
	uint64_t exec_lo, exec_hi; /* addresses of code; others are what a linker dropped */
	struct dwarf_unit *unit;   /* in order of offset */
	size_t unit_cnt, unit_cap;
	struct dwarf_object *alt; /* the supplementary file, or NULL; not owned */
	/*
	 * Bytes of abbreviations that may yet be read to find out where units are: a hostile file has
	 * a million units whose first DIE is at the end of a long table.
	 */
	uint64_t abbrev_left;
};

/*
 * fd is borrowed and must stay open; compressed sections may unpack to max_inflate bytes
 * together. 0; -ENOENT: neither .debug_info nor .debug_str; -ENOEXEC, -EFBIG, -ENOMEM. Headers of units are read with
 * it, except in a .dwp.
 */
int dwarf_object_open(struct dwarf_object **out, int fd, uint64_t max_inflate);
int dwarf_object_open_memory(struct dwarf_object **out, const void *image, size_t size,
			     uint64_t max_inflate);
void dwarf_object_close(struct dwarf_object *o); /* NULL is fine */
size_t dwarf_object_bytes(const struct dwarf_object *o);

/* The cursor of a section, from `at` to its end. */
struct dwarf_cursor *dwarf_object_at(struct dwarf_object *o, enum dwarf_sect sect, uint64_t at);

/* Of a .dwo or .dwp: a copy of the split unit with that id. The caller sets its skeleton. */
bool dwarf_object_split_unit(struct dwarf_object *o, uint64_t id, struct dwarf_unit *out);

/* The unit whose DIEs are around an offset in .debug_info; NULL. */
struct dwarf_unit *dwarf_object_unit_at(struct dwarf_object *o, uint64_t offset);

/* Takes what was read from abbrev_left. */
void dwarf_object_count_abbrevs(struct dwarf_object *o, uint64_t bytes);

/* Reads u->root if it is not yet. 0, -ENOEXEC (for good), -ENOMEM. */
int dwarf_unit_read_root(struct dwarf_unit *u);

/* An entry of .debug_addr, or a value that is an address already. -ENOEXEC: none. */
int dwarf_unit_addr(const struct dwarf_unit *u, struct dwarf_value v, uint64_t *addr);

/* Caller frees; NULL: no string, or no memory. Cut at max bytes. */
char *dwarf_unit_string(const struct dwarf_unit *u, struct dwarf_value v, size_t max);

/*
 * Calls fn for each range of code that low and high or ranges describe, empty ones and what the
 * linker dropped left out, until *budget (reduced by 1 for each) is used up. 0, what fn returned,
 * -ENOEXEC: damaged (those before were good).
 */
int dwarf_unit_each_range(const struct dwarf_unit *u, struct dwarf_value low,
			  struct dwarf_value high, struct dwarf_value ranges, uint32_t *budget,
			  int (*fn)(void *ctx, uint64_t lo, uint64_t hi), void *ctx);

#endif
