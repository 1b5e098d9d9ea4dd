/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The perf events that drive the sampler: one on each online CPU. */
#ifndef VP_PERF_EVENTS_H
#define VP_PERF_EVENTS_H

#include "../util/err.h"

#include <bpf/libbpf.h>
#include <stdbool.h>
#include <stdint.h>

struct vp_perf_events {
	int *fd;
	struct bpf_link **link;
	size_t cnt;
	const char *name; /* "cycles" or "cpu-clock" */
	bool fell_back;	  /* cycles were wanted, but this machine has none */
	uint32_t type;	  /* perf_event_attr's */
	uint64_t config;
};

#define VP_FREQ_DEFAULT_HZ 99

/* Checks freq_hz against the kernel's limit: -EINVAL with e filled (limit and sysctl named). */
int vp_perf_freq_check(uint64_t freq_hz, struct vp_err *e);

/*
 * Opens the event, disabled, on every online CPU. event: "cycles", "cpu-clock" or NULL:
 * cycles where the machine has them, else cpu-clock. 0 or negative errno with e filled.
 */
int vp_perf_events_open(struct vp_perf_events *p, const char *event, uint32_t freq_hz,
			struct vp_err *e);

/* Calls on_cpu for each online CPU until one returns an error, which it returns. */
int vp_perf_each_cpu(int (*on_cpu)(void *ctx, int cpu), void *ctx);

/* From now on prog runs at each sample. */
int vp_perf_events_attach(struct vp_perf_events *p, struct bpf_program *prog, struct vp_err *e);

/* Ends sampling; also frees what open made. */
void vp_perf_events_close(struct vp_perf_events *p);

#endif
