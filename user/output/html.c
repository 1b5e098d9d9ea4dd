/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The HTML report: flamegraph/page.html with its {{marks}} filled in. What a person needs to
 * judge the recording (header, the top functions) is written as plain HTML here, so that it is
 * there without scripts too; the picture is made by the scripts from the data block.
 */
#include "../util/html.h"
#include "html_asset.h"
#include "html_data.h"
#include "writers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#define NOSCRIPT_ROWS 20

struct page {
	const struct vp_report *r;
	char nonce[33]; /* a script that got in from elsewhere does not know it */
};

static int put_nonce(FILE *f, const struct page *p)
{
	fputs(p->nonce, f);
	return 0;
}

static int put_style(FILE *f, const struct page *p)
{
	(void)p;
	fputs(vp_asset_style, f);
	return 0;
}

static int put_model(FILE *f, const struct page *p)
{
	(void)p;
	fputs(vp_asset_model, f);
	return 0;
}

static int put_draw(FILE *f, const struct page *p)
{
	(void)p;
	fputs(vp_asset_draw, f);
	return 0;
}

static int put_ui(FILE *f, const struct page *p)
{
	(void)p;
	fputs(vp_asset_ui, f);
	return 0;
}

static int put_data(FILE *f, const struct page *p)
{
	return vp_html_data(f, p->r);
}

static int put_target(FILE *f, const struct page *p)
{
	vp_html_text(f, p->r->meta->target);
	return 0;
}

static int put_version(FILE *f, const struct page *p)
{
	vp_html_text(f, p->r->meta->version);
	return 0;
}

static int put_command(FILE *f, const struct page *p)
{
	const struct vp_meta *m = p->r->meta;

	for (int i = 0; i < m->argc; i++) {
		if (i)
			fputc(' ', f);
		vp_html_text(f, m->argv[i]);
	}
	return 0;
}

/* One item of the header: <div><dt>Kernel</dt><dd>6.1.0 x86_64</dd></div> */
static void open_fact(FILE *f, const char *name, const char *class)
{
	fprintf(f, "<div%s><dt>%s</dt><dd>", class, name);
}

static void close_fact(FILE *f)
{
	fputs("</dd></div>\n", f);
}

/* "1234567" as "1,234,567". */
static void put_grouped(FILE *f, uint64_t n)
{
	char digits[24];
	int len = snprintf(digits, sizeof(digits), "%llu", (unsigned long long)n);

	for (int i = 0; i < len; i++) {
		if (i && (len - i) % 3 == 0)
			fputc(',', f);
		fputc(digits[i], f);
	}
}

static double percent(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0.0;
}

static void put_sampling_facts(FILE *f, const struct vp_report *r)
{
	const struct vp_meta *m = r->meta;

	open_fact(f, "Event", "");
	vp_html_text(f, m->event);
	fprintf(f, ", %u Hz", m->freq_hz);
	close_fact(f);

	open_fact(f, "Duration", "");
	fprintf(f, "%.1f s", (double)m->duration_ns / 1e9);
	close_fact(f);

	open_fact(f, "Samples", "");
	put_grouped(f, r->sample_cnt);
	close_fact(f);

	open_fact(f, "Lost", m->lost_cnt ? " class=\"bad\"" : "");
	put_grouped(f, m->lost_cnt);
	if (m->lost_cnt)
		fprintf(f, " (%.2f %%)", percent(m->lost_cnt, m->lost_cnt + r->sample_cnt));
	close_fact(f);
}

