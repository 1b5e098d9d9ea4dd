// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * remap_text [CPU_SECONDS]: moves its own text to anonymous memory, as servers do to have it on huge
 * pages: copies it and puts the copy in its place. READY, then spins in remapped_leaf below
 * remapped_root.
 */
#include "workload.h"

#include <link.h>
#include <string.h>

static volatile unsigned long counter;

__attribute__((noipa)) void remapped_leaf(void)
{
	WL_KEEP_FRAME();
	while (!wl_stop)
		counter++;
}

__attribute__((noipa)) void remapped_root(void)
{
	WL_KEEP_FRAME();
	remapped_leaf();
	counter++;
}

/* The main program comes first. */
static int move_text(struct dl_phdr_info *info, size_t size, void *data)
{
	(void)size;
	(void)data;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		unsigned long start = (info->dlpi_addr + p->p_vaddr) & ~4095UL;
		unsigned long len =
			((info->dlpi_addr + p->p_vaddr + p->p_memsz + 4095) & ~4095UL) - start;
		void *copy;

		if (p->p_type != PT_LOAD || !(p->p_flags & PF_X))
			continue;
		copy = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (copy == MAP_FAILED)
			wl_die("mmap");
		memcpy(copy, (void *)start, len);
		if (mprotect(copy, len, PROT_READ | PROT_EXEC))
			wl_die("mprotect");
		if (mremap(copy, len, len, MREMAP_MAYMOVE | MREMAP_FIXED, (void *)start) ==
		    MAP_FAILED)
			wl_die("mremap");
	}
	return 1;
}

int main(int argc, char **argv)
{
	wl_die_with_parent();
	wl_stop_after(wl_arg(argc, argv, 1, 0));
	dl_iterate_phdr(move_text, NULL);
	wl_ready("remap_text");
	remapped_root();
	return 0;
}
