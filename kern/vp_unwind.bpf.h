/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The user stack: by the rows of the files that its frames are in and, where there are none, by
 * frame pointers.
 */
#ifndef VP_UNWIND_BPF_H
#define VP_UNWIND_BPF_H

#include "vp_resolve.bpf.h"
#include "vp_target.h"

const volatile __u32 vp_call_graph = VP_CALL_GRAPH_AUTO;

/*
 * User memory. A page that is not there is not brought in here: the deferred program does that
 * between two attempts, when it holds nothing that others wait for.
 */
static __always_inline long vp_read_user(struct vp_stack_buf *b, void *to, __u32 size, __u64 addr)
{
	long err = bpf_probe_read_user(to, size, (void *)addr);

	if (err)
		b->missing = addr;
	return err;
}

static __always_inline long vp_read_word(struct vp_stack_buf *b, __u64 *to, __u64 addr)
{
	return vp_read_user(b, to, sizeof(*to), addr);
}

/* What register n held in the frame; one that was saved is read when it is needed. */
static __always_inline bool vp_get_reg(struct vp_stack_buf *b, __u32 n, __u64 *value)
{
	__u32 bit = 1U << (n & 31);

	if (n == VP_REG_SP) {
		*value = b->sp;
		return true;
	}
	if (n >= VP_REG_CNT || !(b->regs_known & bit))
		return false;
	if (b->regs_in_mem & bit) {
		if (vp_read_word(b, value, b->reg[n]))
			return false;
		b->reg[n] = *value;
		b->regs_in_mem &= ~bit;
	}
	*value = b->reg[n];
	return true;
}

static __always_inline void vp_set_reg(struct vp_stack_buf *b, __u32 n, __u64 value)
{
	b->reg[n] = value;
	b->regs_known |= 1U << n;
	b->regs_in_mem &= ~(1U << n);
}

/* One slot of a rule: where the caller's value is, if not where it was. */
static __always_inline void vp_restore(struct vp_stack_buf *b, __u32 n, __s16 saved, __u64 from)
{
	if (saved == VP_SAVED_SAME)
		return;
	if (saved == VP_SAVED_LOST) {
		b->regs_known &= ~(1U << n);
		return;
	}
	b->reg[n] = from + (__s64)saved * 8;
	b->regs_known |= 1U << n;
	b->regs_in_mem |= 1U << n;
}

static __always_inline long vp_end(struct vp_stack_buf *b, __u16 why)
{
	b->end = why;
	return 1;
}

/* The caller's frame has been found: sp, fp and pc are its own. 1 if it is no frame. */
static __always_inline long vp_arrive(struct vp_unwind *u, __u64 sp, __u64 pc, __u16 flags,
				      bool deferred)
{
	struct vp_stack_buf *b = u->buf;
	__u32 verdict;

	if (pc == 0)
		return vp_end(b, VP_END_BOTTOM);
	if (vp_is_no_pc(pc))
		return vp_end(b, VP_END_UNKNOWN_PC);
	if (b->cnt >= VP_MAX_USER_FRAMES)
		return vp_end(b, VP_END_DEPTH);
	b->sp = sp;
	b->pc = pc;
	b->next_flags = flags;
	verdict = vp_push_frame(u, deferred);
	if (verdict == VP_VERDICT_NO_VMA || verdict == VP_VERDICT_NOT_EXEC)
		return vp_end(b, VP_END_UNKNOWN_PC);
	return 0;
}

/* {saved frame pointer, return address} at fp, for both widths. */
static __always_inline long vp_read_frame(struct vp_stack_buf *b, __u64 fp, __u64 next[2])
{
	__u32 narrow[2];
	long err;

	if (b->word == 8)
		return vp_read_user(b, next, 16, fp);
	err = vp_read_user(b, narrow, sizeof(narrow), fp);
	next[0] = narrow[0];
	next[1] = narrow[1];
	return err;
}

/* What a step by frame pointer that led nowhere says of the stack. */
static __always_inline long vp_end_fp(struct vp_stack_buf *b, __u16 why, bool fallback)
{
	return vp_end(b, fallback ? VP_END_NO_ROW : why);
}

