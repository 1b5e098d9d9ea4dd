/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cfi_state.h"

#include <string.h>

/* A rule has one origin for the offsets of all registers but the return address. */
enum origin { FROM_CFA, FROM_BASE };

/*
 * Does a slot's memory have an offset from that origin? Where the CFA is itself base + constant,
 * either is the other, and rules speak of the CFA.
 */
static bool offset_from(const struct cfi_state *s, int slot, enum origin origin, int64_t *off)
{
	bool from_cfa = s->how[slot] == CFI_AT_CFA;

	if (!from_cfa && (s->how[slot] != CFI_AT_REG || s->reg[slot] != s->cfa_reg))
		return false;
	*off = s->off[slot];
	if (from_cfa == (origin == FROM_CFA))
		return true;
	*off -= s->cfa_off;
	return s->cfa == VP_CFA_REG;
}

/* VP_SAVED_LOST if it is no multiple of 8 or too far away. */
static int16_t offset_units(int64_t off)
{
	if (off % 8 || off / 8 < INT16_MIN || off / 8 >= VP_SAVED_LOST)
		return VP_SAVED_LOST;
	return (int16_t)(off / 8);
}

static int16_t usual_saved(enum cfi_how how, int32_t off)
{
	if (how <= CFI_SAME)
		return VP_SAVED_SAME;
	return how == CFI_AT_CFA ? offset_units(off) : VP_SAVED_LOST;
}

/* Must a rule look at the slot itself? The return address must be in memory, rsp not be mentioned. */
static bool is_unusual(const struct cfi_state *s, int slot)
{
	if (slot == SLOT_SP)
		return s->how[slot] != CFI_UNSET;
	if (slot == VP_SAVED_RA)
		return s->how[slot] != CFI_AT_CFA || s->usual[slot] == VP_SAVED_LOST;
	return s->how[slot] == CFI_AT_REG;
}

static void set_unusual(struct cfi_state *s, int slot, bool unusual)
{
	s->unusual = (uint8_t)((s->unusual & ~(1U << slot)) | (unsigned int)unusual << slot);
}

void cfi_set_slot(struct cfi_state *s, int slot, enum cfi_how how, uint8_t reg, int32_t off)
{
	s->how[slot] = (uint8_t)how;
	s->reg[slot] = reg;
	s->off[slot] = off;
	if (slot < VP_SAVED_CNT)
		s->usual[slot] = usual_saved(how, off);
	set_unusual(s, slot, is_unusual(s, slot));
}

void cfi_copy_slot(struct cfi_state *s, int slot, const struct cfi_state *from)
{
	cfi_set_slot(s, slot, from->how[slot], from->reg[slot], from->off[slot]);
}

void cfi_state_init(struct cfi_state *s)
{
	*s = (struct cfi_state){0};
	for (int slot = 0; slot < SLOT_CNT; slot++)
		cfi_set_slot(s, slot, CFI_UNSET, 0, 0);
}

/* The frame pointer decides, because most of what follows may hang on it; else the majority. */
static enum origin choose_origin(const struct cfi_state *s)
{
	int cfa_cnt = 0, base_cnt = 0;

	if (s->cfa == VP_CFA_REG)
		return FROM_CFA;
	for (int slot = 0; slot < VP_SAVED_RA; slot++) {
		int weight = slot == VP_SAVED_FP ? VP_SAVED_CNT : 1;

		if (s->how[slot] == CFI_AT_CFA)
			cfa_cnt += weight;
		else if (s->how[slot] == CFI_AT_REG && s->reg[slot] == s->cfa_reg)
			base_cnt += weight;
	}
	return base_cnt > cfa_cnt ? FROM_BASE : FROM_CFA;
}

static void set_usual_rule(const struct cfi_state *s, bool is_signal_frame, struct vp_rule *out)
{
	memcpy(out->saved, s->usual, sizeof(out->saved));
	out->cfa_off = s->cfa_off;
	out->cfa_add = 0;
	out->cfa = VP_CFA_REG;
	out->reg = s->cfa_reg;
	out->ra_reg = 0;
	out->flags = is_signal_frame ? VP_RULE_F_SIGNAL : 0;
}

static int16_t saved(const struct cfi_state *s, int slot, enum origin origin)
{
	int64_t off;

	if (s->how[slot] <= CFI_SAME)
		return VP_SAVED_SAME;
	return offset_from(s, slot, origin, &off) ? offset_units(off) : VP_SAVED_LOST;
}

/* 0 or -1: without it there is no way on. */
static int set_return_address(const struct cfi_state *s, struct vp_rule *out)
{
	int64_t off;

	if (s->how[VP_SAVED_RA] == CFI_IS_REG && !s->off[VP_SAVED_RA]) {
		out->flags |= VP_RULE_F_RA_REG;
		out->ra_reg = s->reg[VP_SAVED_RA];
		return 0;
	}
	if (offset_from(s, VP_SAVED_RA, FROM_CFA, &off)) {
		out->saved[VP_SAVED_RA] = offset_units(off);
	} else if (offset_from(s, VP_SAVED_RA, FROM_BASE, &off)) {
		out->saved[VP_SAVED_RA] = offset_units(off);
		out->flags |= VP_RULE_F_RA_BASE;
	} else {
		return -1;
	}
	return out->saved[VP_SAVED_RA] == VP_SAVED_LOST ? -1 : 0;
}

/* Rows have no place for it: the caller's stack pointer is the CFA. Nearly nobody says so. */
static bool sp_is_cfa(const struct cfi_state *s)
{
	int32_t off = s->off[SLOT_SP];
	bool same_reg = s->reg[SLOT_SP] == s->cfa_reg && off == s->cfa_off;

	switch (s->how[SLOT_SP]) {
	case CFI_UNSET:
		return true;
	case CFI_IS_CFA:
		return !off;
	case CFI_IS_REG:
		return s->cfa == VP_CFA_REG && same_reg;
	case CFI_AT_REG:
		return s->cfa == VP_CFA_DEREF && !s->cfa_add && same_reg;
	default:
		return false;
	}
}

int cfi_rule(const struct cfi_state *s, bool is_signal_frame, struct vp_rule *out)
{
	enum origin origin;

	if (s->cfa == VP_CFA_REG && !s->unusual) {
		set_usual_rule(s, is_signal_frame, out);
		return 0;
	}
	*out = (struct vp_rule){0};
	if (s->how[VP_SAVED_RA] == CFI_UNDEFINED) {
		out->cfa = VP_CFA_END;
		return 0;
	}
	if (s->cfa == VP_CFA_NONE || !sp_is_cfa(s))
		return -1;
	if (set_return_address(s, out)) {
		*out = (struct vp_rule){0};
		return -1;
	}
	origin = choose_origin(s);
	for (int slot = 0; slot < VP_SAVED_RA; slot++)
		out->saved[slot] = saved(s, slot, origin);
	out->cfa = s->cfa;
	out->reg = s->cfa_reg;
	out->cfa_off = s->cfa_off;
	out->cfa_add = s->cfa_add;
	out->flags |= (origin == FROM_BASE ? VP_RULE_F_SAVED_BASE : 0) |
		      (is_signal_frame ? VP_RULE_F_SIGNAL : 0);
	return 0;
}
