/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "session.h"

#include "btf_mentions.h"
#include "deferred.skel.h"
#include "features.h"
#include "loader.h"
#include "mm_walk.h"
#include "pidns.h"
#include "sampler.skel.h"
#include "track.skel.h"

#include "../util/procinfo.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define RING_BASE_BYTES	   (4ULL << 20)
#define RING_PER_CPU_BYTES (1ULL << 20)
#define RING_MAX_BYTES	   (64ULL << 20)
#define PROCS_MAX	   32768

struct vp_session {
	struct vp_shared_maps maps;
	struct vp_walker walker;
	struct sampler *sampler;   /* inline mode … */
	struct deferred *deferred; /* … or deferred mode */
	struct track *track;
	bool track_loaded;
	struct vp_mm_walk mm_walk;
	bool walks_mm;
	bool plain_task_work; /* bpf_task_work_schedule_resume is called that, as since 7.0 */
	struct vp_live *live;
	int live_load_err;
	uint32_t filter;
	struct vp_perf_events events;
	struct vp_ring *ring;
};

static uint64_t ring_size(const struct vp_session_opts *o)
{
	uint64_t bytes =
		RING_BASE_BYTES + RING_PER_CPU_BYTES * (uint64_t)sysconf(_SC_NPROCESSORS_ONLN);

	if (o->ring_bytes)
		return o->ring_bytes;
	return bytes < RING_MAX_BYTES ? bytes : RING_MAX_BYTES;
}

static uint32_t possible_cpus(void)
{
	int cpus = libbpf_num_possible_cpus();

	return cpus > 0 ? (uint32_t)cpus : 1;
}

/* What both samplers have. A macro: their skeletons are of different types. */
#define set_sampler_knobs(skel, s, o)                                                              \
	do {                                                                                       \
		(skel)->rodata->vp_filter = (o)->filter;                                           \
		(skel)->rodata->vp_pidns_inum = vp_pidns_inum();                                   \
		(skel)->rodata->vp_wakeup_bytes = (s)->maps.ring_bytes / 4;                        \
		(skel)->rodata->vp_call_graph = (o)->call_graph;                                   \
		bpf_map__set_max_entries((skel)->maps.rule_caches, possible_cpus());               \
	} while (0)

static int open_sampler(struct vp_session *s, const struct vp_session_opts *o,
			struct vp_load_unit *unit, struct vp_err *e)
{
	struct bpf_object_open_opts opts = vp_core_btf_opts(&s->maps.core_btf);

	s->sampler = sampler__open_opts(&opts);
	if (!s->sampler)
		return vp_err_set(e, -errno, "BPF object sampler: %s", strerror(errno));
	set_sampler_knobs(s->sampler, s, o);
	*unit = (struct vp_load_unit){
		.name = "sampler", .skeleton = s->sampler->skeleton, .core_btf = &s->maps.core_btf};
	return vp_shared_maps_reuse(&s->maps, s->sampler->obj, e);
}

/* Two stacks a CPU may be in the making, and a few more that wait for memory to be read. */
static uint32_t stack_bufs(void)
{
	return 2 * possible_cpus() + 8;
}

static int open_deferred(struct vp_session *s, const struct vp_session_opts *o,
			 struct vp_load_unit *unit, struct vp_err *e)
{
	struct bpf_object_open_opts opts = vp_core_btf_opts(&s->maps.core_btf);

	s->deferred = deferred__open_opts(&opts);
	if (!s->deferred)
		return vp_err_set(e, -errno, "BPF object deferred: %s", strerror(errno));
	set_sampler_knobs(s->deferred, s, o);
	s->deferred->rodata->vp_stack_bufs = stack_bufs();
	if (s->plain_task_work) {
		bpf_program__set_autoload(s->deferred->progs.vp_sample_deferred, false);
		bpf_program__set_autoload(s->deferred->progs.vp_sample_deferred_plain, true);
	}
	bpf_map__set_max_entries(s->deferred->maps.stack_bufs, stack_bufs());
	*unit = (struct vp_load_unit){.name = "deferred",
				      .skeleton = s->deferred->skeleton,
				      .core_btf = &s->maps.core_btf};
	return vp_shared_maps_reuse(&s->maps, s->deferred->obj, e);
}

static int open_track(struct vp_session *s, const struct vp_session_opts *o,
		      struct vp_load_unit *unit, struct vp_err *e)
{
	struct bpf_object_open_opts opts = vp_core_btf_opts(&s->maps.core_btf);

	s->track = track__open_opts(&opts);
	if (!s->track)
		return vp_err_set(e, -errno, "BPF object track: %s", strerror(errno));
	s->track->rodata->vp_filter = o->filter;
	s->track->rodata->vp_pidns_inum = vp_pidns_inum();
	*unit = (struct vp_load_unit){.name = "track",
				      .skeleton = s->track->skeleton,
				      .optional = true,
				      .core_btf = &s->maps.core_btf};
	return vp_shared_maps_reuse(&s->maps, s->track->obj, e);
}

