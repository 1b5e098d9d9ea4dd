/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The unwinder against a model of it, on rules and stacks made at random. */
#include "scene_model.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include <inttypes.h>
#include <stdio.h>

static struct recorder r = {.mode = VP_UNWIND_INLINE, .call_graph = VP_CALL_GRAPH_AUTO};

static void tear_down(void)
{
	recorder_close(&r);
}

TestSuite(unwind_random, .fini = tear_down, .timeout = 60);

static void set_deferred(void)
{
	recorder_defer(&r);
}

TestSuite(unwind_random_deferred, .init = set_deferred, .fini = tear_down, .timeout = 60);

#define KERNEL_ADDRESS 0xffff888000001000ULL

/* ---- scenes --------------------------------------------------------------------------------- */

static struct scene random_scenes[SCENES_MAX];
static uint64_t random_state;

/* Marsaglia's xorshift64*: the same everywhere. */
static uint32_t pick(uint32_t below)
{
	random_state ^= random_state >> 12;
	random_state ^= random_state << 25;
	random_state ^= random_state >> 27;
	return (uint32_t)((random_state * 0x2545f4914f6cdd1dULL) >> 33) % below;
}

static bool one_in(uint32_t n)
{
	return pick(n) == 0;
}

static uint64_t random_value(void)
{
	switch (pick(6)) {
	case 0:
		return pick(2) * 4711;
	case 1:
		return KERNEL_ADDRESS + pick(4096);
	case 2:
		return AT(pick(SCENE_WORDS)) + pick(8);
	case 3:
		return START(pick(SCENE_FUNCS));
	case 4:
		return RET(pick(SCENE_FUNCS));
	default:
		return AT(pick(SCENE_WORDS));
	}
}

/* An even word of the stack above word `above`. */
static uint64_t random_frame(uint32_t above)
{
	return AT((above + 2 + 2 * pick(16)) & (SCENE_WORDS - 2));
}

/* Mostly, frame pointers are in even words and return addresses in odd ones. */
static uint64_t random_word(uint32_t i)
{
	if (one_in(16))
		return random_value();
	return i & 1 ? RET(pick(SCENE_FUNCS)) : random_frame(i);
}

static int16_t random_slot(void)
{
	if (one_in(12))
		return LOST;
	if (one_in(40))
		return (int16_t)(pick(65536) - 32768);
	return pick(5) < 3 ? SAME : (int16_t)(-2 * (int)pick(8));
}

static struct vp_rule random_rule(bool is_leaf)
{
	static const uint8_t kinds[] = {VP_CFA_NONE, VP_CFA_END, VP_CFA_DEREF, VP_CFA_DEREF,
					VP_CFA_PLT,  VP_CFA_REG, VP_CFA_REG,   VP_CFA_REG,
					VP_CFA_REG,  VP_CFA_REG, VP_CFA_REG,   VP_CFA_REG};
	static const uint8_t regs[] = {RSP, RSP, RSP, RSP, RSP, RSP, RBP, RBX, R12, R13, R14, RAX};
	struct vp_rule rule = {
		.cfa = kinds[is_leaf ? 2 + pick(10) : pick(12)],
		.reg = one_in(30) ? (uint8_t)pick(256) : regs[pick(12)],
		.ra_reg = regs[6 + pick(6)],
		.flags = one_in(8) ? (uint8_t)pick(16) : 0,
	};

	if (rule.cfa == VP_CFA_NONE || rule.cfa == VP_CFA_END)
		return rule;
	rule.cfa_off = 16 + 16 * (int32_t)pick(4) - (one_in(12) ? 56 : 0) + (int32_t)one_in(40);
	rule.cfa_add = rule.cfa == VP_CFA_PLT ? (int16_t)pick(17) : (int16_t)(16 * pick(3));
	for (int i = 0; i < VP_SAVED_CNT - 1; i++)
		rule.saved[i] = random_slot();
	rule.saved[VP_SAVED_RA] = one_in(8) ? (int16_t)(pick(12) - 6) : -1;
	return rule;
}

