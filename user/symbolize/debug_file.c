/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "debug_file.h"

#include "../util/clock.h"
#include "mapped_file.h"
#include "symbolizer.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#define DEBUG_DIR	    "/usr/lib/debug"
#define LINK_MAX_BYTES	    (PATH_MAX + 64)
/* At 200 MB to 1 GB a second. Larger debug files have a build id. */
#define CRC_MAX_BYTES	    (1ULL << 30)
#define CRC_CHUNK_BYTES	    (256U << 10)
#define CRC_CNT		    64
#define MISSING_CNT	    1024
#define MISSING_LIFETIME_NS 60000000000ULL

/* The CRC of a whole file, as long as it is that file. */
struct known_crc {
	dev_t dev;
	ino_t ino;
	off_t size;
	struct timespec mtime;
	uint32_t crc;
};

struct missing {
	uint64_t key;
	uint64_t until_ns; /* 0: unused */
};

struct debug_finder {
	int host_fd; /* the host's root; negative: there is none */
	debug_fetch_fn fetch;
	void *fetch_ctx;

	pthread_mutex_t lock; /* all below */
	struct known_crc crcs[CRC_CNT];
	size_t crc_next; /* the one to be overwritten */
	struct missing missing[MISSING_CNT];
};

int debug_finder_new(struct debug_finder **out, const struct debug_finder_opts *opts)
{
	const char *root = opts && opts->host_root ? opts->host_root : "/";
	struct debug_finder *d = calloc(1, sizeof(*d));

	if (!d)
		return -ENOMEM;
	d->host_fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	d->fetch = opts ? opts->fetch : NULL;
	d->fetch_ctx = opts ? opts->fetch_ctx : NULL;
	pthread_mutex_init(&d->lock, NULL);
	*out = d;
	return 0;
}

void debug_finder_free(struct debug_finder *d)
{
	if (!d)
		return;
	if (d->host_fd >= 0)
		close(d->host_fd);
	pthread_mutex_destroy(&d->lock);
	free(d);
}

/* ---- what belongs together ---- */

/* What a file has to have. */
struct wanted {
	uint8_t id[VP_BUILD_ID_MAX];
	size_t id_len; /* 0: any, then crc decides */
	int has_crc;
	uint32_t crc;
	int anything;	  /* the caller finds out */
	struct stat self; /* not this file itself: links may lead there; st_ino 0: no such file */
};

static int known_crc(struct debug_finder *d, const struct stat *st, uint32_t *crc)
{
	int found = 0;

	pthread_mutex_lock(&d->lock);
	for (size_t i = 0; !found && i < CRC_CNT; i++) {
		const struct known_crc *k = &d->crcs[i];

		if (k->ino != st->st_ino || k->dev != st->st_dev || k->size != st->st_size ||
		    k->mtime.tv_sec != st->st_mtim.tv_sec ||
		    k->mtime.tv_nsec != st->st_mtim.tv_nsec)
			continue;
		*crc = k->crc;
		found = 1;
	}
	pthread_mutex_unlock(&d->lock);
	return found;
}

static void remember_crc(struct debug_finder *d, const struct stat *st, uint32_t crc)
{
	pthread_mutex_lock(&d->lock);
	d->crcs[d->crc_next] = (struct known_crc){
		.dev = st->st_dev,
		.ino = st->st_ino,
		.size = st->st_size,
		.mtime = st->st_mtim,
		.crc = crc,
	};
	d->crc_next = (d->crc_next + 1) % CRC_CNT;
	pthread_mutex_unlock(&d->lock);
}

/* The CRC of .gnu_debuglink is zlib's. */
static int read_crc(const struct elf_file *f, uint32_t *crc)
{
	char *chunk = malloc(CRC_CHUNK_BYTES);
	uLong sum = crc32(0, NULL, 0);
	int err = chunk ? 0 : -ENOMEM;

	for (uint64_t at = 0; !err && at < f->size; at += CRC_CHUNK_BYTES) {
		uint64_t left = f->size - at;
		size_t n = left < CRC_CHUNK_BYTES ? left : CRC_CHUNK_BYTES;

		err = elf_file_read(f, at, chunk, n);
		if (!err)
			sum = crc32(sum, (const Bytef *)chunk, (uInt)n);
	}
	free(chunk);
	*crc = (uint32_t)sum;
	return err;
}

static int has_crc(struct debug_finder *d, const struct elf_file *f, const struct stat *st,
		   uint32_t want)
{
	uint32_t crc;

	/* one of holes, more than a file system can compress, was not made by a linker */
	if (f->size > CRC_MAX_BYTES || (uint64_t)st->st_blocks * 512 < f->size / 64)
		return 0;
	if (known_crc(d, st, &crc))
		return crc == want;
	if (read_crc(f, &crc))
		return 0;
	remember_crc(d, st, crc);
	return crc == want;
}

