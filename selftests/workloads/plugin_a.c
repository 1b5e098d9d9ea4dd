// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* build: -O1 -g -fno-omit-frame-pointer -fno-optimize-sibling-calls -fno-inline -pthread -shared -fPIC */
/* A shared object for dlhost: plugin_run -> plugin_a_spin. */
#include <signal.h>

static volatile unsigned long counter;

void plugin_a_spin(const volatile sig_atomic_t *stop)
{
	volatile int keep_frame = 0; /* see WL_KEEP_FRAME */

	(void)keep_frame;
	while (!*stop)
		counter++;
}

void plugin_run(const volatile sig_atomic_t *stop)
{
	plugin_a_spin(stop);
	counter++;
}
