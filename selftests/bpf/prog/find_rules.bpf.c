// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Asks vp_find_rule() all that is in `questions`: for test_row_search.c, which compiles it twice,
 * as for an interrupt and, with VP_UNWIND_IN_TASK, as for a task.
 */
#include "vp_row_search.bpf.h"

#include "find_rules.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

const volatile __u32 question_cnt = 0;

/* Written and read by the test; sized by it. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct rule_question);
} questions SEC(".maps");

static long ask(__u32 i, void *data)
{
	struct rule_question *q = bpf_map_lookup_elem(&questions, &i);

	if (!q)
		return 1;
	q->state = vp_find_rule(q->file_id, q->offset, &q->rule);
	return 0;
}

#ifdef VP_UNWIND_IN_TASK
SEC("syscall")
#else
SEC("raw_tp")
#endif
int find_rules(void *ctx)
{
	return bpf_loop(question_cnt, ask, NULL, 0) == question_cnt;
}
