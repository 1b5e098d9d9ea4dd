/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "scene_model.h"

#include <stdbool.h>
#include <string.h>

#define PAGE 4096UL

static const uint32_t slot_reg[VP_SAVED_CNT - 1] = {RBP, RBX, R12, R13, R14, R15};

/* A register's value is known, lies at an address (and is read when it is needed), or is neither. */
enum how { UNKNOWN, KNOWN, AT_ADDRESS };

struct reg {
	enum how how;
	uint64_t value;
};

struct machine {
	const struct scene *scenes;
	uint32_t cnt, which;
	struct reg reg[16]; /* that of RSP is sp */
	uint64_t sp;
	struct scene_chain *out;
};

/* ---- memory --------------------------------------------------------------------------------- */

static bool byte_at(const struct machine *m, uint64_t addr, uint8_t *to)
{
	uint64_t i = (addr - SCENE_STACK) / SCENE_STRIDE;
	uint64_t within = (addr - SCENE_STACK) % SCENE_STRIDE, word;

	if (addr >= SCENE_CODE && addr < SCENE_CODE + SCENE_CODE_BYTES) {
		*to = (uint8_t)(SCENE_DATA_CODE >> 8 * (addr & 7));
		return true;
	}
	if (addr < SCENE_STACK || i >= m->cnt || within >= PAGE)
		return false;
	word = scene_value((uint32_t)i, m->scenes[i].word[within / 8]);
	*to = (uint8_t)(word >> 8 * (within & 7));
	return true;
}

static bool read_word(const struct machine *m, uint64_t addr, uint64_t *to)
{
	uint8_t bytes[8];

	for (uint64_t i = 0; i < 8; i++) {
		if (!byte_at(m, addr + i, &bytes[i]))
			return false;
	}
	memcpy(to, bytes, sizeof(*to));
	return true;
}

static bool get_reg(struct machine *m, uint32_t n, uint64_t *to)
{
	if (n >= 16)
		return false;
	if (n == RSP) {
		*to = m->sp;
		return true;
	}
	if (m->reg[n].how == UNKNOWN)
		return false;
	if (m->reg[n].how == KNOWN) {
		*to = m->reg[n].value;
		return true;
	}
	return read_word(m, m->reg[n].value, to);
}

/* ---- frames --------------------------------------------------------------------------------- */

static bool is_code(uint64_t addr)
{
	return addr >= SCENE_CODE && addr < SCENE_CODE + SCENE_CODE_BYTES;
}

static bool end(struct machine *m, uint16_t why)
{
	m->out->end = why;
	return false;
}

static uint64_t at_of(const struct scene_chain *c, uint32_t i)
{
	return c->flags[i] & VP_FRAME_F_LEAF ? c->pc[i] : c->pc[i] - 1;
}

static bool arrive(struct machine *m, uint64_t sp, uint64_t pc, uint16_t flags)
{
	struct scene_chain *c = m->out;

	if (!pc)
		return end(m, VP_END_BOTTOM);
	/* where no code can be */
	if (pc < PAGE || pc >> 56)
		return end(m, VP_END_UNKNOWN_PC);
	if (c->cnt == VP_MAX_USER_FRAMES)
		return end(m, VP_END_DEPTH);
	m->sp = sp;
	c->pc[c->cnt] = pc;
	c->flags[c->cnt++] = flags;
	return is_code(at_of(c, c->cnt - 1)) || end(m, VP_END_UNKNOWN_PC);
}

static const struct vp_rule *rule_at(const struct machine *m, uint64_t at)
{
	uint64_t func = (at - SCENE_CODE - SCENE_ROWS_START) / FUNC_BYTES;

	if (at < SCENE_CODE + SCENE_ROWS_START || func >= (uint64_t)m->cnt * SCENE_FUNCS)
		return NULL;
	return &m->scenes[func / SCENE_FUNCS].rule[func % SCENE_FUNCS];
}

static bool step_by_frame_pointer(struct machine *m)
{
	uint32_t cnt = m->out->cnt;
	uint64_t fp, next, ra;

	if (!get_reg(m, RBP, &fp))
		return end(m, VP_END_NO_ROW);
	if (!fp)
		return end(m, VP_END_BOTTOM);
	if (fp < m->sp || fp % 8 || !read_word(m, fp, &next) || !read_word(m, fp + 8, &ra))
		return end(m, VP_END_NO_ROW);
	memset(m->reg, 0, sizeof(m->reg));
	m->reg[RBP] = (struct reg){KNOWN, next};
	if (arrive(m, fp + 16, ra, VP_FRAME_F_FP))
		return true;
	/* what it leads to is no code: that was no frame pointer */
	if (m->out->end == VP_END_UNKNOWN_PC) {
		m->out->cnt = cnt;
		m->out->end = VP_END_NO_ROW;
	}
	return false;
}

