/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "terminal.h"

#include "utf8.h"

#include <stdbool.h>
#include <string.h>

/* U+0080 … U+009F in two bytes; U+200E/F, U+2028 … U+202E, U+2066 … U+2069 in three. */
static bool is_control(const unsigned char *s, size_t len)
{
	if (len == 1)
		return s[0] < 0x20 || s[0] == 0x7f;
	if (len == 2)
		return s[0] == 0xc2 && s[1] < 0xa0;
	if (len != 3 || s[0] != 0xe2)
		return false;
	if (s[1] == 0x80)
		return s[2] == 0x8e || s[2] == 0x8f || (s[2] >= 0xa8 && s[2] <= 0xae);
	return s[1] == 0x81 && s[2] >= 0xa6 && s[2] <= 0xa9;
}

void vp_print_safe(FILE *f, const char *s)
{
	while (*s) {
		size_t len = vp_utf8_len(s);

		if (len == 0 || is_control((const unsigned char *)s, len))
			fputc('?', f);
		else
			fwrite(s, 1, len, f);
		s += len ? len : 1;
	}
}
