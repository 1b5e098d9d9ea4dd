/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Names for the stubs of procedure linkage tables, which have no symbols of their own (x86-64):
 *
 *   .plt       jmp *SLOT(%rip); push N; jmp .plt      or, where .plt.sec has the jumps,
 *              endbr64; push N; jmp .plt
 *   .plt.sec   endbr64; jmp *SLOT(%rip)
 *   .plt.got   jmp *SLOT(%rip)                        of functions whose address is taken, too
 *
 * A stub is named after the symbol that a relocation puts into its slot: puts@plt. What the
 * stubs look like is told by the jump in them alone, so any linker's will do.
 */
#ifndef VP_PLT_H
#define VP_PLT_H

#include "elf_reader.h"

/* A resolver of a program that has no dynamic symbols, and the function that it resolves. */
struct plt_ifunc {
	uint64_t resolver;
	const char *name; /* borrowed; NUL-terminated */
};

struct plt_stub {
	uint64_t start, end; /* link-time addresses */
	uint32_t name;	     /* offset in names */
};

struct plt {
	struct plt_stub *stubs;
	size_t cnt, cap;
	char *names;
	size_t names_size, names_cap;
};

/*
 * Reads a file's stubs; none, if it is not for x86-64. What is damaged is left out. ifuncs are
 * sorted by resolver. Free with plt_fini in any case. 0 or -ENOMEM.
 */
int plt_read(struct plt *out, const struct elf_file *f, const struct plt_ifunc *ifuncs,
	     size_t ifunc_cnt);
void plt_fini(struct plt *p);

#endif
