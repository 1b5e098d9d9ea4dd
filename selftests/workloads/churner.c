// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* build: -O1 -g -fno-omit-frame-pointer -fno-optimize-sibling-calls -fno-inline -pthread -ldl */
/*
 * churner LOG DIR SEED MS: for that long, changes its executable mappings in all the ways there
 * are, in an order that SEED decides, and runs code in them in between. What was mapped where at
 * each moment is in LOG (churn_log.h); its files are in DIR. Exit 0: it ended as it should.
 *
 * Code is run as a chain of stubs, each in a page of its own, that call each other: a stack has
 * several mappings at once. The last link may be an operation, so that mappings change below the
 * frames that are in them.
 */
#include "workload.h"

#include "churn_log.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <link.h>
#include <pthread.h>
#include <sched.h>
#include <spawn.h>
#include <stdbool.h>
#include <sys/sysmacros.h>
#include <time.h>

/* ---- files ----------------------------------------------------------------------------------- */

#define FILES	   7   /* with stubs: regular ones, a deleted one and two memfds */
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
static const uint8_t stub[] = {0x55, 0x48, 0x89, 0xe5, 0x57, 0x56, 0x89, 0xf1, 0xff, 0xc9,
			       0x75, 0xfc, 0x48, 0x8b, 0x07, 0x48, 0x85, 0xc0, 0x74, 0x06,
			       0x48, 0x83, 0xc7, 0x08, 0xff, 0xd0, 0x5e, 0x5f, 0x89, 0xf1,
			       0xff, 0xc9, 0x75, 0xfc, 0x5d, 0xc3};

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

/* ---- libraries ------------------------------------------------------------------------------- */

static int find_code(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct library *lib = arg;
	const uint64_t mask = CHURN_PAGE - 1;

	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
		uint64_t start = info->dlpi_addr + ph->p_vaddr;

		if (ph->p_type != PT_LOAD || !(ph->p_flags & PF_X) ||
		    (uint64_t)lib->run < start || (uint64_t)lib->run >= start + ph->p_memsz)
			continue;
		lib->start = start & ~mask;
		lib->end = (start + ph->p_memsz + mask) & ~mask;
		lib->pgoff = ph->p_offset & ~mask;
		return 1;
	}
	return 0;
}

static void lib_path(char *path, size_t size, int i)
{
	snprintf(path, size, "%s/lib%d.so", dir, i);
}

static void op_dlopen(struct worker *w)
{
	int i = (int)pick(w, LIBS);
	struct library *lib = &libs[i];
	struct churn_entry *e;
	char path[4096];

	if (lib->pinned)
		return;
	e = begin(w, lib->handle ? CHURN_OP_DLCLOSE : CHURN_OP_DLOPEN, 1);
	if (lib->handle) {
		dlclose(lib->handle);
		lib->handle = NULL;
		e->state = CHURN_NONE;
	} else {
		lib_path(path, sizeof(path), i);
		lib->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
		lib->run = lib->handle ? (link_fn *)dlsym(lib->handle, "churner_lib_run") : NULL;
		if (!lib->run || !dl_iterate_phdr(find_code, lib))
			wl_die("dlopen %s", path);
		e->state = CHURN_FILE;
	}
	e->file = (uint32_t)(FILES + i);
	e->start = lib->start;
	e->end = lib->end;
	e->pgoff = lib->pgoff;
	end(e, 1, true);
}

/* ---- processes and threads ------------------------------------------------------------------- */

static void churn(struct worker *w);

static void note_end(int status)
{
	if (WIFSIGNALED(status) ? WTERMSIG(status) != SIGKILL : WEXITSTATUS(status) != 0) {
		fprintf(stderr, "churner %d: a child ended with status %x\n", getpid(), status);
		_exit(97);
	}
}

/* Those of this thread: they die with it. */
static void reap(struct worker *w, int flags)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, flags | __WNOTHREAD)) > 0) {
		note_end(status);
		w->children -= pid != vm_child;
		if (pid == vm_child)
			vm_child = 0;
	}
}

static _Noreturn void leave(struct worker *w)
{
	reap(w, 0);
	_exit(0);
}

