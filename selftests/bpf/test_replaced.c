/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* One address, mapped as this and that: whoever reads the records in order knows it at each sample. */
#include "expect.h"
#include "recorder.h"
#include "spinner.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static struct recorder r = {.call_graph = VP_CALL_GRAPH_FP};

static void set_inline(void)
{
	r.mode = VP_UNWIND_INLINE;
}

static void set_deferred(void)
{
	recorder_defer(&r);
}

static void tear_down(void)
{
	recorder_close(&r);
}

TestSuite(replaced, .init = set_inline, .fini = tear_down, .timeout = 60);
TestSuite(replaced_deferred, .init = set_deferred, .fini = tear_down, .timeout = 60);

#define AT	0x300000000000UL
#define PAGES	4
#define PHASES	5
#define SAMPLES 40

/* The phase that the target is to be in; shared with it. */
static volatile uint32_t *phase;

static void map_anonymous(void)
{
	char *p = mmap((void *)AT, PAGES * PAGE, PROT_READ | PROT_WRITE | PROT_EXEC,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);

	target_check(p == (void *)AT);
	memcpy(p + PAGE, short_code, sizeof(short_code));
}

/* Over a part of it: over its second page. */
static void map_file(int fd)
{
	target_check(mmap((void *)(AT + PAGE), PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED,
			  fd, PAGE) == (void *)(AT + PAGE));
}

/* Memory, file, the same memory again, … */
static void take_turns(void *arg)
{
	int fd = code_file(2, short_code, sizeof(short_code));

	(void)arg;
	for (uint32_t i = 0; i < PHASES; i++) {
		if (i % 2)
			map_file(fd);
		else
			map_anonymous();
		target_tell(i);
		while (*phase == i)
			call_outermost((void (*)(void))(AT + PAGE));
	}
	target_pause();
}

struct latest {
	uint16_t verdict;
	uint32_t file_id;
};

/* What the records before item `end` say of that address: the newest holds. */
static struct latest latest_of(const struct record_log *l, size_t end, uint32_t tgid, uint64_t at)
{
	struct latest found = {0};

	for (size_t i = 0; i < end; i++) {
		const struct vp_rec_mmap2 *m = &l->item[i].mmap2;

		if (m->hdr.kind != VP_REC_MMAP2 || m->proc.tgid != tgid || at < m->perf.addr ||
		    at >= m->perf.addr + m->perf.len)
			continue;
		found = (struct latest){m->verdict, m->file_id};
	}
	return found;
}

static void what_comes_back_is_reported_again(void)
{
	size_t in_file = 0, in_memory = 0;
	struct target t;

	phase = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	cr_assert(ne(ptr, (void *)phase, MAP_FAILED));
	recorder_open(&r, VP_FILTER_TGID, 0);
	target_start(&t, take_turns, NULL);
	recorder_add(&r, t.pid, VP_TARGET_F_ARMED);
	recorder_start(&r, t.pid);
	for (uint32_t i = 0; i < PHASES; i++) {
		target_hear(&t);
		recorder_wait(&r, SAMPLES);
		*phase = i + 1;
	}
	recorder_stop(&r);
	for (size_t i = 0; i < r.log.cnt; i++) {
		const struct log_item *it = &r.log.item[i];

		if (it->hdr.kind != VP_REC_SAMPLE || !it->sample.user_cnt ||
		    it->user[0].pc < AT + PAGE || it->user[0].pc >= AT + 2 * PAGE)
			continue;
		struct latest said = latest_of(&r.log, i, (uint32_t)t.pid, it->user[0].pc);

		cr_expect(eq(u32, it->user[0].verdict, said.verdict));
		cr_expect(eq(u32, it->user[0].file_id, said.file_id));
		in_file += it->user[0].verdict == VP_VERDICT_FILE;
		in_memory += it->user[0].verdict == VP_VERDICT_ANON_EXEC;
	}
	cr_expect(ge(sz, in_file, SAMPLES));
	cr_expect(ge(sz, in_memory, SAMPLES));
	target_end(&t);
}

#define WRITES_A_SAMPLE_MAY_SEE 20

/* Code in a memfd that is written to all the time, as a JIT does. */
static void write_and_run(void *arg)
{
	int fd = memfd_create("jit", 0);
	char *p;

	(void)arg;
	target_check(fd >= 0 && !ftruncate(fd, 64 * PAGE));
	p = mmap(NULL, 64 * PAGE, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0);
	target_check(p != MAP_FAILED);
	target_check(pwrite(fd, short_code, sizeof(short_code), PAGE) > 0);
	target_tell(0);
	for (size_t i = 0;; i++) {
		void *other = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		target_check(pwrite(fd, short_code, sizeof(short_code),
				    (off_t)((2 + i % 60) * PAGE)) > 0);
		call_outermost((void (*)(void))(p + PAGE));
		munmap(other, PAGE);
	}
}

static void a_memory_file_that_is_written_to_stays_one_file(void)
{
	size_t reports = 0;
	struct target t;

	recorder_open(&r, VP_FILTER_TGID, 0);
	target_start(&t, write_and_run, NULL);
	target_hear(&t);
	recorder_add(&r, t.pid, VP_TARGET_F_ARMED);
	recorder_start(&r, t.pid);
	recorder_wait(&r, 4 * WRITES_A_SAMPLE_MAY_SEE);
	recorder_stop(&r);
	for (size_t i = 0; i < r.log.cnt; i++) {
		const struct log_item *it = &r.log.item[i];

		reports += it->hdr.kind == VP_REC_MMAP2 && strstr(it->name, "memfd:jit");
	}
	cr_expect(ge(sz, reports, 1));
	cr_expect(lt(sz, reports, 5));
	target_end(&t);
}

Test(replaced, what_comes_back_is_reported_again)
{
	what_comes_back_is_reported_again();
}

Test(replaced_deferred, what_comes_back_is_reported_again)
{
	what_comes_back_is_reported_again();
}

Test(replaced, a_memory_file_that_is_written_to_stays_one_file)
{
	a_memory_file_that_is_written_to_stays_one_file();
}

Test(replaced_deferred, a_memory_file_that_is_written_to_stays_one_file)
{
	a_memory_file_that_is_written_to_stays_one_file();
}
