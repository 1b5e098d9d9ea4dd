// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * mangled DIR [CPU_SECONDS [SEED]]: maps damaged copies of its own ELF file, written to DIR
 * (mangled-NAME), and runs hostile_spin in each of them by turns: main -> run_copies ->
 * (copy) hostile_spin. The page with hostile_spin stays whole and so does the file offset of
 * it; headers, tables and strings around it do not. "intact" is the control.
 */
#include "workload.h"

#include <elf.h>
#include <linux/limits.h>

typedef void spin_fn(const volatile sig_atomic_t *stop, long rounds);

struct image {
	unsigned char *bytes;
	size_t size;
	size_t spin_at; /* file offset of hostile_spin */
};

struct variant {
	const char *name;
	void (*damage)(struct image *img);
};

static uint64_t seed = 1;
static volatile unsigned long counter;

/* Position independent and without data of its own, so that a copy of it runs anywhere. */
__attribute__((aligned(4096))) void hostile_spin(const volatile sig_atomic_t *stop, long rounds)
{
	WL_KEEP_FRAME();

	for (long i = 0; i < rounds && !*stop; i++)
		__asm__ volatile("");
}

static uint64_t next_random(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

static Elf64_Ehdr *ehdr(struct image *img)
{
	return (Elf64_Ehdr *)img->bytes;
}

static Elf64_Shdr *section(struct image *img, const char *name)
{
	Elf64_Shdr *sh = (Elf64_Shdr *)(img->bytes + ehdr(img)->e_shoff);
	const char *names = (const char *)img->bytes + sh[ehdr(img)->e_shstrndx].sh_offset;

	for (int i = 0; i < ehdr(img)->e_shnum; i++)
		if (!strcmp(names + sh[i].sh_name, name))
			return &sh[i];
	errno = 0;
	wl_die("no section %s", name);
}

static Elf64_Phdr *segment(struct image *img, uint32_t type)
{
	Elf64_Phdr *ph = (Elf64_Phdr *)(img->bytes + ehdr(img)->e_phoff);

	for (int i = 0; i < ehdr(img)->e_phnum; i++)
		if (ph[i].p_type == type)
			return &ph[i];
	errno = 0;
	wl_die("no segment %x", type);
}

static void fill_random(struct image *img, size_t at, size_t bytes)
{
	for (size_t i = at; i < at + bytes && i < img->size; i++)
		img->bytes[i] = (unsigned char)next_random();
}

static void random_section(struct image *img, const char *name)
{
	Elf64_Shdr *sh = section(img, name);

	fill_random(img, sh->sh_offset, sh->sh_size);
}

static void intact(struct image *img)
{
	(void)img;
}

static void truncated(struct image *img)
{
	img->size = (img->spin_at | 4095) + 1;
}

static void no_magic(struct image *img)
{
	memset(img->bytes, 0, EI_NIDENT);
}

static void wrong_class(struct image *img)
{
	img->bytes[EI_CLASS] = ELFCLASS32;
}

static void wrong_endian(struct image *img)
{
	img->bytes[EI_DATA] = ELFDATA2MSB;
}

static void shoff_huge(struct image *img)
{
	ehdr(img)->e_shoff = UINT64_MAX - 63;
}

static void shoff_odd(struct image *img)
{
	ehdr(img)->e_shoff = img->size - 7;
}

static void shnum_huge(struct image *img)
{
	ehdr(img)->e_shnum = 0xfeff;
	ehdr(img)->e_shentsize = 1;
}

static void shnum_extended(struct image *img)
{
	Elf64_Shdr *sh = (Elf64_Shdr *)(img->bytes + ehdr(img)->e_shoff);

	ehdr(img)->e_shnum = 0;
	ehdr(img)->e_shstrndx = SHN_XINDEX;
	sh[0].sh_size = UINT64_MAX / 2;
	sh[0].sh_link = UINT32_MAX;
}

static void phnum_huge(struct image *img)
{
	ehdr(img)->e_phnum = PN_XNUM;
	ehdr(img)->e_phentsize = 0;
}

static void load_wild(struct image *img)
{
	Elf64_Phdr *ph = (Elf64_Phdr *)(img->bytes + ehdr(img)->e_phoff);

	for (int i = 0; i < ehdr(img)->e_phnum; i++) {
		ph[i].p_vaddr = next_random();
		ph[i].p_offset ^= next_random() & 0xffff000;
		ph[i].p_filesz = ph[i].p_memsz = UINT64_MAX;
		ph[i].p_align = 3;
	}
}

static void load_overlap(struct image *img)
{
	Elf64_Phdr *ph = (Elf64_Phdr *)(img->bytes + ehdr(img)->e_phoff);

	for (int i = 0; i < ehdr(img)->e_phnum; i++) {
		ph[i].p_type = PT_LOAD;
		ph[i].p_offset = 0;
		ph[i].p_vaddr = 0;
		ph[i].p_filesz = ph[i].p_memsz = img->size;
	}
}

static void symtab_huge(struct image *img)
{
	section(img, ".symtab")->sh_size = UINT64_MAX / 2;
}

static void symtab_loop(struct image *img)
{
	Elf64_Shdr *sh = section(img, ".symtab");

	sh->sh_link = (uint32_t)(sh - (Elf64_Shdr *)(img->bytes + ehdr(img)->e_shoff));
	sh->sh_entsize = 0;
}

static void symtab_wild(struct image *img)
{
	Elf64_Shdr *sh = section(img, ".symtab");
	Elf64_Sym *sym = (Elf64_Sym *)(img->bytes + sh->sh_offset);

	for (size_t i = 0; i < sh->sh_size / sizeof(*sym); i++) {
		sym[i].st_name = (uint32_t)next_random();
		sym[i].st_size = UINT64_MAX - i;
	}
}

static void symtab_random(struct image *img)
{
	random_section(img, ".symtab");
	random_section(img, ".dynsym");
}

static void strtab_open(struct image *img)
{
	Elf64_Shdr *sh = section(img, ".strtab");

	memset(img->bytes + sh->sh_offset, ';', sh->sh_size);
	sh = section(img, ".shstrtab");
	memset(img->bytes + sh->sh_offset, 'A', sh->sh_size);
}

static void strtab_control(struct image *img)
{
	Elf64_Shdr *sh = section(img, ".strtab");

	for (size_t i = 0; i < sh->sh_size; i++)
		if (img->bytes[sh->sh_offset + i])
			img->bytes[sh->sh_offset + i] = (unsigned char)"\n;\x1b<\xff\""[i % 6];
}

static void compressed_bomb(struct image *img)
{
	const char *const names[] = {".debug_info", ".debug_line", ".debug_abbrev", ".symtab"};

	for (int i = 0; i < 4; i++) {
		Elf64_Shdr *sh = section(img, names[i]);
		Elf64_Chdr *ch = (Elf64_Chdr *)(img->bytes + sh->sh_offset);

		sh->sh_flags |= SHF_COMPRESSED;
		ch->ch_type = ELFCOMPRESS_ZLIB;
		ch->ch_size = i % 2 ? UINT64_MAX / 4 : (uint64_t)1 << 40;
		ch->ch_addralign = 1;
	}
}

static void note_huge(struct image *img)
{
	Elf64_Phdr *ph = (Elf64_Phdr *)(img->bytes + ehdr(img)->e_phoff);

	for (int i = 0; i < ehdr(img)->e_phnum; i++)
		if (ph[i].p_type == PT_NOTE) {
			Elf64_Nhdr *nh = (Elf64_Nhdr *)(img->bytes + ph[i].p_offset);

			nh->n_namesz = UINT32_MAX;
			nh->n_descsz = UINT32_MAX - 3;
		}
}

static void build_id_long(struct image *img)
{
	Elf64_Shdr *sh = section(img, ".note.gnu.build-id");

	((Elf64_Nhdr *)(img->bytes + sh->sh_offset))->n_descsz = 0x10000;
}

static void debuglink_escape(struct image *img)
{
	const char *path = "../../../../../../etc/passwd";
	Elf64_Shdr *sh = section(img, ".comment");
	Elf64_Shdr *str = section(img, ".shstrtab");

	memcpy(img->bytes + sh->sh_offset, path, strlen(path) + 1);
	memcpy(img->bytes + str->sh_offset + str->sh_size - 16, ".gnu_debuglink", 15);
	sh->sh_name = (uint32_t)str->sh_size - 16;
}

static void eh_frame_random(struct image *img)
{
	random_section(img, ".eh_frame");
	random_section(img, ".eh_frame_hdr");
}

static void dwarf_random(struct image *img)
{
	random_section(img, ".debug_info");
	random_section(img, ".debug_abbrev");
	random_section(img, ".debug_line");
	random_section(img, ".debug_str");
	random_section(img, ".debug_aranges");
}

static void dwarf_nested(struct image *img)
{
	Elf64_Shdr *sh = section(img, ".debug_info");

	/* past the unit's header: one abbreviation code without an end */
	memset(img->bytes + sh->sh_offset + 12, 1, sh->sh_size - 12);
}

static void dynamic_random(struct image *img)
{
	Elf64_Phdr *ph = segment(img, PT_DYNAMIC);

	fill_random(img, ph->p_offset, ph->p_filesz);
}

static void headers_random(struct image *img)
{
	fill_random(img, EI_NIDENT, sizeof(Elf64_Ehdr) - EI_NIDENT);
}

static void sections_random(struct image *img)
{
	fill_random(img, ehdr(img)->e_shoff, (size_t)ehdr(img)->e_shnum * sizeof(Elf64_Shdr));
}

/* A few bytes changed anywhere but in the page that runs. */
static void few_bytes(struct image *img)
{
	for (int i = 0; i < 400; i++) {
		size_t at = next_random() % img->size;

		if (at / 4096 != img->spin_at / 4096)
			img->bytes[at] = (unsigned char)next_random();
	}
}

#define V(f)                                                                                       \
	{                                                                                          \
#f, f                                                                              \
	}
static const struct variant variants[] = {
	V(intact),	   V(truncated),	V(no_magic),	    V(wrong_class),
	V(wrong_endian),   V(shoff_huge),	V(shoff_odd),	    V(shnum_huge),
	V(shnum_extended), V(phnum_huge),	V(load_wild),	    V(load_overlap),
	V(symtab_huge),	   V(symtab_loop),	V(symtab_wild),	    V(symtab_random),
	V(strtab_open),	   V(strtab_control),	V(compressed_bomb), V(note_huge),
	V(build_id_long),  V(debuglink_escape), V(eh_frame_random), V(dwarf_random),
	V(dwarf_nested),   V(dynamic_random),	V(headers_random),  V(sections_random),
	V(few_bytes),
};
#define VARIANT_CNT (sizeof(variants) / sizeof(variants[0]))

static spin_fn *copies[VARIANT_CNT];

static void read_self(struct image *img)
{
	struct stat st;
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	if (fd < 0 || fstat(fd, &st))
		wl_die("open /proc/self/exe");
	img->size = (size_t)st.st_size;
	img->bytes = malloc(img->size);
	if (!img->bytes || read(fd, img->bytes, img->size) != (ssize_t)img->size)
		wl_die("read /proc/self/exe");
	close(fd);
}

/* hostile_spin's file offset, by the text segment that holds it. */
static size_t find_spin(struct image *img)
{
	Elf64_Phdr *ph = (Elf64_Phdr *)(img->bytes + ehdr(img)->e_phoff);
	Elf64_Shdr *sh = section(img, ".symtab");
	Elf64_Sym *sym = (Elf64_Sym *)(img->bytes + sh->sh_offset);
	const char *names = (const char *)img->bytes + section(img, ".strtab")->sh_offset;

	for (size_t i = 0; i < sh->sh_size / sizeof(*sym); i++) {
		if (strcmp(names + sym[i].st_name, "hostile_spin"))
			continue;
		for (int k = 0; k < ehdr(img)->e_phnum; k++)
			if (ph[k].p_type == PT_LOAD && sym[i].st_value >= ph[k].p_vaddr &&
			    sym[i].st_value < ph[k].p_vaddr + ph[k].p_memsz)
				return sym[i].st_value - ph[k].p_vaddr + ph[k].p_offset;
	}
	errno = 0;
	wl_die("hostile_spin not found");
}

static spin_fn *map_copy(const char *dir, const struct variant *v)
{
	struct image img;
	char path[PATH_MAX];
	char *text;
	int fd;

	read_self(&img);
	img.spin_at = find_spin(&img);
	v->damage(&img);
	snprintf(path, sizeof(path), "%s/mangled-%s", dir, v->name);
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);
	if (fd < 0 || write(fd, img.bytes, img.size) != (ssize_t)img.size)
		wl_die("write %s", path);
	text = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd,
		    (off_t)(img.spin_at & ~4095UL));
	if (text == MAP_FAILED)
		wl_die("mmap %s", path);
	close(fd);
	free(img.bytes);
	return (spin_fn *)(text + (img.spin_at & 4095));
}

void run_copies(void)
{
	for (size_t i = 0; i < VARIANT_CNT && !wl_stop; i++)
		copies[i](&wl_stop, 1000000);
	counter++;
}

int main(int argc, char **argv)
{
	wl_die_with_parent();
	seed = (uint64_t)wl_arg(argc, argv, 3, 1) * 0x9e3779b97f4a7c15 + 1;
	for (size_t i = 0; i < VARIANT_CNT; i++)
		copies[i] = map_copy(argc > 1 ? argv[1] : ".", &variants[i]);
	wl_stop_after(wl_arg(argc, argv, 2, 0));
	wl_ready("variants=%zu", VARIANT_CNT);
	while (!wl_stop)
		run_copies();
	return 0;
}
