// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * manyvmas N [exec|file]: a process with exactly N mappings as /proc/PID/maps counts them
 * ([vsyscall] included), all above those it is born with made by giving every other page of
 * one large mapping another protection. "exec": every other page is executable; "file": the
 * pages are of this executable, at differing offsets. Pauses.
 */
#include "workload.h"

#define PAGE 4096L

/* Splits one mapping of `pages` pages into that many: neighbours differ in protection. */
static void split(char *base, long pages, int prot)
{
	for (long i = 0; i < pages; i += 2)
		if (mprotect(base + i * PAGE, (size_t)PAGE, prot))
			wl_die("mprotect (vm.max_map_count?)");
}

static void map_anon(long pages, int prot)
{
	char *base = mmap(NULL, (size_t)((pages + 2) * PAGE), PROT_NONE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (base == MAP_FAILED)
		wl_die("mmap");
	/* free pages on both sides, so that it merges with no neighbour */
	munmap(base, (size_t)PAGE);
	munmap(base + (pages + 1) * PAGE, (size_t)PAGE);
	split(base + PAGE, pages, prot);
}

/* One page each, at offsets that do not continue: the kernel cannot merge them. */
static void map_file(long pages, int prot)
{
	int fd = open("/proc/self/exe", O_RDONLY);

	for (long i = 0; i < pages; i++)
		if (mmap(NULL, (size_t)PAGE, i % 2 ? PROT_READ : prot, MAP_PRIVATE, fd,
			 i % 3 * PAGE) == MAP_FAILED)
			wl_die("mmap (vm.max_map_count?)");
	close(fd);
}

int main(int argc, char **argv)
{
	long target = (long)wl_arg(argc, argv, 1, 1000);
	const char *kind = argc > 2 ? argv[2] : "anon";
	long more;

	wl_die_with_parent();
	/* stdio's buffer and the heap exist before they are counted */
	setvbuf(stdout, NULL, _IOLBF, 8192);
	wl_count_maps();
	more = target - wl_count_maps();
	if (more > 0) {
		if (!strcmp(kind, "file"))
			map_file(more, PROT_READ | PROT_EXEC);
		else
			map_anon(more, strcmp(kind, "exec") ? PROT_READ : PROT_READ | PROT_EXEC);
	}
	wl_ready("vmas=%ld", wl_count_maps());
	wl_pause();
}
