/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The entries of a section of call frame information: CIEs and FDEs. */
#ifndef VP_CFI_ENTRIES_H
#define VP_CFI_ENTRIES_H

#include "cfi_program.h"
#include "cfi_reader.h"

/* More than any real file has; what they take is bounded by it. */
#define CFI_CIES_MAX	 (1U << 18)
#define CFI_FDES_MAX	 (4U << 20)
#define CFI_SEGMENTS_MAX 64

/* How link-time addresses become keys: include/vp_rows.h. */
struct cfi_space {
	uint64_t base;
	uint32_t span;
	struct elf_segment segments[CFI_SEGMENTS_MAX];
	size_t segment_cnt;
};

/* Code in an executable segment, and the program for it. */
struct cfi_fde {
	uint32_t key;
	uint32_t len;	  /* bytes of code; not 0 */
	uint32_t program; /* offset in the section */
	uint32_t program_len;
	uint64_t vaddr; /* of the first byte */
	uint32_t cie;	/* index */
};

struct cfi_entries {
	struct cfi_cie *cies; /* in the section's order */
	size_t cie_cnt, cie_cap;
	struct cfi_fde *fdes; /* by key; of equal keys the section's first one comes first */
	size_t fde_cnt, fde_cap;
	uint64_t seen_cnt, bad_cnt; /* FDEs, also those that are not code */
	struct cfi_pointers pointers;
};

/* VP_ROWS_OK, VP_ROWS_NO_CFI (no executable segment), VP_ROWS_TOO_LARGE. */
int cfi_space_init(struct cfi_space *space, const struct elf_file *f);

/*
 * Reads all entries; damaged ones are counted. 0, VP_ROWS_TOO_LARGE, -ENOMEM. In any case
 * cfi_entries_free() is due. s->bytes must outlive them.
 */
int cfi_entries_read(struct cfi_entries *e, const struct cfi_section *s,
		     const struct cfi_space *space);
void cfi_entries_free(struct cfi_entries *e);

#endif
