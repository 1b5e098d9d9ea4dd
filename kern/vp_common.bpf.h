/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What every BPF object includes first: types, helpers, uapi constants, counters. */
#ifndef VP_COMMON_BPF_H
#define VP_COMMON_BPF_H

#include "vmlinux.h"

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#include "vp_counters.h"
#include "vp_record.h"
#include "vp_rows.h"
#include "vp_xmap.h"

/* Macros are not in BTF; the numbers are uapi or as old as the tree. */
#define EBUSY	       16
#define ENOENT	       2
#define E2BIG	       7
/* Threads that run in the kernel alone (include/linux/sched.h; the bits have not moved since 5.12). */
#define PF_KTHREAD     0x00200000
#define PF_IO_WORKER   0x00000010
#define PF_USER_WORKER 0x00004000 /* 6.4 */
#define PF_EXITING     0x00000004
#define MAX_ERRNO      4095

#define PAGE_SHIFT 12

/*
 * A member of a kernel structure, and a member of the structure that it points to. Through BTF
 * pointers a read is one instruction, but for each *pointer* read so, some verifiers search all
 * types by name, up to four times (6.18: a third of a millisecond). Objects that run once per
 * mapping define VP_DIRECT_READS before they include anything; the sampler and the tracker,
 * whose loading is waited for, read by bpf_probe_read_kernel.
 */
#ifdef VP_DIRECT_READS
#define VP_READ(p, f)	  ((p)->f)
#define VP_READ2(p, f, g) ((p)->f->g)
#else
#define VP_READ(p, f)	  BPF_CORE_READ(p, f)
#define VP_READ2(p, f, g) BPF_CORE_READ(p, f, g)
#endif

#endif
