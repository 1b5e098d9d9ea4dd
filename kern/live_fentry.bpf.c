// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Live tracking, first rung: a trampoline on perf_event_mmap(). */
#include "live.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* Hook: see vp_live. Returns 0 always. */
SEC("?fentry/perf_event_mmap")
int BPF_PROG(vp_live_fentry, struct vm_area_struct *vma)
{
	return vp_live(vma);
}
