/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The registry: which files are known, within which memory, under which lock. One
 * read-write lock guards everything; reading files and demangling happen outside of it, and
 * a warm look-up takes it once for reading.
 */
#include "symbolizer.h"

#include "debug_file.h"
#include "demangle.h"
#include "elf_symbols.h"
#include "file_home.h"
#include "kallsyms.h"
#include "mapped_file.h"
#include "name_cache.h"
#include "vdso_image.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEFAULT_MAX_BYTES (512ULL << 20)
#define KEPT_FDS_MAX	  64

enum file_state { FILE_FAILED, FILE_LOADING, FILE_LOADED };

struct file {
	enum file_state state;
	uint32_t serial; /* of its table, for name cache keys */
	struct vp_file_info info;
	struct symtab *table; /* NULL unless info.reason is VP_SYM_OK */
	int only_stubs;	      /* stripped, but for the names of stubs */
	struct elf_segment *exec;
	size_t exec_cnt;
	struct file_home home; /* set when it is loaded, and for good */
	int fd;		       /* kept, for no name leads to the file; -1: none */
};

struct vp_symbolizer {
	char *kallsyms_path;
	uint64_t max_bytes, pack_bytes;
	int demangle, keep_unreachable;
	struct debug_finder *finder;

	pthread_mutex_t kernel_mutex; /* one thread reads kallsyms; taken before lock */
	pthread_rwlock_t lock;	      /* all below */
	struct ptr_map files;	      /* file_id -> struct file, which stay until the end */
	struct ptr_map names;	      /* serial << 32 | name_id -> string of strings */
	struct string_set strings;
	struct file vdso;
	struct kallsyms *kernel;     /* NULL: not read yet */
	const char **kernel_modules; /* its modules, as strings of strings */
	uint32_t kernel_serial;
	uint32_t last_serial;
	struct vp_symbolizer_stats stats;
};

static void file_fini(struct file *f)
{
	symtab_free(f->table);
	free(f->exec);
	file_home_fini(&f->home);
	if (f->fd >= 0)
		close(f->fd);
	*f = (struct file){.fd = -1};
}

static void file_free(void *f)
{
	file_fini(f);
	free(f);
}

static enum vp_sym_reason error_reason(int err)
{
	switch (err) {
	case 0:
		return VP_SYM_OK;
	case -ESTALE:
		return VP_SYM_OTHER_FILE;
	case -ENOEXEC:
	case -EINVAL:
		return VP_SYM_NOT_ELF;
	case -EFBIG:
		return VP_SYM_OVER_LIMIT;
	default:
		return VP_SYM_CANNOT_OPEN;
	}
}

/* ---- reading a file ---- */

/* Moves the segments out of elf: they are all that look-ups need besides the table. */
static void take_segments(struct elf_file *elf, struct file *f)
{
	f->exec = elf->exec;
	f->exec_cnt = elf->exec_cnt;
	elf->exec = NULL;
	elf->exec_cnt = 0;
}

static int read_elf(struct elf_file *elf, const struct elf_symbols_from *from, struct file *f)
{
	int err = 0;

	f->info.build_id_len = (uint8_t)elf_file_build_id(elf, f->info.build_id, VP_BUILD_ID_MAX);
	if (elf->exec_cnt)
		err = elf_symbols_read(elf, from, &f->table);
	take_segments(elf, f);
	if (err)
		return err;
	if (!f->table) {
		f->info.reason = VP_SYM_NO_SEGMENT;
		return 0;
	}
	f->info.symbol_cnt = symtab_cnt(f->table);
	f->info.symtab_cnt = symtab_source_cnt(f->table, VP_SYM_SYMTAB);
	f->info.bytes = symtab_bytes(f->table) + f->exec_cnt * sizeof(*f->exec);
	f->only_stubs = f->info.symbol_cnt == symtab_source_cnt(f->table, VP_SYM_PLT);
	f->info.reason = f->info.symbol_cnt ? VP_SYM_OK : VP_SYM_NO_SYMBOLS;
	return 0;
}

