// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* build: -O2 -g -fomit-frame-pointer -pthread */
/*
 * nofp_libc [CPU_SECONDS]: spins in a function that libc calls: main -> searches -> bsearch ->
 * compares -> leaf.
 */
#include "nofp.h"

WL_STEP int leaf(int n)
{
	while (!wl_stop)
		wl_count++;
	return n;
}

WL_STEP int compares(const void *a, const void *b)
{
	WL_SPOIL_REGISTERS();
	return leaf(*(const int *)a) - *(const int *)b;
}

WL_STEP int searches(int n)
{
	/* the header has an inline version */
	void *(*volatile search)(const void *, const void *, size_t, size_t,
				 int (*)(const void *, const void *)) = bsearch;
	int numbers[] = {1, 2, 3, 4, 5, 6, 7};

	WL_SPOIL_REGISTERS();
	return search(&n, numbers, 7, sizeof(numbers[0]), compares) != NULL;
}

int main(int argc, char **argv)
{
	wl_die_with_parent();
	wl_stop_after(wl_arg(argc, argv, 1, 0));
	wl_ready("chain=main;searches;bsearch;compares;leaf");
	return searches(argc) + 1;
}
