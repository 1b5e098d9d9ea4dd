// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* build: -O1 -g -fno-omit-frame-pointer -fno-optimize-sibling-calls -fno-inline -pthread -ldl */
/*
 * dlhost [CPU_SECONDS [ROUNDS [PLUGIN…]]]: spins in main -> before_load, then by turns loads each
 * plugin (plugin_a and plugin_b), runs main -> run_plugin -> plugin_run -> plugin_a_spin (or
 * _b_), and unloads it: the two lie at the same address one after the other. CPU_SECONDS (0.4)
 * for each step. At the end: "SAME yes" or "SAME no", whether all addresses were equal.
 */
#include "workload.h"

#include <dlfcn.h>

typedef void run_fn(const volatile sig_atomic_t *stop);

static volatile unsigned long counter;

void before_load(void)
{
	WL_KEEP_FRAME();

	while (!wl_stop)
		counter++;
}

void *run_plugin(const char *name, double cpu_s)
{
	void *lib = dlopen(wl_sibling(name), RTLD_NOW | RTLD_LOCAL);
	run_fn *run = lib ? (run_fn *)dlsym(lib, "plugin_run") : NULL;

	if (!run) {
		fprintf(stderr, "%s\n", dlerror());
		_exit(99);
	}
	wl_stop_after(cpu_s);
	run(&wl_stop);
	dlclose(lib);
	return (void *)run;
}

int main(int argc, char **argv)
{
	char *both[] = {"plugin_a", "plugin_b"};
	double cpu_s = wl_arg(argc, argv, 1, 0.4);
	int rounds = (int)wl_arg(argc, argv, 2, 1);
	char **plugins = argc > 3 ? argv + 3 : both;
	int plugin_cnt = argc > 3 ? argc - 3 : 2;
	void *first = NULL, *at = NULL;
	int same = 1;

	wl_die_with_parent();
	wl_stop_after(cpu_s);
	wl_ready("dlhost");
	before_load();
	for (int i = 0; i < rounds * plugin_cnt; i++) {
		at = run_plugin(plugins[i % plugin_cnt], cpu_s);
		first = first ? first : at;
		same &= at == first;
	}
	printf("SAME %s\n", same ? "yes" : "no");
	return 0;
}
