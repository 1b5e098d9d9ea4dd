// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * threads [CPU_SECONDS]: three threads named wl-alpha, wl-beta and wl-gamma, each in functions
 * of its own (alpha_main -> alpha_spin, …); the main thread waits.
 * READY names the thread ids: alpha=TID beta=TID gamma=TID.
 */
#include "workload.h"

#include <pthread.h>

static volatile unsigned long counters[3];
static volatile pid_t tids[3];
static pthread_barrier_t started;

static void announce(int i, const char *name)
{
	prctl(PR_SET_NAME, name);
	tids[i] = gettid();
	pthread_barrier_wait(&started);
}

#define THREAD(i, name)                                                                            \
	void name##_spin(void)                                                                     \
	{                                                                                          \
		WL_KEEP_FRAME();                                                                   \
		while (!wl_stop)                                                                   \
			counters[i]++;                                                             \
	}                                                                                          \
	void *name##_main(void *arg)                                                               \
	{                                                                                          \
		announce(i, "wl-" #name);                                                          \
		name##_spin();                                                                     \
		return arg;                                                                        \
	}

THREAD(0, alpha)
THREAD(1, beta)
THREAD(2, gamma)

int main(int argc, char **argv)
{
	void *(*const mains[])(void *) = {alpha_main, beta_main, gamma_main};
	pthread_t threads[3];

	wl_die_with_parent();
	pthread_barrier_init(&started, NULL, 4);
	wl_stop_after(wl_arg(argc, argv, 1, 0));
	for (int i = 0; i < 3; i++)
		if ((errno = pthread_create(&threads[i], NULL, mains[i], NULL)))
			wl_die("pthread_create");
	pthread_barrier_wait(&started);
	wl_ready("alpha=%d beta=%d gamma=%d", tids[0], tids[1], tids[2]);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
