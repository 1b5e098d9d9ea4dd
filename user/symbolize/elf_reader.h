/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Reading an ELF file that its owner may be hostile with or change under our hands: only
 * pread, never mmap (a truncated file would be SIGBUS), every size checked against the file
 * and against a cap, sections found by type where a type says what they are.
 */
#ifndef VP_ELF_READER_H
#define VP_ELF_READER_H

#include <gelf.h>
#include <stddef.h>
#include <stdint.h>

/*
 * An executable PT_LOAD: the only way from file offsets to link-time addresses and back. Of a file
 * that is not linked: its section of code.
 */
struct elf_segment {
	uint64_t offset;
	uint64_t vaddr;
	uint64_t filesz;
};

struct elf_file {
	Elf *elf;
	int fd;		   /* borrowed; -1: image */
	const char *image; /* borrowed */
	uint64_t size;	   /* of the file, bytes */
	int is_64bit;
	struct elf_segment *exec; /* owned, in file order */
	size_t exec_cnt;
	size_t phdr_cnt;
	size_t section_cnt; /* 0: no (usable) section headers, which is legal */
	/*
	 * Of a file that is yet to be linked (an .o, a kernel module): the section of code that
	 * addresses are in, .text or if that has nothing the first that has. 0: the file is linked, or
	 * has no code.
	 */
	size_t code_section;
	int is_linked;
};

/*
 * fd is borrowed and must stay open until elf_file_close; a memory image likewise. 0,
 * -ENOEXEC (not ELF, not of this machine's byte order, damaged), -EFBIG, -ENOMEM.
 */
int elf_file_open(struct elf_file **out, int fd);
int elf_file_open_memory(struct elf_file **out, const void *image, size_t size);
void elf_file_close(struct elf_file *f); /* NULL is fine */

/*
 * Index of the first section of a type (SHT_SYMTAB, …), its header in *shdr; 0: none.
 */
size_t elf_file_find_section(const struct elf_file *f, uint32_t type, GElf_Shdr *shdr);
int elf_file_section(const struct elf_file *f, size_t index, GElf_Shdr *shdr);

/* A section that only its name tells. */
struct elf_named {
	const char *name;
	size_t index; /* 0: the file has none of that name */
	GElf_Shdr shdr;
};

/* Finds the first section of each name, all in one pass. */
void elf_file_find_named(const struct elf_file *f, struct elf_named *wanted, size_t cnt);

/*
 * A section's bytes and one NUL more, as they are in the file; the caller frees them. NULL and
 * *err: -ENOENT (no bytes in the file, compressed, or more than max), -ENOMEM, -ENOEXEC.
 */
void *elf_file_section_bytes(const struct elf_file *f, const GElf_Shdr *shdr, uint64_t max,
			     int *err);

/*
 * Reads n bytes at a file offset into buf. -ENOEXEC if they do not all lie inside the file,
 * also when it has shrunk since it was opened. Into a small buffer used again and again
 * this is five times faster than asking libelf, which allocates a section as a whole.
 */
int elf_file_read(const struct elf_file *f, uint64_t offset, void *buf, size_t n);

/*
 * The GNU build id (note of owner "GNU", type 3) from a PT_NOTE or SHT_NOTE. Bytes written
 * to id; 0 if there is none or it is longer than max, as the kernel's reader has it.
 */
size_t elf_file_build_id(const struct elf_file *f, uint8_t *id, size_t max);

/*
 * Segments map in whole pages, so an offset in a segment's first or last page that no byte
 * of it covers is still executable memory.
 */
int elf_segments_cover(const struct elf_segment *s, size_t cnt, uint64_t offset);

/* Link-time address to file offset. 0 or -ENOENT: in no executable segment's file part. */
int elf_segments_offset(const struct elf_segment *s, size_t cnt, uint64_t vaddr, uint64_t *offset);

/* And back. Also of the rest of a segment's first and last page, as elf_segments_cover. */
int elf_segments_vaddr(const struct elf_segment *s, size_t cnt, uint64_t offset, uint64_t *vaddr);

#endif
