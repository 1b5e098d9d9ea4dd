/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* CIEs and FDEs in every form: versions, augmentations, address encodings, lengths. */
#include "made_cfi.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdlib.h>
#include <string.h>

TestSuite(rows_entries, .timeout = 10);

#define BYTES(...)   (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__})
#define PCREL4	     (DW_EH_PE_pcrel | DW_EH_PE_sdata4)
#define USUAL_START  DW_CFA_def_cfa, 7, 8, DW_CFA_offset | 16, 1
#define USUAL_ALIGNS 1, 0x78, 16

static struct vp_rows_stats stats;

static void expect(struct made_cfi *m, const char *expected)
{
	struct made_image image = {.eh = m->is_eh ? m : NULL, .debug = m->is_eh ? NULL : m};
	struct vp_rows *rows;
	char *text;

	cr_assert(zero(int, made_compile(&image, &rows)));
	text = made_rows_text(rows);
	cr_expect(eq(str, text, (char *)expected));
	stats = rows->stats;
	free(text);
	vp_rows_free(rows);
	made_cfi_free(m);
}

static void expect_reason(struct made_cfi *m, int reason)
{
	struct made_image image = {.eh = m->is_eh ? m : NULL, .debug = m->is_eh ? NULL : m};
	struct vp_rows *rows;

	cr_expect(eq(int, made_compile(&image, &rows), reason));
	cr_expect(zero(ptr, rows));
	made_cfi_free(m);
}

/* A CIE of these bytes behind its id, and an FDE whose address is PC-relative. */
static void make_augmented(struct made_cfi *m, const uint8_t *bytes, size_t cnt)
{
	size_t cie;

	*m = (struct made_cfi){.is_eh = true};
	cie = made_open_cie(m);
	made_put(m, bytes, cnt);
	made_close(m);
	MADE_FDE(m, cie, 0, 0x10, DW_CFA_nop);
}

#define USUAL_ROWS "0: rsp+8 ra=c-8\n10: none\n"

Test(rows_entries, augmentations_that_programs_have)
{
	struct made_cfi m;

	make_augmented(&m,
		       BYTES(1, 'z', 'P', 'L', 'R', 0, USUAL_ALIGNS, 7, DW_EH_PE_indirect | PCREL4,
			     1, 2, 3, 4, PCREL4, PCREL4, USUAL_START));
	expect(&m, USUAL_ROWS);
	make_augmented(&m, BYTES(1, 'z', 'R', 'P', 0, USUAL_ALIGNS, 10, PCREL4, DW_EH_PE_absptr, 1,
				 2, 3, 4, 5, 6, 7, 8, USUAL_START));
	expect(&m, USUAL_ROWS);
	make_augmented(&m, BYTES(1, 'z', 'B', 'R', 0, USUAL_ALIGNS, 1, PCREL4, USUAL_START));
	expect(&m, USUAL_ROWS);
	make_augmented(&m, BYTES(1, 'z', 'R', 'S', 0, USUAL_ALIGNS, 1, PCREL4, USUAL_START));
	expect(&m, "0: rsp+8 ra=c-8 signal\n10: none\n");
	make_augmented(&m, BYTES(3, 'z', 'R', 0, USUAL_ALIGNS, 1, PCREL4, USUAL_START));
	expect(&m, USUAL_ROWS);
}

Test(rows_entries, letters_nobody_knows_are_skipped_by_their_length)
{
	struct made_cfi m;

	make_augmented(&m,
		       BYTES(1, 'z', 'R', 'x', 0, USUAL_ALIGNS, 4, PCREL4, 1, 2, 3, USUAL_START));
	expect(&m, USUAL_ROWS);
}

Test(rows_entries, augmentations_that_make_no_sense_cost_their_fdes)
{
	struct made_cfi m;

	make_augmented(&m, BYTES(1, 'R', 0, USUAL_ALIGNS, PCREL4, USUAL_START));
	expect_reason(&m, VP_ROWS_BAD_CFI);
	make_augmented(&m, BYTES(1, 'z', 'R', 0, USUAL_ALIGNS, 0xff, 0xff, 0x7f, PCREL4));
	expect_reason(&m, VP_ROWS_BAD_CFI);
	make_augmented(&m, BYTES(1, 'z', 'P', 'R', 0, USUAL_ALIGNS, 2, DW_EH_PE_absptr, 0));
	expect_reason(&m, VP_ROWS_BAD_CFI);
	make_augmented(&m, BYTES(1, 'z', 'P', 'R', 0, USUAL_ALIGNS, 2, 0x0f, 0));
	expect_reason(&m, VP_ROWS_BAD_CFI);
	/* a string without an end */
	make_augmented(&m, BYTES(1, 'z', 'R', 'R', 'R', 'R', 'R', 'R', 'R', 'R', 'R', 'R', 'R', 'R',
				 'R', 'R', 'R'));
	expect_reason(&m, VP_ROWS_BAD_CFI);
	/* versions */
	make_augmented(&m, BYTES(2, 'z', 'R', 0, USUAL_ALIGNS, 1, PCREL4, USUAL_START));
	expect_reason(&m, VP_ROWS_BAD_CFI);
	/* another return address register */
	make_augmented(&m, BYTES(1, 'z', 'R', 0, 1, 0x78, 15, 1, PCREL4, USUAL_START));
	expect_reason(&m, VP_ROWS_BAD_CFI);
	/* a program that is damaged, or moves */
	make_augmented(&m, BYTES(1, 'z', 'R', 0, USUAL_ALIGNS, 1, PCREL4, 0x3f));
	expect_reason(&m, VP_ROWS_BAD_CFI);
	make_augmented(&m, BYTES(1, 'z', 'R', 0, USUAL_ALIGNS, 1, PCREL4, USUAL_START,
				 DW_CFA_advance_loc | 1));
	expect_reason(&m, VP_ROWS_BAD_CFI);
	make_augmented(&m, BYTES(1, 'z', 'R', 0, USUAL_ALIGNS, 1, PCREL4, DW_CFA_restore | 6));
	expect_reason(&m, VP_ROWS_BAD_CFI);
	make_augmented(&m, BYTES(1, 'z', 'R', 0, USUAL_ALIGNS, 1, PCREL4, DW_CFA_advance_loc1, 1));
	expect_reason(&m, VP_ROWS_BAD_CFI);
}

