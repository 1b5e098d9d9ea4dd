/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the verifier thinks of one program of an object whose others are loaded by default. */
#ifndef JUDGE_H
#define JUDGE_H

#include <stddef.h>

/* A skeleton's NAME__elf_bytes. */
typedef const void *(*judge_elf)(size_t *size);

/* 0 or -errno; log as try_load() has it. Ends the case if there is no such program. */
int judge(judge_elf elf, const char *program, const char **log);

/* It is taken. */
void expect_loads(judge_elf elf, const char *program);

/* It is not, and the reason has one of these texts; the list ends with NULL. */
void expect_refused(judge_elf elf, const char *program, const char *const *texts);

#endif
