// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "perfdata_maps.h"

#include <stdlib.h>
#include <string.h>

#define BUCKET_CNT 16384

/* A JVM has a few thousand executable mappings; more than this is a runaway. */
#define PROC_MAPS_MAX 8192

/* Enough that a parent that exits right after fork (a daemon) is still there for its child. */
#define EXITED_MAX 1024

struct pd_name {
	struct pd_name *next; /* in its hash bucket */
	uint32_t refs;
	uint32_t hash;
	uint32_t len; /* without NUL */
	char text[];
};

TAILQ_HEAD(pd_age, pd_proc);

struct pd_maps {
	uint64_t max_bytes, bytes;
	uint64_t dropped;
	uint32_t exited_cnt;
	struct pd_age living, exited; /* the first to be forgotten in front */
	struct pd_proc *procs[BUCKET_CNT];
	struct pd_name *names[BUCKET_CNT];
};

/* ---- names ---- */

/* FNV-1a. */
static uint32_t hash_bytes(const char *s, size_t len)
{
	uint32_t h = 2166136261u;

	for (size_t i = 0; i < len; i++)
		h = (h ^ (unsigned char)s[i]) * 16777619u;
	return h;
}

static struct pd_name *name_new(struct pd_maps *m, const char *text, uint32_t len, uint32_t hash)
{
	struct pd_name *n = malloc(sizeof(*n) + len + 1);

	if (!n)
		return NULL;
	*n = (struct pd_name){
		.next = m->names[hash % BUCKET_CNT], .refs = 1, .hash = hash, .len = len};
	memcpy(n->text, text, len + 1);
	m->names[hash % BUCKET_CNT] = n;
	m->bytes += sizeof(*n) + len + 1;
	return n;
}

static struct pd_name *name_get(struct pd_maps *m, const char *text)
{
	uint32_t len = (uint32_t)strlen(text);
	uint32_t hash = hash_bytes(text, len);

	for (struct pd_name *n = m->names[hash % BUCKET_CNT]; n; n = n->next) {
		if (n->hash == hash && n->len == len && !memcmp(n->text, text, len)) {
			n->refs++;
			return n;
		}
	}
	return name_new(m, text, len, hash);
}

static void name_put(struct pd_maps *m, struct pd_name *name)
{
	struct pd_name **p = &m->names[name->hash % BUCKET_CNT];

	if (--name->refs)
		return;
	while (*p != name)
		p = &(*p)->next;
	*p = name->next;
	m->bytes -= sizeof(*name) + name->len + 1;
	free(name);
}

const char *pd_map_name(const struct pd_map *map)
{
	return map->name->text;
}

/* ---- processes ---- */

static struct pd_proc **bucket(const struct pd_maps *m, uint32_t tgid)
{
	return (struct pd_proc **)&m->procs[tgid % BUCKET_CNT];
}

static bool same_life(const struct vp_proc_id *a, const struct vp_proc_id *b)
{
	return a->tgid == b->tgid && a->start_ns == b->start_ns && a->exec_id == b->exec_id;
}

struct pd_proc *pd_maps_find(const struct pd_maps *m, const struct vp_proc_id *id)
{
	struct pd_proc *p = *bucket(m, id->tgid);

	while (p && !same_life(&p->id, id))
		p = p->next;
	return p;
}

bool pd_maps_other_life(const struct pd_maps *m, const struct vp_proc_id *id)
{
	for (struct pd_proc *p = *bucket(m, id->tgid); p; p = p->next) {
		if (p->id.tgid == id->tgid && !same_life(&p->id, id))
			return true;
	}
	return false;
}

static void leave_age(struct pd_maps *m, struct pd_proc *p)
{
	TAILQ_REMOVE(p->exited ? &m->exited : &m->living, p, age);
	m->exited_cnt -= p->exited;
}

static void enter_age(struct pd_maps *m, struct pd_proc *p, bool exited)
{
	p->exited = exited;
	m->exited_cnt += exited;
	TAILQ_INSERT_TAIL(exited ? &m->exited : &m->living, p, age);
}

static void proc_free(struct pd_maps *m, struct pd_proc *p)
{
	struct pd_proc **link = bucket(m, p->id.tgid);

	while (*link != p)
		link = &(*link)->next;
	*link = p->next;
	leave_age(m, p);
	for (uint32_t i = 0; i < p->cnt; i++)
		name_put(m, p->maps[i].name);
	m->bytes -= sizeof(*p) + p->cap * sizeof(*p->maps);
	free(p->maps);
	free(p);
}

static struct pd_proc *first_unpinned(struct pd_age *list)
{
	struct pd_proc *p = TAILQ_FIRST(list);

	while (p && p->pinned)
		p = TAILQ_NEXT(p, age);
	return p;
}

/* Forgets processes until want more bytes fit; false if even all of them are not enough. */
static bool make_room(struct pd_maps *m, uint64_t want)
{
	while (m->bytes + want > m->max_bytes) {
		struct pd_proc *p = first_unpinned(&m->exited);

		if (!p) {
			p = first_unpinned(&m->living);
			if (!p)
				return false;
			m->dropped += p->cnt;
		}
		proc_free(m, p);
	}
	return true;
}

static struct pd_proc *proc_new(struct pd_maps *m, const struct vp_proc_id *id)
{
	struct pd_proc **link = bucket(m, id->tgid);
	struct pd_proc *p;

	if (!make_room(m, sizeof(*p)))
		return NULL;
	p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	p->id = *id;
	p->next = *link;
	*link = p;
	enter_age(m, p, false);
	m->bytes += sizeof(*p);
	return p;
}

struct pd_proc *pd_maps_get(struct pd_maps *m, const struct vp_proc_id *id)
{
	struct pd_proc *p = pd_maps_find(m, id);

