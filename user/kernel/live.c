/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "live.h"

#include "../util/array.h"
#include "live.skel.h"
#include "pidns.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define KPROBE_PATH "/sys/bus/event_source/devices/kprobe/type"

struct vp_live {
	struct vp_shared_maps *maps;
	struct vp_live_opts opts;
	enum vp_track_rung rung; /* whose object is open */
	bool attached;
	struct live *hook; /* fentry and kprobe */
	struct vp_sideband *sideband;
	struct vp_sideband_targets targets;
};

static const char *const names[] = {
	[VP_TRACK_AUTO] = "auto",     [VP_TRACK_FENTRY] = "fentry",
	[VP_TRACK_KPROBE] = "kprobe", [VP_TRACK_SIDEBAND] = "sideband",
	[VP_TRACK_OFF] = "off",
};

#define NAME_CNT (sizeof(names) / sizeof(names[0]))

const char *vp_track_rung_name(enum vp_track_rung rung)
{
	return names[rung];
}

bool vp_track_rung_parse(const char *name, enum vp_track_rung *out)
{
	for (size_t i = 0; i < NAME_CNT; i++) {
		if (!strcmp(names[i], name)) {
			*out = (enum vp_track_rung)i;
			return true;
		}
	}
	return false;
}

/* ---- which ---------------------------------------------------------------------------------- */

/*
 * A policy that forbids trampolines does so before the kernel looks for their target: a load
 * without one, which takes microseconds, tells it from a kernel that would allow them.
 */
static bool is_fentry_allowed(void)
{
	const struct bpf_insn return_zero[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = 0},
		{.code = BPF_JMP | BPF_EXIT},
	};
	LIBBPF_OPTS(bpf_prog_load_opts, opts, .expected_attach_type = BPF_TRACE_FENTRY);
	int fd = bpf_prog_load(BPF_PROG_TYPE_TRACING, "vp_probe", "Dual BSD/GPL", return_zero, 2,
			       &opts);

	if (fd >= 0)
		close(fd);
	return fd >= 0 || errno == EINVAL;
}

/* 0, or why it cannot be. */
static int check_rung(enum vp_track_rung rung)
{
	if (rung == VP_TRACK_FENTRY)
		return is_fentry_allowed() ? 0 : -EPERM;
	if (rung == VP_TRACK_KPROBE)
		return access(KPROBE_PATH, R_OK) ? -errno : 0;
	return 0;
}

/* The first from `from` on that may work; the sideband at last. */
static enum vp_track_rung first_likely(enum vp_track_rung from)
{
	while (from < VP_TRACK_SIDEBAND && check_rung(from))
		from++;
	return from;
}

static const char *why(enum vp_track_rung rung)
{
	switch (rung) {
	case VP_TRACK_FENTRY:
		return "this kernel, or a policy, refuses BPF trampolines";
	case VP_TRACK_KPROBE:
		return "this kernel has no kprobes, or refuses them";
	default:
		return "perf's records of mappings cannot be had";
	}
}

static int refuse(enum vp_track_rung rung, int err, struct vp_err *e)
{
	return vp_err_set(e, err, "--track=%s: %s: %s (vmaprof doctor tells what would work)",
			  names[rung], why(rung), strerror(-err));
}

/* ---- their objects -------------------------------------------------------------------------- */

static int open_hook(struct vp_live *l, struct vp_load_unit *unit, struct vp_err *e)
{
	struct bpf_object_open_opts opts = vp_core_btf_opts(&l->maps->core_btf);

	l->hook = live__open_opts(&opts);
	if (!l->hook)
		return vp_err_set(e, -errno, "BPF object live: %s", strerror(errno));
	l->hook->rodata->vp_filter = l->opts.filter;
	l->hook->rodata->vp_pidns_inum = vp_pidns_inum();
	bpf_program__set_autoload(l->rung == VP_TRACK_FENTRY ? l->hook->progs.vp_live_fentry
							     : l->hook->progs.vp_live_kprobe,
				  true);
	*unit = (struct vp_load_unit){.name = "live", .skeleton = l->hook->skeleton};
	return vp_shared_maps_reuse(l->maps, l->hook->obj, e);
}

