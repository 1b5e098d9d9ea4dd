/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Call frame information and ELF images around it, made by tests byte by byte: what no assembler
 * would write. Failing to make one aborts.
 */
#ifndef MADE_CFI_H
#define MADE_CFI_H

#include "unwind/rows.h"

#include <dwarf.h>
#include <stdbool.h>

/* An image's code: link-time address, file offset, size. */
#define MADE_TEXT	 0x401000UL
#define MADE_TEXT_OFFSET 0x1000UL
#define MADE_TEXT_SIZE	 0x10000UL
/* Where .eh_frame_hdr and .eh_frame are loaded; without a gap, so offsets differ alike. */
#define MADE_HDR	 0x411000UL
#define MADE_EH		 0x411020UL

/* A section that grows; free it with made_cfi_free. With all but is_eh zero it is empty. */
struct made_cfi {
	bool is_eh; /* .eh_frame, not .debug_frame */
	uint8_t *bytes;
	size_t cnt, cap;
	size_t entry; /* where the open entry's length is */
	bool is_64bit;
};

void made_cfi_free(struct made_cfi *m);

void made_put(struct made_cfi *m, const void *bytes, size_t cnt);
void made_u8(struct made_cfi *m, unsigned int v);
void made_u16(struct made_cfi *m, unsigned int v);
void made_u32(struct made_cfi *m, uint64_t v);
void made_u64(struct made_cfi *m, uint64_t v);
void made_uleb(struct made_cfi *m, uint64_t v);
void made_sleb(struct made_cfi *m, int64_t v);

/* An entry with everything behind its length and id left to the test. Returns its offset. */
size_t made_open_cie(struct made_cfi *m);
size_t made_open_fde(struct made_cfi *m, size_t cie);
/* Pads with nops and fills the length in. */
void made_close(struct made_cfi *m);

/*
 * "zR" (.debug_frame: "") with alignments 1 and -8, PC-relative 4-byte addresses (.debug_frame:
 * 8-byte ones) and the usual start: CFA = rsp+8, ra at c-8. Returns its offset.
 */
size_t made_cie(struct made_cfi *m);

/* Code bytes [at, at + len) from MADE_TEXT on, for such a CIE. */
void made_fde(struct made_cfi *m, size_t cie, uint64_t at, uint64_t len, const uint8_t *program,
	      size_t cnt);
#define MADE_FDE(m, cie, at, len, ...)                                                             \
	made_fde(m, cie, at, len, (const uint8_t[]){__VA_ARGS__},                                  \
		 sizeof((const uint8_t[]){__VA_ARGS__}))

/* The beginning of one that is left open: address and length, no augmentation. */
void made_open_code(struct made_cfi *m, size_t cie, uint64_t at, uint64_t len);

struct made_image {
	const struct made_cfi *eh, *debug; /* NULL: none */
	const char *debug_name;		   /* NULL: .debug_frame */
	uint64_t debug_flags;		   /* of the section: SHF_COMPRESSED */
	bool without_hdr;		   /* no PT_GNU_EH_FRAME */
	bool without_sections;
	uint64_t eh_size; /* what the section header says instead of the truth, if not 0 */
};

/* Caller frees. */
uint8_t *made_image(const struct made_image *spec, size_t *size);

/* Compiles and frees the image; a VP_ROWS_* or -ENOMEM. */
int made_compile(const struct made_image *spec, struct vp_rows **out);

/*
 * Rows as text, a line each, offsets in hexadecimal from MADE_TEXT_OFFSET on, registers that have
 * the same value left out: "4: rsp+16 rbp=c-16 ra=c-8". Caller frees.
 */
char *made_rows_text(const struct vp_rows *rows);

#endif
