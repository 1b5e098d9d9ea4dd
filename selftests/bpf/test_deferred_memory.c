/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Deferred mode: stacks in memory that is not there, not yet, or never. */
#include "expect.h"
#include "spinner.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include <bpf/bpf.h>
#include <dirent.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define WAIT_MS 20000

static struct recorder r = {
	.mode = VP_UNWIND_DEFERRED,
	.call_graph = VP_CALL_GRAPH_FP,
	.keep_raw = true,
};

static void set_up(void)
{
	recorder_defer(&r);
}

static void tear_down(void)
{
	recorder_close(&r);
}

TestSuite(deferred_memory, .init = set_up, .fini = tear_down, .timeout = 60);

/* ---- pages that are not resident ------------------------------------------------------------ */

/* fn on a stack whose top is given; never returns. */
void run_on_stack(void *top, void (*fn)(void));
__asm__(".pushsection .text\n"
	".type run_on_stack, @function\n"
	"run_on_stack:\n"
	"	mov %rdi, %rsp\n"
	"	mov %rsi, %rdi\n"
	"	call call_outermost\n"
	"	ud2\n"
	".size run_on_stack, . - run_on_stack\n"
	".popsection\n");

#define STACK_PAGES 2048UL
#define FRAME_BYTES 8000

static struct {
	char *stack;
	int fd;
	int calls;
	bool on_disk;
} evicted;

static long raw_syscall(long nr, long a, long b, long c, long d)
{
	register long r10 __asm__("r10") = d;
	long n;

	__asm__ volatile("syscall"
			 : "=a"(n)
			 : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10)
			 : "rcx", "r11", "memory");
	return n;
}

/* All of the stack above `from`, which may be in the page cache, is gone; raw: no frames of libc. */
static inline __attribute__((always_inline)) void evict(char *from)
{
	char *start = (char *)(((uint64_t)from + PAGE - 1) & ~(PAGE - 1));
	long bytes = evicted.stack + STACK_PAGES * PAGE - start;

	raw_syscall(SYS_madvise, (long)start, bytes, MADV_DONTNEED, 0);
	if (evicted.on_disk) {
		raw_syscall(SYS_msync, (long)start, bytes, MS_SYNC, 0);
		raw_syscall(SYS_fadvise64, evicted.fd, start - evicted.stack, bytes,
			    POSIX_FADV_DONTNEED);
	}
}

__attribute__((noipa)) static void spin_evicted(void)
{
	/* the caller's frame is in another page, and so is the end of this one */
	volatile char room[2 * PAGE];

	room[0] = 0;
	for (;;) {
		evict((char *)room + PAGE);
		for (volatile int i = 0; i < 200000; i++)
			;
	}
}

__attribute__((noipa)) static void call_deep(int n)
{
	volatile char room[FRAME_BYTES] __attribute__((unused));

	room[0] = 0;
	if (n > 0)
		call_deep(n - 1);
	else
		spin_evicted();
	NOT_THE_END();
}

__attribute__((noipa)) static void call_evicted(void)
{
	call_deep(evicted.calls);
	NOT_THE_END();
}

static void spin_on_an_evicted_stack(void *arg)
{
	(void)arg;
	evicted.fd = evicted.on_disk ? code_file(STACK_PAGES, endless_code, 1)
				     : memfd_create("vp-stack", MFD_CLOEXEC);
	target_check(evicted.fd >= 0 && !ftruncate(evicted.fd, STACK_PAGES * PAGE));
	evicted.stack =
		mmap(NULL, STACK_PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, evicted.fd, 0);
	target_check(evicted.stack != MAP_FAILED);
	target_tell(0);
	run_on_stack(evicted.stack + STACK_PAGES * PAGE, call_evicted);
}

/* spin_evicted, calls + 1 times call_deep, call_evicted, call_outermost. */
#define EVICTED_FRAMES(calls) ((unsigned int)(calls) + 4)

/* Samples in the loop of spin_evicted; those that fell on the way there do not count. */
static void record_evicted(int calls, bool on_disk)
{
	struct target t;

	evicted.calls = calls;
	evicted.on_disk = on_disk;
	recorder_open(&r, VP_FILTER_TGID, 0);
	target_start(&t, spin_on_an_evicted_stack, NULL);
	target_hear(&t);
	recorder_add(&r, t.pid, VP_TARGET_F_ARMED);
	recorder_start(&r, t.pid);
	recorder_wait(&r, 100);
	recorder_settle(&r);
	recorder_stop(&r);
	target_end(&t);
	expect_accounts(&r);
}

