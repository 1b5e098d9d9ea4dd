/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * .gopclntab, which Go programs carry stripped or not, because their own stack traces need it.
 * Four layouts, told apart by a magic number (Go's src/debug/gosym/pclntab.go):
 *
 *   1.2    0xfffffffb  functions by address; offsets count from the section's start
 *   1.16   0xfffffffa  the same, in parts of their own with offsets in the header
 *   1.18   0xfffffff0  addresses are 4 bytes from textStart, which the header has
 *   1.20   0xfffffff1  the same but for what is behind the name
 */
#ifndef VP_GOPCLNTAB_H
#define VP_GOPCLNTAB_H

#include <stddef.h>
#include <stdint.h>

struct gopclntab {
	const uint8_t *bytes; /* borrowed */
	size_t size;
	uint64_t text_start;  /* added to each address */
	size_t text_start_at; /* where that stands, for a relocation may fill it; 0: nowhere */
	uint64_t func_cnt;
	size_t names, table; /* offsets of the parts */
	size_t func_base;    /* what functions' offsets count from */
	uint8_t ptr_size;
	uint8_t addr_size; /* of an address, and an offset, in the table */
};

/* 0, or -ENOEXEC: no such table, or not in this machine's byte order. */
int gopclntab_open(struct gopclntab *t, const void *bytes, size_t size);

struct gopclntab_func {
	uint64_t start, end; /* link-time addresses */
	size_t name;	     /* offset in the section; ends with a NUL or the section */
};

/* Function i of func_cnt. 0, or -ENOEXEC: damaged. */
int gopclntab_func(const struct gopclntab *t, uint64_t i, struct gopclntab_func *out);

#endif
