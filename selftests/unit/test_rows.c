/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Finding sections, keys, overlapping FDEs, both sections together, looking rows up. */
#include "fixture_elf.h"
#include "made_cfi.h"
#include "unwind/row_image.h"
#include "unwind/rule_dict.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <elf.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

TestSuite(rows, .timeout = 30);

#define SP_PLUS(n) DW_CFA_def_cfa_offset, n

static struct vp_rows_stats stats;

static void expect(const struct made_image *image, const char *expected)
{
	struct vp_rows *rows;
	char *text;

	cr_assert(zero(int, made_compile(image, &rows)));
	text = made_rows_text(rows);
	cr_expect(eq(str, text, (char *)expected));
	stats = rows->stats;
	free(text);
	vp_rows_free(rows);
}

static void expect_reason(const struct made_image *image, int reason)
{
	struct vp_rows *rows;

	cr_expect(eq(int, made_compile(image, &rows), reason));
	cr_expect(zero(ptr, rows));
}

/* One FDE at 0, and behind it what ends a list whose end nobody tells. */
static struct made_cfi one_fde(bool is_eh)
{
	struct made_cfi m = {.is_eh = is_eh};
	size_t cie = made_cie(&m);

	MADE_FDE(&m, cie, 0, 0x10, DW_CFA_nop);
	made_u32(&m, 0);
	return m;
}

#define ONE_ROW "0: rsp+8 ra=c-8\n10: none\n"

Test(rows, the_program_header_and_the_section_lead_to_eh_frame)
{
	struct made_cfi m = one_fde(true);

	expect(&(struct made_image){.eh = &m}, ONE_ROW);
	expect(&(struct made_image){.eh = &m, .without_hdr = true}, ONE_ROW);
	expect(&(struct made_image){.eh = &m, .without_sections = true}, ONE_ROW);
	/* a section that reaches behind the file's end is not believed */
	expect(&(struct made_image){.eh = &m, .eh_size = 1UL << 40}, ONE_ROW);
	expect(&(struct made_image){.eh = &m, .eh_size = UINT64_MAX}, ONE_ROW);
	expect_reason(&(struct made_image){.eh = &m, .without_hdr = true, .without_sections = true},
		      VP_ROWS_NO_CFI);
	expect_reason(&(struct made_image){.eh = &m, .without_hdr = true, .eh_size = 1UL << 40},
		      VP_ROWS_NO_CFI);
	made_cfi_free(&m);
}

/* The program header says where the header is; it says where the frames are, in its own way. */
Test(rows, eh_frame_hdr_may_be_damaged)
{
	static const struct {
		uint8_t at, value;
		int reason;
	} damages[] = {
		{0, 2, VP_ROWS_NO_CFI},			/* version */
		{1, DW_EH_PE_omit, VP_ROWS_NO_CFI},	/* no pointer */
		{1, DW_EH_PE_indirect, VP_ROWS_NO_CFI}, /* no such pointer */
		{1, DW_EH_PE_udata8, VP_ROWS_NO_CFI},	/* to nowhere */
		{7, 0x7f, VP_ROWS_NO_CFI},		/* to nowhere, too */
	};
	struct made_cfi m = one_fde(true);

	for (size_t i = 0; i < sizeof(damages) / sizeof(*damages); i++) {
		struct made_image spec = {.eh = &m, .without_sections = true};
		struct vp_rows *rows;
		size_t size;
		uint8_t *image = made_image(&spec, &size);

		image[MADE_TEXT_OFFSET + MADE_TEXT_SIZE + damages[i].at] = damages[i].value;
		cr_expect(eq(int, vp_rows_compile_memory(&rows, image, size), damages[i].reason));
		vp_rows_free(rows);
		free(image);
		/* but then there is the section */
		spec.without_sections = false;
		image = made_image(&spec, &size);
		image[MADE_TEXT_OFFSET + MADE_TEXT_SIZE + damages[i].at] = damages[i].value;
		cr_expect(zero(int, vp_rows_compile_memory(&rows, image, size)));
		vp_rows_free(rows);
		free(image);
	}
	made_cfi_free(&m);
}

