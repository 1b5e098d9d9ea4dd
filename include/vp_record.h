/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Records on the ring buffer from the BPF programs to the reader.
 *
 * Every record starts with struct vp_rec_hdr, so an unknown kind can be skipped and counted.
 * VP_REC_X is struct vp_rec_x. Numbers are explicit and append only; 0 is invalid; retired
 * numbers stay as holes. All integers are in host byte order.
 */
#ifndef VP_RECORD_H
#define VP_RECORD_H

#include "vp_types.h"
#include "vp_xmap.h"

#define VP_REC_MMAP2	  1
#define VP_REC_SAMPLE	  2
#define VP_REC_EXEC	  3
#define VP_REC_FORK	  4
#define VP_REC_EXIT	  5
#define VP_REC_INHERIT	  6
#define VP_REC_USER_STACK 7
#define VP_REC_COMM	  8
#define VP_REC_KIND_CNT	  9

struct vp_rec_hdr {
	__u16 kind;
	__u16 flags; /* per kind: VP_MMAP2_F_*, VP_SAMPLE_F_*, … */
	__u32 size;  /* whole record in bytes, this header included */
	__u32 cpu;
	__u32 reserved;
	__u64 ts_ns; /* CLOCK_MONOTONIC */
};

/*
 * One life of a process: tgid as the reader's pid namespace numbers it, the leader's
 * start (CLOCK_BOOTTIME ns, so a reused tgid differs) and the exec count of that life.
 * Mappings belong to this triple and die with it.
 */
struct vp_proc_id {
	__u64 start_ns;
	__u32 tgid;
	__u32 exec_id;
};

#define VP_COMM_LEN 16
#define VP_PATH_MAX 4096

/*
 * The body of PERF_RECORD_MMAP2, byte for byte as perf lays it out (uapi/linux/perf_event.h),
 * up to the filename. The filename follows, NUL-terminated and NUL-padded to 8 bytes; size
 * (the __u16) covers this structure and the padded name, so a perf.data writer copies `size`
 * bytes from `type` and appends its own sample_id trailer.
 * maj:min, ino: the device and inode as user space sees them (stat, /proc).
 */
struct vp_perf_mmap2 {
	__u32 type; /* PERF_RECORD_MMAP2 = 10 */
	__u16 misc; /* PERF_RECORD_MISC_USER, | PERF_RECORD_MISC_MMAP_DATA if not executable */
	__u16 size;
	__u32 pid; /* tgid */
	__u32 tid; /* tgid: mappings belong to the process */
	__u64 addr;
	__u64 len;
	__u64 pgoff; /* bytes; 0 for anonymous memory */
	__u32 maj;
	__u32 min;
	__u64 ino;
	__u64 ino_generation;
	__u32 prot;  /* PROT_READ 1, PROT_WRITE 2, PROT_EXEC 4 */
	__u32 flags; /* MAP_SHARED 1, MAP_PRIVATE 2, MAP_LOCKED 0x2000, MAP_HUGETLB 0x40000 */
};

#define VP_PERF_RECORD_MMAP2   10
#define VP_PERF_MISC_USER      2
#define VP_PERF_MISC_MMAP_DATA (1 << 13)

/* flags of a VP_REC_MMAP2; 1 << 2 is retired */
#define VP_MMAP2_F_DELETED    (1 << 0) /* the file has no name any more */
#define VP_MMAP2_F_NAME_PARTS (1 << 1) /* the name is in parts: see below */
#define VP_MMAP2_F_NAME_CUT   (1 << 3) /* longer than VP_PATH_MAX: the name is "//toolong" */
#define VP_MMAP2_F_VSYSCALL   (1 << 4) /* this mm has the gate VMA, which no VMA walk shows */
#define VP_MMAP2_F_FROM_WALK  (1 << 5) /* from the task_vma walk: existed before live tracking */
#define VP_MMAP2_F_NAMELESS   (1 << 6) /* the file never had a place in a tree (memfd, …) */
/*
 * Anonymous memory where the main program's text was: it was moved there (huge pages for code). File
 * and offset are those of the text, the rest is what the kernel says of the memory.
 */
