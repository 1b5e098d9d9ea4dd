/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Code whose unwinding can be told from its bytes, where files have no information for it: what
 * crti.S puts into .init and .fini (the first code of a library that runs, often before its pages
 * are there), the few instructions behind the system call of clone() and clone3(), and where the
 * stack of a context that glibc's makecontext() has made ends.
 */
#ifndef VP_CODE_ROWS_H
#define VP_CODE_ROWS_H

#include "cfi_entries.h"

#include "vp_rows.h"

/* From this key up to `end`, the CFA is the stack pointer + cfa_off; 0: the outermost frame. */
struct code_row {
	uint32_t key, end;
	int32_t cfa_off;
};

#define CODE_ROWS_MAX 7

/* Those of .init, .fini and contexts, in ascending order, without overlaps; how many. */
size_t code_rows_find(const struct elf_file *f, const struct cfi_space *space,
		      struct code_row rows[CODE_ROWS_MAX]);

/*
 * Is the gap between two FDEs at key what follows a clone()? Its code begins with a system call;
 * before it the CFA is the stack pointer + 8, behind it a new thread's stack ends. The parent comes
 * back from the kernel there, and most samples of a fork are in the kernel.
 */
bool code_rows_is_clone(const struct elf_file *f, const struct cfi_space *space, uint32_t key,
			const struct vp_rule *before, const struct vp_rule *behind);

#endif
