/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "live_env.h"

#include "target.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kernel/loader.h"
#include "track.skel.h"

struct live_env live_env;
char live_dir[] = "/tmp/vmaprof-live.XXXXXX";

/* ---- set-up --------------------------------------------------------------------------------- */

static void open_track(struct vp_load_unit *unit)
{
	live_env.track = track__open();
	cr_assert(live_env.track != NULL);
	live_env.track->rodata->vp_filter = live_env.filter;
	*unit = (struct vp_load_unit){.name = "track", .skeleton = live_env.track->skeleton};
	cr_assert(zero(int, vp_shared_maps_reuse(&live_env.maps, live_env.track->obj, NULL)));
}

void live_open(void)
{
	const struct vp_live_opts o = {.rung = live_env.rung,
				       .filter = live_env.filter,
				       .sideband_bytes = live_env.sideband_bytes};
	struct vp_load_unit units[4] = {0};
	struct vp_err e = {""};

	record_log_init(&live_env.log);
	live_env.d = (struct vp_decoder){.ops = &record_log_ops, .ctx = &live_env.log};
	cr_assert(zero(int, vp_shared_maps_create(&live_env.maps, 4 << 20, 4096, &e)), "%s",
		  e.text);
	cr_assert(zero(int, vp_walker_open(&live_env.filling, &live_env.maps, false, true,
					   &units[0], &e)));
	cr_assert(zero(int, vp_walker_open(&live_env.checking, &live_env.maps, false, false,
					   &units[1], &e)));
	open_track(&units[2]);
	cr_assert(zero(int, vp_live_open(&live_env.live, &o, &live_env.maps, &units[3], &e)), "%s",
		  e.text);
	cr_assert(zero(int, vp_load(units, 4, false, &e)), "%s", e.text);
	cr_assert(zero(int, units[3].err), "%s", units[3].log);
	cr_assert(zero(int, vp_ring_open(&live_env.ring, vp_shared_maps_ring_fd(&live_env.maps),
					 &live_env.d, &e)));
	cr_assert(zero(int, track__attach(live_env.track)));
}

void live_attach(void)
{
	struct vp_err e = {""};

	cr_assert(zero(int, vp_live_attach(live_env.live, 0, live_env.ring, &e)), "%s", e.text);
	cr_assert(eq(int, vp_live_rung(live_env.live), live_env.rung));
}

void live_want(pid_t id, uint32_t flags)
{
	cr_assert(zero(int, bpf_map_update_elem(vp_shared_maps_fd(&live_env.maps, "targets"), &id,
						&flags, BPF_ANY)));
}

void live_walk(struct vp_walker *w, pid_t pid)
{
	struct vp_err e = {""};

	cr_assert(zero(int, vp_walker_walk(w, live_env.ring, &pid, 1, &e)), "%s", e.text);
}

void live_start_reading(void)
{
	struct vp_err e = {""};

	cr_assert(zero(int, vp_ring_start(live_env.ring, &e)), "%s", e.text);
}

/* All that was mapped until now is in the log then: the thread looks once more before it ends. */
void live_stop_reading(void)
{
	cr_assert(zero(int, vp_ring_stop(live_env.ring)));
	cr_expect(zero(u64, live_env.d.bad_cnt));
	cr_expect(zero(u64, live_env.d.unknown_cnt));
}

uint64_t live_counter(int which)
{
	uint64_t c[VP_CNT_CNT];

	cr_assert(zero(int, vp_shared_maps_counters(&live_env.maps, c)));
	return c[which];
}

bool live_have(enum vp_feature_id id)
{
	struct vp_features *f;
	bool found;

	cr_assert(zero(int, vp_features_new(&f)));
	found = vp_features_have(f, id);
	vp_features_free(f);
	return found;
}

void live_set_up(enum vp_track_rung rung)
{
	vp_loader_capture_messages(false);
	live_env.rung = rung;
	live_env.filter = VP_FILTER_TGID;
	cr_assert(mkdtemp(live_dir) != NULL);
}

