// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* build: -O1 -g -fomit-frame-pointer -fno-optimize-sibling-calls -fno-inline -pthread */
/* nofp_recurse [DEPTH [CPU_SECONDS]]: recurse, without frame pointers. */
#include "recurse.c"
