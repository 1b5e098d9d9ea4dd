/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Unwind rows: how to get from a program counter to its caller's frame, compiled from
 * .eh_frame by user/unwind/ once per file, used by kern/vp_unwind.bpf.h.
 *
 * A row is valid from its key up to the next row's; keys are file offsets (pc - start + pgoff),
 * counted from the file's first executable byte, `base`. What a row says is a rule, by its
 * number in the file: thousands of rows share a few hundred rules, so a row takes 4 bytes.
 *
 * The rows of one file are one array of elements of VP_ROWS_ELEM_BYTES:
 *
 *   [0]              root: first keys of the directories or, if dir_cnt is 0, of the blocks
 *   [1 … dir_cnt]    directories: each the first keys of 256 blocks
 *   [… block_cnt]    blocks: struct vp_row_block
 *   [rule_elem …]    rules: VP_RULES_PER_ELEM each
 *
 * A key array that is not full ends with VP_ROWS_NO_KEY, larger than any key.
 */
#ifndef VP_ROWS_H
#define VP_ROWS_H

#include "vp_types.h"

#define VP_ROWS_ELEM_BYTES 1024
#define VP_ROWS_FANOUT	   256 /* keys of a root or directory, rows of a block */

#define VP_ROWS_NO_KEY	 0xffffffffU
#define VP_ROWS_NO_DELTA 0xffffU

/* delta: key minus the block's first key (which its directory has), below VP_ROWS_NO_DELTA. */
struct vp_row_block {
	__u16 delta[VP_ROWS_FANOUT];
	__u16 rule[VP_ROWS_FANOUT];
};

/*
 * Slots of the registers that a rule can restore. Which they are is the architecture's; on
 * x86-64: rbp, rbx, r12, r13, r14, r15 and the return address.
 */
#define VP_SAVED_FP  0
#define VP_SAVED_RA  6
#define VP_SAVED_CNT 7

/* Values of vp_rule.saved that are no offset. */
#define VP_SAVED_SAME 0x7fff /* the caller has the same value */
#define VP_SAVED_LOST 0x7ffe /* the caller's value is not known */

/* How the CFA (the stack pointer in the caller after the return) is found. */
#define VP_CFA_NONE  0 /* no rule: code without unwind information */
#define VP_CFA_REG   1 /* reg + cfa_off */
#define VP_CFA_DEREF 2 /* *(reg + cfa_off) + cfa_add */
#define VP_CFA_PLT   3 /* reg + cfa_off + ((pc & 15) >= cfa_add ? 8 : 0): entries of .plt */
#define VP_CFA_END   4 /* the outermost frame: there is no caller */
#define VP_CFA_CLONE 5 /* reg + cfa_off; in a new thread, where the system call gave 0: as END */

/* Offsets in saved[] count from the value of reg, not from the CFA; the RA's has its own flag. */
#define VP_RULE_F_SAVED_BASE (1 << 0)
#define VP_RULE_F_RA_BASE    (1 << 1)
/* The return address is in register ra_reg. */
#define VP_RULE_F_RA_REG     (1 << 2)
/* A signal frame: the caller was interrupted, its pc is no return address. */
#define VP_RULE_F_SIGNAL     (1 << 3)

/* All zero: no rule. Registers are DWARF numbers. */
struct vp_rule {
	__s32 cfa_off; /* bytes */
	__s16 cfa_add; /* bytes; VP_CFA_PLT: a threshold */
	__u8 cfa;      /* VP_CFA_* */
	__u8 reg;
	__s16 saved[VP_SAVED_CNT]; /* units of 8 bytes, or VP_SAVED_SAME or _LOST */
	__u8 ra_reg;
	__u8 flags; /* VP_RULE_F_* */
};

#define VP_RULES_PER_ELEM (VP_ROWS_ELEM_BYTES / sizeof(struct vp_rule))
#define VP_RULES_MAX	  65536

/* Where things are in the elements of a file. */
struct vp_rows_desc {
	__u64 base; /* file offset of key 0 */
	__u32 span; /* keys from here on have no row */
	__u32 dir_cnt;
	__u32 block_cnt;
	__u32 rule_elem; /* first element of rules */
	__u32 rule_cnt;
	__u32 elem_cnt;
};

/* State of a file's rows. */
#define VP_ROW_FILE_UNKNOWN 0 /* not asked for yet, or freed: frames are marked NO_ROWS */
#define VP_ROW_FILE_READY   1 /* its array is in place or on its way, desc is valid */
#define VP_ROW_FILE_NONE    2 /* it has none: frame pointers are all there is */

/*
 * Element file_id of `row_files`; [0]: the vdso. Written by user space: the array first (unless
 * there has never been one: then it may come last), then desc, then state (taken back in the
 * reverse order); used by the kernel side alone.
 */
struct vp_row_file {
	struct vp_rows_desc desc;
	__u32 state;
	__u32 used; /* when rows were last looked up: CLOCK_MONOTONIC ns >> VP_ROW_USED_SHIFT */
};

#define VP_ROW_USED_SHIFT 30

_Static_assert(sizeof(struct vp_row_block) == VP_ROWS_ELEM_BYTES, "an element");
_Static_assert(sizeof(struct vp_rule) == 24, "42 to an element");
_Static_assert(sizeof(struct vp_row_file) == 40, "array value");

#endif
