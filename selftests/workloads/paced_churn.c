// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * paced_churn VMAS HZ [FILE]: has VMAS mappings, four of them code (its own, libc's, the dynamic
 * loader's, the vdso), and HZ times a second maps a page of anonymous executable memory, runs
 * 150 µs of code there and unmaps it, at an address that was not used for long, as JITs of
 * short-lived code do. FILE's first 8 bytes count the pages. Until it is killed.
 */
#include "workload.h"

#include <time.h>

#define PAGE  4096UL
#define SLOTS 1024UL

static char *slots;

/* Mappings of a page each: neighbours differ in protection. */
static void map_pages(unsigned long pages)
{
	char *base = mmap(NULL, (pages + 2) * PAGE, PROT_NONE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (base == MAP_FAILED)
		wl_die("mmap");
	munmap(base, PAGE);
	munmap(base + (pages + 1) * PAGE, PAGE);
	for (unsigned long i = 1; i <= pages; i += 2)
		if (mprotect(base + i * PAGE, PAGE, PROT_READ))
			wl_die("mprotect (vm.max_map_count?)");
}

/* Every other page of a hole, so that none merges with a neighbour. Nothing else is mapped later. */
static void reserve_slots(void)
{
	slots = mmap(NULL, 2 * SLOTS * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (slots == MAP_FAILED)
		wl_die("mmap");
	munmap(slots, 2 * SLOTS * PAGE);
}

static uint64_t *map_counter(const char *path)
{
	static uint64_t own;
	int fd = path ? open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600) : -1;
	uint64_t *shared;

	if (!path)
		return &own;
	if (fd < 0 || ftruncate(fd, (off_t)PAGE))
		wl_die("%s", path);
	shared = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (shared == MAP_FAILED)
		wl_die("mmap %s", path);
	close(fd);
	return shared;
}

static void run_code(void *page, uint32_t turns)
{
#ifdef __x86_64__
	/* mov ecx, turns; dec ecx; jnz -4; ret */
	unsigned char code[] = {0xb9, 0, 0, 0, 0, 0xff, 0xc9, 0x75, 0xfc, 0xc3};

	memcpy(code + 1, &turns, sizeof(turns));
	memcpy(page, code, sizeof(code));
	((void (*)(void))page)();
#else
	(void)turns;
	*(volatile char *)page = 1;
#endif
}

static void churn_once(unsigned long i, uint32_t turns)
{
	void *page = mmap(slots + 2 * (i % SLOTS) * PAGE, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	if (page == MAP_FAILED)
		wl_die("mmap");
	run_code(page, turns);
	munmap(page, PAGE);
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

/* Turns of the loop that take 150 µs: the fastest of some. */
static uint32_t turns_of_150_us(void)
{
	uint64_t best = UINT64_MAX;

	for (unsigned long i = 0; i < 20; i++) {
		uint64_t start = now_ns(), took;

		churn_once(i, 300000);
		took = now_ns() - start;
		best = took < best ? took : best;
	}
	return (uint32_t)(300000ULL * 150000 / best);
}

/* What could not be kept up with is left out: no bursts. */
static void wait_until(uint64_t *next, uint64_t step)
{
	uint64_t now = now_ns();
	struct timespec ts;

	*next += step;
	if (*next < now) {
		*next = now;
		return;
	}
	ts.tv_sec = (time_t)(*next / 1000000000);
	ts.tv_nsec = (long)(*next % 1000000000);
	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL);
}

int main(int argc, char **argv)
{
	long more, vmas = (long)wl_arg(argc, argv, 1, 1000);
	uint64_t step = (uint64_t)(1e9 / wl_arg(argc, argv, 2, 4000));
	uint64_t *counter = map_counter(argc > 3 ? argv[3] : NULL), next;
	uint32_t turns;

	wl_die_with_parent();
	prctl(PR_SET_TIMERSLACK, 1);
	/* stdio's buffer and the heap exist before they are counted */
	setvbuf(stdout, NULL, _IOLBF, 8192);
	wl_count_maps();
	more = vmas - wl_count_maps();
	if (more > 0)
		map_pages((unsigned long)more);
	reserve_slots();
	turns = turns_of_150_us();
	wl_ready("vmas=%ld", wl_count_maps());
	next = now_ns();
	for (unsigned long i = 0;; i++) {
		churn_once(i, turns);
		__atomic_store_n(counter, i, __ATOMIC_RELAXED);
		wait_until(&next, step);
	}
}
