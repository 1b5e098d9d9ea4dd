// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * churn [CPU_SECONDS [THREADS]]: maps and unmaps executable anonymous memory as fast as it can,
 * as a JIT's allocator does (churn_anon), and spins a little in steady_spin between.
 * READY, then at the end "CHURNED N" mappings.
 */
#include "workload.h"

#include <pthread.h>

static volatile unsigned long counter;
static unsigned long mapped_cnt;

void steady_spin(void)
{
	WL_KEEP_FRAME();

	for (int i = 0; i < 20000 && !wl_stop; i++)
		counter++;
}

void churn_anon(void)
{
	for (int i = 0; i < 32; i++) {
		void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (p == MAP_FAILED)
			wl_die("mmap");
		munmap(p, 4096);
	}
	__atomic_fetch_add(&mapped_cnt, 32, __ATOMIC_RELAXED);
}

void *churner(void *arg)
{
	while (!wl_stop) {
		churn_anon();
		steady_spin();
	}
	return arg;
}

int main(int argc, char **argv)
{
	int threads = (int)wl_arg(argc, argv, 2, 1);
	pthread_t thread;

	wl_die_with_parent();
	wl_stop_after(wl_arg(argc, argv, 1, 0));
	for (int i = 1; i < threads; i++)
		if ((errno = pthread_create(&thread, NULL, churner, NULL)))
			wl_die("pthread_create");
	wl_ready("churn");
	churner(NULL);
	printf("CHURNED %lu\n", mapped_cnt);
	return 0;
}
