/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Files that are no ELF files, damaged ones and ones made to hurt. */
#include "fixture_elf.h"
#include "symbolize/symbolizer.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <elf.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static struct fixture x;
static struct vp_symbolizer *s;
static uint32_t next_id;

static void set_up(void)
{
	fixture_new(&x);
	cr_assert(zero(int, vp_symbolizer_new(&s, NULL)));
}

static void tear_down(void)
{
	vp_symbolizer_free(s);
	fixture_remove(&x);
}

TestSuite(elf_hostile, .init = set_up, .fini = tear_down, .timeout = 30);

/* Reads a file under a new id and looks a few offsets up in it. */
static enum vp_sym_reason try_file(const char *path)
{
	struct vp_file_info info;
	struct vp_symbol sym;
	uint32_t id = ++next_id;

	cr_assert(zero(int, vp_symbolizer_load_path(s, id, path)));
	cr_assert(zero(int, vp_symbolizer_file_info(s, id, &info)));
	for (uint64_t offset = 0; offset < 0x4000; offset += 0x333)
		vp_symbolizer_file(s, id, offset, &sym);
	vp_symbolizer_file(s, id, UINT64_MAX, &sym);
	return info.reason;
}

/* A file that is no disk's: tests write thousands. Each call replaces its contents. */
static const char *in_memory(const void *bytes, size_t n)
{
	static char path[64];
	static int fd = -1;

	if (fd < 0)
		fd = memfd_create("elf", MFD_CLOEXEC);
	cr_assert(ge(int, fd, 0));
	cr_assert(zero(int, ftruncate(fd, 0)));
	cr_assert(eq(long, pwrite(fd, bytes, n, 0), (long)n));
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return path;
}

#define EXPECT_REASON(path, reason) cr_expect(eq(int, try_file(path), reason))

/* A small unstripped library; caller frees. */
static unsigned char *good_elf(size_t *size)
{
	fixture_text(&x, "g.c",
		     "int f(void) { return 1; } static int g(void) { return 2; }\n"
		     "int (*h)(void) = g;\n");
	fixture_run(&x, "gcc -shared -nostdlib -Wl,-z,noseparate-code -o g.so g.c");
	EXPECT_REASON(fixture_path(&x, "g.so"), VP_SYM_OK);
	return fixture_read(fixture_path(&x, "g.so"), size);
}

Test(elf_hostile, what_is_no_elf_file_is_called_so)
{
	EXPECT_REASON(fixture_text(&x, "empty", ""), VP_SYM_NOT_ELF);
	EXPECT_REASON(fixture_text(&x, "text", "#!/bin/sh\n"), VP_SYM_NOT_ELF);
	EXPECT_REASON(fixture_text(&x, "magic", "\177ELF"), VP_SYM_NOT_ELF);
	EXPECT_REASON(fixture_text(&x, "archive", "!<arch>\n"), VP_SYM_NOT_ELF);
	EXPECT_REASON(fixture_path(&x, "missing"), VP_SYM_CANNOT_OPEN);
}

Test(elf_hostile, what_is_no_regular_file_is_not_opened, .timeout = 5)
{
	mkfifo(fixture_path(&x, "fifo"), 0600);
	EXPECT_REASON(fixture_path(&x, "fifo"), VP_SYM_NOT_ELF);
	EXPECT_REASON(x.dir, VP_SYM_NOT_ELF);
	EXPECT_REASON("/dev/zero", VP_SYM_NOT_ELF);
}

Test(elf_hostile, a_foreign_byte_order_is_refused)
{
	size_t size;
	unsigned char *elf = good_elf(&size);

	elf[EI_DATA] = elf[EI_DATA] == ELFDATA2LSB ? ELFDATA2MSB : ELFDATA2LSB;
	EXPECT_REASON(fixture_write(&x, "big", elf, size), VP_SYM_NOT_ELF);
	free(elf);
}

Test(elf_hostile, a_truncated_file_is_survived_at_every_size)
{
	size_t size;
	unsigned char *elf = good_elf(&size);

	for (size_t n = 0; n < size; n += n < 1024 ? 7 : 61)
		try_file(in_memory(elf, n));
	free(elf);
}

Test(elf_hostile, huge_numbers_in_headers_are_survived)
{
	static const uint64_t values[] = {UINT64_MAX,	  UINT64_MAX - 4095, 1ULL << 63, 1ULL << 62,
					  1ULL << 40,	  UINT32_MAX,	     1ULL << 31, 0,
					  UINT64_MAX / 24};
	size_t size;
	unsigned char *elf = good_elf(&size);
	Elf64_Ehdr *e = (Elf64_Ehdr *)elf;
	size_t phdrs = e->e_phoff, shdrs = e->e_shoff;

	for (size_t v = 0; v < sizeof(values) / sizeof(*values); v++) {
		/* every 8-byte field of the ELF, program and section headers in turn */
		for (size_t at = 16; at + 8 <= size; at += 8) {
			uint64_t kept;

			if (at >= phdrs + (size_t)e->e_phnum * sizeof(Elf64_Phdr) && at < shdrs)
				continue;
			memcpy(&kept, elf + at, 8);
			memcpy(elf + at, &values[v], 8);
			try_file(in_memory(elf, size));
			memcpy(elf + at, &kept, 8);
		}
	}
	free(elf);
}

