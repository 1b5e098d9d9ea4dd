// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* zombie: keeps a child that has exited and is not waited for. READY zombie=PID. */
#include "workload.h"

int main(void)
{
	siginfo_t info;
	pid_t pid;

	wl_die_with_parent();
	pid = fork();
	if (pid < 0)
		wl_die("fork");
	if (!pid)
		_exit(0);
	if (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT))
		wl_die("waitid");
	wl_ready("zombie=%d", pid);
	wl_pause();
}
