/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Call frame information made to hurt: whatever it says costs bounded time and memory. */
#include "fixture_elf.h"
#include "made_cfi.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <elf.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

TestSuite(rows_hostile, .timeout = 60);

#define PCREL4 (DW_EH_PE_pcrel | DW_EH_PE_sdata4)

static void check_rows(const struct vp_rows *rows)
{
	struct vp_rows_desc d = vp_rows_layout(rows);
	void *image = calloc(d.elem_cnt, VP_ROWS_ELEM_BYTES);

	for (uint32_t i = 0; i < rows->cnt; i++) {
		cr_assert(lt(u32, rows->rule[i], rows->rule_cnt));
		cr_assert(lt(u32, rows->key[i], rows->span));
		cr_assert(i == 0 || rows->key[i] > rows->key[i - 1]);
		cr_assert(i == 0 || rows->rule[i] != rows->rule[i - 1]);
	}
	vp_rows_fill(rows, &d, image);
	for (uint64_t offset = 0; offset < 0x3000; offset += 0x1f3)
		vp_rows_find(rows, offset, NULL);
	free(image);
}

/* Whatever comes of it, it must hold together. */
static int try_image(const uint8_t *image, size_t size)
{
	struct vp_rows *rows;
	int reason = vp_rows_compile_memory(&rows, image, size);

	cr_assert(ge(int, reason, 0));
	cr_assert(eq(int, !rows, reason != VP_ROWS_OK));
	if (rows)
		check_rows(rows);
	vp_rows_free(rows);
	return reason;
}

/* A section with some of everything. */
static void make_good(struct made_cfi *m)
{
	size_t cie = made_cie(m);

	MADE_FDE(m, cie, 0, 0x40, DW_CFA_advance_loc | 1, DW_CFA_def_cfa_offset, 16,
		 DW_CFA_offset | 6, 2, DW_CFA_remember_state, DW_CFA_advance_loc1, 3,
		 DW_CFA_def_cfa_register, 6, DW_CFA_advance_loc2, 4, 0, DW_CFA_restore_state);
	MADE_FDE(m, cie, 0x40, 0x40, DW_CFA_def_cfa_expression, 3, DW_OP_breg6, 0x78, DW_OP_deref,
		 DW_CFA_expression, 3, 2, DW_OP_breg6, 0x70, DW_CFA_advance_loc4, 9, 0, 0, 0,
		 DW_CFA_undefined, 16);
	MADE_FDE(m, cie, 0x100, 0x40, DW_CFA_offset_extended_sf, 12, 0x7b, DW_CFA_advance_loc | 5,
		 DW_CFA_restore_extended, 12, DW_CFA_val_expression, 13, 1, DW_OP_lit0);
}

static uint8_t *good_image(size_t *size)
{
	struct made_cfi eh = {.is_eh = true}, debug = {.is_eh = false};
	uint8_t *image;

	make_good(&eh);
	make_good(&debug);
	image = made_image(&(struct made_image){.eh = &eh, .debug = &debug}, size);
	cr_assert(eq(int, try_image(image, *size), VP_ROWS_OK));
	made_cfi_free(&eh);
	made_cfi_free(&debug);
	return image;
}

/* Where the interesting bytes of such an image are: headers, and what follows the code. */
static size_t interesting(size_t i)
{
	return i < 0x200 ? i : i - 0x200 + MADE_TEXT_OFFSET + MADE_TEXT_SIZE;
}

Test(rows_hostile, truncation_at_every_size)
{
	size_t size;
	uint8_t *image = good_image(&size), *cut;

	for (size_t i = 0; interesting(i) < size; i++) {
		/* an allocation of its own, so that ASan sees a byte too many */
		cut = malloc(interesting(i) + 1);
		memcpy(cut, image, interesting(i));
		try_image(cut, interesting(i));
		free(cut);
	}
	free(image);
}

