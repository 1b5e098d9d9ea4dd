/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a CFA program has said so far: how to find the CFA and the caller's registers. */
#ifndef VP_CFI_STATE_H
#define VP_CFI_STATE_H

#include "arch_x86.h"

#include <stdbool.h>

enum cfi_how {
	CFI_UNSET,     /* never mentioned: the caller has the same value */
	CFI_SAME,      /* said to have the same value */
	CFI_UNDEFINED, /* not known any more */
	CFI_AT_CFA,    /* in memory at CFA + off */
	CFI_AT_REG,    /* in memory at reg + off */
	CFI_IS_CFA,    /* CFA + off */
	CFI_IS_REG,    /* reg + off */
	CFI_ODD	       /* something that rows cannot say */
};

/*
 * cfa is a VP_CFA_* (NONE: not said, or something that rows cannot say). Arrays by slot (see
 * arch_x86.h).
 */
struct cfi_state {
	/* The last offset from a register, which stays what it is while an expression is in force. */
	int64_t cfa_plain_off;
	int32_t cfa_off;
	int16_t cfa_add;
	uint8_t cfa;
	uint8_t cfa_reg;
	uint8_t how[SLOT_CNT]; /* enum cfi_how */
	uint8_t reg[SLOT_CNT];
	int32_t off[SLOT_CNT];
	/*
	 * What vp_rule.saved is if the CFA is a register + offset and no register's rule is
	 * unusual (bit by slot), as it nearly always is. Kept by cfi_set_slot, so that most rows
	 * need no look at single registers.
	 */
	int16_t usual[VP_SAVED_CNT];
	uint8_t unusual;
};

/* Nothing has been said. */
void cfi_state_init(struct cfi_state *s);

/* off: of CFI_AT_* and CFI_IS_*; reg: of CFI_*_REG, below ARCH_REG_CNT. */
void cfi_set_slot(struct cfi_state *s, int slot, enum cfi_how how, uint8_t reg, int32_t off);

/* The slot as it is in another state. */
void cfi_copy_slot(struct cfi_state *s, int slot, const struct cfi_state *from);

/*
 * The rule that a state means. 0; -1 if rows cannot express it, then *out is all zero. Single
 * registers other than the return address that do not fit are lost in it.
 */
int cfi_rule(const struct cfi_state *s, bool is_signal_frame, struct vp_rule *out);

#endif