Test(rows, a_pointer_relative_to_eh_frame_hdr_is_understood)
{
	struct made_cfi m = one_fde(true);
	struct made_image spec = {.eh = &m, .without_sections = true};
	uint32_t distance = MADE_EH - MADE_HDR;
	struct vp_rows *rows;
	size_t size;
	uint8_t *image = made_image(&spec, &size), *hdr = image + MADE_TEXT_OFFSET + MADE_TEXT_SIZE;

	hdr[1] = DW_EH_PE_datarel | DW_EH_PE_sdata4;
	memcpy(hdr + 4, &distance, sizeof(distance));
	cr_expect(zero(int, vp_rows_compile_memory(&rows, image, size)));
	vp_rows_free(rows);
	free(image);
	made_cfi_free(&m);
}

Test(rows, empty_sections_are_none)
{
	struct made_cfi m = {.is_eh = true}, debug = {.is_eh = false};

	made_u32(&m, 0);
	expect_reason(&(struct made_image){.eh = &m}, VP_ROWS_NO_CFI);
	expect_reason(&(struct made_image){.eh = NULL}, VP_ROWS_NO_CFI);
	made_cie(&debug);
	expect_reason(&(struct made_image){.eh = &m, .debug = &debug}, VP_ROWS_NO_CFI);
	made_cfi_free(&m);
	made_cfi_free(&debug);
}

/* ---- compressed sections -------------------------------------------------------------------- */

static struct made_cfi packed(const struct made_cfi *plain, uint32_t type, uint64_t claimed)
{
	struct made_cfi m = {.is_eh = false};
	uLongf size = compressBound(plain->cnt) + ZSTD_compressBound(plain->cnt);
	uint8_t *bytes = malloc(size);
	Elf64_Chdr header = {.ch_type = type, .ch_size = claimed, .ch_addralign = 8};

	if (type == 2)
		size = ZSTD_compress(bytes, size, plain->bytes, plain->cnt, 3);
	else
		cr_assert(eq(int, compress(bytes, &size, plain->bytes, plain->cnt), Z_OK));
	made_put(&m, &header, sizeof(header));
	made_put(&m, bytes, size);
	free(bytes);
	return m;
}

static void expect_packed(const struct made_cfi *m, int reason)
{
	struct made_image image = {.debug = m, .debug_flags = SHF_COMPRESSED};

	if (reason)
		expect_reason(&image, reason);
	else
		expect(&image, ONE_ROW);
}

Test(rows, debug_frame_may_be_compressed)
{
	struct made_cfi plain = one_fde(false), m;

	expect(&(struct made_image){.debug = &plain}, ONE_ROW);
	for (uint32_t type = 1; type <= 2; type++) {
		m = packed(&plain, type, plain.cnt);
		expect_packed(&m, 0);
		made_cfi_free(&m);
	}
	made_cfi_free(&plain);
}

Test(rows, sections_that_lie_about_their_unpacked_size_are_refused)
{
	static const uint64_t claims[] = {0, 1, 1 << 20, 1UL << 26};
	static const uint64_t large[] = {VP_ROWS_MAX_CFI_BYTES + 1, 1UL << 42, UINT64_MAX};
	struct made_cfi plain = one_fde(false), m;

	for (uint32_t type = 1; type <= 2; type++) {
		for (size_t i = 0; i < sizeof(claims) / sizeof(*claims); i++) {
			m = packed(&plain, type, claims[i]);
			expect_packed(&m, VP_ROWS_BAD_CFI);
			made_cfi_free(&m);
		}
		for (size_t i = 0; i < sizeof(large) / sizeof(*large); i++) {
			m = packed(&plain, type, large[i]);
			expect_packed(&m, VP_ROWS_TOO_LARGE);
			made_cfi_free(&m);
		}
	}
	m = packed(&plain, 3, plain.cnt);
	expect_packed(&m, VP_ROWS_BAD_CFI);
	/* damaged, and shorter than a header */
	memcpy(m.bytes, &(uint32_t){1}, 4);
	memset(m.bytes + sizeof(Elf64_Chdr), 0xff, 8);
	expect_packed(&m, VP_ROWS_BAD_CFI);
	m.cnt = 8;
	expect_packed(&m, VP_ROWS_BAD_CFI);
	made_cfi_free(&m);
	made_cfi_free(&plain);
}

