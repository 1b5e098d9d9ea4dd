// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "report.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "util/html.h"
#include "util/json.h"

struct report {
	enum report_form form;
	FILE *junit;
	const char *junit_name;
	size_t nth, cnt[CT_VERDICT_CNT];
	bool is_terminal;
};

static const char *const words[CT_VERDICT_CNT] = {"pass", "fail", "skip", "xfail", "xpass"};

static bool has_failed(enum ct_verdict v)
{
	return v == CT_FAIL || v == CT_XPASS;
}

/* What stands before the fix of a known bug. */
static const char *about_fix(const struct ct_result *res)
{
	return res->verdict == CT_XPASS ? "the known bug is not there any more; its fix: "
					: "known bug, fixed by ";
}

/* ---- parts of text ---------------------------------------------------------------------------- */

/* Calls print for each line of text. */
static void each_line(const char *text, void (*print)(const char *line, size_t len))
{
	while (*text) {
		size_t len = strcspn(text, "\n");

		print(text, len);
		text += len + (text[len] == '\n');
	}
}

static void print_indented(const char *line, size_t len)
{
	printf("        %.*s\n", (int)len, line);
}

static void print_comment(const char *line, size_t len)
{
	printf("# %.*s\n", (int)len, line);
}

static size_t first_line(const char *text)
{
	return strcspn(text, "\n");
}

/* Content of an element or an attribute, as in HTML; its lines stay lines. */
static void put_xml(FILE *f, const char *text)
{
	char line[sizeof(((struct ct_result *)0)->text)];

	while (*text) {
		size_t len = strcspn(text, "\n");

		snprintf(line, sizeof(line), "%.*s", (int)len, text);
		vp_html_text(f, line);
		text += len;
		if (*text == '\n')
			fputc(*text++, f);
	}
}

/* ---- forms ------------------------------------------------------------------------------------ */

static void table_result(const struct report *r, const struct ct_case *c,
			 const struct ct_result *res)
{
	if (r->is_terminal)
		fputs("\r\033[K", stdout);
	printf("%-5s  %-44s %5u ms", words[res->verdict], c->name, res->ms);
	if (res->verdict == CT_SKIP)
		printf("  %.*s", (int)first_line(res->text), res->text);
	if (res->fix[0])
		printf("  %s%s", about_fix(res), res->fix);
	putchar('\n');
	if (has_failed(res->verdict)) {
		printf("        expected: %s\n", c->says);
		each_line(res->text, print_indented);
	}
}

/* https://docs.kernel.org/dev-tools/ktap.html */
static void ktap_result(const struct report *r, const struct ct_case *c,
			const struct ct_result *res)
{
	if (has_failed(res->verdict))
		printf("# expected: %s\n", c->says);
	if (res->verdict == CT_XPASS)
		printf("# %s%s\n", about_fix(res), res->fix);
	each_line(res->text, print_comment);
	printf("%sok %zu %s", has_failed(res->verdict) ? "not " : "", r->nth, c->name);
	if (res->verdict == CT_SKIP)
		printf(" # SKIP %.*s", (int)first_line(res->text), res->text);
	else if (res->verdict == CT_XFAIL)
		printf(" # XFAIL %s%s", about_fix(res), res->fix);
	putchar('\n');
}

static void json_result(const struct ct_case *c, const struct ct_result *res)
{
	printf("{\"case\":\"%s\",\"numbers\":\"%s\",\"result\":\"%s\",\"ms\":%u,\"expected\":",
	       c->name, c->numbers ? c->numbers : "", words[res->verdict], res->ms);
	vp_json_string(stdout, c->says);
	fputs(",\"text\":", stdout);
	vp_json_string(stdout, res->text);
	fputs(",\"fix\":", stdout);
	if (res->fix[0])
		vp_json_string(stdout, res->fix);
	else
		fputs("null", stdout);
	fputs("}\n", stdout);
}

