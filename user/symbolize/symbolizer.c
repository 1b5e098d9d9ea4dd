/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The registry: which files are known, within which memory, under which lock. One
 * read-write lock guards everything; reading files and demangling happen outside of it, and
 * a warm look-up takes it once for reading.
 *
 * Tables and names count against one limit. What does not fit pushes the table out that was not
 * asked for the longest; asking for it reads its file again, if that is still the same.
 */
#include "symbolizer_inner.h"

#include "debug_file.h"
#include "debug_info.h"
#include "mapped_file.h"
#include "vdso_image.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define DEFAULT_MAX_BYTES (256ULL << 20)
#define FILED_TABLES_MAX  64

static void entry_free(void *e)
{
	symbol_file_fini(&((struct entry *)e)->f);
	free(e);
}

/* ---- memory; all with the lock held for writing, unless said otherwise ---- */

/* Held for reading is enough. */
static uint64_t used_bytes(const struct vp_symbolizer *s)
{
	return s->stats.table_bytes + s->stats.fixed_bytes + s->strings.bytes;
}

/* What an entry takes now, instead of what it took. */
void registry_count_bytes(struct vp_symbolizer *s, struct entry *e)
{
	s->stats.table_bytes -= e->table_bytes;
	s->stats.fixed_bytes -= e->fixed_bytes;
	e->table_bytes = symbol_file_table_bytes(&e->f);
	e->fixed_bytes = sizeof(*e) + symbol_file_fixed_bytes(&e->f);
	e->f.info.bytes = e->table_bytes;
	s->stats.table_bytes += e->table_bytes;
	s->stats.fixed_bytes += e->fixed_bytes;
}

static void set_reason(struct vp_symbolizer *s, struct entry *e, enum vp_sym_reason reason)
{
	s->stats.file_cnt[e->f.info.reason]--;
	e->f.info.reason = reason;
	s->stats.file_cnt[reason]++;
}

static int can_read_again(const struct entry *e)
{
	return e->f.home.path || e->f.kept.part[KEPT_SELF].fd >= 0;
}

static void remove_table(struct vp_symbolizer *s, struct entry *e)
{
	struct entry *last = s->tables[--s->table_cnt];

	s->tables[e->index] = last;
	last->index = e->index;
}

static void evict(struct vp_symbolizer *s, struct entry *e)
{
	remove_table(s, e);
	s->filed_cnt -= !!symtab_has_filed_names(e->f.table);
	symbol_file_drop_table(&e->f);
	registry_count_bytes(s, e);
	s->stats.evicted_cnt++;
	e->evicted = can_read_again(e);
	if (!e->evicted) {
		s->stats.lost_file_cnt++;
		set_reason(s, e, VP_SYM_OVER_LIMIT);
	}
}

/* What can be read again goes first, then what was not asked for the longest. NULL: none. */
static struct entry *next_to_evict(const struct vp_symbolizer *s)
{
	struct entry *worst = NULL;

	for (size_t i = 0; i < s->table_cnt; i++) {
		struct entry *e = s->tables[i];

		if (!worst || can_read_again(e) > can_read_again(worst) ||
		    (can_read_again(e) == can_read_again(worst) && e->used_at < worst->used_at))
			worst = e;
	}
	return worst;
}

/* Whether so many bytes more are within the limit, after others had to go for them. */
int registry_make_room(struct vp_symbolizer *s, uint64_t bytes)
{
	struct entry *e;

	if (used_bytes(s) - s->stats.table_bytes + bytes > s->max_bytes)
		return 0; /* not even without any table */
	while (used_bytes(s) + bytes > s->max_bytes && (e = next_to_evict(s)))
		evict(s, e);
	return 1;
}

static int add_table(struct vp_symbolizer *s, struct entry *e)
{
	if (s->table_cnt == s->table_cap) {
		size_t cap = s->table_cap ? s->table_cap * 2 : 64;
		struct entry **tables = realloc(s->tables, cap * sizeof(struct entry *));

		if (!tables)
			return -ENOMEM;
		s->tables = tables;
		s->table_cap = cap;
	}
	e->index = s->table_cnt;
	s->tables[s->table_cnt++] = e;
	return 0;
}

