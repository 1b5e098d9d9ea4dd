/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Unwind rows for people and scripts. As text they look like readelf -wF, some of the columns
 * (there are rbp, rbx, r12 to r15 and ra) left out here:
 *
 *     offset   address  CFA          rbp     rbx     r12    ra
 *      26010     26010  rsp+8,+8@11  u       u       u      c-8
 *      26386     26386  rsp+80       c-40    c-48    c-32   c-8
 *      3c04f     3c04f  *(rsp+160)   rsp+120 rsp+128 rsp+72 rsp+168 signal
 *      d43b1     d43b1  rsp+0        u       u       u      rdi
 *     108b4a    108b4a  end
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
