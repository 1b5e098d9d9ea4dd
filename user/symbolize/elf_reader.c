/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "elf_reader.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Larger than any real file by far; what is read of it is capped on its own. */
#define FILE_MAX_BYTES		(1ULL << 38)
#define PHDR_MAX_CNT		1024
#define SECTION_MAX_CNT		(1U << 17)
#define NOTES_MAX_BYTES		(1U << 20)
#define SEGMENT_PAGE_SIZE	4096ULL
/* Names of sections: a few hundred bytes, unless every function has a section. */
#define SECTION_NAMES_MAX_BYTES (16U << 20)

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define NATIVE_DATA ELFDATA2LSB
#else
#define NATIVE_DATA ELFDATA2MSB
#endif

static pthread_once_t libelf_once = PTHREAD_ONCE_INIT;

static void libelf_init(void)
{
	elf_version(EV_CURRENT);
}

static int check_header(struct elf_file *f)
{
	GElf_Ehdr ehdr;

	if (elf_kind(f->elf) != ELF_K_ELF || !gelf_getehdr(f->elf, &ehdr))
		return -ENOEXEC;
	if (ehdr.e_ident[EI_DATA] != NATIVE_DATA)
		return -ENOEXEC;
	f->is_64bit = ehdr.e_ident[EI_CLASS] == ELFCLASS64;
	f->is_linked = ehdr.e_type != ET_REL;
	if (elf_getphdrnum(f->elf, &f->phdr_cnt))
		f->phdr_cnt = 0;
	if (f->phdr_cnt > PHDR_MAX_CNT)
		return -ENOEXEC;
	/* A file cut behind its segments still has its build id: headers are optional. */
	if (elf_getshdrnum(f->elf, &f->section_cnt))
		f->section_cnt = 0;
	if (f->section_cnt > SECTION_MAX_CNT)
		f->section_cnt = 0;
	return 0;
}

static int is_exec_load(const struct elf_file *f, const GElf_Phdr *p)
{
	if (p->p_type != PT_LOAD || !(p->p_flags & PF_X) || !p->p_filesz)
		return 0;
	return p->p_offset < f->size && p->p_filesz <= f->size - p->p_offset &&
	       p->p_filesz <= UINT64_MAX - p->p_vaddr;
}

static int read_segments(struct elf_file *f)
{
	if (!f->phdr_cnt)
		return 0;
	f->exec = calloc(f->phdr_cnt, sizeof(*f->exec));
	if (!f->exec)
		return -ENOMEM;
	for (size_t i = 0; i < f->phdr_cnt; i++) {
		GElf_Phdr p;

		if (!gelf_getphdr(f->elf, (int)i, &p) || !is_exec_load(f, &p))
			continue;
		f->exec[f->exec_cnt++] = (struct elf_segment){
			.offset = p.p_offset,
			.vaddr = p.p_vaddr,
			.filesz = p.p_filesz,
		};
	}
	return 0;
}

static int is_code(const GElf_Shdr *s)
{
	return s->sh_size && (s->sh_flags & SHF_ALLOC) && (s->sh_flags & SHF_EXECINSTR);
}

/* All sections of such a file begin at 0: an address can be in one of them only. */
static int choose_code_section(struct elf_file *f)
{
	struct elf_named text = {.name = ".text"};
	GElf_Shdr s;

	elf_file_find_named(f, &text, 1);
	s = text.shdr;
	f->code_section = text.index && is_code(&s) ? text.index : 0;
	for (size_t i = 1; !f->code_section && i < f->section_cnt; i++) {
		if (elf_file_section(f, i, &s))
			break;
		if (is_code(&s))
			f->code_section = i;
	}
	/* A debug file has the code's size alone. */
	if (!f->code_section || s.sh_type == SHT_NOBITS || s.sh_offset > f->size ||
	    s.sh_size > f->size - s.sh_offset)
		return 0;
	f->exec = malloc(sizeof(*f->exec));
	if (!f->exec)
		return -ENOMEM;
	f->exec[f->exec_cnt++] = (struct elf_segment){.offset = s.sh_offset, .filesz = s.sh_size};
	return 0;
}

