/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What is true of the objects as they were compiled, without loading them. */
#include "insn_scan.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include <glob.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

TestSuite(objects);

/* ---- the scanner ---------------------------------------------------------------------------- */

#define MOV_K(reg, value)                                                                          \
	{                                                                                          \
		.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = (reg), .imm = (value)              \
	}
#define MOV_X(reg, from)                                                                           \
	{                                                                                          \
		.code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = (reg), .src_reg = (from)           \
	}
#define HELPER(id)                                                                                 \
	{                                                                                          \
		.code = BPF_JMP | BPF_CALL, .imm = (id)                                            \
	}
#define SUBPROG(to)                                                                                \
	{                                                                                          \
		.code = BPF_JMP | BPF_CALL, .src_reg = BPF_PSEUDO_CALL, .imm = (to)                \
	}
#define ADDRESS(reg, to)                                                                           \
	{.code = BPF_LD | BPF_IMM | BPF_DW,                                                        \
	 .dst_reg = (reg),                                                                         \
	 .src_reg = BPF_PSEUDO_FUNC,                                                               \
	 .imm = (to)},                                                                             \
	{                                                                                          \
		.code = 0                                                                          \
	}
#define EXIT                                                                                       \
	{                                                                                          \
		.code = BPF_JMP | BPF_EXIT                                                         \
	}

#define FIND_VMA    180
#define LOOP	    181
#define GET_STACK   67
#define GET_STACKID 27
#define BUILD_ID    BPF_F_USER_BUILD_ID

static struct insn_scan scan_of(struct bpf_insn *insn, size_t cnt, size_t *start, size_t start_cnt)
{
	const struct insn_text t = {insn, cnt, start, start_cnt};
	struct insn_scan s;

	insn_scan(&t, &s);
	return s;
}

#define SCAN(insns, ...)                                                                           \
	({                                                                                         \
		size_t starts_[] = {__VA_ARGS__};                                                  \
		scan_of(insns, sizeof(insns) / sizeof(*(insns)), starts_,                          \
			sizeof(starts_) / sizeof(*starts_));                                       \
	})

Test(objects, scanner_accepts_a_callback_that_asks_nothing)
{
	struct bpf_insn insns[] = {
		ADDRESS(3, 3), HELPER(FIND_VMA),  EXIT, /* 0: to 4 */
		MOV_K(4, 0),   HELPER(GET_STACK), EXIT, /* 4 */
	};
	struct insn_scan s = SCAN(insns, 0, 4);

	cr_expect(eq(sz, s.find_cnt, 1));
	cr_expect(eq(sz, s.callback_cnt, 1));
	cr_expect(zero(sz, s.bad_cnt), "%s", s.text);
}

Test(objects, scanner_rejects_a_question_in_a_callback)
{
	struct bpf_insn insns[] = {
		ADDRESS(3, 3),
		HELPER(FIND_VMA),
		EXIT, /* 0: to 4 */
		HELPER(FIND_VMA),
		EXIT, /* 4 */
	};
	struct insn_scan s = SCAN(insns, 0, 4);

	cr_expect(eq(sz, s.bad_cnt, 1));
	cr_expect(strstr(s.text, "bpf_find_vma") != NULL);
}

Test(objects, scanner_rejects_a_question_in_what_a_callback_calls)
{
	struct bpf_insn insns[] = {
		ADDRESS(6, 4),
		MOV_X(3, 6),
		HELPER(FIND_VMA),
		EXIT, /* 0: to 5 */
		SUBPROG(1),
		EXIT, /* 5: to 7 */
		ADDRESS(2, 3),
		HELPER(LOOP),
		EXIT, /* 7: to 11 */
		HELPER(FIND_VMA),
		EXIT, /* 11 */
	};
	struct insn_scan s = SCAN(insns, 0, 5, 7, 11);

	cr_expect(eq(sz, s.find_cnt, 2));
	cr_expect(ge(sz, s.bad_cnt, 1), "%s", s.text);
}