static _Noreturn void be_forked(struct worker *w, struct churn_entry *e)
{
	end_fork(e);
	wl_die_with_parent();
	w->tgid = getpid();
	w->tid = w->tgid;
	w->depth++;
	w->children = 0;
	w->ops = 40;
	vm_child = 0;
	e->other_mm = mm;
	mm = __atomic_add_fetch(&lg->mm, 1, __ATOMIC_RELAXED);
	e->mm = mm;
	e->tgid = (uint32_t)w->tgid;
	e->tid = (uint32_t)w->tid;
	__atomic_store_n(&e->state, CHURN_BIND, __ATOMIC_RELEASE);
	drop(w->section);
	churn(w);
	leave(w);
}

static void op_fork(struct worker *w)
{
	struct churn_entry *e = begin(w, CHURN_OP_FORK, 1);
	pid_t pid = fork();

	if (pid < 0)
		wl_die("fork");
	if (!pid)
		be_forked(w, e);
	end_fork(e);
	w->children++;
}

/* The image that follows: argv for it. Valid until the next call by the same thread. */
static char **next_image(struct worker *w, int ops, int depth)
{
	static __thread char text[4][24];
	static __thread char *argv[9];

	snprintf(text[0], sizeof(text[0]), "%" PRIu64, w->rng >> 1);
	snprintf(text[1], sizeof(text[1]), "%d", ops);
	snprintf(text[2], sizeof(text[2]), "%u", execs + 1);
	snprintf(text[3], sizeof(text[3]), "%d", depth);
	argv[0] = "churner";
	argv[1] = (char *)log_path;
	argv[2] = (char *)dir;
	for (int i = 0; i < 4; i++)
		argv[3 + i] = text[i];
	return argv;
}

static void be_next_image(struct worker *w, int ops, int depth)
{
	char **argv = next_image(w, ops, depth);

	begin(w, CHURN_OP_EXEC, 1)->state = CHURN_NONE;
	execv("/proc/self/exe", argv);
	wl_die("exec");
}

static void do_page_op(struct worker *w);
static void run_chain(struct worker *w);

/* In the memory and on the stack of the parent, which waits. */
static _Noreturn void be_vforked(struct worker *w, uint64_t before_ns)
{
	struct worker child = *w;

	child.tgid = getpid();
	child.tid = child.tgid;
	child.is_main = false;
	bind_memory(&child, CHURN_OP_VFORK, before_ns);
	do_page_op(&child);
	drop(w->section);
	run_chain(&child);
	if (pick(&child, 2))
		be_next_image(&child, 20, w->depth + 1);
	_exit(0);
}

static void op_vfork(struct worker *w)
{
	uint64_t before_ns = now();
	pid_t pid = vfork();

	if (pid < 0)
		wl_die("vfork");
	if (!pid)
		be_vforked(w, before_ns);
	w->children++;
	/* the child dropped it */
	take(w->section);
}

static void op_spawn(struct worker *w)
{
	pid_t pid;

	if (posix_spawn(&pid, "/proc/self/exe", NULL, NULL, next_image(w, 20, w->depth + 1),
			environ))
		wl_die("posix_spawn");
	w->children++;
}

static int be_cloned(void *arg)
{
	struct worker *w = arg;

	w->tgid = getpid();
	w->tid = w->tgid;
	wl_die_with_parent();
	bind_memory(w, CHURN_OP_CLONE_VM, w->rng);
	w->rng ^= 0x9e3779b97f4a7c15;
	while (w->ops-- > 0 && !is_over()) {
		take(w->section);
		do_page_op(w);
		drop(w->section);
		run_chain(w);
	}
	_exit(0);
}

/* A process in the same memory that runs beside this one. */
static void op_clone_vm(struct worker *w)
{
	static char stack[64 << 10] __attribute__((aligned(16)));
	struct worker *child = &workers[CHURN_SECTIONS - 1];

	if (vm_child)
		return;
	/* it shares the thread-local storage, too: nothing but operations on pages, and no links */
	*child = (struct worker){.rng = now(),
				 .section = CHURN_SECTIONS - 1,
				 .ops = 30,
				 .depth = w->depth + 1,
				 .links = LINKS_DEEP};
	lock[child->section] = 0;
	vm_child = clone(be_cloned, stack + sizeof(stack), CLONE_VM | SIGCHLD, child);
	if (vm_child < 0)
		wl_die("clone");
}