Test(rows, zdebug_frame_is_the_gnu_way)
{
	struct made_cfi plain = one_fde(false), m = packed(&plain, 1, plain.cnt);
	struct made_cfi gnu = {.is_eh = false};
	uint64_t size = htobe64(plain.cnt);
	struct made_image image = {.debug = &gnu, .debug_name = ".zdebug_frame"};

	made_put(&gnu, "ZLIB", 4);
	made_put(&gnu, &size, sizeof(size));
	made_put(&gnu, m.bytes + sizeof(Elf64_Chdr), m.cnt - sizeof(Elf64_Chdr));
	expect(&image, ONE_ROW);
	gnu.bytes[0] = 'z';
	expect_reason(&image, VP_ROWS_BAD_CFI);
	gnu.bytes[0] = 'Z';
	gnu.cnt = 11;
	expect_reason(&image, VP_ROWS_BAD_CFI);
	made_cfi_free(&gnu);
	made_cfi_free(&m);
	made_cfi_free(&plain);
}

/* ---- keys and overlaps ---------------------------------------------------------------------- */

Test(rows, fdes_come_in_any_order)
{
	struct made_cfi m = {.is_eh = true};
	size_t cie = made_cie(&m);

	MADE_FDE(&m, cie, 0x2000, 0x10, SP_PLUS(16));
	MADE_FDE(&m, cie, 0x1000, 0x10, SP_PLUS(24));
	MADE_FDE(&m, cie, 0x1010, 0x10, SP_PLUS(32));
	MADE_FDE(&m, cie, 0, 0x10, SP_PLUS(40));
	expect(&(struct made_image){.eh = &m},
	       "0: rsp+40 ra=c-8\n10: none\n1000: rsp+24 ra=c-8\n1010: rsp+32 ra=c-8\n"
	       "1020: none\n2000: rsp+16 ra=c-8\n2010: none\n");
	made_cfi_free(&m);
}

Test(rows, of_overlapping_fdes_the_later_start_cuts_the_earlier)
{
	struct made_cfi m = {.is_eh = true};
	size_t cie = made_cie(&m);

	MADE_FDE(&m, cie, 0, 0x100, SP_PLUS(16), DW_CFA_advance_loc | 0x30, SP_PLUS(24));
	MADE_FDE(&m, cie, 0x20, 0x20, SP_PLUS(32));
	/* of equal starts the first one counts */
	MADE_FDE(&m, cie, 0x200, 0x10, SP_PLUS(40));
	MADE_FDE(&m, cie, 0x200, 0x20, SP_PLUS(48));
	expect(&(struct made_image){.eh = &m}, "0: rsp+16 ra=c-8\n20: rsp+32 ra=c-8\n40: none\n"
					       "200: rsp+40 ra=c-8\n210: none\n");
	made_cfi_free(&m);
}

Test(rows, only_executable_segments_have_rows)
{
	struct made_cfi m = {.is_eh = true};
	size_t cie = made_cie(&m);

	MADE_FDE(&m, cie, 0, 0x10, DW_CFA_nop);
	MADE_FDE(&m, cie, MADE_EH - MADE_TEXT, 0x10, SP_PLUS(16)); /* data */
	MADE_FDE(&m, cie, (uint64_t)-0x1000, 0x10, SP_PLUS(16));   /* before all */
	MADE_FDE(&m, cie, 0x20, 0, SP_PLUS(16));		   /* nothing */
	/* reaches behind its segment */
	MADE_FDE(&m, cie, MADE_TEXT_SIZE - 8, 0x10, SP_PLUS(24), DW_CFA_advance_loc | 7,
		 SP_PLUS(32), DW_CFA_advance_loc | 2, SP_PLUS(40));
	expect(&(struct made_image){.eh = &m}, "0: rsp+8 ra=c-8\n10: none\nfff8: rsp+24 ra=c-8\n"
					       "ffff: rsp+32 ra=c-8\n");
	cr_expect(eq(u64, stats.fde_cnt, 5));
	cr_expect(zero(u64, stats.bad_fde_cnt));
	made_cfi_free(&m);
}

