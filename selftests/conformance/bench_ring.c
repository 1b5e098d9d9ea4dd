// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What a record over the ring buffer costs, on both sides. */
#include "bench.h"

#include "prog/bench.h"
#include "thread_state.h"

#include "bench.skel.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define WAKES 50 /* a round */

static const struct bench_figure consume = {"ring.consume", "ring: reading a record"},
				 wake = {"ring.wake",
					 "ring: from a record to its reader, which sleeps"};

static const struct sending {
	struct bench_figure figure;
	bool is_output;
	uint64_t flags;
} sendings[] = {
	{{"ring.reserve", "ring: reserve and submit, no wakeup"}, false, BPF_RB_NO_WAKEUP},
	{{"ring.reserve_wakeup", "ring: reserve and submit, wakeup"}, false, BPF_RB_FORCE_WAKEUP},
	{{"ring.output", "ring: output, no wakeup"}, true, BPF_RB_NO_WAKEUP},
	{{"ring.output_wakeup", "ring: output, wakeup"}, true, BPF_RB_FORCE_WAKEUP},
};

#define SENDING_CNT (sizeof(sendings) / sizeof(*sendings))

static int count_record(void *ctx, void *data, size_t size)
{
	(void)data;
	(void)size;
	++*(long *)ctx;
	return 0;
}

/* Reads a round's records; ns for each. */
static double read_round(struct ring_buffer *rb, long *cnt)
{
	uint64_t start = bench_cpu_ns(), took;
	int err;

	*cnt = 0;
	err = ring_buffer__consume(rb);
	took = bench_cpu_ns() - start;
	if (err < 0 || *cnt != BENCH_RECORDS)
		bench_die("%ld records of %d came over the ring", *cnt, BENCH_RECORDS);
	return (double)took / BENCH_RECORDS;
}

static void measure_sending(const struct bench_bpf *s, struct ring_buffer *rb, long *cnt)
{
	struct bench_series sent[SENDING_CNT] = {0}, consumed = {0};

	for (int round = 0; round < BENCH_ROUNDS; round++) {
		for (size_t i = 0; i < SENDING_CNT; i++) {
			s->bss->flags = sendings[i].flags;
			bench_run_program(sendings[i].is_output ? s->progs.send_output
								: s->progs.send_reserved);
			bench_add(&sent[i], (double)s->bss->took_ns / BENCH_RECORDS);
			bench_add(&consumed, read_round(rb, cnt));
		}
	}
	for (size_t i = 0; i < SENDING_CNT; i++)
		bench_result(&sendings[i].figure, 0, 0, &sent[i]);
	bench_result(&consume, 0, 0, &consumed);
}

/* ---- a reader that sleeps ---------------------------------------------------------------------- */

struct reader {
	struct ring_buffer *rb;
	pthread_t thread;
	pid_t tid;
	uint64_t got_ns;   /* written before cnt */
	unsigned long cnt; /* records */
};

static int note_time(void *ctx, void *data, size_t size)
{
	struct reader *r = ctx;

	(void)data;
	(void)size;
	r->got_ns = bench_now_ns();
	__atomic_add_fetch(&r->cnt, 1, __ATOMIC_RELEASE);
	return 0;
}

static void *read_for_ever(void *arg)
{
	struct reader *r = arg;

	__atomic_store_n(&r->tid, gettid(), __ATOMIC_RELEASE);
	for (;;)
		ring_buffer__poll(r->rb, -1);
	return NULL;
}

static void wait_until_asleep(const struct reader *r)
{
	pid_t tid;

	while (!(tid = __atomic_load_n(&r->tid, __ATOMIC_ACQUIRE)) || thread_state(tid) != 'S')
		sched_yield();
}

static double wake_once(const struct bench_bpf *s, const struct reader *r)
{
	unsigned long before = r->cnt;

	wait_until_asleep(r);
	bench_run_program(s->progs.send_one);
	while (__atomic_load_n(&r->cnt, __ATOMIC_ACQUIRE) == before)
		sched_yield();
	return (double)(r->got_ns - s->bss->record.sent_ns);
}

static void measure_waking(const struct bench_bpf *s)
{
	struct bench_series ns = {0};
	static struct reader r;

	if (!bench_is_wanted(&wake))
		return;
	r.rb = ring_buffer__new(bpf_map__fd(s->maps.ring), note_time, &r, NULL);
	if (!r.rb || pthread_create(&r.thread, NULL, read_for_ever, &r))
		bench_die("a reader: %s", strerror(errno));
	for (int round = 0; round < BENCH_ROUNDS; round++) {
		double trips[WAKES];

		for (int i = 0; i < WAKES; i++)
			trips[i] = wake_once(s, &r);
		bench_add(&ns, bench_middle(trips, WAKES));
	}
	bench_result(&wake, 0, 0, &ns);
}

static bool any_is_wanted(void)
{
	bool any = bench_is_wanted(&consume) || bench_is_wanted(&wake);

	for (size_t i = 0; i < SENDING_CNT; i++)
		any |= bench_is_wanted(&sendings[i].figure);
	return any;
}

void bench_ring(void)
{
	static long cnt;
	struct ring_buffer *rb;
	struct bench_bpf *s;

	if (!any_is_wanted())
		return;
	s = bench_bpf__open_and_load();
	if (!s)
		bench_die("the programs do not load: %s", strerror(errno));
	rb = ring_buffer__new(bpf_map__fd(s->maps.ring), count_record, &cnt, NULL);
	if (!rb)
		bench_die("the ring cannot be mapped: %s", strerror(errno));
	measure_sending(s, rb, &cnt);
	ring_buffer__free(rb);
	measure_waking(s);
}