/* Two build ids decide alone: the CRC of a large file takes its time. */
static int is_elf_wanted(struct debug_finder *d, const struct elf_file *f, const struct stat *st,
			 const struct wanted *w)
{
	uint8_t id[VP_BUILD_ID_MAX];
	size_t len = elf_file_build_id(f, id, sizeof(id));

	if (w->id_len && len)
		return len == w->id_len && !memcmp(id, w->id, len);
	return w->has_crc && has_crc(d, f, st, w->crc);
}

static int is_wanted(struct debug_finder *d, int fd, const struct wanted *w)
{
	struct elf_file *f;
	struct stat st;

	if (fstat(fd, &st))
		return 0;
	if (w->self.st_ino && st.st_ino == w->self.st_ino && st.st_dev == w->self.st_dev)
		return 0;
	if (w->anything)
		return 1;
	if (elf_file_open(&f, fd))
		return 0;

	int yes = is_elf_wanted(d, f, &st, w);
	elf_file_close(f);
	return yes;
}

/* ---- where to look ---- */

struct root {
	int fd;
	uint32_t tgid; /* 0: the host */
};

struct search {
	struct debug_finder *d;
	struct root host, target; /* fd < 0: none; target is another directory than host */
	struct stat target_st;
	struct wanted wanted;
	char dir[PATH_MAX]; /* of the file, without '/' at its end; "" of "/x"; no dir: has_dir 0 */
	int has_dir;
	int pending; /* it is being fetched: asking again can help */
	struct debug_found *out;
};

static void set_dir(struct search *s, const struct debug_origin *at)
{
	const char *slash = at->path && at->path[0] == '/' ? strrchr(at->path, '/') : NULL;
	size_t len = slash ? (size_t)(slash - at->path) : 0;

	s->has_dir = slash && len < sizeof(s->dir);
	if (s->has_dir)
		memcpy(s->dir, at->path, len);
	s->dir[s->has_dir ? len : 0] = '\0';
}

/* A root that is the host's own is not searched twice. */
static void open_target(struct search *s, uint32_t tgid)
{
	struct stat host;
	char path[64];

	s->target = (struct root){.fd = -1, .tgid = tgid};
	if (!tgid)
		return;
	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/root", tgid);
	s->target.fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (s->target.fd < 0)
		return;
	if (fstat(s->target.fd, &s->target_st) ||
	    (s->host.fd >= 0 && !fstat(s->host.fd, &host) && host.st_dev == s->target_st.st_dev &&
	     host.st_ino == s->target_st.st_ino)) {
		close(s->target.fd);
		s->target.fd = -1;
	}
}

static void search_begin(struct search *s, struct debug_finder *d, const struct debug_origin *at,
			 struct debug_found *out)
{
	memset(&s->wanted, 0, sizeof(s->wanted));
	memset(&s->target_st, 0, sizeof(s->target_st));
	s->d = d;
	s->pending = 0;
	s->out = out;
	s->host = (struct root){.fd = d->host_fd};
	out->fd = -1;
	set_dir(s, at);
	open_target(s, at->tgid);
}

static void search_end(struct search *s)
{
	if (s->target.fd >= 0)
		close(s->target.fd);
}

/* Whether the wanted file is at this path below the root; s->out is filled then. */
static int try_path(struct search *s, const struct root *r, enum debug_way way, const char *fmt,
		    ...) __attribute__((format(printf, 4, 5)));

static int try_path(struct search *s, const struct root *r, enum debug_way way, const char *fmt,
		    ...)
{
	struct debug_found *out = s->out;
	va_list args;

	if (r->fd < 0)
		return 0;
	va_start(args, fmt);
	int n = vsnprintf(out->path, sizeof(out->path), fmt, args);
	va_end(args);
	if (n < 0 || (size_t)n >= sizeof(out->path))
		return 0;

	int fd = mapped_file_open_in(r->fd, out->path);
	if (fd < 0)
		return 0;
	if (!is_wanted(s->d, fd, &s->wanted)) {
		close(fd);
		return 0;
	}
	out->fd = fd;
	out->way = way;
	out->tgid = r->tgid;
	return 1;
}

static int try_build_id(struct search *s, const struct root *r)
{
	const struct wanted *w = &s->wanted;
	char hex[2 * VP_BUILD_ID_MAX + 1];

	if (w->id_len < 2)
		return 0;
	for (size_t i = 0; i < w->id_len; i++)
		snprintf(hex + 2 * i, 3, "%02x", w->id[i]);
	return try_path(s, r, DEBUG_BY_BUILD_ID, DEBUG_DIR "/.build-id/%.2s/%s.debug", hex,
			hex + 2);
}

