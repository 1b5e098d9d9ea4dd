/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What is true of the objects as they were compiled, without loading them. */
#include "fixture_elf.h"
#include "insn_scan.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include <glob.h>
#include <limits.h>
#include <stdlib.h>
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

Test(objects, scanner_says_which_callbacks_it_cannot_find)
{
	struct bpf_insn insns[] = {
		MOV_X(3, 1),
		HELPER(FIND_VMA),
		EXIT,
	};

	cr_expect(eq(sz, SCAN(insns, 0).unknown_cnt, 1));
}

Test(objects, scanner_takes_any_callback_where_branches_meet)
{
	struct bpf_insn insns[] = {
		/* 0: to 10, or to 9 */
		ADDRESS(3, 9),
		{.code = BPF_JMP | BPF_JEQ | BPF_K, .dst_reg = 1, .off = 2},
		ADDRESS(3, 5),
		MOV_K(4, 0),
		HELPER(FIND_VMA),
		MOV_K(0, 0),
		EXIT,
		EXIT, /* 9 */
		HELPER(FIND_VMA),
		EXIT, /* 10 */
	};

	cr_expect(eq(sz, SCAN(insns, 0, 9, 10).bad_cnt, 1));
}

/* ---- the scanner and clang ------------------------------------------------------------------ */

/* The folder that holds build/. */
static const char *top_folder(void)
{
	static char path[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);

	cr_assert(gt(int, (int)n, 0));
	path[n] = '\0';
	for (int i = 0; i < 3; i++)
		*strrchr(path, '/') = '\0';
	return path;
}

/* nested_find.bpf.c, compiled for one of its ways, as ours are; nothing loads it. */
static struct insn_scan scan_nested(const char *way)
{
	struct fixture x;
	struct insn_text t;
	struct insn_scan s;

	fixture_new(&x);
	fixture_run(&x,
		    "clang -g -O2 -target bpf -mcpu=v3 -DWAY=%s -I'%s/vmlinux/x86' "
		    "-c '%s/selftests/bpf/prog/nested_find.bpf.c' -o o && llvm-strip -g o",
		    way, top_folder(), top_folder());
	cr_assert(zero(int, insn_text_read(fixture_path(&x, "o"), &t)));
	insn_scan(&t, &s);
	insn_text_free(&t);
	fixture_remove(&x);
	cr_expect(ge(sz, s.callback_cnt, 1), "%s", way);
	cr_expect(zero(sz, s.unknown_cnt), "%s", way);
	return s;
}

Test(objects, scanner_accepts_a_question_beside_a_plain_stack)
{
	struct insn_scan s = scan_nested("ALLOWED");

	cr_expect(zero(sz, s.bad_cnt), "%s", s.text);
	cr_expect(zero(sz, s.mixed_cnt));
}

Test(objects, scanner_finds_what_clang_makes_of_nested_questions)
{
	cr_expect(ge(sz, scan_nested("ASK_AGAIN").bad_cnt, 1));
	cr_expect(ge(sz, scan_nested("ASK_IN_LOOP").bad_cnt, 1));
	cr_expect(ge(sz, scan_nested("BUILD_IDS").bad_cnt, 1));
}

Test(objects, scanner_finds_build_ids_in_a_program_that_asks)
{
	struct insn_scan s = scan_nested("BUILD_IDS_TOO");

	cr_expect(zero(sz, s.bad_cnt), "%s", s.text);
	cr_expect(ge(sz, s.mixed_cnt, 1));
}

/* ---- ours ----------------------------------------------------------------------------------- */

static void find_objects(glob_t *g)
{
	char pattern[PATH_MAX + 32];

	snprintf(pattern, sizeof(pattern), "%s/build/kern/*.bpf.o", top_folder());
	cr_assert(zero(int, glob(pattern, 0, NULL, g)), "%s", pattern);
}

Test(objects, no_callback_of_find_vma_asks_again)
{
	size_t finds = 0, callbacks = 0;
	glob_t g;

	find_objects(&g);
	for (size_t i = 0; i < g.gl_pathc; i++) {
		const char *path = g.gl_pathv[i];
		struct insn_text t;
		struct insn_scan s;

		cr_assert(zero(int, insn_text_read(path, &t)), "%s", path);
		insn_scan(&t, &s);
		cr_expect(zero(sz, s.bad_cnt), "%s: %s", path, s.text);
		cr_expect(zero(sz, s.mixed_cnt), "%s takes stacks with build ids", path);
		cr_expect(zero(sz, s.unknown_cnt), "%s: no callback found", path);
		finds += s.find_cnt;
		callbacks += s.callback_cnt;
		insn_text_free(&t);
	}
	/* find, sampler and track ask: a scan that saw nothing proves nothing */
	cr_expect(ge(sz, finds, 3));
	cr_expect(ge(sz, callbacks, 3));
	globfree(&g);
}

/* What is loaded is what was scanned: the skeletons embed the objects byte for byte. */
Test(objects, vmaprof_holds_exactly_the_objects_that_were_scanned)
{
	char path[PATH_MAX + 32];
	size_t whole_bytes, bytes, embedded = 0;
	unsigned char *whole;
	glob_t g;

	snprintf(path, sizeof(path), "%s/build/vmaprof", top_folder());
	whole = fixture_read(path, &whole_bytes);
	find_objects(&g);
	for (size_t i = 0; i < g.gl_pathc; i++) {
		unsigned char *object = fixture_read(g.gl_pathv[i], &bytes);

		cr_expect(memmem(whole, whole_bytes, object, bytes) != NULL, "%s", g.gl_pathv[i]);
		free(object);
	}
	/* a relocatable ELF file of BPF: 64 bits, little endian, type 1, machine 247 */
	for (size_t at = 0; at + 20 <= whole_bytes; at++)
		embedded += !memcmp(whole + at, "\177ELF\2\1\1", 7) &&
			    !memcmp(whole + at + 16, "\1\0\367\0", 4);
	cr_expect(eq(sz, embedded, g.gl_pathc));
	globfree(&g);
	free(whole);
}
