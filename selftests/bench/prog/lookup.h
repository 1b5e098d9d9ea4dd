/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Shared by lookup.bpf.c and lookup.c. */
#ifndef LOOKUP_H
#define LOOKUP_H

#include "vp_xmap.h"

#define LOOKUP_PCS	 4096 /* a power of two */
#define LOOKUP_XMAPS_MAX 8192 /* a power of two */
#define LOOKUP_TGID	 77

/* A trie's key: both numbers as bytes, the highest first. */
struct lookup_prefix {
	__u32 bits;
	__u32 tgid;
	__u64 addr;
};

struct lookup_page {
	__u64 tgid;
	__u64 page;
};

#define LOOKUP_WAYS	4
#define LOOKUP_SET_BITS 14

struct lookup_set {
	__u64 page[LOOKUP_WAYS]; /* 0: empty */
	struct vp_xmap xmap[LOOKUP_WAYS];
};

static inline __u32 lookup_set_of(__u64 page)
{
	return (__u32)(((page ^ LOOKUP_TGID) * 0x9e3779b97f4a7c15ULL) >> (64 - LOOKUP_SET_BITS));
}

#endif