Test(rows_hostile, huge_numbers_everywhere)
{
	static const uint64_t values[] = {UINT64_MAX, 1ULL << 63, 1ULL << 40,	     UINT32_MAX,
					  1ULL << 31, 0,	  0x8080808080808080};
	size_t size;
	uint8_t *image = good_image(&size);

	for (size_t v = 0; v < sizeof(values) / sizeof(*values); v++) {
		for (size_t bytes = 1; bytes <= 8; bytes *= 2) {
			for (size_t i = 0; interesting(i) + bytes <= size; i++) {
				uint8_t kept[8];

				memcpy(kept, image + interesting(i), bytes);
				memcpy(image + interesting(i), &values[v], bytes);
				try_image(image, size);
				memcpy(image + interesting(i), kept, bytes);
			}
		}
	}
	free(image);
}

Test(rows_hostile, random_damage)
{
	unsigned int seed = 20250101;
	size_t size;
	uint8_t *image = good_image(&size), *bad = malloc(size);
	size_t end = size - MADE_TEXT_SIZE - MADE_TEXT_OFFSET + 0x200;

	for (int i = 0; i < 20000; i++) {
		int flips = 1 + rand_r(&seed) % 8;

		memcpy(bad, image, size);
		while (flips--)
			bad[interesting((size_t)rand_r(&seed) % end)] = (uint8_t)rand_r(&seed);
		try_image(bad, size);
	}
	free(bad);
	free(image);
}

Test(rows_hostile, a_real_librarys_damage)
{
	unsigned int seed = 1;
	size_t size;
	uint8_t *image = fixture_read("/lib/x86_64-linux-gnu/libm.so.6", &size);
	const Elf64_Ehdr *ehdr = (const Elf64_Ehdr *)image;
	const Elf64_Phdr *p = (const Elf64_Phdr *)(image + ehdr->e_phoff);

	while (p->p_type != PT_GNU_EH_FRAME)
		p++;
	size_t at = p->p_offset + p->p_filesz;
	for (int i = 0; i < 200; i++) {
		for (int flips = 0; flips < 50; flips++)
			image[at + (size_t)rand_r(&seed) % 0x4000] ^=
				(uint8_t)(1 << rand_r(&seed) % 8);
		try_image(image, size);
	}
	free(image);
}

/* ---- single lies ---------------------------------------------------------------------------- */

static int compile_eh(struct made_cfi *m, struct vp_rows **rows)
{
	int reason = made_compile(&(struct made_image){.eh = m}, rows);

	made_cfi_free(m);
	return reason;
}

/* In a section of one good FDE and a lie, the FDE lives on; returns how many were damaged. */
static uint64_t bad_fdes_beside_a_good_one(struct made_cfi *m)
{
	struct vp_rows *rows;
	uint64_t bad;

	cr_assert(eq(int, compile_eh(m, &rows), VP_ROWS_OK));
	cr_expect(eq(int, rows->rules[rows->rule[0]].cfa_off, 8));
	bad = rows->stats.bad_fde_cnt;
	vp_rows_free(rows);
	return bad;
}

Test(rows_hostile, cie_pointers_that_lead_nowhere)
{
	static const uint32_t distances[] = {1,		 4,	     0x7fffffff, 0x80000000,
					     0xfffffff0, 0xffffffff, 12};

	for (size_t i = 0; i < sizeof(distances) / sizeof(*distances); i++) {
		struct made_cfi m = {.is_eh = true};
		size_t cie = made_cie(&m), fde;

		MADE_FDE(&m, cie, 0, 0x10, DW_CFA_nop);
		fde = m.cnt;
		MADE_FDE(&m, cie, 0x20, 0x10, DW_CFA_nop);
		memcpy(m.bytes + fde + 4, &distances[i], 4);
		cr_expect(eq(u64, bad_fdes_beside_a_good_one(&m), 1));
	}
}

Test(rows_hostile, an_fde_is_no_cie)
{
	struct made_cfi m = {.is_eh = true};
	size_t cie = made_cie(&m), fde;
	uint32_t distance;

	MADE_FDE(&m, cie, 0, 0x10, DW_CFA_nop);
	fde = m.cnt;
	MADE_FDE(&m, cie, 0x20, 0x10, DW_CFA_nop);
	/* the one before it, and itself */
	distance = (uint32_t)(fde + 4 - (cie + 24));
	memcpy(m.bytes + fde + 4, &distance, sizeof(distance));
	MADE_FDE(&m, m.cnt, 0x40, 0x10, DW_CFA_nop);
	cr_expect(eq(u64, bad_fdes_beside_a_good_one(&m), 2));
}

