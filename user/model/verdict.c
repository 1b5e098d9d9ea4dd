/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "verdict.h"

#include "../../include/vp_record.h"

static const char *const verdicts[] = {
	[VP_VERDICT_FILE] = "FILE",	    [VP_VERDICT_ANON_EXEC] = "ANON_EXEC",
	[VP_VERDICT_VDSO] = "VDSO",	    [VP_VERDICT_SPECIAL] = "SPECIAL",
	[VP_VERDICT_NOT_EXEC] = "NOT_EXEC", [VP_VERDICT_NO_VMA] = "NO_VMA",
	[VP_VERDICT_BUSY] = "BUSY",
};

static const char *const ends[] = {
	[VP_END_BOTTOM] = "BOTTOM",	      [VP_END_NO_ROW] = "NO_ROW",
	[VP_END_BAD_MEMORY] = "BAD_MEMORY",   [VP_END_DEPTH] = "DEPTH",
	[VP_END_UNKNOWN_PC] = "UNKNOWN_PC",   [VP_END_BAD_FP] = "BAD_FP",
	[VP_END_KERNEL_ONLY] = "KERNEL_ONLY", [VP_END_EXITED] = "EXITED",
	[VP_END_IN_KERNEL] = "IN_KERNEL",
};

_Static_assert(sizeof(verdicts) / sizeof(*verdicts) == VP_VERDICT_CNT, "a name for each verdict");
_Static_assert(sizeof(ends) / sizeof(*ends) == VP_END_CNT, "a name for each reason");

const char *vp_verdict_name(unsigned int verdict)
{
	return verdict > 0 && verdict < VP_VERDICT_CNT ? verdicts[verdict] : "?";
}

const char *vp_end_name(unsigned int end)
{
	return end > 0 && end < VP_END_CNT ? ends[end] : "?";
}
