/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What is known of a recording besides its samples; outputs print it. */
#ifndef VP_META_H
#define VP_META_H

#include <stdint.h>

/* Strings are owned by whoever filled it and live as long as the run. */
struct vp_meta {
	const char *version; /* vmaprof's */
	const char *hostname;
	const char *release;  /* uname -r */
	const char *arch;     /* uname -m */
	const char *cpu_desc; /* "AMD EPYC …"; may be empty */
	const char *target;   /* for people: "all processes", "PID 42", "cgroup x" */
	const char *event;    /* "cpu-clock" or "cycles" */
	int argc;
	char *const *argv; /* vmaprof's own command line */
	uint32_t cpus_online;
	uint32_t cpus_available;
	uint64_t total_mem_kb;
	uint32_t freq_hz;
	uint32_t perf_type; /* perf_event_attr.type and .config of the event */
	uint64_t perf_config;
	int64_t start_realtime_s; /* Unix time */
	uint64_t duration_ns;
	uint64_t first_ns, last_ns; /* CLOCK_MONOTONIC of first and last sample; 0: none */
	uint64_t lost_cnt;	    /* samples lost, all causes */
};

#endif
