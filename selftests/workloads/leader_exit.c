// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * leader_exit [CPU_SECONDS]: the leader thread ends, the process lives on in a thread named
 * wl-survivor: survivor_main -> survivor_spin. READY survivor=TID (once the leader is gone).
 */
#include "workload.h"

#include <pthread.h>

static volatile unsigned long counter;
static double cpu_s;

void survivor_spin(void)
{
	WL_KEEP_FRAME();

	while (!wl_stop)
		counter++;
}

/* True once the leader is a zombie: /proc/PID/stat then says so. */
static int leader_is_gone(void)
{
	char path[64], line[256] = "";
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", getpid(), getpid());
	f = fopen(path, "r");
	if (!f)
		return 1;
	if (!fgets(line, sizeof(line), f))
		line[0] = '\0';
	fclose(f);
	return strstr(line, ") Z ") != NULL;
}

void *survivor_main(void *arg)
{
	prctl(PR_SET_NAME, "wl-survivor");
	/* the death signal must come from this thread's parent: the same process's parent */
	wl_die_with_parent();
	while (!leader_is_gone())
		sched_yield();
	wl_stop_after(cpu_s);
	wl_ready("survivor=%d", gettid());
	survivor_spin();
	_exit(0);
	return arg;
}

int main(int argc, char **argv)
{
	pthread_t thread;

	wl_die_with_parent();
	cpu_s = wl_arg(argc, argv, 1, 0);
	if ((errno = pthread_create(&thread, NULL, survivor_main, NULL)))
		wl_die("pthread_create");
	pthread_exit(NULL);
}
