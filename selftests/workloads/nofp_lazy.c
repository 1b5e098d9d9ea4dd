// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* build: -O2 -g -fomit-frame-pointer -pthread -ldl */
/*
 * nofp_lazy [CPU_SECONDS]: has calls of lazy_many bound all the time: main -> binds ->
 * lazy_round -> _dl_runtime_resolve_… -> _dl_fixup -> what looks up symbols.
 */
#include "nofp.h"

#include <dlfcn.h>

typedef int round_fn(int n);

WL_STEP int binds(round_fn *round)
{
	int n = 0;

	WL_SPOIL_REGISTERS();
	while (!wl_stop)
		n = round(0);
	return n;
}

int main(int argc, char **argv)
{
	void *lib = dlopen(wl_sibling("lazy_many"), RTLD_LAZY | RTLD_LOCAL);
	round_fn *round = lib ? (round_fn *)dlsym(lib, "lazy_round") : NULL;

	wl_die_with_parent();
	if (!round || round(0) < 0) {
		fprintf(stderr, "lazy_many: %s\n", dlerror());
		return 99;
	}
	wl_stop_after(wl_arg(argc, argv, 1, 0));
	wl_ready("lazy");
	return binds(round) == 1;
}
