/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "walker.h"

#include "iter_fd.h"
#include "pidns.h"
#include "synth.skel.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

int vp_walker_open(struct vp_walker *w, struct vp_shared_maps *maps, bool all_maps,
		   bool fills_table, struct vp_load_unit *unit, struct vp_err *e)
{
	struct bpf_object_open_opts opts = vp_core_btf_opts(&maps->core_btf);
	int err;

	w->skel = synth__open_opts(&opts);
	if (!w->skel)
		return vp_err_set(e, -errno, "BPF object synth: %s", strerror(errno));
	w->skel->rodata->vp_all_maps = all_maps;
	w->skel->rodata->vp_walk_fills_table = fills_table;
	w->skel->rodata->vp_pidns_inum = vp_pidns_inum();
	err = vp_shared_maps_reuse(maps, w->skel->obj, e);
	if (err)
		return err;
	*unit = (struct vp_load_unit){
		.name = "synth", .skeleton = w->skel->skeleton, .core_btf = &maps->core_btf};
	return 0;
}

void vp_walker_close(struct vp_walker *w)
{
	synth__destroy(w->skel);
	w->skel = NULL;
}

/* Forgets who spoke for leaderless processes in the last walk. */
static void clear_seen(struct vp_walker *w)
{
	int fd = bpf_map__fd(w->skel->maps.walk_seen);
	char key[16];

	while (!bpf_map_get_next_key(fd, NULL, key))
		bpf_map_delete_elem(fd, key);
}

/* Reads to the end: EAGAIN says that the ring is full, 0 ends (never read again after it). */
static int run_iterator(int fd, struct vp_ring *ring)
{
	char none[64];

	for (;;) {
		ssize_t n = read(fd, none, sizeof(none));
		int err = vp_ring_drain(ring);

		if (err)
			return err;
		if (n == 0)
			return 0;
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			return -errno;
	}
}

static int walk_iterator(struct vp_walker *w, struct vp_ring *ring, pid_t tgid)
{
	int fd = vp_iter_open(w->skel->progs.vp_walk, tgid), err;

	if (fd < 0)
		return fd;
	w->skel->bss->vp_walk_offered = false;
	w->skel->bss->vp_walk_task = 0;
	err = run_iterator(fd, ring);
	close(fd);
	return err;
}

/* Over everything, the kernel side picking out what is wanted: fills the map of tgids. */
static int walk_filtered(struct vp_walker *w, struct vp_ring *ring, const pid_t *tgids, size_t cnt)
{
	int fd = bpf_map__fd(w->skel->maps.walk_tgids), err = 0;
	__u32 wanted = 1;

	for (size_t i = 0; i < cnt && !err; i++)
		err = bpf_map_update_elem(fd, &tgids[i], &wanted, BPF_ANY) ? -errno : 0;
	if (!err) {
		w->skel->bss->vp_walk_filter = true;
		err = walk_iterator(w, ring, 0);
		w->skel->bss->vp_walk_filter = false;
	}
	for (size_t i = 0; i < cnt; i++)
		bpf_map_delete_elem(fd, &tgids[i]);
	return err;
}

/*
 * By the iterator's own filter. Nothing offered at all: a dead process, a kernel thread, or a
 * leader that has exited on a kernel whose filter stops at it; the walk over everything tells.
 */
static int walk_process(struct vp_walker *w, struct vp_ring *ring, pid_t tgid)
{
	int err = walk_iterator(w, ring, tgid);

	if (err == -ENOTSUP || (!err && !w->skel->bss->vp_walk_offered))
		return walk_filtered(w, ring, &tgid, 1);
	return err;
}

int vp_walker_walk(struct vp_walker *w, struct vp_ring *ring, const pid_t *tgids, size_t cnt,
		   struct vp_err *e)
{
	int err = 0;

	clear_seen(w);
	if (cnt == 0)
		err = walk_iterator(w, ring, 0);
	for (size_t i = 0; i < cnt && !err; i++)
		err = walk_process(w, ring, tgids[i]);
	if (err)
		return vp_err_set(e, err, "walking the mappings: %s%s", strerror(-err),
				  vp_err_hint(err));
	return 0;
}
