/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Finds the table of functions in a Go program: in a section of its own or, where C's linker put
 * a position-independent program together, somewhere in .data.rel.ro; and what a relocation
 * would make of its one address.
 */
#ifndef VP_GO_TABLE_H
#define VP_GO_TABLE_H

#include "elf_reader.h"
#include "gopclntab.h"

struct go_table {
	struct gopclntab t;
	char *bytes; /* t's and one NUL more; the caller frees them */
	size_t size; /* of bytes */
	size_t base; /* of t in bytes */
};

/* 0; -ENOENT: no Go program, or none whose addresses are known; -ENOMEM. */
int go_table_read(const struct elf_file *f, struct go_table *out);

#endif
