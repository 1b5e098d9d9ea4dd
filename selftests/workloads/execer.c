// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * execer [CPU_SECONDS_BEFORE [COMMAND ARGS…]]: spins in main -> before_exec, then becomes the
 * command (default: the workload chain beside it, with the same CPU seconds).
 */
#include "workload.h"

static volatile unsigned long counter;

void before_exec(void)
{
	WL_KEEP_FRAME();

	while (!wl_stop)
		counter++;
}

int main(int argc, char **argv)
{
	char *chain_argv[] = {"chain", argc > 1 ? argv[1] : "0.5", NULL};

	wl_die_with_parent();
	wl_stop_after(wl_arg(argc, argv, 1, 0.5));
	wl_ready("execer");
	before_exec();
	if (argc > 2)
		execvp(argv[2], argv + 2);
	else
		execv(wl_sibling("chain"), chain_argv);
	wl_die("exec");
}
