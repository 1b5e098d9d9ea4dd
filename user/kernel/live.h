/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Live tracking: new executable mappings enter the kernel side's tables, and are reported, as
 * they are made. It is done by the first of these rungs that the kernel has and allows; all
 * deliver the same records:
 *
 *     fentry    a BPF trampoline on perf_event_mmap()     the least cost, at once
 *     kprobe    a kprobe on it                            the same at a higher cost
 *     sideband  perf's own records, see sideband.h        within a tenth of a second
 */
#ifndef VP_LIVE_H
#define VP_LIVE_H

#include "loader.h"
#include "ring.h"
#include "shared_maps.h"
#include "sideband.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum vp_track_rung {
	VP_TRACK_AUTO,
	VP_TRACK_FENTRY,
	VP_TRACK_KPROBE,
	VP_TRACK_SIDEBAND,
	VP_TRACK_OFF,
};

struct vp_live;

struct vp_live_opts {
	enum vp_track_rung rung; /* AUTO: the first that works */
	uint32_t filter;	 /* VP_FILTER_* */
	size_t sideband_bytes;	 /* of each CPU's buffer; 0: the default */
};

/*
 * Opens the object of the rung that is most likely taken; the caller loads `unit`, which is
 * optional, unless its skeleton is NULL (OFF). maps is borrowed until the close.
 */
int vp_live_open(struct vp_live **out, const struct vp_live_opts *o, struct vp_shared_maps *maps,
		 struct vp_load_unit *unit, struct vp_err *e);
/* NULL is fine. */
void vp_live_close(struct vp_live *l);

/*
 * Attaches it, or another rung if it was refused; load_err: of vp_load's unit. A rung that was asked
 * for and does not work is an error, with e filled; that none works is none.
 */
int vp_live_attach(struct vp_live *l, int load_err, struct vp_ring *ring, struct vp_err *e);
void vp_live_detach(struct vp_live *l);

/* Which is attached; VP_TRACK_OFF: none. */
enum vp_track_rung vp_live_rung(const struct vp_live *l);
/* "fentry", "kprobe", "sideband", "off", "auto". Static. */
const char *vp_track_rung_name(enum vp_track_rung rung);
/* By its name; false: there is none. */
bool vp_track_rung_parse(const char *name, enum vp_track_rung *out);

/* Whom the filter means, as struct vp_sideband_targets says; before it is attached. */
int vp_live_add_process(struct vp_live *l, pid_t tgid);
void vp_live_set_cgroup(struct vp_live *l, uint64_t id);

/* All zero without the sideband. */
void vp_live_get_stats(const struct vp_live *l, struct vp_sideband_stats *out);

#endif
