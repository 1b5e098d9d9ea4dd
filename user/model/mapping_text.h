/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Mappings as text for people and as JSON for programs. */
#ifndef VP_MAPPING_TEXT_H
#define VP_MAPPING_TEXT_H

#include "decode.h"

#include <stdio.h>

/* As the kernel does it: newlines as \012, every other byte as it is. */
void vp_mapping_print_name(FILE *f, const char *name);

/* "# TGID COMM", the line before a process's rows. */
void vp_mapping_print_process(FILE *f, const struct vp_mmap2 *m);

/*
 * A row exactly as the kernel's fs/proc/task_mmu.c prints it: name at column 74, anonymous
 * memory without a name, newlines in names as \012.
 */
void vp_mapping_print_text(FILE *f, const struct vp_mmap2 *m);

/* {"tgid":1,"tid":1,"start":"0x…",…}, a line; "deleted" instead of " (deleted)" in the name. */
void vp_mapping_print_json(FILE *f, const struct vp_mmap2 *m);

/* The name without the " (deleted)" that d_path appends. Cuts in place. */
void vp_mapping_strip_deleted(struct vp_mmap2 *m);

/* "r-xp" into out, NUL-terminated. */
void vp_mapping_prot(const struct vp_perf_mmap2 *perf, char out[5]);

#endif