Test(elf_hostile, random_damage_is_survived)
{
	unsigned int seed = 20250101;
	size_t size;
	unsigned char *elf = good_elf(&size);
	unsigned char *bad = malloc(size);

	for (int i = 0; i < 3000; i++) {
		int flips = 1 + rand_r(&seed) % 12;

		memcpy(bad, elf, size);
		while (flips--) {
			/* half of them where the headers are */
			size_t at = rand_r(&seed) % 2 ? (size_t)rand_r(&seed) % size
						      : (size_t)rand_r(&seed) % 512;

			bad[at] = (unsigned char)rand_r(&seed);
		}
		try_file(in_memory(bad, size));
	}
	free(bad);
	free(elf);
}

Test(elf_hostile, a_sparse_file_with_a_huge_symbol_table_costs_nothing)
{
	size_t size;
	unsigned char *elf = good_elf(&size);
	Elf64_Ehdr *e = (Elf64_Ehdr *)elf;
	Elf64_Shdr *shdr = (Elf64_Shdr *)(elf + e->e_shoff);

	for (int i = 0; i < e->e_shnum; i++) {
		if (shdr[i].sh_type == SHT_SYMTAB || shdr[i].sh_type == SHT_STRTAB ||
		    shdr[i].sh_type == SHT_DYNSYM)
			shdr[i].sh_size = 1ULL << 35;
	}
	const char *path = fixture_write(&x, "sparse", elf, size);
	if (truncate(path, 1LL << 36))
		cr_skip("no large sparse files here");
	EXPECT_REASON(path, VP_SYM_NO_SYMBOLS);
	free(elf);
}

Test(elf_hostile, a_file_that_is_cut_while_it_is_read_is_survived)
{
	size_t size;
	unsigned char *elf = good_elf(&size);
	const char *path = fixture_write(&x, "race", elf, size);
	pid_t child = fork();

	if (!child) {
		int fd = open(path, O_RDWR);

		for (int i = 0; i < 20000; i++) {
			if (ftruncate(fd, i % 2 ? 0 : 200) || pwrite(fd, elf, size, 0) < 0)
				_exit(1);
		}
		_exit(0);
	}
	for (int i = 0; i < 500; i++)
		try_file(path);
	kill(child, SIGKILL);
	free(elf);
}

Test(elf_hostile, strings_without_end_are_not_read_beyond_the_table)
{
	size_t size;
	unsigned char *elf = good_elf(&size);
	Elf64_Ehdr *e = (Elf64_Ehdr *)elf;
	Elf64_Shdr *shdr = (Elf64_Shdr *)(elf + e->e_shoff);

	for (int i = 0; i < e->e_shnum; i++) {
		if (shdr[i].sh_type == SHT_STRTAB)
			memset(elf + shdr[i].sh_offset, 'x', shdr[i].sh_size);
	}
	EXPECT_REASON(fixture_write(&x, "endless", elf, size), VP_SYM_OK);
	free(elf);
}

/* Symbols whose names are all the rest of one string without end. */
Test(elf_hostile, names_without_end_cost_neither_time_nor_memory, .timeout = 20)
{
	fixture_text(&x, "big.awk",
		     "BEGIN { for (i = 0; i < 60000; i++)\n"
		     "  printf \".globl s%d\\n.type s%d,@function\\ns%d: nop\\n.size s%d,1\\n\","
		     " i, i, i, i }\n");
	fixture_run(&x, "awk -f big.awk > big.s && gcc -shared -nostdlib -o big big.s");

	size_t size;
	unsigned char *elf = fixture_read(fixture_path(&x, "big"), &size);
	Elf64_Ehdr *e = (Elf64_Ehdr *)elf;
	Elf64_Shdr *shdr = (Elf64_Shdr *)(elf + e->e_shoff);
	for (int i = 0; i < e->e_shnum; i++) {
		if (shdr[i].sh_type == SHT_STRTAB)
			memset(elf + shdr[i].sh_offset, 'x', shdr[i].sh_size);
	}
	struct vp_symbolizer_stats stats;
	EXPECT_REASON(fixture_write(&x, "big", elf, size), VP_SYM_OK);
	vp_symbolizer_get_stats(s, &stats);
	cr_expect(lt(u64, stats.table_bytes, size));
	cr_expect(lt(u64, stats.name_bytes, 1 << 20));
	free(elf);
}
