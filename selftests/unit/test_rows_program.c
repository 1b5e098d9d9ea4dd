/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Every instruction of CFA programs, and the expressions that rows can say. */
#include "made_cfi.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdlib.h>
#include <string.h>

TestSuite(rows_program, .timeout = 10);

static struct vp_rows_stats stats; /* of the last one compiled */

/* Rows of one .eh_frame; frees it. */
static void expect_section(struct made_cfi *m, const char *expected)
{
	struct vp_rows *rows;
	char *text;

	cr_assert(zero(int, made_compile(&(struct made_image){.eh = m}, &rows)));
	text = made_rows_text(rows);
	cr_expect(eq(str, text, (char *)expected));
	stats = rows->stats;
	free(text);
	vp_rows_free(rows);
	made_cfi_free(m);
}

/* Of one FDE of 0x40 bytes. */
static void expect_program(const uint8_t *program, size_t cnt, const char *expected)
{
	struct made_cfi m = {.is_eh = true};
	size_t cie = made_cie(&m);

	made_fde(&m, cie, 0, 0x40, program, cnt);
	expect_section(&m, expected);
}

#define BYTES(...) (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__})

/* … whose program is these bytes. */
#define EXPECT(expected, ...) expect_program(BYTES(__VA_ARGS__), expected "40: none\n")

#define ADVANCE(n)   (DW_CFA_advance_loc | (n))
#define OFFSET(reg)  (DW_CFA_offset | (reg))
#define RESTORE(reg) (DW_CFA_restore | (reg))

Test(rows_program, an_empty_one_says_what_the_cie_says)
{
	EXPECT("0: rsp+8 ra=c-8\n", DW_CFA_nop);
}

Test(rows_program, a_prologue_and_an_epilogue)
{
	EXPECT("0: rsp+8 ra=c-8\n1: rsp+16 rbp=c-16 ra=c-8\n4: rbp+16 rbp=c-16 ra=c-8\n"
	       "20: rsp+8 ra=c-8\n",
	       ADVANCE(1), DW_CFA_def_cfa_offset, 16, OFFSET(6), 2, ADVANCE(3),
	       DW_CFA_def_cfa_register, 6, ADVANCE(28), RESTORE(6), DW_CFA_def_cfa, 7, 8);
}

Test(rows_program, advances_of_every_size)
{
	struct made_cfi m = {.is_eh = true};
	size_t cie = made_cie(&m);

	made_open_code(&m, cie, 0, 0x8000);
	made_put(&m, BYTES(ADVANCE(0x3f), DW_CFA_def_cfa_offset, 16));
	made_put(&m, BYTES(DW_CFA_advance_loc1, 0xff, DW_CFA_def_cfa_offset, 24));
	made_put(&m, BYTES(DW_CFA_advance_loc2, 0x34, 0x12, DW_CFA_def_cfa_offset, 32));
	made_put(&m, BYTES(DW_CFA_advance_loc4, 1, 0x10, 0, 0, DW_CFA_def_cfa_offset, 40));
	made_u8(&m, DW_CFA_MIPS_advance_loc8);
	made_u64(&m, 0x2000);
	made_put(&m, BYTES(DW_CFA_def_cfa_offset, 48));
	made_u8(&m, DW_CFA_set_loc);
	made_u32(&m, MADE_TEXT + 0x7000 - (MADE_EH + m.cnt));
	made_put(&m, BYTES(DW_CFA_def_cfa_offset, 56));
	made_close(&m);
	expect_section(&m, "0: rsp+8 ra=c-8\n3f: rsp+16 ra=c-8\n13e: rsp+24 ra=c-8\n"
			   "1372: rsp+32 ra=c-8\n2373: rsp+40 ra=c-8\n4373: rsp+48 ra=c-8\n"
			   "7000: rsp+56 ra=c-8\n8000: none\n");
}

Test(rows_program, an_advance_of_nothing_makes_no_row)
{
	EXPECT("0: rsp+24 ra=c-8\n", ADVANCE(0), DW_CFA_def_cfa_offset, 16, ADVANCE(0),
	       DW_CFA_def_cfa_offset, 24);
}

Test(rows_program, rows_that_say_the_same_are_one)
{
	EXPECT("0: rsp+8 ra=c-8\n8: rsp+16 ra=c-8\n", ADVANCE(4), DW_CFA_def_cfa_offset, 8,
	       ADVANCE(4), DW_CFA_def_cfa_offset, 16, ADVANCE(4), DW_CFA_GNU_args_size, 32,
	       ADVANCE(4), DW_CFA_same_value, 12);
}

