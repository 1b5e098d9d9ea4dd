/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "sym_module.h"

#include "../symbolize/mapped_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void print_build_id(struct vp_sym_module *m)
{
	uint8_t id[64];
	size_t len = elf_file_build_id(m->elf, id, sizeof(id));

	for (size_t i = 0; i < len; i++)
		snprintf(m->build_id + 2 * i, 3, "%02x", id[i]);
}

/* Takes fd, which may be a negative errno. */
static int open_fd(struct vp_sym_module *m, struct debug_finder *finder, int fd, uint32_t tgid)
{
	const struct debug_origin at = {.tgid = tgid, .path = m->name};
	int err;

	m->is_found = fd >= 0;
	if (!m->is_found)
		return 0;
	err = debug_info_open(&m->info, fd, NULL, finder, &at, m->demangle);
	if (err)
		return err == -ENOMEM ? err : 0;
	m->elf = debug_info_elf(m->info);
	print_build_id(m);
	return 0;
}

int vp_sym_module_open_path(struct vp_sym_module *m, struct vp_symbolizer *s, const char *path)
{
	char *absolute = realpath(path, NULL);
	int err;

	m->name = absolute ? absolute : strdup(path);
	if (!m->name)
		return -ENOMEM;
	err = vp_symbolizer_load_path(s, m->file_id, path);
	return err ? err : open_fd(m, vp_symbolizer_finder(s), mapped_file_open_path(path), 0);
}

int vp_sym_module_open_mapped(struct vp_sym_module *m, struct vp_symbolizer *s,
			      const struct vp_mapped_file *f)
{
	int err;

	m->name = strdup(f->name);
	if (!m->name)
		return -ENOMEM;
	m->key = (struct vp_sym_module_key){f->user_ino, f->user_dev_major, f->user_dev_minor};
	err = vp_symbolizer_load(s, m->file_id, f);
	return err ? err : open_fd(m, vp_symbolizer_finder(s), mapped_file_open(f, NULL), f->tgid);
}

void vp_sym_module_close(struct vp_sym_module *m)
{
	debug_info_close(m->info);
	free(m->name);
}
