/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A file with code that addresses are asked of. */
#ifndef VP_SYM_MODULE_H
#define VP_SYM_MODULE_H

#include "../symbolize/debug_info.h"

struct vp_sym_module {
	char *name;
	struct vp_sym_module_key {
		uint64_t ino;
		uint32_t dev_major, dev_minor;
	} key;		  /* of a mapping */
	uint32_t file_id; /* in the symbolizer; this and the next set before it is opened */
	bool demangle;
	bool is_found;		    /* a regular file that can be read */
	struct debug_info *info;    /* NULL: no ELF file; its symbols' reason is the symbolizer's */
	const struct elf_file *elf; /* of info */
	char build_id[2 * 64 + 1];
};

/*
 * Opens it by a path, or through a mapping. 0, also if that fails: then there is little to know.
 * -ENOMEM. In any case to be closed.
 */
int vp_sym_module_open_path(struct vp_sym_module *m, struct vp_symbolizer *s, const char *path);
int vp_sym_module_open_mapped(struct vp_sym_module *m, struct vp_symbolizer *s,
			      const struct vp_mapped_file *f);
void vp_sym_module_close(struct vp_sym_module *m);

#endif