Test(rows_program, code_alignment_scales_advances)
{
	struct made_cfi m = {.is_eh = true};
	size_t cie = made_open_cie(&m);

	made_put(&m, BYTES(1, 'z', 'R', 0, 4, 0x78, 16, 1, DW_EH_PE_pcrel | DW_EH_PE_sdata4,
			   DW_CFA_def_cfa, 7, 8, OFFSET(16), 1));
	made_close(&m);
	MADE_FDE(&m, cie, 0, 0x40, ADVANCE(2), DW_CFA_def_cfa_offset, 16);
	expect_section(&m, "0: rsp+8 ra=c-8\n8: rsp+16 ra=c-8\n40: none\n");
}

Test(rows_program, the_cfa_by_each_kind_of_definition)
{
	EXPECT("0: r10+0 ra=c-8\n", DW_CFA_def_cfa, 10, 0);
	EXPECT("0: rbx-16 ra=c-8\n", DW_CFA_def_cfa_sf, 3, 2);
	EXPECT("0: r15+8 ra=c-8\n", DW_CFA_def_cfa_register, 15);
	EXPECT("0: rsp+300 ra=c-8\n", DW_CFA_def_cfa_offset, 0xac, 0x02);
	EXPECT("0: rsp+24 ra=c-8\n", DW_CFA_def_cfa_offset_sf, 0x7d);
	EXPECT("0: *(rbp-8)+0 ra=c-8\n", DW_CFA_def_cfa_expression, 3, DW_OP_breg6, 0x78,
	       DW_OP_deref);
	/* an expression and back: the offset is the one from before it, as libgcc has it */
	EXPECT("0: *(rsp+24)+56 ra=c-8\n8: rbp+8 ra=c-8\n", DW_CFA_def_cfa_expression, 5,
	       DW_OP_breg7, 24, DW_OP_deref, DW_OP_plus_uconst, 56, ADVANCE(8),
	       DW_CFA_def_cfa_register, 6);
}

Test(rows_program, saved_registers_by_each_kind_of_offset)
{
	EXPECT("0: rsp+8 rbp=c-24 ra=c-8\n", OFFSET(6), 3);
	EXPECT("0: rsp+8 rbx=c-16 ra=c-8\n", DW_CFA_offset_extended, 3, 2);
	EXPECT("0: rsp+8 r12=c+40 ra=c-8\n", DW_CFA_offset_extended_sf, 12, 0x7b);
	EXPECT("0: rsp+8 r13=c+16 ra=c-8\n", DW_CFA_GNU_negative_offset_extended, 13, 2);
	EXPECT("0: rsp+8 r14=c-32 r15=c-40 ra=c-16\n", OFFSET(14), 4, OFFSET(15), 5, OFFSET(16), 2);
	/* nobody needs these */
	EXPECT("0: rsp+8 ra=c-8\n", OFFSET(0), 3, OFFSET(5), 3, OFFSET(17), 9,
	       DW_CFA_offset_extended, 0xff, 0x7f, 3);
}

Test(rows_program, registers_that_are_no_memory_are_lost)
{
	EXPECT("0: rsp+8 rbp=lost ra=c-8\n", DW_CFA_undefined, 6);
	EXPECT("0: rsp+8 rbx=lost ra=c-8\n", DW_CFA_register, 3, 8);
	EXPECT("0: rsp+8 r12=lost ra=c-8\n", DW_CFA_val_offset, 12, 2);
	EXPECT("0: rsp+8 r12=lost ra=c-8\n", DW_CFA_val_offset_sf, 12, 2);
	EXPECT("0: rsp+8 r13=lost ra=c-8\n", DW_CFA_val_expression, 13, 2, DW_OP_breg7, 0);
	EXPECT("0: rsp+8 r14=lost ra=c-8\n", DW_CFA_expression, 14, 2, DW_OP_lit0, DW_OP_abs);
	EXPECT("0: rsp+8 ra=c-8\n", OFFSET(15), 2, DW_CFA_same_value, 15);
}

