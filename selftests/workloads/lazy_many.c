// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* build: -shared -fPIC -O2 -g -fomit-frame-pointer -Wl,-z,lazy -Wl,-z,norelro */
/*
 * lazy_many: a library for nofp_lazy. lazy_round calls its 256 functions through its own .plt.
 * Afterwards it makes all its calls unbound again: the next round asks the dynamic loader for
 * each of them.
 */
#include <elf.h>
#include <link.h>
#include <stddef.h>
#include <string.h>

#define FOUR(m, x)    m(x##0) m(x##1) m(x##2) m(x##3)
#define SIXTEEN(m, x) FOUR(m, x##0) FOUR(m, x##1) FOUR(m, x##2) FOUR(m, x##3)
#define ALL(m)                                                                                     \
	SIXTEEN(m, 0)                                                                              \
	SIXTEEN(m, 1)                                                                              \
	SIXTEEN(m, 2)                                                                              \
	SIXTEEN(m, 3)                                                                              \
	SIXTEEN(m, 4)                                                                              \
	SIXTEEN(m, 5)                                                                              \
	SIXTEEN(m, 6)                                                                              \
	SIXTEEN(m, 7)                                                                              \
	SIXTEEN(m, 8)                                                                              \
	SIXTEEN(m, 9)                                                                              \
	SIXTEEN(m, a)                                                                              \
	SIXTEEN(m, b)                                                                              \
	SIXTEEN(m, c)                                                                              \
	SIXTEEN(m, d)                                                                              \
	SIXTEEN(m, e)                                                                              \
	SIXTEEN(m, f)

#define DEFINE(x)                                                                                  \
	__attribute__((noipa)) int many_functions_with_long_names_##x(int n)                       \
	{                                                                                          \
		return n + 1;                                                                      \
	}
ALL(DEFINE)

#define CALL(x) n = many_functions_with_long_names_##x(n);

extern ElfW(Dyn) _DYNAMIC[] __attribute__((visibility("hidden")));
extern void *_GLOBAL_OFFSET_TABLE_[] __attribute__((visibility("hidden")));

static size_t lazy_slots(void)
{
	for (const ElfW(Dyn) *d = _DYNAMIC; d->d_tag != DT_NULL; d++)
		if (d->d_tag == DT_PLTRELSZ)
			return d->d_un.d_val / sizeof(ElfW(Rela));
	return 0;
}

__attribute__((noipa)) int lazy_round(int n)
{
	static void *unbound[1024];
	size_t slots = lazy_slots();

	if (slots > 1024)
		return -1;
	/* the first three are the loader's own */
	if (!unbound[0])
		memcpy(unbound, &_GLOBAL_OFFSET_TABLE_[3], slots * sizeof(void *));
	ALL(CALL);
	memcpy(&_GLOBAL_OFFSET_TABLE_[3], unbound, slots * sizeof(void *));
	return n;
}
