/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The user stack being made: its frames, and from a PC to a mapping, a file and an offset.
 */
#ifndef VP_RESOLVE_BPF_H
#define VP_RESOLVE_BPF_H

#include "vp_arch.bpf.h"
#include "vp_ask.bpf.h"
#include "vp_row_search.bpf.h"

/*
 * A stack on its way to the ring, and all that the unwinder remembers from frame to frame. That
 * lies here and not on the program's stack because of the verifier: what is in a map it does not
 * follow, and all functions of a call chain share 512 bytes.
 */
struct vp_stack_buf {
	__u32 taken;	      /* deferred mode: by an unwinding program */
	__u32 frame_off;      /* of the next frame in tail */
	__u32 first_off;      /* of the first */
	__u32 cnt;	      /* user frames */
	__u32 word;	      /* bytes of a stack slot: 8, or 4 in a 32-bit process */
	__u16 end;	      /* VP_END_* */
	__u16 in_syscall;     /* the task is in a system call … */
	__u16 behind_syscall; /* … and its pc right behind it */
	__u16 next_flags;     /* VP_FRAME_F_* of the frame to be pushed */
	__u64 ts_ns;	      /* of the sample: a mapping's record must not be later */
	__u64 pc;	      /* of the frame that was pushed last */
	__u64 sp;
	__u64 missing_code; /* where code could not be read; else 0 */
	__u64 missing;	    /* the address that could not be read, which ended the stack; else 0 */
	__u32 regs_known;   /* bit n: what register n holds in that frame is known … */
	__u32 regs_in_mem;  /* … and lies at the address reg[n] */
	__u64 reg[VP_REG_CNT];
	__u32 asked;	 /* inline mode: the one bpf_find_vma of this interrupt is spent */
	__u32 now_seq;	 /* vp_mapping_seq() now … */
	__u32 then_seq;	 /* … and when the sample was taken */
	__u64 then;	 /* VP_ASK_THEN(then_seq), or 0: that is now */
	__u64 doubt_pc;	 /* first frame whose mapping was last confirmed at another seq; 0: none */
	__u64 hit_start; /* range, offset base and file of the last frame's mapping */
	__u64 hit_end;
	__u64 hit_pgoff;
	struct vp_xmap found;	  /* what was asked for last */
	struct vp_far_answer far; /* what the shared cache had */
	__u32 hit_file_id;
	__u16 hit_verdict;
	__u16 hit_flags;		/* VP_FRAME_F_* of a frame in it */
	struct vp_cached_rule no_cache; /* used without a cache of this CPU */
	union {
		struct vp_rec_sample sample;
		struct {
			__u8 unused[sizeof(struct vp_rec_sample) -
				    sizeof(struct vp_rec_user_stack)];
			struct vp_rec_user_stack user;
		};
	};
	/* Of a sample: kernel addresses, then frames right behind them. */
	__u8 tail[VP_MAX_KERN_FRAMES * sizeof(__u64) +
		  VP_MAX_USER_FRAMES * sizeof(struct vp_frame)];
};

/* What the functions of the unwinder pass on, on the program's stack. */
struct vp_unwind {
	struct vp_stack_buf *buf;
	struct vp_proc *proc; /* NULL: no table */
	struct task_struct *task;
	struct vp_rule_cache *cache; /* NULL: somebody else has it */
};

static __always_inline void vp_remember_hit(struct vp_stack_buf *b, const struct vp_xmap *x)
{
	b->hit_start = x->start;
	b->hit_end = x->end;
	b->hit_pgoff = x->pgoff;
	b->hit_file_id = x->file_id;
	b->hit_verdict = x->verdict;
	b->hit_flags = x->flags & VP_XMAP_F_REMAPPED ? VP_FRAME_F_REMAPPED : 0;
}

static __always_inline bool vp_is_hit(const struct vp_stack_buf *b, __u64 at)
{
	return at >= b->hit_start && at < b->hit_end;
}

