// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* build: -O2 -g -fomit-frame-pointer -fno-asynchronous-unwind-tables -fno-unwind-tables -pthread */
/* nofp_debug_frame [CPU_SECONDS]: nofp, what is known of its frames is in .debug_frame only. */
#include "nofp.c"