/*
 * Outwards along the frame pointer, which must lie above the last frame; so a loop in hostile
 * memory ends, too. If `fallback`, rows were wanted and there were none: then the register may be
 * no frame pointer at all, and its being 0 says that the stack ends here only where the last step
 * was by frame pointer, too (`following`).
 */
static __always_inline long vp_step_fp(struct vp_unwind *u, bool fallback, bool following,
				       bool deferred)
{
	struct vp_stack_buf *b = u->buf;
	__u64 fp, next[2];
	__u32 word = b->word, cnt = b->cnt;

	if (!vp_get_reg(b, VP_REG_FP, &fp))
		return vp_end(b, VP_END_NO_ROW);
	if (fallback && vp_call_graph == VP_CALL_GRAPH_DWARF)
		return vp_end(b, VP_END_NO_ROW);
	if (fp == 0)
		return vp_end_fp(b, VP_END_BOTTOM, fallback && !following);
	if (fp < b->sp || (fp & (word - 1)))
		return vp_end_fp(b, VP_END_BAD_FP, fallback);
	if (vp_read_frame(b, fp, next))
		return vp_end_fp(b, VP_END_BAD_MEMORY, fallback);
	/* What the others held in the caller, nobody says. */
	b->regs_known = 0;
	vp_set_reg(b, VP_REG_FP, next[0]);
	if (!vp_arrive(u, fp + 2 * word, next[1], VP_FRAME_F_FP, deferred))
		return 0;
	if (fallback && !following && b->end == VP_END_BOTTOM)
		b->end = VP_END_NO_ROW;
	/* Tried in vain: what it found is no code, so no frame. */
	if (fallback && b->end == VP_END_UNKNOWN_PC) {
		if (b->cnt != cnt)
			b->frame_off -= sizeof(struct vp_frame);
		b->cnt = cnt;
		b->end = VP_END_NO_ROW;
	}
	return 1;
}

/* The CFA by a rule. False: the register's value is not known, or not readable. */
static __always_inline bool vp_find_cfa(struct vp_stack_buf *b, const struct vp_rule *rule,
					__u64 base, __u64 *cfa)
{
	*cfa = base + (__s64)rule->cfa_off;
	switch (rule->cfa) {
	case VP_CFA_PLT:
		if ((__s64)(b->pc & 15) >= rule->cfa_add)
			*cfa += 8;
		return true;
	case VP_CFA_DEREF:
		if (vp_read_word(b, cfa, *cfa))
			return false;
		*cfa += (__s64)rule->cfa_add;
		return true;
	default:
		return true;
	}
}

/* Most frames: the return address right below the CFA and, if it was saved, rbp below that. */
static __always_inline long vp_read_plain_ra(struct vp_stack_buf *b, const struct vp_rule *rule,
					     __u64 cfa, __u64 *ra)
{
	__u64 pair[2];

	if (rule->saved[VP_SAVED_FP] != -2) {
		vp_restore(b, VP_REG_FP, rule->saved[VP_SAVED_FP], cfa);
		return vp_read_word(b, ra, cfa - 8);
	}
	if (vp_read_user(b, pair, sizeof(pair), cfa - 16))
		return -1;
	vp_set_reg(b, VP_REG_FP, pair[0]);
	*ra = pair[1];
	return 0;
}

/* Anything else. Before any register is restored: the address may be in one. */
static __always_inline long vp_read_odd_ra(struct vp_stack_buf *b, const struct vp_rule *rule,
					   __u64 base, __u64 cfa, __u64 *ra)
{
	__u64 from = rule->flags & VP_RULE_F_RA_BASE ? base : cfa;

	if (rule->flags & VP_RULE_F_RA_REG) {
		if (!vp_get_reg(b, rule->ra_reg, ra))
			return -1;
	} else if (vp_read_word(b, ra, from + (__s64)rule->saved[VP_SAVED_RA] * 8)) {
		return -1;
	}
	from = rule->flags & VP_RULE_F_SAVED_BASE ? base : cfa;
	vp_restore(b, VP_REG_FP, rule->saved[VP_SAVED_FP], from);
	return 0;
}

