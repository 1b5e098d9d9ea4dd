/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * xmaps, file identities and verdicts: what both sides say about an address of a process.
 */
#ifndef VP_XMAP_H
#define VP_XMAP_H

#include "vp_types.h"

/*
 * Verdict: what resolving a PC found. 0 is invalid: a record that carries it was not filled.
 * Append only; vp_verdict_name() in user/model/verdict.c must follow.
 */
#define VP_VERDICT_FILE	     1 /* file-backed and executable */
#define VP_VERDICT_ANON_EXEC 2 /* executable memory without a file: a JIT */
#define VP_VERDICT_VDSO	     3 /* the vdso */
#define VP_VERDICT_SPECIAL   4 /* [uprobes], [vsyscall] and other named special mappings */
#define VP_VERDICT_NOT_EXEC  5 /* mapped, but not executable */
#define VP_VERDICT_NO_VMA    6 /* nothing is mapped there */
#define VP_VERDICT_BUSY	     7 /* could not be asked: says nothing about the address */
#define VP_VERDICT_CNT	     8

/* x86's [vsyscall] page, which is no VMA, at the same place in all 64-bit processes. */
#define VP_VSYSCALL_ADDR 0xffffffffff600000UL
#define VP_VSYSCALL_END	 0xffffffffff601000UL

/*
 * File identity: equal for every process that maps the same inode with the same contents. dev is
 * the kernel's 32-bit dev_t (major << 20 | minor), as the kernel sees the file: on overlayfs that
 * is the layer's inode, so one library in fifty containers is one identity; on btrfs it is the
 * subvolume's, which stat(2) shows, too: inode numbers repeat in subvolumes.
 * No change time: a new hard link or another owner make no other file.
 */
struct vp_file_key {
	__u64 ino;
	__u64 mtime_ns;
	__u64 size_bytes; /* a file written in place may have its mtime put back */
	__u32 dev;
	__u32 ino_generation;
};

#define VP_DEV_MAJOR(dev) ((dev) >> 20)
#define VP_DEV_MINOR(dev) ((dev)&0xfffff)

/* file_id 0: not a file, or the table of identities was full (counted). */
#define VP_FILE_ID_NONE 0

/* flags of a vp_xmap */
#define VP_XMAP_F_REMAPPED (1 << 0) /* the file's text, copied into anonymous memory */

/* One executable mapping that is known of a process. end == 0: none. */
struct vp_xmap {
	__u64 start;
	__u64 end;
	__u64 pgoff; /* bytes; 0 for anonymous memory */
	__u32 file_id;
	__u16 verdict; /* VP_VERDICT_FILE, _ANON_EXEC, _VDSO or _SPECIAL */
	__u16 flags;   /* VP_XMAP_F_* */
};

_Static_assert(sizeof(struct vp_file_key) == 32, "hashed as bytes: no padding");
_Static_assert(sizeof(struct vp_xmap) == 32, "two to a cache line");

#endif
