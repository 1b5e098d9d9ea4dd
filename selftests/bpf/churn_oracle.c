/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "churn_oracle.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define ARENA_PAGES   (CHURN_SECTIONS * CHURN_PAGES)
#define LISTS_OF_MM   (ARENA_PAGES + 1) /* the last: what lies elsewhere */
#define CLOCK_SLOP_NS 2000		/* the two sides read the clock in different ways */

int churn_log_create(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600), err = 0;

	if (fd < 0)
		return -errno;
	if (ftruncate(fd, sizeof(struct churn_log)))
		err = -errno;
	close(fd);
	return err;
}

static uint32_t list_of(uint32_t mm, uint64_t addr)
{
	uint64_t page = (addr - CHURN_ARENA) / CHURN_PAGE;

	if (addr < CHURN_ARENA || page >= ARENA_PAGES)
		page = ARENA_PAGES;
	return mm * LISTS_OF_MM + (uint32_t)page;
}

static bool has_range(const struct churn_entry *e)
{
	return e->before_ns &&
	       (e->state == CHURN_NONE || e->state == CHURN_FILE || e->state == CHURN_ANON) &&
	       e->op != CHURN_OP_EXEC;
}

/* Entries of one page are in the order of time: the churner changes it under a lock. */
static void sort(struct churn_oracle *o)
{
	uint32_t sum = 0;

	for (uint32_t i = 0; i < o->entry_cnt; i++) {
		const struct churn_entry *e = &o->log->entry[i];

		if (has_range(e))
			o->list[list_of(e->mm, e->start)].cnt++;
		if (e->before_ns && e->state == CHURN_BIND && !o->mm[e->mm].before_ns)
			o->mm[e->mm] = (struct churn_mm){e->other_mm, e->before_ns, e->after_ns};
	}
	for (uint32_t i = 0; i < o->mm_cnt * LISTS_OF_MM; i++) {
		o->list[i].first = sum;
		sum += o->list[i].cnt;
		o->list[i].cnt = 0;
	}
	for (uint32_t i = 0; i < o->entry_cnt; i++) {
		const struct churn_entry *e = &o->log->entry[i];
		struct churn_list *l = &o->list[list_of(e->mm, e->start)];

		if (has_range(e))
			o->order[l->first + l->cnt++] = i;
	}
}

int churn_oracle_open(struct churn_oracle *o, const char *path)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);

	*o = (struct churn_oracle){0};
	if (fd < 0)
		return -errno;
	o->log = mmap(NULL, sizeof(*o->log), PROT_READ, MAP_SHARED, fd, 0);
	close(fd);
	if (o->log == MAP_FAILED) {
		o->log = NULL;
		return -ENOMEM;
	}
	o->entry_cnt = o->log->next < CHURN_ENTRIES ? o->log->next : CHURN_ENTRIES;
	o->mm_cnt = o->log->mm + 1;
	o->order = calloc(o->entry_cnt + 1, sizeof(*o->order));
	o->list = calloc((size_t)o->mm_cnt * LISTS_OF_MM, sizeof(*o->list));
	o->mm = calloc(o->mm_cnt, sizeof(*o->mm));
	if (!o->order || !o->list || !o->mm) {
		churn_oracle_close(o);
		return -ENOMEM;
	}
	sort(o);
	return 0;
}

void churn_oracle_close(struct churn_oracle *o)
{
	if (o->log)
		munmap(o->log, sizeof(*o->log));
	free(o->order);
	free(o->list);
	free(o->mm);
	*o = (struct churn_oracle){0};
}

uint32_t churn_oracle_mm(const struct churn_oracle *o, uint32_t tgid, uint32_t execs)
{
	for (uint32_t i = 0; i < o->entry_cnt; i++) {
		const struct churn_entry *e = &o->log->entry[i];

		if (e->state == CHURN_BIND && e->tgid == tgid && e->execs == execs)
			return e->mm;
	}
	return 0;
}

bool churn_oracle_execs(const struct churn_oracle *o, uint32_t tgid, uint32_t execs, uint64_t hi_ns)
{
	for (uint32_t i = 0; i < o->entry_cnt; i++) {
		const struct churn_entry *e = &o->log->entry[i];

		if (e->op == CHURN_OP_EXEC && e->tgid == tgid && e->execs == execs)
			return e->before_ns <= hi_ns + CLOCK_SLOP_NS;
	}
	return false;
}

static bool is_own(const struct churn_entry *e, const struct churn_moment *when)
{
	return e->tid == when->tid;
}

static bool may_have_begun(const struct churn_entry *e, const struct churn_moment *when)
{
	return e->before_ns <= (is_own(e, when) ? when->own_ns : when->hi_ns) + CLOCK_SLOP_NS;
}

static bool has_ended(const struct churn_entry *e, const struct churn_moment *when)
{
	return e->after_ns && e->after_ns + CLOCK_SLOP_NS + when->trust_ns <=
				      (is_own(e, when) ? when->own_ns : when->lo_ns);
}

static void add(struct churn_maybe *out, const struct churn_entry *e, uint64_t addr)
{
	if (out->cnt == CHURN_MAYBE_MAX)
		return;
	out->is[out->cnt].state = e->state;
	out->is[out->cnt].file = e->file;
	out->is[out->cnt++].offset = addr - e->start + e->pgoff;
}

static bool is_in_arena(uint64_t addr)
{
	return addr >= CHURN_ARENA && addr < CHURN_ARENA + ARENA_PAGES * CHURN_PAGE;
}

