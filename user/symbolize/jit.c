/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "jit.h"

#include "../util/array.h"
#include "../util/index.h"
#include "jit_process.h"
#include "jitdump.h"
#include "perf_map.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PROCESS_BYTES (64ULL << 20)
#define MAX_BYTES     (256ULL << 20)
#define READ_BYTES    (512ULL << 20)
#define LIVES_MAX     65536

#define CHUNK_BYTES JITDUMP_WINDOW_BYTES

/* As much of a file's end as read is compared before its reading goes on behind it. */
#define SEEN_BYTES 64

/* How far a file that grows has been read. */
struct source {
	dev_t dev;
	ino_t ino;
	uint64_t offset; /* of what is to be read next */
	uint64_t seen_offset;
	char seen[SEEN_BYTES];
	size_t seen_cnt;
	bool opened;
	bool cut;
};

struct life {
	struct vp_proc_id id;
	struct vp_proc_id from; /* what it began as a copy of; tgid 0: nothing known */
	uint64_t used;		/* when it was asked for last, in calls */
	bool is_read;	/* a thread is at it; what is below is that thread's, but for the tables */
	bool ask_again; /* it was asked for meanwhile */
	bool evicted;
	bool parent_asked;
	struct vp_mapped_file mapped; /* its jitdump; the name is owned, NULL: none is known */

	struct jit_process process;
	struct source map_source, dump_source;
	uint64_t read_bytes;
	struct perf_map map;
	struct jitdump dump;
	/* under the lock */
	struct jit_table map_table, dump_table;
};

struct vp_jit {
	struct vp_jit_opts opts;
	pthread_mutex_t lock;
	struct life **lives;
	size_t cnt, cap;
	struct vp_index index;
	uint64_t calls;
	uint64_t evicted_cnt;
};

/* ---- lives; with the lock held ---------------------------------------------------------------- */

static bool is_life(const void *ctx, uint32_t item, const void *key)
{
	const struct vp_jit *j = ctx;

	return !memcmp(&j->lives[item]->id, key, sizeof(struct vp_proc_id));
}

static struct life *find_life(const struct vp_jit *j, const struct vp_proc_id *id)
{
	uint32_t i = vp_index_find(&j->index, vp_hash(0, id, sizeof(*id)), is_life, j, id);

	return i == VP_INDEX_NONE ? NULL : j->lives[i];
}

static struct life *add_life(struct vp_jit *j, const struct vp_proc_id *id)
{
	struct life *l;

	if (vp_array_room((void **)&j->lives, &j->cap, j->cnt, 1, sizeof(struct life *)))
		return NULL;
	l = calloc(1, sizeof(*l));
	if (!l)
		return NULL;
	l->id = *id;
	l->map_table.max_bytes = j->opts.process_bytes;
	l->dump_table.max_bytes = j->opts.process_bytes;
	l->dump_table.keeps_lines = j->opts.lines;
	j->lives[j->cnt] = l;
	if (vp_index_add(&j->index, vp_hash(0, id, sizeof(*id)), (uint32_t)j->cnt)) {
		free(l);
		return NULL;
	}
	j->cnt++;
	return l;
}

static uint64_t life_bytes(const struct life *l)
{
	return jit_table_bytes(&l->map_table) + jit_table_bytes(&l->dump_table);
}

static void evict(struct vp_jit *j, struct life *l)
{
	l->evicted = true;
	jit_table_clear(&l->map_table);
	jit_table_clear(&l->dump_table);
	j->evicted_cnt++;
}

/* Lives go until the others fit, the one that was asked for longest ago first. */
static void keep_limit(struct vp_jit *j)
{
	for (;;) {
		struct life *oldest = NULL;
		uint64_t bytes = 0;

		for (size_t i = 0; i < j->cnt; i++) {
			struct life *l = j->lives[i];

			bytes += life_bytes(l);
			if (life_bytes(l) && (!oldest || l->used < oldest->used))
				oldest = l;
		}
		if (bytes <= j->opts.max_bytes || !oldest)
			return;
		evict(j, oldest);
	}
}

/* ---- reading, by one thread for each life ----------------------------------------------------- */