static void junit_result(FILE *f, const struct ct_case *c, const struct ct_result *res)
{
	const char *slash = strchr(c->name, '/');

	fprintf(f, "  <testcase classname=\"%.*s\" name=\"%s\" time=\"%u.%03u\">",
		slash ? (int)(slash - c->name) : 0, c->name, slash ? slash + 1 : c->name,
		res->ms / 1000, res->ms % 1000);
	if (has_failed(res->verdict)) {
		fputs("<failure message=\"", f);
		if (res->verdict == CT_XPASS) {
			put_xml(f, about_fix(res));
			put_xml(f, res->fix);
			fputs("; expected: ", f);
		}
		put_xml(f, c->says);
		fputs("\">", f);
		put_xml(f, res->text);
		fputs("</failure>", f);
	} else if (res->verdict == CT_SKIP || res->verdict == CT_XFAIL) {
		fputs("<skipped message=\"", f);
		if (res->verdict == CT_XFAIL)
			put_xml(f, about_fix(res));
		put_xml(f, res->verdict == CT_SKIP ? res->text : res->fix);
		fputs("\"/>", f);
	}
	fputs("</testcase>\n", f);
}

/* ---- the report ------------------------------------------------------------------------------- */

int report_written(FILE *f, const char *name)
{
	bool has_failed_before = ferror(f);

	errno = 0;
	if (!fflush(f) && !has_failed_before)
		return 0;
	/* of one that failed before, the reason is gone */
	fprintf(stderr, "vmaprof-selftest: %s could not be written%s%s\n", name, errno ? ": " : "",
		errno ? strerror(errno) : "");
	return -EIO;
}

struct report *report_begin(enum report_form form, const char *junit, size_t case_cnt)
{
	struct report *r = calloc(1, sizeof(*r));
	const char *term;
	struct utsname u;

	if (!r)
		return NULL;
	r->form = form;
	r->junit_name = junit;
	term = getenv("TERM");
	r->is_terminal = isatty(STDOUT_FILENO) && term && strcmp(term, "dumb") != 0;
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (junit) {
		r->junit = fopen(junit, "we");
		if (!r->junit) {
			fprintf(stderr, "vmaprof-selftest: %s: %s\n", junit, strerror(errno));
			free(r);
			return NULL;
		}
		fputs("<?xml version=\"1.0\"?>\n<testsuite name=\"vmaprof-selftest\">\n", r->junit);
	}
	uname(&u);
	if (form == REPORT_KTAP)
		printf("KTAP version 1\n1..%zu\n", case_cnt);
	else if (form == REPORT_TABLE)
		printf("kernel %s, %zu cases\n", u.release, case_cnt);
	return r;
}

void report_starts(struct report *r, const struct ct_case *c)
{
	r->nth++;
	if (r->form == REPORT_TABLE && r->is_terminal) {
		printf("…      %s", c->name);
		fflush(stdout);
	}
}

void report_result(struct report *r, const struct ct_case *c, const struct ct_result *result)
{
	r->cnt[result->verdict]++;
	if (r->form == REPORT_KTAP)
		ktap_result(r, c, result);
	else if (r->form == REPORT_JSON)
		json_result(c, result);
	else
		table_result(r, c, result);
	if (r->junit)
		junit_result(r->junit, c, result);
}

int report_end(struct report *r)
{
	size_t failed = r->cnt[CT_FAIL] + r->cnt[CT_XPASS];
	int err = 0;

	/* of a case that was stopped */
	if (r->form == REPORT_TABLE && r->is_terminal)
		fputs("\r\033[K", stdout);
	if (r->form != REPORT_JSON)
		printf("%s%zu passed, %zu failed, %zu skipped, %zu known bugs\n",
		       r->form == REPORT_KTAP ? "# " : "", r->cnt[CT_PASS], failed, r->cnt[CT_SKIP],
		       r->cnt[CT_XFAIL]);
	if (r->junit) {
		fputs("</testsuite>\n", r->junit);
		err = report_written(r->junit, r->junit_name);
		fclose(r->junit);
	}
	if (report_written(stdout, "the output"))
		err = -EIO;
	free(r);
	return err ? err : (int)failed;
}
