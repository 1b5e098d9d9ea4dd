/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What this process changes of its own surroundings at start, and gives back to a child. */
#ifndef VP_PROCESS_H
#define VP_PROCESS_H

/*
 * Opens /dev/null where standard input, output or error is closed, so that no file of ours
 * gets their numbers; lets a write past a file size limit fail instead of killing; raises
 * the limit of descriptors as far as it goes; has malloc give back what it does not need.
 */
void vp_process_setup(void);

/* In a child, before it executes something else. */
void vp_process_restore(void);

#endif