/* An .eh_frame whose addresses have that encoding, with address and length as given. */
static void make_encoded(struct made_cfi *m, uint8_t encoding, const void *at, const void *len,
			 size_t size)
{
	size_t cie;

	*m = (struct made_cfi){.is_eh = true};
	cie = made_open_cie(m);
	made_put(m, BYTES(1, 'z', 'R', 0, USUAL_ALIGNS, 1, encoding, USUAL_START));
	made_close(m);
	made_open_fde(m, cie);
	made_put(m, at, size);
	made_put(m, len, size);
	made_uleb(m, 0);
	made_close(m);
}

Test(rows_entries, address_encodings)
{
	uint64_t at8 = MADE_TEXT, len8 = 0x10;
	uint32_t at4 = MADE_TEXT, len4 = 0x10;
	struct made_cfi m;

	make_encoded(&m, DW_EH_PE_absptr, &at8, &len8, 8);
	expect(&m, USUAL_ROWS);
	make_encoded(&m, DW_EH_PE_udata8, &at8, &len8, 8);
	expect(&m, USUAL_ROWS);
	make_encoded(&m, DW_EH_PE_sdata8, &at8, &len8, 8);
	expect(&m, USUAL_ROWS);
	make_encoded(&m, DW_EH_PE_udata4, &at4, &len4, 4);
	expect(&m, USUAL_ROWS);
	make_encoded(&m, DW_EH_PE_sdata4, &at4, &len4, 4);
	expect(&m, USUAL_ROWS);
	/* 0x60 before the field, which is 0x40 behind the code's end */
	make_encoded(&m, DW_EH_PE_pcrel | DW_EH_PE_sdata2, "\xa0\xff", "\x10", 2);
	expect(&m, "ffe0: rsp+8 ra=c-8\nfff0: none\n");
}

Test(rows_entries, numbers_of_variable_length_as_addresses)
{
	struct made_cfi m = {.is_eh = true};
	size_t cie = made_open_cie(&m);

	made_put(&m, BYTES(1, 'z', 'R', 0, USUAL_ALIGNS, 1, DW_EH_PE_uleb128, USUAL_START));
	made_close(&m);
	made_open_fde(&m, cie);
	made_uleb(&m, MADE_TEXT);
	made_uleb(&m, 0x10);
	made_uleb(&m, 0);
	made_close(&m);
	cie = made_open_cie(&m);
	made_put(&m, BYTES(1, 'z', 'R', 0, USUAL_ALIGNS, 1, DW_EH_PE_pcrel | DW_EH_PE_sleb128,
			   USUAL_START));
	made_close(&m);
	made_open_fde(&m, cie);
	made_sleb(&m, (int64_t)(MADE_TEXT + 0x20) - (int64_t)(MADE_EH + m.cnt));
	made_sleb(&m, 0x10);
	made_uleb(&m, 0);
	made_close(&m);
	expect(&m, "0: rsp+8 ra=c-8\n10: none\n20: rsp+8 ra=c-8\n30: none\n");
}

Test(rows_entries, encodings_that_depend_on_more_than_the_file_are_refused)
{
	static const uint8_t encodings[] = {DW_EH_PE_textrel,
					    DW_EH_PE_datarel,
					    DW_EH_PE_funcrel,
					    DW_EH_PE_aligned,
					    DW_EH_PE_indirect,
					    DW_EH_PE_indirect | DW_EH_PE_pcrel,
					    0x60,
					    0x05,
					    0x0f,
					    DW_EH_PE_omit};
	uint64_t at = MADE_TEXT, len = 0x10;

	for (size_t i = 0; i < sizeof(encodings); i++) {
		struct made_cfi m;

		make_encoded(&m, encodings[i], &at, &len, 8);
		expect_reason(&m, VP_ROWS_BAD_CFI);
	}
}

