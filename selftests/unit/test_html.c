/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "output/html_asset.h"
#include "output/html_data.h"
#include "output/writers.h"
#include "util/html.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LABEL_CNT 60
#define STACK_CNT 500
#define FRAME_MAX 40

static struct vp_label labels[LABEL_CNT];
static const struct vp_label *by_id[LABEL_CNT];
static const struct vp_label *frames[STACK_CNT][FRAME_MAX];
static struct vp_stack stacks[STACK_CNT];
static char texts[LABEL_CNT][16];
static char *argv[] = {"vmaprof", "record", "-o", "<a&b>.html"};
static struct vp_meta meta = {
	.version = "1.0",
	.hostname = "host<1>",
	.release = "6.1.0",
	.arch = "x86_64",
	.target = "PID 42 (\"it's\")",
	.event = "cpu-clock",
	.argc = 4,
	.argv = argv,
	.cpus_online = 4,
	.freq_hz = 99,
	.duration_ns = 12345000000ull,
	.lost_cnt = 1234567,
};
static struct vp_report report = {.meta = &meta, .stacks = stacks, .labels = by_id};
static uint32_t seed = 42;

static uint32_t pick(uint32_t below)
{
	seed = seed * 1664525u + 1013904223u;
	return (seed >> 8) % below;
}

static void setup(void)
{
	report.label_cnt = LABEL_CNT;
	report.stack_cnt = STACK_CNT;
	for (uint32_t i = 0; i < LABEL_CNT; i++) {
		snprintf(texts[i], sizeof(texts[i]), "f%u", i);
		labels[i] = (struct vp_label){.text = texts[i],
					      .module = "m",
					      .kind = (enum vp_label_kind)(i % 5),
					      .id = i};
		by_id[i] = &labels[i];
	}
	for (uint32_t i = 0; i < STACK_CNT; i++) {
		size_t cnt = pick(FRAME_MAX + 1);

		for (size_t k = 0; k < cnt; k++)
			frames[i][k] = &labels[k < 10 ? pick(2) : pick(LABEL_CNT)];
		stacks[i] = (struct vp_stack){"comm", 1, 1 + pick(5), 1 + pick(9), cnt, frames[i]};
		report.sample_cnt += stacks[i].count;
	}
}

TestSuite(html, .init = setup);

static char *page(void)
{
	size_t size;
	char *text = NULL;
	FILE *f = open_memstream(&text, &size);

	cr_assert(eq(int, vp_write_html(f, &report), 0));
	fclose(f);
	return text;
}

static void one_stack(const char *name)
{
	labels[0].text = name;
	labels[0].module = name;
	frames[0][0] = &labels[0];
	stacks[0] = (struct vp_stack){name, 1, 1, 5, 1, frames[0]};
	report.stack_cnt = report.label_cnt = 1;
	report.sample_cnt = 5;
}

static size_t count_of(const char *text, const char *what)
{
	size_t n = 0;

	for (const char *at = text; (at = strstr(at, what)); at += strlen(what))
		n++;
	return n;
}

/* Sum over stacks of a number that depends on all of its frames, in order. */
static uint64_t fingerprint(uint64_t count, const uint32_t *ids, size_t cnt)
{
	uint64_t h = 7;

	for (size_t i = 0; i < cnt; i++)
		h = h * 31 + ids[i];
	return count * h;
}

static uint64_t report_fingerprint(void)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < report.stack_cnt; i++) {
		uint32_t ids[FRAME_MAX];

		for (size_t k = 0; k < stacks[i].frame_cnt; k++)
			ids[k] = stacks[i].frames[k]->id;
		sum += fingerprint(stacks[i].count, ids, stacks[i].frame_cnt);
	}
	return sum;
}

static uint64_t next_number(const char **at)
{
	char *end;
	uint64_t n = strtoull(*at + strspn(*at, ", \n"), &end, 10);

	*at = end;
	return n;
}

Test(html, stacks_in_the_page_are_those_of_the_report)
{
	char *text = page();
	const char *at = strstr(text, "\"stacks\":[");
	uint64_t samples = 0, sum = 0;
	uint32_t ids[FRAME_MAX];

	cr_assert(at != NULL);
	for (at += strlen("\"stacks\":["); *at != ']';) {
		next_number(&at); /* thread */
		uint64_t count = next_number(&at);
		size_t kept = next_number(&at), added = next_number(&at);

		cr_assert(le(sz, kept + added, FRAME_MAX));
		for (size_t k = kept; k < kept + added; k++)
			ids[k] = (uint32_t)next_number(&at);
		samples += count;
		sum += fingerprint(count, ids, kept + added);
	}
	cr_assert(eq(u64, samples, report.sample_cnt));
	cr_assert(eq(u64, sum, report_fingerprint()));
	free(text);
}

