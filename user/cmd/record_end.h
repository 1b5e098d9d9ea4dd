/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What signals do once a recording is over and its result is being made: the first SIGINT or SIGTERM
 * that asks for an end has it already, one more throws the result away. SIGHUP changes nothing: a
 * terminal that goes away sends it along with others.
 */
#ifndef VP_RECORD_END_H
#define VP_RECORD_END_H

#include <stdbool.h>

/*
 * Before the waiter gives the signals back. temporary: the file to remove on giving up, or NULL;
 * copied. 0, -ENOMEM.
 */
int vp_end_signals_take(const char *temporary, bool quiet);

/* The recording was ended by a signal: the next one gives up. */
void vp_end_signals_used(void);

/* From here on one more signal does no harm: it is meant for a wait that the user was told of. */
void vp_end_signals_allow(void);

/* Signals that came since they were taken; a change tells a wait that it is to end. */
unsigned int vp_end_signals_cnt(void);

#endif
