// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Live tracking, second rung: a kprobe on perf_event_mmap(). */
#include "live.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* Hook: see vp_live; preemption may be off here. Returns 0 always. */
SEC("?kprobe/perf_event_mmap")
int BPF_KPROBE(vp_live_kprobe, struct vm_area_struct *vma)
{
	return vp_live(vma);
}