static void *be_thread(void *arg)
{
	struct worker *w = arg;

	w->tid = gettid();
	churn(w);
	reap(w, 0);
	__atomic_store_n(&busy[w->section], 0, __ATOMIC_RELEASE);
	return NULL;
}

static void start_thread(void *(*body)(void *), struct worker *w)
{
	pthread_t thread;

	if ((errno = pthread_create(&thread, NULL, body, w)))
		wl_die("pthread_create");
	pthread_detach(thread);
}

static void op_thread(struct worker *w)
{
	int section = 1 + (int)pick(w, CHURN_SECTIONS - 2);

	if (__atomic_load_n(&busy[section], __ATOMIC_ACQUIRE))
		return;
	busy[section] = 1;
	workers[section] = (struct worker){.rng = w->rng ^ 0x9e3779b97f4a7c15,
					   .section = section,
					   .ops = 60,
					   .depth = w->depth + 1,
					   .tgid = w->tgid};
	start_thread(be_thread, &workers[section]);
}

/* Goes on where the leader, which ends, was. */
static void *be_survivor(void *arg)
{
	struct worker *w = arg;

	w->tid = gettid();
	w->is_main = false;
	w->ops = 1 << 20;
	churn(w);
	reap(w, 0);
	while (waitpid(-1, NULL, 0) > 0)
		;
	_exit(0);
}

/* ---- by turns -------------------------------------------------------------------------------- */

static void do_page_op(struct worker *w)
{
	unsigned which = pick(w, 100);

	if (which < 36)
		op_map(w);
	else if (which < 46)
		op_unmap(w);
	else if (which < 62)
		op_protect(w);
	else if (which < 70)
		op_jit(w);
	else if (which < 80)
		op_move(w);
	else if (which < 86)
		op_grow(w);
	else if (which < 90)
		op_shrink(w);
	else
		op_replace(w, w->section);
}

static void do_process_op(struct worker *w)
{
	unsigned which = pick(w, 100);

	if (w->is_main && which < 35)
		op_dlopen(w);
	else if (w->is_main && which < 50)
		op_brk(w);
	else if (w->depth > 2 || w->children > 1)
		do_page_op(w);
	else if (which < 65)
		op_fork(w);
	else if (which < 72)
		op_vfork(w);
	else if (which < 77)
		op_spawn(w);
	else if (w->is_main && w->depth == 0 && which < 85)
		op_clone_vm(w);
	else if (w->is_main && w->depth == 0)
		op_thread(w);
}

static void replace_elsewhere(struct worker *w)
{
	int section = (int)pick(w, CHURN_SECTIONS);

	if (section == w->section || !__atomic_load_n(&busy[section], __ATOMIC_ACQUIRE))
		return;
	take(section);
	op_replace(w, section);
	drop(section);
}

static void do_op(struct worker *w)
{
	take(w->section);
	if (pick(w, 12))
		do_page_op(w);
	else
		do_process_op(w);
	drop(w->section);
	if (!pick(w, 8))
		replace_elsewhere(w);
	if (w->children)
		reap(w, WNOHANG);
}

/* A link: one operation below the frames of the chain. */
static void run_op(void **list, long spins)
{
	struct worker *w = list[0];

	(void)spins;
	w->links++;
	do_op(w);
	w->links--;
}

#define LINKS_MAX 8

/* Pages that can run, on the stack from here on. */
static int choose_links(struct worker *w, void **list, int *page)
{
	int want = 1 + (int)pick(w, LINKS_MAX - 3), n = 0;

	for (int i = 0; i < 4 * want && n < want; i++) {
		int p = (int)pick(w, CHURN_PAGES);
		const struct page *pg = &pages[w->section][p];
		const struct label *label = (void *)at(w->section, p);

		if (!pg->mapped || !(pg->prot & PROT_EXEC))
			continue;
		if (label->magic != MAGIC || label->file != pg->file ||
		    (!pg->anon && label->page != pg->pg)) {
			fprintf(stderr, "churner: %p has %x of %u, not %u of %u\n", (void *)label,
				label->page, label->file, pg->pg, pg->file);
			_exit(96);
		}
		pinned[w->section][p]++;
		page[n] = p;
		list[n++] = at(w->section, p) + STUB_AT;
	}
	return n;
}

