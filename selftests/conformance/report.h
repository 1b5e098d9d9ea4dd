/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef REPORT_H
#define REPORT_H

#include "run_case.h"

#include <stdio.h>

enum report_form { REPORT_TABLE, REPORT_KTAP, REPORT_JSON };

struct report;

/* junit: a file to write besides, or NULL; borrowed until the end. NULL and a message if it cannot be. */
struct report *report_begin(enum report_form form, const char *junit, size_t case_cnt);
void report_starts(struct report *r, const struct ct_case *c);
void report_result(struct report *r, const struct ct_case *c, const struct ct_result *result);
/* How many failed, or -EIO and a message: not all could be written. Frees r. */
int report_end(struct report *r);

/* 0, or -EIO and a message: something that went into f is lost. For the end of a run. */
int report_written(FILE *f, const char *name);

#endif
