/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "kernel_debug.h"

#include "../util/array.h"
#include "kernel_module.h"
#include "mapped_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#define NOTES_BYTES_MAX	  65536
#define SYMBOLS_BYTES_MAX (256ULL << 20)

/* The kernel proper, or a module. */
struct image {
	char *name; /* as kallsyms has it: "[kernel]", "[xfs]" */
	uint8_t id[VP_BUILD_ID_MAX];
	size_t id_len;
	char id_text[2 * VP_BUILD_ID_MAX + 1];
	bool searched; /* for debug information */
	int fd;	       /* -1: none */
	struct dwarf_info *dwarf;
	uint64_t moved; /* by so much from where the file has it */
};

struct kernel_debug {
	int root_fd; /* negative: none */
	char *release;
	struct vp_symbolizer *names;
	struct debug_finder *finder;
	bool demangle;
	struct image **image;
	size_t image_cnt, image_cap;
};

/* ---- build ids -------------------------------------------------------------------------------- */

static size_t padded(size_t n)
{
	return (n + 3) & ~(size_t)3;
}

/* Of notes as the kernel has them: of four bytes' alignment, one behind the other. */
static void take_build_id(struct image *m, const char *notes, size_t cnt)
{
	for (size_t at = 0; cnt - at >= sizeof(Elf64_Nhdr);) {
		Elf64_Nhdr note;
		size_t name, desc;

		memcpy(&note, notes + at, sizeof(note));
		name = at + sizeof(note);
		desc = name + padded(note.n_namesz);
		at = desc + padded(note.n_descsz);
		if (desc < name || at < desc || at > cnt)
			return;
		if (note.n_type != NT_GNU_BUILD_ID || note.n_namesz != sizeof("GNU") ||
		    memcmp(notes + name, "GNU", sizeof("GNU")) != 0 ||
		    note.n_descsz > sizeof(m->id))
			continue;
		m->id_len = note.n_descsz;
		memcpy(m->id, notes + desc, m->id_len);
		return;
	}
}

/* Without the brackets; 0: it is no module's name. */
static int bare_name(const struct image *m, char name[NAME_MAX])
{
	size_t len = strlen(m->name);

	if (len < 3 || len - 2 >= NAME_MAX || m->name[0] != '[' || m->name[len - 1] != ']' ||
	    strchr(m->name, '/') || m->name[1] == '.')
		return 0;
	memcpy(name, m->name + 1, len - 2);
	name[len - 2] = '\0';
	return 1;
}

static bool is_kernel(const struct image *m)
{
	return !strcmp(m->name, "[kernel]");
}

static int open_notes(const struct kernel_debug *k, const struct image *m)
{
	char name[NAME_MAX], path[PATH_MAX];

	if (is_kernel(m))
		return mapped_file_open_in(k->root_fd, "/sys/kernel/notes");
	if (!bare_name(m, name))
		return -ENOENT;
	snprintf(path, sizeof(path), "/sys/module/%s/notes/.note.gnu.build-id", name);
	return mapped_file_open_in(k->root_fd, path);
}

static void read_build_id(const struct kernel_debug *k, struct image *m)
{
	int fd = k->root_fd < 0 ? -1 : open_notes(k, m);
	char *notes = malloc(NOTES_BYTES_MAX);
	ssize_t n = 0;

	if (fd >= 0 && notes)
		n = read(fd, notes, NOTES_BYTES_MAX);
	if (n > 0)
		take_build_id(m, notes, (size_t)n);
	for (size_t i = 0; i < m->id_len; i++)
		snprintf(m->id_text + 2 * i, 3, "%02x", m->id[i]);
	if (fd >= 0)
		close(fd);
	free(notes);
}

/* ---- debug information ------------------------------------------------------------------------ */

struct wanted_symbol {
	const char *name;
	uint64_t value;
	bool found;
};

static void find_symbols(const struct elf_file *f, const GElf_Shdr *table, const char *strings,
			 uint64_t strings_size, struct wanted_symbol *wanted, size_t cnt)
{
	Elf_Data *data =
		elf_getdata_rawchunk(f->elf, (int64_t)table->sh_offset, table->sh_size, ELF_T_SYM);
	GElf_Sym sym;

	for (int i = 0; data && gelf_getsym(data, i, &sym); i++) {
		if (sym.st_name >= strings_size || sym.st_shndx == SHN_UNDEF)
			continue;
		for (size_t w = 0; w < cnt; w++) {
			if (strcmp(strings + sym.st_name, wanted[w].name) != 0)
				continue;
			wanted[w].value = sym.st_value;
			wanted[w].found = true;
		}
	}
}

/* Where the file has the kernel's text. 0 or -ENOENT. */
static int text_in(int fd, uint64_t *text)
{
	struct wanted_symbol wanted[] = {{.name = "_text"}, {.name = "_stext"}};
	GElf_Shdr table, names;
	struct elf_file *f;
	char *strings = NULL;
	int err;

	if (elf_file_open(&f, fd))
		return -ENOENT;
	if (elf_file_find_section(f, SHT_SYMTAB, &table) && table.sh_size < SYMBOLS_BYTES_MAX &&
	    table.sh_offset <= f->size && table.sh_size <= f->size - table.sh_offset &&
	    !elf_file_section(f, table.sh_link, &names))
		strings = elf_file_section_bytes(f, &names, SYMBOLS_BYTES_MAX, &err);
	if (strings)
		find_symbols(f, &table, strings, names.sh_size, wanted, 2);
	free(strings);
	elf_file_close(f);
	*text = wanted[0].found ? wanted[0].value : wanted[1].value;
	return wanted[0].found || wanted[1].found ? 0 : -ENOENT;
}

