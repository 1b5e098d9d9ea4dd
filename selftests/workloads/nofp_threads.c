// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* build: -O2 -g -fomit-frame-pointer -fno-inline -pthread */
/* nofp_threads [CPU_SECONDS]: threads, without frame pointers. */
#include "threads.c"