Test(html, header_tells_what_was_recorded_escaped)
{
	char *text = page();

	cr_assert(strstr(text, "<bdi>PID 42 (&quot;it&#39;s&quot;)</bdi>") != NULL);
	cr_assert(strstr(text, "vmaprof record -o &lt;a&amp;b&gt;.html") != NULL);
	cr_assert(strstr(text, "cpu-clock, 99 Hz") != NULL);
	cr_assert(strstr(text, "host&lt;1&gt;, 4 CPUs") != NULL);
	cr_assert(strstr(text, "12.3 s") != NULL);
	cr_assert(strstr(text, "1,234,567 (") != NULL);
	cr_assert(strstr(text, "6.1.0 x86_64") != NULL);
	free(text);
}

Test(html, page_is_self_contained_and_closed_to_other_scripts)
{
	char *text = page();

	cr_assert(strstr(text, "content=\"default-src 'none'; script-src 'nonce-") != NULL);
	cr_assert(eq(sz, count_of(text, "http:") + count_of(text, "https:"), 0));
	cr_assert(eq(sz, count_of(text, " src=") + count_of(text, " href="), 0));
	cr_assert(eq(sz, count_of(text, "{{"), 0));
	free(text);
}

Test(html, nonce_differs_from_page_to_page)
{
	char *a = page(), *b = page();
	const char *na = strstr(a, "'nonce-"), *nb = strstr(b, "'nonce-");

	cr_assert(na && nb && strncmp(na, nb, 7 + 32) != 0);
	free(a);
	free(b);
}

Test(html, scripts_do_not_end_their_own_element)
{
	const char *const assets[] = {vp_asset_model, vp_asset_draw, vp_asset_ui};

	for (size_t i = 0; i < 3; i++)
		cr_assert(strcasestr(assets[i], "</script") == NULL &&
			  strstr(assets[i], "<!--") == NULL);
	cr_assert(strcasestr(vp_asset_style, "</style") == NULL);
}

Test(html, hostile_names_stay_inert)
{
	static const char *const names[] = {
		"</script><script>x()</script>",
		"<!--<script>",
		"</noscript><img src=x onerror=x()>",
		"</title></style><svg onload=x()>",
		"'\"><b onclick=x()>",
	};
	one_stack("safe");
	char *safe = page();

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		one_stack(names[i]);
		meta.hostname = meta.target = meta.version = argv[3] = (char *)names[i];
		labels[0].lines = &(struct vp_line){names[i], 1, 1};
		labels[0].line_cnt = 1;
		char *text = page();

		cr_assert(eq(sz, count_of(text, "<script"), count_of(safe, "<script")));
		cr_assert(eq(sz, count_of(text, "</"), count_of(safe, "</")));
		cr_assert(eq(sz, count_of(text, "<!--"), 0));
		cr_assert(eq(sz, count_of(text, "<img") + count_of(text, "<svg"), 0));
		cr_assert(eq(sz, count_of(text, "<b onclick"), 0));
		free(text);
	}
	free(safe);
}

static struct vp_line some_lines[] = {
	{"/src/<b>.c", 7, 20}, {"/src/<b>.c", 9, 10}, {"/src/a.h", 0, 6},
	{"/src/a.h", 1, 3},    {"/src/a.h", 2, 2},    {"/src/never/shown.h", 3, 1},
};

Test(html, lines_of_a_label_are_the_most_frequent_few)
{
	one_stack("main");
	labels[0].lines = some_lines;
	labels[0].line_cnt = 6;
	char *text = page();

	cr_assert(strstr(text, "\"files\":[\"/src/\\u003cb\\u003e.c\",\"/src/a.h\"],\n"
			       "\"lines\":{\"0\":[42,0,7,20,0,9,10,1,0,6,1,1,3,1,2,2]},") != NULL);
	cr_assert(strstr(text, "<bdi>main, /src/&lt;b&gt;.c:7</bdi>") != NULL);
	free(text);

	labels[0].lines = &some_lines[2];
	labels[0].line_cnt = 1;
	text = page();
	cr_assert(strstr(text, "<bdi>main, /src/a.h</bdi>") != NULL);
	free(text);
}

