/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef VP_ARRAY_H
#define VP_ARRAY_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/*
 * Makes room for `more` elements of `size` bytes behind the `cnt` that *array (capacity *cap)
 * holds, growing by half at least. 0 or -ENOMEM; then nothing has changed.
 */
static inline int vp_array_room(void **array, size_t *cap, size_t cnt, size_t more, size_t size)
{
	size_t want = cnt + more, bigger = *cap + *cap / 2 + 16;
	void *p;

	if (*array && want <= *cap)
		return 0;
	if (bigger < want)
		bigger = want;
	p = reallocarray(*array, bigger, size);
	if (!p)
		return -ENOMEM;
	*array = p;
	*cap = bigger;
	return 0;
}

/* For comparison functions of qsort: ascending. */
static inline int vp_cmp_u64(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

#endif
