/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Fixed-width types for headers that both sides include. BPF objects get them from
 * vmlinux.h (kern/vp_common.bpf.h includes it first), user space from <linux/types.h>.
 */
#ifndef VP_TYPES_H
#define VP_TYPES_H

#ifndef __bpf__
#include <linux/types.h>
#endif

#endif
