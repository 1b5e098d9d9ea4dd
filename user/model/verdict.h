/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Names of verdicts and of the reasons why stacks end. All strings are static. */
#ifndef VP_VERDICT_H
#define VP_VERDICT_H

/* "FILE", "ANON_EXEC", …; "?" for a number that is none. */
const char *vp_verdict_name(unsigned int verdict);

/* "BOTTOM", "BAD_MEMORY", …; "?" for a number that is none. */
const char *vp_end_name(unsigned int end);

#endif