/* Held for reading is enough. A file that is asked for again and again costs no write. */
void registry_touch(struct vp_symbolizer *s, struct entry *e)
{
	if (__atomic_load_n(&e->used_at, __ATOMIC_RELAXED) !=
	    __atomic_load_n(&s->clock, __ATOMIC_RELAXED))
		__atomic_store_n(&e->used_at, __atomic_add_fetch(&s->clock, 1, __ATOMIC_RELAXED),
				 __ATOMIC_RELAXED);
}

/* ---- the registry ---- */

static struct entry *new_entry(struct vp_symbolizer *s, uint32_t file_id)
{
	struct entry *e = calloc(1, sizeof(*e));

	if (!e)
		return NULL;
	e->f = SYMBOL_FILE_NONE;
	if (!ptr_map_put(&s->files, file_id, e))
		return e;
	free(e);
	return NULL;
}

/* The entry to fill by the caller alone; NULL and 0 if another did or does. */
static struct entry *reserve(struct vp_symbolizer *s, uint32_t file_id, int *err)
{
	*err = 0;
	pthread_rwlock_wrlock(&s->lock);
	struct entry *e = ptr_map_get(&s->files, file_id);

	if (e && e->state != FILE_FAILED) {
		e = NULL;
	} else {
		e = e ? e : new_entry(s, file_id);
		if (e)
			e->state = FILE_LOADING;
		else
			*err = -ENOMEM;
	}
	pthread_rwlock_unlock(&s->lock);
	return e;
}

static void unreserve(struct vp_symbolizer *s, struct entry *e)
{
	pthread_rwlock_wrlock(&s->lock);
	e->state = FILE_FAILED;
	pthread_rwlock_unlock(&s->lock);
}

static void maybe_pack(struct vp_symbolizer *s, struct symbol_file *f)
{
	pthread_rwlock_rdlock(&s->lock);
	int pack = used_bytes(s) + symbol_file_table_bytes(f) > s->pack_bytes;

	pthread_rwlock_unlock(&s->lock);
	if (pack && f->table)
		symtab_pack_names(f->table);
}

/* Whether the table that is read next may leave its names in their file. */
static int reserve_filed(struct vp_symbolizer *s)
{
	pthread_rwlock_wrlock(&s->lock);
	int may = !s->names_in_memory && s->filed_cnt < FILED_TABLES_MAX;

	s->filed_cnt += (size_t)may;
	pthread_rwlock_unlock(&s->lock);
	return may;
}

/* Gives that back unless it did. */
static void settle_filed(struct vp_symbolizer *s, int reserved, const struct symtab *table)
{
	if (!reserved || (table && symtab_has_filed_names(table)))
		return;
	pthread_rwlock_wrlock(&s->lock);
	s->filed_cnt--;
	pthread_rwlock_unlock(&s->lock);
}

/* Reads fd, or takes a negative errno for what came of opening it. */
static int read_file(struct vp_symbolizer *s, int fd, const struct debug_origin *at,
		     struct symbol_file *f)
{
	const struct elf_symbols_from from = {
		.finder = s->finder,
		.at = *at,
		.leave_names = fd >= 0 && reserve_filed(s),
	};
	int err = symbol_file_read(f, fd, &from);

	settle_filed(s, from.leave_names, f->table);
	return err;
}

/* The entry's table, just read, is kept if there is room for it. With the lock held. */
static void admit_table(struct vp_symbolizer *s, struct entry *e, struct symtab *table)
{
	e->serial = ++s->last_serial;
	e->evicted = 0;
	if (registry_make_room(s, symtab_bytes(table)) && !add_table(s, e)) {
		e->f.table = table;
		registry_touch(s, e);
		registry_count_bytes(s, e);
	} else {
		s->filed_cnt -= !!symtab_has_filed_names(table);
		symtab_free(table);
		set_reason(s, e, VP_SYM_OVER_LIMIT);
		s->stats.lost_file_cnt++;
	}
}