/* fd may be a negative errno: that is a finding as well. Only -ENOMEM is an error. */
static int read_fd(int fd, const struct elf_symbols_from *from, struct file *f)
{
	struct elf_file *elf = NULL;
	int err = fd < 0 ? fd : elf_file_open(&elf, fd);

	if (!err)
		err = read_elf(elf, from, f);
	elf_file_close(elf);
	if (err == -ENOMEM)
		return err;
	if (err)
		f->info.reason = error_reason(err);
	return 0;
}

static void drop_table(struct file *f)
{
	symtab_free(f->table);
	f->table = NULL;
	f->info.bytes = 0;
	f->info.symbol_cnt = 0;
}

/* ---- the registry ---- */

static struct file *new_file(struct vp_symbolizer *s, uint32_t file_id)
{
	struct file *f = calloc(1, sizeof(*f));

	if (f && ptr_map_put(&s->files, file_id, f)) {
		free(f);
		return NULL;
	}
	if (f)
		f->fd = -1;
	return f;
}

/* The entry to fill by the caller alone; NULL and 0 if another did or does. */
static struct file *reserve(struct vp_symbolizer *s, uint32_t file_id, int *err)
{
	*err = 0;
	pthread_rwlock_wrlock(&s->lock);
	struct file *f = ptr_map_get(&s->files, file_id);

	if (f && f->state != FILE_FAILED) {
		f = NULL;
	} else {
		f = f ? f : new_file(s, file_id);
		if (f)
			f->state = FILE_LOADING;
		else
			*err = -ENOMEM;
	}
	pthread_rwlock_unlock(&s->lock);
	return f;
}

static uint64_t used_bytes(const struct vp_symbolizer *s)
{
	return s->stats.table_bytes + s->strings.bytes;
}

static void maybe_pack(struct vp_symbolizer *s, struct file *f)
{
	pthread_rwlock_rdlock(&s->lock);
	int pack = used_bytes(s) + f->info.bytes > s->pack_bytes;

	pthread_rwlock_unlock(&s->lock);
	if (!pack || !f->table)
		return;
	f->info.bytes -= symtab_bytes(f->table);
	symtab_pack_names(f->table);
	f->info.bytes += symtab_bytes(f->table);
}

static void publish(struct vp_symbolizer *s, struct file *f, const struct file *read)
{
	pthread_rwlock_wrlock(&s->lock);
	*f = *read;
	f->state = FILE_LOADED;
	f->serial = ++s->last_serial;
	if (used_bytes(s) + f->info.bytes > s->max_bytes) {
		drop_table(f);
		f->info.reason = VP_SYM_OVER_LIMIT;
	}
	s->stats.table_bytes += f->info.bytes;
	s->stats.file_cnt[f->info.reason]++;
	pthread_rwlock_unlock(&s->lock);
}

static void unreserve(struct vp_symbolizer *s, struct file *f)
{
	pthread_rwlock_wrlock(&s->lock);
	f->state = FILE_FAILED;
	pthread_rwlock_unlock(&s->lock);
}

static int is_elf(const struct file *f)
{
	return f->info.reason == VP_SYM_OK || f->info.reason == VP_SYM_NO_SYMBOLS;
}

/* A file that can be found again by its name is closed; a bounded number of others is kept. */
static void keep_or_close(struct vp_symbolizer *s, struct file *f, int fd)
{
	int unreachable = is_elf(f) && (!f->home.path || f->home.tgid), keep;

	pthread_rwlock_wrlock(&s->lock);
	keep = s->keep_unreachable && unreachable && s->stats.kept_fd_cnt < KEPT_FDS_MAX;
	s->stats.kept_fd_cnt += keep;
	s->stats.unreachable_cnt += unreachable && !keep;
	pthread_rwlock_unlock(&s->lock);
	if (keep)
		f->fd = fd;
	else
		close(fd);
}

