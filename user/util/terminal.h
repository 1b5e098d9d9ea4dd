/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Text for people: names and arguments come from strangers and may hold escape sequences. */
#ifndef VP_TERMINAL_H
#define VP_TERMINAL_H

#include <stdio.h>

/*
 * Writes s with every control character (C0, DEL, C1), bidirectional override, line separator
 * and byte that is not UTF-8 as '?'. One line stays one line.
 */
void vp_print_safe(FILE *f, const char *s);

#endif
