/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What no case can do without: so that a failure of one speaks of the kernel, not of who runs it. */
#ifndef NEEDS_H
#define NEEDS_H

/* 0, or -1 and one line on stderr: what is missing. */
int needs_check(void);

#endif
