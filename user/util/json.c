/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "json.h"

#include "utf8.h"

static void put_escaped(FILE *f, unsigned char c)
{
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

void vp_json_string(FILE *f, const char *s)
{
	if (!s) {
		fputs("null", f);
		return;
	}

	fputc('"', f);
	while (*s) {
		size_t len = vp_utf8_len(s);

		if (len == 0) {
			fputs("\\ufffd", f);
			s++;
		} else if (len == 1) {
			put_escaped(f, (unsigned char)*s++);
		} else {
			fwrite(s, 1, len, f);
			s += len;
		}
	}
	fputc('"', f);
}