static size_t count_evicted(size_t min, size_t max, uint16_t end)
{
	size_t n = 0;

	for (size_t i = 0; i < r.log.cnt; i++) {
		const struct log_item *it = &r.log.item[i];

		n += it->hdr.kind == VP_REC_SAMPLE && it->sample.user_cnt >= min &&
		     it->sample.user_cnt <= max && it->sample.user_end == end;
	}
	return n;
}

/* Inline, the frame's own page is as far as it gets; but the pages may be there for a moment. */
Test(deferred_memory, inline_mode_ends_at_a_page_that_is_missing)
{
	r.mode = VP_UNWIND_INLINE;
	record_evicted(20, false);
	cr_expect(ge(sz, count_evicted(1, 2, VP_END_BAD_MEMORY), 90));
}

Test(deferred_memory, pages_that_are_missing_are_brought_in)
{
	record_evicted(20, false);
	cr_expect(ge(sz, count_evicted(EVICTED_FRAMES(20), EVICTED_FRAMES(20), VP_END_BOTTOM), 95));
	cr_expect(zero(sz, count_evicted(0, VP_MAX_USER_FRAMES, VP_END_BAD_MEMORY)));
}

Test(deferred_memory, pages_are_brought_in_from_a_file_on_disk)
{
	record_evicted(20, true);
	cr_expect(ge(sz, count_evicted(EVICTED_FRAMES(20), EVICTED_FRAMES(20), VP_END_BOTTOM), 95));
	cr_expect(zero(sz, count_evicted(0, VP_MAX_USER_FRAMES, VP_END_BAD_MEMORY)));
}

/*
 * 900 calls of 8 KB are 1,800 pages. A stack gets 31, each with 15 neighbours if they are cached, and
 * as many again if another recorder takes it, too.
 */
Test(deferred_memory, a_stack_with_too_many_missing_pages_ends_where_its_share_does)
{
	record_evicted(900, false);
	cr_expect(ge(sz, count_evicted(31, 900, VP_END_BAD_MEMORY), 50));
}

/* ---- pages that never come ------------------------------------------------------------------ */

/* Spins with the stack pointer and frame pointer given. Never returns. */
void spin_with(uint64_t sp, uint64_t fp);
__asm__(".pushsection .text\n"
	".type spin_with, @function\n"
	"spin_with:\n"
	"	mov %rdi, %rsp\n"
	"	mov %rsi, %rbp\n"
	"1:	pause\n"
	"	jmp 1b\n"
	".size spin_with, . - spin_with\n"
	".popsection\n");

#define HOSTILE_MAX 1024

static int uffd;

/* A page that is there and, above it in the same mapping, one that is asked for in vain. */
static char *map_without_second_page(void)
{
	char *pages =
		mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct uffdio_register reg = {
		.range = {.start = (uint64_t)pages, .len = 2 * PAGE},
		.mode = UFFDIO_REGISTER_MODE_MISSING,
	};

	target_check(pages != MAP_FAILED);
	pages[0] = 0;
	target_check(!ioctl(uffd, UFFDIO_REGISTER, &reg));
	return pages;
}

static void *spin_without_page(void *pages)
{
	spin_with((uint64_t)pages + PAGE / 2, (uint64_t)pages + PAGE);
	return NULL;
}

static void start_hostile_thread(char **pages)
{
	pthread_t th;

	*pages = map_without_second_page();
	target_check(!pthread_create(&th, NULL, spin_without_page, *pages));
}

/*
 * Starts as many threads as it is told to; told 0, it gives all of them their pages, and runs on: a
 * thread that sleeps would keep a sample for itself.
 */
static void have_hostile_threads(void *arg)
{
	struct uffdio_api api = {.api = UFFD_API};
	struct uffdio_zeropage zero = {.range = {.len = PAGE}};
	static char *pages[HOSTILE_MAX];
	size_t cnt = 0, more;

	(void)arg;
	uffd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
	target_check(uffd >= 0 && !ioctl(uffd, UFFDIO_API, &api));
	while ((more = target_await())) {
		target_check(cnt + more <= HOSTILE_MAX);
		for (; more; more--)
			start_hostile_thread(&pages[cnt++]);
		target_tell(0);
	}
	for (size_t i = 0; i < cnt; i++) {
		zero.range.start = (uint64_t)pages[i] + PAGE;
		target_check(!ioctl(uffd, UFFDIO_ZEROPAGE, &zero));
	}
	target_tell(0);
	spin_leaf();
}