Test(rows, discarded_code_at_address_0_has_no_rows)
{
	struct made_cfi m = {.is_eh = false};
	size_t cie = made_cie(&m), size;
	struct made_image spec = {.debug = &m};
	struct vp_rows *rows;
	Elf64_Phdr *text;
	uint8_t *image;

	MADE_FDE(&m, cie, -MADE_TEXT, 0x10, SP_PLUS(16)); /* at address 0 */
	MADE_FDE(&m, cie, -MADE_TEXT + 0x100, 0x10, SP_PLUS(24));
	image = made_image(&spec, &size);
	text = (Elf64_Phdr *)(image + sizeof(Elf64_Ehdr));
	text->p_vaddr = 0;
	cr_assert(zero(int, vp_rows_compile_memory(&rows, image, size)));
	cr_expect(eq(u32, rows->key[0], 0x100));
	vp_rows_free(rows);
	free(image);
	made_cfi_free(&m);
}

Test(rows, keys_are_file_offsets_whatever_the_addresses)
{
	struct made_cfi m = one_fde(true);
	struct made_image spec = {.eh = &m};
	struct vp_rows *rows;
	uint64_t first = 0;
	size_t size;
	uint8_t *image = made_image(&spec, &size);
	Elf64_Phdr *text = (Elf64_Phdr *)(image + sizeof(Elf64_Ehdr));

	/* the same address, 0x800 bytes further on in the file */
	text->p_offset += 0x800;
	text->p_filesz -= 0x800;
	cr_assert(zero(int, vp_rows_compile_memory(&rows, image, size)));
	cr_expect(eq(u64, rows->base, MADE_TEXT_OFFSET + 0x800));
	cr_expect(eq(u32, rows->span, MADE_TEXT_SIZE - 0x800));
	cr_expect(not(zero(ptr, (void *)vp_rows_find(rows, MADE_TEXT_OFFSET + 0x805, &first))));
	cr_expect(eq(u64, first, MADE_TEXT_OFFSET + 0x800));
	vp_rows_free(rows);
	free(image);
	made_cfi_free(&m);
}

Test(rows, eh_frame_wins_over_debug_frame)
{
	struct made_cfi eh = {.is_eh = true}, debug = {.is_eh = false};
	size_t cie = made_cie(&eh);

	MADE_FDE(&eh, cie, 0x20, 0x20, SP_PLUS(16));
	MADE_FDE(&eh, cie, 0x60, 0x20, SP_PLUS(24));
	MADE_FDE(&eh, cie, 0x100, 0x20, DW_CFA_same_value, 16); /* not expressible */
	cie = made_cie(&debug);
	MADE_FDE(&debug, cie, 0, 0x68, SP_PLUS(32), DW_CFA_advance_loc | 0x30, SP_PLUS(40));
	MADE_FDE(&debug, cie, 0x70, 0x30, SP_PLUS(48));
	MADE_FDE(&debug, cie, 0x100, 0x10, SP_PLUS(56));
	expect(&(struct made_image){.eh = &eh, .debug = &debug},
	       "0: rsp+32 ra=c-8\n20: rsp+16 ra=c-8\n40: rsp+40 ra=c-8\n60: rsp+24 ra=c-8\n"
	       "80: rsp+48 ra=c-8\na0: none\n100: rsp+56 ra=c-8\n110: none\n");
	cr_expect(eq(u64, stats.fde_cnt, 6));
	cr_expect(eq(u64, stats.from_debug_cnt, 3));
	made_cfi_free(&eh);
	made_cfi_free(&debug);
}

Test(rows, one_damaged_section_leaves_the_other)
{
	struct made_cfi eh = one_fde(true), debug = one_fde(false), bad = {.is_eh = false};

	made_u32(&bad, 12);
	expect(&(struct made_image){.eh = &eh, .debug = &bad, .debug_flags = SHF_COMPRESSED},
	       ONE_ROW);
	bad.is_eh = true;
	expect(&(struct made_image){.eh = &bad, .debug = &debug}, ONE_ROW);
	made_cfi_free(&eh);
	made_cfi_free(&debug);
	made_cfi_free(&bad);
}