/* What is not covered by an entry of mm is what the one it was copied from had when it was. */
void churn_oracle_look(const struct churn_oracle *o, uint32_t mm, uint64_t addr,
		       const struct churn_moment *when, struct churn_maybe *out)
{
	const struct churn_entry nothing = {.state = CHURN_NONE};
	struct churn_moment at = *when;

	out->cnt = 0;
	while (mm && mm < o->mm_cnt) {
		const struct churn_list *l = &o->list[list_of(mm, addr)];

		for (uint32_t i = l->cnt; i-- > 0;) {
			const struct churn_entry *e = &o->log->entry[o->order[l->first + i]];

			if (addr < e->start || addr >= e->end || !may_have_begun(e, &at))
				continue;
			add(out, e, addr);
			if (has_ended(e, &at))
				return;
		}
		at = (struct churn_moment){.lo_ns = o->mm[mm].before_ns,
					   .hi_ns = o->mm[mm].after_ns,
					   .trust_ns = when->trust_ns};
		mm = o->mm[mm].other_mm;
	}
	if (out->cnt || is_in_arena(addr))
		add(out, &nothing, addr);
}

static bool list_changed(const struct churn_oracle *o, const struct churn_list *l, uint64_t start,
			 uint64_t end, uint64_t from_ns, uint64_t to_ns)
{
	for (uint32_t i = 0; i < l->cnt; i++) {
		const struct churn_entry *e = &o->log->entry[o->order[l->first + i]];

		if (e->start < end && e->end > start && e->before_ns <= to_ns + CLOCK_SLOP_NS &&
		    (!e->after_ns || e->after_ns + CLOCK_SLOP_NS >= from_ns))
			return true;
	}
	return false;
}

bool churn_oracle_changed(const struct churn_oracle *o, uint32_t mm, uint64_t start, uint64_t end,
			  uint64_t from_ns, uint64_t to_ns)
{
	while (mm && mm < o->mm_cnt) {
		const struct churn_list *l = &o->list[mm * LISTS_OF_MM];

		for (uint32_t i = 0; i < LISTS_OF_MM; i++)
			if (list_changed(o, &l[i], start, end, from_ns, to_ns))
				return true;
		to_ns = o->mm[mm].after_ns;
		mm = from_ns < to_ns ? o->mm[mm].other_mm : 0;
	}
	return false;
}

#define LOCKED_NS 100000 /* a stack is taken from its time on, or until it */

bool churn_oracle_is_locked(const struct churn_oracle *o, uint32_t mm,
			    const struct churn_moment *when)
{
	for (uint32_t i = 0; i < o->entry_cnt; i++) {
		const struct churn_entry *e = &o->log->entry[i];
		uint64_t around = is_own(e, when) ? 0 : LOCKED_NS;

		if (e->before_ns && (e->mm == mm || e->other_mm == mm) &&
		    e->before_ns <= when->own_ns + around &&
		    (!e->after_ns || e->after_ns + around >= when->own_ns))
			return true;
	}
	return false;
}

/* ---- messages -------------------------------------------------------------------------------- */

static void say(char **text, size_t *size, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(*text, *size, fmt, ap);
	va_end(ap);
	if (n > 0 && (size_t)n < *size) {
		*text += n;
		*size -= (size_t)n;
	}
}

#define OP_NAME(name) #name,
static const char *const op_names[] = {CHURN_OPS(OP_NAME)};
static const char *const state_names[] = {"void", "none", "file", "anon", "bind"};

static double us(uint64_t ns, uint64_t base_ns)
{
	return (double)(int64_t)(ns - base_ns) / 1000;
}

static void say_entry(char **text, size_t *size, const struct churn_entry *e, uint64_t base_ns)
{
	say(text, size, "\n    mm %u %u/%u %s %" PRIx64 "-%" PRIx64 " %s", e->mm, e->tgid, e->tid,
	    op_names[e->op < CHURN_OP_CNT ? e->op : 0], e->start, e->end, state_names[e->state]);
	if (e->state == CHURN_FILE)
		say(text, size, " %u+%" PRIx64, e->file, e->pgoff);
	say(text, size, ", %.1f", us(e->before_ns, base_ns));
	if (e->after_ns)
		say(text, size, " … %.1f µs", us(e->after_ns, base_ns));
	else
		say(text, size, " µs …");
}

#define AROUND_NS 5000000 /* and the last one before that */

/* The entries from the last that had ended well before the moment to a while after it. */
static void say_list(char **text, size_t *size, const struct churn_oracle *o,
		     const struct churn_list *l, uint64_t addr, const struct churn_moment *when)
{
	uint32_t i = l->cnt;

	while (i > 0) {
		const struct churn_entry *e = &o->log->entry[o->order[l->first + --i]];

		if (addr >= e->start && addr < e->end && e->before_ns + AROUND_NS < when->lo_ns)
			break;
	}
	for (; i < l->cnt; i++) {
		const struct churn_entry *e = &o->log->entry[o->order[l->first + i]];

		if (addr >= e->start && addr < e->end && e->before_ns < when->hi_ns + AROUND_NS)
			say_entry(text, size, e, when->own_ns);
	}
}

void churn_oracle_tell(const struct churn_oracle *o, uint32_t mm, uint64_t addr,
		       const struct churn_moment *when, char *text, size_t size)
{
	text[0] = '\0';
	say(&text, &size, "the log of mm %u, copied from %u at %.1f … %.1f µs:", mm,
	    o->mm[mm].other_mm, us(o->mm[mm].before_ns, when->own_ns),
	    us(o->mm[mm].after_ns, when->own_ns));
	for (; mm && mm < o->mm_cnt; mm = o->mm[mm].other_mm)
		say_list(&text, &size, o, &o->list[list_of(mm, addr)], addr, when);
}