#define VP_MMAP2_F_REMAPPED   (1 << 7)

/*
 * A mapping. Published by whichever producer sees it first, before any sample that uses it.
 * After `perf` comes the filename: name_bytes of it with padding.
 *
 * The name is what the mapping process calls the file, from its root. With VP_MMAP2_F_NAME_PARTS
 * (where bpf_d_path is not allowed or would tell something else) it is the path's components leaf
 * first, each NUL-terminated: "libc.so.6\0lib\0usr\0" is "/usr/lib/libc.so.6"; the reader rebuilds
 * the body before anyone sees it.
 */
struct vp_rec_mmap2 {
	struct vp_rec_hdr hdr;
	struct vp_proc_id proc;
	struct vp_file_key file; /* all zero: no file */
	__u32 file_id;
	__u16 verdict; /* VP_VERDICT_* of an address in it */
	__u16 name_bytes;
	char comm[VP_COMM_LEN]; /* of the process's leader or the mapping thread */
	/* Of the process's known mappings: + 1 for each that is entered; 0: it was not entered. */
	__u32 generation;
	__u32 reserved;
	struct vp_perf_mmap2 perf;
	/* char filename[name_bytes]; */
};

/* How a frame was found. */
#define VP_FRAME_F_LEAF	    (1 << 0) /* interrupted here (also by a signal): pc is no return address */
#define VP_FRAME_F_FP	    (1 << 1) /* found by following the frame pointer */
#define VP_FRAME_F_FRESH    (1 << 2) /* resolved by bpf_find_vma in this sample */
#define VP_FRAME_F_NO_ROWS  (1 << 3) /* its file's unwind rows are not in the kernel (yet) */
#define VP_FRAME_F_REMAPPED (1 << 4) /* in a copy of the file's text: VP_MMAP2_F_REMAPPED */

/* One user frame, innermost first in a sample. */
struct vp_frame {
	__u64 pc;     /* run-time address as found; callers' are return addresses */
	__u64 offset; /* file offset: pc - start + pgoff; FILE and VDSO only, else 0 */
	__u32 file_id;
	__u16 verdict;
	__u16 flags; /* VP_FRAME_F_* */
};

/* Why a user stack ended. Append only; 0 is invalid. */
#define VP_END_BOTTOM	   1 /* the outermost frame was reached */
#define VP_END_NO_ROW	   2 /* no unwind row for this pc, and no usable frame pointer */
#define VP_END_BAD_MEMORY  3 /* the next frame could not be read */
#define VP_END_DEPTH	   4 /* VP_MAX_USER_FRAMES reached */
#define VP_END_UNKNOWN_PC  5 /* the return address lies in no executable mapping */
#define VP_END_BAD_FP	   6 /* the frame pointer does not go up the stack, or is unaligned */
#define VP_END_KERNEL_ONLY 7 /* kernel thread or dying task: no user stack */
#define VP_END_EXITED	   8 /* deferred: exited or exec'd before the stack could be taken */
#define VP_END_IN_KERNEL   9 /* deferred: still in the kernel when the recording ended */
#define VP_END_CNT	   10

#define VP_MAX_KERN_FRAMES 127
#define VP_MAX_USER_FRAMES 1024

/* flags of a VP_REC_SAMPLE */
#define VP_SAMPLE_F_KERNEL_MODE (1 << 0) /* interrupted in kernel mode */
#define VP_SAMPLE_F_KERN_CUT	(1 << 1) /* the kernel stack filled VP_MAX_KERN_FRAMES */
#define VP_SAMPLE_F_GUEST	(1 << 2) /* interrupted in a KVM guest: no frames */
#define VP_SAMPLE_F_DEFERRED	(1 << 3) /* the user part is a VP_REC_USER_STACK of the same cookie */