/* ---- files ---------------------------------------------------------------------------------- */

static int compile_header(void (*change)(Elf64_Ehdr *ehdr))
{
	struct made_cfi m = one_fde(true);
	struct made_image spec = {.eh = &m};
	struct vp_rows *rows;
	size_t size;
	uint8_t *image = made_image(&spec, &size);
	int ret;

	change((Elf64_Ehdr *)image);
	ret = vp_rows_compile_memory(&rows, image, size);
	vp_rows_free(rows);
	free(image);
	made_cfi_free(&m);
	return ret;
}

static void for_arm(Elf64_Ehdr *ehdr)
{
	ehdr->e_machine = EM_AARCH64;
}

static void for_32_bits(Elf64_Ehdr *ehdr)
{
	ehdr->e_ident[EI_CLASS] = ELFCLASS32;
}

static void no_magic(Elf64_Ehdr *ehdr)
{
	ehdr->e_ident[0] = 'E';
}

static void no_segments(Elf64_Ehdr *ehdr)
{
	ehdr->e_phnum = 0;
}

Test(rows, files_for_others_are_refused)
{
	cr_expect(eq(int, compile_header(for_arm), VP_ROWS_FOREIGN));
	cr_expect(eq(int, compile_header(for_32_bits), VP_ROWS_FOREIGN));
	cr_expect(eq(int, compile_header(no_magic), VP_ROWS_NOT_ELF));
	cr_expect(eq(int, compile_header(no_segments), VP_ROWS_NO_CFI));
}

Test(rows, every_reason_has_a_text)
{
	for (int reason = VP_ROWS_OK; reason <= VP_ROWS_TOO_LARGE; reason++)
		cr_expect(ne(str, (char *)vp_rows_reason_text(reason), "unknown"));
	cr_expect(eq(str, (char *)vp_rows_reason_text(99), "unknown"));
}

/* Code of more than 4 GiB: a sparse file. */
Test(rows, a_span_that_keys_cannot_reach_is_refused)
{
	static const struct {
		uint64_t size;
		int reason;
	} cases[] = {{0xffffffff, VP_ROWS_TOO_LARGE}, {0xfffffffe, VP_ROWS_OK}};
	struct made_cfi m = one_fde(true);
	struct made_image spec = {.eh = &m};
	size_t size;
	uint8_t *image = made_image(&spec, &size);
	Elf64_Phdr *text = (Elf64_Phdr *)(image + sizeof(Elf64_Ehdr));

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		int fd = memfd_create("large", MFD_CLOEXEC);
		struct vp_rows *rows;

		text->p_filesz = cases[i].size;
		cr_assert(eq(long, pwrite(fd, image, size, 0), (long)size));
		cr_assert(zero(int, ftruncate(fd, 5L << 30)));
		cr_expect(eq(int, vp_rows_compile(&rows, fd), cases[i].reason));
		vp_rows_free(rows);
		close(fd);
	}
	free(image);
	made_cfi_free(&m);
}

Test(rows, descriptors_of_what_is_no_file_are_refused)
{
	struct vp_rows *rows;
	int fds[2];

	cr_assert(zero(int, pipe(fds)));
	cr_expect(eq(int, vp_rows_compile(&rows, fds[0]), VP_ROWS_NOT_ELF));
	cr_expect(zero(ptr, rows));
	cr_expect(eq(int, vp_rows_compile(&rows, -1), VP_ROWS_NOT_ELF));
	cr_expect(eq(int, vp_rows_compile_memory(&rows, "", 0), VP_ROWS_NOT_ELF));
}

/* ---- looking up ----------------------------------------------------------------------------- */

