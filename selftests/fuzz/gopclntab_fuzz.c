/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The reader of Go's table of functions. */
#include "symbolize/gopclntab.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct gopclntab_func f;
	struct gopclntab t;

	if (gopclntab_open(&t, data, size))
		return 0;
	for (uint64_t i = 0; i < t.func_cnt; i++) {
		if (!gopclntab_func(&t, i, &f) && (f.name >= size || f.end <= f.start))
			abort();
	}
	return 0;
}
