// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The BPF ring buffer: how much fits, who is woken, and what happens when it is full or locked. */
#include "case.h"
#include "facts.h"
#include "judge.h"

#include "prog/ringbuf.h"

#include "ringbuf.skel.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define FROM_INTERRUPT (~0ULL)

/* What came out of the ring. */
struct drain {
	struct ring_buffer *rb;
	size_t cnt, interrupt_cnt, last_size;
	uint64_t first, last; /* numbers, of those that are not from interrupts */
	bool is_ascending;    /* each number is its predecessor's and 1 */
	bool is_whole;	      /* OUTPUT_BYTE in all bytes behind the number of a large one */
};

#define OUTPUT_BYTE 0x5a

static int on_record(void *ctx, void *data, size_t size)
{
	struct drain *d = ctx;
	const struct ring_record *r = data;
	const unsigned char *bytes = data;

	d->last_size = size;
	if (r->number == FROM_INTERRUPT) {
		d->interrupt_cnt++;
		return 0;
	}
	if (!d->cnt)
		d->first = r->number;
	else if (r->number != d->last + 1)
		d->is_ascending = false;
	d->last = r->number;
	d->cnt++;
	if (size > sizeof(*r)) {
		for (size_t i = sizeof(r->number); i < size; i++)
			d->is_whole &= bytes[i] == OUTPUT_BYTE;
	}
	return 0;
}

static struct ringbuf_bpf *load(struct drain *d)
{
	struct ringbuf_bpf *s = ringbuf_bpf__open_and_load();

	ct_require(s != NULL, "the programs do not load: %s", strerror(errno));
	*d = (struct drain){.is_ascending = true, .is_whole = true};
	d->rb = ring_buffer__new(bpf_map__fd(s->maps.ring), on_record, d, NULL);
	ct_require(d->rb != NULL, "the ring cannot be mapped: %s", strerror(errno));
	memset(s->bss->bytes, OUTPUT_BYTE, sizeof(s->bss->bytes));
	return s;
}

static void run(const struct bpf_program *p)
{
	DECLARE_LIBBPF_OPTS(bpf_test_run_opts, opts);
	int err = bpf_prog_test_run_opts(bpf_program__fd(p), &opts);

	ct_require(!err && !opts.retval, "%s: %s, returned %u", bpf_program__name(p),
		   strerror(-err), opts.retval);
}

/* How many records there were. */
static size_t take_all(struct drain *d)
{
	size_t before = d->cnt;
	int n = ring_buffer__consume(d->rb);

	ct_require(n >= 0, "reading the ring: %s", strerror(-n));
	return d->cnt - before;
}

/* ---- flags ------------------------------------------------------------------------------------ */

static void flags_of_a_reservation(void)
{
	static const uint64_t wrong[] = {BPF_RB_NO_WAKEUP, BPF_RB_FORCE_WAKEUP, 4, 1ULL << 63};
	struct drain d;
	struct ringbuf_bpf *s = load(&d);

	run(s->progs.reserve_with_flags);
	ct_expect(s->bss->got, "NULL without flags");
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		s->bss->flags = wrong[i];
		run(s->progs.reserve_with_flags);
		ct_expect(!s->bss->got, "a record with flags %#llx", (unsigned long long)wrong[i]);
	}
}

/* Whether the ring's reader was woken since it was asked last. Waits up to wait_ms for that. */
static bool is_woken(int epoll, int wait_ms)
{
	struct epoll_event event;

	return epoll_wait(epoll, &event, 1, wait_ms) == 1;
}

static void submit(struct ringbuf_bpf *s, uint64_t flags)
{
	s->bss->flags = flags;
	run(s->progs.submit_with_flags);
	ct_require(s->bss->got, "no room for a record");
	s->bss->number++;
}

/*
 * Edge-triggered: what is in the ring does not count, only that somebody was woken. Which happens by
 * an irq_work, so "yes" is waited for; "no" is believed after NO_MS.
 */
#define NO_MS  100
#define YES_MS 10000

