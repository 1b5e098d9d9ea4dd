// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* bpf_iter_task_vma_new, _next and _destroy in programs. */
#include "case.h"
#include "facts.h"
#include "ops_run.h"
#include "target.h"
#include "try_load.h"

#include "prog/vma_iter.h"
#include "vma_iter.skel.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define PAGE	   4096UL
#define RANGES_MAX 512

/* Far from where the kernel puts mappings by itself. */
#define LONELY 0x200000000000UL

static bool is_there(void)
{
	return fact_function("bpf_iter_task_vma_new");
}

static void skip_if_absent(void)
{
	if (!is_there())
		ct_skip("no bpf_iter_task_vma in this kernel (6.7)");
}

/* bee9ef4a40a2: it returns copies under the lock of each mapping, instead of holding mmap_lock. */
static bool returns_copies(void)
{
	return fact_member("bpf_iter_task_vma_kern_data", "snapshot");
}

/* CONFIG_PER_VMA_LOCK: without it, copies cannot be had. */
static bool has_vma_locks(void)
{
	return fact_member("mm_struct", "mm_lock_seq");
}

static struct vma_iter_bpf *load(const char *name)
{
	struct vma_iter_bpf *s = vma_iter_bpf__open();
	int err;

	ct_require(s != NULL, "open: %s", strerror(errno));
	bpf_program__set_autoload(bpf_object__find_program_by_name(s->obj, name), true);
	err = vma_iter_bpf__load(s);
	ct_require(!err, "%s does not load: %s", name, strerror(-err));
	return s;
}

static void call(const struct bpf_program *prog)
{
	DECLARE_LIBBPF_OPTS(bpf_test_run_opts, opts);
	int err = bpf_prog_test_run_opts(bpf_program__fd(prog), &opts);

	ct_require(!err, "test run: %s", strerror(-err));
}

/* The answer of _new with IRQs on. */
static int expected_answer(void)
{
	return returns_copies() && !has_vma_locks() ? -EOPNOTSUPP : 0;
}

static void *lonely(size_t pages, int fd)
{
	void *p = mmap((void *)LONELY, pages * PAGE, PROT_READ,
		       (fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_PRIVATE) | MAP_FIXED_NOREPLACE,
		       fd, 0);

	ct_require(p == (void *)LONELY, "mmap: %s", strerror(errno));
	return p;
}

static void there_or_not(void)
{
	struct vma_iter_bpf *s = load("walk_in_call");

	call(s->progs.walk_in_call);
	ct_expect(s->bss->run_cnt == 1, "it ran %llu times", s->bss->run_cnt);
	if (is_there())
		ct_expect(!s->bss->absent_cnt &&
				  s->bss->result[0].ok + s->bss->result[0].unsupported,
			  "in BTF, but it answers %lld", s->bss->result[0].last);
	else
		ct_expect(s->bss->absent_cnt, "not in BTF, but it answers %lld",
			  s->bss->result[0].last);
}

static void needs_vma_locks(void)
{
	struct vma_iter_bpf *s;

	skip_if_absent();
	s = load("walk_in_call");
	call(s->progs.walk_in_call);
	ct_expect(s->bss->result[0].last == expected_answer(), "%lld instead of %d",
		  s->bss->result[0].last, expected_answer());
}

/* start 0: no mapping at all. */
static void expect_first(struct vma_iter_bpf *s, uint64_t from, uint64_t start, uint64_t end)
{
	const struct vma_iter_result *r = s->bss->result;

	s->bss->from = from;
	call(s->progs.walk_in_call);
	for (int i = 0; i < 2; i++)
		ct_expect(r[i].last == 0 && r[i].start == start && r[i].end == end,
			  "from %#lx: answer %lld, first %#llx-%#llx instead of %#lx-%#lx", from,
			  r[i].last, r[i].start, r[i].end, start, end);
}

static void where_it_begins(void)
{
	static uint64_t range[RANGES_MAX][2];
	uint64_t page;
	struct vma_iter_bpf *s;
	size_t cnt;

	skip_if_absent();
	if (expected_answer())
		ct_skip("needs CONFIG_PER_VMA_LOCK in this kernel");
	s = load("walk_in_call");
	page = (uint64_t)lonely(2, -1);
	cnt = target_ranges(getpid(), range, RANGES_MAX);
	expect_first(s, page, page, page + 2 * PAGE);
	expect_first(s, page + 2 * PAGE - 1, page, page + 2 * PAGE);
	expect_first(s, page - 1, page, page + 2 * PAGE);
	expect_first(s, 0, range[0][0], range[0][1]);
	ct_expect(s->bss->result[0].cnt == cnt, "%llu mappings from 0, %zu in /proc",
		  s->bss->result[0].cnt, cnt);
	expect_first(s, range[cnt - 1][1], 0, 0);
}

