/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A unit's line table. Its program is run once, and only every 64th row is kept, with the place in
 * the program behind it: an answer runs the program from there. That takes 0.3 bytes a row instead
 * of the 48 of libdw. DWARF 5, 6.2.
 */
#ifndef VP_DWARF_LINES_H
#define VP_DWARF_LINES_H

#include "dwarf_object.h"

struct dwarf_lines;

/* u->root has been read. 0; -ENOENT: it has none; -ENOEXEC, -ENOMEM. */
int dwarf_lines_read(struct dwarf_lines **out, const struct dwarf_unit *u);
void dwarf_lines_free(struct dwarf_lines *l); /* NULL is fine */
size_t dwarf_lines_bytes(const struct dwarf_lines *l);

/* File number and line of the row around addr. Line 0: code that no line wrote. 0 or -ENOENT. */
int dwarf_lines_find(const struct dwarf_lines *l, uint64_t addr, uint32_t *file, uint32_t *line);

/* The path of a file by its number, below the directory of compilation. Caller frees; NULL. */
char *dwarf_lines_file(const struct dwarf_lines *l, uint32_t file);

#endif