static void let_files_go(struct vp_symbolizer *s, struct entry *e)
{
	s->stats.kept_fd_cnt -= kept_files_cnt(&e->f.kept);
	s->stats.unkept_cnt++;
	kept_files_close(&e->f.kept);
}

/* The entry's files stay open if there is room for them. With the lock held. */
static void admit_files(struct vp_symbolizer *s, struct entry *e)
{
	const size_t cnt = kept_files_cnt(&e->f.kept);

	while (e->unreachable && s->spare_cnt && s->stats.kept_fd_cnt + cnt > s->kept_max)
		let_files_go(s, s->spare[--s->spare_cnt]);
	if (cnt && s->stats.kept_fd_cnt + cnt <= s->kept_max) {
		s->stats.kept_fd_cnt += cnt;
		if (!e->unreachable)
			s->spare[s->spare_cnt++] = e;
		return;
	}
	kept_files_close(&e->f.kept);
	s->stats.unreachable_cnt += (uint64_t)e->unreachable;
	s->stats.unkept_cnt += cnt && !e->unreachable;
}

static void publish(struct vp_symbolizer *s, struct entry *e, const struct symbol_file *read)
{
	struct symtab *table = read->table;

	pthread_rwlock_wrlock(&s->lock);
	e->f = *read;
	e->f.table = NULL;
	e->state = FILE_LOADED;
	s->stats.file_cnt[e->f.info.reason]++;
	registry_count_bytes(s, e);
	admit_files(s, e);
	if (table)
		admit_table(s, e, table);
	pthread_rwlock_unlock(&s->lock);
}

/* Of the file, just read: closes it, or opens its debug files, too, to be kept with it. */
static void keep_or_close(struct vp_symbolizer *s, struct entry *e, struct symbol_file *f, int fd,
			  const struct debug_origin *at)
{
	struct debug_files debug;

	e->unreachable = symbol_file_is_elf(f) && (!f->home.path || f->home.tgid);
	if (!s->kept_max || !symbol_file_is_elf(f)) {
		kept_files_close(&f->kept);
		return;
	}
	f->info.has_debug = debug_files_find(&debug, fd, s->finder, at);
	e->unreachable |= debug.is_foreign;
	kept_files_put(&f->kept, KEPT_DEBUG, debug.debug_fd);
	kept_files_put(&f->kept, KEPT_ALT, debug.alt_fd);
	kept_files_put(&f->kept, KEPT_PACKAGE, debug.package_fd);
}

/* Takes fd, which may be a negative errno. m may be NULL. */
static int load_fd(struct vp_symbolizer *s, struct entry *e, int fd, const struct debug_origin *at,
		   const struct vp_mapped_file *m)
{
	struct symbol_file read = SYMBOL_FILE_NONE;
	int err = fd == -ENOMEM ? fd : 0;

	if (fd >= 0) /* before it is read: what is written meanwhile makes it another file */
		err = file_home_find(&read.home, fd, at->path, m);
	kept_files_put(&read.kept, KEPT_SELF, fd);
	if (!err)
		err = read_file(s, fd, at, &read);
	if (!err)
		keep_or_close(s, e, &read, fd, at);
	if (err) {
		symbol_file_fini(&read);
		unreserve(s, e);
		return err;
	}
	read.tgid = at->tgid;
	maybe_pack(s, &read);
	publish(s, e, &read);
	return 0;
}

int vp_symbolizer_load(struct vp_symbolizer *s, uint32_t file_id, const struct vp_mapped_file *m)
{
	int err;
	struct entry *e = reserve(s, file_id, &err);

	return e ? load_fd(s, e, mapped_file_open(m, NULL),
			   &(struct debug_origin){.tgid = m->tgid, .path = m->name}, m)
		 : err;
}

int vp_symbolizer_load_opened(struct vp_symbolizer *s, uint32_t file_id,
			      const struct vp_mapped_file *m, int fd)
{
	int err;
	struct entry *e = reserve(s, file_id, &err);

	if (e)
		return load_fd(s, e, fd, &(struct debug_origin){.tgid = m->tgid, .path = m->name},
			       m);
	if (fd >= 0)
		close(fd);
	return err;
}

