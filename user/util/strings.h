/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Equal strings once: each has a small number and an address that stays. */
#ifndef VP_STRINGS_H
#define VP_STRINGS_H

#include "index.h"

/* All zero is empty. */
struct vp_strings {
	char **str;
	size_t cnt, cap;
	struct vp_index index;
};

/* Number of s, which is copied if new; VP_INDEX_NONE: out of memory. */
uint32_t vp_strings_add(struct vp_strings *t, const char *s);

void vp_strings_free(struct vp_strings *t);

#endif
