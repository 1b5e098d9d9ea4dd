/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "code_rows.h"
#include "arch_x86.h"

#include <stdlib.h>
#include <string.h>

#define CODE_BYTES   64
#define DYNAMIC_MAX  512
#define SEARCHED_MAX (4U << 20) /* bytes of code */

static const uint8_t endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};
static const uint8_t sub_8_rsp[] = {0x48, 0x83, 0xec, 0x08};
static const uint8_t add_8_rsp_ret[] = {0x48, 0x83, 0xc4, 0x08, 0xc3};
static const uint8_t syscall_insn[] = {0x0f, 0x05};
/* mov %rbx, %rsp; mov (%rsp), %rdi; test %rdi, %rdi; je */
static const uint8_t start_context[] = {0x48, 0x89, 0xdc, 0x48, 0x8b, 0x3c,
					0x24, 0x48, 0x85, 0xff, 0x74};

static bool starts_with(const uint8_t *code, size_t len, const uint8_t *what, size_t what_len)
{
	return len >= what_len && !memcmp(code, what, what_len);
}

/* [endbr64;] sub $8, %rsp; …; add $8, %rsp; ret: three rows, or none. */
static size_t rows_of_init(uint32_t key, const uint8_t *code, struct code_row rows[3])
{
	size_t pushed = 0, ret;
	const uint8_t *tail;

	if (starts_with(code, CODE_BYTES, endbr64, sizeof(endbr64)))
		pushed = sizeof(endbr64);
	if (!starts_with(code + pushed, CODE_BYTES - pushed, sub_8_rsp, sizeof(sub_8_rsp)))
		return 0;
	pushed += sizeof(sub_8_rsp);
	tail = memmem(code + pushed, CODE_BYTES - pushed, add_8_rsp_ret, sizeof(add_8_rsp_ret));
	if (!tail)
		return 0;
	ret = (size_t)(tail - code) + sizeof(add_8_rsp_ret) - 1;
	rows[0] = (struct code_row){key, key + (uint32_t)pushed, 8};
	rows[1] = (struct code_row){key + (uint32_t)pushed, key + (uint32_t)ret, 16};
	rows[2] = (struct code_row){key + (uint32_t)ret, key + (uint32_t)ret + 1, 8};
	return 3;
}

/* The rows of the function at a link-time address. */
static size_t rows_at(const struct elf_file *f, const struct cfi_space *space, uint64_t vaddr,
		      struct code_row rows[3])
{
	uint8_t code[CODE_BYTES] = {0};
	uint64_t offset, left, key;

	if (elf_segments_offset(f->exec, f->exec_cnt, vaddr, &offset) || offset < space->base ||
	    offset >= f->size)
		return 0;
	key = offset - space->base;
	left = f->size - offset;
	if (key + CODE_BYTES > space->span ||
	    elf_file_read(f, offset, code, left < CODE_BYTES ? left : CODE_BYTES))
		return 0;
	return rows_of_init((uint32_t)key, code, rows);
}

/* DT_INIT or DT_FINI; 0: none. */
static uint64_t dynamic_value(const Elf64_Dyn *dyn, size_t cnt, int64_t tag)
{
	for (size_t i = 0; i < cnt && dyn[i].d_tag != DT_NULL; i++) {
		if (dyn[i].d_tag == tag)
			return dyn[i].d_un.d_ptr;
	}
	return 0;
}

static size_t read_dynamic(const struct elf_file *f, Elf64_Dyn dyn[DYNAMIC_MAX])
{
	for (size_t i = 0; i < f->phdr_cnt; i++) {
		GElf_Phdr p;
		size_t cnt;

		if (!gelf_getphdr(f->elf, (int)i, &p) || p.p_type != PT_DYNAMIC)
			continue;
		cnt = p.p_filesz / sizeof(*dyn);
		if (cnt > DYNAMIC_MAX)
			cnt = DYNAMIC_MAX;
		return elf_file_read(f, p.p_offset, dyn, cnt * sizeof(*dyn)) ? 0 : cnt;
	}
	return 0;
}

/* Offset in the file of the first such bytes in a segment; 0: none, or it could not be read. */
static uint64_t find_bytes(const struct elf_file *f, const struct elf_segment *s,
			   const uint8_t *what, size_t len)
{
	uint8_t *code = malloc(s->filesz);
	const uint8_t *at = NULL;
	uint64_t offset = 0;

	if (code && !elf_file_read(f, s->offset, code, s->filesz))
		at = memmem(code, s->filesz, what, len);
	if (at)
		offset = s->offset + (uint64_t)(at - code);
	free(code);
	return offset;
}

/*
 * The outermost function of a context returns to the first byte of glibc's __start_context, which
 * is looked up one byte before: in a gap, where the stack can be said to end. There is no symbol for
 * it, so the code is searched; a C library's is never large.
 */
static size_t row_of_context(const struct elf_file *f, const struct cfi_space *space,
			     struct code_row *row)
{
	for (size_t i = 0; i < f->exec_cnt; i++) {
		const struct elf_segment *s = &f->exec[i];
		uint64_t offset;

		if (s->filesz > SEARCHED_MAX || s->offset < space->base)
			continue;
		offset = find_bytes(f, s, start_context, sizeof(start_context));
		if (offset > space->base && offset - space->base < space->span) {
			row->end = (uint32_t)(offset - space->base);
			row->key = row->end - 1;
			row->cfa_off = 0;
			return 1;
		}
	}
	return 0;
}

static int by_key(const void *a, const void *b)
{
	const struct code_row *x = a, *y = b;

	return (x->key > y->key) - (x->key < y->key);
}

size_t code_rows_find(const struct elf_file *f, const struct cfi_space *space,
		      struct code_row rows[CODE_ROWS_MAX])
{
	Elf64_Dyn dyn[DYNAMIC_MAX];
	size_t dyn_cnt = read_dynamic(f, dyn), cnt, kept = 0;

	cnt = rows_at(f, space, dynamic_value(dyn, dyn_cnt, DT_INIT), rows);
	cnt += rows_at(f, space, dynamic_value(dyn, dyn_cnt, DT_FINI), rows + cnt);
	cnt += row_of_context(f, space, rows + cnt);
	qsort(rows, cnt, sizeof(*rows), by_key);
	for (size_t i = 0; i < cnt; i++) {
		if (!kept || rows[kept - 1].end <= rows[i].key)
			rows[kept++] = rows[i];
	}
	return kept;
}

bool code_rows_is_clone(const struct elf_file *f, const struct cfi_space *space, uint32_t key,
			const struct vp_rule *before, const struct vp_rule *behind)
{
	uint8_t code[sizeof(syscall_insn)];

	return before->cfa == VP_CFA_REG && before->reg == ARCH_REG_SP && before->cfa_off == 8 &&
	       behind->cfa == VP_CFA_END &&
	       !elf_file_read(f, space->base + key, code, sizeof(code)) &&
	       !memcmp(code, syscall_insn, sizeof(code));
}