static __always_inline void vp_restore_others(struct vp_stack_buf *b, const struct vp_rule *rule,
					      __u64 from)
{
	vp_restore(b, vp_slot_reg(1), rule->saved[1], from);
	vp_restore(b, vp_slot_reg(2), rule->saved[2], from);
	vp_restore(b, vp_slot_reg(3), rule->saved[3], from);
	vp_restore(b, vp_slot_reg(4), rule->saved[4], from);
	vp_restore(b, vp_slot_reg(5), rule->saved[5], from);
}

/*
 * Outwards by a rule. A frame that does not lie above its callee's ends the stack, except behind
 * a signal (whose handler may have a stack of its own) and where the CFA was read from memory.
 */
static __always_inline long vp_step_rule(struct vp_unwind *u, const struct vp_rule *rule,
					 bool deferred)
{
	struct vp_stack_buf *b = u->buf;
	__u64 base, cfa, ra = 0;
	__u16 flags = 0;
	long err;

	if (!vp_get_reg(b, rule->reg, &base))
		return vp_end(b, VP_END_NO_ROW);
	if (!vp_find_cfa(b, rule, base, &cfa))
		return vp_end(b, VP_END_BAD_MEMORY);
	if (rule->cfa != VP_CFA_DEREF && cfa <= b->sp &&
	    !(rule->flags & VP_RULE_F_RA_REG && cfa == b->sp))
		return vp_end(b, VP_END_BAD_FP);
	if (!rule->flags && rule->saved[VP_SAVED_RA] == -1)
		err = vp_read_plain_ra(b, rule, cfa, &ra);
	else
		err = vp_read_odd_ra(b, rule, base, cfa, &ra);
	if (err)
		return vp_end(b, VP_END_BAD_MEMORY);
	vp_restore_others(b, rule, rule->flags & VP_RULE_F_SAVED_BASE ? base : cfa);
	/*
	 * Assembly that knows what its callee leaves alone counts its CFA from such a register, too. Of
	 * the innermost function the registers may be what its caller had; no further.
	 */
	if (b->cnt > 1)
		b->regs_known &= VP_REGS_PRESERVED;
	if (rule->flags & VP_RULE_F_SIGNAL)
		flags = VP_FRAME_F_LEAF;
	return vp_arrive(u, cfa, ra, flags, deferred);
}

/*
 * Code that a signal handler returns to has a rule, whoever wrote it. False: it could not be read, and
 * may be such code nevertheless.
 */
static __always_inline bool vp_look_for_sigreturn(struct vp_stack_buf *b, struct vp_rule *rule)
{
	__u8 code[VP_SIGRETURN_BYTES];

	if (bpf_probe_read_user(code, sizeof(code), (void *)b->pc)) {
		b->missing_code = b->pc;
		return false;
	}
	if (vp_is_sigreturn(code))
		vp_sigreturn_rule(rule);
	return true;
}

/*
 * The rule for the frame that was pushed last; NULL: for what is neither in a file nor known. It is
 * kept in the cache unless it may be another one soon: the file's rows are on their way.
 */
