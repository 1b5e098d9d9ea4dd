// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* build: -O1 -g -fomit-frame-pointer -fno-optimize-sibling-calls -fno-inline -ldl */
/*
 * birth LIBRARY MS: loads the library (plugin_a, plugin_nofp or a copy) at once and runs main ->
 * birth_work -> plugin_run -> plugin_…_spin until it is MS milliseconds old.
 */
#include "workload.h"

#include <dlfcn.h>

typedef void run_fn(const volatile sig_atomic_t *stop);

static volatile unsigned long runs;

void birth_work(run_fn *run)
{
	run(&wl_stop);
	runs++;
}

int main(int argc, char **argv)
{
	long us = (long)(wl_arg(argc, argv, 2, 40) * 1000);
	struct itimerval it = {.it_value = {us / 1000000, us % 1000000}};
	void *lib, *run;

	wl_die_with_parent();
	signal(SIGALRM, wl_on_signal);
	setitimer(ITIMER_REAL, &it, NULL);
	lib = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;
	run = lib ? dlsym(lib, "plugin_run") : NULL;
	if (!run)
		return 1;
	birth_work((run_fn *)run);
	return 0;
}