/* Takes fd, which may be a negative errno. m may be NULL. */
static int load_fd(struct vp_symbolizer *s, struct file *f, int fd, const struct debug_origin *at,
		   const struct vp_mapped_file *m)
{
	const struct elf_symbols_from from = {.finder = s->finder, .at = *at};
	struct file read = {.fd = -1};
	int err = fd == -ENOMEM ? fd : 0;

	if (fd >= 0) /* before it is read: what is written meanwhile makes it another file */
		err = file_home_find(&read.home, fd, at->path, m);
	if (!err)
		err = read_fd(fd, &from, &read);
	if (fd >= 0)
		keep_or_close(s, &read, fd);
	if (err) {
		file_fini(&read);
		unreserve(s, f);
		return err;
	}
	if (read.info.reason != VP_SYM_OK)
		drop_table(&read);
	maybe_pack(s, &read);
	publish(s, f, &read);
	return 0;
}

int vp_symbolizer_load(struct vp_symbolizer *s, uint32_t file_id, const struct vp_mapped_file *m)
{
	int err;
	struct file *f = reserve(s, file_id, &err);

	return f ? load_fd(s, f, mapped_file_open(m, NULL),
			   &(struct debug_origin){.tgid = m->tgid, .path = m->name}, m)
		 : err;
}

int vp_symbolizer_load_path(struct vp_symbolizer *s, uint32_t file_id, const char *path)
{
	int err;
	struct file *f = reserve(s, file_id, &err);

	if (!f)
		return err;

	char *real =
		realpath(path, NULL); /* debug files are beside the file, not beside links to it */
	err = load_fd(s, f, mapped_file_open_path(path), &(struct debug_origin){.path = real},
		      NULL);
	free(real);
	return err;
}

int vp_symbolizer_file_info(struct vp_symbolizer *s, uint32_t file_id, struct vp_file_info *out)
{
	pthread_rwlock_rdlock(&s->lock);
	const struct file *f = ptr_map_get(&s->files, file_id);
	int err = f && f->state == FILE_LOADED ? 0 : -ENOENT;

	if (!err)
		*out = f->info;
	pthread_rwlock_unlock(&s->lock);
	return err;
}

int vp_symbolizer_open(struct vp_symbolizer *s, uint32_t file_id)
{
	int fd = -1;

	pthread_rwlock_rdlock(&s->lock);
	const struct file *f = ptr_map_get(&s->files, file_id);
	int known = f && f->state == FILE_LOADED;
	if (known && f->fd >= 0)
		fd = fcntl(f->fd, F_DUPFD_CLOEXEC, 0);
	pthread_rwlock_unlock(&s->lock);
	if (fd >= 0)
		return fd;
	return known ? file_home_open(&f->home) : -ENOENT;
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
	pthread_rwlock_unlock(&s->lock);
}

/* ---- look-ups ---- */

static uint64_t name_key(uint32_t serial, const struct symtab_hit *hit)
{
	return (uint64_t)serial << 32 | hit->name_id;
}

/*
 * First use of a symbol: raw (freed here) becomes a name for good. Two threads may come to
 * it at once; both get the same string.
 */
static const char *make_name(struct vp_symbolizer *s, uint64_t key, char *raw)
{
	char *readable = s->demangle ? demangle(raw) : NULL;
	const char *text = readable ? readable : raw, *name = NULL;

	pthread_rwlock_wrlock(&s->lock);
	if (used_bytes(s) + strlen(text) < s->max_bytes)
		name = string_set_intern(&s->strings, text);
	if (name && ptr_map_put(&s->names, key, (void *)(uintptr_t)name))
		name = NULL;
	pthread_rwlock_unlock(&s->lock);
	free(readable);
	free(raw);
	return name;
}

/* With the lock held for reading, which it gives up. */
static int name_hit(struct vp_symbolizer *s, uint32_t serial, const struct symtab *t,
		    const struct symtab_hit *hit, struct vp_symbol *out)
{
	uint64_t key = name_key(serial, hit);
	char *raw = NULL;

	out->offset = hit->offset;
	out->source = hit->source;
	out->name = ptr_map_get(&s->names, key);
	if (!out->name)
		raw = symtab_copy_name(t, hit);
	pthread_rwlock_unlock(&s->lock);

	if (raw)
		out->name = make_name(s, key, raw);
	if (!out->name) {
		*out = (struct vp_symbol){.reason = VP_SYM_OVER_LIMIT};
		return -ENOENT;
	}
	return 0;
}