static void flags_of_a_submission(void)
{
	struct epoll_event event = {.events = EPOLLIN | EPOLLET};
	struct drain d;
	struct ringbuf_bpf *s = load(&d);
	int epoll = epoll_create1(EPOLL_CLOEXEC);

	ct_require(epoll >= 0 &&
			   epoll_ctl(epoll, EPOLL_CTL_ADD, bpf_map__fd(s->maps.ring), &event) == 0,
		   "epoll: %s", strerror(errno));
	ct_expect(!is_woken(epoll, 0), "woken by an empty ring");
	submit(s, BPF_RB_NO_WAKEUP);
	ct_expect(!is_woken(epoll, NO_MS), "woken with BPF_RB_NO_WAKEUP");
	submit(s, BPF_RB_FORCE_WAKEUP);
	ct_expect(is_woken(epoll, YES_MS), "not woken with BPF_RB_FORCE_WAKEUP");
	submit(s, 0);
	ct_expect(!is_woken(epoll, NO_MS), "woken although older records wait");
	ct_expect(take_all(&d) == 3, "%zu records instead of 3", d.cnt);
	submit(s, 0);
	ct_expect(is_woken(epoll, YES_MS), "not woken by the first record that is not read");
}

static void without_wakeups(void)
{
	struct drain d;
	struct ringbuf_bpf *s = load(&d);
	uint64_t sent = 0;

	for (int round = 0; round < 100; round++) {
		for (int i = 0; i < 20; i++, sent += 2) {
			s->bss->number = sent;
			s->bss->got = 0;
			run(s->progs.two_crosswise);
			ct_require(s->bss->got == 3, "no room for the records behind %zu", d.cnt);
		}
		take_all(&d);
	}
	ct_expect(d.cnt == sent, "%zu of %llu records", d.cnt, (unsigned long long)sent);
	ct_expect(d.first == 0 && d.is_ascending, "not in the order of their reservation");
}

/* ---- room ------------------------------------------------------------------------------------- */

static long output(struct ringbuf_bpf *s, uint32_t size, uint64_t flags)
{
	s->bss->size = size;
	s->bss->flags = flags;
	run(s->progs.output);
	if (!s->bss->answer)
		s->bss->number++;
	return s->bss->answer;
}

static void larger_than_the_ring(void)
{
	struct drain d;
	struct ringbuf_bpf *s = load(&d);

	run(s->progs.reserve_large);
	ct_expect(s->bss->got & 1, "NULL for %d bytes in a ring of %d", LARGEST, RING_BYTES);
	take_all(&d);
	run(s->progs.reserve_large);
	ct_expect(!(s->bss->got & 2), "a record of %d bytes in a ring of %d", LARGEST + 1,
		  RING_BYTES);
	ct_expect(!(s->bss->got & 4), "a record of %d bytes in a ring of %d", RING_BYTES,
		  RING_BYTES);
}

/* Wherever it begins: one that goes beyond the ring's end is in one piece for both sides. */
static void the_largest_record(void)
{
	struct drain d;
	struct ringbuf_bpf *s = load(&d);

	for (int i = 0; i < 20; i++) {
		long err = output(s, LARGEST, 0), more;

		ct_expect(err == 0, "%d bytes: %ld", LARGEST, err);
		ct_expect(take_all(&d) == 1 && d.last_size == LARGEST, "a record of %zu bytes",
			  d.last_size);
		more = output(s, LARGEST + 1, 0);
		ct_expect(more == -EAGAIN, "%d bytes: %ld", LARGEST + 1, more);
		/* on, so that the next one begins elsewhere */
		output(s, 200, 0);
		take_all(&d);
	}
	ct_expect(d.is_whole, "other bytes came out than went in");
	ct_expect(d.is_ascending && d.cnt == 40, "%zu records instead of 40", d.cnt);
}

static void output_to_a_full_ring(void)
{
	const long room = (RING_BYTES - 1) / (200 + 8);
	struct drain d;
	struct ringbuf_bpf *s = load(&d);
	long n = 0, err;

	while ((err = output(s, 200, BPF_RB_NO_WAKEUP)) == 0 && n <= room)
		n++;
	ct_expect(n == room && err == -EAGAIN, "%ld records of 200 bytes, then %ld; not %ld", n,
		  err, room);
	ct_expect(take_all(&d) == (size_t)n, "%zu records of %ld came out", d.cnt, n);
	err = output(s, 200, 0);
	ct_expect(err == 0, "%ld after the ring was emptied", err);
}

static void output_with_wrong_flags(void)
{
	static const uint64_t wrong[] = {4, 8, 1ULL << 32, 1ULL << 63, 5};
	struct drain d;
	struct ringbuf_bpf *s = load(&d);

	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		long err = output(s, 8, wrong[i]);

		ct_expect(err == -EINVAL, "flags %#llx: %ld", (unsigned long long)wrong[i], err);
	}
	ct_expect(take_all(&d) == 0, "%zu records came out", d.cnt);
	ct_expect(output(s, 8, BPF_RB_NO_WAKEUP) == 0, "BPF_RB_NO_WAKEUP: %lld",
		  (long long)s->bss->answer);
	ct_expect(output(s, 8, BPF_RB_FORCE_WAKEUP) == 0, "BPF_RB_FORCE_WAKEUP: %lld",
		  (long long)s->bss->answer);
}

