/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef RUN_CASE_H
#define RUN_CASE_H

#include "case.h"

#define CT_CASES_MAX 256

enum ct_verdict { CT_PASS, CT_FAIL, CT_SKIP, CT_XFAIL, CT_XPASS, CT_VERDICT_CNT };

struct ct_result {
	enum ct_verdict verdict;
	unsigned int ms;
	char fix[256];	 /* of a known bug; "" else */
	char text[4096]; /* why it was skipped, what failed, what was noted: lines */
};

/* Runs it in a child; one that outstays its time or dies has failed. */
void run_case(const struct ct_case *c, bool dangerous, struct ct_result *out);

/*
 * From now on SIGINT, SIGTERM and SIGHUP end the case that runs, and do no more: so that the report can
 * be ended. Which one came, or 0; the result of that case means nothing then.
 */
void run_case_mind_signals(void);
int run_case_stopped_by(void);

#endif