void live_tear_down(void)
{
	char cmd[64];

	vp_live_detach(live_env.live);
	vp_ring_close(live_env.ring);
	vp_live_close(live_env.live);
	track__destroy(live_env.track);
	vp_walker_close(&live_env.filling);
	vp_walker_close(&live_env.checking);
	vp_shared_maps_destroy(&live_env.maps);
	if (strchr(live_dir, 'X'))
		return;
	snprintf(cmd, sizeof(cmd), "rm -rf %s", live_dir);
	if (system(cmd))
		fprintf(stderr, "%s is left behind\n", live_dir);
}
/* ---- what processes do ---------------------------------------------------------------------- */

int live_new_file(const char *name, size_t pages)
{
	int fd = zeros_file(live_dir, name, pages * PAGE);

	target_check(fd >= 0);
	return fd;
}

uint64_t live_map_at(void *at, int fd, size_t pages, off_t offset, int prot, int flags)
{
	return target_map(at, fd, pages * PAGE, offset, prot, flags);
}

uint64_t live_map_exec(int fd, size_t pages, off_t offset, int flags)
{
	return live_map_at(NULL, fd, pages, offset, PROT_READ | PROT_EXEC, flags);
}

static void load_a_copy_of_a_library(void)
{
	char cmd[600], copy[64];
	Dl_info info;

	snprintf(copy, sizeof(copy), "%s/libcopy.so", live_dir);
	target_check(dladdr((void *)bpf_object__open, &info));
	snprintf(cmd, sizeof(cmd), "cp %s %s", info.dli_fname, copy);
	target_check(!system(cmd));
	target_check(dlopen(copy, RTLD_NOW | RTLD_LOCAL) != NULL);
}

/* r--: its second and third page become executable one by one, then its fifth. */
static void make_pages_executable(int fd)
{
	char *p = (char *)live_map_at(NULL, fd, 6, 0, PROT_READ, MAP_PRIVATE);

	target_check(!mprotect(p + PAGE, PAGE, PROT_READ | PROT_EXEC));
	target_check(!mprotect(p + 2 * PAGE, PAGE, PROT_READ | PROT_EXEC));
	target_check(!mprotect(p + 4 * PAGE, PAGE, PROT_READ | PROT_EXEC));
}

static void map_files(void)
{
	int fd = live_new_file("lib", 16), nl = live_new_file("two\nlines", 2),
	    mem = memfd_create("m", 0);
	int gone = live_new_file("gone", 1);
	char path[64];

	target_check(mem >= 0 && !ftruncate(mem, (off_t)PAGE));
	live_map_exec(fd, 2, 0, MAP_PRIVATE);
	live_map_exec(fd, 1, 5 * PAGE, MAP_SHARED);
	live_map_at(NULL, fd, 1, 8 * PAGE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE);
	live_map_exec(nl, 1, PAGE, MAP_PRIVATE);
	live_map_exec(mem, 1, 0, MAP_PRIVATE);
	snprintf(path, sizeof(path), "%s/gone", live_dir);
	target_check(!unlink(path));
	live_map_exec(gone, 1, 0, MAP_PRIVATE);
	make_pages_executable(fd);
}

static void map_without_files(void)
{
	char *p = (char *)live_map_exec(-1, 3, 0, MAP_PRIVATE | MAP_ANONYMOUS);

	target_check(!mprotect(p + PAGE, PAGE, PROT_READ));
	target_check(!mprotect(p + PAGE, PAGE, PROT_READ | PROT_EXEC));
}

/* Tells when it is asked to go on, and when it is through. */
void live_map_all_kinds(void *arg)
{
	(void)arg;
	target_await();
	map_files();
	load_a_copy_of_a_library();
	map_without_files();
	target_tell(0);
	target_pause();
}

/* ---- what is expected ----------------------------------------------------------------------- */

static bool same_range(const struct log_item *a, const struct log_item *b)
{
	return a->mmap2.perf.addr == b->mmap2.perf.addr && a->mmap2.perf.len == b->mmap2.perf.len;
}

bool live_is_mapping_of(const struct log_item *it, pid_t pid)
{
	return it->hdr.kind == VP_REC_MMAP2 && it->mmap2.proc.tgid == (uint32_t)pid;
}