Test(rows_program, offsets_that_rows_cannot_hold_lose_the_register)
{
	/* with a data alignment of 1: any byte */
	struct made_cfi m = {.is_eh = true};
	size_t cie = made_open_cie(&m);

	made_put(&m, BYTES(1, 'z', 'R', 0, 1, 1, 16, 1, DW_EH_PE_pcrel | DW_EH_PE_sdata4,
			   DW_CFA_def_cfa, 7, 8, DW_CFA_offset_extended_sf, 16, 0x78));
	made_close(&m);
	made_open_code(&m, cie, 0, 0x40);
	made_put(&m, BYTES(DW_CFA_offset_extended_sf, 6, 0x74)); /* -12 */
	made_put(&m, BYTES(DW_CFA_offset_extended_sf, 3));
	made_sleb(&m, -8 * 32768);
	made_put(&m, BYTES(DW_CFA_offset_extended_sf, 12));
	made_sleb(&m, -8 * 32769);
	made_put(&m, BYTES(DW_CFA_offset_extended_sf, 13));
	made_sleb(&m, 8 * 0x7ffd);
	made_put(&m, BYTES(DW_CFA_offset_extended_sf, 14));
	made_sleb(&m, 8 * 0x7ffe);
	made_put(&m, BYTES(DW_CFA_offset_extended, 15));
	made_uleb(&m, UINT64_MAX);
	made_put(&m, BYTES(ADVANCE(16), DW_CFA_offset_extended_sf, 16, 0x74));
	made_close(&m);
	expect_section(&m, "0: rsp+8 rbp=lost rbx=c-262144 r12=lost r13=c+262120 r14=lost "
			   "r15=lost ra=c-8\n10: none\n");
	cr_expect(eq(u64, stats.odd_rule_cnt, 1));
}

Test(rows_program, a_data_alignment_that_overflows_is_survived)
{
	struct made_cfi m = {.is_eh = true};
	size_t cie = made_open_cie(&m);

	made_put(&m, BYTES(1, 'z', 'R', 0, 1));
	made_sleb(&m, INT64_MIN);
	made_put(&m, BYTES(16, 1, DW_EH_PE_pcrel | DW_EH_PE_sdata4, DW_CFA_def_cfa, 7, 8,
			   DW_CFA_expression, 16, 2, DW_OP_breg7, 0));
	made_close(&m);
	MADE_FDE(&m, cie, 0, 0x40, OFFSET(6), 63, DW_CFA_offset_extended_sf, 3, 0x7f,
		 DW_CFA_GNU_negative_offset_extended, 12, 1, ADVANCE(8), DW_CFA_def_cfa_sf, 7, 2);
	expect_section(&m, "0: rsp+8 rbp=lost rbx=lost r12=lost ra=c-8\n8: none\n");
}

Test(rows_program, restore_is_back_to_the_cie)
{
	struct made_cfi m = {.is_eh = true};
	size_t cie = made_open_cie(&m);

	made_put(&m, BYTES(1, 'z', 'R', 0, 1, 0x78, 16, 1, DW_EH_PE_pcrel | DW_EH_PE_sdata4,
			   DW_CFA_def_cfa, 7, 16, OFFSET(16), 1, OFFSET(6), 2));
	made_close(&m);
	MADE_FDE(&m, cie, 0, 0x40, OFFSET(6), 7, OFFSET(3), 8, ADVANCE(4), RESTORE(6), ADVANCE(4),
		 DW_CFA_restore_extended, 3, ADVANCE(4), DW_CFA_restore_extended, 0xff, 0x01);
	expect_section(&m,
		       "0: rsp+16 rbp=c-56 rbx=c-64 ra=c-8\n4: rsp+16 rbp=c-16 rbx=c-64 ra=c-8\n"
		       "8: rsp+16 rbp=c-16 ra=c-8\n40: none\n");
}

Test(rows_program, remembered_states_nest)
{
	EXPECT("0: rsp+16 rbp=c-16 ra=c-8\n4: rbp+16 rbp=c-16 rbx=c-24 ra=c-8\n"
	       "8: rsp+24 rbp=lost ra=c-8\nc: rbp+16 rbp=c-16 rbx=c-24 ra=c-8\n"
	       "10: rsp+16 rbp=c-16 ra=c-8\n",
	       DW_CFA_def_cfa_offset, 16, OFFSET(6), 2, DW_CFA_remember_state, ADVANCE(4),
	       DW_CFA_def_cfa_register, 6, OFFSET(3), 3, DW_CFA_remember_state, ADVANCE(4),
	       DW_CFA_def_cfa, 7, 24, RESTORE(3), DW_CFA_undefined, 6, ADVANCE(4),
	       DW_CFA_restore_state, ADVANCE(4), DW_CFA_restore_state);
}

