/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "debug_info.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct debug_info {
	struct elf_file *elf;
	struct dwarf_info *dwarf; /* NULL: none */
	int fd;
	struct debug_files files;
	struct debug_finder *finder; /* borrowed */
	struct debug_origin origin;  /* its path is owned */
	bool demangle;
};

/* A split unit's own file, where it is said to be or beside the program. */
static int open_dwo(void *ctx, const char *comp_dir, const char *name, uint64_t id)
{
	struct debug_info *d = ctx;
	struct debug_found found;

	(void)id; /* compared by who asks */
	if (debug_finder_open_dwo(d->finder, &d->origin, comp_dir, name, &found))
		return -ENOENT;
	return found.fd;
}

static void close_fd(int fd)
{
	if (fd >= 0)
		close(fd);
}

void debug_files_close(struct debug_files *f)
{
	close_fd(f->debug_fd);
	close_fd(f->alt_fd);
	close_fd(f->package_fd);
	*f = DEBUG_FILES_NONE;
}

/* The debug file of elf, which is at `at`; *beside is where that is. -ENOENT: none. */
static int find_debug(struct debug_files *f, const struct elf_file *elf,
		      struct debug_finder *finder, const struct debug_origin *at,
		      struct debug_found *found, struct debug_origin *beside)
{
	int err = debug_finder_open(finder, elf, at, found);

	if (err)
		return err;
	f->debug_fd = found->fd;
	f->is_foreign |= found->tgid != 0;
	*beside = (struct debug_origin){.tgid = found->tgid, .path = found->path};
	return 0;
}

/* What the debug information of a program at `at` refers to; it is in the file fd, at `beside`. */
static void find_shared(struct debug_files *f, int fd, struct debug_finder *finder,
			const struct debug_origin *at, const struct debug_origin *beside)
{
	struct elf_file *elf;
	struct debug_found found;

	if (f->package_fd < 0 && !debug_finder_open_dwp(finder, at, &found)) {
		f->package_fd = found.fd;
		f->is_foreign |= found.tgid != 0;
	}
	if (f->alt_fd >= 0 || elf_file_open(&elf, fd))
		return;
	if (!debug_finder_open_alt(finder, elf, beside, &found)) {
		f->alt_fd = found.fd;
		f->is_foreign |= found.tgid != 0;
	}
	elf_file_close(elf);
}

static bool has_dwarf(const struct elf_file *elf)
{
	struct elf_named s[] = {{.name = ".debug_info"}, {.name = ".zdebug_info"}};

	elf_file_find_named(elf, s, 2);
	return s[0].index || s[1].index;
}

bool debug_files_find(struct debug_files *out, int fd, struct debug_finder *finder,
		      const struct debug_origin *at)
{
	struct debug_origin beside = *at;
	struct debug_found found;
	struct elf_file *elf;
	bool is_there;

	*out = DEBUG_FILES_NONE;
	if (elf_file_open(&elf, fd))
		return false;
	is_there = has_dwarf(elf) || !find_debug(out, elf, finder, at, &found, &beside);
	elf_file_close(elf);
	if (is_there)
		find_shared(out, out->debug_fd >= 0 ? out->debug_fd : fd, finder, at, &beside);
	return is_there;
}

static void open_dwarf(struct debug_info *d)
{
	const struct dwarf_opts opts = {.demangle = d->demangle, .open_dwo = open_dwo, .ctx = d};
	struct debug_files *files = &d->files;
	struct debug_origin beside = d->origin;
	struct debug_found found;
	int fd = d->fd;

	/* Debug information that cannot be read is as good as none. */
	if (dwarf_info_open(&d->dwarf, fd, &opts)) {
		d->dwarf = NULL;
		if (files->debug_fd < 0 &&
		    find_debug(files, d->elf, d->finder, &d->origin, &found, &beside))
			return;
		fd = files->debug_fd;
		if (dwarf_info_open(&d->dwarf, fd, &opts))
			d->dwarf = NULL;
	}
	if (!d->dwarf)
		return;
	find_shared(files, fd, d->finder, &d->origin, &beside);
	if (files->package_fd >= 0)
		dwarf_info_set_package(d->dwarf, files->package_fd);
	if (files->alt_fd >= 0)
		dwarf_info_set_alt(d->dwarf, files->alt_fd);
}

static int init(struct debug_info *d, const struct debug_origin *at)
{
	d->origin.tgid = at->tgid;
	if (!at->path)
		return 0;
	d->origin.path = strdup(at->path);
	return d->origin.path ? 0 : -ENOMEM;
}

int debug_info_open(struct debug_info **out, int fd, struct debug_files *files,
		    struct debug_finder *finder, const struct debug_origin *at, bool demangle)
{
	struct debug_info *d = calloc(1, sizeof(*d));
	int err;

	*out = NULL;
	if (!d) {
		close(fd);
		if (files)
			debug_files_close(files);
		return -ENOMEM;
	}
	d->fd = fd;
	d->files = files ? *files : DEBUG_FILES_NONE;
	d->finder = finder;
	d->demangle = demangle;
	err = init(d, at);
	if (!err)
		err = elf_file_open(&d->elf, fd);
	if (err) {
		d->elf = NULL;
		debug_info_close(d);
		return err;
	}
	open_dwarf(d);
	*out = d;
	return 0;
}

void debug_info_close(struct debug_info *d)
{
	if (!d)
		return;
	dwarf_info_close(d->dwarf);
	elf_file_close(d->elf);
	close_fd(d->fd);
	debug_files_close(&d->files);
	free((char *)d->origin.path);
	free(d);
}

const struct elf_file *debug_info_elf(const struct debug_info *d)
{
	return d->elf;
}

bool debug_info_is_there(const struct debug_info *d)
{
	return d->dwarf != NULL;
}

size_t debug_info_find(struct debug_info *d, uint64_t vaddr, const struct dwarf_frame **frames)
{
	return d->dwarf ? dwarf_info_find(d->dwarf, vaddr, frames) : 0;
}

void debug_info_sort(const struct debug_info *d, const uint64_t *vaddrs, uint32_t *order,
		     size_t cnt)
{
	for (size_t i = 0; i < cnt; i++)
		order[i] = (uint32_t)i;
	if (d->dwarf)
		dwarf_info_sort(d->dwarf, vaddrs, order, cnt);
}

struct dwarf_frame debug_info_named(const struct dwarf_frame *frame, const struct vp_symbol *sym)
{
	struct dwarf_frame f = *frame;

	if (!f.inlined && sym->name && !(f.function && sym->offset > f.offset)) {
		f.function = sym->name;
		f.offset = sym->offset;
	}
	return f;
}
