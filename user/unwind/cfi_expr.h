/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* DWARF expressions in CFA programs, as far as compilers and linkers emit them. */
#ifndef VP_CFI_EXPR_H
#define VP_CFI_EXPR_H

#include "cfi_bytes.h"

enum cfi_value_kind {
	CFI_VALUE_CONST, /* off */
	CFI_VALUE_REG,	 /* reg + off */
	CFI_VALUE_CFA,	 /* CFA + off */
	CFI_VALUE_DEREF, /* *(reg + off) + add */
	CFI_VALUE_PLT	 /* reg + off + ((pc & 15) >= add ? 8 : 0) */
};

struct cfi_value {
	enum cfi_value_kind kind;
	uint8_t reg; /* a general register */
	int64_t off, add;
};

/*
 * What an expression's last value is in terms of registers. with_cfa: the stack holds the CFA
 * at first, as it does for a register's rule. 0; -1: of another shape, or damaged.
 */
int cfi_expr(struct cfi_cursor ops, bool with_cfa, struct cfi_value *out);

#endif