static void put_date(FILE *f, int64_t realtime_s)
{
	time_t t = (time_t)realtime_s;
	struct tm tm;
	char text[64];

	if (localtime_r(&t, &tm) && strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S %z", &tm))
		fputs(text, f);
}

static void put_host_facts(FILE *f, const struct vp_meta *m)
{
	open_fact(f, "Host", "");
	vp_html_text(f, m->hostname);
	fprintf(f, ", %u CPU%s", m->cpus_online, m->cpus_online == 1 ? "" : "s");
	if (m->cpu_desc && *m->cpu_desc) {
		fputs(", ", f);
		vp_html_text(f, m->cpu_desc);
	}
	close_fact(f);

	open_fact(f, "Kernel", "");
	vp_html_text(f, m->release);
	fputc(' ', f);
	vp_html_text(f, m->arch);
	close_fact(f);

	open_fact(f, "Date", "");
	put_date(f, m->start_realtime_s);
	close_fact(f);
}

static int put_facts(FILE *f, const struct page *p)
{
	put_sampling_facts(f, p->r);
	put_host_facts(f, p->r->meta);
	return 0;
}

static int put_empty(FILE *f, const struct page *p)
{
	if (p->r->sample_cnt)
		return 0;
	fputs("<p id=\"empty\" role=\"alert\"><strong>No samples.</strong> Nothing of the target "
	      "ran "
	      "on a CPU while this was recorded (sleeping is not sampled), or it was not the "
	      "process you meant. Try a longer recording, or <code>vmaprof record -a</code> for "
	      "the whole machine.</p>\n",
	      f);
	return 0;
}

struct hot {
	const struct vp_label *label;
	uint64_t self;
	uint64_t total;
};

static int hot_cmp(const void *va, const void *vb)
{
	const struct hot *a = va, *b = vb;

	if (a->self != b->self)
		return a->self < b->self ? 1 : -1;
	if (a->total != b->total)
		return a->total < b->total ? 1 : -1;
	return a->label->id < b->label->id ? -1 : a->label->id > b->label->id;
}

/* seen: per label, the last stack (from 1) that counted it: recursion counts once. */
static void sum_hot(struct hot *hot, size_t *seen, const struct vp_report *r)
{
	for (size_t i = 0; i < r->stack_cnt; i++) {
		const struct vp_stack *s = &r->stacks[i];

		for (size_t k = 0; k < s->frame_cnt; k++) {
			uint32_t id = s->frames[k]->id;

			if (seen[id] != i + 1)
				hot[id].total += s->count;
			seen[id] = i + 1;
		}
		if (s->frame_cnt)
			hot[s->frames[s->frame_cnt - 1]->id].self += s->count;
	}
}

static void put_hottest_line(FILE *f, const struct vp_label *l)
{
	if (!l->line_cnt)
		return;
	fputs(", ", f);
	vp_html_text(f, l->lines[0].file);
	if (l->lines[0].line)
		fprintf(f, ":%u", l->lines[0].line);
}

static void put_hot_rows(FILE *f, const struct hot *hot, size_t cnt, uint64_t samples)
{
	fputs("<table><caption>Hottest functions</caption><thead><tr><th>Self</th><th>Total</th>"
	      "<th>Function</th><th>Module</th></tr></thead><tbody>\n",
	      f);
	for (size_t i = 0; i < cnt && i < NOSCRIPT_ROWS; i++) {
		fprintf(f, "<tr><td>%.2f %%</td><td>%.2f %%</td><td><bdi>",
			percent(hot[i].self, samples), percent(hot[i].total, samples));
		vp_html_text(f, hot[i].label->text);
		fputs("</bdi></td><td><bdi>", f);
		vp_html_text(f, hot[i].label->module);
		put_hottest_line(f, hot[i].label);
		fputs("</bdi></td></tr>\n", f);
	}
	fputs("</tbody></table>\n", f);
}

static int put_noscript(FILE *f, const struct page *p)
{
	const struct vp_report *r = p->r;
	struct hot *hot = calloc(r->label_cnt + 1, sizeof(*hot));
	size_t *seen = calloc(r->label_cnt + 1, sizeof(*seen));
	int err = -ENOMEM;

	if (!hot || !seen)
		goto cleanup;
	for (size_t i = 0; i < r->label_cnt; i++)
		hot[r->labels[i]->id].label = r->labels[i];
	sum_hot(hot, seen, r);
	qsort(hot, r->label_cnt, sizeof(*hot), hot_cmp);
	put_hot_rows(f, hot, r->label_cnt, r->sample_cnt);
	err = 0;
cleanup:
	free(hot);
	free(seen);
	return err;
}

static const struct mark {
	const char *name;
	int (*put)(FILE *f, const struct page *p);
} marks[] = {
	{"nonce", put_nonce}, {"target", put_target},	{"version", put_version},
	{"facts", put_facts}, {"command", put_command}, {"empty", put_empty},
	{"style", put_style}, {"model", put_model},	{"draw", put_draw},
	{"ui", put_ui},	      {"data", put_data},	{"noscript", put_noscript},
};

static int put_mark(FILE *f, const struct page *p, const char *name, size_t len)
{
	for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++) {
		if (strlen(marks[i].name) == len && memcmp(marks[i].name, name, len) == 0)
			return marks[i].put(f, p);
	}
	return -EINVAL;
}

static int put_page(FILE *f, const struct page *p)
{
	const char *at = vp_asset_page;
	const char *open;

	while ((open = strstr(at, "{{"))) {
		const char *close = strstr(open, "}}");
		int err;

		fwrite(at, 1, (size_t)(open - at), f);
		err = put_mark(f, p, open + 2, (size_t)(close - open) - 2);
		if (err)
			return err;
		at = close + 2;
	}
	fputs(at, f);
	return 0;
}

static int make_nonce(struct page *p)
{
	unsigned char bytes[16];

	if (getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes))
		return -EIO;
	for (size_t i = 0; i < sizeof(bytes); i++)
		snprintf(p->nonce + 2 * i, 3, "%02x", bytes[i]);
	return 0;
}

int vp_write_html(FILE *f, const struct vp_report *r)
{
	struct page p = {.r = r};
	int err = make_nonce(&p);

	if (!err)
		err = put_page(f, &p);
	if (!err && ferror(f))
		err = -EIO;
	return err;
}
