// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* build: -O1 -g -fno-omit-frame-pointer -fno-optimize-sibling-calls -fno-inline -pthread -Wl,-z,noseparate-code */
/* noseparate_chain [CPU_SECONDS]: chain, text shares a segment with the ELF header. */
#include "chain.c"
