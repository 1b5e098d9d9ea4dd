/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Names come from targets: they are bytes until this says they are UTF-8. */
#ifndef VP_UTF8_H
#define VP_UTF8_H

#include <stddef.h>

/*
 * Bytes (1 to 4) of the well-formed UTF-8 sequence that NUL-terminated s begins with, per
 * Unicode table 3-7 (no overlong forms, surrogates or values above U+10FFFF); 0 if none.
 */
size_t vp_utf8_len(const char *s);

/* What a text that is cut ends with. */
#define VP_UTF8_CUT_MARK "\xe2\x80\xa6" /* … */

/* How many of the first max bytes of a longer text to keep, so that no character is cut. */
size_t vp_utf8_fit(const char *s, size_t max);

/*
 * Cuts s, in place, to max bytes at most (4 or more) if it is longer: between characters, and with
 * "…" at the end.
 */
void vp_utf8_cut(char *s, size_t max);

#endif
