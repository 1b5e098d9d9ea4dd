/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Of the workload churner: what it knows of its pages, the log of what becomes of them, and the
 * operations on them. Included once.
 */
#ifndef CHURNER_PAGES_H
#define CHURNER_PAGES_H

#include "workload.h"

#include "churn_log.h"

#include <sched.h>
#include <stdbool.h>
#include <time.h>

/* ---- files ----------------------------------------------------------------------------------- */

#define FILES	   7 /* with stubs: regular ones, a deleted one and two memfds */
#define FILE_PAGES 16
#define FIRST_FD   100 /* of the files with stubs; images inherit them */
#define LIBS	   4   /* behind them in the log's table */
#define STUB_AT	   64  /* in each page */
#define ANON_FILE  0xffff

/* What a page says of itself, before its stub. */
struct label {
	uint32_t magic, file, page;
};

#define MAGIC 0x6e727563

/*
 * void stub(void **list, long spins): spins, calls the next of the list, spins.
 *	push %rbp; mov %rsp,%rbp; push %rdi; push %rsi
 *	mov %esi,%ecx; 1: dec %ecx; jne 1b
 *	mov (%rdi),%rax; test %rax,%rax; je 2f; add $8,%rdi; call *%rax
 *	2: pop %rsi; pop %rdi; mov %esi,%ecx; 3: dec %ecx; jne 3b
 *	pop %rbp; ret
 */
static const uint8_t stub[] = {0x55, 0x48, 0x89, 0xe5, 0x57, 0x56, 0x89, 0xf1, 0xff,
			       0xc9, 0x75, 0xfc, 0x48, 0x8b, 0x07, 0x48, 0x85, 0xc0,
			       0x74, 0x06, 0x48, 0x83, 0xc7, 0x08, 0xff, 0xd0, 0x5e,
			       0x5f, 0x89, 0xf1, 0xff, 0xc9, 0x75, 0xfc, 0x5d, 0xc3};

typedef void link_fn(void **list, long spins);

/* ---- state ----------------------------------------------------------------------------------- */

/* Not mapped, or what is. */
struct page {
	bool mapped, anon;
	uint8_t prot, flags; /* PROT_*, MAP_* */
	uint16_t file, pg;
};

/* A thread (or what comes near one) and its part of the arena. */
struct worker {
	uint64_t rng;
	int section;
	int ops;   /* that are left */
	int depth; /* generations since the first process */
	int links; /* operations within chains, now */
	int children;
	bool is_main; /* may have threads and libraries, and exec */
	pid_t tgid, tid;
};

static struct churn_log *lg;
static const char *log_path, *dir;
static uint32_t mm, execs;
static struct page pages[CHURN_SECTIONS][CHURN_PAGES];
static int pinned[CHURN_SECTIONS][CHURN_PAGES]; /* times on stacks */
static int lock[CHURN_SECTIONS];
static int busy[CHURN_SECTIONS]; /* a thread has it */
static struct worker workers[CHURN_SECTIONS];
static pid_t vm_child;

struct library {
	void *handle;
	link_fn *run;
	uint64_t start, end, pgoff;
	int pinned;
};

static struct library libs[LIBS];

static uint64_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

#define LINKS_DEEP 2 /* operations within chains within chains */

static bool is_over(void)
{
	return now() >= lg->end_ns || __atomic_load_n(&lg->next, __ATOMIC_RELAXED) >= CHURN_ENTRIES;
}

static unsigned pick(struct worker *w, unsigned n)
{
	w->rng ^= w->rng << 13;
	w->rng ^= w->rng >> 7;
	w->rng ^= w->rng << 17;
	return (unsigned)((w->rng >> 20) % n);
}

/* Whoever had it may have been killed by an exec: then this goes on until the end. */
static void take(int section)
{
	while (__atomic_exchange_n(&lock[section], 1, __ATOMIC_ACQUIRE)) {
		if (is_over())
			_exit(0);
		sched_yield();
	}
}

static void drop(int section)
{
	__atomic_store_n(&lock[section], 0, __ATOMIC_RELEASE);
}

static char *at(int section, int p)
{
	return (char *)CHURN_ARENA + ((unsigned)section * CHURN_PAGES + (unsigned)p) * CHURN_PAGE;
}

/* ---- the log --------------------------------------------------------------------------------- */

/* Begins n entries; they are filled, but for their ranges. */
static struct churn_entry *begin(const struct worker *w, uint16_t op, uint32_t n)
{
	uint32_t first = __atomic_fetch_add(&lg->next, n, __ATOMIC_RELAXED);

	if (first + n > CHURN_ENTRIES)
		_exit(0);
	for (uint32_t i = 0; i < n; i++) {
		struct churn_entry *e = &lg->entry[first + i];

		e->op = op;
		e->mm = mm;
		e->execs = execs;
		e->tgid = (uint32_t)w->tgid;
		e->tid = (uint32_t)w->tid;
		__atomic_store_n(&e->before_ns, now(), __ATOMIC_RELEASE);
	}
	return &lg->entry[first];
}

