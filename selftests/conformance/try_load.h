/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Whether the verifier takes a program. */
#ifndef TRY_LOAD_H
#define TRY_LOAD_H

#include <stdbool.h>
#include <stddef.h>

struct load_answer {
	int err;	 /* 0, or -errno of the load */
	char log[65536]; /* what the verifier said; "" if it took it */
};

/*
 * Loads one program of an object (a skeleton's NAME__elf_bytes) by itself. The answer is valid until
 * the next call. Ends the case if the object has no such program.
 */
const struct load_answer *try_load(const void *(*elf_bytes)(size_t *size), const char *program);

/* The verifier takes it. */
void expect_loads(const void *(*elf_bytes)(size_t *size), const char *program);

/* It does not, and its log has one of these texts; the list ends with NULL. */
void expect_refused(const void *(*elf_bytes)(size_t *size), const char *program,
		    const char *const *texts);

#endif
