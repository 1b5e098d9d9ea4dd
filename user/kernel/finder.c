/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "finder.h"

#include "../util/clock.h"
#include "find.skel.h"
#include "iter_fd.h"
#include "loader.h"
#include "pidns.h"
#include "ring.h"
#include "shared_maps.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define RING_BYTES (1 << 20)

/*
 * Who changes mappings has their lock for microseconds, or, where it lost its CPU meanwhile, until
 * the scheduler lets it go on: then asking at once again would only keep it from that.
 */
#define ASK_MAX_NS   1000000000ULL
#define ASK_AT_ONCE  50 /* rounds of tens of microseconds each */
#define PAUSE_MIN_NS 50000
#define PAUSE_MAX_NS 10000000

struct vp_finder {
	struct vp_shared_maps maps;
	struct find *skel;
	struct vp_record_ops ops;
	struct vp_decoder decoder;
	struct vp_ring *ring;
	struct vp_find *shared; /* the map's elements */
	size_t shared_bytes;
	size_t max;
};

static int map_elements(struct vp_finder *f)
{
	long page = sysconf(_SC_PAGESIZE);

	f->shared_bytes = (f->max * sizeof(struct vp_find) + page - 1) / page * page;
	f->shared = mmap(NULL, f->shared_bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
			 bpf_map__fd(f->skel->maps.finds), 0);
	if (f->shared == MAP_FAILED) {
		f->shared = NULL;
		return -errno;
	}
	return 0;
}

static int load(struct vp_finder *f, struct vp_err *e)
{
	struct bpf_object_open_opts opts = vp_core_btf_opts(&f->maps.core_btf);
	struct vp_load_unit unit = {.name = "find", .core_btf = &f->maps.core_btf};
	int err;

	f->skel = find__open_opts(&opts);
	if (!f->skel)
		return vp_err_set(e, -errno, "BPF object find: %s", strerror(errno));
	f->skel->rodata->vp_pidns_inum = vp_pidns_inum();
	bpf_map__set_max_entries(f->skel->maps.finds, (uint32_t)f->max);
	unit.skeleton = f->skel->skeleton;
	err = vp_shared_maps_reuse(&f->maps, f->skel->obj, e);
	if (!err)
		err = vp_load(&unit, 1, false, e);
	if (err)
		vp_load_report(stderr, &unit, 1);
	vp_load_units_free(&unit, 1);
	return err;
}

int vp_finder_open(struct vp_finder **out, size_t max, vp_finder_mapping mapping, void *ctx,
		   struct vp_err *e)
{
	struct vp_finder *f = calloc(1, sizeof(*f));
	int err;

	if (!f)
		return vp_err_set(e, -ENOMEM, "out of memory");
	f->max = max ? max : 1;
	f->ops.mmap2 = mapping;
	f->decoder = (struct vp_decoder){.ops = &f->ops, .ctx = ctx};
	err = vp_shared_maps_create(&f->maps, RING_BYTES, 1, e);
	if (!err)
		err = load(f, e);
	if (!err)
		err = vp_ring_open(&f->ring, vp_shared_maps_ring_fd(&f->maps), &f->decoder, e);
	if (!err) {
		err = map_elements(f);
		if (err)
			vp_err_set(e, err, "BPF map finds: %s", strerror(-err));
	}
	if (err) {
		vp_finder_close(f);
		return err;
	}
	*out = f;
	return 0;
}

void vp_finder_close(struct vp_finder *f)
{
	if (!f)
		return;
	if (f->shared)
		munmap(f->shared, f->shared_bytes);
	vp_ring_close(f->ring);
	find__destroy(f->skel);
	vp_shared_maps_destroy(&f->maps);
	free(f);
}

/* One run; more than one read() only when the ring was full in between. */
static int run(struct vp_finder *f, pid_t tgid, size_t cnt)
{
	struct bpf_program *prog = f->skel->progs.vp_find_all;
	int fd = vp_iter_open(prog, tgid), err;
	char none[64];
	ssize_t n;

	if (fd == -ENOTSUP)
		fd = vp_iter_open(prog, 0);
	if (fd < 0)
		return fd;
	f->skel->bss->vp_find_tgid = (__u32)tgid;
	f->skel->bss->vp_find_cnt = (__u32)cnt;
	f->skel->bss->vp_find_next = 0;
	f->skel->bss->vp_find_last_start = 0;
	f->skel->bss->vp_find_seen = 0;
	do {
		n = read(fd, none, sizeof(none));
		err = n < 0 && errno != EAGAIN && errno != EINTR ? -errno : 0;
		if (!err)
			err = vp_ring_drain(f->ring);
	} while (n < 0 && !err);
	close(fd);
	return err;
}

static int check_seen(struct vp_finder *f, pid_t tgid, struct vp_err *e)
{
	__u32 seen = f->skel->bss->vp_find_seen;

	if (seen & VP_FIND_SEEN_MM)
		return 0;
	if (seen & VP_FIND_SEEN_KTHREAD)
		return vp_err_set(
			e, -ESRCH,
			"PID %d: a kernel thread, which has no user mappings (name a user process)",
			tgid);
	if (seen & VP_FIND_SEEN_TASK)
		return vp_err_set(e, -ESRCH,
				  "PID %d: it is exiting, its memory is gone (name a process that "
				  "still runs)",
				  tgid);
	return vp_err_set(e, -ESRCH, "PID %d: no such process (ps -e lists them)", tgid);
}

/* Copies the questions whose answer is still to come to the front of the map; how many. */
static size_t put_open(struct vp_finder *f, const struct vp_find *finds, size_t cnt)
{
	size_t open = 0;

	for (size_t i = 0; i < cnt; i++) {
		if (finds[i].verdict == VP_VERDICT_BUSY)
			f->shared[open++] = (struct vp_find){.addr = finds[i].addr};
	}
	return open;
}

static void take_answers(const struct vp_finder *f, struct vp_find *finds, size_t cnt)
{
	size_t next = 0;

	for (size_t i = 0; i < cnt; i++) {
		if (finds[i].verdict != VP_VERDICT_BUSY)
			continue;
		finds[i] = f->shared[next++];
		/* The process ended during the run. */
		if (finds[i].verdict == 0)
			finds[i].verdict = VP_VERDICT_BUSY;
	}
}

static void pause_before(int round)
{
	struct timespec pause = {.tv_nsec = PAUSE_MIN_NS};

	if (round < ASK_AT_ONCE)
		return;
	for (int i = ASK_AT_ONCE; i < round && pause.tv_nsec < PAUSE_MAX_NS; i++)
		pause.tv_nsec *= 2;
	nanosleep(&pause, NULL);
}

int vp_finder_ask(struct vp_finder *f, pid_t tgid, struct vp_find *finds, size_t cnt,
		  struct vp_err *e)
{
	const uint64_t deadline_ns = vp_now_ns() + ASK_MAX_NS;

	for (size_t i = 0; i < cnt; i++)
		finds[i].verdict = VP_VERDICT_BUSY;

	for (int round = 0; round == 0 || vp_now_ns() < deadline_ns; round++) {
		size_t open;
		int err;

		open = put_open(f, finds, cnt);
		if (open == 0)
			return 0;
		pause_before(round);
		err = run(f, tgid, open);
		if (err)
			return vp_err_set(e, err, "resolving addresses: %s", strerror(-err));
		err = check_seen(f, tgid, e);
		if (err)
			return err;
		take_answers(f, finds, cnt);
	}
	return 0;
}
