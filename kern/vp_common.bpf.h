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
#include "vp_xmap.h"

/* Macros are not in BTF; the numbers are uapi or as old as the tree. */
#define EBUSY	   16
#define ENOENT	   2
#define E2BIG	   7
#define PF_KTHREAD 0x00200000
#define MAX_ERRNO  4095

#define PAGE_SHIFT 12

#endif