/*
 * One sample. The tail is kern_cnt * __u64 kernel addresses (innermost first), then
 * user_cnt * struct vp_frame. Written once by kern/sampler.bpf.c, read once by
 * user/model/decode.c.
 */
struct vp_rec_sample {
	struct vp_rec_hdr hdr;
	struct vp_proc_id proc;
	__u32 tid;
	__u16 kern_cnt;
	__u16 user_cnt;
	__u64 period; /* of the event: ns for cpu-clock, cycles for cycles */
	char comm[VP_COMM_LEN];
	__u16 user_end; /* VP_END_* */
	__u16 reserved[3];
	__u64 cookie; /* VP_SAMPLE_F_DEFERRED; else 0 */
};

/*
 * The user part of all samples of a thread that carry its cookie: those taken between two returns
 * to user mode. It may come before the last of them (an interrupt on the way out), never twice.
 * A thread that dies sends none. The tail is user_cnt * struct vp_frame.
 */
struct vp_rec_user_stack {
	struct vp_rec_hdr hdr; /* ts_ns: when it was taken */
	struct vp_proc_id proc;
	__u32 tid;
	__u16 user_cnt;
	__u16 user_end; /* VP_END_* */
	__u64 cookie;
};

/* A process replaced its image; proc is the new life. All older mappings of tgid are gone. */
struct vp_rec_exec {
	struct vp_rec_hdr hdr;
	struct vp_proc_id proc;
	__u32 tid;
	__u32 reserved;
	char comm[VP_COMM_LEN];
};

/* A thread (child.tgid == parent's tgid) or process was created. */
struct vp_rec_fork {
	struct vp_rec_hdr hdr;
	struct vp_proc_id child;
	__u32 child_tid;
	__u32 parent_tgid;
	__u32 parent_tid;
	__u32 reserved;
};

/* A thread exited; the last one of its process if tid's process has no thread left. */
struct vp_rec_exit {
	struct vp_rec_hdr hdr;
	struct vp_proc_id proc;
	__u32 tid;
	__u32 parent_tgid;
};

/* A thread was renamed, but not by an exec (which sends VP_REC_EXEC). */
struct vp_rec_comm {
	struct vp_rec_hdr hdr;
	struct vp_proc_id proc;
	__u32 tid;
	__u32 reserved;
	char comm[VP_COMM_LEN];
};

/* proc starts with a copy of all that is known of from's mappings (fork without exec). */
struct vp_rec_inherit {
	struct vp_rec_hdr hdr;
	struct vp_proc_id proc;
	struct vp_proc_id from;
};

_Static_assert(sizeof(struct vp_rec_hdr) == 24, "record header");
_Static_assert(sizeof(struct vp_proc_id) == 16, "process identity");
_Static_assert(sizeof(struct vp_perf_mmap2) == 72, "PERF_RECORD_MMAP2 up to filename");
_Static_assert(sizeof(struct vp_rec_mmap2) == 24 + 16 + 32 + 8 + 16 + 8 + 72, "tail follows perf");
_Static_assert(sizeof(struct vp_frame) == 24, "user frame");
_Static_assert(sizeof(struct vp_rec_sample) == 24 + 16 + 16 + 16 + 8 + 8,
	       "tail of 8-byte aligned words");
_Static_assert(sizeof(struct vp_rec_user_stack) == 56, "tail of 8-byte aligned words");
_Static_assert(sizeof(struct vp_rec_exec) == 64, "exec");
_Static_assert(sizeof(struct vp_rec_fork) == 56, "fork");
_Static_assert(sizeof(struct vp_rec_exit) == 48, "exit");
_Static_assert(sizeof(struct vp_rec_inherit) == 56, "inherit");
_Static_assert(sizeof(struct vp_rec_comm) == 64, "comm");

#endif
