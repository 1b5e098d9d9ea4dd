/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Stacks made by hand: a scene is some functions with a rule each, the registers of a thread that
 * spins in the first of them, and a page of stack. Its thread does nothing but spin, so what the
 * unwinder finds follows from the rules, the registers and the words alone.
 */
#ifndef SCENE_H
#define SCENE_H

#include "recorder.h"

#include "../../include/vp_rows.h"

#define SCENE_FUNCS 8
#define SCENE_WORDS 512
#define SCENES_MAX  64

#define FUNC_BYTES 0x100

/* Where the target has them. */
#define SCENE_CODE	 0x100000000000UL
#define SCENE_STACK	 0x200000000000UL
#define SCENE_STRIDE	 0x10000UL /* from stack to stack; between them is nothing */
#define SCENE_ROWS_START 0x1000UL  /* file offset of the first function of scene 0 */
#define SCENE_CODE_BYTES (SCENE_ROWS_START + SCENES_MAX * SCENE_FUNCS * FUNC_BYTES)
#define SCENE_DATA_CODE                                                                            \
	0xfeebfeebfeebfeebULL /* jumps to themselves: what reading code yields at even addresses */

/*
 * Symbolic values of registers and words, which depend on the scene's number: a return address in
 * function f, its first byte, and the address of word i.
 */
#define RET(f)	 (0xc0de000000000000ULL | (uint64_t)(f)*FUNC_BYTES | 0x10)
#define START(f) (0xc0de000000000000ULL | (uint64_t)(f)*FUNC_BYTES)
#define AT(i)	 (0x57ac000000000000ULL | (uint64_t)(i)*8)

#define RAX 0
#define RBX 3
#define RBP 6
#define RSP 7
#define R11 11
#define R12 12
#define R13 13
#define R14 14
#define R15 15

#define SAME VP_SAVED_SAME
#define LOST VP_SAVED_LOST

/* clang-format off */
#define SAVED(rbp, rbx, r12, r13, r14, r15, ra) .saved = {rbp, rbx, r12, r13, r14, r15, ra}
#define ALL_SAME SAVED(SAME, SAME, SAME, SAME, SAME, SAME, -1)
/* clang-format on */

struct scene {
	const char *name;
	struct vp_rule rule[SCENE_FUNCS]; /* all zero: a function without one */
	uint32_t leaf;			  /* offset in function 0 where it spins: 0 or 8 */
	uint64_t reg[16];		  /* by DWARF number */
	uint64_t word[SCENE_WORDS];
	/* What must come of it: addresses behind the leaf's; START(f): one that was interrupted. */
	uint64_t chain[24];
	uint32_t more; /* frames that come behind chain, all as its last one */
	uint16_t end;
};

/* The real value of a symbolic one in scene number i. */
uint64_t scene_value(uint32_t i, uint64_t symbolic);

/*
 * Samples all scenes until each has been sampled `each` times, with the rules as rows. r: opened
 * by this; stopped when it returns. tid[i] is scene i's thread.
 */
void scenes_record(struct recorder *r, const struct scene *s, uint32_t cnt, size_t each,
		   uint32_t *tid);

/* Was its thread interrupted in the scene, and not on the way to it? */
bool scene_is_sample(const struct scene *s, uint32_t i, const struct log_item *it);

/* On standard error, a line. */
void scene_print_sample(const struct log_item *it);

#endif