Test(rows_hostile, lengths_behind_the_end)
{
	static const uint32_t lengths[] = {0x7fffffff, 0xffffffef, 0xfffffff0,
					   0xfffffffe, 0xffffffff, 100};

	for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
		struct made_cfi m = {.is_eh = true};
		size_t cie = made_cie(&m), fde;

		MADE_FDE(&m, cie, 0, 0x10, DW_CFA_nop);
		fde = m.cnt;
		MADE_FDE(&m, cie, 0x20, 0x10, DW_CFA_nop);
		memcpy(m.bytes + fde, &lengths[i], 4);
		cr_expect(zero(u64, bad_fdes_beside_a_good_one(&m)));
	}
}

Test(rows_hostile, entries_shorter_than_their_own_fields)
{
	for (unsigned int len = 1; len < 17; len++) {
		struct made_cfi m = {.is_eh = true};
		size_t cie = made_cie(&m);

		MADE_FDE(&m, cie, 0, 0x10, DW_CFA_nop);
		made_u32(&m, len);
		made_u32(&m, m.cnt - cie);
		while (m.cnt % 64)
			made_u8(&m, 0);
		bad_fdes_beside_a_good_one(&m);
	}
}

/*
 * Many CIEs with long programs, and FDEs that take them in turn: each program must run once. If
 * each FDE ran its CIE's it would be 10^11 instructions, and the test would be ended.
 */
Test(rows_hostile, long_cies_are_run_once)
{
	enum { CIES = 8, CIE_BYTES = 1 << 20, FDES = 100000 };
	struct made_cfi m = {.is_eh = true};
	size_t cie[CIES];
	struct vp_rows *rows;

	for (int i = 0; i < CIES; i++) {
		cie[i] = made_open_cie(&m);
		made_put(&m, (const uint8_t[]){1, 'z', 'R', 0, 1, 0x78, 16, 1, PCREL4}, 9);
		made_put(&m, (const uint8_t[]){DW_CFA_def_cfa, 7, 8, DW_CFA_offset | 16, 1}, 5);
		for (int n = 0; n < CIE_BYTES; n++)
			made_u8(&m, DW_CFA_nop);
		made_close(&m);
	}
	for (int i = 0; i < FDES; i++)
		MADE_FDE(&m, cie[i % CIES], (uint64_t)i % MADE_TEXT_SIZE, 1, DW_CFA_nop);
	cr_expect(eq(int, compile_eh(&m, &rows), VP_ROWS_OK));
	vp_rows_free(rows);
}

Test(rows_hostile, more_cies_than_any_file_has)
{
	struct made_cfi m = {.is_eh = true};
	struct vp_rows *rows;

	for (int i = 0; i < (1 << 18) + 1; i++) {
		made_open_cie(&m);
		made_close(&m);
	}
	cr_expect(eq(int, compile_eh(&m, &rows), VP_ROWS_TOO_LARGE));
}

Test(rows_hostile, more_fdes_than_any_file_has)
{
	struct made_cfi m = {.is_eh = true};
	size_t cie = made_cie(&m);
	struct vp_rows *rows;

	for (int i = 0; i < (4 << 20) + 1; i++) {
		struct __attribute__((packed)) {
			uint32_t len, cie, at, code_len;
			uint8_t augmentation;
		} fde = {sizeof(fde) - 4, (uint32_t)(m.cnt + 4 - cie),
			 (uint32_t)(MADE_TEXT - (MADE_EH + m.cnt + 8)), 1, 0};

		made_put(&m, &fde, sizeof(fde));
	}
	cr_expect(eq(int, compile_eh(&m, &rows), VP_ROWS_TOO_LARGE));
}