Test(rows_program, no_return_address_is_the_outermost_frame)
{
	EXPECT("0: end\n", DW_CFA_undefined, 16);
	/* whatever else is said */
	EXPECT("0: end\n", DW_CFA_undefined, 16, DW_CFA_def_cfa_expression, 1, DW_OP_lit0,
	       OFFSET(6), 2);
}

Test(rows_program, a_return_address_in_a_register)
{
	EXPECT("0: rsp+0 ra=rdi\n8: rsp+8 ra=c-8\n", DW_CFA_register, 16, 5, DW_CFA_def_cfa_offset,
	       0, ADVANCE(8), RESTORE(16), DW_CFA_def_cfa_offset, 8);
}

/* 4 bytes with a rule, then the bytes of the program leave none. */
#define EXPECT_NONE(...)                                                                           \
	do {                                                                                       \
		expect_program(BYTES(ADVANCE(4), __VA_ARGS__), "0: rsp+8 ra=c-8\n4: none\n");      \
		cr_expect(eq(u64, stats.odd_rule_cnt, 1));                                         \
		cr_expect(zero(u64, stats.bad_fde_cnt));                                           \
	} while (0)

Test(rows_program, return_addresses_that_rows_cannot_say_are_no_rule)
{
	EXPECT_NONE(DW_CFA_val_offset, 16, 1);
	EXPECT_NONE(DW_CFA_register, 16, 17);
	EXPECT_NONE(DW_CFA_same_value, 16);
	EXPECT_NONE(DW_CFA_expression, 16, 2, DW_OP_breg3, 0);
	EXPECT_NONE(DW_CFA_expression, 16, 2, DW_OP_breg7, 4);
	EXPECT_NONE(DW_CFA_expression, 16, 1, DW_OP_lit0);
	EXPECT_NONE(DW_CFA_val_expression, 16, 2, DW_OP_breg7, 4);
}

Test(rows_program, cfas_that_rows_cannot_say_are_no_rule)
{
	EXPECT_NONE(DW_CFA_def_cfa, 16, 8);
	EXPECT_NONE(DW_CFA_def_cfa, 0xff, 0xff, 0x03, 8);
	EXPECT_NONE(DW_CFA_def_cfa, 7, 0x80, 0x80, 0x80, 0x80, 0x08);
	EXPECT_NONE(DW_CFA_def_cfa_expression, 1, DW_OP_lit5);
	EXPECT_NONE(DW_CFA_def_cfa_expression, 0);
	EXPECT_NONE(DW_CFA_def_cfa_expression, 4, DW_OP_breg7, 0, DW_OP_deref, DW_OP_deref);
	/* libcrypto: an address out of a table */
	EXPECT_NONE(DW_CFA_def_cfa_expression, 10, DW_OP_breg7, 8, DW_OP_breg9, 0, DW_OP_lit8,
		    DW_OP_mul, DW_OP_plus, DW_OP_deref, DW_OP_plus_uconst, 8);
	/* an addend of 32768 */
	EXPECT_NONE(DW_CFA_def_cfa_expression, 7, DW_OP_breg7, 0, DW_OP_deref, DW_OP_plus_uconst,
		    0x80, 0x80, 0x02);
	EXPECT_NONE(DW_CFA_def_cfa_expression, 3, DW_OP_breg17, 8, DW_OP_deref);
}

Test(rows_program, the_stack_pointer_may_only_be_the_cfa)
{
	EXPECT("0: rsp+8 ra=c-8\n", DW_CFA_val_offset, 7, 0);
	EXPECT("0: rsp+8 ra=c-8\n", DW_CFA_val_expression, 7, 2, DW_OP_breg7, 8);
	EXPECT("0: *(rsp+16)+0 ra=c-8\n", DW_CFA_def_cfa_expression, 3, DW_OP_breg7, 16,
	       DW_OP_deref, DW_CFA_expression, 7, 2, DW_OP_breg7, 16);
	EXPECT_NONE(DW_CFA_val_offset, 7, 1);
	EXPECT_NONE(DW_CFA_val_expression, 7, 2, DW_OP_breg7, 16);
	EXPECT_NONE(DW_CFA_same_value, 7);
	EXPECT_NONE(DW_CFA_undefined, 7);
	EXPECT_NONE(DW_CFA_register, 7, 8);
	EXPECT_NONE(DW_CFA_offset_extended_sf, 7, 0x6c);
	EXPECT_NONE(DW_CFA_def_cfa_expression, 3, DW_OP_breg7, 16, DW_OP_deref, DW_CFA_expression,
		    7, 2, DW_OP_breg7, 24);
}

