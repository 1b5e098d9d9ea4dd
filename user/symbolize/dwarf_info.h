/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * From link-time addresses to functions, lines and inlined calls, by the debug information (DWARF
 * 2 to 5) in a file or in its debug file. Which unit covers which addresses is found out once;
 * what is in a unit is read when an address in it is asked for, and given back, the least recently
 * used first, when all of it takes too much memory.
 */
#ifndef VP_DWARF_INFO_H
#define VP_DWARF_INFO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dwarf_info;

struct dwarf_frame {
	const char *function; /* NULL: not known; bytes of the file, or demangled */
	const char *file;     /* below the directory of compilation; NULL: not known */
	uint32_t line;	      /* 0: not known, or code that no line wrote */
	bool inlined;	      /* into the frame behind this one */
	/*
	 * Of the address in the piece of the function (or inlined call) around it, bytes. A function
	 * may have several: what is hardly ever run is often put elsewhere.
	 */
	uint64_t offset;
};

struct dwarf_opts {
	uint64_t max_bytes;	    /* of units' tables and names; 0: 16 MiB */
	uint64_t max_inflate_bytes; /* of compressed sections; 0: 2 GiB */
	bool demangle;
	/*
	 * Opens the file of a split unit, whose name is as the compiler wrote it: perhaps relative to
	 * comp_dir (which may be NULL). A descriptor, which is closed here, or negative errno. NULL:
	 * split units are not read.
	 */
	int (*open_dwo)(void *ctx, const char *comp_dir, const char *name, uint64_t id);
	void *ctx;
};

/*
 * fd is borrowed and must stay open until dwarf_info_close; a memory image likewise. opts may be
 * NULL. 0; -ENOENT: no debug information; -ENOEXEC, -EFBIG, -ENOMEM. Not thread-safe.
 */
int dwarf_info_open(struct dwarf_info **out, int fd, const struct dwarf_opts *opts);
int dwarf_info_open_memory(struct dwarf_info **out, const void *image, size_t size,
			   const struct dwarf_opts *opts);
void dwarf_info_close(struct dwarf_info *d); /* NULL is fine */

/*
 * The file that dwz put common parts into (.gnu_debugaltlink), and a package of split units (.dwp).
 * Right behind opening; fd is borrowed as above.
 */
int dwarf_info_set_alt(struct dwarf_info *d, int fd);
int dwarf_info_set_package(struct dwarf_info *d, int fd);

/*
 * The frames of an address, innermost first; valid until the next call. 0: no unit covers it. The
 * caller subtracts 1 from a return address.
 */
size_t dwarf_info_find(struct dwarf_info *d, uint64_t addr, const struct dwarf_frame **frames);

/* order: the numbers of cnt addresses so sorted that asking in this order is the quickest. */
void dwarf_info_sort(const struct dwarf_info *d, const uint64_t *addrs, uint32_t *order,
		     size_t cnt);

/* Memory that is taken now. */
uint64_t dwarf_info_bytes(const struct dwarf_info *d);

#endif
