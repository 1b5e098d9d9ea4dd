/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "debug_info.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct debug_info {
	struct elf_file *elf;
	struct dwarf_info *dwarf;	      /* NULL: none */
	int fd, debug_fd, alt_fd, package_fd; /* -1: none */
	struct debug_finder *finder;	      /* borrowed */
	struct debug_origin origin;	      /* its path is owned */
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

/* What the debug information, which is in the file fd found at `at`, refers to. */
static void open_shared(struct debug_info *d, int fd, const struct debug_origin *at)
{
	struct elf_file *elf;
	struct debug_found found;

	if (!debug_finder_open_dwp(d->finder, &d->origin, &found)) {
		d->package_fd = found.fd;
		dwarf_info_set_package(d->dwarf, d->package_fd);
	}
	if (elf_file_open(&elf, fd))
		return;
	if (!debug_finder_open_alt(d->finder, elf, at, &found)) {
		d->alt_fd = found.fd;
		dwarf_info_set_alt(d->dwarf, d->alt_fd);
	}
	elf_file_close(elf);
}

static void open_dwarf(struct debug_info *d)
{
	const struct dwarf_opts opts = {.demangle = d->demangle, .open_dwo = open_dwo, .ctx = d};
	struct debug_origin at = d->origin;
	struct debug_found found;
	int fd = d->fd;

	/* Debug information that cannot be read is as good as none. */
	if (dwarf_info_open(&d->dwarf, fd, &opts)) {
		d->dwarf = NULL;
		if (debug_finder_open(d->finder, d->elf, &d->origin, &found))
			return;
		fd = d->debug_fd = found.fd;
		at = (struct debug_origin){.tgid = found.tgid, .path = found.path};
		if (dwarf_info_open(&d->dwarf, fd, &opts))
			d->dwarf = NULL;
	}
	if (d->dwarf)
		open_shared(d, fd, &at);
}

static int init(struct debug_info *d, const struct debug_origin *at)
{
	d->debug_fd = d->alt_fd = d->package_fd = -1;
	d->origin.tgid = at->tgid;
	if (!at->path)
		return 0;
	d->origin.path = strdup(at->path);
	return d->origin.path ? 0 : -ENOMEM;
}

int debug_info_open(struct debug_info **out, int fd, struct debug_finder *finder,
		    const struct debug_origin *at, bool demangle)
{
	struct debug_info *d = calloc(1, sizeof(*d));
	int err;

	*out = NULL;
	if (!d) {
		close(fd);
		return -ENOMEM;
	}
	d->fd = fd;
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

static void close_fd(int fd)
{
	if (fd >= 0)
		close(fd);
}

void debug_info_close(struct debug_info *d)
{
	if (!d)
		return;
	dwarf_info_close(d->dwarf);
	elf_file_close(d->elf);
	close_fd(d->fd);
	close_fd(d->debug_fd);
	close_fd(d->alt_fd);
	close_fd(d->package_fd);
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