Test(rows_program, expressions_are_computed_as_far_as_a_register_goes)
{
	/* rsp + 64, in ways that assemblers choose */
	EXPECT("0: rsp+64 ra=c-8\n", DW_CFA_def_cfa_expression, 3, DW_OP_breg7, 0xc0, 0x00);
	EXPECT("0: rsp+64 ra=c-8\n", DW_CFA_def_cfa_expression, 4, DW_OP_bregx, 7, 0xc0, 0x00);
	EXPECT("0: rsp+64 ra=c-8\n", DW_CFA_def_cfa_expression, 4, DW_OP_breg7, 0,
	       DW_OP_plus_uconst, 64);
	EXPECT("0: rsp+64 ra=c-8\n", DW_CFA_def_cfa_expression, 5, DW_OP_breg7, 0, DW_OP_const1u,
	       64, DW_OP_plus);
	EXPECT("0: rsp+64 ra=c-8\n", DW_CFA_def_cfa_expression, 5, DW_OP_const1s, 64, DW_OP_breg7,
	       0, DW_OP_plus);
	EXPECT("0: rsp+64 ra=c-8\n", DW_CFA_def_cfa_expression, 5, DW_OP_breg7, 0, DW_OP_const1s,
	       0xc0, DW_OP_minus);
	EXPECT("0: rsp+64 ra=c-8\n", DW_CFA_def_cfa_expression, 6, DW_OP_breg7, 0, DW_OP_const2u,
	       64, 0, DW_OP_plus);
	EXPECT("0: rsp+64 ra=c-8\n", DW_CFA_def_cfa_expression, 6, DW_OP_breg7, 0, DW_OP_const2s,
	       0xc0, 0xff, DW_OP_minus);
	EXPECT("0: rsp+64 ra=c-8\n", DW_CFA_def_cfa_expression, 8, DW_OP_breg7, 0, DW_OP_const4u,
	       64, 0, 0, 0, DW_OP_plus);
	EXPECT("0: rsp+64 ra=c-8\n", DW_CFA_def_cfa_expression, 8, DW_OP_breg7, 0, DW_OP_const4s,
	       0xc0, 0xff, 0xff, 0xff, DW_OP_minus);
	EXPECT("0: rsp+64 ra=c-8\n", DW_CFA_def_cfa_expression, 12, DW_OP_breg7, 0, DW_OP_const8u,
	       64, 0, 0, 0, 0, 0, 0, 0, DW_OP_plus);
	EXPECT("0: rsp+64 ra=c-8\n", DW_CFA_def_cfa_expression, 6, DW_OP_breg7, 0, DW_OP_constu,
	       0xc0, 0, DW_OP_plus);
	EXPECT("0: rsp+64 ra=c-8\n", DW_CFA_def_cfa_expression, 6, DW_OP_breg7, 0, DW_OP_consts,
	       0x40, DW_OP_minus, DW_OP_nop);
	EXPECT("0: rsp+31 ra=c-8\n", DW_CFA_def_cfa_expression, 4, DW_OP_breg7, 0, DW_OP_lit31,
	       DW_OP_plus);
	/* what is dropped does not count */
	EXPECT("0: rsp+64 ra=c-8\n", DW_CFA_def_cfa_expression, 5, DW_OP_lit4, DW_OP_drop,
	       DW_OP_breg7, 0xc0, 0x00);
	EXPECT("0: *(rsp+8)-16 ra=c-8\n", DW_CFA_def_cfa_expression, 5, DW_OP_breg7, 8, DW_OP_deref,
	       DW_OP_lit16, DW_OP_minus);
}

Test(rows_program, register_expressions_may_count_from_the_cfa)
{
	EXPECT("0: rsp+8 rbp=c-16 ra=c-8\n", DW_CFA_expression, 6, 2, DW_OP_lit16, DW_OP_minus);
	EXPECT("0: rsp+8 rbx=c+0 ra=c-8\n", DW_CFA_expression, 3, 0);
	/* rounded down, as icc does: not at a constant distance */
	EXPECT("0: rsp+8 r12=lost ra=c-8\n", DW_CFA_expression, 12, 5, DW_OP_lit8, DW_OP_minus,
	       DW_OP_const1s, 0xe0, DW_OP_and);
}