/* ---- records that are not submitted yet ------------------------------------------------------- */

static void *run_hold(void *arg)
{
	run(((struct ringbuf_bpf *)arg)->progs.hold);
	return NULL;
}

static uint32_t seen(const uint32_t *word)
{
	return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

/* 1: seen. 0: the program that held the record gave up before all was looked at. */
static int look_behind_a_held_record(struct ringbuf_bpf *s, struct drain *d)
{
	size_t during, after;
	pthread_t thread;

	s->bss->is_held = s->bss->is_released = s->bss->gave_up = 0;
	s->bss->number = 0;
	d->cnt = 0;
	ct_require(pthread_create(&thread, NULL, run_hold, s) == 0, "no thread");
	while (!seen(&s->bss->is_held))
		sched_yield();
	s->bss->number = 1;
	output(s, 16, BPF_RB_NO_WAKEUP);
	during = take_all(d);
	__atomic_store_n(&s->bss->is_released, 1, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	after = take_all(d);
	if (s->bss->gave_up)
		return 0;
	ct_expect(s->bss->answer == 0, "a record behind it: %lld", (long long)s->bss->answer);
	ct_expect(during == 0, "%zu records came out before the oldest was submitted", during);
	ct_expect(after == 2 && d->first == 0 && d->is_ascending, "%zu records after that", after);
	return 1;
}

static void behind_one_that_is_reserved(void)
{
	struct ringbuf_bpf *s;
	struct drain d;

	if (fact_cpus() < 2)
		ct_skip("needs two CPUs");
	s = load(&d);
	for (int i = 0; i < 100; i++) {
		if (look_behind_a_held_record(s, &d))
			return;
	}
	ct_skip("the other CPU was never fast enough");
}

static void over_one_that_is_reserved(void)
{
	struct drain d;
	struct ringbuf_bpf *s = load(&d);
	unsigned long *consumer_pos =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, bpf_map__fd(s->maps.ring), 0);

	if (!fact_member("bpf_ringbuf", "pending_pos"))
		ct_known_bug("\"bpf: Fix overrunning reservations in ringbuf\" (6.10, 6.9.8, "
			     "6.1.97)");
	ct_require(consumer_pos != MAP_FAILED, "mmap: %s", strerror(errno));
	__atomic_store_n(consumer_pos, 3072, __ATOMIC_RELEASE);
	run(s->progs.reserve_over_pending);
	ct_require(s->bss->got & 1, "no room in an empty ring");
	ct_expect(!(s->bss->got & 2), "a second reservation over the first one's bytes");
}

/* ---- in interrupts ---------------------------------------------------------------------------- */

#define INTERRUPTS 500
#define LIMIT_S	   60 /* an emulated guest on a busy machine is slow */

static uint64_t now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec;
}

