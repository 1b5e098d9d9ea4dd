// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "thread_state.h"

#include <stdio.h>

char thread_state(pid_t tid)
{
	char path[64], state = '?';
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
	f = fopen(path, "re");
	if (f) {
		(void)!fscanf(f, "%*d (%*[^)]) %c", &state);
		fclose(f);
	}
	return state;
}