/* Whether the file is what was read before, with more behind it at most. */
static bool goes_on(const struct source *s, int fd, const struct stat *st)
{
	char seen[SEEN_BYTES];

	return s->opened && s->dev == st->st_dev && s->ino == st->st_ino &&
	       (uint64_t)st->st_size >= s->seen_offset + s->seen_cnt &&
	       pread(fd, seen, s->seen_cnt, (off_t)s->seen_offset) == (ssize_t)s->seen_cnt &&
	       !memcmp(seen, s->seen, s->seen_cnt);
}

static void begin(struct source *s, const struct stat *st)
{
	*s = (struct source){.dev = st->st_dev, .ino = st->st_ino, .opened = true};
}

/* The last bytes of those that were read at s->offset. */
static void note_seen(struct source *s, const char *bytes, size_t cnt)
{
	size_t n = cnt < SEEN_BYTES ? cnt : SEEN_BYTES;

	memcpy(s->seen, bytes + cnt - n, n);
	s->seen_offset = s->offset + cnt - n;
	s->seen_cnt = n;
}

/* 0: nothing, or no more may be read. */
static size_t read_chunk(struct vp_jit *j, struct life *l, struct source *s, int fd,
			 char buf[CHUNK_BYTES])
{
	ssize_t n;

	if (l->read_bytes >= j->opts.read_bytes) {
		pthread_mutex_lock(&j->lock);
		s->cut = true;
		pthread_mutex_unlock(&j->lock);
		return 0;
	}
	n = pread(fd, buf, CHUNK_BYTES, (off_t)s->offset);
	if (n <= 0)
		return 0;
	l->read_bytes += (uint64_t)n;
	return (size_t)n;
}

static int read_map(struct vp_jit *j, struct life *l, int fd, const struct stat *st, char *buf)
{
	struct source *s = &l->map_source;
	size_t n;
	int err = 0;

	if (!goes_on(s, fd, st)) {
		pthread_mutex_lock(&j->lock);
		begin(s, st);
		perf_map_restart(&l->map);
		pthread_mutex_unlock(&j->lock);
	}
	while (!err && s->offset < (uint64_t)st->st_size &&
	       (n = read_chunk(j, l, s, fd, buf)) != 0) {
		pthread_mutex_lock(&j->lock);
		if (!l->evicted)
			err = perf_map_feed(&l->map, &l->map_table, buf, n);
		pthread_mutex_unlock(&j->lock);
		note_seen(s, buf, n);
		s->offset += n;
	}
	return err;
}

static bool is_own_dump(const struct life *l)
{
	return l->dump.pid == l->process.ns_tgid || l->dump.pid == l->id.tgid;
}

/* A step: the records of one window. Whether there may be more. */
static bool read_window(struct vp_jit *j, struct life *l, const char *buf, size_t n, uint64_t size,
			int *err)
{
	struct source *s = &l->dump_source;
	uint64_t next;

	*err = -ENOENT;
	pthread_mutex_lock(&j->lock);
	if (!l->evicted)
		*err = jitdump_feed(&l->dump, &l->dump_table, buf, n, s->offset, size, &next);
	pthread_mutex_unlock(&j->lock);
	if (*err)
		return false;
	if (s->offset == 0)
		note_seen(s, buf, n < SEEN_BYTES ? n : SEEN_BYTES);
	if (next == s->offset || !is_own_dump(l))
		return false;
	s->offset = next;
	return !l->dump.ended;
}

static int read_dump(struct vp_jit *j, struct life *l, int fd, const struct stat *st, char *buf)
{
	struct source *s = &l->dump_source;
	bool more = true;
	int err = 0;
	size_t n;

	if (!goes_on(s, fd, st)) {
		pthread_mutex_lock(&j->lock);
		begin(s, st);
		jitdump_restart(&l->dump);
		pthread_mutex_unlock(&j->lock);
	}
	while (more && !l->dump.ended && s->offset < (uint64_t)st->st_size &&
	       (n = read_chunk(j, l, s, fd, buf)) != 0)
		more = read_window(j, l, buf, n, (uint64_t)st->st_size, &err);
	return err == -ENOMEM ? err : 0;
}

static int read_files(struct vp_jit *j, struct life *l, const struct vp_mapped_file *mapped)
{
	int root_fd = jit_process_open(&l->process, &l->id), fd, err = 0;
	char *buf = malloc(CHUNK_BYTES);
	struct stat st;

	if (root_fd < 0 || !buf)
		goto cleanup;
	fd = jit_process_open_dump(&l->process, &l->id, root_fd, mapped, &st);
	if (fd >= 0) {
		err = read_dump(j, l, fd, &st, buf);
		close(fd);
	}
	fd = jit_process_open_map(&l->process, root_fd, &st);
	if (fd >= 0 && !err)
		err = read_map(j, l, fd, &st, buf);
	if (fd >= 0)
		close(fd);
cleanup:
	if (root_fd >= 0)
		close(root_fd);
	if (!buf)
		err = -ENOMEM;
	free(buf);
	return err;
}

