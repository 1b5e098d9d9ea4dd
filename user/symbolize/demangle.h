/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* From linker names to what the programmer wrote: C++ and both Rust schemes. */
#ifndef VP_DEMANGLE_H
#define VP_DEMANGLE_H

#include <stdbool.h>

/*
 * Caller frees. NULL: not mangled, not understood, or its text would be unreasonably long
 * (two hundred bytes of hostile name can spell terabytes). Thread-safe, bounded in time,
 * memory and stack.
 */
char *demangle(const char *name);

/* Longer ones are cut there; nobody reads them. */
#define READABLE_NAME_MAX_BYTES 4096

/*
 * A name as it is shown: demangled, if that is wanted and possible, and of a sane length. Takes raw,
 * which may be NULL, and gives another or the same; the caller frees it.
 */
char *readable_name(char *raw, bool demangled);

#endif
