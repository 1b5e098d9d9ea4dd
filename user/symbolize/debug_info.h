/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A file with code, open with its debug information wherever that is: in the file, in a debug file
 * of its own, in what dwz took out of either, in a package or in files of split units.
 */
#ifndef VP_DEBUG_INFO_H
#define VP_DEBUG_INFO_H

#include "debug_file.h"
#include "dwarf_info.h"
#include "symbolizer.h"

struct debug_info;

/* The files that a file's debug information is in besides itself; -1: none, or not known. */
struct debug_files {
	int debug_fd, alt_fd, package_fd;
	bool is_foreign; /* one of them is only below the root of another process */
};

#define DEBUG_FILES_NONE ((struct debug_files){.debug_fd = -1, .alt_fd = -1, .package_fd = -1})

/*
 * Finds those of the open file fd, found at `at`, to be closed with debug_files_close or given to
 * debug_info_open. Files of split units are not among them. False: it has no debug information.
 */
bool debug_files_find(struct debug_files *out, int fd, struct debug_finder *finder,
		      const struct debug_origin *at);
void debug_files_close(struct debug_files *f);

/*
 * Takes fd and the files, also if it fails; files NULL: none. Those that are not among them are
 * looked for. The file was found at `at`, which is copied. finder is borrowed until debug_info_close.
 * 0, also if there is no debug information or none that can be read; what elf_file_open returns;
 * -ENOMEM. Not thread-safe.
 */
int debug_info_open(struct debug_info **out, int fd, struct debug_files *files,
		    struct debug_finder *finder, const struct debug_origin *at, bool demangle);
void debug_info_close(struct debug_info *d); /* NULL is fine */

const struct elf_file *debug_info_elf(const struct debug_info *d); /* the file itself */
bool debug_info_is_there(const struct debug_info *d);

/* As dwarf_info_find and dwarf_info_sort. */
size_t debug_info_find(struct debug_info *d, uint64_t vaddr, const struct dwarf_frame **frames);
void debug_info_sort(const struct debug_info *d, const uint64_t *vaddrs, uint32_t *order,
		     size_t cnt);

/*
 * A frame of an address whose symbol is sym, as it is called everywhere. Of what is not inlined the
 * symbol's name is taken, with or without debug information: it tells clones (.cold,
 * .constprop.0) and constructors apart. But not one that starts before the function.
 */
struct dwarf_frame debug_info_named(const struct dwarf_frame *frame, const struct vp_symbol *sym);

#endif
