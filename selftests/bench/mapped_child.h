// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* A process with an exact number of mappings, which walks and lookups look at. */
#ifndef MAPPED_CHILD_H
#define MAPPED_CHILD_H

#include "bench.h"

#include <fcntl.h>
#include <glob.h>
#include <sys/mman.h>

#define CHILD_PAGE	4096L
#define CHILD_FILES	40     /* executable mappings of as many files */
#define CHILD_ONE_PAGES 16384L /* of one large mapping */

enum child_shape {
	CHILD_FEW,	 /* CHILD_FILES executable mappings, all others anonymous */
	CHILD_HALF_ANON, /* … and every other one of the others executable */
	CHILD_HALF_FILE, /* … and all of them of a file, every other one executable */
};

/* base: `pages` mappings of a page each (not CHILD_HALF_FILE); one: a single large one. */
struct mapped_child {
	pid_t pid;
	uint64_t base, pages;
	uint64_t one, one_pages;
};

BENCH long child_count_maps(pid_t pid)
{
	char path[64];
	long lines = 0;
	FILE *f;
	int c;

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	f = fopen(path, "re");
	if (!f)
		bench_die("%s: %s", path, strerror(errno));
	while ((c = getc_unlocked(f)) != EOF)
		lines += c == '\n';
	fclose(f);
	return lines;
}

/* One executable page of each of CHILD_FILES files. */
BENCH void child_map_files(void)
{
	glob_t g;
	int mapped = 0;

	if (glob("/usr/bin/*", 0, NULL, &g))
		_exit(1);
	for (size_t i = 0; i < g.gl_pathc && mapped < CHILD_FILES; i++) {
		int fd = open(g.gl_pathv[i], O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

		if (fd < 0)
			continue;
		mapped += mmap(NULL, CHILD_PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) !=
			  MAP_FAILED;
		close(fd);
	}
	globfree(&g);
	if (mapped < CHILD_FILES)
		_exit(1);
}

/* Inaccessible pages with a free one on both sides, so that they merge with no neighbour. */
BENCH char *child_reserve(long pages)
{
	char *base = mmap(NULL, (size_t)((pages + 2) * CHILD_PAGE), PROT_NONE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (base == MAP_FAILED)
		_exit(1);
	munmap(base, CHILD_PAGE);
	munmap(base + (pages + 1) * CHILD_PAGE, CHILD_PAGE);
	return base + CHILD_PAGE;
}

/* Neighbours differ in protection: a mapping a page. */
BENCH void child_map_anon(struct mapped_child *c, long pages, int prot)
{
	char *base = child_reserve(pages);

	for (long i = 0; i < pages; i += 2)
		if (mprotect(base + i * CHILD_PAGE, CHILD_PAGE, prot))
			_exit(1);
	c->base = (uint64_t)base;
	c->pages = (uint64_t)pages;
}

/* One page each, at offsets that do not continue: the kernel cannot merge them. */
BENCH void child_map_file(long pages)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	for (long i = 0; i < pages; i++)
		if (mmap(NULL, CHILD_PAGE, i % 2 ? PROT_READ : PROT_READ | PROT_EXEC, MAP_PRIVATE,
			 fd, i % 3 * CHILD_PAGE) == MAP_FAILED)
			_exit(1);
	close(fd);
}

BENCH void child_map(struct mapped_child *c, enum child_shape shape, long total)
{
	long more;

	child_map_files();
	c->one = (uint64_t)child_reserve(CHILD_ONE_PAGES);
	c->one_pages = CHILD_ONE_PAGES;
	child_count_maps(getpid()); /* stdio's own memory exists before the count */
	more = total - child_count_maps(getpid());
	if (shape == CHILD_HALF_FILE)
		child_map_file(more);
	else
		child_map_anon(c, more,
			       shape == CHILD_HALF_ANON ? PROT_READ | PROT_EXEC : PROT_READ);
}

/* `total` mappings as /proc/PID/maps counts them. Ends with us or by bench_kill. */
BENCH struct mapped_child child_start(enum child_shape shape, long total)
{
	struct mapped_child *shared = mmap(NULL, CHILD_PAGE, PROT_READ | PROT_WRITE,
					   MAP_SHARED | MAP_ANONYMOUS, -1, 0),
			    c;
	pid_t parent = getpid();
	int ready[2];
	char byte;

	if (shared == MAP_FAILED || pipe(ready))
		bench_die("a process with many mappings: %s", strerror(errno));
	fflush(stdout);
	c.pid = fork();
	if (c.pid == 0) {
		bench_die_with_parent(parent);
		close(ready[0]);
		child_map(shared, shape, total);
		if (write(ready[1], "", 1) == 1)
			pause();
		_exit(1);
	}
	close(ready[1]);
	if (c.pid < 0 || read(ready[0], &byte, 1) != 1)
		bench_die("a process with %ld mappings could not be made (vm.max_map_count?)",
			  total);
	close(ready[0]);
	shared->pid = c.pid;
	c = *shared;
	munmap(shared, CHILD_PAGE);
	if (child_count_maps(c.pid) != total)
		bench_die("the process has %ld mappings, not %ld", child_count_maps(c.pid), total);
	return c;
}

#endif