static void end(struct churn_entry *e, uint32_t n, bool ok)
{
	uint64_t t = now();

	for (uint32_t i = 0; i < n; i++) {
		if (!ok)
			e[i].state = CHURN_VOID;
		__atomic_store_n(&e[i].after_ns, t, __ATOMIC_RELEASE);
	}
}

/* The operation makes these pages so. */
static struct churn_entry *begin_pages(const struct worker *w, uint16_t op, int section, int p,
				       int n, const struct page *to)
{
	struct churn_entry *e = begin(w, op, (uint32_t)n);

	for (int i = 0; i < n; i++) {
		e[i].start = (uint64_t)at(section, p + i);
		e[i].end = e[i].start + CHURN_PAGE;
		e[i].pgoff = to[i].pg * CHURN_PAGE;
		e[i].file = to[i].file;
		__atomic_store_n(&e[i].state,
				 !to[i].mapped || !(to[i].prot & PROT_EXEC) ? CHURN_NONE
				 : to[i].anon				    ? CHURN_ANON
									    : CHURN_FILE,
				 __ATOMIC_RELEASE);
	}
	return e;
}

static void end_pages(struct churn_entry *e, bool ok, int section, int p, int n,
		      const struct page *to)
{
	end(e, (uint32_t)n, ok);
	if (ok)
		memcpy(&pages[section][p], to, (size_t)n * sizeof(*to));
}

/* This process's memory is known from before_ns on. */
static void bind_memory(const struct worker *w, uint16_t op, uint64_t before_ns)
{
	struct churn_entry *e = begin(w, op, 1);

	e->before_ns = before_ns;
	e->state = CHURN_BIND;
	end(e, 1, true);
}

/* After a fork, in both: the one that gets here first was nearer to the moment. */
static void end_fork(struct churn_entry *e)
{
	uint64_t none = 0;

	__atomic_compare_exchange_n(&e->after_ns, &none, now(), false, __ATOMIC_RELEASE,
				    __ATOMIC_RELAXED);
}

/* ---- operations on pages --------------------------------------------------------------------- */

static int fd_of(int file)
{
	return FIRST_FD + file;
}

/* A run of pages that are on no stack. */
static int choose_run(struct worker *w, int *n)
{
	int p = (int)pick(w, CHURN_PAGES), most = 1 + (int)pick(w, 5);

	for (*n = 0; *n < most && p + *n < (int)CHURN_PAGES && !pinned[w->section][p + *n]; ++*n)
		;
	return p;
}

static bool goes_on(const struct page *a, const struct page *b)
{
	return b->mapped && !a->anon && !b->anon && a->file == b->file && a->prot == b->prot &&
	       a->flags == b->flags && b->pg == a->pg + 1;
}

/* A run of pages of one file, one behind the other: one mapping. */
static int choose_file_run(struct worker *w, int *n)
{
	int p = choose_run(w, n), i;
	const struct page *pg = &pages[w->section][p];

	if (!*n || !pg->mapped || pg->anon) {
		*n = 0;
		return p;
	}
	for (i = 1; i < *n && goes_on(&pg[i - 1], &pg[i]); i++)
		;
	*n = i;
	return p;
}

static void map_file(struct worker *w, uint16_t op, int section, int p, int n)
{
	struct page to[CHURN_PAGES];
	int file = (int)pick(w, FILES), pg = (int)pick(w, (unsigned)(FILE_PAGES - n + 1));
	struct churn_entry *e;
	struct page one = {.mapped = true,
			   .prot = PROT_READ | PROT_EXEC,
			   .flags = pick(w, 4) ? MAP_PRIVATE : MAP_SHARED,
			   .file = (uint16_t)file};

	for (int i = 0; i < n; i++) {
		to[i] = one;
		to[i].pg = (uint16_t)(pg + i);
	}
	e = begin_pages(w, op, section, p, n, to);
	end_pages(e,
		  mmap(at(section, p), (size_t)n * CHURN_PAGE, one.prot, one.flags | MAP_FIXED,
		       fd_of(file), (off_t)((unsigned)pg * CHURN_PAGE)) != MAP_FAILED,
		  section, p, n, to);
}

static void op_map(struct worker *w)
{
	int n, p = choose_run(w, &n);

	if (n)
		map_file(w, CHURN_OP_MAP, w->section, p, n);
}

/* One page of code that may be running, in any section, by another file's. */
static void op_replace(struct worker *w, int section)
{
	int p = (int)pick(w, CHURN_PAGES);
	const struct page *pg = &pages[section][p];

	if (pg->mapped && !pg->anon && pg->prot & PROT_EXEC)
		map_file(w, CHURN_OP_REPLACE, section, p, 1);
}

static void unmap(struct worker *w, uint16_t op, int p, int n)
{
	struct page to[CHURN_PAGES] = {0};
	struct churn_entry *e = begin_pages(w, op, w->section, p, n, to);
	int err = op == CHURN_OP_SHRINK
			  ? mremap(at(w->section, p - 1), (size_t)(n + 1) * CHURN_PAGE, CHURN_PAGE,
				   0) == MAP_FAILED
			  : munmap(at(w->section, p), (size_t)n * CHURN_PAGE);

	end_pages(e, !err, w->section, p, n, to);
}

