/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "html.h"

#include "json.h"
#include "utf8.h"

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

void vp_html_json_string(FILE *f, const char *s)
{
	vp_json_string_also(f, s, "<>&\"\\\n\t");
}
