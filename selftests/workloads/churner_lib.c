// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* build: -O1 -g -fno-omit-frame-pointer -fno-optimize-sibling-calls -fno-inline -shared -fPIC */
/* A shared object that churner loads copies of: spins, calls the next of its list, spins. */
typedef void link_fn(void **list, long spins);

static void lib_spin(long spins)
{
	volatile long left = spins / 4;

	while (left > 0)
		left--;
}

void churner_lib_run(void **list, long spins)
{
	lib_spin(spins);
	if (list[0])
		((link_fn *)list[0])(list + 1, spins);
	lib_spin(spins);
}
