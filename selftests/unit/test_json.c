/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "util/json.h"
#include "util/utf8.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TestSuite(json);

/* Caller frees. */
static char *json_of(const char *s)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	cr_assert(f != NULL);
	vp_json_string(f, s);
	fclose(f);
	return text;
}

static void expect_json(const char *s, const char *want)
{
	char *got = json_of(s);

	cr_expect(eq(str, got, (char *)want));
	free(got);
}

Test(json, plain_text_is_quoted)
{
	expect_json("", "\"\"");
	expect_json("/usr/lib/libc.so.6", "\"/usr/lib/libc.so.6\"");
	expect_json(NULL, "null");
}

Test(json, what_must_be_escaped_is)
{
	expect_json("a\"b\\c", "\"a\\\"b\\\\c\"");
	expect_json("\n\t\r\b\f", "\"\\n\\t\\u000d\\u0008\\u000c\"");
	expect_json("\x01\x1f\x7f", "\"\\u0001\\u001f\\u007f\"");
}

Test(json, each_byte_that_is_no_utf8_is_replaced)
{
	expect_json("\xff\xfe", "\"\\ufffd\\ufffd\"");
	expect_json("a\x80z", "\"a\\ufffdz\"");
	/* overlong, surrogate, too large, cut off */
	expect_json("\xc0\xaf", "\"\\ufffd\\ufffd\"");
	expect_json("\xed\xa0\x80", "\"\\ufffd\\ufffd\\ufffd\"");
	expect_json("\xf4\x90\x80\x80", "\"\\ufffd\\ufffd\\ufffd\\ufffd\"");
	expect_json("\xe2\x82", "\"\\ufffd\\ufffd\"");
	expect_json("\xe2\"", "\"\\ufffd\\\"\"");
	expect_json("\xf0\x9f\x90", "\"\\ufffd\\ufffd\\ufffd\"");
}

Test(json, utf8_stays)
{
	expect_json("ž馬🐎", "\"ž馬🐎\"");
	expect_json("\xef\xbf\xbd\xf4\x8f\xbf\xbf", "\"\xef\xbf\xbd\xf4\x8f\xbf\xbf\"");
}

/* The sequence of a code point, by the definition; its length. */
static size_t encode(uint32_t c, char *out)
{
	if (c < 0x80) {
		out[0] = (char)c;
		return 1;
	}
	if (c < 0x800) {
		out[0] = (char)(0xc0 | c >> 6);
		out[1] = (char)(0x80 | (c & 63));
		return 2;
	}
	if (c < 0x10000) {
		out[0] = (char)(0xe0 | c >> 12);
		out[1] = (char)(0x80 | (c >> 6 & 63));
		out[2] = (char)(0x80 | (c & 63));
		return 3;
	}
	out[0] = (char)(0xf0 | c >> 18);
	out[1] = (char)(0x80 | (c >> 12 & 63));
	out[2] = (char)(0x80 | (c >> 6 & 63));
	out[3] = (char)(0x80 | (c & 63));
	return 4;
}

Test(json, exactly_the_code_points_that_exist_are_utf8)
{
	for (uint32_t c = 1; c < 0x120000; c++) {
		char text[8] = "";
		size_t len = encode(c, text);
		size_t want = (c >= 0xd800 && c < 0xe000) || c > 0x10ffff ? 0 : len;

		cr_assert(eq(sz, vp_utf8_len(text), want), "U+%X", c);
		/* cut off, it is none */
		text[len - 1] = '\0';
		if (len > 1)
			cr_assert(zero(sz, vp_utf8_len(text)), "U+%X", c);
	}
}

Test(json, overlong_forms_are_not_utf8)
{
	for (int c = 0; c < 0x80; c++) {
		const char two[] = {(char)(0xc0 | c >> 6), (char)(0x80 | (c & 63)), 0};
		const char three[] = {(char)0xe0, (char)(0x80 | c >> 6), (char)(0x80 | (c & 63)),
				      0};

		cr_assert(zero(sz, vp_utf8_len(two)));
		cr_assert(zero(sz, vp_utf8_len(three)));
	}
	cr_expect(zero(sz, vp_utf8_len("\xf0\x8f\xbf\xbf")));
	cr_expect(zero(sz, vp_utf8_len("\xf8\x88\x80\x80\x80")));
	cr_expect(zero(sz, vp_utf8_len("")));
}

/* Nothing but printable ASCII, escapes and UTF-8 between the quotes. */
static void expect_valid(const char *s)
{
	size_t len = strlen(s);

	cr_assert(len >= 2 && s[0] == '"' && s[len - 1] == '"');
	for (size_t i = 1; i < len - 1;) {
		size_t n = vp_utf8_len(s + i);

		cr_assert(gt(sz, n, 0));
		if (s[i] == '\\') {
			cr_assert(strchr("\"\\ntu", s[i + 1]) != NULL);
			n = s[i + 1] == 'u' ? 6 : 2;
		} else {
			cr_assert(s[i] != '"' && (unsigned char)s[i] >= 0x20);
		}
		i += n;
		cr_assert(lt(sz, i, len));
	}
}

Test(json, any_bytes_give_valid_json)
{
	srand48(5);
	for (int i = 0; i < 30000; i++) {
		char bytes[20] = "", *text;

		for (int j = 0; j < i % 20; j++)
			bytes[j] = (char)(lrand48() % 255 + 1);
		text = json_of(bytes);
		expect_valid(text);
		free(text);
	}
}
