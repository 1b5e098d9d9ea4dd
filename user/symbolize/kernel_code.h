/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What code the kernel has been given since it was booted: modules and BPF programs. */
#ifndef VP_KERNEL_CODE_H
#define VP_KERNEL_CODE_H

#include <stdint.h>
#include <stdio.h>

/*
 * A number that is another one after a module or program has come or gone: some microseconds,
 * where reading kallsyms again is a tenth of a second. 0: it cannot be told, for which root is
 * needed.
 */
uint64_t kernel_code_stamp(void);

/* The part of it that /proc/modules tells, of which modules is a copy. */
uint64_t kernel_code_modules(FILE *modules);

#endif
