// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * For each type of program one that calls bpf_find_vma, can_NAME, and one that does nothing, has_NAME:
 * whether the type is there at all. A case loads one of them alone; none is ever attached.
 */
#include "vmlinux.h"

#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

static long on_vma(struct task_struct *task, struct vm_area_struct *vma, void *ctx)
{
	return 0;
}

#define TYPE(name, section)                                                                        \
	SEC("?" section)                                                                           \
	int has_##name(void *ctx)                                                                  \
	{                                                                                          \
		return 0;                                                                          \
	}                                                                                          \
	SEC("?" section)                                                                           \
	int can_##name(void *ctx)                                                                  \
	{                                                                                          \
		__u64 on_stack = 0;                                                                \
                                                                                                   \
		bpf_find_vma(bpf_get_current_task_btf(), 4096, on_vma, &on_stack, 0);              \
		return 0;                                                                          \
	}

/* since 5.17 */
TYPE(perf_event, "perf_event")
TYPE(kprobe, "kprobe/do_exit")
TYPE(kretprobe, "kretprobe/do_exit")
TYPE(uprobe, "uprobe")
TYPE(uprobe_s, "uprobe.s")
TYPE(tracepoint, "tracepoint/sched/sched_switch")
TYPE(raw_tp, "raw_tp/sched_switch")
TYPE(tp_btf, "tp_btf/sched_switch")
TYPE(fentry, "fentry/do_exit")
/* do_exit() does not return */
TYPE(fexit, "fexit/bpf_fentry_test1")
TYPE(lsm, "lsm/file_open")
TYPE(iter, "iter/task")
TYPE(iter_s, "iter.s/task")
TYPE(syscall, "syscall")

/* since 6.16 (ee971630f20f), and with it this one: a helper that had no more to do there before */
SEC("?socket")
int socket_sends_signal(void *ctx)
{
	bpf_send_signal(0);
	return 0;
}

TYPE(socket, "socket")
TYPE(xdp, "xdp")
TYPE(tc, "tc")
TYPE(cgroup_skb, "cgroup_skb/egress")
TYPE(cgroup_sock, "cgroup/sock_create")
TYPE(cgroup_addr, "cgroup/connect4")
TYPE(cgroup_dev, "cgroup/dev")
TYPE(sockops, "sockops")
TYPE(sk_skb, "sk_skb/stream_verdict")
TYPE(sk_msg, "sk_msg")
TYPE(sk_lookup, "sk_lookup")
TYPE(flow_dissector, "flow_dissector")
TYPE(lwt_in, "lwt_in")
