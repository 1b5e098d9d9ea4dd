/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "output/writers.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* has no place in this format */
static const struct vp_line a_line = {"/src/app.h", 7, 1};

static const struct vp_label labels[] = {
	{"main", "app", VP_LABEL_USER, 0, NULL, 0},
	{"read", "libc.so.6", VP_LABEL_USER, 1, NULL, 0},
	{"vfs_read", "[kernel]", VP_LABEL_KERNEL, 2, NULL, 0},
	{"[jit]", "", VP_LABEL_JIT, 3, NULL, 0},
	{"inl<int, 3>(char const*)", "app", VP_LABEL_INLINED, 4, &a_line, 1},
	{"[unknown]", "", VP_LABEL_UNKNOWN, 5, NULL, 0},
	{"main", "other", VP_LABEL_USER, 6, NULL, 0},
	{"a;b\nc\t\x7f\xff", "app", VP_LABEL_USER, 7, NULL, 0},
	{"main x", "app", VP_LABEL_USER, 8, NULL, 0},
	{"", "app", VP_LABEL_USER, 9, NULL, 0},
};
#define LABEL_CNT (sizeof(labels) / sizeof(labels[0]))

static const struct vp_label *by_id[LABEL_CNT];
static const struct vp_meta meta;

/* frames: digits, the labels' ids, outermost first */
static struct vp_stack stack(const char *comm, uint32_t tid, uint64_t count, const char *frames)
{
	const struct vp_label **f = calloc(strlen(frames) + 1, sizeof(*f));

	for (size_t i = 0; frames[i]; i++)
		f[i] = &labels[frames[i] - '0'];
	return (struct vp_stack){comm, tid, tid, count, strlen(frames), f};
}

/* Takes over the stacks' frames; the caller frees the text. */
static char *folded(struct vp_stack *stacks, size_t cnt)
{
	struct vp_report r = {&meta, stacks, cnt, by_id, LABEL_CNT, 0};
	size_t size;
	char *text = NULL;
	FILE *f = open_memstream(&text, &size);

	for (size_t i = 0; i < LABEL_CNT; i++)
		by_id[i] = &labels[i];
	cr_assert(eq(int, vp_write_folded(f, &r), 0));
	fclose(f);
	for (size_t i = 0; i < cnt; i++)
		free((void *)stacks[i].frames);
	return text;
}

#define EXPECT(expected, ...)                                                                      \
	do {                                                                                       \
		struct vp_stack stacks_[] = {__VA_ARGS__};                                         \
		char *got_ = folded(stacks_, sizeof(stacks_) / sizeof(stacks_[0]));                \
		cr_assert(eq(str, got_, expected));                                                \
		free(got_);                                                                        \
	} while (0)

Test(folded, kinds_have_flamegraphs_marks)
{
	EXPECT("nginx;main;inl<int, 3>(char const*)_[i];[jit]_[j];[unknown];read;vfs_read_[k] 7\n",
	       stack("nginx", 1, 7, "043512"));
}

Test(folded, lines_are_sorted_by_bytes)
{
	EXPECT("a 1\na b 2\na;main 3\na;main x 4\na;main;read 5\na;read 6\nb;main 7\n",
	       stack("b", 1, 7, "0"), stack("a", 1, 6, "1"), stack("a", 1, 5, "01"),
	       stack("a", 1, 4, "8"), stack("a", 1, 3, "0"), stack("a b", 1, 2, ""),
	       stack("a", 1, 1, ""));
}

Test(folded, equal_lines_of_threads_and_modules_are_one)
{
	EXPECT("a;main;read 10\n", stack("a", 1, 1, "01"), stack("a", 2, 2, "61"),
	       stack("a", 3, 7, "01"));
}

Test(folded, separators_and_controls_in_names_are_replaced)
{
	EXPECT("c:d e?;a:b?c???;[unknown] 1\n", stack("c;d e\r", 1, 1, "79"));
}

Test(folded, no_comm_is_unknown_and_no_samples_no_line)
{
	EXPECT("[unknown];main 1\n", stack("", 1, 1, "0"), stack("zero", 1, 0, "0"));
}

Test(folded, counts_above_32_bits_are_whole)
{
	EXPECT("a;main 10000000000\n", stack("a", 1, 9999999999, "0"), stack("a", 1, 1, "0"));
}

Test(folded, empty_report_is_an_empty_file)
{
	char *text = folded(NULL, 0);

	cr_assert(eq(str, text, ""));
	free(text);
}

Test(folded, write_error_is_returned)
{
	struct vp_stack s = stack("a", 1, 1, "0");
	struct vp_report r = {&meta, &s, 1, by_id, LABEL_CNT, 1};
	FILE *f = fopen("/dev/full", "w");

	for (size_t i = 0; i < LABEL_CNT; i++)
		by_id[i] = &labels[i];
	setvbuf(f, NULL, _IONBF, 0);
	cr_assert(eq(int, vp_write_folded(f, &r), -EIO));
	fclose(f);
	free((void *)s.frames);
}

Test(folded, deep_stacks_sort_and_merge)
{
	enum { DEPTH = 1151, CNT = 200 };
	static struct vp_stack stacks[CNT];
	static char frames[DEPTH + 1];

	memset(frames, '0', DEPTH);
	for (size_t i = 0; i < CNT; i++) {
		frames[DEPTH - 1] = (char)('0' + i % 3);
		stacks[i] = stack("deep", 1, 1, frames);
	}
	char *text = folded(stacks, CNT);
	size_t lines = 0;
	for (const char *c = text; *c; c++)
		lines += *c == '\n';
	cr_assert(eq(sz, lines, 3));
	cr_assert(strstr(text, ";main 67\n") && strstr(text, ";read 67\n"));
	cr_assert(strstr(text, ";vfs_read_[k] 66\n") != NULL);
	free(text);
}
