/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The reader of the kernel's list of symbols, of which a copy may be given. */
#include "symbolize/kallsyms.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void look_up(const struct kallsyms *k, uint64_t from)
{
	struct symtab_hit hit;

	for (uint64_t at = from; at - from < 0x3000; at += 0x40) {
		if (k->table && !symtab_find(k->table, at, &hit) && hit.tag >= k->module_cnt)
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct kallsyms *k = NULL;
	int fd = memfd_create("fuzz", MFD_CLOEXEC);
	char path[64];

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (!kallsyms_read(&k, path)) {
		if (!k->table != (k->reason != VP_SYM_OK))
			abort();
		look_up(k, 0);
		look_up(k, 0xffffffff81000000);
		look_up(k, 0xffffffffc0000000);
	}
	kallsyms_free(k);
	close(fd);
	return 0;
}