static int set_mapped(struct life *l, const struct vp_mapped_file *m)
{
	char *name;

	if (!m)
		return 0;
	name = strdup(m->name);
	if (!name)
		return -ENOMEM;
	free((char *)l->mapped.name);
	l->mapped = *m;
	l->mapped.name = name;
	return 0;
}

#define TICK_NS 10000000ULL

/*
 * /proc tells when a process started in ticks, and nothing of its execs: the life that is known
 * more exactly, the last one of several.
 */
static void make_exact(const struct vp_jit *j, struct vp_proc_id *id)
{
	const struct vp_proc_id told = *id;

	for (size_t i = 0; i < j->cnt; i++) {
		const struct vp_proc_id *known = &j->lives[i]->id;

		if (known->tgid == told.tgid && known->start_ns + TICK_NS > told.start_ns &&
		    known->start_ns < told.start_ns + 2 * TICK_NS && known->exec_id >= id->exec_id)
			*id = *known;
	}
}

/* Whose copy it is, if nobody has told: with the lock held, and taken off meanwhile. */
static void ask_parent(struct vp_jit *j, struct life *l)
{
	struct vp_proc_id from;
	bool is_copy;

	if (l->parent_asked || l->from.tgid)
		return;
	l->parent_asked = true;
	pthread_mutex_unlock(&j->lock);
	is_copy = !jit_process_copied_from(&l->id, &from);
	pthread_mutex_lock(&j->lock);
	if (!is_copy || l->from.tgid)
		return;
	make_exact(j, &from);
	l->from = from;
}

/* Takes the lock off meanwhile. */
static int read_life(struct vp_jit *j, struct life *l)
{
	struct vp_mapped_file mapped = l->mapped;
	const bool known = mapped.name != NULL;
	char *name = known ? strdup(mapped.name) : NULL;
	int err = -ENOMEM;

	mapped.name = name;
	l->ask_again = false;
	pthread_mutex_unlock(&j->lock);
	if (name || !known)
		err = read_files(j, l, name ? &mapped : NULL);
	free(name);
	pthread_mutex_lock(&j->lock);
	keep_limit(j);
	return err;
}

/* With the lock held. NULL: no memory, or *full: there are too many. */
static struct life *get_life(struct vp_jit *j, const struct vp_proc_id *id, bool *full)
{
	struct life *l = find_life(j, id);

	*full = !l && j->cnt >= LIVES_MAX;
	if (*full)
		j->evicted_cnt++;
	return l || *full ? l : add_life(j, id);
}

/*
 * With the lock held; NULL: not to be read now, and *err says whether that is one. The jitdump may
 * be known from a copy's mapping only, which is older than an own one.
 */
static struct life *begin_life(struct vp_jit *j, const struct vp_proc_id *id,
			       const struct vp_mapped_file *mapped, bool is_own, int *err)
{
	bool full;
	struct life *l = get_life(j, id, &full);

	*err = 0;
	if (full)
		return NULL;
	if (!l || (!(l->mapped.name && !is_own) && set_mapped(l, mapped))) {
		*err = -ENOMEM;
		return NULL;
	}
	l->used = ++j->calls;
	l->ask_again = true;
	return l->is_read || l->evicted ? NULL : l;
}

/* With the lock held. */
static int read_one(struct vp_jit *j, const struct vp_proc_id *id,
		    const struct vp_mapped_file *dump, bool is_own)
{
	int err;
	struct life *l = begin_life(j, id, dump, is_own, &err);

	if (l)
		l->is_read = true;
	if (l)
		ask_parent(j, l);
	while (l && l->ask_again && !l->evicted && !err)
		err = read_life(j, l);
	if (l)
		l->is_read = false;
	return err;
}

/* A copy of a copy …: of a process that forks on and on, the eldest are not asked. */
#define ANCESTORS_MAX 16

static const struct vp_proc_id *parent_of(const struct vp_jit *j, const struct vp_proc_id *id)
{
	const struct life *l = find_life(j, id);

	return l && l->from.tgid ? &l->from : NULL;
}

