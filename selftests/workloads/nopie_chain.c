// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* build: -O1 -g -fno-omit-frame-pointer -fno-optimize-sibling-calls -fno-inline -pthread -no-pie */
/* nopie_chain [CPU_SECONDS]: chain, not position independent: link-time addresses are the run-time ones. */
#include "chain.c"
