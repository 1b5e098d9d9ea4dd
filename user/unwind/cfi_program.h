/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Running the CFA programs of CIEs and FDEs. */
#ifndef VP_CFI_PROGRAM_H
#define VP_CFI_PROGRAM_H

#include "cfi_bytes.h"
#include "cfi_state.h"

/* Real programs nest one or two; a flood of remember_state is damage. */
#define CFI_REMEMBER_MAX 32

/* How a section's pointers are to be read; see cfi_pointer(). */
struct cfi_pointers {
	const uint8_t *bytes; /* of the whole section */
	uint64_t vaddr;	      /* link-time address of bytes[0] */
};

/* What the programs of one CIE's FDEs have in common. */
struct cfi_cie {
	uint32_t offset; /* in the section */
	bool bad;
	bool has_augmentation; /* FDEs have a length and bytes of it */
	bool is_signal_frame;
	uint8_t encoding; /* DW_EH_PE_* of the FDEs' addresses */
	uint64_t code_align;
	int64_t data_align;
	struct cfi_state initial;
};

struct cfi_run {
	/* filled by the caller */
	const struct cfi_cie *cie;
	const struct cfi_pointers *pointers;
	struct cfi_cursor program;
	uint64_t vaddr; /* link-time address of the first instruction */
	uint64_t len;	/* bytes of code; the program stops there */
	/* zero at first */
	uint64_t from, to; /* the row: bytes from vaddr on */
	bool in_cie;
	unsigned int remembered_cnt;
	/* of the row; a copy of the CIE's at first */
	struct cfi_state now;
	struct cfi_state remembered[CFI_REMEMBER_MAX];
};

/* Empty rows do not appear. 1: a row; 0: the end; -1: the program is damaged. */
int cfi_run_next(struct cfi_run *r);

/* Runs a CIE's own program, which sets cie->initial. 0; -1: it is damaged. */
int cfi_run_initial(struct cfi_cie *cie, struct cfi_cursor program);

/*
 * An address as the GNU encodings (LSB 4.1, 10.5.1) have it; only absolute and PC-relative ones
 * have a meaning here. 0; -1: another encoding, or behind the end.
 */
int cfi_pointer(struct cfi_cursor *c, uint8_t encoding, const struct cfi_pointers *p,
		uint64_t *out);

/* Just the number, whatever it is relative to. 0 or -1. */
int cfi_encoded(struct cfi_cursor *c, uint8_t encoding, uint64_t *out);

#endif
