/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "jitdump.h"

#include <errno.h>
#include <string.h>

#define MAGIC	0x4a695444U /* "JiTD", written as a number of the machine's byte order */
#define VERSION 1

struct header {
	uint32_t magic;
	uint32_t version;
	uint32_t total_size; /* of the header */
	uint32_t elf_mach;
	uint32_t pad;
	uint32_t pid;
	uint64_t timestamp;
	uint64_t flags;
};

enum record_id {
	CODE_LOAD,
	CODE_MOVE,
	CODE_DEBUG_INFO,
	CODE_CLOSE,
	CODE_UNWINDING_INFO,
};

struct prefix {
	uint32_t id;
	uint32_t total_size; /* this included */
	uint64_t timestamp;
};

/* The function's name and the code follow. */
struct load {
	struct prefix prefix;
	uint32_t pid, tid;
	uint64_t vma;
	uint64_t code_addr;
	uint64_t code_size;
	uint64_t code_index;
};

struct move {
	struct prefix prefix;
	uint32_t pid, tid;
	uint64_t vma;
	uint64_t old_code_addr;
	uint64_t new_code_addr;
	uint64_t code_size;
	uint64_t code_index;
};

_Static_assert(sizeof(struct header) == 40 && sizeof(struct prefix) == 16 &&
		       sizeof(struct load) == 56 && sizeof(struct move) == 64,
	       "as perf's specification has them");

/* Bytes of a record that are looked at: more of a name is cut anyway. */
#define NEEDED_MAX (sizeof(struct move) + VP_JIT_NAME_BYTES)

_Static_assert(NEEDED_MAX <= JITDUMP_WINDOW_BYTES, "a window holds what is looked at");

static int read_header(struct jitdump *d, const char *at, size_t cnt, uint64_t *next)
{
	struct header h;

	if (cnt < sizeof(h))
		return 0;
	memcpy(&h, at, sizeof(h));
	if (h.magic != MAGIC || h.version != VERSION || h.total_size < sizeof(h)) {
		d->ended = true;
		return -ENOEXEC;
	}
	d->begun = true;
	d->pid = h.pid;
	*next = h.total_size;
	return 0;
}

/* has is how much of the record is at hand: all, or NEEDED_MAX. */
static int read_load(struct jit_table *t, const char *at, size_t has)
{
	struct load l;
	uint64_t name_len;

	if (has < sizeof(l))
		return -EINVAL;
	memcpy(&l, at, sizeof(l));
	if (l.code_size >= l.prefix.total_size - sizeof(l))
		return -EINVAL;
	name_len = l.prefix.total_size - sizeof(l) - l.code_size;
	if (name_len > has - sizeof(l))
		name_len = has - sizeof(l);
	return jit_table_add(t,
			     &(struct jit_code){.start = l.code_addr,
						.size = l.code_size,
						.time = l.prefix.timestamp,
						.index = l.code_index},
			     at + sizeof(l), name_len);
}

static int read_move(struct jit_table *t, const char *at, size_t has)
{
	struct move m;

	if (has < sizeof(m))
		return -EINVAL;
	memcpy(&m, at, sizeof(m));
	return jit_table_move(t, &(struct jit_code){.start = m.new_code_addr,
						    .size = m.code_size,
						    .time = m.prefix.timestamp,
						    .index = m.code_index});
}

static int read_record(struct jitdump *d, struct jit_table *t, const char *at, size_t has)
{
	struct prefix p;
	int err = 0;

	memcpy(&p, at, sizeof(p));
	switch (p.id) {
	case CODE_LOAD:
		err = read_load(t, at, has);
		break;
	case CODE_MOVE:
		err = read_move(t, at, has);
		break;
	case CODE_CLOSE:
		d->ended = true;
		break;
	default:
		break;
	}
	if (err == -EINVAL) {
		d->bad_cnt++;
		err = 0;
	}
	return err;
}

/* Bytes that must be at hand of the record at `at`, or 0: it is damaged, or not there as a whole. */
static size_t needed(struct jitdump *d, const struct prefix *p, uint64_t left)
{
	if (p->total_size < sizeof(*p)) {
		d->bad_cnt++;
		d->ended = true;
		return 0;
	}
	if (p->total_size > left)
		return 0;
	return p->total_size < NEEDED_MAX ? p->total_size : NEEDED_MAX;
}

int jitdump_feed(struct jitdump *d, struct jit_table *t, const void *window, size_t cnt,
		 uint64_t offset, uint64_t size, uint64_t *next)
{
	uint64_t at = offset;
	int err = 0;

	*next = offset;
	if (d->ended)
		return 0;
	if (!d->begun)
		return read_header(d, window, cnt, next);
	while (!err && !d->ended && at - offset + sizeof(struct prefix) <= cnt) {
		const char *record = (const char *)window + (at - offset);
		struct prefix p;
		size_t has;

		memcpy(&p, record, sizeof(p));
		has = needed(d, &p, size > at ? size - at : 0);
		if (!has || has > cnt - (at - offset))
			break;
		err = read_record(d, t, record, has);
		at += p.total_size;
	}
	*next = at;
	return err;
}
