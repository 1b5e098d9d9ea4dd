/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "made_cfi.h"

#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *need(void *p)
{
	if (!p)
		abort();
	return p;
}

void made_cfi_free(struct made_cfi *m)
{
	free(m->bytes);
	*m = (struct made_cfi){.is_eh = m->is_eh};
}

void made_put(struct made_cfi *m, const void *bytes, size_t cnt)
{
	if (m->cnt + cnt > m->cap) {
		m->cap = (m->cnt + cnt) * 2 + 64;
		m->bytes = need(realloc(m->bytes, m->cap));
	}
	if (cnt) /* NULL is no source, not even of nothing */
		memcpy(m->bytes + m->cnt, bytes, cnt);
	m->cnt += cnt;
}

void made_u8(struct made_cfi *m, unsigned int v)
{
	uint8_t x = (uint8_t)v;

	made_put(m, &x, sizeof(x));
}

void made_u16(struct made_cfi *m, unsigned int v)
{
	uint16_t x = (uint16_t)v;

	made_put(m, &x, sizeof(x));
}

void made_u32(struct made_cfi *m, uint64_t v)
{
	uint32_t x = (uint32_t)v;

	made_put(m, &x, sizeof(x));
}

void made_u64(struct made_cfi *m, uint64_t v)
{
	made_put(m, &v, sizeof(v));
}

void made_uleb(struct made_cfi *m, uint64_t v)
{
	for (; v >= 0x80; v >>= 7)
		made_u8(m, (v & 0x7f) | 0x80);
	made_u8(m, (unsigned int)v);
}

void made_sleb(struct made_cfi *m, int64_t v)
{
	for (; v < -64 || v > 63; v >>= 7)
		made_u8(m, (v & 0x7f) | 0x80);
	made_u8(m, v & 0x7f);
}

static void put_offset(struct made_cfi *m, uint64_t v)
{
	if (m->is_64bit)
		made_u64(m, v);
	else
		made_u32(m, v);
}

static size_t open_entry(struct made_cfi *m)
{
	size_t at = m->cnt;

	if (m->is_64bit)
		made_u32(m, 0xffffffff);
	m->entry = m->cnt;
	put_offset(m, 0);
	return at;
}

size_t made_open_cie(struct made_cfi *m)
{
	size_t at = open_entry(m);

	put_offset(m, m->is_eh ? 0 : UINT64_MAX);
	return at;
}

size_t made_open_fde(struct made_cfi *m, size_t cie)
{
	size_t at = open_entry(m);

	put_offset(m, m->is_eh ? m->cnt - cie : cie);
	return at;
}

void made_close(struct made_cfi *m)
{
	size_t word = m->is_64bit ? 8 : 4;
	uint64_t len;

	while (m->cnt % 8)
		made_u8(m, DW_CFA_nop);
	len = m->cnt - m->entry - word;
	memcpy(m->bytes + m->entry, &len, word);
}

size_t made_cie(struct made_cfi *m)
{
	size_t at = made_open_cie(m);

	made_u8(m, m->is_eh ? 1 : 3);
	made_put(m, m->is_eh ? "zR" : "", m->is_eh ? 3 : 1);
	made_uleb(m, 1);
	made_sleb(m, -8);
	made_uleb(m, 16);
	if (m->is_eh) {
		made_uleb(m, 1);
		made_u8(m, DW_EH_PE_pcrel | DW_EH_PE_sdata4);
	}
	made_put(m, (const uint8_t[]){DW_CFA_def_cfa, 7, 8, DW_CFA_offset | 16, 1}, 5);
	made_close(m);
	return at;
}

void made_open_code(struct made_cfi *m, size_t cie, uint64_t at, uint64_t len)
{
	made_open_fde(m, cie);
	if (m->is_eh) {
		made_u32(m, MADE_TEXT + at - (MADE_EH + m->cnt));
		made_u32(m, len);
		made_uleb(m, 0);
	} else {
		made_u64(m, MADE_TEXT + at);
		made_u64(m, len);
	}
}

void made_fde(struct made_cfi *m, size_t cie, uint64_t at, uint64_t len, const uint8_t *program,
	      size_t cnt)
{
	made_open_code(m, cie, at, len);
	made_put(m, program, cnt);
	made_close(m);
}

/* ---- images --------------------------------------------------------------------------------- */