int vp_symbolizer_load_path(struct vp_symbolizer *s, uint32_t file_id, const char *path)
{
	int err;
	struct entry *e = reserve(s, file_id, &err);

	if (!e)
		return err;

	char *real =
		realpath(path, NULL); /* debug files are beside the file, not beside links to it */
	err = load_fd(s, e, mapped_file_open_path(path), &(struct debug_origin){.path = real},
		      NULL);
	free(real);
	return err;
}

int vp_symbolizer_file_info(struct vp_symbolizer *s, uint32_t file_id, struct vp_file_info *out)
{
	pthread_rwlock_rdlock(&s->lock);
	const struct entry *e = ptr_map_get(&s->files, file_id);
	int err = e && e->state == FILE_LOADED ? 0 : -ENOENT;

	if (!err)
		*out = e->f.info;
	pthread_rwlock_unlock(&s->lock);
	return err;
}

/* The entry's home stays as it is once it is loaded. */
static int open_again(struct vp_symbolizer *s, const struct entry *e)
{
	pthread_rwlock_rdlock(&s->lock);
	int fd = kept_files_open(&e->f.kept, KEPT_SELF);

	pthread_rwlock_unlock(&s->lock);
	return fd == -ENOENT ? file_home_open(&e->f.home) : fd;
}

int vp_symbolizer_open(struct vp_symbolizer *s, uint32_t file_id)
{
	pthread_rwlock_rdlock(&s->lock);
	const struct entry *e = ptr_map_get(&s->files, file_id);
	int known = e && e->state == FILE_LOADED;

	pthread_rwlock_unlock(&s->lock);
	return known ? open_again(s, e) : -ENOENT;
}

void vp_symbolizer_open_debug(struct vp_symbolizer *s, uint32_t file_id, struct debug_files *out)
{
	*out = DEBUG_FILES_NONE;
	pthread_rwlock_rdlock(&s->lock);
	const struct entry *e = ptr_map_get(&s->files, file_id);

	if (e && e->state == FILE_LOADED) {
		out->debug_fd = kept_files_open(&e->f.kept, KEPT_DEBUG);
		out->alt_fd = kept_files_open(&e->f.kept, KEPT_ALT);
		out->package_fd = kept_files_open(&e->f.kept, KEPT_PACKAGE);
	}
	pthread_rwlock_unlock(&s->lock);
}

struct debug_finder *vp_symbolizer_finder(struct vp_symbolizer *s)
{
	return s->finder;
}

void vp_symbolizer_get_stats(struct vp_symbolizer *s, struct vp_symbolizer_stats *out)
{
	pthread_rwlock_rdlock(&s->lock);
	*out = s->stats;
	out->name_bytes = s->strings.bytes;
	out->name_cnt = s->strings.cnt;
	pthread_rwlock_unlock(&s->lock);
}

/* ---- evicted tables ---- */

/* What was read again takes its place; without memory it stays evicted. Takes read over. */
static void readmit(struct vp_symbolizer *s, struct entry *e, struct symbol_file *read, int err)
{
	pthread_rwlock_wrlock(&s->lock);
	if (!err && read->table) {
		s->stats.reread_cnt++;
		e->f.only_stubs = read->only_stubs;
		e->f.info.symbol_cnt = read->info.symbol_cnt;
		admit_table(s, e, read->table);
		read->table = NULL;
	} else if (!err) {
		e->evicted = 0;
		s->stats.lost_file_cnt++;
		set_reason(s, e, VP_SYM_GONE);
	}
	pthread_rwlock_unlock(&s->lock);
	symbol_file_fini(read);
}

static int is_evicted(struct vp_symbolizer *s, const struct entry *e)
{
	pthread_rwlock_rdlock(&s->lock);
	int evicted = e->evicted;

	pthread_rwlock_unlock(&s->lock);
	return evicted;
}

