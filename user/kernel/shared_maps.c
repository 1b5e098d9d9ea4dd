/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "shared_maps.h"

#include "maps.skel.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#define PREALLOCATED_PROCS_MAX 8192

static uint64_t next_power_of_two(uint64_t n)
{
	uint64_t p = 4096;

	while (p < n)
		p *= 2;
	return p;
}

/*
 * May a program in an interrupt allocate a hash's elements? Since 34dd3bad1a6f (6.1); the verifier is
 * asked, which takes a tenth of the time of looking through BTF.
 */
static bool may_allocate_on_demand(void)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = BPF_F_NO_PREALLOC);
	int map = bpf_map_create(BPF_MAP_TYPE_HASH, "vp_probe", 4, 4, 1, &opts);
	const struct bpf_insn uses_map[] = {
		{.code = BPF_LD | BPF_IMM | BPF_DW,
		 .dst_reg = BPF_REG_1,
		 .src_reg = BPF_PSEUDO_MAP_FD,
		 .imm = map},
		{.code = 0},
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = 0},
		{.code = BPF_JMP | BPF_EXIT},
	};
	int prog = -1;

	if (map < 0)
		return false;
	prog = bpf_prog_load(BPF_PROG_TYPE_PERF_EVENT, "vp_probe", "Dual BSD/GPL", uses_map,
			     sizeof(uses_map) / sizeof(uses_map[0]), NULL);
	close(map);
	if (prog < 0)
		return false;
	close(prog);
	return true;
}

/*
 * Elements are allocated when they are needed, if that may be. Else all of them exist from the
 * beginning, so there are fewer processes.
 */
static void size_hashes(struct maps *skel, uint32_t procs_max)
{
	struct bpf_map *const hashes[] = {skel->maps.procs, skel->maps.file_ids,
					  skel->maps.targets};
	bool on_demand = may_allocate_on_demand();

	if (!on_demand && procs_max > PREALLOCATED_PROCS_MAX)
		procs_max = PREALLOCATED_PROCS_MAX;
	bpf_map__set_max_entries(skel->maps.procs, procs_max);
	for (size_t i = 0; on_demand && i < sizeof(hashes) / sizeof(hashes[0]); i++)
		bpf_map__set_map_flags(hashes[i], BPF_F_NO_PREALLOC);
}

/* Only -G needs it, and a kernel without CONFIG_CGROUPS has no maps of its kind. */
static void leave_out_cgroup(struct maps *skel)
{
	if (libbpf_probe_bpf_map_type(BPF_MAP_TYPE_CGROUP_ARRAY, NULL) == 0)
		bpf_map__set_autocreate(skel->maps.target_cgroup, false);
}

int vp_shared_maps_create(struct vp_shared_maps *m, uint64_t ring_bytes, uint32_t procs_max,
			  struct vp_err *e)
{
	int err;

	vp_core_btf_open(&m->core_btf);
	m->ring_bytes = next_power_of_two(ring_bytes);
	m->skel = maps__open();
	if (!m->skel)
		return vp_err_set(e, -errno, "BPF maps: %s", strerror(errno));

	bpf_map__set_max_entries(m->skel->maps.rb, (uint32_t)m->ring_bytes);
	size_hashes(m->skel, procs_max);
	leave_out_cgroup(m->skel);
	err = maps__load(m->skel);
	if (err) {
		vp_shared_maps_destroy(m);
		return vp_err_set(e, err, "BPF maps: %s%s", strerror(-err), vp_err_hint(err));
	}
	return 0;
}

void vp_shared_maps_destroy(struct vp_shared_maps *m)
{
	vp_core_btf_close(&m->core_btf);
	maps__destroy(m->skel);
	m->skel = NULL;
}

int vp_shared_maps_reuse(const struct vp_shared_maps *m, struct bpf_object *obj, struct vp_err *e)
{
	struct bpf_map *map, *shared;

	bpf_object__for_each_map(map, obj) {
		shared = bpf_object__find_map_by_name(m->skel->obj, bpf_map__name(map));
		if (shared && !bpf_map__autocreate(shared)) {
			bpf_map__set_autocreate(map, false);
		} else if (shared) {
			int err = bpf_map__reuse_fd(map, bpf_map__fd(shared));

			if (err)
				return vp_err_set(e, err, "BPF map %s: %s%s", bpf_map__name(map),
						  strerror(-err), vp_err_hint(err));
		}
	}
	return 0;
}

int vp_shared_maps_ring_fd(const struct vp_shared_maps *m)
{
	return bpf_map__fd(m->skel->maps.rb);
}

int vp_shared_maps_fd(const struct vp_shared_maps *m, const char *name)
{
	return bpf_object__find_map_fd_by_name(m->skel->obj, name);
}

int vp_shared_maps_counters(const struct vp_shared_maps *m, uint64_t out[VP_CNT_CNT])
{
	int cpus = libbpf_num_possible_cpus();
	uint64_t values[cpus > 0 ? cpus : 1];

	if (cpus < 0)
		return cpus;
	for (uint32_t i = 0; i < VP_CNT_CNT; i++) {
		int err = bpf_map_lookup_elem(bpf_map__fd(m->skel->maps.counters), &i, values);

		if (err)
			return -errno;
		out[i] = 0;
		for (int cpu = 0; cpu < cpus; cpu++)
			out[i] += values[cpu];
	}
	return 0;
}
