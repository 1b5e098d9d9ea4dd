/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "code_rows.h"
#include "arch_x86.h"

#include <string.h>

#define CODE_BYTES  64
#define DYNAMIC_MAX 512

static const uint8_t endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};
static const uint8_t sub_8_rsp[] = {0x48, 0x83, 0xec, 0x08};
static const uint8_t add_8_rsp_ret[] = {0x48, 0x83, 0xc4, 0x08, 0xc3};
static const uint8_t syscall_insn[] = {0x0f, 0x05};

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

size_t code_rows_find(const struct elf_file *f, const struct cfi_space *space,
		      struct code_row rows[CODE_ROWS_MAX])
{
	Elf64_Dyn dyn[DYNAMIC_MAX];
	size_t cnt = read_dynamic(f, dyn), n;
	uint64_t init = dynamic_value(dyn, cnt, DT_INIT), fini = dynamic_value(dyn, cnt, DT_FINI);

	/* ascending: .fini comes behind .init, but nobody has to */
	n = rows_at(f, space, init < fini ? init : fini, rows);
	n += rows_at(f, space, init < fini ? fini : init, rows + n);
	if (n == CODE_ROWS_MAX && rows[3].key < rows[2].end)
		n = 3;
	return n;
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
