/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Unwind rows of one file, compiled from .eh_frame and .debug_frame: see include/vp_rows.h. */
#ifndef VP_ROWS_USER_H
#define VP_ROWS_USER_H

#include "../../include/vp_rows.h"

#include <stddef.h>
#include <stdint.h>

/* Why a file has no rows. */
enum vp_rows_reason {
	VP_ROWS_OK,
	VP_ROWS_NOT_ELF,  /* not an ELF file, a damaged one, or one that changed meanwhile */
	VP_ROWS_FOREIGN,  /* of another architecture or word size */
	VP_ROWS_NO_CFI,	  /* no .eh_frame and no .debug_frame */
	VP_ROWS_BAD_CFI,  /* sections that make no sense as a whole */
	VP_ROWS_TOO_LARGE /* over the limits below */
};

/* A file with more is refused: no real one comes near. */
#define VP_ROWS_MAX_CNT	      (16U << 20)
#define VP_ROWS_MAX_CFI_BYTES (128ULL << 20)

struct vp_rows_stats {
	uint64_t fde_cnt;
	uint64_t bad_fde_cnt;	 /* FDEs that were skipped as damaged */
	uint64_t odd_rule_cnt;	 /* rows whose rule cannot be expressed: they say NONE */
	uint64_t rule_full_cnt;	 /* … because VP_RULES_MAX was reached */
	uint64_t from_debug_cnt; /* FDEs from .debug_frame */
	uint64_t from_code_cnt;	 /* pieces of code that no FDE covers: see code_rows.h */
};

/*
 * Rows in ascending order of key; neighbours differ in their rule. Rule 0 is all zero
 * (VP_CFA_NONE): what follows the last FDE or lies between two.
 */
struct vp_rows {
	uint64_t base; /* file offset of key 0 */
	uint32_t span; /* end of the code: no key is as large */
	uint32_t cnt;
	uint32_t *key;
	uint16_t *rule;
	uint32_t rule_cnt;
	struct vp_rule *rules;
	struct vp_rows_stats stats;
};

/*
 * Compiles the rows of the file (fd is borrowed, only read by pread). VP_ROWS_OK and *out, which
 * the caller frees with vp_rows_free(); else why there are none, with *out NULL. -ENOMEM. A
 * hostile file costs bounded time and memory; one damaged FDE costs that FDE.
 */
int vp_rows_compile(struct vp_rows **out, int fd);

/* The same for an image in memory, laid out as in a file: the vdso. */
int vp_rows_compile_memory(struct vp_rows **out, const void *image, size_t size);

void vp_rows_free(struct vp_rows *rows); /* NULL is fine */

/* A short phrase for a person. Static. */
const char *vp_rows_reason_text(enum vp_rows_reason reason);

/*
 * The rule at a file offset (the caller subtracts 1 from a return address) and, if first is not
 * NULL, the file offset where its row begins. NULL: before the first row or behind the span.
 * Borrowed.
 */
const struct vp_rule *vp_rows_find(const struct vp_rows *rows, uint64_t offset, uint64_t *first);

/* Where what goes in the kernel's array: see include/vp_rows.h. */
struct vp_rows_desc vp_rows_layout(const struct vp_rows *rows);

/* Writes desc->elem_cnt elements to dst, which is all zero. */
void vp_rows_fill(const struct vp_rows *rows, const struct vp_rows_desc *desc, void *dst);

#endif
