/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Debug sections of a file that is yet to be linked (an .o, a kernel module): relocated so that
 * addresses are offsets in its one section of code that elf_reader has chosen. What is elsewhere
 * gets an address where no code is, and so is left out like what a linker dropped.
 */
#ifndef VP_DWARF_RELOCATE_H
#define VP_DWARF_RELOCATE_H

#include "dwarf_object.h"

/*
 * index: each debug section's in the file. Sections that have relocations are read into memory, at
 * most *max bytes together, which is reduced by that. 0; -ENOEXEC: not of a machine that is
 * known; -EFBIG, -ENOMEM.
 */
int dwarf_relocate(struct dwarf_object *o, const size_t index[DWARF_SECT_CNT], uint64_t *max);

#endif
