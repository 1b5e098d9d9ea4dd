/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "vdso_image.h"

#include <link.h>
#include <stdint.h>
#include <string.h>
#include <sys/auxv.h>

/* Behind the segments come the section headers; the kernel maps the file with all of it. */
static size_t image_end(const ElfW(Ehdr) * ehdr)
{
	const char *base = (const char *)ehdr;
	const ElfW(Phdr) *phdr = (const void *)(base + ehdr->e_phoff);
	size_t end = ehdr->e_shoff + (size_t)ehdr->e_shnum * ehdr->e_shentsize;

	for (int i = 0; i < ehdr->e_phnum; i++) {
		size_t segment_end = phdr[i].p_offset + phdr[i].p_filesz;

		if (phdr[i].p_type == PT_LOAD && segment_end > end)
			end = segment_end;
	}
	return end;
}

const void *vdso_image(size_t *size)
{
	const ElfW(Ehdr) *ehdr = (const void *)(uintptr_t)getauxval(AT_SYSINFO_EHDR);

	if (!ehdr || memcmp(ehdr->e_ident, ELFMAG, SELFMAG) != 0)
		return NULL;
	*size = image_end(ehdr);
	return ehdr;
}