Test(objects, scanner_accepts_questions_in_a_loop)
{
	struct bpf_insn insns[] = {
		ADDRESS(2, 3), HELPER(LOOP),
		EXIT, /* 0: to 4 */
		ADDRESS(3, 3), HELPER(FIND_VMA),
		EXIT,		     /* 4: to 8 */
		MOV_K(0, 0),   EXIT, /* 8 */
	};
	struct insn_scan s = SCAN(insns, 0, 4, 8);

	cr_expect(eq(sz, s.callback_cnt, 1));
	cr_expect(zero(sz, s.bad_cnt), "%s", s.text);
}

Test(objects, scanner_rejects_build_ids_in_a_callback)
{
	struct bpf_insn constant[] = {
		ADDRESS(3, 3),
		HELPER(FIND_VMA),
		EXIT,
		MOV_K(4, BUILD_ID | BPF_F_USER_STACK),
		HELPER(GET_STACK),
		EXIT,
	};
	struct bpf_insn unknown[] = {
		ADDRESS(3, 3),
		HELPER(FIND_VMA),
		EXIT,
		{.code = BPF_LDX | BPF_MEM | BPF_DW, .dst_reg = 3, .src_reg = 1},
		HELPER(GET_STACKID),
		EXIT,
	};

	cr_expect(eq(sz, SCAN(constant, 0, 4).bad_cnt, 1));
	cr_expect(eq(sz, SCAN(unknown, 0, 4).bad_cnt, 1));
}

Test(objects, scanner_takes_any_callback_when_it_cannot_tell)
{
	struct bpf_insn insns[] = {
		/* 0: the address goes over the stack; to 6 */
		ADDRESS(6, 5),
		{.code = BPF_STX | BPF_MEM | BPF_DW, .dst_reg = 10, .src_reg = 6, .off = -8},
		{.code = BPF_LDX | BPF_MEM | BPF_DW, .dst_reg = 3, .src_reg = 10, .off = -8},
		HELPER(FIND_VMA),
		EXIT,
		HELPER(FIND_VMA),
		EXIT, /* 6 */
	};

	cr_expect(eq(sz, SCAN(insns, 0, 6).bad_cnt, 1));
}

/* ---- ours ----------------------------------------------------------------------------------- */

/* build/kern/… beside build/selftests/bpf, which we are. */
static void find_objects(glob_t *g)
{
	char pattern[4200], *slash;
	ssize_t n = readlink("/proc/self/exe", pattern, 4096);

	cr_assert(gt(int, (int)n, 0));
	pattern[n] = '\0';
	slash = strrchr(pattern, '/');
	snprintf(slash, 64, "/../kern/*.bpf.o");
	cr_assert(zero(int, glob(pattern, 0, NULL, g)), "%s", pattern);
}

Test(objects, no_callback_of_find_vma_asks_again)
{
	size_t finds = 0, callbacks = 0;
	glob_t g;

	find_objects(&g);
	for (size_t i = 0; i < g.gl_pathc; i++) {
		struct insn_text t;
		struct insn_scan s;

		cr_assert(zero(int, insn_text_read(g.gl_pathv[i], &t)), "%s", g.gl_pathv[i]);
		insn_scan(&t, &s);
		cr_expect(zero(sz, s.bad_cnt), "%s: %s", g.gl_pathv[i], s.text);
		/* each call has a callback that the scanner has found */
		cr_expect(eq(int, s.find_cnt > 0, s.callback_cnt > 0), "%s", g.gl_pathv[i]);
		finds += s.find_cnt;
		callbacks += s.callback_cnt;
		insn_text_free(&t);
	}
	/* find, sampler and track ask: a scan that saw nothing proves nothing */
	cr_expect(ge(sz, finds, 3));
	cr_expect(ge(sz, callbacks, 3));
	globfree(&g);
}
