// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * syscaller [CPU_SECONDS]: main -> read_zeros -> enter_kernel, which spends its time in
 * read(2) of /dev/zero. The system call is made here, not in libc, whose wrapper has no frame.
 */
#include "workload.h"

#include <sys/syscall.h>

static char buffer[1 << 20];

__attribute__((noinline)) long enter_kernel(int fd)
{
	WL_KEEP_FRAME();
	long ret;

	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "a"(SYS_read), "D"(fd), "S"(buffer), "d"(sizeof(buffer))
			 : "rcx", "r11", "memory");
	return ret;
}

long read_zeros(int fd)
{
	long sum = 0;

	while (!wl_stop)
		sum += enter_kernel(fd);
	return sum;
}

int main(int argc, char **argv)
{
	int fd = open("/dev/zero", O_RDONLY);

	wl_die_with_parent();
	if (fd < 0)
		wl_die("open /dev/zero");
	wl_stop_after(wl_arg(argc, argv, 1, 0));
	wl_ready("syscaller");
	return read_zeros(fd) < 0;
}