Test(rows_program, where_the_cfa_is_a_register_plus_offset_memory_at_it_counts_from_the_cfa)
{
	EXPECT("0: rbp+16 rbp=c-16 rbx=c-24 ra=c-8\n", DW_CFA_def_cfa, 6, 16, OFFSET(6), 2,
	       DW_CFA_expression, 3, 2, DW_OP_breg6, 0x78);
	EXPECT("0: rbp+16 rbp=c-16 ra=c-8\n", DW_CFA_def_cfa, 6, 16, OFFSET(6), 2,
	       DW_CFA_expression, 16, 2, DW_OP_breg6, 8);
	/* another register is not the row's */
	EXPECT("0: rsp+16 rbx=lost ra=c-8\n", DW_CFA_def_cfa, 7, 16, DW_CFA_expression, 3, 2,
	       DW_OP_breg6, 0x78);
}

Test(rows_program, a_main_that_aligns_its_stack)
{
	/* gcc: lea 8(%rsp),%r10; and $-32,%rsp; push -8(%r10); push %rbp; mov …; push %r10 */
	EXPECT("0: rsp+8 ra=c-8\n5: r10+0 ra=c-8\nd: r10+0 rbp=lost ra=c-8\n"
	       "12: *(rbp-8)+0 rbp=b+0 rbx=b-16 ra=c-8\n",
	       ADVANCE(5), DW_CFA_def_cfa, 10, 0, ADVANCE(8), DW_CFA_expression, 6, 2, DW_OP_breg6,
	       0, ADVANCE(5), DW_CFA_def_cfa_expression, 3, DW_OP_breg6, 0x78, DW_OP_deref,
	       DW_CFA_expression, 3, 2, DW_OP_breg6, 0x70);
}

Test(rows_program, a_signal_frame)
{
	struct made_cfi m = {.is_eh = true};
	size_t cie = made_open_cie(&m);

	made_put(&m, BYTES(1, 'z', 'R', 'S', 0, 1, 0x78, 16, 1, DW_EH_PE_pcrel | DW_EH_PE_sdata4));
	made_close(&m);
	/* glibc's __restore_rt */
	MADE_FDE(&m, cie, 0x0f, 0x0a, DW_CFA_def_cfa_expression, 4, DW_OP_breg7, 0xa0, 0x01,
		 DW_OP_deref, DW_CFA_expression, 6, 3, DW_OP_breg7, 0xf8, 0, DW_CFA_expression, 3,
		 3, DW_OP_breg7, 0x80, 1, DW_CFA_expression, 7, 3, DW_OP_breg7, 0xa0, 1,
		 DW_CFA_expression, 12, 3, DW_OP_breg7, 0xc8, 0, DW_CFA_expression, 13, 3,
		 DW_OP_breg7, 0xd0, 0, DW_CFA_expression, 16, 3, DW_OP_breg7, 0xa8, 1);
	expect_section(&m, "f: *(rsp+160)+0 rbp=b+120 rbx=b+128 r12=b+72 r13=b+80 ra=b+168 "
			   "signal\n19: none\n");
}

#define BREG16 DW_OP_breg16, 0

Test(rows_program, the_procedure_linkage_table)
{
	EXPECT("0: rsp+16 ra=c-8\n6: rsp+24 ra=c-8\n10: plt(rsp+8,11) ra=c-8\n",
	       DW_CFA_def_cfa_offset, 16, ADVANCE(6), DW_CFA_def_cfa_offset, 24, ADVANCE(10),
	       DW_CFA_def_cfa_expression, 11, DW_OP_breg7, 8, BREG16, DW_OP_lit15, DW_OP_and,
	       DW_OP_lit11, DW_OP_ge, DW_OP_lit3, DW_OP_shl, DW_OP_plus);
	EXPECT("0: plt(rsp+8,10) ra=c-8\n", DW_CFA_def_cfa_expression, 11, DW_OP_breg7, 8, BREG16,
	       DW_OP_lit15, DW_OP_and, DW_OP_lit10, DW_OP_ge, DW_OP_lit3, DW_OP_shl, DW_OP_plus);
	/* nearly */
	EXPECT_NONE(DW_CFA_def_cfa_expression, 11, DW_OP_breg7, 8, BREG16, DW_OP_lit15, DW_OP_and,
		    DW_OP_lit16, DW_OP_ge, DW_OP_lit3, DW_OP_shl, DW_OP_plus);
	EXPECT_NONE(DW_CFA_def_cfa_expression, 11, DW_OP_breg7, 8, BREG16, DW_OP_lit15, DW_OP_and,
		    DW_OP_lit11, DW_OP_ge, DW_OP_lit4, DW_OP_shl, DW_OP_plus);
	EXPECT_NONE(DW_CFA_def_cfa_expression, 12, DW_OP_breg7, 8, BREG16, DW_OP_lit15, DW_OP_and,
		    DW_OP_lit11, DW_OP_ge, DW_OP_lit3, DW_OP_shl, DW_OP_plus, DW_OP_nop);
}

