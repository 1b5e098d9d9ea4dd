/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Folded stacks:
 *
 *	nginx;main;worker;recv;entry_SYSCALL_64_[k];tcp_recvmsg_[k] 17
 *
 * Lines are never built in memory (a deep stack is tens of kilobytes): stacks are sorted and
 * merged by comparing their parts.
 */
#include "../util/utf8.h"
#include "writers.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* One ';'-separated part of a line, made harmless, with its mark. */
struct part {
	char *text;
	size_t len;
};

struct line {
	struct part comm;
	const struct part *parts; /* of all labels, by id; borrowed */
	const struct vp_stack *stack;
};

static const char *mark_of(enum vp_label_kind kind)
{
	switch (kind) {
	case VP_LABEL_KERNEL:
		return "_[k]";
	case VP_LABEL_JIT:
		return "_[j]";
	case VP_LABEL_INLINED:
		return "_[i]";
	default:
		return "";
	}
}

static bool is_control(const char *s, size_t len)
{
	unsigned char c = (unsigned char)s[0];

	if (len == 1)
		return c < 0x20 || c == 0x7f;
	return len == 2 && c == 0xc2 && (unsigned char)s[1] < 0xa0;
}

/* At most as long as s. ';' ends a frame in this format, as FlameGraph's own scripts do. */
static char *copy_harmless(char *to, const char *s)
{
	while (*s) {
		size_t len = vp_utf8_len(s);

		if (len == 0 || is_control(s, len))
			*to++ = '?';
		else if (*s == ';')
			*to++ = ':';
		else
			to = mempcpy(to, s, len);
		s += len ? len : 1;
	}
	return to;
}

static int part_init(struct part *p, const char *s, const char *mark)
{
	if (!s || !*s)
		s = "[unknown]";
	p->text = malloc(strlen(s) + strlen(mark) + 1);
	if (!p->text)
		return -ENOMEM;

	char *end = stpcpy(copy_harmless(p->text, s), mark);
	p->len = (size_t)(end - p->text);
	return 0;
}

/* Part i of a line: the comm, then the frames. */
static const struct part *line_part(const struct line *l, size_t i)
{
	return i == 0 ? &l->comm : &l->parts[l->stack->frames[i - 1]->id];
}

/* What follows a part at offset `at`: its own byte, the separator, or the line's end. */
static int byte_after(const struct part *p, size_t at, bool last)
{
	if (at < p->len)
		return (unsigned char)p->text[at];
	return last ? -1 : ';';
}

/* As strcmp() of the two lines without their counts. */
static int line_cmp(const void *va, const void *vb)
{
	const struct line *a = va, *b = vb;
	size_t a_end = a->stack->frame_cnt, b_end = b->stack->frame_cnt;

	for (size_t i = 0; i <= a_end && i <= b_end; i++) {
		const struct part *pa = line_part(a, i), *pb = line_part(b, i);
		size_t len = pa->len < pb->len ? pa->len : pb->len;
		int diff = pa == pb ? 0 : memcmp(pa->text, pb->text, len);

		if (!diff)
			diff = byte_after(pa, len, i == a_end) - byte_after(pb, len, i == b_end);
		if (diff)
			return diff;
	}
	return 0;
}

static void put_line(FILE *f, const struct line *l, uint64_t count)
{
	for (size_t i = 0; i <= l->stack->frame_cnt; i++) {
		const struct part *p = line_part(l, i);

		if (i)
			fputc(';', f);
		fwrite(p->text, 1, p->len, f);
	}
	fprintf(f, " %llu\n", (unsigned long long)count);
}

static void put_merged(FILE *f, const struct line *lines, size_t cnt)
{
	for (size_t i = 0; i < cnt;) {
		const struct line *first = &lines[i];
		uint64_t sum = 0;

		while (i < cnt && line_cmp(first, &lines[i]) == 0)
			sum += lines[i++].stack->count;
		if (sum)
			put_line(f, first, sum);
	}
}

static int init_parts(struct part *parts, const struct vp_report *r)
{
	for (size_t i = 0; i < r->label_cnt; i++) {
		const struct vp_label *l = r->labels[i];

		if (part_init(&parts[l->id], l->text, mark_of(l->kind)))
			return -ENOMEM;
	}
	return 0;
}

static int init_lines(struct line *lines, const struct part *parts, const struct vp_report *r)
{
	for (size_t i = 0; i < r->stack_cnt; i++) {
		lines[i].parts = parts;
		lines[i].stack = &r->stacks[i];
		if (part_init(&lines[i].comm, r->stacks[i].comm, ""))
			return -ENOMEM;
	}
	return 0;
}

static void free_parts(struct part *parts, struct line *lines, const struct vp_report *r)
{
	for (size_t i = 0; parts && i < r->label_cnt; i++)
		free(parts[i].text);
	for (size_t i = 0; lines && i < r->stack_cnt; i++)
		free(lines[i].comm.text);
	free(parts);
	free(lines);
}

int vp_write_folded(FILE *f, const struct vp_report *r)
{
	struct part *parts = calloc(r->label_cnt + 1, sizeof(*parts));
	struct line *lines = calloc(r->stack_cnt + 1, sizeof(*lines));
	int err = -ENOMEM;

	if (!parts || !lines || init_parts(parts, r) || init_lines(lines, parts, r))
		goto cleanup;

	qsort(lines, r->stack_cnt, sizeof(*lines), line_cmp);
	put_merged(f, lines, r->stack_cnt);
	err = ferror(f) ? -EIO : 0;
cleanup:
	free_parts(parts, lines, r);
	return err;
}