static void run_chain(struct worker *w)
{
	void *list[LINKS_MAX + 2] = {NULL};
	int page[LINKS_MAX], n, links;
	struct library *lib = &libs[pick(w, LIBS)];

	take(w->section);
	links = n = choose_links(w, list, page);
	drop(w->section);
	lib = w->is_main && lib->handle ? lib : NULL;
	if (lib) {
		lib->pinned++;
		list[n++] = (void *)lib->run;
	}
	if (w->links < LINKS_DEEP && pick(w, 2)) {
		list[n++] = (void *)run_op;
		list[n] = w;
	}
	if (n)
		((link_fn *)list[0])(list + 1, 2000 + (long)pick(w, 20000));
	if (lib)
		lib->pinned--;
	take(w->section);
	for (int i = 0; i < links; i++)
		pinned[w->section][page[i]]--;
	drop(w->section);
}

static void churn(struct worker *w)
{
	while (w->ops-- > 0 && !is_over()) {
		do_op(w);
		run_chain(w);
	}
}

/* ---- beginning and end ----------------------------------------------------------------------- */

static void note_file(int fd)
{
	struct stat st;

	if (fstat(fd, &st))
		wl_die("fstat");
	lg->file[lg->file_cnt++] = (struct churn_file){major(st.st_dev), minor(st.st_dev), st.st_ino};
}

static void make_file(int k)
{
	static char text[FILE_PAGES * CHURN_PAGE];
	char path[4096];
	int fd;

	snprintf(path, sizeof(path), "%s/code%d", dir, k);
	fd = k < FILES - 2 ? open(path, O_RDWR | O_CREAT | O_EXCL, 0755) : memfd_create("code", 0);
	if (k == FILES - 3)
		unlink(path);
	for (uint32_t i = 0; i < FILE_PAGES; i++)
		write_code(text + i * CHURN_PAGE, (uint32_t)k, i);
	if (fd < 0 || write(fd, text, sizeof(text)) != sizeof(text) ||
	    dup2(fd, fd_of(k)) != fd_of(k))
		wl_die("%s", path);
	close(fd);
	note_file(fd_of(k));
}

static void make_files(void)
{
	char path[4096];
	int fd;

	for (int k = 0; k < FILES; k++)
		make_file(k);
	for (int i = 0; i < LIBS; i++) {
		lib_path(path, sizeof(path), i);
		fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
		if (fd < 0)
			wl_die("%s", path);
		wl_copy(wl_sibling("churner_lib"), fd);
		note_file(fd);
		close(fd);
	}
}

static void map_log(void)
{
	int fd = open(log_path, O_RDWR | O_CLOEXEC);

	lg = mmap(NULL, sizeof(*lg), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (fd < 0 || lg == MAP_FAILED)
		wl_die("%s", log_path);
	close(fd);
}

#define LAST_NS 200000000 /* of the time, without its leader */

static void churn_images(struct worker *w)
{
	churn(w);
	if (w->depth || lg->end_ns < now() + LAST_NS) {
		if (w->depth)
			leave(w);
		reap(w, 0);
		start_thread(be_survivor, w);
		pthread_exit(NULL);
	}
	be_next_image(w, 300, 0);
}

int main(int argc, char **argv)
{
	struct worker *w = &workers[0];
	bool first = argc == 5;
	uint64_t start_ns = now();

	wl_die_with_parent();
	if (argc != 5 && argc != 7)
		wl_die("churner LOG DIR SEED MS");
	log_path = argv[1];
	dir = argv[2];
	map_log();
	*w = (struct worker){.rng = strtoull(argv[3], NULL, 0) * 2 + 1,
			     .ops = first ? 300 : atoi(argv[4]),
			     .depth = first ? 0 : atoi(argv[6]),
			     .is_main = true,
			     .tgid = getpid(),
			     .tid = getpid()};
	if (first) {
		make_files();
		lg->end_ns = start_ns + strtoull(argv[4], NULL, 0) * 1000000;
	} else {
		execs = (uint32_t)atoi(argv[5]);
	}
	busy[0] = 1;
	mm = __atomic_add_fetch(&lg->mm, 1, __ATOMIC_RELAXED);
	bind_memory(w, CHURN_OP_START, start_ns);
	churn_images(w);
	return 0;
}
