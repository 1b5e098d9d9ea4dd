// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* iter/task_vma: what becomes of a walk between two reads, when it is full, and when mappings change. */
#include "case.h"
#include "facts.h"
#include "target.h"
#include "vma_walk.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE	  4096UL
#define READS_MAX 100000

/* Far from where the kernel puts mappings by itself. */
#define LONELY 0x200000000000UL

/* Pages of two protections in turn: as many mappings. */
static void map_stripes(size_t cnt)
{
	char *p = mmap((void *)LONELY, cnt * PAGE, PROT_NONE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);

	ct_require(p == (void *)LONELY, "mmap: %s", strerror(errno));
	for (size_t i = 0; i < cnt; i += 2)
		ct_require(!mprotect(p + i * PAGE, PAGE, PROT_READ), "mprotect of page %zu: %s", i,
			   strerror(errno));
}

static bool is_stripe(const struct seen *s, size_t cnt)
{
	return s->start >= LONELY && s->start < LONELY + cnt * PAGE;
}

/* The stripes are among the records, each once, ascending. */
static void expect_stripes(const struct walk *w, size_t cnt)
{
	uint64_t next = LONELY;

	for (size_t i = 0; i < w->s->bss->seen_cnt; i++) {
		if (!is_stripe(&w->seen[i], cnt))
			continue;
		ct_require(w->seen[i].start == next, "%llx-%llx instead of %lx", w->seen[i].start,
			   w->seen[i].end, next);
		next = w->seen[i].end;
	}
	ct_expect(next == LONELY + cnt * PAGE, "the last of them ends at %lx instead of %lx", next,
		  LONELY + cnt * PAGE);
}

/* Reads with room for `step` more mappings each. Full how often. */
static size_t walk_in_steps(struct walk *w, uint64_t step)
{
	size_t full = 0;

	w->s->bss->room = step;
	for (size_t reads = 0; reads < READS_MAX; reads++) {
		ssize_t n = walk_read(w);

		if (n == 0)
			return full;
		ct_require(n == -EAGAIN, "a full program: read returns %zd instead of -EAGAIN", n);
		full++;
		w->s->bss->room = w->s->bss->seen_cnt + step;
	}
	ct_require(false, "no end after %d reads", READS_MAX);
	return 0;
}

/* ---- a task that goes ------------------------------------------------------------------------- */

/* Killed and gone after `room` of its mappings were seen. */
static void kill_after(uint64_t room, bool by_pid)
{
	struct target t = target_start(TARGET_PLAIN);
	struct walk_filter filter = {0};
	struct walk w;
	ssize_t n;

	if (by_pid)
		filter.pid = (uint32_t)t.pid;
	else
		filter.tid = (uint32_t)t.pid;
	walk_load(&w);
	w.s->bss->wanted_tgid = (uint32_t)t.pid;
	w.s->bss->room = room;
	walk_begin(&w, &filter);
	n = walk_read(&w);
	ct_require(n == -EAGAIN, "the first read: %zd", n);
	target_end(&t);
	w.s->bss->room = ~0ULL;
	walk_to_end(&w, 100);
	ct_expect(w.s->bss->end_cnt == 1, "%llu calls without a task instead of 1",
		  (unsigned long long)w.s->bss->end_cnt);
	if (room == 1)
		ct_note("killed after 1 mapping: %llu are seen in all",
			(unsigned long long)w.s->bss->seen_cnt);
	task_vma_bpf__destroy(w.s);
}

/* 7ff94f276f8e: the iterator keeps the mm. Without it, it may use one that has been freed. */
static void need_kept_memory(void)
{
	if (!fact_member("bpf_iter_seq_task_vma_info", "mm") && !ct_may_endanger())
		ct_skip("only in a virtual machine: this kernel lacks \"bpf: Keep a reference to "
			"the mm, in case the task is dead.\" (6.2) (--dangerous)");
}

static void killed_between_reads(void)
{
	need_kept_memory();
	for (uint64_t room = 0; room < 8; room++) {
		kill_after(room, false);
		kill_after(room, true);
	}
}

