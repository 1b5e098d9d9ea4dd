// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * jit [spin|call|both [CPU_SECONDS [map]]]: code made at run time, with frame pointers.
 *   spin: main -> run_jit_spin -> (JIT) jit_spin, a loop in the page
 *   call: main -> run_jit_call -> (JIT) jit_call -> called_from_jit
 *   both: the two by turns.
 * With "map", /tmp/perf-PID.map names the two functions; it is removed at the end.
 */
#include "workload.h"

typedef void spin_fn(volatile sig_atomic_t *stop, long rounds);
typedef void call_fn(void (*callback)(void));

static volatile unsigned long counter;
static long rounds = 2000000;
static char map_path[64];

/* jit_spin: push rbp; mov rbp,rsp; 1: cmp dword [rdi],0; jne 2; dec rsi; jnz 1; 2: pop rbp; ret */
static const unsigned char jit_spin[] = {0x55, 0x48, 0x89, 0xe5, 0x83, 0x3f, 0x00, 0x75,
					 0x05, 0x48, 0xff, 0xce, 0x75, 0xf6, 0x5d, 0xc3};
/* jit_call: push rbp; mov rbp,rsp; call rdi; pop rbp; ret */
static const unsigned char jit_call[] = {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3};
#define JIT_CALL_AT 0x100

void called_from_jit(void)
{
	WL_KEEP_FRAME();

	for (long i = 0; i < rounds && !wl_stop; i++)
		counter++;
}

void run_jit_spin(unsigned char *page)
{
	((spin_fn *)page)(&wl_stop, rounds);
	counter++;
}

void run_jit_call(unsigned char *page)
{
	((call_fn *)(page + JIT_CALL_AT))(called_from_jit);
	counter++;
}

static void write_perf_map(const unsigned char *page)
{
	FILE *f;

	snprintf(map_path, sizeof(map_path), "/tmp/perf-%d.map", getpid());
	f = fopen(map_path, "w");
	if (!f)
		wl_die("open %s", map_path);
	fprintf(f, "%lx %zx jit_spin\n", (unsigned long)page, sizeof(jit_spin));
	fprintf(f, "%lx %zx jit_call\n", (unsigned long)page + JIT_CALL_AT, sizeof(jit_call));
	fclose(f);
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "both";
	unsigned char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
				   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	wl_die_with_parent();
	if (page == MAP_FAILED)
		wl_die("mmap");
	memcpy(page, jit_spin, sizeof(jit_spin));
	memcpy(page + JIT_CALL_AT, jit_call, sizeof(jit_call));
	if (argc > 3)
		write_perf_map(page);
	wl_stop_after(wl_arg(argc, argv, 2, 0));
	wl_ready("page=%p spin=%zu call=%d", (void *)page, sizeof(jit_spin), JIT_CALL_AT);
	while (!wl_stop) {
		if (strcmp(mode, "call"))
			run_jit_spin(page);
		if (strcmp(mode, "spin"))
			run_jit_call(page);
	}
	if (map_path[0])
		unlink(map_path);
	return 0;
}
