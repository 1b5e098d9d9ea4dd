/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cfi_reader.h"
#include "cfi_program.h"

#include "../symbolize/elf_inflate.h"

#include <dwarf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The longest name that is looked for is ".zdebug_frame". */
#define NAME_MAX_BYTES 32

/* Version, three encodings, eh_frame_ptr; the table behind it is for those in a hurry. */
#define HDR_FIXED_BYTES	  4
#define HDR_POINTER_BYTES 16

static bool is_inside(const struct elf_file *f, uint64_t offset, uint64_t size)
{
	return offset <= f->size && size <= f->size - offset;
}

static int read_range(const struct elf_file *f, uint64_t offset, uint64_t size, uint8_t **out)
{
	int err;

	*out = malloc(size);
	if (!*out)
		return -ENOMEM;
	err = elf_file_read(f, offset, *out, size);
	if (err) {
		free(*out);
		*out = NULL;
		return VP_ROWS_NOT_ELF; /* it has shrunk meanwhile */
	}
	return 0;
}

/* Does a section have that name? Read from the file: libelf would load all names of all. */
static bool has_name(const struct elf_file *f, const GElf_Shdr *names, const GElf_Shdr *s,
		     const char *name)
{
	char buf[NAME_MAX_BYTES];
	size_t n = strlen(name) + 1;

	if (n > sizeof(buf) || s->sh_name > names->sh_size || n > names->sh_size - s->sh_name)
		return false;
	if (names->sh_offset > UINT64_MAX - s->sh_name)
		return false;
	return !elf_file_read(f, names->sh_offset + s->sh_name, buf, n) && !memcmp(buf, name, n);
}

static bool is_candidate(const struct elf_file *f, const GElf_Shdr *s)
{
	return (s->sh_type == SHT_PROGBITS || s->sh_type == SHT_X86_64_UNWIND) && s->sh_size &&
	       is_inside(f, s->sh_offset, s->sh_size);
}

static bool find_by_name(const struct elf_file *f, const char *name, GElf_Shdr *out)
{
	GElf_Shdr names;
	size_t index;

	if (elf_getshdrstrndx(f->elf, &index) || elf_file_section(f, index, &names))
		return false;
	for (size_t i = 1; i < f->section_cnt; i++) {
		if (elf_file_section(f, i, out))
			return false; /* one unreadable header: so are the others */
		if (is_candidate(f, out) && has_name(f, &names, out, name))
			return true;
	}
	return false;
}

static bool find_by_address(const struct elf_file *f, uint64_t vaddr, uint64_t offset,
			    GElf_Shdr *out)
{
	for (size_t i = 1; i < f->section_cnt; i++) {
		if (elf_file_section(f, i, out))
			return false;
		if (is_candidate(f, out) && out->sh_addr == vaddr && out->sh_offset == offset)
			return true;
	}
	return false;
}

static bool find_phdr(const struct elf_file *f, uint32_t type, GElf_Phdr *p)
{
	for (size_t i = 0; i < f->phdr_cnt; i++) {
		if (gelf_getphdr(f->elf, (int)i, p) && p->p_type == type)
			return true;
	}
	return false;
}

/* Link-time address to file offset; *end: of the file's part of that segment. */
static bool find_offset(const struct elf_file *f, uint64_t vaddr, uint64_t *offset, uint64_t *end)
{
	for (size_t i = 0; i < f->phdr_cnt; i++) {
		GElf_Phdr p;

		if (!gelf_getphdr(f->elf, (int)i, &p) || p.p_type != PT_LOAD || vaddr < p.p_vaddr ||
		    vaddr - p.p_vaddr >= p.p_filesz || !is_inside(f, p.p_offset, p.p_filesz))
			continue;
		*offset = vaddr - p.p_vaddr + p.p_offset;
		*end = p.p_offset + p.p_filesz;
		return true;
	}
	return false;
}

