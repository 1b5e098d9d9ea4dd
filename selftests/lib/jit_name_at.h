/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef JIT_NAME_AT_H
#define JIT_NAME_AT_H

#include "symbolize/jit_table.h"

/* NULL: none. Borrowed until the table's next call. */
static inline const char *jit_name_at(struct jit_table *t, uint64_t addr)
{
	struct jit_found found;

	return jit_table_find(t, addr, &found) ? found.name : NULL;
}

#endif
