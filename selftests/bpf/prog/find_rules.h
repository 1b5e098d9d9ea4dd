/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A question to the kernel side's search, and room for its answer. */
#ifndef FIND_RULES_H
#define FIND_RULES_H

#include "vp_rows.h"

struct rule_question {
	__u64 offset;
	__u32 file_id;
	__u32 state; /* VP_ROW_FILE_* */
	struct vp_rule rule;
};

#endif