/* -1 and errno if the machine has no such event. */
static int open_event(uint32_t type, uint64_t config)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = type,
		.config = config,
		.sample_freq = 5000,
		.freq = 1,
	};

	return (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

/* This process sends and reads without a pause, and its interrupts send, too. */
static void send_and_be_interrupted(struct ringbuf_bpf *s, struct drain *d, int event)
{
	struct bpf_link *link;
	uint64_t until = now_s() + LIMIT_S, own = 0;

	s->bss->wanted_tgid = (uint32_t)getpid();
	link = bpf_program__attach_perf_event(s->progs.send_in_interrupt, event);
	ct_require(link != NULL, "attach: %s", strerror(errno));
	while (s->bss->sent + s->bss->lost < INTERRUPTS && now_s() <= until) {
		for (int i = 0; i < 16; i++)
			own += output(s, 16, BPF_RB_NO_WAKEUP) == 0;
		take_all(d);
	}
	bpf_link__destroy(link);
	take_all(d);
	ct_expect(s->bss->sent + s->bss->lost >= INTERRUPTS, "%llu interrupts",
		  (unsigned long long)(s->bss->sent + s->bss->lost));
	ct_expect(d->interrupt_cnt == s->bss->sent, "%zu records of %llu from interrupts",
		  d->interrupt_cnt, (unsigned long long)s->bss->sent);
	ct_expect(d->cnt == own && d->is_ascending, "%zu records of %llu from outside", d->cnt,
		  (unsigned long long)own);
}

static void from_an_interrupt(void)
{
	struct drain d;
	struct ringbuf_bpf *s = load(&d);
	int event = open_event(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK);

	ct_require(event >= 0, "no cpu-clock event: %s", strerror(errno));
	send_and_be_interrupted(s, &d, event);
	/* the lock is held with interrupts off: nothing to miss */
	ct_expect(s->bss->lost == 0, "%llu lost", (unsigned long long)s->bss->lost);
}

static void from_an_nmi(void)
{
	struct drain d;
	struct ringbuf_bpf *s = load(&d);
	int event = open_event(PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES);

	if (event < 0)
		ct_skip("no hardware counter, so no NMI: %s", strerror(errno));
	send_and_be_interrupted(s, &d, event);
	ct_note("%llu of %llu did not get the lock", (unsigned long long)s->bss->lost,
		(unsigned long long)(s->bss->lost + s->bss->sent));
}

/* What the kernel has complained of since `kmsg` was opened. */
static void expect_no_complaint(int kmsg)
{
	char line[8192];
	ssize_t n;

	while ((n = read(kmsg, line, sizeof(line) - 1)) > 0 || (n < 0 && errno == EPIPE)) {
		if (n < 0)
			continue; /* some were overwritten */
		line[n] = '\0';
		ct_expect(!strstr(line, "BUG:") && !strstr(line, "WARNING:"), "the kernel: %s",
			  line);
	}
}

static void from_an_interrupt_on_rt(void)
{
	struct drain d;
	struct ringbuf_bpf *s = load(&d);
	int kmsg, event = open_event(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK);

	if (!fact_rt())
		ct_skip("not PREEMPT_RT");
	if (!fact_member_is("bpf_ringbuf", "spinlock", "raw_spinlock_t"))
		ct_known_bug("\"bpf: Use raw_spinlock_t in ringbuf\" (6.12, 6.11.6, 6.1.115)");
	kmsg = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	ct_require(kmsg >= 0 && lseek(kmsg, 0, SEEK_END) >= 0, "/dev/kmsg: %s", strerror(errno));
	ct_require(event >= 0, "no cpu-clock event: %s", strerror(errno));
	send_and_be_interrupted(s, &d, event);
	expect_no_complaint(kmsg);
}

/* ---- the verifier ----------------------------------------------------------------------------- */

static void reservations_that_are_kept(void)
{
	static const char *const unreleased[] = {"Unreleased reference", "reference leak", NULL};
	static const char *const outside[] = {"invalid access to", "outside of the", NULL};

	expect_loads(ringbuf_bpf__elf_bytes, "submit_with_flags");
	expect_refused(ringbuf_bpf__elf_bytes, "never_submits", unreleased);
	expect_refused(ringbuf_bpf__elf_bytes, "submits_sometimes", unreleased);
	expect_refused(ringbuf_bpf__elf_bytes, "writes_behind_it", outside);
}

static const struct ct_case cases[] = {
	CT_CASE("ringbuf/", flags_of_a_reservation, "NULL with any", .numbers = "61"),
	CT_CASE("ringbuf/", flags_of_a_submission,
		"decide who is woken; without, the first record that is not read wakes",
		.numbers = "61"),
	CT_CASE("ringbuf/", larger_than_the_ring, "NULL; the largest is the ring less 16 bytes",
		.numbers = "62"),
	CT_CASE("ringbuf/", the_largest_record, "comes out in one piece, wherever it begins",
		.numbers = "62"),
	CT_CASE("ringbuf/", output_to_a_full_ring, "-EAGAIN until it was read", .numbers = "63"),
	CT_CASE("ringbuf/", output_with_wrong_flags, "-EINVAL, and nothing is sent",
		.numbers = "63"),
	CT_CASE("ringbuf/", behind_one_that_is_reserved,
		"records come out when the oldest was submitted", .numbers = "64"),
	CT_CASE("ringbuf/", over_one_that_is_reserved, "NULL, whatever the reader says it has read",
		.numbers = "64"),
	CT_CASE("ringbuf/", without_wakeups,
		"all are there when asked for, in order of reservation", .numbers = "65"),
	CT_CASE("ringbuf/", from_an_interrupt, "nothing is lost", .numbers = "66"),
	CT_CASE("ringbuf/", from_an_nmi, "NULL while the lock is held, and no hang",
		.numbers = "66"),
	CT_CASE("ringbuf/", reservations_that_are_kept,
		"refused if it is not released on every way out", .numbers = "67"),
	CT_CASE("ringbuf/", from_an_interrupt_on_rt, "nothing is lost, and no complaint",
		.is_dangerous = true, .numbers = "68"),
};

CT_GROUP(ringbuf_cases, cases);
