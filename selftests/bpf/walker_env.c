/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "walker_env.h"

#include "target.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kernel/loader.h"

struct walker_env walker_env;
char walker_dir[] = "/tmp/vmaprof-walker.XXXXXX";

void walker_open(uint64_t ring_bytes, bool all_maps, bool fills_table)
{
	struct vp_load_unit unit = {0};
	struct vp_err e = {""};

	record_log_init(&walker_env.log);
	walker_env.d = (struct vp_decoder){.ops = &record_log_ops, .ctx = &walker_env.log};
	cr_assert(zero(int, vp_shared_maps_create(&walker_env.maps, ring_bytes, 4096, &e)), "%s",
		  e.text);
	cr_assert(zero(int, vp_walker_open(&walker_env.w, &walker_env.maps, all_maps, fills_table,
					   &unit, &e)),
		  "%s", e.text);
	cr_assert(zero(int, vp_load(&unit, 1, false, &e)), "%s", e.text);
	cr_assert(zero(int, vp_ring_open(&walker_env.ring, vp_shared_maps_ring_fd(&walker_env.maps),
					 &walker_env.d, &e)),
		  "%s", e.text);
}

void walker_walk(const pid_t *tgids, size_t cnt)
{
	struct vp_err e = {""};

	record_log_clear(&walker_env.log);
	cr_assert(zero(int, vp_walker_walk(&walker_env.w, walker_env.ring, tgids, cnt, &e)), "%s",
		  e.text);
	cr_assert(zero(u64, walker_env.d.bad_cnt));
	cr_assert(zero(u64, walker_env.d.unknown_cnt));
}

void walker_walk_one(pid_t tgid)
{
	walker_walk(&tgid, 1);
}

uint64_t walker_counter(int which)
{
	uint64_t c[VP_CNT_CNT];

	cr_assert(zero(int, vp_shared_maps_counters(&walker_env.maps, c)));
	return c[which];
}

void walker_set_up(void)
{
	vp_loader_capture_messages(false);
	cr_assert(mkdtemp(walker_dir) != NULL);
}

void walker_tear_down(void)
{
	char cmd[64];

	vp_ring_close(walker_env.ring);
	vp_walker_close(&walker_env.w);
	vp_shared_maps_destroy(&walker_env.maps);
	/* knows paths longer than PATH_MAX */
	snprintf(cmd, sizeof(cmd), "rm -rf %s", walker_dir);
	if (system(cmd))
		fprintf(stderr, "%s is left behind\n", walker_dir);
}

int walker_file(const char *name, size_t pages)
{
	return zeros_file(walker_dir, name, pages * PAGE);
}

uint64_t walker_map_exec(int fd, size_t pages, off_t offset, int flags)
{
	return target_map(NULL, fd, pages * PAGE, offset, PROT_READ | PROT_EXEC, flags);
}

void walker_map_and_tell(const char *name)
{
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", walker_dir, name);
	fd = open(path, O_RDONLY);
	target_check(fd >= 0);
	target_tell(walker_map_exec(fd, 1, 0, MAP_PRIVATE));
	close(fd);
}

const struct log_item *walker_record_at(uint64_t addr)
{
	for (size_t i = 0; i < walker_env.log.cnt; i++) {
		if (walker_env.log.item[i].mmap2.perf.addr == addr)
			return &walker_env.log.item[i];
	}
	return NULL;
}