#define DEREF_RSP(at) DW_CFA_def_cfa_expression, 3, DW_OP_breg7, at, DW_OP_deref

Test(rows_program, of_offsets_from_cfa_and_base_the_frame_pointers_kind_stays)
{
	EXPECT("0: *(rsp+24)+0 rbp=c-16 rbx=lost r12=c-24 ra=c-8\n", DEREF_RSP(24), OFFSET(6), 2,
	       DW_CFA_expression, 3, 2, DW_OP_breg7, 8, OFFSET(12), 3);
	EXPECT("0: *(rsp+24)+0 rbp=b+8 rbx=lost r12=lost ra=c-8\n", DEREF_RSP(24),
	       DW_CFA_expression, 6, 2, DW_OP_breg7, 8, OFFSET(3), 3, OFFSET(12), 4);
	/* the return address has a kind of its own */
	EXPECT("0: *(rsp+24)+0 rbp=c-16 ra=b+16\n", DEREF_RSP(24), OFFSET(6), 2, DW_CFA_expression,
	       16, 2, DW_OP_breg7, 16);
}

Test(rows_program, without_a_frame_pointer_the_majority_stays)
{
	EXPECT("0: *(rsp+24)+0 rbx=lost r12=b+8 r13=b+16 ra=c-8\n", DEREF_RSP(24), OFFSET(3), 3,
	       DW_CFA_expression, 12, 2, DW_OP_breg7, 8, DW_CFA_expression, 13, 2, DW_OP_breg7, 16);
	EXPECT("0: *(rsp+24)+0 rbx=c-24 r12=lost ra=c-8\n", DEREF_RSP(24), OFFSET(3), 3,
	       DW_CFA_expression, 12, 2, DW_OP_breg7, 8);
	EXPECT("0: *(rsp+24)+0 rbp=lost rbx=c-24 r12=lost ra=c-8\n", DEREF_RSP(24),
	       DW_CFA_undefined, 6, OFFSET(3), 3, DW_CFA_expression, 12, 2, DW_OP_breg7, 8);
}

Test(rows_program, what_an_instruction_says_behind_the_code_is_not_read)
{
	EXPECT("0: rsp+8 ra=c-8\n20: rsp+16 ra=c-8\n", ADVANCE(0x20), DW_CFA_def_cfa_offset, 16,
	       ADVANCE(0x20), 0x3f /* none */);
	EXPECT("0: rsp+8 ra=c-8\n", DW_CFA_advance_loc4, 0xff, 0xff, 0xff, 0xff,
	       DW_CFA_def_cfa_offset, 16);
	EXPECT("0: rsp+8 ra=c-8\n", DW_CFA_MIPS_advance_loc8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
	       0xff, 0xff, DW_CFA_def_cfa_offset, 16);
}

/* An FDE before and one behind live on, this one's code has no rows, and it is counted. */
static void expect_damaged(const uint8_t *program, size_t cnt)
{
	struct made_cfi m = {.is_eh = true};
	size_t cie = made_cie(&m);

	MADE_FDE(&m, cie, 0, 0x10, DW_CFA_nop);
	made_fde(&m, cie, 0x10, 0x10, program, cnt);
	MADE_FDE(&m, cie, 0x20, 0x10, DW_CFA_nop);
	expect_section(&m, "0: rsp+8 ra=c-8\n10: none\n20: rsp+8 ra=c-8\n30: none\n");
	cr_expect(eq(u64, stats.bad_fde_cnt, 1));
}

#define EXPECT_DAMAGED(...) expect_damaged(BYTES(__VA_ARGS__))