static enum vp_sym_reason find_in_file(const struct file *f, uint64_t offset,
				       struct symtab_hit *hit)
{
	if (!f || f->state != FILE_LOADED)
		return VP_SYM_NOT_LOADED;
	if (f->info.reason != VP_SYM_OK)
		return f->info.reason;
	if (!elf_segments_cover(f->exec, f->exec_cnt, offset))
		return VP_SYM_NO_SEGMENT;
	if (!symtab_find(f->table, offset, hit))
		return VP_SYM_OK;
	return f->only_stubs ? VP_SYM_NO_SYMBOLS : VP_SYM_GAP;
}

static int look_up(struct vp_symbolizer *s, const struct file *f, uint64_t offset,
		   struct vp_symbol *out)
{
	struct symtab_hit hit;

	out->reason = find_in_file(f, offset, &hit);
	if (out->reason == VP_SYM_OK)
		return name_hit(s, f->serial, f->table, &hit, out);
	pthread_rwlock_unlock(&s->lock);
	return -ENOENT;
}

int vp_symbolizer_file(struct vp_symbolizer *s, uint32_t file_id, uint64_t offset,
		       struct vp_symbol *out)
{
	*out = (struct vp_symbol){0};
	pthread_rwlock_rdlock(&s->lock);
	return look_up(s, ptr_map_get(&s->files, file_id), offset, out);
}

int vp_symbolizer_offset_of(struct vp_symbolizer *s, uint32_t file_id, uint64_t vaddr,
			    uint64_t *offset)
{
	int err = -ENOENT;

	pthread_rwlock_rdlock(&s->lock);
	const struct file *f = ptr_map_get(&s->files, file_id);
	if (f && f->state == FILE_LOADED)
		err = elf_segments_offset(f->exec, f->exec_cnt, vaddr, offset);
	pthread_rwlock_unlock(&s->lock);
	return err;
}

int vp_symbolizer_vdso(struct vp_symbolizer *s, uint64_t offset, struct vp_symbol *out)
{
	*out = (struct vp_symbol){0};
	pthread_rwlock_rdlock(&s->lock);
	int err = look_up(s, &s->vdso, offset, out);

	if (!err)
		out->source = VP_SYM_VDSO;
	return err;
}

/* ---- the kernel ---- */

/* Modules' names are interned: they are handed out and must outlive the table. */
static const char **intern_modules(struct vp_symbolizer *s, const struct kallsyms *k)
{
	const char **modules = calloc(k->module_cnt + 1, sizeof(*modules));

	for (size_t i = 0; modules && i < k->module_cnt; i++) {
		modules[i] = string_set_intern(&s->strings, k->modules[i].name);
		if (!modules[i]) {
			free(modules);
			return NULL;
		}
	}
	return modules;
}

/* Takes k over. */
static int publish_kernel(struct vp_symbolizer *s, struct kallsyms *k)
{
	struct kallsyms *unused = k;

	pthread_rwlock_wrlock(&s->lock);
	const char **modules = intern_modules(s, k);
	if (modules) {
		unused = s->kernel;
		s->kernel = k;
		free(s->kernel_modules);
		s->kernel_modules = modules;
		s->kernel_serial = ++s->last_serial;
	}
	pthread_rwlock_unlock(&s->lock);
	kallsyms_free(unused);
	return modules ? 0 : -ENOMEM;
}

static int read_kernel(struct vp_symbolizer *s)
{
	struct kallsyms *k;
	int err = kallsyms_read(&k, s->kallsyms_path);

	return err ? err : publish_kernel(s, k);
}

