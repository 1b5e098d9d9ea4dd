/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef VP_PIDNS_H
#define VP_PIDNS_H

#include <stdint.h>

/*
 * Inode number of this process's pid namespace, for the BPF programs' vp_pidns_inum; 0 in the
 * initial one, where the kernel's numbers are ours.
 */
uint32_t vp_pidns_inum(void);

#endif
