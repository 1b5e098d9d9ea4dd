/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which comm a perf.data file has given each thread, and since when. A cache of fixed size: a
 * thread that fell out of it only gets one COMM record more than needed.
 */
#ifndef VP_PERFDATA_COMMS_H
#define VP_PERFDATA_COMMS_H

#include "../../include/vp_record.h"

#include <stdint.h>

struct pd_comm {
	uint64_t start_ns; /* of the process: a reused tid differs */
	uint64_t since_ns; /* time of the earliest COMM record that says so */
	uint32_t tid;
	uint32_t used;
	char comm[VP_COMM_LEN]; /* NUL-terminated */
};

struct pd_comms;

/* NULL without memory. */
struct pd_comms *pd_comms_new(void);
void pd_comms_free(struct pd_comms *c);

/* NULL: this thread was given no comm. Borrowed until the next set. */
const struct pd_comm *pd_comms_find(struct pd_comms *c, uint32_t tid, uint64_t start_ns);
/* Whatever process it belongs to. */
const struct pd_comm *pd_comms_find_any(struct pd_comms *c, uint32_t tid);
void pd_comms_set(struct pd_comms *c, uint32_t tid, uint64_t start_ns, uint64_t since_ns,
		  const char *comm);
void pd_comms_forget(struct pd_comms *c, uint32_t tid);

#endif
