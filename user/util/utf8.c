/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "utf8.h"

#include <string.h>

static int is_tail(unsigned char c)
{
	return (c & 0xc0) == 0x80;
}

size_t vp_utf8_len(const char *str)
{
	const unsigned char *s = (const unsigned char *)str;

	if (s[0] < 0x80)
		return s[0] ? 1 : 0;
	if (s[0] < 0xc2)
		return 0;
	if (s[0] < 0xe0)
		return is_tail(s[1]) ? 2 : 0;
	if (s[0] < 0xf0) {
		if (!is_tail(s[1]) || !is_tail(s[2]))
			return 0;
		if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f))
			return 0;
		return 3;
	}
	if (s[0] > 0xf4 || !is_tail(s[1]) || !is_tail(s[2]) || !is_tail(s[3]))
		return 0;
	if ((s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f))
		return 0;
	return 4;
}

size_t vp_utf8_fit(const char *s, size_t max)
{
	size_t kept = max;

	/* no more than one character's bytes back: the text need not be UTF-8 */
	while (kept > 0 && kept + 3 > max && ((unsigned char)s[kept] & 0xc0) == 0x80)
		kept--;
	return kept;
}

void vp_utf8_cut(char *s, size_t max)
{
	if (strnlen(s, max + 1) > max)
		memcpy(s + vp_utf8_fit(s, max - (sizeof(VP_UTF8_CUT_MARK) - 1)), VP_UTF8_CUT_MARK,
		       sizeof(VP_UTF8_CUT_MARK));
}
