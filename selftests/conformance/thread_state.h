/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef THREAD_STATE_H
#define THREAD_STATE_H

#include <sys/types.h>

/* Of a thread of this process: 'R', 'S', … as proc(5) has it; '?': there is none. */
char thread_state(pid_t tid);

#endif