#define HDR_OFFSET (MADE_TEXT_OFFSET + MADE_TEXT_SIZE)
#define EH_OFFSET  (HDR_OFFSET + MADE_EH - MADE_HDR)

static const char names[] = "\0.text\0.eh_frame\0.debug_frame\0.zdebug_frame\0.shstrtab";

static uint32_t name_of(const char *name)
{
	for (size_t i = 0; i + strlen(name) < sizeof(names); i++) {
		if (!strcmp(names + i, name))
			return (uint32_t)i;
	}
	abort();
}

struct builder {
	const struct made_image *spec;
	uint8_t *bytes;
	size_t size;
	size_t eh_size, debug_size;
	size_t debug_offset, names_offset, shdrs_offset;
	Elf64_Ehdr *ehdr;
};

static void put_segments(const struct builder *b)
{
	Elf64_Phdr *p = (Elf64_Phdr *)(b->bytes + sizeof(Elf64_Ehdr));

	p[0] = (Elf64_Phdr){.p_type = PT_LOAD,
			    .p_flags = PF_R | PF_X,
			    .p_offset = MADE_TEXT_OFFSET,
			    .p_vaddr = MADE_TEXT,
			    .p_filesz = MADE_TEXT_SIZE,
			    .p_memsz = MADE_TEXT_SIZE};
	p[1] = (Elf64_Phdr){.p_type = PT_LOAD,
			    .p_flags = PF_R,
			    .p_offset = HDR_OFFSET,
			    .p_vaddr = MADE_HDR,
			    .p_filesz = b->debug_offset - HDR_OFFSET,
			    .p_memsz = b->debug_offset - HDR_OFFSET};
	p[2] = (Elf64_Phdr){.p_type = PT_GNU_EH_FRAME,
			    .p_flags = PF_R,
			    .p_offset = HDR_OFFSET,
			    .p_vaddr = MADE_HDR,
			    .p_filesz = MADE_EH - MADE_HDR,
			    .p_memsz = MADE_EH - MADE_HDR};
	b->ehdr->e_phoff = sizeof(Elf64_Ehdr);
	b->ehdr->e_phentsize = sizeof(Elf64_Phdr);
	b->ehdr->e_phnum = b->spec->eh && !b->spec->without_hdr ? 3 : 2;
}

static void put_hdr(const struct builder *b)
{
	uint8_t *hdr = b->bytes + HDR_OFFSET;
	uint32_t distance = MADE_EH - (MADE_HDR + 4);

	hdr[0] = 1;
	hdr[1] = DW_EH_PE_pcrel | DW_EH_PE_sdata4;
	hdr[2] = DW_EH_PE_omit;
	hdr[3] = DW_EH_PE_omit;
	memcpy(hdr + 4, &distance, sizeof(distance));
}

static void put_sections(const struct builder *b)
{
	Elf64_Shdr *s = (Elf64_Shdr *)(b->bytes + b->shdrs_offset) + 1;
	const struct made_image *spec = b->spec;
	const char *debug = spec->debug_name ? spec->debug_name : ".debug_frame";

	*s++ = (Elf64_Shdr){.sh_name = name_of(".text"),
			    .sh_type = SHT_PROGBITS,
			    .sh_flags = SHF_ALLOC | SHF_EXECINSTR,
			    .sh_addr = MADE_TEXT,
			    .sh_offset = MADE_TEXT_OFFSET,
			    .sh_size = MADE_TEXT_SIZE};
	*s++ = (Elf64_Shdr){.sh_name = name_of(".eh_frame"),
			    .sh_type = spec->eh ? SHT_PROGBITS : SHT_NULL,
			    .sh_flags = SHF_ALLOC,
			    .sh_addr = MADE_EH,
			    .sh_offset = EH_OFFSET,
			    .sh_size = spec->eh_size ? spec->eh_size : b->eh_size};
	*s++ = (Elf64_Shdr){.sh_name = name_of(debug),
			    .sh_type = spec->debug ? SHT_PROGBITS : SHT_NULL,
			    .sh_flags = spec->debug_flags,
			    .sh_offset = b->debug_offset,
			    .sh_size = b->debug_size};
	*s++ = (Elf64_Shdr){.sh_name = name_of(".shstrtab"),
			    .sh_type = SHT_STRTAB,
			    .sh_offset = b->names_offset,
			    .sh_size = sizeof(names)};
	b->ehdr->e_shoff = b->shdrs_offset;
	b->ehdr->e_shentsize = sizeof(Elf64_Shdr);
	b->ehdr->e_shnum = 5;
	b->ehdr->e_shstrndx = 4;
}

