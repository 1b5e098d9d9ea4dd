/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "range_map.h"

#include "../util/array.h"

/* A sweep from left to right; the ranges around the current address are in a heap. */
struct sweep {
	struct range_map *m;
	uint64_t *order; /* lo << 32 | index */
	uint32_t *heap;	 /* indices, the largest on top */
	size_t heap_cnt, next;
};

int range_map_add(struct range_map *m, struct addr_range r)
{
	if (vp_array_room((void **)&m->range, &m->cap, m->cnt, 1, sizeof(r)))
		return -ENOMEM;
	m->range[m->cnt++] = r;
	return 0;
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static void push(struct sweep *s, uint32_t index)
{
	size_t i = s->heap_cnt++;

	for (; i && s->heap[(i - 1) / 2] < index; i = (i - 1) / 2)
		s->heap[i] = s->heap[(i - 1) / 2];
	s->heap[i] = index;
}

static void pop(struct sweep *s)
{
	uint32_t last = s->heap[--s->heap_cnt];
	size_t i = 0, child;

	while ((child = 2 * i + 1) < s->heap_cnt) {
		child += child + 1 < s->heap_cnt && s->heap[child + 1] > s->heap[child];
		if (s->heap[child] < last)
			break;
		s->heap[i] = s->heap[child];
		i = child;
	}
	s->heap[i] = last;
}

static void push_started(struct sweep *s, uint32_t at)
{
	while (s->next < s->m->cnt && s->order[s->next] >> 32 <= at)
		push(s, (uint32_t)s->order[s->next++]);
}

static void emit(struct range_map *m, uint32_t at, uint32_t which)
{
	if (m->flat_cnt && m->which[m->flat_cnt - 1] == which)
		return;
	m->start[m->flat_cnt] = at;
	m->which[m->flat_cnt++] = which;
}

static void run(struct sweep *s)
{
	struct range_map *m = s->m;
	uint32_t at = 0;

	for (;;) {
		while (s->heap_cnt && m->range[s->heap[0]].hi <= at)
			pop(s);
		if (!s->heap_cnt) {
			emit(m, at, RANGE_NONE);
			if (s->next == m->cnt)
				return;
			at = (uint32_t)(s->order[s->next] >> 32);
			push_started(s, at);
			continue;
		}
		uint32_t end = m->range[s->heap[0]].hi;
		emit(m, at, s->heap[0]);
		if (s->next < m->cnt && s->order[s->next] >> 32 < end)
			end = (uint32_t)(s->order[s->next] >> 32);
		at = end;
		push_started(s, at);
	}
}

/* Smaller if it can be had. */
static void *trim(void *p, size_t cnt, size_t size)
{
	void *smaller = cnt ? realloc(p, cnt * size) : NULL;

	return smaller ? smaller : p;
}

int range_map_flatten(struct range_map *m)
{
	struct sweep s = {.m = m};
	/* Each range begins and ends one flat one, and so does the gap before. */
	size_t max = 2 * m->cnt + 2;

	if (!m->cnt)
		return 0;
	s.order = malloc(m->cnt * sizeof(*s.order));
	s.heap = malloc(m->cnt * sizeof(*s.heap));
	m->start = malloc(max * sizeof(*m->start));
	m->which = malloc(max * sizeof(*m->which));
	if (!s.order || !s.heap || !m->start || !m->which) {
		free(s.order);
		free(s.heap);
		return -ENOMEM;
	}
	for (size_t i = 0; i < m->cnt; i++)
		s.order[i] = (uint64_t)m->range[i].lo << 32 | i;
	qsort(s.order, m->cnt, sizeof(*s.order), by_value);
	run(&s);
	free(s.order);
	free(s.heap);
	m->start = trim(m->start, m->flat_cnt, sizeof(*m->start));
	m->which = trim(m->which, m->flat_cnt, sizeof(*m->which));
	m->range = trim(m->range, m->cnt, sizeof(*m->range));
	m->cap = m->cnt;
	return 0;
}

const struct addr_range *range_map_find(const struct range_map *m, uint32_t addr)
{
	size_t lo = 0, n = m->flat_cnt;

	/* Invariant: start[0 .. lo) <= addr. */
	while (n) {
		size_t half = n / 2, right = m->start[lo + half] <= addr;

		lo = right ? lo + half + 1 : lo;
		n = right ? n - half - 1 : half;
	}
	if (!lo || m->which[lo - 1] == RANGE_NONE)
		return NULL;
	return &m->range[m->which[lo - 1]];
}

size_t range_map_bytes(const struct range_map *m)
{
	return m->cap * sizeof(*m->range) + m->flat_cnt * (sizeof(*m->start) + sizeof(*m->which));
}

void range_map_free(struct range_map *m)
{
	free(m->range);
	free(m->start);
	free(m->which);
	*m = (struct range_map){0};
}