Test(html, no_lines_take_no_room)
{
	char *text = page();

	cr_assert(strstr(text, "\"lines\":{") == NULL && strstr(text, "\"files\":") == NULL);
	free(text);
}

Test(html, noscript_table_counts_recursion_once)
{
	labels[0].text = "again";
	frames[0][0] = frames[0][1] = frames[0][2] = &labels[0];
	stacks[0] = (struct vp_stack){"c", 1, 1, 5, 3, frames[0]};
	report.stack_cnt = 1;
	report.sample_cnt = 10;

	char *text = page();
	cr_assert(strstr(text, "<tr><td>50.00 %</td><td>50.00 %</td><td><bdi>again</bdi>") != NULL);
	free(text);
}

Test(html, no_samples_are_said_plainly)
{
	report.stack_cnt = report.label_cnt = report.sample_cnt = 0;
	char *text = page();

	cr_assert(strstr(text, "<strong>No samples.</strong>") != NULL);
	cr_assert(strstr(text, "\"stacks\":[]") != NULL);
	free(text);

	one_stack("main");
	text = page();
	cr_assert(strstr(text, "No samples.") == NULL);
	free(text);
}

Test(html, stacks_without_frames_keep_their_samples)
{
	one_stack("guest");
	stacks[0].frame_cnt = 0;
	char *text = page();

	cr_assert(strstr(text, "\"stacks\":[0,5,0,0]") != NULL);
	free(text);
}

Test(html, ten_thousand_distinct_stacks_stay_below_three_megabytes)
{
	enum { CNT = 10000, DEPTH = 50, FUNCTIONS = 3000 };
	static struct vp_label many[FUNCTIONS];
	static const struct vp_label *many_by_id[FUNCTIONS], *f[CNT][DEPTH];
	static struct vp_stack s[CNT];
	static char names[FUNCTIONS][48];

	for (uint32_t i = 0; i < FUNCTIONS; i++) {
		snprintf(names[i], sizeof(names[i]), "a_function_of_a_common_length_%u", i);
		many[i] = (struct vp_label){.text = names[i], .module = "libapp.so.1", .id = i};
		many_by_id[i] = &many[i];
	}
	for (uint32_t i = 0; i < CNT; i++) {
		/* nothing shared below the first frames: the worst case */
		for (size_t k = 0; k < DEPTH; k++)
			f[i][k] = &many[k < 2 ? k : pick(FUNCTIONS)];
		s[i] = (struct vp_stack){"comm", 1, 1, 1, DEPTH, f[i]};
	}
	report = (struct vp_report){&meta, s, CNT, many_by_id, FUNCTIONS, CNT};

	char *text = page();
	cr_assert(lt(sz, strlen(text), 3000000));
	free(text);
}

Test(html, write_error_is_returned)
{
	FILE *f = fopen("/dev/full", "w");

	cr_assert(eq(int, vp_write_html(f, &report), -EIO));
	fclose(f);
}

static char *written(void (*put)(FILE *, const char *), const char *s)
{
	size_t size;
	char *text = NULL;
	FILE *f = open_memstream(&text, &size);

	put(f, s);
	fclose(f);
	return text;
}

#define EXPECT(put, in, out)                                                                       \
	do {                                                                                       \
		char *got_ = written(put, in);                                                     \
		cr_assert(eq(str, got_, out));                                                     \
		free(got_);                                                                        \
	} while (0)

Test(html, text_is_escaped_for_elements_and_attributes)
{
	EXPECT(vp_html_text, "<a b=\"c\" d='e'>&", "&lt;a b=&quot;c&quot; d=&#39;e&#39;&gt;&amp;");
	EXPECT(vp_html_text, "\x01\xff\xc2\x85", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
	EXPECT(vp_html_text, "日本 é", "日本 é");
	EXPECT(vp_html_text, NULL, "");
}

Test(html, json_strings_cannot_leave_a_script_element)
{
	EXPECT(vp_html_json_string, "</script>&", "\"\\u003c/script\\u003e\\u0026\"");
	EXPECT(vp_html_json_string, "\"\\\n\x7f", "\"\\u0022\\u005c\\u000a\\u007f\"");
	EXPECT(vp_html_json_string, "\xe2\x80\xa8\xe2\x80\xa9\xe2\x80\xaa",
	       "\"\\u2028\\u2029\xe2\x80\xaa\"");
	EXPECT(vp_html_json_string, "\xff\xc3(", "\"\\ufffd\\ufffd(\"");
	EXPECT(vp_html_json_string, NULL, "null");
}
