/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Loading BPF objects: verified concurrently, most expensive first, all or nothing for the
 * required ones.
 */
#ifndef VP_LOADER_H
#define VP_LOADER_H

#include "../util/err.h"
#include "core_btf.h"

#include <bpf/libbpf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* One opened, not yet loaded object. */
struct vp_load_unit {
	const char *name; /* for messages, e.g. "sampler" */
	struct bpf_object_skeleton *skeleton;
	/* What it was opened with, filled and emptied by vp_load; NULL: the kernel's whole BTF. */
	struct vp_core_btf *core_btf;
	bool optional; /* its failure only switches a feature off: see err */
	/* Set by vp_load: */
	int err;   /* 0: loaded */
	char *log; /* what libbpf and the verifier said on failure; else NULL */
	uint64_t load_ns;
};

/* Keeps libbpf's messages for the unit that a thread is loading; `verbose`: prints them, too. */
void vp_loader_capture_messages(bool verbose);

/*
 * Loads all units, on as many threads as there are CPUs, those with most instructions first;
 * `sequential`: one after the other (to compare). 0, or the error of the first required unit
 * in the order given that failed; then every unit has been unloaded, e names it and the
 * logs are kept for vp_load_report().
 */
int vp_load(struct vp_load_unit *units, size_t cnt, bool sequential, struct vp_err *e);

/* After a failure: the first failed unit's log whole, the others' in a line each, in order. */
void vp_load_report(FILE *f, const struct vp_load_unit *units, size_t cnt);

void vp_load_units_free(struct vp_load_unit *units, size_t cnt);

#endif