#define VICTIMS_MAPPINGS 20000

/* Has many mappings, and wants the lock so that the reader lets it go now and then. */
static void be_the_victim(int ready)
{
	map_stripes(VICTIMS_MAPPINGS);
	(void)!write(ready, "", 1);
	for (;;)
		munmap(mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), PAGE);
}

static pid_t start_victim(void)
{
	int ready[2];
	char byte;
	pid_t pid;

	ct_require(!pipe(ready), "pipe: %s", strerror(errno));
	pid = ct_fork();
	if (pid == 0)
		be_the_victim(ready[1]);
	close(ready[1]);
	ct_require(read(ready[0], &byte, 1) == 1, "the process to be killed has ended");
	close(ready[0]);
	return pid;
}

/* What the thread that kills is told, and tells. */
struct killer {
	const struct walk *w;
	pid_t victim;
	uint64_t seen_cnt; /* when it killed */
};

static void *kill_while_it_is_read(void *arg)
{
	struct killer *k = arg;

	while (!(k->seen_cnt = __atomic_load_n(&k->w->s->bss->seen_cnt, __ATOMIC_RELAXED)))
		;
	kill(k->victim, SIGKILL);
	return NULL;
}

/* Was it killed before the last of its mappings was seen? */
static bool kill_in_a_read(bool by_pid)
{
	struct walk_filter filter = {0};
	struct killer k = {0};
	struct walk w;
	pthread_t t;

	k.victim = start_victim();
	if (by_pid)
		filter.pid = (uint32_t)k.victim;
	else
		filter.tid = (uint32_t)k.victim;
	walk_load(&w);
	w.s->bss->wanted_tgid = (uint32_t)k.victim;
	walk_begin(&w, &filter);
	k.w = &w;
	ct_require(!pthread_create(&t, NULL, kill_while_it_is_read, &k), "no thread");
	walk_to_end(&w, 100);
	pthread_join(t, NULL);
	waitpid(k.victim, NULL, 0);
	ct_expect(w.s->bss->end_cnt == 1, "%llu calls without a task instead of 1",
		  (unsigned long long)w.s->bss->end_cnt);
	task_vma_bpf__destroy(w.s);
	return k.seen_cnt < VICTIMS_MAPPINGS;
}

static void killed_during_a_read(void)
{
	size_t in_time = 0;

	need_kept_memory();
	if (fact_cpus() < 2)
		ct_skip("needs two CPUs");
	for (int i = 0; i < 40 && in_time < 4; i++)
		in_time += kill_in_a_read(i % 2);
	ct_expect(in_time >= 4, "in 40 reads it was killed %zu times before the end", in_time);
}

/* ---- mappings that change --------------------------------------------------------------------- */

#define STABLE_CNT 200

static volatile bool is_over;
static volatile __u64 *churned;

static char *stable(size_t i)
{
	return (char *)LONELY + (4 * i + 1) * PAGE;
}

