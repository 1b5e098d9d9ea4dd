// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* build: -O1 -g -fno-omit-frame-pointer -fno-optimize-sibling-calls -fno-inline -pthread -no-pie -Wl,-Ttext-segment=0x10000000 */
/* highbase_chain [CPU_SECONDS]: chain, link-time base far from 0x400000. */
#include "chain.c"
