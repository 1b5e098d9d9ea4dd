/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Writing JSON: strings are the only part that needs care. */
#ifndef VP_JSON_H
#define VP_JSON_H

#include <stdio.h>

/*
 * Writes s with quotes, escaped per RFC 8259. Bytes that are not UTF-8 (file names may hold
 * any) become U+FFFD, one each, so the output is always valid JSON. NULL writes null.
 */
void vp_json_string(FILE *f, const char *s);

/* The same, with the ASCII characters of `also` always as \u00XX. */
void vp_json_string_also(FILE *f, const char *s, const char *also);

#endif