/* Between two that stay, next to neither. */
static void *come_and_go(void *unused)
{
	for (size_t i = 0; !is_over; i = (i + 1) % STABLE_CNT) {
		char *p = stable(i) + 2 * PAGE;

		mmap(p, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
		munmap(p, PAGE);
		++*churned;
	}
	return unused;
}

static void start_churn(struct walk *w)
{
	pthread_t t;

	churned = &w->s->bss->other_work;
	ct_require(!pthread_create(&t, NULL, come_and_go, NULL), "no thread");
}

static void mappings_that_stay(void)
{
	uint64_t changed = 0;
	struct walk w;

	for (size_t i = 0; i < STABLE_CNT; i++)
		ct_require(mmap(stable(i), PAGE, PROT_READ,
				MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1,
				0) == stable(i),
			   "mmap: %s", strerror(errno));
	walk_load(&w);
	start_churn(&w);
	walk_begin(&w, NULL);
	for (int pass = 0; pass < 20; pass++) {
		uint64_t before = *churned;

		walk_open(&w);
		walk_in_steps(&w, 3);
		changed += *churned - before;
		for (size_t i = 0; i < STABLE_CNT; i++) {
			uint64_t start = (uint64_t)stable(i);
			size_t n = walk_cnt_of_range(&w, start, start + PAGE);

			ct_require(n == 1, "pass %d: %lx is seen %zu times", pass, start, n);
		}
	}
	is_over = true;
	ct_require(changed > 0, "nothing changed meanwhile");
}

/* Within one read the thread changes mappings more than once: it got the lock meanwhile. */
static bool has_writer_come_in(const struct walk *w)
{
	const struct seen *last = w->seen + w->s->bss->seen_cnt - 1;

	/* the first change can have been made before the read, and counted in it */
	return w->s->bss->seen_cnt > 1 && last->other_work - w->seen[0].other_work >= 2;
}

static void writer_that_waits(void)
{
	bool has_come_in = false;
	struct walk w;

	map_stripes(60000);
	walk_load(&w);
	start_churn(&w);
	walk_begin(&w, NULL);
	for (int i = 0; i < 30 && !has_come_in; i++) {
		ssize_t n;

		walk_open(&w);
		n = walk_read(&w);
		ct_require(n == 0 && w.s->bss->lost_cnt == 0, "read returns %zd", n);
		has_come_in = has_writer_come_in(&w);
	}
	is_over = true;
	ct_expect(has_come_in, "a thread that maps memory never gets its turn during a read of "
			       "60000 mappings");
}

/* ---- output, and none ------------------------------------------------------------------------- */

#define OUTPUT_BYTES 4096
#define LARGE	     100 /* mappings: more than a buffer of the kernel's, of output */

/* The stripes have output, each once, ascending. */
struct output {
	uint64_t next;
	size_t reads;
};

static void take_output(struct output *o, const char *text, size_t len)
{
	ct_require(len % OUTPUT_BYTES == 0, "a read of %zu bytes", len);
	for (size_t at = 0; at < len; at += OUTPUT_BYTES) {
		uint64_t start;

		memcpy(&start, text + at, sizeof(start));
		if (start < LONELY || start >= LONELY + LARGE * PAGE)
			continue;
		ct_require(start == o->next, "output of %lx instead of %lx", start, o->next);
		o->next += PAGE;
	}
}

static bool read_output(struct walk *w, struct output *o, size_t reads_max)
{
	static char text[16 * OUTPUT_BYTES];

	o->next = LONELY;
	for (o->reads = 1; o->reads <= reads_max; o->reads++) {
		ssize_t n = read(w->fd, text, sizeof(text));

		ct_require(n >= 0, "read: %s", strerror(errno));
		if (n == 0)
			return true;
		take_output(o, text, (size_t)n);
	}
	return false;
}

static void output_with_a_tid(void)
{
	struct output o;
	struct walk w;

	map_stripes(LARGE);
	walk_load(&w);
	w.s->bss->output_bytes = OUTPUT_BYTES;
	walk_begin(&w, &(struct walk_filter){.tid = (uint32_t)getpid()});
	ct_known_bug("no commit so far (after the last mapping it begins anew at the last "
		     "read's first)");
	ct_expect(read_output(&w, &o, 1000), "no end after 1000 reads");
	ct_expect(o.next == LONELY + LARGE * PAGE, "output ends at %lx", o.next);
}

static void output_that_does_not_fit(void)
{
	struct output o;
	size_t stripes = 0;
	struct walk w;

	map_stripes(LARGE);
	walk_load(&w);
	w.s->bss->output_bytes = OUTPUT_BYTES;
	walk_begin(&w, NULL);
	ct_require(read_output(&w, &o, 1000), "no end after 1000 reads");
	ct_expect(o.next == LONELY + LARGE * PAGE, "output ends at %lx", o.next);
	for (size_t i = 0; i < w.s->bss->seen_cnt; i++)
		stripes += is_stripe(&w.seen[i], LARGE);
	ct_expect(stripes > LARGE, "%d mappings, and the program ran %zu times for them", LARGE,
		  stripes);
	ct_note("%zu runs for %d mappings, %zu reads", stripes, LARGE, o.reads);
}

static void full_program(void)
{
	size_t full;
	struct walk w;

	map_stripes(1000);
	walk_load(&w);
	walk_begin(&w, NULL);
	full = walk_in_steps(&w, 7);
	expect_stripes(&w, 1000);
	ct_expect(full >= 1000 / 7 && full == w.s->bss->refused_cnt,
		  "full %zu times, refused %llu times", full,
		  (unsigned long long)w.s->bss->refused_cnt);
}

/* ---- very many -------------------------------------------------------------------------------- */

#define OBJECTS_MAX 1000000 /* MAX_ITER_OBJECTS of kernel/bpf/bpf_iter.c */

static long number_in(const char *path, const char *name)
{
	FILE *f = fopen(path, "re");
	char line[256];
	long value = -1;

	while (f && value < 0 && fgets(line, sizeof(line), f)) {
		if (!strncmp(line, name, strlen(name)))
			sscanf(line + strlen(name), "%ld", &value);
	}
	if (f)
		fclose(f);
	return value;
}

/* Processes that have the stripes of this one. How many, and the mappings of each. */
static size_t start_many(size_t *each)
{
	long limit = number_in("/proc/sys/vm/max_map_count", "");
	size_t stripes = limit > 61000 || limit < 2000 ? 60000 : (size_t)limit - 1000, cnt;
	static uint64_t range[70000][2];

	if (number_in("/proc/meminfo", "MemAvailable:") < 800 * 1024)
		ct_skip("needs 800 MB for 1,000,000 mappings");
	map_stripes(stripes);
	cnt = OBJECTS_MAX / stripes + 1;
	for (size_t i = 0; i < cnt; i++) {
		struct target t = target_start(TARGET_PLAIN);

		*each = target_ranges(t.pid, range, sizeof(range) / sizeof(*range));
	}
	return cnt;
}

static void more_than_a_million(void)
{
	size_t each = 0, processes, again = 0;
	struct walk w;
	ssize_t n;

	processes = start_many(&each);
	walk_load(&w);
	w.s->bss->wanted_tgid = 0;
	w.s->bss->wanted_parent = (uint32_t)getpid();
	w.s->bss->is_silent = true;
	walk_begin(&w, NULL);
	while ((n = walk_read(&w)) == -EAGAIN && again < 100)
		again++;
	ct_expect(n == 0, "read returns %zd", n);
	ct_expect(again > 0, "%zu × %zu mappings in one read", processes, each);
	ct_expect(w.s->bss->seen_cnt == processes * each, "%llu mappings of %zu × %zu",
		  (unsigned long long)w.s->bss->seen_cnt, processes, each);
}

static const struct ct_case cases[] = {
	CT_CASE("task_vma_read/", killed_between_reads, "the end is reached", .numbers = "34"),
	CT_CASE("task_vma_read/", killed_during_a_read, "the end is reached", .numbers = "34"),
	CT_CASE("task_vma_read/", mappings_that_stay,
		"each is seen once, whatever comes and goes beside it", .numbers = "35"),
	CT_CASE("task_vma_read/", output_with_a_tid, "the end is reached", .numbers = "36"),
	CT_CASE("task_vma_read/", output_that_does_not_fit,
		"output once; the program runs again where it was thrown away", .numbers = "37"),
	CT_CASE("task_vma_read/", full_program, "-EAGAIN, and then the same mapping again",
		.numbers = "38"),
	CT_CASE("task_vma_read/", more_than_a_million, "-EAGAIN in between, and all are seen",
		.numbers = "39", .limit_s = 180),
	CT_CASE("task_vma_read/", writer_that_waits, "it gets the lock during a read",
		.numbers = "43", .limit_s = 120),
};

CT_GROUP(task_vma_read_cases, cases);
