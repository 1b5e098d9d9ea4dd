// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* build: -O2 -g -fomit-frame-pointer -fcf-protection=full -pthread -Wl,-z,now */
/* nofp_cet_full [CPU_SECONDS]: nofp, -fcf-protection=full. */
#include "nofp.c"