int vp_symbolizer_kernel_refresh(struct vp_symbolizer *s)
{
	pthread_mutex_lock(&s->kernel_mutex);
	int err = read_kernel(s);

	pthread_mutex_unlock(&s->kernel_mutex);
	return err;
}

/* Returns with the lock held for reading; s->kernel may be NULL if memory is short. */
static void lock_kernel(struct vp_symbolizer *s)
{
	pthread_rwlock_rdlock(&s->lock);
	if (s->kernel)
		return;
	pthread_rwlock_unlock(&s->lock);

	pthread_mutex_lock(&s->kernel_mutex);
	if (!s->kernel) /* only written under this mutex */
		read_kernel(s);
	pthread_mutex_unlock(&s->kernel_mutex);
	pthread_rwlock_rdlock(&s->lock);
}

static enum vp_sym_reason find_in_kernel(const struct kallsyms *k, uint64_t addr,
					 struct symtab_hit *hit)
{
	if (!k)
		return VP_SYM_NOT_LOADED; /* no memory */
	if (k->reason != VP_SYM_OK)
		return k->reason;
	return symtab_find(k->table, addr, hit) ? VP_SYM_GAP : VP_SYM_OK;
}

int vp_symbolizer_kernel(struct vp_symbolizer *s, uint64_t addr, struct vp_symbol *out)
{
	struct symtab_hit hit;

	*out = (struct vp_symbol){0};
	lock_kernel(s);
	out->reason = find_in_kernel(s->kernel, addr, &hit);
	if (out->reason != VP_SYM_OK) {
		pthread_rwlock_unlock(&s->lock);
		return -ENOENT;
	}

	const char *module = s->kernel_modules[hit.tag];
	int err = name_hit(s, s->kernel_serial, s->kernel->table, &hit, out);
	if (!err)
		out->module = module;
	return err;
}

int vp_symbolizer_kernel_bounds(struct vp_symbolizer *s, uint64_t *stext, uint64_t *etext)
{
	int err = -ENOENT;

	lock_kernel(s);
	if (s->kernel && s->kernel->stext && s->kernel->etext > s->kernel->stext) {
		*stext = s->kernel->stext;
		*etext = s->kernel->etext;
		err = 0;
	}
	pthread_rwlock_unlock(&s->lock);
	return err;
}

/* ---- life ---- */

static int read_vdso(struct file *f)
{
	struct elf_file *elf = NULL;
	size_t size;
	const void *image = vdso_image(&size);
	int err = image ? elf_file_open_memory(&elf, image, size) : -ENOENT;

	if (!err)
		err = read_elf(elf, NULL, f);
	elf_file_close(elf);
	if (err == -ENOMEM)
		return err;
	if (err)
		f->info.reason = error_reason(err);
	f->state = FILE_LOADED;
	return 0;
}

static int init(struct vp_symbolizer *s, const struct vp_symbolizer_opts *opts)
{
	const char *path = opts && opts->kallsyms_path ? opts->kallsyms_path : "/proc/kallsyms";

	s->kallsyms_path = strdup(path);
	if (!s->kallsyms_path)
		return -ENOMEM;
	s->max_bytes = opts && opts->max_bytes ? opts->max_bytes : DEFAULT_MAX_BYTES;
	s->pack_bytes = opts && opts->pack_bytes ? opts->pack_bytes : s->max_bytes / 8;
	s->demangle = !opts || opts->demangle;
	s->keep_unreachable = opts && opts->keep_unreachable;
	s->vdso.fd = -1;
	s->vdso.serial = ++s->last_serial;

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
	ptr_map_each(&s->files, file_free);
	ptr_map_fini(&s->files);
	ptr_map_fini(&s->names);
	string_set_fini(&s->strings);
	file_fini(&s->vdso);
	kallsyms_free(s->kernel);
	free(s->kernel_modules);
	pthread_rwlock_destroy(&s->lock);
	pthread_mutex_destroy(&s->kernel_mutex);
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
	};

	return (unsigned int)reason < VP_SYM_REASON_CNT ? texts[reason] : "unknown reason";
}
