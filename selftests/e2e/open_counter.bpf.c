// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Counts how often a process and its descendants open /proc/PID/maps, smaps or smaps_rollup by
 * whatever path, and how often they issue PROCMAP_QUERY. For open_counter.c.
 */
#include <linux/bpf.h>
#include <linux/types.h>
#include <asm/ptrace.h>
#include <asm/unistd.h>
#include <bpf/bpf_helpers.h>

#include "open_counter.h"

#define PROCMAP_QUERY 0xc0686611
#define PATH_BYTES    4096
#define TAIL_BYTES    16

/* Only what is read; the kernel's own layout is filled in at load time. */
struct task_struct {
	int tgid;
} __attribute__((preserve_access_index));

/* The process to follow; user space sets it, forks add to it. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__type(key, __u32);
	__type(value, __u8);
} followed SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, char[PATH_BYTES]);
} scratch SEC(".maps");

/* Written atomically by any CPU, read by user space at the end. */
struct open_counts counts;

static int is_followed(void)
{
	__u32 tgid = bpf_get_current_pid_tgid() >> 32;

	return bpf_map_lookup_elem(&followed, &tgid) != NULL;
}

/*
 * Whether the path of len bytes ends in suffix ("/maps", n bytes): all of it, or all but the
 * slash if the path is relative and has no other component. suffix is constant, NUL-terminated.
 */
static __always_inline int ends_in(const char *user_path, long len, const char *suffix, long n)
{
	char tail[TAIL_BYTES] = {};
	long skip = len - n;

	if (skip < -1)
		return 0;
	tail[0] = '/';
	if (skip < 0)
		bpf_probe_read_user(tail + 1, n - 1, user_path);
	else
		bpf_probe_read_user(tail, n, user_path + skip);
	return bpf_strncmp(tail, TAIL_BYTES, suffix) == 0;
}

static void count_open(const char *user_path)
{
	__u32 zero = 0;
	char *path = bpf_map_lookup_elem(&scratch, &zero);
	long len;

	__sync_fetch_and_add(&counts.all_opens, 1);
	if (!path)
		return;
	/* only for the length, which includes the NUL */
	len = bpf_probe_read_user_str(path, PATH_BYTES, user_path) - 1;
	if (len < 1)
		return;
	if (ends_in(user_path, len, "/maps", 5) || ends_in(user_path, len, "/smaps", 6) ||
	    ends_in(user_path, len, "/smaps_rollup", 13))
		__sync_fetch_and_add(&counts.map_opens, 1);
}

SEC("raw_tp/sys_enter")
int count_syscall(struct bpf_raw_tracepoint_args *ctx)
{
	const struct pt_regs *regs = (const void *)ctx->args[0];
	unsigned long number = ctx->args[1], first = 0, second = 0;

	if (!is_followed())
		return 0;
	bpf_probe_read_kernel(&first, sizeof(first), &regs->rdi);
	bpf_probe_read_kernel(&second, sizeof(second), &regs->rsi);
	if (number == __NR_open)
		count_open((const char *)first);
	else if (number == __NR_openat || number == __NR_openat2)
		count_open((const char *)second);
	else if (number == __NR_ioctl && (__u32)second == PROCMAP_QUERY)
		__sync_fetch_and_add(&counts.map_queries, 1);
	return 0;
}

SEC("tp_btf/sched_process_fork")
int follow_child(unsigned long long *ctx)
{
	struct task_struct *parent = (void *)ctx[0], *child = (void *)ctx[1];
	__u32 parent_tgid = parent->tgid, child_tgid = child->tgid;
	__u8 one = 1;

	if (bpf_map_lookup_elem(&followed, &parent_tgid))
		bpf_map_update_elem(&followed, &child_tgid, &one, BPF_ANY);
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