/* What .eh_frame_hdr points to (LSB 4.1, 10.6.2). */
static bool read_hdr(const struct elf_file *f, uint64_t *vaddr)
{
	uint8_t buf[HDR_FIXED_BYTES + HDR_POINTER_BYTES] = {0};
	struct cfi_pointers pointers = {.bytes = buf};
	struct cfi_cursor c = {.p = buf + HDR_FIXED_BYTES};
	GElf_Phdr hdr;
	uint64_t size;

	if (!find_phdr(f, PT_GNU_EH_FRAME, &hdr) || !is_inside(f, hdr.p_offset, hdr.p_filesz))
		return false;
	size = hdr.p_filesz < sizeof(buf) ? hdr.p_filesz : sizeof(buf);
	if (size <= HDR_FIXED_BYTES || elf_file_read(f, hdr.p_offset, buf, size) || buf[0] != 1)
		return false;
	c.end = buf + size;
	pointers.vaddr = hdr.p_vaddr;
	if ((buf[1] & 0xf0) != DW_EH_PE_datarel)
		return !cfi_pointer(&c, buf[1], &pointers, vaddr);
	if (cfi_encoded(&c, buf[1], vaddr))
		return false;
	*vaddr += hdr.p_vaddr; /* data: this header */
	return true;
}

/* Where, and how large at most. */
struct place {
	uint64_t vaddr, offset, size;
	bool is_open;
};

/*
 * Programs unwind by the program header, so it is believed first; of the section headers, which
 * may be missing, only the size is taken then.
 */
static bool place_eh_frame(const struct elf_file *f, struct place *out)
{
	uint64_t vaddr, offset, end;
	GElf_Shdr s;

	if (read_hdr(f, &vaddr) && find_offset(f, vaddr, &offset, &end)) {
		if (find_by_address(f, vaddr, offset, &s))
			*out = (struct place){vaddr, offset, s.sh_size, false};
		else
			*out = (struct place){vaddr, offset, end - offset, true};
		return true;
	}
	if (!find_by_name(f, ".eh_frame", &s) || (s.sh_flags & SHF_COMPRESSED))
		return false;
	*out = (struct place){s.sh_addr, s.sh_offset, s.sh_size, false};
	return true;
}

int cfi_read_eh_frame(const struct elf_file *f, struct cfi_section *s)
{
	struct place p;

	*s = (struct cfi_section){.is_eh = true};
	if (!place_eh_frame(f, &p))
		return 0;
	if (p.is_open && p.size > VP_ROWS_MAX_CFI_BYTES)
		p.size = VP_ROWS_MAX_CFI_BYTES;
	if (p.size > VP_ROWS_MAX_CFI_BYTES)
		return VP_ROWS_TOO_LARGE;
	s->size = p.size;
	s->vaddr = p.vaddr;
	s->is_open = p.is_open;
	return read_range(f, p.offset, p.size, &s->bytes);
}

static int unpack(struct cfi_section *s, enum elf_inflate_header header)
{
	uint8_t *packed = s->bytes;
	int err;

	s->bytes = NULL;
	err = elf_inflate(packed, s->size, header, VP_ROWS_MAX_CFI_BYTES, &s->bytes, &s->size);
	free(packed);
	if (err == -EFBIG)
		return VP_ROWS_TOO_LARGE;
	return err == -ENOEXEC ? VP_ROWS_BAD_CFI : err;
}

int cfi_read_debug_frame(const struct elf_file *f, struct cfi_section *s)
{
	enum elf_inflate_header header = f->is_64bit ? ELF_INFLATE_64 : ELF_INFLATE_32;
	GElf_Shdr shdr;
	int ret;

	*s = (struct cfi_section){0};
	/* Go's keeps frame pointers, and what it says of the runtime's own stacks leads astray. */
	if (find_by_name(f, ".go.buildinfo", &shdr))
		return 0;
	if (!find_by_name(f, ".debug_frame", &shdr)) {
		if (!find_by_name(f, ".zdebug_frame", &shdr))
			return 0;
		header = ELF_INFLATE_GNU;
	}
	if (shdr.sh_size > VP_ROWS_MAX_CFI_BYTES)
		return VP_ROWS_TOO_LARGE;
	s->size = shdr.sh_size;
	ret = read_range(f, shdr.sh_offset, shdr.sh_size, &s->bytes);
	if (!ret && (header == ELF_INFLATE_GNU || (shdr.sh_flags & SHF_COMPRESSED)))
		ret = unpack(s, header);
	return ret;
}

void cfi_section_free(struct cfi_section *s)
{
	free(s->bytes);
	s->bytes = NULL;
}
