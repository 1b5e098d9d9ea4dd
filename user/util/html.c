/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "html.h"

#include "utf8.h"

#include <string.h>

#define REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */

static void put_text_char(FILE *f, unsigned char c)
{
	switch (c) {
	case '<':
		fputs("&lt;", f);
		break;
	case '>':
		fputs("&gt;", f);
		break;
	case '&':
		fputs("&amp;", f);
		break;
	case '"':
		fputs("&quot;", f);
		break;
	case '\'':
		fputs("&#39;", f);
		break;
	default:
		if (c < 0x20 || c == 0x7f)
			fputs(REPLACEMENT, f);
		else
			fputc(c, f);
	}
}

/* U+0080 … U+009F: controls in two bytes. */
static int is_c1_control(const char *s, size_t len)
{
	return len == 2 && (unsigned char)s[0] == 0xc2 && (unsigned char)s[1] < 0xa0;
}

void vp_html_text(FILE *f, const char *s)
{
	while (s && *s) {
		size_t len = vp_utf8_len(s);

		if (len == 1)
			put_text_char(f, (unsigned char)*s);
		else if (len == 0 || is_c1_control(s, len))
			fputs(REPLACEMENT, f);
		else
			fwrite(s, 1, len, f);
		s += len ? len : 1;
	}
}

static void put_json_char(FILE *f, unsigned char c)
{
	if (c < 0x20 || c == 0x7f || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&')
		fprintf(f, "\\u%04x", c);
	else
		fputc(c, f);
}

/* Returns the last digit of U+2028 or U+2029 (line ends to JavaScript, not to JSON), or 0. */
static char line_separator(const char *s, size_t len)
{
	if (len != 3 || memcmp(s, "\xe2\x80", 2) != 0)
		return 0;
	if (s[2] == '\xa8')
		return '8';
	return s[2] == '\xa9' ? '9' : 0;
}

static void put_json_sequence(FILE *f, const char *s, size_t len)
{
	char digit = line_separator(s, len);

	if (digit)
		fprintf(f, "\\u202%c", digit);
	else
		fwrite(s, 1, len, f);
}

void vp_html_json_string(FILE *f, const char *s)
{
	if (!s) {
		fputs("null", f);
		return;
	}

	fputc('"', f);
	while (*s) {
		size_t len = vp_utf8_len(s);

		if (len == 0)
			fputs("\\ufffd", f);
		else if (len == 1)
			put_json_char(f, (unsigned char)*s);
		else
			put_json_sequence(f, s, len);
		s += len ? len : 1;
	}
	fputc('"', f);
}
