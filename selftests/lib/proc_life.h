/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PROC_LIFE_H
#define PROC_LIFE_H

#include "../../include/vp_record.h"

#include <stddef.h>
#include <sys/types.h>

/* The life of a process that exists, as the kernel side would tell it; aborts if there is none. */
struct vp_proc_id proc_life(pid_t pid);

/* How many descriptors this process has open, by one that it opens to see; aborts if it cannot. */
size_t open_fds(void);

#endif