/* What it answers in samples of this process. */
static void run_in_interrupt(struct vma_iter_bpf *s, uint64_t times)
{
	time_t end = time(NULL) + 60;
	struct bpf_link *link;

	s->bss->wanted_tgid = (uint32_t)getpid();
	attach_samples(s->progs.walk_in_interrupt, 0, &link, 1);
	while (__atomic_load_n(&s->bss->run_cnt, __ATOMIC_RELAXED) < times && time(NULL) < end)
		for (volatile int i = 0; i < 100000; i++)
			;
	bpf_link__destroy(link);
	ct_require(s->bss->run_cnt >= times, "%llu samples of %lu", s->bss->run_cnt, times);
}

static unsigned long long answers(const struct vma_iter_result *r)
{
	return r->ok + r->busy + r->unsupported + r->other;
}

static void in_an_interrupt(void)
{
	const struct vma_iter_result *r;
	struct vma_iter_bpf *s;

	skip_if_absent();
	s = load("walk_in_interrupt");
	r = s->bss->result;
	run_in_interrupt(s, 200);
	if (returns_copies() && !has_vma_locks()) {
		ct_expect(answers(&r[0]) > 0 && !r[0].ok, "%llu walks", r[0].ok);
	} else if (returns_copies() || fact_rt()) {
		ct_expect(answers(&r[0]) > 0 && r[0].busy == answers(&r[0]),
			  "%llu of %llu are -EBUSY, the last %lld", r[0].busy, answers(&r[0]),
			  r[0].last);
	} else {
		/* it has mmap_lock, as bpf_find_vma */
		ct_expect(r[0].ok > 0 && r[0].ok + r[0].busy == answers(&r[0]),
			  "%llu of %llu first ones walk, the last %lld", r[0].ok, answers(&r[0]),
			  r[0].last);
	}
	ct_expect(!r[1].ok, "%llu second ones walk", r[1].ok);
}

static void without_destroy(void)
{
	struct vma_iter_bpf *s;
	const char *log;
	int err;

	skip_if_absent();
	s = vma_iter_bpf__open();
	ct_require(s != NULL, "open: %s", strerror(errno));
	err = try_load(s->obj, "never_destroys", &log);
	ct_require(err, "it loads");
	ct_expect(strstr(reason_of(log), "reference") != NULL, "%s: %s", strerror(-err),
		  reason_of(log));
}

/* ---- a mapping that goes ---------------------------------------------------------------------- */

static void *unmap_it(void *arg)
{
	struct vma_iter_bpf *s = arg;

	while (!__atomic_load_n(&s->bss->has_found, __ATOMIC_ACQUIRE))
		;
	munmap((void *)LONELY, PAGE);
	__atomic_store_n(&s->bss->is_gone, 1, __ATOMIC_RELEASE);
	return NULL;
}

/* A file that nothing but this mapping holds. */
static void map_a_file(void)
{
	int fd = (int)syscall(SYS_memfd_create, "vmaprof-selftest", 0);

	ct_require(fd >= 0 && !ftruncate(fd, PAGE), "memfd: %s", strerror(errno));
	lonely(1, fd);
	close(fd);
}

static void mapping_that_goes(void)
{
	struct vma_iter_bpf *s;
	pthread_t t;

	skip_if_absent();
	if (expected_answer())
		ct_skip("needs CONFIG_PER_VMA_LOCK in this kernel");
	if (fact_cpus() < 2)
		ct_skip("needs two CPUs");
	s = load("look_and_wait");
	s->bss->from = LONELY;
	map_a_file();
	ct_require(!pthread_create(&t, NULL, unmap_it, s), "no thread");
	call(s->progs.look_and_wait);
	ct_require(s->bss->has_found && s->bss->start_before == LONELY, "found %#llx, answer %lld",
		   s->bss->start_before, s->bss->result[0].last);
	pthread_join(t, NULL);
	if (returns_copies())
		ct_expect(s->bss->was_gone, "munmap() does not return while a program looks at it");
	else
		ct_expect(!s->bss->was_gone, "munmap() returns although the lock is held");
	ct_expect(s->bss->start_after == LONELY && s->bss->end_after == LONELY + PAGE,
		  "then it is %#llx-%#llx", s->bss->start_after, s->bss->end_after);
	ct_expect(s->bss->inode_before && s->bss->inode_after == s->bss->inode_before,
		  "inode %llu, then %llu", s->bss->inode_before, s->bss->inode_after);
}

static const struct ct_case cases[] = {
	CT_CASE("vma_iter/", there_or_not, "a program that asks for it weakly loads everywhere",
		.numbers = "44"),
	CT_CASE("vma_iter/", where_it_begins, "the mapping that covers the address, or the next",
		.numbers = "45"),
	CT_CASE("vma_iter/", in_an_interrupt, "-EBUSY; where it has mmap_lock, the first walks",
		.numbers = "46"),
	CT_CASE("vma_iter/", without_destroy, "refused", .numbers = "47"),
	CT_CASE("vma_iter/", needs_vma_locks,
		"0; -EOPNOTSUPP without CONFIG_PER_VMA_LOCK where it returns copies",
		.numbers = "48"),
	CT_CASE("vma_iter/", mapping_that_goes,
		"what was found stays; munmap() waits only where it is no copy", .numbers = "49"),
};

CT_GROUP(vma_iter_cases, cases);