/* Whoever comes second finds the table there. */
void registry_read_again(struct vp_symbolizer *s, struct entry *e)
{
	const struct debug_origin at = {.tgid = e->f.tgid, .path = e->f.home.path};
	struct symbol_file read = SYMBOL_FILE_NONE;

	pthread_mutex_lock(&s->reread_mutex);
	if (is_evicted(s, e)) {
		int fd = open_again(s, e);
		int err = read_file(s, fd, &at, &read);

		if (fd == -EMFILE || fd == -ENFILE)
			err = fd; /* the file may still be there */
		if (fd >= 0)
			close(fd);
		maybe_pack(s, &read);
		readmit(s, e, &read, err);
	}
	pthread_mutex_unlock(&s->reread_mutex);
}

/* ---- debug files that come late ---- */

/* With the lock held. */
static int lacks_debug_file(const struct entry *e)
{
	const struct vp_file_info *info = &e->f.info;

	return e->state == FILE_LOADED && info->build_id_len && !info->symtab_cnt &&
	       (info->reason == VP_SYM_OK || info->reason == VP_SYM_NO_SYMBOLS);
}

/* Takes read over. With the lock held. */
static void improve(struct vp_symbolizer *s, struct entry *e, struct symbol_file *read)
{
	struct symtab *table = read->table;

	read->table = NULL;
	if (e->f.table) {
		remove_table(s, e);
		s->filed_cnt -= !!symtab_has_filed_names(e->f.table);
		symbol_file_drop_table(&e->f);
		registry_count_bytes(s, e);
	}
	e->f.only_stubs = read->only_stubs;
	e->f.info.symbol_cnt = read->info.symbol_cnt;
	e->f.info.symtab_cnt = read->info.symtab_cnt;
	set_reason(s, e, VP_SYM_OK);
	admit_table(s, e, table);
}

static void read_with_debug_file(struct vp_symbolizer *s, struct entry *e)
{
	const struct debug_origin at = {.tgid = e->f.tgid, .path = e->f.home.path};
	struct symbol_file read = SYMBOL_FILE_NONE;
	int fd = open_again(s, e);

	if (fd < 0)
		return;

	int err = read_file(s, fd, &at, &read);
	close(fd);
	maybe_pack(s, &read);
	pthread_rwlock_wrlock(&s->lock);
	if (!err && read.table && read.info.symtab_cnt)
		improve(s, e, &read);
	else if (read.table)
		s->filed_cnt -= !!symtab_has_filed_names(read.table);
	pthread_rwlock_unlock(&s->lock);
	symbol_file_fini(&read);
}

static int has_fetched(struct vp_symbolizer *s, const struct entry *e)
{
	int fd = s->fetch(s->fetch_ctx, e->f.info.build_id, e->f.info.build_id_len);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

void vp_symbolizer_read_fetched(struct vp_symbolizer *s, uint32_t file_id)
{
	if (!s->fetch)
		return;
	pthread_rwlock_rdlock(&s->lock);
	struct entry *e = ptr_map_get(&s->files, file_id);
	int lacks = e && lacks_debug_file(e);

	pthread_rwlock_unlock(&s->lock);
	if (!lacks || !has_fetched(s, e))
		return;
	pthread_mutex_lock(&s->reread_mutex);
	read_with_debug_file(s, e);
	pthread_mutex_unlock(&s->reread_mutex);
}

/* ---- life ---- */

static int read_vdso(struct entry *e)
{
	size_t size;
	const void *image = vdso_image(&size);

	e->state = FILE_LOADED;
	return symbol_file_read_memory(&e->f, image, size);
}

/* The others are for who opens files as they come: that must not fail. */
static uint64_t kept_fds_max(void)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) || files.rlim_cur / 4 >= KEPT_FDS_MAX)
		return KEPT_FDS_MAX;
	return files.rlim_cur / 4;
}

