// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* build: -O1 -g -fno-omit-frame-pointer -fno-optimize-sibling-calls -fno-inline -static */
/*
 * jit_names map|dump|grow|memfd|none [CPU_SECONDS [fork]]: a JIT that tells of its code. In its one page are
 *   made_first, made_second   by turns, as main -> run_made -> made_*
 * and an earlier name of made_second, made_stale, which is not to be seen.
 *   map, memfd  /tmp/perf-PID.map, amid lines that are none; memfd: the page is a file's
 *   dump        ./jit-PID.dump, mapped executable; made_first is of lines 7 and, from byte 4 on, 8 of
 *               /made/first.src
 *   grow        as map, but made_second is told of when it has run for a third of the time
 * With fork a copy of the process runs them, whose pid is in the READY line; it tells nothing.
 */
#include "workload.h"

#include <time.h>

typedef void made_fn(volatile sig_atomic_t *stop, long rounds);

/* push rbp; mov rbp,rsp; 1: cmp dword [rdi],0; jne 2; dec rsi; jnz 1; 2: pop rbp; ret */
static const unsigned char loop[] = {0x55, 0x48, 0x89, 0xe5, 0x83, 0x3f, 0x00, 0x75,
				     0x05, 0x48, 0xff, 0xce, 0x75, 0xf6, 0x5d, 0xc3};
#define SECOND_AT  0x100
#define SLOT_BYTES 0x80

static volatile unsigned long counter;

void run_made(made_fn *made)
{
	made(&wl_stop, 2000000);
	counter++;
}

static unsigned char *make_page(int in_memfd)
{
	int fd = in_memfd ? memfd_create("jit-names", 0) : -1;
	unsigned char *page;

	if (in_memfd && ftruncate(fd, 4096))
		wl_die("memfd");
	page = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
		    in_memfd ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS, fd, 0);
	if (page == MAP_FAILED)
		wl_die("mmap");
	memcpy(page, loop, sizeof(loop));
	memcpy(page + SECOND_AT, loop, sizeof(loop));
	return page;
}

/* ---- a perf map ---- */

static FILE *map_file;

static void tell(unsigned char *at, const char *name)
{
	fprintf(map_file, "%lx %x %s\n", (unsigned long)at, SLOT_BYTES, name);
	fflush(map_file);
}

static void open_map(void)
{
	char path[64];

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	map_file = fopen(path, "w");
	if (!map_file)
		wl_die("open %s", path);
	fputs("no line\n\n12 zz what\n", map_file);
}

/* ---- a jitdump ---- */

static void put(FILE *f, const void *bytes, size_t n)
{
	if (fwrite(bytes, 1, n, f) != n)
		wl_die("write");
}

static void put32(FILE *f, uint32_t v)
{
	put(f, &v, sizeof(v));
}

static void put64(FILE *f, uint64_t v)
{
	put(f, &v, sizeof(v));
}

static void put_load(FILE *f, const unsigned char *at, const char *name, uint64_t number)
{
	put32(f, 0);
	put32(f, (uint32_t)(56 + strlen(name) + 1 + SLOT_BYTES));
	put64(f, number);
	put32(f, (uint32_t)getpid());
	put32(f, (uint32_t)getpid());
	put64(f, (uint64_t)(uintptr_t)at);
	put64(f, (uint64_t)(uintptr_t)at);
	put64(f, SLOT_BYTES);
	put64(f, number);
	put(f, name, strlen(name) + 1);
	put(f, at, SLOT_BYTES);
}

static void put_line(FILE *f, const unsigned char *at, uint32_t line, const char *file)
{
	put64(f, (uint64_t)(uintptr_t)at);
	put32(f, line);
	put32(f, 0);
	put(f, file, strlen(file) + 1);
}

/* The second line is in the same file. */
static void put_lines(FILE *f, const unsigned char *at, const char *file)
{
	put32(f, 2);
	put32(f, (uint32_t)(32 + 2 * 16 + strlen(file) + 1 + sizeof("\xff")));
	put64(f, 1);
	put64(f, (uint64_t)(uintptr_t)at);
	put64(f, 2);
	put_line(f, at, 7, file);
	put_line(f, at + 4, 8, "\xff");
}

static void write_dump(unsigned char *page)
{
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "jit-%d.dump", getpid());
	f = fopen(path, "w+");
	if (!f)
		wl_die("open %s", path);
	put32(f, 0x4a695444);
	put32(f, 1);
	put32(f, 40);
	put32(f, 62);
	put32(f, 0);
	put32(f, (uint32_t)getpid());
	put64(f, 0);
	put64(f, 0);
	fflush(f);
	if (mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fileno(f), 0) == MAP_FAILED)
		wl_die("map the dump");
	put_lines(f, page, "/made/first.src");
	put_load(f, page, "made_first", 1);
	put_load(f, page + SECOND_AT, "made_stale", 2);
	put_load(f, page + SECOND_AT, "made_second", 3);
	fclose(f);
}

/* The copy goes on; the one that has told of the code waits for its end. */
static void go_on_in_a_copy(void)
{
	pid_t pid = fork();

	if (pid < 0)
		wl_die("fork");
	if (pid == 0) {
		wl_die_with_parent();
		return;
	}
	waitpid(pid, NULL, 0);
	exit(0);
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "map";
	double seconds = wl_arg(argc, argv, 2, 0);
	unsigned char *page = make_page(!strcmp(mode, "memfd"));
	int grows = !strcmp(mode, "grow");

	wl_die_with_parent();
	if (!strcmp(mode, "dump"))
		write_dump(page);
	if (grows || !strcmp(mode, "map") || !strcmp(mode, "memfd")) {
		open_map();
		tell(page, "made_first");
		tell(page + SECOND_AT, "made_stale");
		if (!grows)
			tell(page + SECOND_AT, "made_second");
	}
	if (argc > 3 && !strcmp(argv[3], "fork"))
		go_on_in_a_copy();
	wl_stop_after(seconds);
	wl_ready("page=%p", (void *)page);
	while (!wl_stop) {
		run_made((made_fn *)page);
		run_made((made_fn *)(page + SECOND_AT));
		if (grows && clock() > seconds * CLOCKS_PER_SEC / 3) {
			tell(page + SECOND_AT, "made_second");
			grows = 0;
		}
	}
	return 0;
}
