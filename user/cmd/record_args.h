/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The command line of vmaprof record. */
#ifndef VP_RECORD_ARGS_H
#define VP_RECORD_ARGS_H

#include "../kernel/session.h"
#include "../util/args.h"

#include <stdbool.h>
#include <stdint.h>

struct vp_record_args {
	bool all;	     /* -a, or nothing was named */
	struct vp_pids pids; /* -p */
	struct vp_pids tids; /* -t */
	const char *cgroup;  /* -G */
	char **command;	     /* after --; NULL-terminated */
	enum vp_unwind_mode unwind_mode;
	enum vp_track_rung track;
	uint32_t call_graph; /* VP_CALL_GRAPH_* */
	uint64_t unwind_bytes, symbol_bytes;
	uint64_t freq_hz;
	uint64_t duration_ns; /* 0: until it is ended */
	const char *output;
	const char *event; /* NULL: the best there is */
	bool all_maps;
	bool quiet;
	bool verbose;
	bool force_kernel;
	bool no_mm_walk;
	bool debuginfod;
	bool inlines;
	bool sequential_load; /* for benchmarks */
};

/* 0; -1: help was printed; else an exit code, with the message printed. */
int vp_record_parse(struct vp_record_args *a, int argc, char **argv);
void vp_record_args_free(struct vp_record_args *a);

#endif