/* Records of pid among the first n that are of the same mapping as `walked`; the last in *out. */
size_t live_count_same(const struct log_item *walked, pid_t pid, size_t n,
		       const struct log_item **out)
{
	size_t cnt = 0;

	for (size_t i = 0; i < n; i++) {
		const struct log_item *it = &live_env.log.item[i];

		if (live_is_mapping_of(it, pid) && same_range(it, walked) &&
		    it->mmap2.file_id == walked->mmap2.file_id &&
		    it->mmap2.proc.exec_id == walked->mmap2.proc.exec_id) {
			*out = it;
			cnt++;
		}
	}
	return cnt;
}

/* All but when it was sent, by whom, and from where. */
static void expect_same_record(const struct log_item *live, const struct log_item *walked)
{
	cr_expect(
		zero(int, memcmp(&live->mmap2.perf, &walked->mmap2.perf, sizeof(live->mmap2.perf))),
		"%s", walked->name);
	cr_expect(
		zero(int, memcmp(&live->mmap2.file, &walked->mmap2.file, sizeof(live->mmap2.file))),
		"%s", walked->name);
	cr_expect(
		zero(int, memcmp(&live->mmap2.proc, &walked->mmap2.proc, sizeof(live->mmap2.proc))),
		"%s", walked->name);
	cr_expect(eq(u32, live->mmap2.file_id, walked->mmap2.file_id), "%s", walked->name);
	cr_expect(eq(u16, live->mmap2.verdict, walked->mmap2.verdict), "%s", walked->name);
	cr_expect(eq(u16, live->mmap2.hdr.flags & ~VP_MMAP2_F_FROM_WALK,
		     walked->mmap2.hdr.flags & ~VP_MMAP2_F_FROM_WALK),
		  "%s", walked->name);
	cr_expect(eq(str, live->name, walked->name));
	cr_expect(eq(str, (char *)live->mmap2.comm, (char *)walked->mmap2.comm), "%s",
		  walked->name);
}

static void expect_once(const struct log_item *walked, pid_t pid, size_t n)
{
	const struct log_item *live = NULL;

	cr_expect(eq(sz, live_count_same(walked, pid, n, &live), 1), "%" PRIx64 "-%" PRIx64 " %s",
		  (uint64_t)walked->mmap2.perf.addr,
		  (uint64_t)(walked->mmap2.perf.addr + walked->mmap2.perf.len), walked->name);
	if (live)
		expect_same_record(live, walked);
}

/*
 * Each executable mapping that pid has now was reported exactly once, memory without a name
 * never; how many were found by live tracking.
 */
size_t live_expect_all_once(pid_t pid)
{
	size_t n = live_env.log.cnt, by_walk = 0, all = 0;

	live_walk(&live_env.checking, pid);
	for (size_t i = n; i < live_env.log.cnt; i++) {
		if (live_env.log.item[i].mmap2.verdict == VP_VERDICT_ANON_EXEC)
			continue;
		expect_once(&live_env.log.item[i], pid, n);
		all++;
	}
	for (size_t i = 0; i < n; i++) {
		const struct log_item *it = &live_env.log.item[i];

		if (!live_is_mapping_of(it, pid))
			continue;
		by_walk += !!(it->hdr.flags & VP_MMAP2_F_FROM_WALK);
		cr_expect(ne(u16, it->mmap2.verdict, VP_VERDICT_ANON_EXEC), "%" PRIx64,
			  (uint64_t)it->mmap2.perf.addr);
		cr_expect(ne(u16, it->mmap2.verdict, VP_VERDICT_NOT_EXEC));
	}
	return all - by_walk;
}

/* The one mapping that starts at addr, reported exactly once among the first n. */
void live_expect_start_once(pid_t pid, uint64_t addr, size_t n)
{
	for (size_t i = n; i < live_env.log.cnt; i++) {
		if (live_is_mapping_of(&live_env.log.item[i], pid) &&
		    live_env.log.item[i].mmap2.perf.addr == addr) {
			expect_once(&live_env.log.item[i], pid, n);
			return;
		}
	}
	cr_expect(false, "the walk has no mapping at %" PRIx64, addr);
}

size_t live_count_of(pid_t pid)
{
	size_t cnt = 0;

	for (size_t i = 0; i < live_env.log.cnt; i++)
		cnt += live_is_mapping_of(&live_env.log.item[i], pid);
	return cnt;
}