static int init(struct vp_symbolizer *s, const struct vp_symbolizer_opts *opts)
{
	const char *path = opts && opts->kallsyms_path ? opts->kallsyms_path : "/proc/kallsyms";

	s->is_copy = opts && opts->kallsyms_path;
	s->kallsyms_path = strdup(path);
	if (!s->kallsyms_path)
		return -ENOMEM;
	s->max_bytes = opts && opts->max_bytes ? opts->max_bytes : DEFAULT_MAX_BYTES;
	s->pack_bytes = opts && opts->pack_bytes ? opts->pack_bytes : s->max_bytes / 8;
	s->demangle = !opts || opts->demangle;
	s->kept_max = opts && opts->keep_files ? kept_fds_max() : 0;
	s->names_in_memory = opts && opts->names_in_memory;
	s->vdso.serial = ++s->last_serial;
	s->vdso.f = SYMBOL_FILE_NONE;
	s->clock = 1; /* later than 0, when nothing was asked for */

	s->fetch = opts ? opts->fetch : NULL;
	s->fetch_ctx = opts ? opts->fetch_ctx : NULL;

	const struct debug_finder_opts finder = {
		.host_root = opts ? opts->host_root : NULL,
		.fetch = opts ? opts->fetch : NULL,
		.fetch_ctx = opts ? opts->fetch_ctx : NULL,
	};
	int err = debug_finder_new(&s->finder, &finder);
	return err ? err : read_vdso(&s->vdso);
}

int vp_symbolizer_new(struct vp_symbolizer **out, const struct vp_symbolizer_opts *opts)
{
	struct vp_symbolizer *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	pthread_mutex_init(&s->reread_mutex, NULL);
	pthread_mutex_init(&s->kernel_mutex, NULL);
	pthread_rwlock_init(&s->lock, NULL);

	int err = init(s, opts);
	if (err) {
		vp_symbolizer_free(s);
		return err;
	}
	*out = s;
	return 0;
}

void vp_symbolizer_free(struct vp_symbolizer *s)
{
	if (!s)
		return;
	ptr_map_each(&s->files, entry_free);
	ptr_map_fini(&s->files);
	free(s->tables);
	ptr_map_fini(&s->kernel_names);
	string_set_fini(&s->strings);
	symbol_file_fini(&s->vdso.f);
	kallsyms_free(s->kernel);
	free(s->kernel_modules);
	pthread_rwlock_destroy(&s->lock);
	pthread_mutex_destroy(&s->kernel_mutex);
	pthread_mutex_destroy(&s->reread_mutex);
	debug_finder_free(s->finder);
	free(s->kallsyms_path);
	free(s);
}

const char *vp_sym_source_text(enum vp_sym_source source)
{
	static const char *const texts[VP_SYM_SOURCE_CNT] = {
		[VP_SYM_NONE] = "none",		  [VP_SYM_SYMTAB] = "symtab",
		[VP_SYM_DYNSYM] = "dynsym",	  [VP_SYM_KALLSYMS] = "kallsyms",
		[VP_SYM_VDSO] = "vdso",		  [VP_SYM_DEBUGDATA] = "gnu_debugdata",
		[VP_SYM_GOPCLNTAB] = "gopclntab", [VP_SYM_PLT] = "plt",
	};

	return (unsigned int)source < VP_SYM_SOURCE_CNT ? texts[source] : "unknown";
}

const char *vp_sym_reason_text(enum vp_sym_reason reason)
{
	static const char *const texts[VP_SYM_REASON_CNT] = {
		[VP_SYM_OK] = "named",
		[VP_SYM_NOT_LOADED] = "the file has not been read",
		[VP_SYM_CANNOT_OPEN] = "the file cannot be opened: gone, or not allowed",
		[VP_SYM_OTHER_FILE] = "the file was replaced since it was mapped",
		[VP_SYM_NOT_ELF] = "not an ELF file, or a damaged one",
		[VP_SYM_NO_SYMBOLS] = "stripped: no symbols",
		[VP_SYM_NO_SEGMENT] = "the offset lies in no executable segment",
		[VP_SYM_GAP] = "no symbol covers the address",
		[VP_SYM_HIDDEN] = "kernel addresses are hidden (kptr_restrict)",
		[VP_SYM_OVER_LIMIT] = "the memory limit for symbols was reached",
		[VP_SYM_GONE] = "the file was changed or removed since it was read",
	};

	return (unsigned int)reason < VP_SYM_REASON_CNT ? texts[reason] : "unknown reason";
}