int vp_jit_read(struct vp_jit *j, const struct vp_proc_id *life, const struct vp_mapped_file *dump)
{
	int err;

	pthread_mutex_lock(&j->lock);
	err = read_one(j, life, dump, true);
	for (int i = 1; i < ANCESTORS_MAX && !err && (life = parent_of(j, life)); i++)
		err = read_one(j, life, dump, false);
	pthread_mutex_unlock(&j->lock);
	return err;
}

/* ---- asking ----------------------------------------------------------------------------------- */

int vp_jit_inherit(struct vp_jit *j, const struct vp_proc_id *life, const struct vp_proc_id *from)
{
	struct life *l;
	bool full;

	pthread_mutex_lock(&j->lock);
	l = get_life(j, life, &full);
	if (l)
		l->from = *from;
	pthread_mutex_unlock(&j->lock);
	return l || full ? 0 : -ENOMEM;
}

static bool find_in_life(struct life *l, uint64_t addr, struct jit_found *found,
			 const char **source)
{
	*source = "jitdump";
	if (jit_table_find(&l->dump_table, addr, found))
		return true;
	*source = "perf_map";
	return jit_table_find(&l->map_table, addr, found);
}

static bool find_code(struct vp_jit *j, const struct vp_proc_id *life, uint64_t addr,
		      struct jit_found *found, const char **source)
{
	struct life *l = find_life(j, life);

	for (int i = 0; l && i < ANCESTORS_MAX; i++) {
		if (find_in_life(l, addr, found, source))
			return true;
		l = l->from.tgid ? find_life(j, &l->from) : NULL;
	}
	return false;
}

int vp_jit_look_up(struct vp_jit *j, const struct vp_proc_id *life, uint64_t addr,
		   struct vp_jit_symbol *out)
{
	struct jit_found found;
	bool is_there;

	pthread_mutex_lock(&j->lock);
	is_there = find_code(j, life, addr, &found, &out->source);
	if (is_there) {
		stpcpy(out->name, found.name);
		snprintf(out->file, sizeof(out->file), "%s", found.file ? found.file : "");
		out->line = found.file ? found.line : 0;
		out->offset = found.offset;
	}
	pthread_mutex_unlock(&j->lock);
	return is_there ? 0 : -ENOENT;
}

void vp_jit_get_stats(struct vp_jit *j, struct vp_jit_stats *out)
{
	*out = (struct vp_jit_stats){0};
	pthread_mutex_lock(&j->lock);
	for (size_t i = 0; i < j->cnt; i++) {
		const struct life *l = j->lives[i];

		out->life_cnt += life_bytes(l) != 0;
		out->bytes += life_bytes(l);
		out->bad_cnt += l->map.bad_cnt + l->dump.bad_cnt;
		out->dropped_cnt += l->map_table.dropped_cnt + l->dump_table.dropped_cnt;
		out->cut_cnt += l->map_source.cut + l->dump_source.cut;
	}
	out->evicted_cnt = j->evicted_cnt;
	pthread_mutex_unlock(&j->lock);
}

/* ---- life ------------------------------------------------------------------------------------- */

int vp_jit_new(struct vp_jit **out, const struct vp_jit_opts *opts)
{
	struct vp_jit *j = calloc(1, sizeof(*j));

	if (!j)
		return -ENOMEM;
	if (opts)
		j->opts = *opts;
	if (!j->opts.process_bytes)
		j->opts.process_bytes = PROCESS_BYTES;
	if (!j->opts.max_bytes)
		j->opts.max_bytes = MAX_BYTES;
	if (!j->opts.read_bytes)
		j->opts.read_bytes = READ_BYTES;
	pthread_mutex_init(&j->lock, NULL);
	*out = j;
	return 0;
}

void vp_jit_free(struct vp_jit *j)
{
	if (!j)
		return;
	for (size_t i = 0; i < j->cnt; i++) {
		free((char *)j->lives[i]->mapped.name);
		perf_map_free(&j->lives[i]->map);
		jitdump_free(&j->lives[i]->dump);
		jit_table_clear(&j->lives[i]->map_table);
		jit_table_clear(&j->lives[i]->dump_table);
		free(j->lives[i]);
	}
	free(j->lives);
	vp_index_free(&j->index);
	pthread_mutex_destroy(&j->lock);
	free(j);
}