Test(rows_entries, augmentation_data_of_fdes_is_skipped)
{
	struct made_cfi m = {.is_eh = true};
	size_t cie = made_cie(&m);

	made_open_fde(&m, cie);
	made_u32(&m, MADE_TEXT - (MADE_EH + m.cnt));
	made_u32(&m, 0x10);
	made_uleb(&m, 3);
	made_put(&m, BYTES(0x3f, 0x3f, 0x3f));
	made_close(&m);
	made_open_fde(&m, cie);
	made_u32(&m, MADE_TEXT + 0x10 - (MADE_EH + m.cnt));
	made_u32(&m, 0x10);
	made_uleb(&m, 1000);
	made_close(&m);
	expect(&m, USUAL_ROWS);
	cr_expect(eq(u64, stats.fde_cnt, 2));
	cr_expect(eq(u64, stats.bad_fde_cnt, 1));
}

Test(rows_entries, debug_frame_of_every_version)
{
	for (int version = 0; version < 6; version++) {
		struct made_cfi m = {.is_eh = false};
		size_t cie = made_open_cie(&m);

		made_put(&m, BYTES((uint8_t)version, 0));
		if (version == 4)
			made_put(&m, BYTES(8, 0));
		made_put(&m, BYTES(USUAL_ALIGNS, USUAL_START));
		made_close(&m);
		MADE_FDE(&m, cie, 0, 0x10, DW_CFA_nop);
		if (version == 1 || version == 3 || version == 4)
			expect(&m, USUAL_ROWS);
		else
			expect_reason(&m, VP_ROWS_BAD_CFI);
	}
}

Test(rows_entries, other_address_sizes_are_refused)
{
	static const uint8_t sizes[][2] = {{4, 0}, {8, 4}, {0, 0}};

	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		struct made_cfi m = {.is_eh = false};
		size_t cie = made_open_cie(&m);

		made_put(&m, BYTES(4, 0, sizes[i][0], sizes[i][1], USUAL_ALIGNS, USUAL_START));
		made_close(&m);
		MADE_FDE(&m, cie, 0, 0x10, DW_CFA_nop);
		expect_reason(&m, VP_ROWS_BAD_CFI);
	}
}

Test(rows_entries, lengths_of_64_bits)
{
	struct made_cfi m = {.is_eh = false, .is_64bit = true};
	size_t cie = made_cie(&m);

	MADE_FDE(&m, cie, 0, 0x10, DW_CFA_nop);
	expect(&m, USUAL_ROWS);
	m = (struct made_cfi){.is_eh = true, .is_64bit = true};
	cie = made_cie(&m);
	MADE_FDE(&m, cie, 0, 0x10, DW_CFA_nop);
	expect(&m, USUAL_ROWS);
}

Test(rows_entries, in_debug_frame_a_cie_may_follow)
{
	struct made_cfi m = {.is_eh = false};
	size_t cie;

	MADE_FDE(&m, 32, 0, 0x10, DW_CFA_nop);
	cie = made_cie(&m);
	cr_assert(eq(sz, cie, 32));
	expect(&m, USUAL_ROWS);
}

Test(rows_entries, a_zero_length_in_the_middle_is_passed_over)
{
	struct made_cfi m = {.is_eh = true};
	size_t cie = made_cie(&m);

	MADE_FDE(&m, cie, 0, 0x10, DW_CFA_nop);
	made_u32(&m, 0);
	made_u32(&m, 0);
	cie = made_cie(&m);
	MADE_FDE(&m, cie, 0x20, 0x10, DW_CFA_nop);
	made_u32(&m, 0);
	expect(&m, "0: rsp+8 ra=c-8\n10: none\n20: rsp+8 ra=c-8\n30: none\n");
}

Test(rows_entries, many_cies_are_told_apart)
{
	struct made_cfi m = {.is_eh = true};
	size_t cie[50];

	for (unsigned int i = 0; i < 50; i++) {
		cie[i] = made_open_cie(&m);
		made_put(&m, BYTES(1, 'z', 'R', 0, USUAL_ALIGNS, 1, PCREL4, DW_CFA_def_cfa, 7,
				   (uint8_t)i, DW_CFA_offset | 16, 1));
		made_close(&m);
	}
	for (unsigned int i = 1; i < 50; i++)
		MADE_FDE(&m, cie[i * 7 % 50], i * 16, 16, DW_CFA_nop);

	struct vp_rows *rows;
	cr_assert(zero(int, made_compile(&(struct made_image){.eh = &m}, &rows)));
	for (unsigned int i = 1; i < 50; i++) {
		const struct vp_rule *r = vp_rows_find(rows, MADE_TEXT_OFFSET + i * 16 + 5, NULL);

		cr_expect(eq(int, r->cfa_off, (int)(i * 7 % 50)));
	}
	vp_rows_free(rows);
	made_cfi_free(&m);
}