static bool can_userfault(void)
{
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static bool do_all_sleep(void *t)
{
	struct dirent *e;
	bool all = true;
	char path[64];
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%d/task", ((struct target *)t)->pid);
	d = opendir(path);
	cr_assert(d != NULL);
	while (all && (e = readdir(d))) {
		if (e->d_name[0] != '.')
			all = procfs_is_asleep((pid_t)atoi(e->d_name));
	}
	closedir(d);
	return all;
}

/* More stacks that wait for a page than there are buffers, and a few more. */
static size_t hostile_cnt(void)
{
	struct bpf_map_info info = {0};
	__u32 len = sizeof(info);

	cr_assert(zero(int, bpf_obj_get_info_by_fd(recorder_map_fd("stack_bufs"), &info, &len)));
	return info.max_entries + 20;
}

/*
 * Returns when the stacks of so many threads wait for their pages. Another recorder on the
 * machine can have got to some of them first, and then we never see them: so ever more.
 */
static void start_hostile(struct target *t)
{
	size_t waiting = 0, wanted = hostile_cnt();

	target_start(t, have_hostile_threads, NULL);
	recorder_add(&r, t->pid, VP_TARGET_F_ARMED);
	recorder_start(&r, t->pid);
	while (waiting < wanted) {
		target_say(t, wanted);
		target_hear(t);
		cr_assert(wait_until(do_all_sleep, t, WAIT_MS));
		cr_assert(wait_until(recorder_has_read_all, &r, WAIT_MS));
		waiting = vp_joiner_waiting(&r.joiner);
	}
}

/* Of threads other than the main one, which made the others. */
static size_t count_hostile(uint32_t tgid, uint16_t end, size_t user_cnt)
{
	size_t n = 0;

	for (size_t i = 0; i < r.log.cnt; i++) {
		const struct log_item *it = &r.log.item[i];

		n += it->hdr.kind == VP_REC_SAMPLE && it->sample.proc.tgid == tgid &&
		     it->sample.tid != tgid && it->sample.user_end == end &&
		     it->sample.user_cnt == user_cnt;
	}
	return n;
}

Test(deferred_memory, stacks_that_never_arrive_keep_no_other_from_being_taken)
{
	struct target hostile, t;

	if (!can_userfault())
		cr_skip_test("no userfaultfd");
	recorder_open(&r, VP_FILTER_TGID, 0);
	start_spinning(&t, spin_root);
	recorder_add(&r, t.pid, VP_TARGET_F_ARMED);
	start_hostile(&hostile);
	recorder_wait_in_function(&r, t.pid, spin_leaf, 300);
	recorder_stop(&r);
	expect_accounts(&r);
	cr_expect(zero(u64, recorder_counter(&r, VP_CNT_DEFER_FAILED)));
	cr_expect(ge(sz, count_spinning(&r.log, (uint32_t)t.pid, 4, VP_END_BOTTOM), 300));
	cr_expect(ge(sz, count_hostile((uint32_t)hostile.pid, VP_END_IN_KERNEL, 0), hostile_cnt()));
	/* and they can be killed */
	target_end(&hostile);
	target_end(&t);
}

static bool are_all_here(void *arg)
{
	(void)arg;
	return vp_joiner_waiting(&r.joiner) == 0;
}

/* A frame of zeros is the last one. */
Test(deferred_memory, stacks_that_arrive_late_are_whole)
{
	struct target t;

	if (!can_userfault())
		cr_skip_test("no userfaultfd");
	recorder_open(&r, VP_FILTER_TGID, 0);
	start_hostile(&t);
	target_say(&t, 0);
	target_hear(&t);
	recorder_wait(&r, hostile_cnt());
	recorder_settle(&r);
	cr_assert(wait_until(are_all_here, NULL, WAIT_MS));
	recorder_stop(&r);
	expect_accounts(&r);
	cr_expect(ge(sz, count_hostile((uint32_t)t.pid, VP_END_BOTTOM, 1), hostile_cnt()));
	cr_expect(zero(sz, count_hostile((uint32_t)t.pid, VP_END_BAD_MEMORY, 1)));
	target_end(&t);
}

/* They die in the middle of it; samples come with what there was, or without. */
Test(deferred_memory, threads_that_are_killed_while_they_wait_for_a_page_lose_no_sample)
{
	struct target t;

	if (!can_userfault())
		cr_skip_test("no userfaultfd");
	recorder_open(&r, VP_FILTER_TGID, 0);
	start_hostile(&t);
	target_end(&t);
	recorder_settle(&r);
	recorder_stop(&r);
	expect_accounts(&r);
	cr_expect(zero(u64, r.joiner.in_kernel_cnt));
	cr_expect(ge(u64, r.joiner.joined_cnt + r.joiner.exited_cnt, hostile_cnt()));
}