static __always_inline struct vp_rule *vp_rule_of(struct vp_unwind *u, struct vp_frame *f)
{
	struct vp_stack_buf *b = u->buf;
	bool at_pc = (f->flags & VP_FRAME_F_LEAF) && !(b->behind_syscall && b->cnt == 1);
	__u64 offset = at_pc ? f->offset : f->offset - 1;
	struct vp_cached_rule *c = &b->no_cache;
	__u32 file_id = f->file_id, state = VP_ROW_FILE_NONE;

	if (vp_is_vsyscall(f->pc)) {
		c->offset = 0;
		vp_called_rule(&c->rule);
		return &c->rule;
	}
	if (f->verdict == VP_VERDICT_FILE ? !file_id : f->verdict != VP_VERDICT_VDSO)
		return NULL;
	if (u->cache)
		c = &u->cache->entry[vp_rule_hash(file_id, offset)];
	if (c->offset == offset && c->file_id == file_id &&
	    (!c->owner || c->owner == (__u32)u->task->tgid)) {
		vp_note_cached_use(file_id, b->ts_ns);
		return &c->rule;
	}
	if (vp_call_graph == VP_CALL_GRAPH_FP)
		__builtin_memset(&c->rule, 0, sizeof(c->rule));
	else
		state = vp_find_rule(file_id, offset, &c->rule);
	if (state == VP_ROW_FILE_UNKNOWN)
		f->flags |= VP_FRAME_F_NO_ROWS;
	c->owner = 0;
	if (c->rule.cfa == VP_CFA_NONE) {
		c->owner = u->task->tgid;
		if (!vp_look_for_sigreturn(b, &c->rule))
			state = VP_ROW_FILE_UNKNOWN;
	}
	c->offset = state == VP_ROW_FILE_UNKNOWN ? 0 : offset;
	c->file_id = file_id;
	return &c->rule;
}

/* The new thread, at the return from the system call that made it. */
static __always_inline bool vp_is_child(struct vp_stack_buf *b)
{
	__u64 result;

	return vp_get_reg(b, VP_REG_RESULT, &result) && result == 0;
}

/* One step outwards from the last frame; 1 ends the stack with b->end. */
static __always_inline long vp_step(struct vp_unwind *u, bool deferred)
{
	struct vp_frame *f = vp_last_frame(u->buf);
	struct vp_rule *rule = NULL;

	if (!f)
		return vp_end(u->buf, VP_END_DEPTH);
	if (u->buf->word == 8)
		rule = vp_rule_of(u, f);
	if (!rule || rule->cfa == VP_CFA_NONE)
		return vp_step_fp(u, vp_call_graph != VP_CALL_GRAPH_FP, f->flags & VP_FRAME_F_FP,
				  deferred);
	if (rule->cfa == VP_CFA_END || (rule->cfa == VP_CFA_CLONE && vp_is_child(u->buf)))
		return vp_end(u->buf, VP_END_BOTTOM);
	return vp_step_rule(u, rule, deferred);
}

/*
 * A task in a system call is behind the instruction, which may be the last one that is described;
 * unless a signal's handler has been set up on the way out.
 */
static __always_inline bool vp_is_behind_syscall(struct vp_stack_buf *b)
{
	__u8 code[VP_SYSCALL_BYTES];

	return b->in_syscall &&
	       !bpf_probe_read_user(code, sizeof(code), (void *)(b->pc - sizeof(code))) &&
	       vp_is_syscall_insn(code);
}

/*
 * b->reg, word and tail are filled, b->pc is where the task was interrupted. Appends its frames;
 * b->end says why there are no more. step: vp_step as a callback of bpf_loop.
 */
static __always_inline void vp_unwind_user(struct vp_unwind *u, long (*step)(__u32, void *),
					   bool deferred)
{
	struct vp_stack_buf *b = u->buf;

	u->proc = vp_proc_get_or_inherit(u->task, b->ts_ns);
	u->cache = vp_take_rule_cache();
	b->now_seq = vp_mapping_seq((void *)vp_mm(u->task), b->ts_ns);
	if (!deferred)
		b->then_seq = b->now_seq;
	b->then = deferred ? VP_ASK_THEN(b->then_seq) : 0;
	b->sp = b->reg[VP_REG_SP];
	b->regs_known = VP_REGS_ALL;
	b->regs_in_mem = 0;
	b->first_off = b->frame_off;
	b->cnt = 0;
	b->asked = 0;
	b->missing = 0;
	b->missing_code = 0;
	b->doubt_pc = 0;
	b->hit_start = 0;
	b->hit_end = 0;
	b->end = VP_END_DEPTH;
	b->behind_syscall = vp_is_behind_syscall(b);
	b->next_flags = VP_FRAME_F_LEAF;
	vp_push_frame(u, deferred);
	bpf_loop(VP_MAX_USER_FRAMES + 1, step, u, 0);
	vp_release_rule_cache(u->cache);
	if (!deferred)
		vp_confirm(u);
}

#endif
