// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* build: -O2 -g -fomit-frame-pointer -pthread */
/*
 * nofp_kernel [read|fault [CPU_SECONDS]]: spends its time in the kernel.
 *
 *   read   main -> reads -> read of libc, of /dev/zero
 *   fault  main -> touches, page faults, and then madvise of libc
 */
#include "nofp.h"

#define BYTES (8 << 20)

WL_STEP long reads(char *buffer)
{
	int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	long sum = 0;

	if (fd < 0)
		wl_die("/dev/zero");
	WL_SPOIL_REGISTERS();
	while (!wl_stop)
		sum += read(fd, buffer, BYTES);
	return sum;
}

WL_STEP long touches(char *buffer)
{
	long sum = 0;

	WL_SPOIL_REGISTERS();
	while (!wl_stop) {
		for (size_t i = 0; i < BYTES; i += 4096)
			buffer[i] = 1;
		sum += madvise(buffer, BYTES, MADV_DONTNEED);
	}
	return sum;
}

int main(int argc, char **argv)
{
	char *buffer =
		mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (buffer == MAP_FAILED)
		wl_die("mmap");
	wl_die_with_parent();
	wl_stop_after(wl_arg(argc, argv, 2, 0));
	if (argc > 1 && !strcmp(argv[1], "fault")) {
		wl_ready("chain=main;touches|main;touches;madvise");
		return touches(buffer) == 1;
	}
	wl_ready("chain=main;reads|main;reads;read");
	return reads(buffer) == 1;
}
