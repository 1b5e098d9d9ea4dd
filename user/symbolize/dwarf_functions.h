/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The functions of a unit and the calls that were inlined into each. Reading a unit finds its
 * functions; what is in a function is read when an address in it is asked for.
 */
#ifndef VP_DWARF_FUNCTIONS_H
#define VP_DWARF_FUNCTIONS_H

#include "dwarf_object.h"
#include "range_map.h"

/* Where a name is to be had. */
struct dwarf_ref {
	enum dwarf_kind kind; /* DWARF_REF_INFO, DWARF_REF_ALT or DWARF_NONE */
	uint64_t offset;
};

#define DWARF_NO_INLINE UINT32_MAX

struct dwarf_inline {
	struct dwarf_ref origin; /* what was inlined */
	uint32_t parent;	 /* into what: an index, or DWARF_NO_INLINE: the function itself */
	uint32_t call_file, call_line;
};

struct dwarf_inlines {
	struct dwarf_inline *node;
	size_t cnt;
	struct range_map map; /* owners are indices of node */
};

struct dwarf_function {
	uint64_t offset;	       /* of its DIE in .debug_info */
	struct dwarf_inlines *inlines; /* NULL: not read, or none */
	bool inlines_read;
};

/* Addresses are relative to exec_lo of the unit's object (or its skeleton's). All zero is empty. */
struct dwarf_functions {
	struct dwarf_function *function;
	size_t cnt, cap;
	struct range_map map; /* owners are indices of function */
	bool is_whole;	      /* no DIE was left out that could hold a function */
	uint64_t walk_left;   /* bytes that may still be read for inlines */
};

/*
 * u->abbrevs and u->root have been read. Quickly (leaves the inside of functions and classes out
 * where a DIE says how long it is: only nested functions are there) or as a whole. 0; -ENOEXEC:
 * damaged, what was found before is there; -ENOMEM.
 */
int dwarf_functions_read(struct dwarf_unit *u, bool whole, struct dwarf_functions *out);
void dwarf_functions_free(struct dwarf_functions *f);
size_t dwarf_functions_bytes(const struct dwarf_functions *f);

/*
 * Reads the inlines of f if they are not yet; *bytes grows by what they take. Errors leave it with
 * none, or with those before the damage.
 */
int dwarf_function_read_inlines(struct dwarf_unit *u, struct dwarf_functions *all,
				struct dwarf_function *f, uint64_t *bytes);

/*
 * Follows DW_AT_abstract_origin and DW_AT_specification from a DIE to its linkage name, or else to
 * its name. Caller frees; NULL: none, or no memory. abbrevs_of reads a unit's abbreviations.
 */
char *dwarf_function_name(struct dwarf_unit *u, struct dwarf_ref at,
			  int (*abbrevs_of)(void *ctx, struct dwarf_unit *u), void *ctx);

#endif
