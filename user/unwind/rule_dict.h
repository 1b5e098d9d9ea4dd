/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The distinct rules of a file, numbered as they come. */
#ifndef VP_RULE_DICT_H
#define VP_RULE_DICT_H

#include "rows.h"

struct rule_dict {
	struct vp_rule *rules; /* rules[0] is all zero */
	uint32_t cnt, cap;
	uint32_t *slots; /* hash table of numbers, 0: free; twice cap at least */
	uint32_t slot_cnt;
};

/* 0 or -ENOMEM. rule_dict_free() is due in any case. */
int rule_dict_init(struct rule_dict *d);
void rule_dict_free(struct rule_dict *d);

/* A rule's number; 0 for the rule that is all zero. -ENOSPC: VP_RULES_MAX; -ENOMEM. */
int rule_dict_add(struct rule_dict *d, const struct vp_rule *rule);

#endif
