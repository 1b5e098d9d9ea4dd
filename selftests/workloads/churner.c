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
#include "churner_pages.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <link.h>
#include <pthread.h>
#include <spawn.h>
#include <sys/sysmacros.h>

/* ---- libraries ------------------------------------------------------------------------------- */

static int find_code(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct library *lib = arg;
	const uint64_t mask = CHURN_PAGE - 1;

	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
		uint64_t start = info->dlpi_addr + ph->p_vaddr;

		if (ph->p_type != PT_LOAD || !(ph->p_flags & PF_X) || (uint64_t)lib->run < start ||
		    (uint64_t)lib->run >= start + ph->p_memsz)
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
	child.children = 0;
	bind_memory(&child, CHURN_OP_VFORK, before_ns);
	do_page_op(&child);
	drop(w->section);
	run_chain(&child);
	if (pick(&child, 2))
		be_next_image(&child, 20, w->depth + 1);
	leave(&child);
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
	lg->file[lg->file_cnt++] =
		(struct churn_file){major(st.st_dev), minor(st.st_dev), st.st_ino};
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