static int try_link(struct search *s, const struct root *r, const char *name)
{
	if (!s->has_dir)
		return try_path(s, r, DEBUG_BY_LINK, DEBUG_DIR "/%s", name);
	return try_path(s, r, DEBUG_BY_LINK, "%s/%s", s->dir, name) ||
	       try_path(s, r, DEBUG_BY_LINK, "%s/.debug/%s", s->dir, name) ||
	       try_path(s, r, DEBUG_BY_LINK, DEBUG_DIR "%s/%s", s->dir, name);
}

static int try_fetch(struct search *s)
{
	const struct wanted *w = &s->wanted;

	if (!s->d->fetch || !w->id_len)
		return 0;

	int fd = s->d->fetch(s->d->fetch_ctx, w->id, w->id_len);
	s->pending = fd == -EAGAIN;
	if (fd < 0)
		return 0;
	if (!is_wanted(s->d, fd, w)) {
		close(fd);
		return 0;
	}
	s->out->fd = fd;
	s->out->way = DEBUG_BY_FETCH;
	s->out->tgid = 0;
	s->out->path[0] = '\0';
	return 1;
}

/* ---- what there is none of ---- */

static uint64_t hash(uint64_t h, const void *bytes, size_t n)
{
	const uint8_t *p = bytes;

	while (n--)
		h = (h ^ *p++) * 0x100000001b3ULL; /* FNV-1a */
	return h;
}

static uint64_t missing_key(const struct search *s, const char *link)
{
	const struct wanted *w = &s->wanted;
	uint64_t h = hash(0xcbf29ce484222325ULL, w->id, w->id_len);

	h = hash(h, &w->crc, sizeof(w->crc));
	h = hash(h, &s->target_st.st_dev, sizeof(s->target_st.st_dev));
	h = hash(h, &s->target_st.st_ino, sizeof(s->target_st.st_ino));
	h = hash(h, s->dir, strlen(s->dir) + 1);
	return hash(h, link, strlen(link));
}

static int is_missing(struct debug_finder *d, uint64_t key)
{
	pthread_mutex_lock(&d->lock);
	const struct missing *m = &d->missing[key % MISSING_CNT];
	int yes = m->key == key && m->until_ns > vp_now_ns();

	pthread_mutex_unlock(&d->lock);
	return yes;
}

static void remember_missing(struct debug_finder *d, uint64_t key)
{
	pthread_mutex_lock(&d->lock);
	d->missing[key % MISSING_CNT] = (struct missing){key, vp_now_ns() + MISSING_LIFETIME_NS};
	pthread_mutex_unlock(&d->lock);
}

/* ---- sections that tell names ---- */

/* A section of a NUL-terminated name and n more bytes. The caller frees it; NULL: none. */
static char *read_link(const struct elf_file *f, const char *section, size_t *name_len,
		       size_t *size)
{
	struct elf_named s = {.name = section};
	int err;

	elf_file_find_named(f, &s, 1);
	if (!s.index)
		return NULL;

	char *bytes = elf_file_section_bytes(f, &s.shdr, LINK_MAX_BYTES, &err);
	if (!bytes)
		return NULL;
	*size = s.shdr.sh_size;
	*name_len = strnlen(bytes, *size);
	if (*name_len && *name_len < *size)
		return bytes;
	free(bytes);
	return NULL;
}

/* The name, a NUL, padding to a multiple of four, the CRC. */
static char *read_debuglink(const struct elf_file *f, struct wanted *w)
{
	size_t len, size;
	char *name = read_link(f, ".gnu_debuglink", &len, &size);

	if (!name)
		return NULL;

	size_t at = (len + 4) & ~(size_t)3;
	if (at + sizeof(w->crc) > size || strchr(name, '/') || !strcmp(name, "..")) {
		free(name);
		return NULL;
	}
	memcpy(&w->crc, name + at, sizeof(w->crc));
	w->has_crc = 1;
	return name;
}

/* The path, a NUL, the build id. */
static char *read_altlink(const struct elf_file *f, struct wanted *w)
{
	size_t len, size;
	char *path = read_link(f, ".gnu_debugaltlink", &len, &size);

	if (!path)
		return NULL;

	size_t id_len = size - len - 1;
	if (!id_len || id_len > sizeof(w->id)) {
		free(path);
		return NULL;
	}
	memcpy(w->id, path + len + 1, id_len);
	w->id_len = id_len;
	return path;
}

/* ---- the searches ---- */