Test(rows, find_at_the_edges)
{
	struct made_cfi m = {.is_eh = true};
	size_t cie = made_cie(&m);
	struct vp_rows *rows;
	uint64_t first = 77;

	MADE_FDE(&m, cie, 0x10, 0x10, DW_CFA_nop);
	cr_assert(zero(int, made_compile(&(struct made_image){.eh = &m}, &rows)));
	/* before the code, before the first row, behind the code */
	cr_expect(zero(ptr, (void *)vp_rows_find(rows, 0, &first)));
	cr_expect(zero(ptr, (void *)vp_rows_find(rows, MADE_TEXT_OFFSET - 1, &first)));
	cr_expect(zero(ptr, (void *)vp_rows_find(rows, MADE_TEXT_OFFSET + 0xf, &first)));
	cr_expect(zero(ptr, (void *)vp_rows_find(rows, MADE_TEXT_OFFSET + MADE_TEXT_SIZE, NULL)));
	cr_expect(zero(ptr, (void *)vp_rows_find(rows, UINT64_MAX, NULL)));
	cr_expect(eq(u64, first, 77));
	/* its first and last byte */
	cr_expect(eq(int, vp_rows_find(rows, MADE_TEXT_OFFSET + 0x10, NULL)->cfa, VP_CFA_REG));
	cr_expect(eq(int, vp_rows_find(rows, MADE_TEXT_OFFSET + 0x1f, &first)->cfa, VP_CFA_REG));
	cr_expect(eq(u64, first, MADE_TEXT_OFFSET + 0x10));
	/* what follows */
	cr_expect(eq(int, vp_rows_find(rows, MADE_TEXT_OFFSET + 0x20, &first)->cfa, VP_CFA_NONE));
	cr_expect(eq(u64, first, MADE_TEXT_OFFSET + 0x20));
	cr_expect(eq(int, vp_rows_find(rows, MADE_TEXT_OFFSET + MADE_TEXT_SIZE - 1, NULL)->cfa,
		     VP_CFA_NONE));
	vp_rows_free(rows);
	vp_rows_free(NULL);
	made_cfi_free(&m);
}

/* ---- rules ---------------------------------------------------------------------------------- */

Test(rows, equal_rules_have_one_number)
{
	struct vp_rule rule = {.cfa = VP_CFA_REG, .reg = 7};
	struct rule_dict d;

	cr_assert(zero(int, rule_dict_init(&d)));
	cr_expect(zero(int, rule_dict_add(&d, &(struct vp_rule){0})));
	for (int round = 0; round < 2; round++) {
		for (int i = 1; i <= 5000; i++) {
			rule.cfa_off = i * 8;
			cr_assert(eq(int, rule_dict_add(&d, &rule), i));
		}
	}
	cr_expect(eq(u32, d.cnt, 5001));
	rule_dict_free(&d);
}

Test(rows, a_full_dictionary_still_knows_what_it_has)
{
	struct vp_rule rule = {.cfa = VP_CFA_REG};
	struct rule_dict d;

	cr_assert(zero(int, rule_dict_init(&d)));
	for (int i = 1; i < VP_RULES_MAX; i++) {
		rule.cfa_off = i;
		cr_assert(eq(int, rule_dict_add(&d, &rule), i));
	}
	rule.cfa_off = VP_RULES_MAX;
	cr_expect(eq(int, rule_dict_add(&d, &rule), -ENOSPC));
	rule.cfa_off = 1234;
	cr_expect(eq(int, rule_dict_add(&d, &rule), 1234));
	rule_dict_free(&d);
}

Test(rows, more_rules_than_fit_are_counted)
{
	struct made_cfi m = {.is_eh = true};
	size_t cie = made_cie(&m);
	struct vp_rows *rows;

	/* each byte of the code gets an offset of its own */
	made_open_code(&m, cie, 0, MADE_TEXT_SIZE);
	for (unsigned int i = 1; i < MADE_TEXT_SIZE; i++) {
		made_u8(&m, DW_CFA_advance_loc | 1);
		made_u8(&m, DW_CFA_def_cfa_offset);
		made_uleb(&m, 8 + i);
	}
	made_close(&m);
	cr_assert(zero(int, made_compile(&(struct made_image){.eh = &m}, &rows)));
	cr_expect(eq(u32, rows->rule_cnt, VP_RULES_MAX));
	cr_expect(eq(u64, rows->stats.rule_full_cnt, 1)); /* 65,536 rules, and 0 is one */
	cr_expect(eq(u32, rows->cnt, 65536));
	vp_rows_free(rows);
	made_cfi_free(&m);
}