	if (!p)
		return proc_new(m, id);
	leave_age(m, p);
	enter_age(m, p, false);
	return p;
}

void pd_maps_exec(struct pd_maps *m, const struct vp_proc_id *id)
{
	struct pd_proc *p, *next;

	for (p = *bucket(m, id->tgid); p; p = next) {
		next = p->next;
		if (p->id.tgid == id->tgid && !same_life(&p->id, id))
			proc_free(m, p);
	}
}

void pd_maps_exit(struct pd_maps *m, const struct vp_proc_id *id)
{
	struct pd_proc *p = pd_maps_find(m, id);

	if (!p || p->exited)
		return;
	leave_age(m, p);
	enter_age(m, p, true);
	if (m->exited_cnt > EXITED_MAX)
		proc_free(m, TAILQ_FIRST(&m->exited));
}

/* ---- mappings ---- */

/* Index of the first mapping that ends above addr; cnt if none does. */
static uint32_t first_ending_above(const struct pd_proc *p, uint64_t addr)
{
	uint32_t lo = 0, hi = p->cnt;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (p->maps[mid].end > addr)
			hi = mid;
		else
			lo = mid + 1;
	}
	return lo;
}

bool pd_proc_overlaps(const struct pd_proc *p, uint64_t start, uint64_t end)
{
	uint32_t i = first_ending_above(p, start);

	return i < p->cnt && p->maps[i].start < end;
}

struct pd_map *pd_proc_at(const struct pd_proc *p, uint64_t addr)
{
	uint32_t i = first_ending_above(p, addr);

	return i < p->cnt && p->maps[i].start <= addr ? &p->maps[i] : NULL;
}

static bool grow(struct pd_maps *m, struct pd_proc *p, uint32_t want)
{
	uint32_t cap = p->cap ? p->cap * 2 : 8;
	struct pd_map *maps;

	if (want <= p->cap)
		return true;
	if (want > PROC_MAPS_MAX || !make_room(m, (cap - p->cap) * sizeof(*maps)))
		return false;
	maps = realloc(p->maps, cap * sizeof(*maps));
	if (!maps)
		return false;
	m->bytes += (cap - p->cap) * sizeof(*maps);
	p->maps = maps;
	p->cap = cap;
	return true;
}

static void insert_at(struct pd_proc *p, uint32_t i, const struct pd_map *map)
{
	memmove(&p->maps[i + 1], &p->maps[i], (p->cnt - i) * sizeof(*map));
	p->maps[i] = *map;
	p->cnt++;
}

static void move_start(struct pd_map *map, uint64_t start)
{
	if (map->ino) /* anonymous memory and the vdso have no offset to keep in step */
		map->pgoff += start - map->start;
	map->start = start;
}

/*
 * Clears [start, end): what lies inside goes, what reaches in is cut. Returns where a mapping
 * of that range belongs. Splitting one mapping in two needs one free slot.
 */
static uint32_t cut(struct pd_maps *m, struct pd_proc *p, uint64_t start, uint64_t end)
{
	uint32_t i = first_ending_above(p, start);
	uint32_t j;

	if (i < p->cnt && p->maps[i].start < start) {
		struct pd_map tail = p->maps[i];

		p->maps[i++].end = start;
		if (tail.end > end) {
			tail.name->refs++;
			move_start(&tail, end);
			insert_at(p, i, &tail);
			return i;
		}
	}
	for (j = i; j < p->cnt && p->maps[j].end <= end; j++)
		name_put(m, p->maps[j].name);
	memmove(&p->maps[i], &p->maps[j], (p->cnt - j) * sizeof(*p->maps));
	p->cnt -= j - i;
	if (i < p->cnt && p->maps[i].start < end)
		move_start(&p->maps[i], end);
	return i;
}

static bool add(struct pd_maps *m, struct pd_proc *p, const struct pd_map *map, const char *text)
{
	struct pd_map copy = *map;

	/* The name is counted as if it were new: a shared one only leaves room to spare. */
	if (!grow(m, p, p->cnt + 2) || !make_room(m, sizeof(struct pd_name) + strlen(text) + 1))
		return false;
	copy.name = name_get(m, text);
	if (!copy.name)
		return false;
	copy.replaced = pd_proc_overlaps(p, map->start, map->end);
	insert_at(p, cut(m, p, map->start, map->end), &copy);
	if (map->time_ns > p->newest_ns)
		p->newest_ns = map->time_ns;
	return true;
}

void pd_maps_add(struct pd_maps *m, struct pd_proc *p, const struct pd_map *map, const char *name)
{
	bool pinned;

	if (map->start >= map->end)
		return;
	if (!p) {
		m->dropped++;
		return;
	}
	pinned = p->pinned;
	p->pinned = true;
	if (!add(m, p, map, name))
		m->dropped++;
	p->pinned = pinned;
}

/* ---- all ---- */

struct pd_maps *pd_maps_new(uint64_t max_bytes)
{
	struct pd_maps *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	m->max_bytes = max_bytes;
	TAILQ_INIT(&m->living);
	TAILQ_INIT(&m->exited);
	return m;
}

static void free_all(struct pd_maps *m, struct pd_age *list)
{
	struct pd_proc *p, *next;

	for (p = TAILQ_FIRST(list); p; p = next) {
		next = TAILQ_NEXT(p, age);
		proc_free(m, p);
	}
}

void pd_maps_free(struct pd_maps *m)
{
	if (!m)
		return;
	free_all(m, &m->living);
	free_all(m, &m->exited);
	free(m);
}

uint64_t pd_maps_dropped(const struct pd_maps *m)
{
	return m->dropped;
}

uint64_t pd_maps_bytes(const struct pd_maps *m)
{
	return m->bytes;
}