/* 16 M rows: code of that many bytes need not exist, only be claimed by a sparse file. */
Test(rows_hostile, more_rows_than_any_file_has, .timeout = 120)
{
	struct made_cfi m = {.is_eh = true};
	size_t cie = made_cie(&m), size;
	struct made_image spec = {.eh = &m};
	struct vp_rows *rows;
	uint8_t *image;
	int fd = memfd_create("rows", MFD_CLOEXEC);
	static const uint8_t two_rows[] = {DW_CFA_advance_loc | 1, DW_CFA_def_cfa_offset, 16,
					   DW_CFA_advance_loc | 1, DW_CFA_def_cfa_offset, 8};

	made_open_code(&m, cie, 0, 0xf0000000);
	for (int i = 0; i < 17 << 19; i++)
		made_put(&m, two_rows, sizeof(two_rows));
	made_close(&m);
	image = made_image(&spec, &size);
	((Elf64_Phdr *)(image + sizeof(Elf64_Ehdr)))->p_filesz = 0xf0000000;
	cr_assert(eq(long, pwrite(fd, image, size, 0), (long)size));
	cr_assert(zero(int, ftruncate(fd, 0x100000000)));
	cr_expect(eq(int, vp_rows_compile(&rows, fd), VP_ROWS_TOO_LARGE));
	close(fd);
	free(image);
	made_cfi_free(&m);
}

/*
 * 65,530 rows so far apart that each takes a block, which nearly fill 4 GiB, and some close
 * together behind them.
 */
static int compile_scattered(int close_rows)
{
	struct made_cfi m = {.is_eh = true};
	size_t cie = made_cie(&m), size;
	struct made_image spec = {.eh = &m};
	int fd = memfd_create("blocks", MFD_CLOEXEC), reason;
	struct vp_rows *rows;
	uint8_t *image;

	made_open_code(&m, cie, 0, 0xfffffff0);
	for (int i = 0; i < 65530; i++)
		made_put(&m,
			 (const uint8_t[]){DW_CFA_advance_loc4, 0xff, 0xff, 0, 0,
					   DW_CFA_def_cfa_offset, i % 2 ? 8 : 16},
			 7);
	for (int i = 0; i < close_rows; i++)
		made_put(&m,
			 (const uint8_t[]){DW_CFA_advance_loc | 1, DW_CFA_def_cfa_offset,
					   i % 2 ? 8 : 16},
			 3);
	made_close(&m);
	image = made_image(&spec, &size);
	((Elf64_Phdr *)(image + sizeof(Elf64_Ehdr)))->p_filesz = 0xfffffffe;
	cr_assert(eq(long, pwrite(fd, image, size, 0), (long)size));
	cr_assert(zero(int, ftruncate(fd, 0x200000000)));
	reason = vp_rows_compile(&rows, fd);
	if (rows)
		cr_expect(ge(u32, vp_rows_layout(rows).block_cnt, 65530));
	vp_rows_free(rows);
	close(fd);
	free(image);
	made_cfi_free(&m);
	return reason;
}

Test(rows_hostile, more_blocks_than_directories_hold)
{
	cr_expect(eq(int, compile_scattered(500), VP_ROWS_OK));
	cr_expect(eq(int, compile_scattered(2000), VP_ROWS_TOO_LARGE));
}

/* A writer cuts, fills and damages the file while it is compiled. */
Test(rows_hostile, a_file_that_changes_while_it_is_read)
{
	size_t size;
	uint8_t *image = good_image(&size);
	int fd = memfd_create("changing", MFD_CLOEXEC);
	pid_t parent = getpid(), writer = fork();

	if (!writer) {
		unsigned int seed = 3;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		while (getppid() == parent) {
			if (pwrite(fd, image, size, 0) < 0 ||
			    ftruncate(fd, rand_r(&seed) % (long)size) ||
			    pwrite(fd, image, size, 0) < 0)
				_exit(1);
			image[interesting((size_t)rand_r(&seed) % 0x400)] ^= 1;
		}
		_exit(0);
	}
	for (int i = 0; i < 5000; i++) {
		struct vp_rows *rows;

		cr_assert(ge(int, vp_rows_compile(&rows, fd), 0));
		vp_rows_free(rows);
	}
	kill(writer, SIGKILL);
	waitpid(writer, NULL, 0);
	close(fd);
	free(image);
}