/* Takes start.elf over. */
static int open_elf(struct elf_file **out, struct elf_file start)
{
	if (!start.elf)
		return -ENOEXEC;

	struct elf_file *f = malloc(sizeof(*f));
	if (!f) {
		elf_end(start.elf);
		return -ENOMEM;
	}
	*f = start;

	int err = check_header(f);
	if (!err)
		err = f->is_linked ? read_segments(f) : choose_code_section(f);
	if (err) {
		elf_file_close(f);
		return err;
	}
	*out = f;
	return 0;
}

int elf_file_open(struct elf_file **out, int fd)
{
	struct stat st;

	if (fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -ENOEXEC;
	if ((uint64_t)st.st_size > FILE_MAX_BYTES)
		return -EFBIG;
	pthread_once(&libelf_once, libelf_init);
	return open_elf(out, (struct elf_file){
				     .elf = elf_begin(fd, ELF_C_READ, NULL),
				     .fd = fd,
				     .size = (uint64_t)st.st_size,
			     });
}

int elf_file_open_memory(struct elf_file **out, const void *image, size_t size)
{
	pthread_once(&libelf_once, libelf_init);
	/* libelf wants char * for its writing modes; reading leaves the image alone. */
	return open_elf(out, (struct elf_file){
				     .elf = elf_memory((char *)(uintptr_t)image, size),
				     .fd = -1,
				     .image = image,
				     .size = size,
			     });
}

void elf_file_close(struct elf_file *f)
{
	if (!f)
		return;
	elf_end(f->elf);
	free(f->exec);
	free(f);
}

int elf_file_section(const struct elf_file *f, size_t index, GElf_Shdr *shdr)
{
	if (!index || index >= f->section_cnt)
		return -ENOENT;
	return gelf_getshdr(elf_getscn(f->elf, index), shdr) ? 0 : -ENOENT;
}

size_t elf_file_find_section(const struct elf_file *f, uint32_t type, GElf_Shdr *shdr)
{
	for (size_t i = 1; i < f->section_cnt; i++) {
		if (elf_file_section(f, i, shdr))
			return 0; /* one unreadable header: so are the others */
		if (shdr->sh_type == type)
			return i;
	}
	return 0;
}

int elf_file_read(const struct elf_file *f, uint64_t offset, void *buf, size_t n)
{
	if (offset > f->size || n > f->size - offset)
		return -ENOEXEC;
	if (f->image) {
		memcpy(buf, f->image + offset, n);
		return 0;
	}
	for (size_t done = 0; done < n;) {
		ssize_t got = pread(f->fd, (char *)buf + done, n - done, (off_t)(offset + done));

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return -ENOEXEC;
		done += (size_t)got;
	}
	return 0;
}

void *elf_file_section_bytes(const struct elf_file *f, const GElf_Shdr *shdr, uint64_t max,
			     int *err)
{
	*err = -ENOENT;
	if (shdr->sh_type == SHT_NOBITS || shdr->sh_flags & SHF_COMPRESSED || shdr->sh_size > max)
		return NULL;
	*err = -ENOEXEC;
	if (shdr->sh_offset > f->size || shdr->sh_size > f->size - shdr->sh_offset)
		return NULL;

	char *bytes = malloc(shdr->sh_size + 1);
	*err = bytes ? elf_file_read(f, shdr->sh_offset, bytes, shdr->sh_size) : -ENOMEM;
	if (*err) {
		free(bytes);
		return NULL;
	}
	bytes[shdr->sh_size] = '\0';
	return bytes;
}

static void match_named(struct elf_named *wanted, size_t cnt, const char *name, size_t index,
			const GElf_Shdr *shdr)
{
	for (size_t i = 0; i < cnt; i++) {
		if (!wanted[i].index && !strcmp(wanted[i].name, name)) {
			wanted[i].index = index;
			wanted[i].shdr = *shdr;
		}
	}
}

void elf_file_find_named(const struct elf_file *f, struct elf_named *wanted, size_t cnt)
{
	GElf_Shdr s, strings;
	size_t strings_index;
	int err;

	for (size_t i = 0; i < cnt; i++)
		wanted[i].index = 0;
	if (elf_getshdrstrndx(f->elf, &strings_index) ||
	    elf_file_section(f, strings_index, &strings))
		return;

	char *names = elf_file_section_bytes(f, &strings, SECTION_NAMES_MAX_BYTES, &err);
	if (!names)
		return;
	for (size_t i = 1; i < f->section_cnt && !elf_file_section(f, i, &s); i++) {
		if (s.sh_name < strings.sh_size)
			match_named(wanted, cnt, names + s.sh_name, i, &s);
	}
	free(names);
}

static size_t build_id_in(Elf_Data *notes, uint8_t *id, size_t max)
{
	GElf_Nhdr note;
	size_t name, desc, next;

	for (size_t pos = 0; (next = gelf_getnote(notes, pos, &note, &name, &desc)); pos = next) {
		const char *bytes = notes->d_buf;

		if (note.n_type != NT_GNU_BUILD_ID || note.n_namesz != sizeof("GNU") ||
		    memcmp(bytes + name, "GNU", sizeof("GNU")) != 0)
			continue;
		if (!note.n_descsz || note.n_descsz > max)
			continue;
		memcpy(id, bytes + desc, note.n_descsz);
		return note.n_descsz;
	}
	return 0;
}

/* *budget: note bytes still to be read; a thousand segments may all claim to be notes. */
static size_t build_id_at(const struct elf_file *f, uint64_t offset, uint64_t size, uint64_t align,
			  uint64_t *budget, uint8_t *id, size_t max)
{
	if (!size || size > *budget || offset > f->size || size > f->size - offset)
		return 0;
	*budget -= size;

	Elf_Data *d = elf_getdata_rawchunk(f->elf, (int64_t)offset, size,
					   align == 8 ? ELF_T_NHDR8 : ELF_T_NHDR);
	return d ? build_id_in(d, id, max) : 0;
}

size_t elf_file_build_id(const struct elf_file *f, uint8_t *id, size_t max)
{
	uint64_t budget = NOTES_MAX_BYTES;

	for (size_t i = 0; i < f->phdr_cnt; i++) {
		GElf_Phdr p;

		if (!gelf_getphdr(f->elf, (int)i, &p) || p.p_type != PT_NOTE)
			continue;
		size_t n = build_id_at(f, p.p_offset, p.p_filesz, p.p_align, &budget, id, max);
		if (n)
			return n;
	}
	for (size_t i = 1; i < f->section_cnt; i++) {
		GElf_Shdr s;

		if (elf_file_section(f, i, &s))
			return 0;
		if (s.sh_type != SHT_NOTE)
			continue;
		size_t n = build_id_at(f, s.sh_offset, s.sh_size, s.sh_addralign, &budget, id, max);
		if (n)
			return n;
	}
	return 0;
}

int elf_segments_cover(const struct elf_segment *s, size_t cnt, uint64_t offset)
{
	const uint64_t mask = SEGMENT_PAGE_SIZE - 1;

	for (size_t i = 0; i < cnt; i++) {
		uint64_t end = (s[i].offset + s[i].filesz + mask) & ~mask;

		if (offset >= (s[i].offset & ~mask) && offset < end)
			return 1;
	}
	return 0;
}

int elf_segments_offset(const struct elf_segment *s, size_t cnt, uint64_t vaddr, uint64_t *offset)
{
	for (size_t i = 0; i < cnt; i++) {
		if (vaddr >= s[i].vaddr && vaddr - s[i].vaddr < s[i].filesz) {
			*offset = vaddr - s[i].vaddr + s[i].offset;
			return 0;
		}
	}
	return -ENOENT;
}

int elf_segments_vaddr(const struct elf_segment *s, size_t cnt, uint64_t offset, uint64_t *vaddr)
{
	int err = -ENOENT;

	for (size_t i = 0; i < cnt; i++) {
		if (!elf_segments_cover(&s[i], 1, offset))
			continue;
		*vaddr = offset - s[i].offset + s[i].vaddr;
		err = 0;
		/* Pages of two segments may be one in the file: its own comes before its page's. */
		if (offset >= s[i].offset && offset - s[i].offset < s[i].filesz)
			break;
	}
	return err;
}