#define PATHS_MAX 3

/* At one of these places, printed with what follows them; of the image's build id in any case. */
static int open_at(struct kernel_debug *k, struct image *m, const char *const formats[PATHS_MAX],
		   const char *sub)
{
	char path[PATHS_MAX][PATH_MAX];
	const char *paths[PATHS_MAX];
	struct debug_found found;

	for (size_t i = 0; i < PATHS_MAX; i++) {
		snprintf(path[i], sizeof(path[i]), formats[i], k->release, sub);
		paths[i] = path[i];
	}
	if (debug_finder_open_id(k->finder, m->id, m->id_len, paths, PATHS_MAX, &found))
		return -ENOENT;
	m->fd = found.fd;
	return 0;
}

static int open_kernel(struct kernel_debug *k, struct image *m)
{
	static const char *const formats[PATHS_MAX] = {
		"/usr/lib/debug/boot/vmlinux-%s",
		"/usr/lib/debug/lib/modules/%s/vmlinux",
		"/lib/modules/%s/build/vmlinux",
	};
	uint64_t linked, text, end;

	if (open_at(k, m, formats, "") || text_in(m->fd, &linked) ||
	    vp_symbolizer_kernel_bounds(k->names, &text, &end))
		return -ENOENT;
	m->moved = text - linked;
	return 0;
}

/* A module's file is not linked: addresses in it are offsets in its text. */
static int open_module(struct kernel_debug *k, struct image *m)
{
	static const char *const formats[PATHS_MAX] = {
		"/usr/lib/debug/lib/modules/%s/%s.debug",
		"/usr/lib/debug/lib/modules/%s/%s",
		"/lib/modules/%s/%s",
	};
	char name[NAME_MAX], sub[PATH_MAX];

	if (!bare_name(m, name) || kernel_module_text(k->root_fd, name, &m->moved))
		return -ENOENT;
	if (kernel_module_path(k->root_fd, k->release, name, sub))
		sub[0] = '\0';
	return open_at(k, m, formats, sub);
}

static void search(struct kernel_debug *k, struct image *m)
{
	const struct dwarf_opts opts = {.demangle = k->demangle};

	m->searched = true;
	if (!m->id_len || (is_kernel(m) ? open_kernel(k, m) : open_module(k, m)))
		return;
	if (dwarf_info_open(&m->dwarf, m->fd, &opts))
		m->dwarf = NULL;
}

/* NULL: out of memory. */
static struct image *image_of(struct kernel_debug *k, const char *name)
{
	struct image *m;

	for (size_t i = 0; i < k->image_cnt; i++) {
		if (!strcmp(k->image[i]->name, name))
			return k->image[i];
	}
	m = calloc(1, sizeof(*m));
	if (m)
		m->name = strdup(name);
	if (!m || !m->name ||
	    vp_array_room((void **)&k->image, &k->image_cap, k->image_cnt, 1, sizeof(m))) {
		free(m ? m->name : NULL);
		free(m);
		return NULL;
	}
	m->fd = -1;
	k->image[k->image_cnt++] = m;
	read_build_id(k, m);
	return m;
}

size_t kernel_debug_find(struct kernel_debug *k, uint64_t addr, const struct vp_symbol *sym,
			 const struct dwarf_frame **frames)
{
	struct image *m = sym->module ? image_of(k, sym->module) : NULL;

	if (!m)
		return 0;
	if (!m->searched)
		search(k, m);
	return m->dwarf ? dwarf_info_find(m->dwarf, addr - m->moved, frames) : 0;
}

const char *kernel_debug_build_id(struct kernel_debug *k, const char *module)
{
	const struct image *m = image_of(k, module);

	return m && m->id_len ? m->id_text : NULL;
}

/* ---- life ------------------------------------------------------------------------------------- */

int kernel_debug_new(struct kernel_debug **out, const struct kernel_debug_opts *opts)
{
	struct kernel_debug *k = calloc(1, sizeof(*k));
	struct utsname running;

	if (!k)
		return -ENOMEM;
	k->root_fd =
		open(opts->host_root ? opts->host_root : "/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	k->names = opts->names;
	k->finder = opts->finder;
	k->demangle = opts->demangle;
	if (uname(&running))
		running.release[0] = '\0';
	k->release = strdup(opts->release ? opts->release : running.release);
	if (!k->release) {
		kernel_debug_free(k);
		return -ENOMEM;
	}
	*out = k;
	return 0;
}

void kernel_debug_free(struct kernel_debug *k)
{
	if (!k)
		return;
	for (size_t i = 0; i < k->image_cnt; i++) {
		dwarf_info_close(k->image[i]->dwarf);
		if (k->image[i]->fd >= 0)
			close(k->image[i]->fd);
		free(k->image[i]->name);
		free(k->image[i]);
	}
	free(k->image);
	if (k->root_fd >= 0)
		close(k->root_fd);
	free(k->release);
	free(k);
}