static __always_inline __u32 vp_resolve_unknown(struct vp_unwind *u, __u64 at, bool by_tree)
{
	struct vp_stack_buf *b = u->buf;
	__u32 verdict = vp_ask(at, b->ts_ns, &b->found, by_tree, b->then);

	b->asked |= !by_tree;
	if (u->proc && verdict != VP_VERDICT_BUSY)
		u->proc->barren = verdict > VP_VERDICT_SPECIAL;
	if (verdict <= VP_VERDICT_SPECIAL)
		vp_remember_hit(b, &b->found);
	return verdict;
}

/* In a barren process every second sample, by a bit of its time that is as good as random. */
static __always_inline bool vp_doubts_first(const struct vp_unwind *u)
{
	return u->buf->doubt_pc && u->proc && u->proc->barren && (u->buf->ts_ns >> 10) & 1;
}

/* Is `at` in a mapping that is kept with the process? Then it is the hit. */
static __always_inline bool vp_hit_near(struct vp_unwind *u, __u64 at, __u32 *seq)
{
	struct vp_stack_buf *b = u->buf;
	__u32 slot = vp_xmap_slot(u->proc, at);

	if (slot >= VP_XMAPS_PER_PROC)
		return false;
	/* Else clang computes the address before the check. */
	barrier_var(slot);
	vp_remember_hit(b, &u->proc->xmap[slot]);
	*seq = u->proc->seq[slot];
	return true;
}

static __always_inline bool vp_hit_far(struct vp_unwind *u, __u64 at, __u32 *seq)
{
	struct vp_far_answer *far = &u->buf->far;

	if (!u->proc->has_far || !vp_far_find(vp_far_owner(u->proc), at >> PAGE_SHIFT, far))
		return false;
	vp_remember_hit(u->buf, &far->xmap);
	*seq = far->seq;
	return vp_is_hit(u->buf, at);
}

/* Neither true now nor when the sample was taken. */
static __always_inline bool vp_is_stale(const struct vp_stack_buf *b, __u32 seq)
{
	return seq != b->now_seq && seq != b->then_seq;
}

/* Is `at` in a mapping that is known? Then it is the hit; *stale: that may have changed since. */
static __always_inline bool vp_hit_table(struct vp_unwind *u, __u64 at, bool *stale)
{
	struct vp_stack_buf *b = u->buf;
	__u32 version, seq = 0;
	bool far;

	if (!u->proc)
		return false;
	version = *(volatile __u32 *)&u->proc->version;
	/* By its page first, which takes as long as a fifth of the slots; a newer slot counts more. */
	far = vp_hit_far(u, at, &seq);
	if ((!far || vp_is_stale(b, seq)) && !vp_hit_near(u, at, &seq) && !far)
		return false;
	*stale = vp_is_stale(b, seq);
	/* What was copied while another CPU was writing it does not count. */
	if (version & 1 || *(volatile __u32 *)&u->proc->version != version)
		b->hit_end = 0;
	return vp_is_hit(b, at);
}

/* What is known of `at` is old: asked again, and the table put right. */
static __always_inline __u32 vp_resolve_stale(struct vp_unwind *u, __u64 at, bool by_tree)
{
	__u32 verdict = vp_resolve_unknown(u, at, by_tree);

	if (verdict > VP_VERDICT_SPECIAL) {
		u->buf->hit_end = 0;
		if (u->proc && verdict != VP_VERDICT_BUSY)
			vp_xmap_forget(u->proc, at);
	}
	return verdict;
}

/*
 * Known mappings first, then bpf_find_vma. Deferred mode asks for all that is unknown or may have
 * changed. Inline mode can ask once, for the first unknown address, and has the tree of the mm for
 * all others and for what may have changed.
 *
 * Where there is no such tree the others are BUSY, and doubts are left to vp_confirm; but an address
 * that is none at all, as frame pointers yield at the end of many a stack, is unknown in each sample
 * anew: where that happens, doubts come first now and then.
 */