Test(rows_program, damage_costs_the_fde)
{
	EXPECT_DAMAGED(0x3f);
	EXPECT_DAMAGED(DW_CFA_low_user);
	EXPECT_DAMAGED(DW_CFA_GNU_window_save); /* SPARC's; signed pointers on arm64 */
	EXPECT_DAMAGED(0x17);
	EXPECT_DAMAGED(DW_CFA_restore_state);
	EXPECT_DAMAGED(DW_CFA_remember_state, DW_CFA_restore_state, DW_CFA_restore_state);
	/* operands behind the end: programs of 7 bytes get no padding */
	EXPECT_DAMAGED(0, 0, 0, 0, 0, 0, DW_CFA_def_cfa);
	EXPECT_DAMAGED(0, 0, 0, 0, DW_CFA_advance_loc4, 1, 0);
	EXPECT_DAMAGED(0, 0, 0, 0, 0, DW_CFA_register, 6);
	EXPECT_DAMAGED(0, 0, 0, 0, 0, 0, DW_CFA_expression);
	EXPECT_DAMAGED(DW_CFA_def_cfa_expression, 0x7f, DW_OP_breg7);
	EXPECT_DAMAGED(DW_CFA_expression, 6, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
		       1);
	/* what was right before it is taken back */
	EXPECT_DAMAGED(ADVANCE(2), DW_CFA_def_cfa_offset, 16, ADVANCE(2), 0x3f);
}

Test(rows_program, a_location_before_the_last_one_is_damage)
{
	struct made_cfi m = {.is_eh = true};
	size_t cie = made_cie(&m);

	made_open_code(&m, cie, 0, 0x10);
	made_put(&m, BYTES(ADVANCE(9), DW_CFA_set_loc));
	made_u32(&m, MADE_TEXT + 8 - (MADE_EH + m.cnt));
	made_close(&m);
	MADE_FDE(&m, cie, 0x20, 0x10, DW_CFA_nop);
	expect_section(&m, "20: rsp+8 ra=c-8\n30: none\n");
	cr_expect(eq(u64, stats.bad_fde_cnt, 1));
}

Test(rows_program, numbers_without_an_end_are_damage)
{
	EXPECT_DAMAGED(DW_CFA_def_cfa_offset, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80,
		       0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0);
	EXPECT_DAMAGED(DW_CFA_def_cfa_offset_sf, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80,
		       0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0);
	/* padded ones are none */
	EXPECT("0: rsp+16 ra=c-8\n", DW_CFA_def_cfa_offset, 0x90, 0x80, 0x80, 0x80, 0x80, 0x80,
	       0x80, 0x80, 0x80, 0x80, 0x80, 0);
	EXPECT("0: rsp+24 ra=c-8\n", DW_CFA_def_cfa_offset_sf, 0xfd, 0xff, 0xff, 0xff, 0xff, 0xff,
	       0xff, 0xff, 0xff, 0xff, 0x7f);
}

Test(rows_program, floods_of_remembered_states_are_damage)
{
	uint8_t program[64];

	memset(program, DW_CFA_remember_state, sizeof(program));
	expect_damaged(program, sizeof(program));
}

Test(rows_program, expressions_too_deep_or_too_shallow_only_cost_their_register)
{
	EXPECT("0: rsp+8 rbp=lost ra=c-8\n", DW_CFA_expression, 6, 10, DW_OP_lit1, DW_OP_lit1,
	       DW_OP_lit1, DW_OP_lit1, DW_OP_lit1, DW_OP_lit1, DW_OP_lit1, DW_OP_lit1, DW_OP_lit1,
	       DW_OP_lit1);
	EXPECT("0: rsp+8 rbp=lost ra=c-8\n", DW_CFA_expression, 6, 2, DW_OP_drop, DW_OP_drop);
	EXPECT("0: rsp+8 rbp=lost ra=c-8\n", DW_CFA_expression, 6, 1, DW_OP_plus);
	EXPECT("0: rsp+8 rbp=lost ra=c-8\n", DW_CFA_expression, 6, 1, DW_OP_drop);
	EXPECT("0: rsp+8 rbp=lost ra=c-8\n", DW_CFA_expression, 6, 1, DW_OP_const8u);
	EXPECT("0: rsp+8 rbp=lost ra=c-8\n", DW_CFA_expression, 6, 1, DW_OP_deref);
}