static bool find_cfa(struct machine *m, const struct vp_rule *rule, uint64_t base, uint64_t *cfa)
{
	*cfa = base + (uint64_t)(int64_t)rule->cfa_off;
	if (rule->cfa == VP_CFA_PLT && (int64_t)(m->out->pc[m->out->cnt - 1] & 15) >= rule->cfa_add)
		*cfa += 8;
	if (rule->cfa != VP_CFA_DEREF)
		return true;
	if (!read_word(m, *cfa, cfa))
		return false;
	*cfa += (uint64_t)(int64_t)rule->cfa_add;
	return true;
}

static bool find_ra(struct machine *m, const struct vp_rule *rule, uint64_t base, uint64_t cfa,
		    uint64_t *ra)
{
	uint64_t from = rule->flags & VP_RULE_F_RA_BASE ? base : cfa;

	if (rule->flags & VP_RULE_F_RA_REG)
		return get_reg(m, rule->ra_reg, ra);
	return read_word(m, from + 8 * (uint64_t)(int64_t)rule->saved[VP_SAVED_RA], ra);
}

static void restore(struct machine *m, const struct vp_rule *rule, uint64_t base, uint64_t cfa)
{
	uint64_t from = rule->flags & VP_RULE_F_SAVED_BASE ? base : cfa;
	struct reg kept[16] = {{0}};

	/* the innermost function may leave alone what it need not preserve */
	if (m->out->cnt == 1)
		memcpy(kept, m->reg, sizeof(kept));
	for (int i = 0; i < VP_SAVED_CNT - 1; i++) {
		struct reg *to = &kept[slot_reg[i]];

		if (rule->saved[i] == VP_SAVED_SAME)
			*to = m->reg[slot_reg[i]];
		else if (rule->saved[i] == VP_SAVED_LOST)
			*to = (struct reg){UNKNOWN, 0};
		else
			*to = (struct reg){AT_ADDRESS,
					   from + 8 * (uint64_t)(int64_t)rule->saved[i]};
	}
	memcpy(m->reg, kept, sizeof(kept));
}

static bool step_by_rule(struct machine *m, const struct vp_rule *rule)
{
	uint64_t base, cfa, ra;

	if (!get_reg(m, rule->reg, &base))
		return end(m, VP_END_NO_ROW);
	if (!find_cfa(m, rule, base, &cfa))
		return end(m, VP_END_BAD_MEMORY);
	if (rule->cfa != VP_CFA_DEREF &&
	    (cfa < m->sp || (cfa == m->sp && !(rule->flags & VP_RULE_F_RA_REG))))
		return end(m, VP_END_BAD_FP);
	if (!find_ra(m, rule, base, cfa, &ra))
		return end(m, VP_END_BAD_MEMORY);
	restore(m, rule, base, cfa);
	return arrive(m, cfa, ra, rule->flags & VP_RULE_F_SIGNAL ? VP_FRAME_F_LEAF : 0);
}

static bool step(struct machine *m)
{
	const struct vp_rule *rule = rule_at(m, at_of(m->out, m->out->cnt - 1));

	if (!rule || rule->cfa == VP_CFA_NONE)
		return step_by_frame_pointer(m);
	if (rule->cfa == VP_CFA_END)
		return end(m, VP_END_BOTTOM);
	return step_by_rule(m, rule);
}

void scene_chain_of(const struct scene *scenes, uint32_t cnt, uint32_t which, uint64_t pc,
		    struct scene_chain *out)
{
	const struct scene *s = &scenes[which];
	struct machine m = {.scenes = scenes, .cnt = cnt, .which = which, .out = out};

	out->cnt = 0;
	for (int i = 0; i < 16; i++)
		m.reg[i] = (struct reg){KNOWN, scene_value(which, s->reg[i])};
	arrive(&m, m.reg[RSP].value, pc, VP_FRAME_F_LEAF);
	while (step(&m))
		;
}