static __always_inline __u32 vp_resolve(struct vp_unwind *u, __u64 at, bool deferred)
{
	struct vp_stack_buf *b = u->buf;
	bool stale = false;

	if (vp_is_hit(b, at))
		return b->hit_verdict;
	if (vp_hit_table(u, at, &stale)) {
		if (stale && (deferred || vp_mm_walk_on))
			return vp_resolve_stale(u, at, !deferred);
		if (stale && !b->doubt_pc)
			b->doubt_pc = at;
		return b->hit_verdict;
	}
	if (!deferred && !vp_mm_walk_on && (b->asked || vp_doubts_first(u)))
		return VP_VERDICT_BUSY;
	b->next_flags |= VP_FRAME_F_FRESH;
	return vp_resolve_unknown(u, at, !deferred && b->asked);
}

/* The resolution of f->pc by the mapping that was hit last. */
static __always_inline void vp_set_frame(const struct vp_stack_buf *b, struct vp_frame *f,
					 __u32 verdict)
{
	f->offset = 0;
	f->file_id = VP_FILE_ID_NONE;
	f->verdict = verdict;
	if (verdict == VP_VERDICT_FILE || verdict == VP_VERDICT_VDSO) {
		f->offset = f->pc - b->hit_start + b->hit_pgoff;
		f->file_id = b->hit_file_id;
		f->flags |= b->hit_flags;
	}
}

/* The frame at that place of the tail, or NULL. */
static __always_inline struct vp_frame *vp_frame_at(struct vp_stack_buf *b, __u32 off)
{
	if (off > sizeof(b->tail) - sizeof(struct vp_frame))
		return NULL;
	return (void *)b->tail + off;
}

/* The one that was pushed last. */
static __always_inline struct vp_frame *vp_last_frame(struct vp_stack_buf *b)
{
	return vp_frame_at(b, b->frame_off - sizeof(struct vp_frame));
}

/*
 * Resolves b->pc and appends it with b->next_flags; returns the verdict. What follows a call
 * may belong to another function, and even to another mapping: a return address is looked up
 * one byte before.
 */
static __always_inline __u32 vp_push_frame(struct vp_unwind *u, bool deferred)
{
	struct vp_stack_buf *b = u->buf;
	__u64 at = b->next_flags & VP_FRAME_F_LEAF ? b->pc : b->pc - 1;
	__u32 verdict = vp_resolve(u, at, deferred), off = b->frame_off;
	struct vp_frame *f = vp_frame_at(b, off);

	if (!f)
		return verdict;
	f->pc = b->pc;
	f->flags = b->next_flags;
	vp_set_frame(b, f, verdict);
	if (verdict == VP_VERDICT_BUSY)
		vp_count(VP_CNT_FRAMES_UNRESOLVED);
	b->frame_off = off + sizeof(*f);
	b->cnt++;
	return verdict;
}

/*
 * A frame that lies in the mapping asked for last is resolved by it. The offset comes from i:
 * a verifier that follows the loop would take each value of a counter for a new state.
 */
static long vp_mend_frame(__u32 i, void *data)
{
	struct vp_unwind *u = data;
	struct vp_stack_buf *b = u->buf;
	struct vp_frame *f = vp_frame_at(b, b->first_off + i * sizeof(*f));

	if (!f)
		return 1;
	if (vp_is_hit(b, f->flags & VP_FRAME_F_LEAF ? f->pc : f->pc - 1))
		vp_set_frame(b, f, b->hit_verdict);
	return 0;
}

/*
 * A question that is left goes to the first frame whose mapping was last confirmed before the
 * process changed its mappings. An answer that contradicts the table replaces it there and in
 * this sample.
 */
static __always_inline void vp_confirm(struct vp_unwind *u)
{
	struct vp_stack_buf *b = u->buf;
	__u32 verdict;

	if (!b->doubt_pc || b->asked || vp_mm_walk_on)
		return;
	verdict = vp_ask(b->doubt_pc, b->ts_ns, &b->found, false, 0);
	if (verdict == VP_VERDICT_BUSY)
		return;
	if (verdict <= VP_VERDICT_SPECIAL) {
		vp_remember_hit(b, &b->found);
	} else {
		if (u->proc)
			vp_xmap_forget(u->proc, b->doubt_pc);
		b->hit_start = b->doubt_pc;
		b->hit_end = b->doubt_pc + 1;
		b->hit_verdict = verdict;
	}
	bpf_loop(b->cnt, vp_mend_frame, u, 0);
}

#endif
