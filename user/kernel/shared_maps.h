/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What all BPF objects share: the maps of kern/maps.bpf.c, loaded before the others, and the
 * part of the kernel's BTF that they are relocated against.
 */
#ifndef VP_SHARED_MAPS_H
#define VP_SHARED_MAPS_H

#include "../util/err.h"
#include "core_btf.h"

#include <bpf/libbpf.h>
#include <stdint.h>

#include "vp_counters.h"

struct maps;

struct vp_shared_maps {
	struct maps *skel;
	struct vp_core_btf core_btf; /* empty once objects have been loaded */
	uint64_t ring_bytes;
};

/* Sizes are rounded up as the kernel wants them. 0 or negative errno with e filled. */
int vp_shared_maps_create(struct vp_shared_maps *m, uint64_t ring_bytes, uint32_t procs_max,
			  struct vp_err *e);
void vp_shared_maps_destroy(struct vp_shared_maps *m);

/* Makes every map of obj (opened, not loaded) that is one of the shared ones be that one. */
int vp_shared_maps_reuse(const struct vp_shared_maps *m, struct bpf_object *obj, struct vp_err *e);

int vp_shared_maps_ring_fd(const struct vp_shared_maps *m);

/* Of the map of that name in kern/vp_maps.bpf.h. */
int vp_shared_maps_fd(const struct vp_shared_maps *m, const char *name);

/* Sums the per-CPU counters into out[VP_CNT_CNT]. */
int vp_shared_maps_counters(const struct vp_shared_maps *m, uint64_t out[VP_CNT_CNT]);

#endif
