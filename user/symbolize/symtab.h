/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A sorted table from addresses to symbols, 16 bytes a symbol and their names: in one blob, packed,
 * or left in their file. What
 * an address is does not matter here: file offsets for ELF files, addresses for the kernel.
 *
 * Symbols overlap (aliases, a function's inner entry points, labels); the table does not:
 * building it flattens them into ranges of one winner each, so a look-up is one binary
 * search and a gap stays a gap.
 *
 *   outer [0,100) inner [20,40)   ->   [0,20) outer, [20,40) inner, [40,100) outer
 *
 * Which of several symbols wins an address: a sized one over one without size, then the
 * closest start; among equal starts: not an IFUNC (its symbol is the resolver), the better
 * source, global over weak over local, function over untyped, fewer leading underscores,
 * the shorter name, the smaller in byte order.
 */
#ifndef VP_SYMTAB_H
#define VP_SYMTAB_H

#include <stddef.h>
#include <stdint.h>

struct filed_names;
struct string_table;
struct symtab;
struct symtab_builder;

/*
 * Names are cut there, but for adopted ones, which the reader of a hit has to cut. Real
 * C++ names of 64 KB exist; nobody reads them.
 */
#define SYMTAB_NAME_MAX_BYTES 65535

/* How much a symbol is preferred among those at one start, best last. */
enum symtab_binding { SYMTAB_LOCAL, SYMTAB_WEAK, SYMTAB_GLOBAL };
enum symtab_type { SYMTAB_IFUNC, SYMTAB_NOTYPE, SYMTAB_FUNC };

#define SYMTAB_STRINGS_MAX 8
#define SYMTAB_TIED_MAX	   256

/* A string table that symbols' names point into. Earlier added ones are better sources. */
struct symtab_strings {
	const char *base; /* borrowed until symtab_builder_finish; need not end with a NUL */
	size_t size;
	uint8_t source;		    /* handed back with a hit */
	uint8_t cut_version;	    /* names end at an '@' (name@@VERSION) */
	struct string_table *table; /* instead of base, likewise */
};

struct symtab_entry {
	uint64_t start;
	uint64_t end; /* == start: no size known, goes on to the next symbol or to limit */
	uint64_t limit;
	uint32_t name;	 /* offset in the string table */
	uint8_t strings; /* which table, as symtab_builder_strings returned */
	uint8_t binding, type;
	uint8_t boundary; /* not a symbol: only ends a sizeless one before it */
	uint16_t tag;	  /* handed back with a hit */
};

struct symtab_hit {
	/* Raw bytes as in the file, borrowed from the table; NULL: ask symtab_copy_name. */
	const char *name;
	uint32_t name_id; /* equal for all addresses of one symbol; unique in this table */
	uint64_t offset;  /* in the symbol */
	uint8_t source;
	uint16_t tag;
};

/* Entries outside [base, base + 4 GiB) are dropped. NULL: no memory. */
struct symtab_builder *symtab_builder_new(uint64_t base);
void symtab_builder_free(struct symtab_builder *b); /* NULL is fine */

/* Index for symtab_entry.strings, or -ENOSPC. */
int symtab_builder_strings(struct symtab_builder *b, const struct symtab_strings *s);

/*
 * The table takes the strings over instead of copying the names out of them: for tables
 * that are mostly names of functions. base must be from malloc and have one more byte than
 * size; it is b's from here on. For one string table at most.
 */
void symtab_builder_adopt(struct symtab_builder *b, int strings);

/*
 * The table's names of these strings stay in their file. Which of several names of one function is
 * the best is then found when it is asked for, among SYMTAB_TIED_MAX of them. For one string table,
 * and not together with an adopted one. names are b's from here on.
 */
void symtab_builder_leave(struct symtab_builder *b, int strings, struct filed_names *names);

/* So many more entries may come; what room there is no memory for is made later, or not at all. */
void symtab_builder_reserve(struct symtab_builder *b, size_t cnt);

/* 0, also when the entry is dropped as damaged; -ENOMEM, -EFBIG: more than 4 M symbols. */
int symtab_builder_add(struct symtab_builder *b, const struct symtab_entry *e);

/*
 * The table (free with symtab_free); b is used up but still to be freed. -ENOMEM, -EFBIG:
 * more bytes of names than its string tables can honestly have.
 */
int symtab_builder_finish(struct symtab_builder *b, struct symtab **out);

void symtab_free(struct symtab *t); /* NULL is fine */
size_t symtab_cnt(const struct symtab *t);
size_t symtab_bytes(const struct symtab *t);
size_t symtab_source_cnt(const struct symtab *t, uint8_t source); /* ranges that it names */

/*
 * Packs the names if there are so many of them that it is worth the time: hits have no name any
 * more, symtab_copy_name() has. Takes twice the time that building the table took.
 */
void symtab_pack_names(struct symtab *t);

int symtab_has_filed_names(const struct symtab *t);

/*
 * The name of a hit, cut at SYMTAB_NAME_MAX_BYTES; the caller frees it. 0, -ENOMEM, or as
 * filed_names_copy.
 */
int symtab_copy_name(const struct symtab *t, const struct symtab_hit *hit, char **out);

/*
 * The same for many symbols by their name_id, sorted, in less time than one by one. out[i] is NULL
 * where symtab_copy_name() has an error.
 */
void symtab_copy_names(const struct symtab *t, const uint32_t *name_ids, size_t cnt, char **out);

/* 0, or -ENOENT: no symbol covers addr. */
int symtab_find(const struct symtab *t, uint64_t addr, struct symtab_hit *out);

#endif
