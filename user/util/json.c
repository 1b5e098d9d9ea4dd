/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "json.h"

#include "utf8.h"

#include <string.h>

static void put_ascii(FILE *f, unsigned char c, const char *also)
{
	if (strchr(also, c)) {
		fprintf(f, "\\u%04x", c);
		return;
	}
	switch (c) {
	case '"':
		fputs("\\\"", f);
		break;
	case '\\':
		fputs("\\\\", f);
		break;
	case '\n':
		fputs("\\n", f);
		break;
	case '\t':
		fputs("\\t", f);
		break;
	default:
		if (c < 0x20 || c == 0x7f)
			fprintf(f, "\\u%04x", c);
		else
			fputc(c, f);
	}
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

static void put_sequence(FILE *f, const char *s, size_t len)
{
	char digit = line_separator(s, len);

	if (digit)
		fprintf(f, "\\u202%c", digit);
	else
		fwrite(s, 1, len, f);
}

void vp_json_string_also(FILE *f, const char *s, const char *also)
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
			put_ascii(f, (unsigned char)*s, also);
		else
			put_sequence(f, s, len);
		s += len ? len : 1;
	}
	fputc('"', f);
}

void vp_json_string(FILE *f, const char *s)
{
	vp_json_string_also(f, s, "");
}