static int find_debug(struct search *s, const char *link)
{
	if (try_build_id(s, &s->host) || try_build_id(s, &s->target))
		return 1;
	if (*link && (try_link(s, &s->target, link) || try_link(s, &s->host, link)))
		return 1;
	return try_fetch(s);
}

int debug_finder_open(struct debug_finder *d, const struct elf_file *f,
		      const struct debug_origin *at, struct debug_found *out)
{
	struct search s;
	int found = 0;

	search_begin(&s, d, at, out);
	if (f->fd >= 0 && fstat(f->fd, &s.wanted.self))
		s.wanted.self.st_ino = 0;
	s.wanted.id_len = elf_file_build_id(f, s.wanted.id, sizeof(s.wanted.id));

	char *link = read_debuglink(f, &s.wanted);
	if (link || s.wanted.id_len) {
		uint64_t key = missing_key(&s, link ? link : "");

		if (!is_missing(d, key)) {
			found = find_debug(&s, link ? link : "");
			if (!found && !s.pending)
				remember_missing(d, key);
		}
	}
	free(link);
	search_end(&s);
	return found ? 0 : -ENOENT;
}

int debug_finder_open_id(struct debug_finder *d, const uint8_t *id, size_t id_len,
			 const char *const *paths, size_t path_cnt, struct debug_found *out)
{
	struct search s;
	int found;

	if (id_len > sizeof(s.wanted.id))
		return -ENOENT;
	search_begin(&s, d, &(struct debug_origin){0}, out);
	memcpy(s.wanted.id, id, id_len);
	s.wanted.id_len = id_len;
	found = try_build_id(&s, &s.host);
	for (size_t i = 0; i < path_cnt && !found; i++)
		found = try_path(&s, &s.host, DEBUG_BY_LINK, "%s", paths[i]);
	if (!found)
		found = try_fetch(&s);
	search_end(&s);
	return found ? 0 : -ENOENT;
}

static int find_alt(struct search *s, const char *path)
{
	if (try_build_id(s, &s->host) || try_build_id(s, &s->target))
		return 1;
	if (path[0] == '/')
		return try_path(s, &s->target, DEBUG_BY_LINK, "%s", path) ||
		       try_path(s, &s->host, DEBUG_BY_LINK, "%s", path);
	return s->has_dir && (try_path(s, &s->target, DEBUG_BY_LINK, "%s/%s", s->dir, path) ||
			      try_path(s, &s->host, DEBUG_BY_LINK, "%s/%s", s->dir, path));
}

int debug_finder_open_alt(struct debug_finder *d, const struct elf_file *f,
			  const struct debug_origin *at, struct debug_found *out)
{
	struct search s;

	search_begin(&s, d, at, out);

	char *path = read_altlink(f, &s.wanted);
	int err = !path ? -ENODATA : find_alt(&s, path) ? 0 : -ENOENT;
	free(path);
	search_end(&s);
	return err;
}

/* Below one root: where it was compiled, then beside the program. */
static int find_dwo(struct search *s, const struct root *r, const char *comp_dir, const char *name)
{
	const char *slash = strrchr(name, '/');

	if (name[0] == '/') {
		if (try_path(s, r, DEBUG_BY_LINK, "%s", name))
			return 1;
	} else if (comp_dir && comp_dir[0] == '/') {
		if (try_path(s, r, DEBUG_BY_LINK, "%s/%s", comp_dir, name))
			return 1;
	}
	if (!s->has_dir)
		return 0;
	return (name[0] != '/' && try_path(s, r, DEBUG_BY_LINK, "%s/%s", s->dir, name)) ||
	       (slash && try_path(s, r, DEBUG_BY_LINK, "%s/%s", s->dir, slash + 1));
}

int debug_finder_open_dwo(struct debug_finder *d, const struct debug_origin *at,
			  const char *comp_dir, const char *dwo_name, struct debug_found *out)
{
	struct search s;

	search_begin(&s, d, at, out);
	s.wanted.anything = 1;

	int found = find_dwo(&s, &s.target, comp_dir, dwo_name) ||
		    find_dwo(&s, &s.host, comp_dir, dwo_name);
	search_end(&s);
	return found ? 0 : -ENOENT;
}

int debug_finder_open_dwp(struct debug_finder *d, const struct debug_origin *at,
			  struct debug_found *out)
{
	struct search s;

	search_begin(&s, d, at, out);
	s.wanted.anything = 1;

	int found = s.has_dir && (try_path(&s, &s.target, DEBUG_BY_LINK, "%s.dwp", at->path) ||
				  try_path(&s, &s.host, DEBUG_BY_LINK, "%s.dwp", at->path));
	search_end(&s);
	return found ? 0 : -ENOENT;
}