static void op_unmap(struct worker *w)
{
	int n, p = choose_run(w, &n);

	if (n)
		unmap(w, CHURN_OP_UNMAP, p, n);
}

static void op_shrink(struct worker *w)
{
	int n, p = choose_file_run(w, &n);

	if (n > 1)
		unmap(w, CHURN_OP_SHRINK, p + 1, n - 1);
}

static void op_protect(struct worker *w)
{
	static const uint8_t prots[] = {PROT_READ | PROT_EXEC, PROT_READ | PROT_EXEC, PROT_READ,
					PROT_READ | PROT_WRITE | PROT_EXEC};
	int n, p = choose_run(w, &n), i;
	uint8_t prot = prots[pick(w, 4)];
	struct page to[CHURN_PAGES];
	struct churn_entry *e;

	for (i = 0; i < n && pages[w->section][p + i].mapped; i++) {
		to[i] = pages[w->section][p + i];
		to[i].prot = prot;
	}
	if (!i)
		return;
	e = begin_pages(w, CHURN_OP_PROTECT, w->section, p, i, to);
	end_pages(e, !mprotect(at(w->section, p), (size_t)i * CHURN_PAGE, prot), w->section, p, i,
		  to);
}

static void write_code(char *to, uint32_t file, uint32_t page)
{
	const struct label label = {MAGIC, file, page};

	memcpy(to, &label, sizeof(label));
	memcpy(to + STUB_AT, stub, sizeof(stub));
}

/* As a JIT does: written first, executable then. */
static void op_jit(struct worker *w)
{
	struct page to = {.mapped = true,
			  .anon = true,
			  .prot = PROT_READ | PROT_WRITE,
			  .flags = MAP_PRIVATE,
			  .file = ANON_FILE};
	int n, p = choose_run(w, &n);
	char *page = at(w->section, p);
	struct churn_entry *e;
	bool ok;

	if (!n)
		return;
	e = begin_pages(w, CHURN_OP_JIT, w->section, p, 1, &to);
	ok = mmap(page, CHURN_PAGE, to.prot, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
	     page;
	end_pages(e, ok, w->section, p, 1, &to);
	if (!ok)
		return;
	write_code(page, ANON_FILE, 0);
	to.prot = PROT_READ | PROT_EXEC;
	e = begin_pages(w, CHURN_OP_JIT, w->section, p, 1, &to);
	end_pages(e, !mprotect(page, CHURN_PAGE, to.prot), w->section, p, 1, &to);
}

/* To where nothing is, of the same section. */
static void op_move(struct worker *w)
{
	static const struct page none[CHURN_PAGES];
	int n, p = choose_file_run(w, &n), q = (int)pick(w, CHURN_PAGES), i;
	struct churn_entry *from, *to;
	struct page moved[CHURN_PAGES];
	bool ok;

	for (i = 0; i < n && q + i < (int)CHURN_PAGES && !pages[w->section][q + i].mapped; i++)
		moved[i] = pages[w->section][p + i];
	if (!i)
		return;
	to = begin_pages(w, CHURN_OP_MOVE, w->section, q, i, moved);
	from = begin_pages(w, CHURN_OP_MOVE, w->section, p, i, none);
	ok = mremap(at(w->section, p), (size_t)i * CHURN_PAGE, (size_t)i * CHURN_PAGE,
		    MREMAP_MAYMOVE | MREMAP_FIXED, at(w->section, q)) != MAP_FAILED;
	end_pages(to, ok, w->section, q, i, moved);
	end_pages(from, ok, w->section, p, i, none);
}

/* Into what is free behind it. */
static void op_grow(struct worker *w)
{
	int n, p = choose_file_run(w, &n), i;
	struct page to[CHURN_PAGES], *last = &pages[w->section][p + n - 1];
	struct churn_entry *e;

	if (!n)
		return;
	for (i = 0; i < 3 && p + n + i < (int)CHURN_PAGES && last->pg + 1 + i < FILE_PAGES &&
		    !pages[w->section][p + n + i].mapped;
	     i++) {
		to[i] = *last;
		to[i].pg = (uint16_t)(last->pg + 1 + i);
	}
	if (!i)
		return;
	e = begin_pages(w, CHURN_OP_GROW, w->section, p + n, i, to);
	end_pages(e,
		  mremap(at(w->section, p), (size_t)n * CHURN_PAGE, (size_t)(n + i) * CHURN_PAGE,
			 0) != MAP_FAILED,
		  w->section, p + n, i, to);
}

static void op_brk(struct worker *w)
{
	long size = (1 + (long)pick(w, 8)) * (long)CHURN_PAGE;
	char *old = sbrk(size);

	if (old != (char *)-1 && sbrk(0) == old + size)
		sbrk(-size);
}

#endif
