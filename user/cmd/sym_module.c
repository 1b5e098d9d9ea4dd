/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "sym_module.h"

#include "../symbolize/mapped_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A split unit's own file, where it is said to be or beside the program. */
static int open_dwo(void *ctx, const char *comp_dir, const char *name, uint64_t id)
{
	struct vp_sym_module *m = ctx;
	struct debug_found found;

	(void)id; /* compared by who asks */
	if (debug_finder_open_dwo(m->finder, &m->origin, comp_dir, name, &found))
		return -ENOENT;
	return found.fd;
}

/* What the debug information, which is in the file fd found at `at`, refers to. */
static void open_shared(struct vp_sym_module *m, int fd, const struct debug_origin *at)
{
	struct elf_file *elf;
	struct debug_found found;

	if (!debug_finder_open_dwp(m->finder, &m->origin, &found)) {
		m->package_fd = found.fd;
		dwarf_info_set_package(m->dwarf, m->package_fd);
	}
	if (elf_file_open(&elf, fd))
		return;
	if (!debug_finder_open_alt(m->finder, elf, at, &found)) {
		m->alt_fd = found.fd;
		dwarf_info_set_alt(m->dwarf, m->alt_fd);
	}
	elf_file_close(elf);
}

static void open_dwarf(struct vp_sym_module *m)
{
	const struct dwarf_opts opts = {.demangle = m->demangle, .open_dwo = open_dwo, .ctx = m};
	struct debug_origin at = m->origin;
	struct debug_found found;
	int fd = m->fd;

	/* Debug information that cannot be read is as good as none. */
	if (dwarf_info_open(&m->dwarf, fd, &opts)) {
		m->dwarf = NULL;
		if (debug_finder_open(m->finder, m->elf, &m->origin, &found))
			return;
		fd = m->debug_fd = found.fd;
		at = (struct debug_origin){.tgid = found.tgid, .path = found.path};
		if (dwarf_info_open(&m->dwarf, fd, &opts))
			m->dwarf = NULL;
	}
	if (m->dwarf)
		open_shared(m, fd, &at);
}

static void print_build_id(struct vp_sym_module *m)
{
	uint8_t id[64];
	size_t len = elf_file_build_id(m->elf, id, sizeof(id));

	for (size_t i = 0; i < len; i++)
		snprintf(m->build_id + 2 * i, 3, "%02x", id[i]);
}

/* Takes fd, which may be a negative errno. */
static void open_fd(struct vp_sym_module *m, int fd)
{
	m->fd = fd < 0 ? -1 : fd;
	if (fd < 0 || elf_file_open(&m->elf, fd)) {
		m->elf = NULL;
		return;
	}
	print_build_id(m);
	open_dwarf(m);
}

static int init(struct vp_sym_module *m, struct debug_finder *finder, const char *name)
{
	m->fd = m->debug_fd = m->alt_fd = m->package_fd = -1;
	m->finder = finder;
	m->name = strdup(name);
	return m->name ? 0 : -ENOMEM;
}

int vp_sym_module_open_path(struct vp_sym_module *m, struct vp_symbolizer *s,
			    struct debug_finder *finder, const char *path)
{
	char *absolute = realpath(path, NULL);
	int err = init(m, finder, absolute ? absolute : path);

	free(absolute);
	if (!err)
		err = vp_symbolizer_load_path(s, m->file_id, path);
	if (err)
		return err;
	m->origin = (struct debug_origin){.path = m->name};
	open_fd(m, mapped_file_open_path(path));
	return 0;
}

int vp_sym_module_open_mapped(struct vp_sym_module *m, struct vp_symbolizer *s,
			      struct debug_finder *finder, const struct vp_mapped_file *f)
{
	int err = init(m, finder, f->name);

	if (!err)
		err = vp_symbolizer_load(s, m->file_id, f);
	if (err)
		return err;
	m->key = (struct vp_sym_module_key){f->user_ino, f->user_dev_major, f->user_dev_minor};
	m->origin = (struct debug_origin){.tgid = f->tgid, .path = m->name};
	open_fd(m, mapped_file_open(f, NULL));
	return 0;
}

static void close_fd(int fd)
{
	if (fd >= 0)
		close(fd);
}

void vp_sym_module_close(struct vp_sym_module *m)
{
	dwarf_info_close(m->dwarf);
	elf_file_close(m->elf);
	close_fd(m->fd);
	close_fd(m->debug_fd);
	close_fd(m->alt_fd);
	close_fd(m->package_fd);
	free(m->name);
}