static int open_sideband(struct vp_live *l, struct vp_load_unit *unit, struct vp_err *e)
{
	const struct vp_sideband_opts o = {
		.filter = l->opts.filter,
		.ring_bytes = l->opts.sideband_bytes,
		.targets = &l->targets,
	};

	return vp_sideband_open(&l->sideband, &o, l->maps, unit, e);
}

static int open_rung(struct vp_live *l, struct vp_load_unit *unit, struct vp_err *e)
{
	int err = 0;

	if (l->rung == VP_TRACK_SIDEBAND)
		err = open_sideband(l, unit, e);
	else if (l->rung != VP_TRACK_OFF)
		err = open_hook(l, unit, e);
	unit->optional = true;
	unit->core_btf = &l->maps->core_btf;
	return err;
}

static void close_rung(struct vp_live *l)
{
	live__destroy(l->hook);
	vp_sideband_close(l->sideband);
	l->hook = NULL;
	l->sideband = NULL;
	l->attached = false;
}

static int attach_rung(struct vp_live *l, struct vp_ring *ring)
{
	struct vp_err e = {""};

	return l->hook ? live__attach(l->hook) : vp_sideband_attach(l->sideband, ring, &e);
}

/* ---- as a whole ----------------------------------------------------------------------------- */

int vp_live_open(struct vp_live **out, const struct vp_live_opts *o, struct vp_shared_maps *maps,
		 struct vp_load_unit *unit, struct vp_err *e)
{
	struct vp_live *l = calloc(1, sizeof(*l));
	int err;

	*unit = (struct vp_load_unit){0};
	if (!l)
		return vp_err_set(e, -ENOMEM, "out of memory");
	l->maps = maps;
	l->opts = *o;
	l->rung = o->rung == VP_TRACK_AUTO ? first_likely(VP_TRACK_FENTRY) : o->rung;
	err = check_rung(l->rung);
	err = err ? refuse(l->rung, err, e) : open_rung(l, unit, e);
	if (err) {
		vp_live_close(l);
		return err;
	}
	*out = l;
	return 0;
}

void vp_live_close(struct vp_live *l)
{
	if (!l)
		return;
	close_rung(l);
	free(l->targets.tgids);
	free(l);
}

/* Opens, loads and attaches the next rung, alone. */
static int try_next(struct vp_live *l, struct vp_ring *ring)
{
	struct vp_load_unit unit = {0};
	struct vp_err e = {""};
	int err;

	close_rung(l);
	l->rung = first_likely(l->rung + 1);
	err = open_rung(l, &unit, &e);
	if (!err)
		err = vp_load(&unit, 1, false, &e);
	if (!err)
		err = unit.err;
	vp_load_units_free(&unit, 1);
	return err ? err : attach_rung(l, ring);
}

int vp_live_attach(struct vp_live *l, int load_err, struct vp_ring *ring, struct vp_err *e)
{
	int err;

	if (l->rung == VP_TRACK_OFF)
		return 0;
	err = load_err ? load_err : attach_rung(l, ring);
	while (err && l->opts.rung == VP_TRACK_AUTO && l->rung < VP_TRACK_SIDEBAND)
		err = try_next(l, ring);
	l->attached = !err;
	return err && l->opts.rung != VP_TRACK_AUTO ? refuse(l->rung, err, e) : 0;
}

void vp_live_detach(struct vp_live *l)
{
	if (!l || !l->attached)
		return;
	if (l->hook)
		live__detach(l->hook);
	if (l->sideband)
		vp_sideband_detach(l->sideband);
}

enum vp_track_rung vp_live_rung(const struct vp_live *l)
{
	return l->attached ? l->rung : VP_TRACK_OFF;
}

int vp_live_add_process(struct vp_live *l, pid_t tgid)
{
	struct vp_sideband_targets *t = &l->targets;

	if (vp_array_room((void **)&t->tgids, &t->cap, t->cnt, 1, sizeof(*t->tgids)))
		return -ENOMEM;
	t->tgids[t->cnt++] = tgid;
	return 0;
}

void vp_live_set_cgroup(struct vp_live *l, uint64_t id)
{
	l->targets.cgroup_id = id;
}

void vp_live_get_stats(const struct vp_live *l, struct vp_sideband_stats *out)
{
	*out = (struct vp_sideband_stats){0};
	if (l->sideband)
		vp_sideband_get_stats(l->sideband, out);
}
