// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What the cases of the ring buffer have done to `ring`: a program for each. */
#include "vmlinux.h"

#include <bpf/bpf_helpers.h>

#include "ringbuf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, RING_BYTES);
} ring SEC(".maps");

/* Written by user space before a program runs. */
__u64 flags = 0;
__u32 size = 0;
__u64 number = 0;      /* of the record to come */
__u32 wanted_tgid = 0; /* whose interrupts send */
__u32 is_released = 0; /* read by `hold` */

/* Written by the programs. */
__s64 answer = 0;
__u32 got = 0; /* reservations that were had: bits by number */
__u32 is_held = 0;
__u32 gave_up = 0;
__u64 sent = 0, lost = 0; /* in interrupts */
char bytes[OUTPUT_MAX] = {};

/* A record of its own number; true if there was room. */
static __always_inline bool send(__u64 n, __u64 submit_flags)
{
	struct ring_record *r = bpf_ringbuf_reserve(&ring, sizeof(*r), 0);

	if (!r)
		return false;
	r->number = n;
	r->cpu = bpf_get_smp_processor_id();
	bpf_ringbuf_submit(r, submit_flags);
	return true;
}

/* Reserves with `flags`. */
SEC("raw_tp")
int reserve_with_flags(void *ctx)
{
	struct ring_record *r = bpf_ringbuf_reserve(&ring, sizeof(*r), flags);

	got = 0;
	if (r) {
		got = 1;
		bpf_ringbuf_discard(r, 0);
	}
	return 0;
}

/* Submits with `flags`. */
SEC("raw_tp")
int submit_with_flags(void *ctx)
{
	got = send(number, flags);
	return 0;
}

/* Three sizes: what fits at most, a byte more, the ring's own. */
SEC("raw_tp")
int reserve_large(void *ctx)
{
	void *fits = bpf_ringbuf_reserve(&ring, LARGEST, 0), *more, *whole;

	got = 0;
	if (fits) {
		got |= 1;
		bpf_ringbuf_discard(fits, BPF_RB_NO_WAKEUP);
	}
	more = bpf_ringbuf_reserve(&ring, LARGEST + 1, 0);
	if (more) {
		got |= 2;
		bpf_ringbuf_discard(more, BPF_RB_NO_WAKEUP);
	}
	whole = bpf_ringbuf_reserve(&ring, RING_BYTES, 0);
	if (whole) {
		got |= 4;
		bpf_ringbuf_discard(whole, BPF_RB_NO_WAKEUP);
	}
	return 0;
}

/* Sends `size` bytes with `flags`. */
SEC("raw_tp")
int output(void *ctx)
{
	volatile __u32 *wanted = &size;
	__u32 n = *wanted;

	if (n > OUTPUT_MAX)
		return 1;
	*(__u64 *)bytes = number;
	answer = bpf_ringbuf_output(&ring, bytes, n, flags);
	return 0;
}

/* Two at a time, the second submitted first. */
SEC("raw_tp")
int two_crosswise(void *ctx)
{
	struct ring_record *first = bpf_ringbuf_reserve(&ring, sizeof(*first), 0), *second;

	if (!first)
		return 0;
	second = bpf_ringbuf_reserve(&ring, sizeof(*second), 0);
	first->number = number;
	if (second) {
		second->number = number + 1;
		bpf_ringbuf_submit(second, BPF_RB_NO_WAKEUP);
		got = 3;
	}
	bpf_ringbuf_submit(first, BPF_RB_NO_WAKEUP);
	return 0;
}

/*
 * User space says that it has read 3072 bytes, which nobody has written yet. Reserves those, and as
 * many again: only a kernel that looks at what is pending sees that they would overlap.
 */
SEC("raw_tp")
int reserve_over_pending(void *ctx)
{
	void *first = bpf_ringbuf_reserve(&ring, 3072 - 8, 0), *second;

	got = 0;
	if (!first)
		return 0;
	got = 1;
	second = bpf_ringbuf_reserve(&ring, 3072 - 8, 0);
	if (second) {
		got |= 2;
		bpf_ringbuf_discard(second, BPF_RB_NO_WAKEUP);
	}
	bpf_ringbuf_discard(first, BPF_RB_NO_WAKEUP);
	return 0;
}

/* Preemption is off meanwhile: some 50 ms at most. */
#define HOLD_ROUNDS 16

static long wait_for_release(__u32 i, void *ctx)
{
	return *(volatile __u32 *)&is_released & 1; /* 1: that is all */
}

static long wait_long(__u32 i, void *ctx)
{
	bpf_loop(1 << 20, wait_for_release, NULL, 0);
	return *(volatile __u32 *)&is_released & 1; /* 1: that is all */
}

/* Has a record reserved, and submits it when it is released, or after a while. */
SEC("raw_tp")
int hold(void *ctx)
{
	struct ring_record *r = bpf_ringbuf_reserve(&ring, sizeof(*r), 0);

	if (!r)
		return 0;
	r->number = number;
	is_held = 1;
	bpf_loop(HOLD_ROUNDS, wait_long, NULL, 0);
	gave_up = !*(volatile __u32 *)&is_released;
	bpf_ringbuf_submit(r, BPF_RB_NO_WAKEUP);
	return 0;
}

/* Hook: a sample; hardirq or NMI, IRQs off. `sent` and `lost` are one CPU's: that of the one sampled. */
SEC("perf_event")
int send_in_interrupt(void *ctx)
{
	if (bpf_get_current_pid_tgid() >> 32 != wanted_tgid)
		return 0;
	if (send(~0ULL, 0))
		sent++;
	else
		lost++;
	return 0;
}

/* ---- programs that the verifier refuses -------------------------------------------------------- */

SEC("?raw_tp")
int never_submits(void *ctx)
{
	struct ring_record *r = bpf_ringbuf_reserve(&ring, sizeof(*r), 0);

	if (r)
		r->number = 1;
	return 0;
}

SEC("?raw_tp")
int submits_sometimes(void *ctx)
{
	struct ring_record *r = bpf_ringbuf_reserve(&ring, sizeof(*r), 0);

	if (r && number)
		bpf_ringbuf_submit(r, 0);
	return 0;
}

SEC("?raw_tp")
int writes_behind_it(void *ctx)
{
	struct ring_record *r = bpf_ringbuf_reserve(&ring, sizeof(*r), 0);

	if (!r)
		return 0;
	((volatile struct ring_record *)r)[1].number = 1;
	bpf_ringbuf_submit(r, 0);
	return 0;
}