static size_t round_up(size_t n)
{
	return (n + 15) & ~(size_t)15;
}

uint8_t *made_image(const struct made_image *spec, size_t *size)
{
	struct builder b = {.spec = spec};

	b.eh_size = spec->eh ? spec->eh->cnt : 0;
	b.debug_size = spec->debug ? spec->debug->cnt : 0;
	b.debug_offset = round_up(EH_OFFSET + b.eh_size);
	b.names_offset = b.debug_offset + round_up(b.debug_size);
	b.shdrs_offset = b.names_offset + round_up(sizeof(names));
	b.size = b.shdrs_offset + 5 * sizeof(Elf64_Shdr);
	b.bytes = need(calloc(1, b.size));
	b.ehdr = (Elf64_Ehdr *)b.bytes;
	*b.ehdr = (Elf64_Ehdr){
		.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
			    EV_CURRENT},
		.e_type = ET_EXEC,
		.e_machine = EM_X86_64,
		.e_version = EV_CURRENT,
		.e_ehsize = sizeof(Elf64_Ehdr),
	};
	put_segments(&b);
	put_hdr(&b);
	if (b.eh_size)
		memcpy(b.bytes + EH_OFFSET, spec->eh->bytes, b.eh_size);
	if (b.debug_size)
		memcpy(b.bytes + b.debug_offset, spec->debug->bytes, b.debug_size);
	memcpy(b.bytes + b.names_offset, names, sizeof(names));
	if (!spec->without_sections)
		put_sections(&b);
	*size = b.size;
	return b.bytes;
}

int made_compile(const struct made_image *spec, struct vp_rows **out)
{
	size_t size;
	uint8_t *image = made_image(spec, &size);
	int ret = vp_rows_compile_memory(out, image, size);

	free(image);
	return ret;
}

/* ---- rows as text --------------------------------------------------------------------------- */

static const char reg_names[17][4] = {"rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp", "r8",
				      "r9",  "r10", "r11", "r12", "r13", "r14", "r15", "ra"};
static const char slot_names[VP_SAVED_CNT][4] = {"rbp", "rbx", "r12", "r13", "r14", "r15", "ra"};

static void print_cfa(FILE *f, const struct vp_rule *r)
{
	switch (r->cfa) {
	case VP_CFA_NONE:
		fputs(" none", f);
		break;
	case VP_CFA_END:
		fputs(" end", f);
		break;
	case VP_CFA_DEREF:
		fprintf(f, " *(%s%+d)%+d", reg_names[r->reg], r->cfa_off, r->cfa_add);
		break;
	case VP_CFA_PLT:
		fprintf(f, " plt(%s%+d,%d)", reg_names[r->reg], r->cfa_off, r->cfa_add);
		break;
	default:
		fprintf(f, " %s%+d", reg_names[r->reg], r->cfa_off);
	}
}

static void print_slot(FILE *f, const struct vp_rule *r, int slot)
{
	int flag = slot == VP_SAVED_RA ? VP_RULE_F_RA_BASE : VP_RULE_F_SAVED_BASE;

	if (slot == VP_SAVED_RA && (r->flags & VP_RULE_F_RA_REG))
		fprintf(f, " ra=%s", reg_names[r->ra_reg]);
	else if (r->saved[slot] == VP_SAVED_LOST)
		fprintf(f, " %s=lost", slot_names[slot]);
	else if (r->saved[slot] != VP_SAVED_SAME)
		fprintf(f, " %s=%s%+d", slot_names[slot], r->flags & flag ? "b" : "c",
			r->saved[slot] * 8);
}

char *made_rows_text(const struct vp_rows *rows)
{
	char *text;
	size_t size;
	FILE *f = need(open_memstream(&text, &size));

	for (uint32_t i = 0; i < rows->cnt; i++) {
		const struct vp_rule *r = &rows->rules[rows->rule[i]];

		fprintf(f, "%" PRIx64 ":", rows->base + rows->key[i] - MADE_TEXT_OFFSET);
		print_cfa(f, r);
		for (int slot = 0; r->cfa && r->cfa != VP_CFA_END && slot < VP_SAVED_CNT; slot++)
			print_slot(f, r, slot);
		fputs(r->flags & VP_RULE_F_SIGNAL ? " signal\n" : "\n", f);
	}
	fclose(f);
	return text;
}
