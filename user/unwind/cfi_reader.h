/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Finding and reading the sections with call frame information. */
#ifndef VP_CFI_READER_H
#define VP_CFI_READER_H

#include "symbolize/elf_reader.h"

#include <stdbool.h>

struct cfi_section {
	uint8_t *bytes; /* owned; NULL: the file has none */
	size_t size;
	uint64_t vaddr; /* link-time address; 0 for .debug_frame */
	bool is_eh;	/* the format of .eh_frame, not of .debug_frame */
	/* Its end is not known, only where it must end at the latest: a zero length ends it. */
	bool is_open;
};

/*
 * .eh_frame, where PT_GNU_EH_FRAME says it is or a section is called so. 0 (also if there is
 * none, with s->bytes NULL), VP_ROWS_* for why it cannot be used, -ENOMEM.
 */
int cfi_read_eh_frame(const struct elf_file *f, struct cfi_section *s);

/* .debug_frame, unpacked if it is compressed; the same. */
int cfi_read_debug_frame(const struct elf_file *f, struct cfi_section *s);

void cfi_section_free(struct cfi_section *s);

#endif