/* If the tree of VMAs can be read, all who ask what is mapped may read it. */
static void allow_mm_walk(struct vp_session *s)
{
	s->walks_mm = vp_mm_walk_agrees(&s->mm_walk);
	if (s->sampler)
		s->sampler->bss->vp_mm_walk_on = s->walks_mm;
	if (s->deferred)
		s->deferred->bss->vp_mm_walk_on = s->walks_mm;
	if (s->track_loaded)
		s->track->bss->vp_mm_walk_on = s->walks_mm;
}

static int open_live(struct vp_session *s, const struct vp_session_opts *o,
		     struct vp_load_unit *unit, struct vp_err *e)
{
	const struct vp_live_opts live = {
		.rung = o->track,
		.filter = o->filter,
		.sideband_bytes = o->sideband_bytes,
	};

	return vp_live_open(&s->live, &live, &s->maps, unit, e);
}

/* Behind these come the walk of the tree and live tracking, if they are wanted. */
enum { UNIT_SAMPLER, UNIT_WALK, UNIT_TRACK, UNIT_CNT };

#define UNITS_MAX (UNIT_CNT + 2)

static int load_objects(struct vp_session *s, const struct vp_session_opts *o, bool deferred,
			bool verbose, struct vp_err *e)
{
	struct vp_load_unit units[UNITS_MAX] = {0}, *mm_walk = NULL, *live = NULL;
	size_t cnt = UNIT_CNT;
	int err;

	err = vp_shared_maps_create(&s->maps, ring_size(o), o->procs_max ? o->procs_max : PROCS_MAX,
				    e);
	if (!err && o->filter == VP_FILTER_CGROUP &&
	    vp_shared_maps_fd(&s->maps, "target_cgroup") < 0)
		err = vp_err_set(
			e, -EOPNOTSUPP,
			"-G: this kernel has no cgroups (it takes a kernel with CONFIG_CGROUPS=y)");
	if (!err)
		err = (deferred ? open_deferred : open_sampler)(s, o, &units[UNIT_SAMPLER], e);
	if (!err)
		err = vp_walker_open(&s->walker, &s->maps, o->all_maps, true, &units[UNIT_WALK], e);
	if (!err)
		err = open_track(s, o, &units[UNIT_TRACK], e);
	if (!err && !o->no_mm_walk) {
		mm_walk = &units[cnt++];
		err = vp_mm_walk_open(&s->mm_walk, &s->maps.core_btf, mm_walk, e);
	}
	if (!err)
		err = open_live(s, o, &units[cnt], e);
	if (err)
		return err;
	if (units[cnt].skeleton)
		live = &units[cnt++];
	err = vp_load(units, cnt, o->sequential_load, e);
	if (err && verbose && !vp_features_explain(err, e))
		vp_load_report(stderr, units, cnt);
	s->track_loaded = !err && !units[UNIT_TRACK].err;
	if (!err && mm_walk && !mm_walk->err)
		allow_mm_walk(s);
	s->live_load_err = live ? live->err : 0;
	vp_load_units_free(units, cnt);
	return err;
}

static void close_objects(struct vp_session *s)
{
	sampler__destroy(s->sampler);
	deferred__destroy(s->deferred);
	track__destroy(s->track);
	vp_live_close(s->live);
	s->live = NULL;
	s->sampler = NULL;
	s->deferred = NULL;
	s->track = NULL;
	vp_mm_walk_close(&s->mm_walk);
	vp_walker_close(&s->walker);
	vp_shared_maps_destroy(&s->maps);
}

/*
 * Deferred mode where the kernel has it. A kernel that has the function and yet refuses the
 * programs costs a second load, unless nothing else was allowed.
 */
static int load_for_mode(struct vp_session *s, const struct vp_session_opts *o, bool verbose,
			 struct vp_err *e)
{
	bool only = o->unwind_mode == VP_UNWIND_DEFERRED;
	enum vp_btf_mention task_work;
	int err;

	if (o->unwind_mode == VP_UNWIND_INLINE)
		return load_objects(s, o, false, verbose, e);
	task_work = vp_btf_mentions("bpf_task_work_schedule_resume");
	s->plain_task_work = task_work == VP_BTF_WHOLE;
	if (task_work == VP_BTF_NOT) {
		if (only)
			return vp_err_set(e, -EOPNOTSUPP,
					  "--unwind-mode deferred: this kernel cannot run BPF in a "
					  "task's context (it takes Linux 6.18)");
		return load_objects(s, o, false, verbose, e);
	}
	err = load_objects(s, o, true, verbose && only, e);
	if (!err || only)
		return err;
	close_objects(s);
	return load_objects(s, o, false, verbose, e);
}

