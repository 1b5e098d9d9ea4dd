// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "perfdata_comms.h"

#include <stdlib.h>
#include <string.h>

/* 65,536 threads, 3 MiB of which only the sets in use are ever touched. */
#define SET_CNT 8192
#define WAY_CNT 8

struct pd_comms {
	uint32_t victim; /* way that gives place next, in whichever set is full */
	struct pd_comm sets[SET_CNT][WAY_CNT];
};

struct pd_comms *pd_comms_new(void)
{
	return calloc(1, sizeof(struct pd_comms));
}

void pd_comms_free(struct pd_comms *c)
{
	free(c);
}

static struct pd_comm *by_tid(struct pd_comms *c, uint32_t tid)
{
	struct pd_comm *set = c->sets[tid % SET_CNT];

	for (int i = 0; i < WAY_CNT; i++) {
		if (set[i].used && set[i].tid == tid)
			return &set[i];
	}
	return NULL;
}

const struct pd_comm *pd_comms_find(struct pd_comms *c, uint32_t tid, uint64_t start_ns)
{
	const struct pd_comm *t = by_tid(c, tid);

	return t && t->start_ns == start_ns ? t : NULL;
}

const struct pd_comm *pd_comms_find_any(struct pd_comms *c, uint32_t tid)
{
	return by_tid(c, tid);
}

static struct pd_comm *place_for(struct pd_comms *c, uint32_t tid)
{
	struct pd_comm *set = c->sets[tid % SET_CNT];
	struct pd_comm *t = by_tid(c, tid);

	if (t)
		return t;
	for (int i = 0; i < WAY_CNT; i++) {
		if (!set[i].used)
			return &set[i];
	}
	return &set[c->victim++ % WAY_CNT];
}

void pd_comms_set(struct pd_comms *c, uint32_t tid, uint64_t start_ns, uint64_t since_ns,
		  const char *comm)
{
	struct pd_comm t = {.start_ns = start_ns, .since_ns = since_ns, .tid = tid, .used = 1};

	memcpy(t.comm, comm, strnlen(comm, VP_COMM_LEN - 1));
	*place_for(c, tid) = t;
}

void pd_comms_forget(struct pd_comms *c, uint32_t tid)
{
	struct pd_comm *t = by_tid(c, tid);

	if (t)
		t->used = 0;
}
