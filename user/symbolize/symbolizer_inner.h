/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The registry of files from inside: for what looks names up in it. */
#ifndef VP_SYMBOLIZER_INNER_H
#define VP_SYMBOLIZER_INNER_H

#include "kallsyms.h"
#include "name_cache.h"
#include "symbol_file.h"
#include "symbolizer.h"

#include <pthread.h>

#define KEPT_FDS_MAX 256

enum file_state { FILE_FAILED, FILE_LOADING, FILE_LOADED };

/* A known file. */
struct entry {
	struct symbol_file f;
	enum file_state state;
	int unreachable;      /* no name leads to it, or to its debug file, below our root */
	int evicted;	      /* the table would be read again */
	uint32_t serial;      /* of the table: another one each time it is read */
	uint64_t used_at;     /* by the symbolizer's clock; atomic: written under the read lock */
	size_t index;	      /* in tables, if it has one */
	uint64_t fixed_bytes; /* as they were counted */
	uint64_t table_bytes;
};

struct vp_symbolizer {
	char *kallsyms_path;
	int is_copy; /* … is no file of this kernel's, and may change at any time */
	uint64_t max_bytes, pack_bytes;
	int demangle, names_in_memory;
	uint64_t kept_max; /* descriptors of files kept open; 0: none */
	struct debug_finder *finder;
	int (*fetch)(void *ctx, const uint8_t *build_id, size_t len); /* as in the options */
	void *fetch_ctx;
	uint64_t clock; /* atomic: goes on when another file is asked for than last time */

	pthread_mutex_t reread_mutex; /* one thread reads evicted files; taken before lock */
	pthread_mutex_t kernel_mutex; /* one thread reads kallsyms; taken before lock */
	uint64_t kernel_code;	      /* its stamp when kallsyms was read; under kernel_mutex */
	pthread_rwlock_t lock;	      /* all below */
	struct ptr_map files;	      /* file_id -> struct entry, which stay until the end */
	struct entry **tables;	      /* those that have a table */
	size_t table_cnt, table_cap;
	size_t filed_cnt; /* tables whose names stay in an open file, and loads that may make one */
	struct entry *spare[KEPT_FDS_MAX]; /* whose kept files make room for unreachable ones */
	size_t spare_cnt;
	struct string_set strings;
	struct entry vdso;
	struct kallsyms *kernel;     /* NULL: not read yet */
	struct ptr_map kernel_names; /* name_id -> string of strings */
	const char **kernel_modules; /* its modules, as strings of strings */
	uint32_t kernel_serial;
	uint32_t last_serial;
	struct vp_symbolizer_stats stats;
};

/* Where a hit's name is kept: its table's names, which must still be that table's. */
struct name_place {
	struct ptr_map *names;
	uint32_t serial;
	const uint32_t *now; /* the table's serial */
	struct entry *entry; /* whose memory the names are; NULL: not counted */
};

/* ---- symbolizer.c ---- */

/* Whether so many bytes are left below the limit; pushes tables out. With the lock held for writing. */
int registry_make_room(struct vp_symbolizer *s, uint64_t bytes);

/* What an entry takes now, instead of what it took. With the lock held for writing. */
void registry_count_bytes(struct vp_symbolizer *s, struct entry *e);

/* It was asked for: others are pushed out before it. With the lock held. */
void registry_touch(struct vp_symbolizer *s, struct entry *e);

/* The table of an evicted one comes back, if it can. Without the lock. */
void registry_read_again(struct vp_symbolizer *s, struct entry *e);

/* ---- symbolizer_names.c ---- */

/* Fills out with a hit's name, or the reason. With the lock held for reading, which it gives up. */
int registry_name_hit(struct vp_symbolizer *s, const struct name_place *at, const struct symtab *t,
		      const struct symtab_hit *hit, struct vp_symbol *out);

#endif
