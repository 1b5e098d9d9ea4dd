// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * exec_loop N ROUNDS: runs main -> loop_spin for ROUNDS turns, then becomes itself with N - 1,
 * under the other of its two names: exec_loop_a and exec_loop_b in the folder of argv[3]. Exits at
 * 0. N and ROUNDS are short: the next image is all that there is of it.
 */
#include "workload.h"

static volatile unsigned long counter;

void loop_spin(long rounds)
{
	WL_KEEP_FRAME();

	for (long i = 0; i < rounds; i++)
		counter++;
}

int main(int argc, char **argv)
{
	char left[24], path[4096];
	int n = (int)wl_arg(argc, argv, 1, 10);

	wl_die_with_parent();
	loop_spin((long)wl_arg(argc, argv, 2, 100000));
	if (n <= 0 || argc < 4)
		return 0;
	snprintf(left, sizeof(left), "%d", n - 1);
	snprintf(path, sizeof(path), "%s/exec_loop_%c", argv[3], n % 2 ? 'a' : 'b');
	execl(path, path, left, argv[2], argv[3], (char *)NULL);
	wl_die("%s", path);
}
