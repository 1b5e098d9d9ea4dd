// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* build: -O1 -g -fomit-frame-pointer -fno-optimize-sibling-calls -fno-inline -shared -fPIC */
/* A shared object for birth, without frame pointers: plugin_run -> plugin_nofp_spin. */
#include <signal.h>

static volatile unsigned long counter;

void plugin_nofp_spin(const volatile sig_atomic_t *stop)
{
	while (!*stop)
		counter++;
}

void plugin_run(const volatile sig_atomic_t *stop)
{
	plugin_nofp_spin(stop);
	counter++;
}