int vp_session_open(struct vp_session **out, const struct vp_session_opts *o, struct vp_decoder *d,
		    bool verbose, struct vp_err *e)
{
	struct vp_session *s = calloc(1, sizeof(*s));
	int err;

	if (!s)
		return vp_err_set(e, -ENOMEM, "out of memory");
	s->filter = o->filter;
	err = vp_perf_events_open(&s->events, o->event, o->freq_hz, e);
	if (!err)
		err = load_for_mode(s, o, verbose, e);
	if (!err)
		err = vp_ring_open(&s->ring, vp_shared_maps_ring_fd(&s->maps), d, e);
	if (err) {
		vp_session_close(s);
		return err;
	}
	*out = s;
	return 0;
}

void vp_session_close(struct vp_session *s)
{
	if (!s)
		return;
	vp_perf_events_close(&s->events);
	vp_ring_close(s->ring);
	close_objects(s);
	free(s);
}

int vp_session_add_target(struct vp_session *s, pid_t id, uint32_t flags, struct vp_err *e)
{
	int fd = vp_shared_maps_fd(&s->maps, "targets");
	struct vp_procinfo info;

	if (s->filter == VP_FILTER_TID && !vp_procinfo_read(id, &info) &&
	    vp_live_add_process(s->live, info.tgid))
		return vp_err_set(e, -ENOMEM, "out of memory");
	if (bpf_map_update_elem(fd, &id, &flags, BPF_ANY))
		return vp_err_set(e, -errno, "target %d: %s", id,
				  errno == E2BIG ? "too many targets" : strerror(errno));
	return 0;
}

int vp_session_set_cgroup(struct vp_session *s, int cgroup_fd, struct vp_err *e)
{
	__u32 zero = 0;
	struct stat st;

	if (fstat(cgroup_fd, &st))
		return vp_err_set(e, -errno, "cgroup: %s", strerror(errno));
	vp_live_set_cgroup(s->live, st.st_ino);
	if (bpf_map_update_elem(vp_shared_maps_fd(&s->maps, "target_cgroup"), &zero, &cgroup_fd,
				BPF_ANY))
		return vp_err_set(e, -errno, "cgroup: %s (needs cgroup v2)", strerror(errno));
	return 0;
}

bool vp_session_track(struct vp_session *s)
{
	return s->track_loaded && track__attach(s->track) == 0;
}

int vp_session_track_live(struct vp_session *s, struct vp_err *e)
{
	return vp_live_attach(s->live, s->live_load_err, s->ring, e);
}

enum vp_track_rung vp_session_rung(const struct vp_session *s)
{
	return vp_live_rung(s->live);
}

int vp_session_walk(struct vp_session *s, const pid_t *tgids, size_t cnt, struct vp_err *e)
{
	return vp_walker_walk(&s->walker, s->ring, tgids, cnt, e);
}

int vp_session_start(struct vp_session *s, struct vp_err *e)
{
	int err = vp_ring_start(s->ring, e);

	if (err)
		return err;
	if (!s->deferred)
		return vp_perf_events_attach(&s->events, s->sampler->progs.vp_sample, e);
	s->deferred->links.vp_forget_deferral =
		bpf_program__attach(s->deferred->progs.vp_forget_deferral);
	s->deferred->links.vp_forget_old_tid =
		bpf_program__attach(s->deferred->progs.vp_forget_old_tid);
	return vp_perf_events_attach(&s->events,
				     s->plain_task_work
					     ? s->deferred->progs.vp_sample_deferred_plain
					     : s->deferred->progs.vp_sample_deferred,
				     e);
}

#define LAST_STACKS_MS 100

/* Those who run come back at once; those who sleep in the kernel are not waited for. */
static void wait_for_stacks(bool (*missing)(void *ctx), void *ctx)
{
	const struct timespec look = {.tv_nsec = 1000000};

	for (int i = 0; i < LAST_STACKS_MS && missing(ctx); i++)
		nanosleep(&look, NULL);
}

int vp_session_stop(struct vp_session *s, bool (*missing)(void *ctx), void *ctx)
{
	vp_perf_events_close(&s->events);
	if (s->deferred && missing)
		wait_for_stacks(missing, ctx);
	if (s->track_loaded)
		track__detach(s->track);
	vp_live_detach(s->live);
	return vp_ring_stop(s->ring);
}

int vp_session_counters(const struct vp_session *s, uint64_t out[VP_CNT_CNT])
{
	return vp_shared_maps_counters(&s->maps, out);
}

bool vp_session_walks_mm(const struct vp_session *s)
{
	return s->walks_mm;
}

void vp_session_sideband_stats(const struct vp_session *s, struct vp_sideband_stats *out)
{
	vp_live_get_stats(s->live, out);
}

bool vp_session_is_deferred(const struct vp_session *s)
{
	return s->deferred != NULL;
}

int vp_session_row_arrays_fd(const struct vp_session *s)
{
	return vp_shared_maps_fd(&s->maps, "row_arrays");
}

int vp_session_row_files_fd(const struct vp_session *s)
{
	return vp_shared_maps_fd(&s->maps, "row_files");
}

const struct vp_perf_events *vp_session_events(const struct vp_session *s)
{
	return &s->events;
}
