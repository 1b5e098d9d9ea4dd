/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Finding the files that belong to a stripped one, where distributions and debuggers put them:
 *
 *   by build id      /usr/lib/debug/.build-id/ab/cdef….debug
 *   by debug link    DIR/NAME  DIR/.debug/NAME  /usr/lib/debug/DIR/NAME   (.gnu_debuglink)
 *   shared by dwz    by build id, else by the path in .gnu_debugaltlink
 *   split DWARF      COMP_DIR/NAME.dwo  DIR/NAME.dwo  PROGRAM.dwp
 *
 * on this host and below the root of a process that has the file mapped, which paths do not lead
 * out of. A build id is looked for on the host first: what a process's root has may be made up.
 * A link is relative to where the file is, so there the process's root comes first.
 *
 * What is found belongs to the file for sure: build ids are equal or, where one of them has
 * none, the link's CRC is right. Only regular files are opened.
 */
#ifndef VP_DEBUG_FILE_H
#define VP_DEBUG_FILE_H

#include "elf_reader.h"

#include <limits.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Remembers for a minute what there is no debug file of, and CRCs of files for good. May be used
 * by several threads at once.
 */
struct debug_finder;

/*
 * Gets the debug file of a build id from elsewhere: a descriptor of a regular file for reading,
 * or negative errno. Called when it is nowhere else, outside of any lock; its failures are
 * remembered like any but -EAGAIN: it is on its way.
 */
typedef int (*debug_fetch_fn)(void *ctx, const uint8_t *build_id, size_t len);

struct debug_finder_opts {
	const char *host_root; /* NULL: "/"; copied */
	debug_fetch_fn fetch;  /* NULL: none */
	void *fetch_ctx;
};

/* opts NULL: defaults. 0 or -ENOMEM. */
int debug_finder_new(struct debug_finder **out, const struct debug_finder_opts *opts);
void debug_finder_free(struct debug_finder *d); /* NULL is fine */

/* Where a file is, for what is looked for beside it. */
struct debug_origin {
	uint32_t tgid;	  /* whose root is searched, too; 0: only this host */
	const char *path; /* absolute, below that root; NULL or other: nowhere known */
};

enum debug_way {
	DEBUG_BY_BUILD_ID = 1,
	DEBUG_BY_LINK,
	DEBUG_BY_FETCH,
};

struct debug_found {
	int fd; /* the caller's to close */
	enum debug_way way;
	uint32_t tgid;	     /* below whose root; 0: on this host */
	char path[PATH_MAX]; /* below that root; "" if fetched */
};

/* The debug file of f. 0 or -ENOENT. */
int debug_finder_open(struct debug_finder *d, const struct elf_file *f,
		      const struct debug_origin *at, struct debug_found *out);

/*
 * The file of a build id that something else has told: by that id on this host, else at one of the
 * paths on it, else fetched. 0 or -ENOENT.
 */
int debug_finder_open_id(struct debug_finder *d, const uint8_t *id, size_t id_len,
			 const char *const *paths, size_t path_cnt, struct debug_found *out);

/*
 * The file that f, found at `at`, shares DWARF with others in. 0 or -ENOENT; -ENODATA: f has no
 * .gnu_debugaltlink.
 */
int debug_finder_open_alt(struct debug_finder *d, const struct elf_file *f,
			  const struct debug_origin *at, struct debug_found *out);

/*
 * The .dwo file of a unit by its DW_AT_comp_dir (may be NULL) and DW_AT_dwo_name, or the .dwp
 * file of the program at `at`. The caller compares unit ids. 0 or -ENOENT.
 */
int debug_finder_open_dwo(struct debug_finder *d, const struct debug_origin *at,
			  const char *comp_dir, const char *dwo_name, struct debug_found *out);
int debug_finder_open_dwp(struct debug_finder *d, const struct debug_origin *at,
			  struct debug_found *out);

#endif
