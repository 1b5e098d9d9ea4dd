/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef VP_VSYSCALL_H
#define VP_VSYSCALL_H

#include "../../include/vp_xmap.h" /* where it is */

/*
 * Rights of x86's [vsyscall] page as /proc shows them: "r-xp" (vsyscall=emulate), "--xp"
 * (xonly), or NULL if this kernel or architecture has none. No walk over VMAs shows that page:
 * it is none. Found out by trying, in a child process; the answer is the same for all 64-bit
 * processes.
 */
const char *vp_vsyscall_prot(void);

#endif
