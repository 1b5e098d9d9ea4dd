/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "html_data.h"

#include "../util/html.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LINES_MAX 5 /* of a label */

/* A list of distinct strings, sorted, so that a string's index can be found again. */
struct strings {
	const char **s;
	size_t cnt;
};

struct entry {
	const struct vp_stack *stack;
	uint32_t thread; /* index into "threads" */
};

static int string_cmp(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void strings_sort(struct strings *t)
{
	size_t n = 0;

	qsort(t->s, t->cnt, sizeof(*t->s), string_cmp);
	for (size_t i = 0; i < t->cnt; i++) {
		if (n == 0 || strcmp(t->s[n - 1], t->s[i]) != 0)
			t->s[n++] = t->s[i];
	}
	t->cnt = n;
}

static size_t strings_index(const struct strings *t, const char *s)
{
	const char **at = bsearch(&s, t->s, t->cnt, sizeof(*t->s), string_cmp);

	return (size_t)(at - t->s);
}

static void put_strings(FILE *f, const char *key, const struct strings *t)
{
	fprintf(f, ",\n\"%s\":[", key);
	for (size_t i = 0; i < t->cnt; i++) {
		if (i)
			fputc(',', f);
		vp_html_json_string(f, t->s[i]);
	}
	fputc(']', f);
}

static const char *or_empty(const char *s)
{
	return s ? s : "";
}

static void put_names(FILE *f, const struct vp_report *r)
{
	fputs(",\n\"names\":[", f);
	for (size_t i = 0; i < r->label_cnt; i++) {
		if (i)
			fputc(',', f);
		vp_html_json_string(f, or_empty(r->labels[i]->text));
	}
	fputc(']', f);
}

static int put_labels(FILE *f, const struct vp_report *r)
{
	struct strings modules = {.s = calloc(r->label_cnt + 1, sizeof(char *))};

	if (!modules.s)
		return -ENOMEM;
	for (size_t i = 0; i < r->label_cnt; i++)
		modules.s[modules.cnt++] = or_empty(r->labels[i]->module);
	strings_sort(&modules);

	put_strings(f, "modules", &modules);
	put_names(f, r);
	fputs(",\n\"module_of\":[", f);
	for (size_t i = 0; i < r->label_cnt; i++)
		fprintf(f, i ? ",%zu" : "%zu",
			strings_index(&modules, or_empty(r->labels[i]->module)));
	fputs("],\n\"kinds\":\"", f);
	for (size_t i = 0; i < r->label_cnt; i++)
		fputc('0' + (int)r->labels[i]->kind, f);
	fputc('"', f);

	free(modules.s);
	return 0;
}

static void put_lines_of(FILE *f, const struct vp_label *l, const struct strings *files)
{
	uint64_t all = 0;

	for (size_t i = 0; i < l->line_cnt; i++)
		all += l->lines[i].count;
	fprintf(f, "\"%u\":[%llu", l->id, (unsigned long long)all);
	for (size_t i = 0; i < l->line_cnt && i < LINES_MAX; i++)
		fprintf(f, ",%zu,%u,%llu", strings_index(files, l->lines[i].file), l->lines[i].line,
			(unsigned long long)l->lines[i].count);
	fputc(']', f);
}

static size_t count_lines(const struct vp_report *r)
{
	size_t cnt = 0;

	for (size_t i = 0; i < r->label_cnt; i++)
		cnt += r->labels[i]->line_cnt < LINES_MAX ? r->labels[i]->line_cnt : LINES_MAX;
	return cnt;
}

static int put_lines(FILE *f, const struct vp_report *r)
{
	size_t cnt = count_lines(r);
	struct strings files = {.s = calloc(cnt + 1, sizeof(char *))};
	const char *separator = "";

	if (!files.s)
		return -ENOMEM;
	for (size_t i = 0; i < r->label_cnt; i++) {
		for (size_t k = 0; k < r->labels[i]->line_cnt && k < LINES_MAX; k++)
			files.s[files.cnt++] = r->labels[i]->lines[k].file;
	}
	strings_sort(&files);
	put_strings(f, "files", &files);
	fputs(",\n\"lines\":{", f);
	for (size_t i = 0; i < r->label_cnt; i++) {
		if (!r->labels[i]->line_cnt)
			continue;
		fputs(separator, f);
		put_lines_of(f, r->labels[i], &files);
		separator = ",";
	}
	fputc('}', f);
	free(files.s);
	return 0;
}

static int cmp_u64(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

static int thread_cmp(const struct vp_stack *a, const struct vp_stack *b)
{
	int diff = cmp_u64(a->tgid, b->tgid);

	if (!diff)
		diff = cmp_u64(a->tid, b->tid);
	if (!diff)
		diff = strcmp(or_empty(a->comm), or_empty(b->comm));
	return diff;
}

static int entry_thread_cmp(const void *va, const void *vb)
{
	const struct entry *a = va, *b = vb;

	return thread_cmp(a->stack, b->stack);
}

static int entry_frames_cmp(const void *va, const void *vb)
{
	const struct entry *ea = va, *eb = vb;
	const struct vp_stack *a = ea->stack, *b = eb->stack;

	for (size_t i = 0; i < a->frame_cnt && i < b->frame_cnt; i++) {
		int diff = cmp_u64(a->frames[i]->id, b->frames[i]->id);

		if (diff)
			return diff;
	}
	if (a->frame_cnt != b->frame_cnt)
		return cmp_u64(a->frame_cnt, b->frame_cnt);
	return cmp_u64(ea->thread, eb->thread);
}

/* Numbers the threads of the entries, which it sorts by thread, and writes them. */
static int put_threads(FILE *f, struct entry *entries, size_t cnt)
{
	struct strings comms = {.s = calloc(cnt + 1, sizeof(char *))};
	uint32_t thread = 0;

	if (!comms.s)
		return -ENOMEM;
	for (size_t i = 0; i < cnt; i++)
		comms.s[comms.cnt++] = or_empty(entries[i].stack->comm);
	strings_sort(&comms);
	put_strings(f, "comms", &comms);

	qsort(entries, cnt, sizeof(*entries), entry_thread_cmp);
	fputs(",\n\"threads\":[", f);
	for (size_t i = 0; i < cnt; i++) {
		const struct vp_stack *s = entries[i].stack;

		if (i && thread_cmp(entries[i - 1].stack, s) == 0) {
			entries[i].thread = thread;
			continue;
		}
		if (i)
			thread++;
		entries[i].thread = thread;
		fprintf(f, "%s%zu,%u,%u", i ? "," : "", strings_index(&comms, or_empty(s->comm)),
			s->tgid, s->tid);
	}
	fputc(']', f);
	free(comms.s);
	return 0;
}

static size_t common_frames(const struct vp_stack *a, const struct vp_stack *b)
{
	size_t n = 0;

	while (n < a->frame_cnt && n < b->frame_cnt && a->frames[n] == b->frames[n])
		n++;
	return n;
}

static void put_stacks(FILE *f, struct entry *entries, size_t cnt)
{
	qsort(entries, cnt, sizeof(*entries), entry_frames_cmp);
	fputs(",\n\"stacks\":[", f);
	for (size_t i = 0; i < cnt; i++) {
		const struct vp_stack *s = entries[i].stack;
		size_t kept = i ? common_frames(entries[i - 1].stack, s) : 0;

		fprintf(f, "%s%u,%llu,%zu,%zu", i ? ",\n" : "", entries[i].thread,
			(unsigned long long)s->count, kept, s->frame_cnt - kept);
		for (size_t k = kept; k < s->frame_cnt; k++)
			fprintf(f, ",%u", s->frames[k]->id);
	}
	fputc(']', f);
}

int vp_html_data(FILE *f, const struct vp_report *r)
{
	struct entry *entries = calloc(r->stack_cnt + 1, sizeof(*entries));
	int err = -ENOMEM;

	if (!entries)
		goto cleanup;
	for (size_t i = 0; i < r->stack_cnt; i++)
		entries[i].stack = &r->stacks[i];

	fprintf(f, "{\"samples\":%llu,\"event\":", (unsigned long long)r->sample_cnt);
	vp_html_json_string(f, r->meta->event);
	fprintf(f, ",\"freq\":%u", r->meta->freq_hz);
	err = put_labels(f, r);
	if (!err && count_lines(r))
		err = put_lines(f, r);
	if (!err)
		err = put_threads(f, entries, r->stack_cnt);
	if (!err)
		put_stacks(f, entries, r->stack_cnt);
	fputs("}\n", f);
cleanup:
	free(entries);
	return err;
}
