// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* build: -O1 -g -fno-omit-frame-pointer -fno-optimize-sibling-calls -fno-inline -pthread -s */
/* stripped_chain [CPU_SECONDS]: chain, no symbol table. */
#include "chain.c"
