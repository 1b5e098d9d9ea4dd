// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* build: -O2 -g -fomit-frame-pointer -fcf-protection=none -pthread -Wl,-z,now */
/* nofp_cet_none [CPU_SECONDS]: nofp, -fcf-protection=none. */
#include "nofp.c"
