/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Unwind rows for people and scripts. As text they look like readelf -wF:
 *
 *       offset            address  CFA          rbp    rbx    r12    r13    r14    r15    ra
 *        26381              26381  rsp+16       u      u      u      u      u      u      c-8
 *        26386              26386  rsp+80       c-40   c-48   c-32   c-24   c-16   u      c-8
 *        3c04f              3c04f  *(rsp+160)   rsp+120 …                           rsp+168 signal
 *
 * u: the caller has the same value; lost: not known; c-8: saved at CFA - 8; rsp+120: saved there;
 * a register's name: in that register. CFA: none (no rule), end (outermost frame),
 * rsp+8,+8@11 (8 more from byte 11 of a 16-byte entry of .plt on).
 */
#ifndef VP_SHOW_ROWS_H
#define VP_SHOW_ROWS_H

#include "symbolize/elf_reader.h"
#include "unwind/rows.h"

#include <stdio.h>

/* Link-time addresses come from the segments. name is printed safely. */
void vp_show_rows_text(FILE *out, const struct vp_rows *rows, const struct elf_segment *segments,
		       size_t segment_cnt, const char *name);

/* A JSON object a row and line. */
void vp_show_rows_json(FILE *out, const struct vp_rows *rows, const struct elf_segment *segments,
		       size_t segment_cnt);

#endif