static void make_random_scenes(uint64_t seed)
{
	random_state = seed * 0x9e3779b97f4a7c15ULL | 1;
	for (uint32_t i = 0; i < SCENES_MAX; i++) {
		struct scene *s = &random_scenes[i];

		s->leaf = pick(2) * 8;
		for (uint32_t f = 0; f < SCENE_FUNCS; f++)
			s->rule[f] = random_rule(f == 0);
		for (uint32_t n = 0; n < 16; n++)
			s->reg[n] = n == RSP	? AT(2 * pick(32))
				    : one_in(4) ? random_value()
						: random_frame(64);
		for (uint32_t w = 0; w < SCENE_WORDS; w++)
			s->word[w] = random_word(w);
	}
}

/* ---- comparing ------------------------------------------------------------------------------ */

static bool is_busy(const struct log_item *it)
{
	for (uint32_t i = 0; i < it->sample.user_cnt; i++) {
		if (it->user[i].verdict == VP_VERDICT_BUSY)
			return true;
	}
	return false;
}

static bool is_as_modelled(const struct scene_chain *c, const struct log_item *it)
{
	const uint16_t found = VP_FRAME_F_LEAF | VP_FRAME_F_FP | VP_FRAME_F_NO_ROWS;

	if (it->sample.user_cnt != c->cnt || it->sample.user_end != c->end)
		return false;
	for (uint32_t i = 0; i < c->cnt; i++) {
		if (it->user[i].pc != c->pc[i] || (it->user[i].flags & found) != c->flags[i])
			return false;
	}
	return true;
}

static void print_chain(const struct scene_chain *c)
{
	fprintf(stderr, "  %u frames, end %u:", c->cnt, c->end);
	for (uint32_t i = 0; i < c->cnt && i < 12; i++)
		fprintf(stderr, " %" PRIx64 "/%x", c->pc[i], c->flags[i]);
	fprintf(stderr, "\n");
}

/* Returns how many frames the model has. */
static uint32_t expect_modelled(uint32_t scene, uint32_t tid, uint64_t seed)
{
	static struct scene_chain c;
	size_t right = 0, wrong = 0;

	for (size_t i = 0; i < r.log.cnt; i++) {
		const struct log_item *it = &r.log.item[i];

		if (it->hdr.kind != VP_REC_SAMPLE || it->sample.tid != tid ||
		    !scene_is_sample(&random_scenes[scene], scene, it) || is_busy(it))
			continue;
		scene_chain_of(random_scenes, SCENES_MAX, scene, it->user[0].pc, &c);
		if (is_as_modelled(&c, it)) {
			right++;
		} else if (wrong++ == 0) {
			scene_print_sample(it);
			print_chain(&c);
		}
	}
	cr_expect(zero(sz, wrong), "seed %" PRIu64 ", scene %u", seed, scene);
	cr_expect(gt(sz, right, 0), "seed %" PRIu64 ", scene %u", seed, scene);
	return c.cnt;
}

static void expect_random(uint64_t seed)
{
	uint32_t tid[SCENES_MAX], frames = 0;

	make_random_scenes(seed);
	scenes_record(&r, random_scenes, SCENES_MAX, 2, tid);
	for (uint32_t i = 0; i < SCENES_MAX; i++)
		frames += expect_modelled(i, tid[i], seed);
	/* else the scenes are not worth much */
	cr_expect(gt(u32, frames, 2 * SCENES_MAX));
}

Test(unwind_random, random_rules_lead_where_their_description_says)
{
	expect_random(1);
}

Test(unwind_random, other_random_rules_lead_where_their_description_says)
{
	expect_random(2);
}

Test(unwind_random_deferred, random_rules_lead_where_their_description_says)
{
	expect_random(3);
}

Test(unwind_random_deferred, other_random_rules_lead_where_their_description_says)
{
	expect_random(4);
}
