/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* From linker names to what the programmer wrote: C++ and both Rust schemes. */
#ifndef VP_DEMANGLE_H
#define VP_DEMANGLE_H

/*
 * Caller frees. NULL: not mangled, not understood, or its text would be unreasonably long
 * (two hundred bytes of hostile name can spell terabytes). Thread-safe, bounded in time,
 * memory and stack.
 */
char *demangle(const char *name);

#endif
