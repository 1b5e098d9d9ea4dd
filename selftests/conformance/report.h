/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef REPORT_H
#define REPORT_H

#include "run_case.h"

enum report_form { REPORT_TABLE, REPORT_KTAP, REPORT_JSON };

struct report;

/* junit: a file to write besides, or NULL. NULL and a message if it cannot be. */
struct report *report_begin(enum report_form form, const char *junit, size_t case_cnt);
void report_starts(struct report *r, const struct ct_case *c);
void report_result(struct report *r, const struct ct_case *c, const struct ct_result *result);
/* How many failed. Frees r. */
int report_end(struct report *r);

#endif
