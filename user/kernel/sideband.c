/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "sideband.h"

#include "../util/array.h"
#include "../util/clock.h"
#include "iter_fd.h"
#include "perf_events.h"
#include "pidns.h"
#include "resolve.skel.h"

#include "vp_sideband.h"
#include "vp_target.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A thousand records a CPU: more than a busy machine maps between two looks (0.1 s). */
#define RING_BYTES_DEFAULT (128 << 10)
#define RECORD_MAX	   (sizeof(struct perf_event_header) + 65536)

/*
 * A process may map so many files at once, as a large one does when it starts, and so many a
 * second for ever. What it maps beyond that is found when a sample hits it.
 */
#define BURST_CNT      1024
#define PER_SECOND_CNT 200
#define BUCKET_CNT     4096
#define NS_PER_TOKEN   (1000000000ULL / PER_SECOND_CNT)

/* Whoever holds its lock may have been preempted: asked again at so many looks. */
#define LOOKS_WHILE_LOCKED 20

/* One CPU's buffer, which perf writes and we read. */
struct cpu_ring {
	int fd;
	struct perf_event_mmap_page *page; /* the data follows it */
};

/* The head of PERF_RECORD_MMAP2; its name follows. */
struct mmap2_head {
	struct perf_event_header hdr;
	uint32_t tgid, tid;
	uint64_t addr, len, pgoff;
	uint32_t maj, min;
	uint64_t ino, ino_generation;
	uint32_t prot, flags;
	char name[8];
};

struct new_mapping {
	uint32_t tgid;
	uint32_t tries; /* how often its process was found locked */
	uint64_t addr;
};

/* Of the process whose tgid falls into it; another one's takes its place. */
struct bucket {
	uint32_t tgid;
	uint32_t tokens;
	uint64_t filled_ns;
};

struct vp_sideband {
	struct vp_shared_maps *maps;
	struct resolve *skel;
	uint64_t *addrs; /* the map's elements */
	uint32_t filter;
	const struct vp_sideband_targets *targets;
	size_t ring_bytes;
	struct cpu_ring *rings;
	size_t ring_cnt, ring_cap;
	int epoll_fd;
	struct new_mapping pending[VP_SIDEBAND_BATCH];
	size_t pending_cnt;
	struct new_mapping locked[VP_SIDEBAND_BATCH]; /* to be asked for at the next look */
	size_t locked_cnt;
	struct bucket buckets[BUCKET_CNT];
	struct vp_sideband_stats stats;
	_Alignas(8) char record[RECORD_MAX]; /* one that wraps, put together */
};

/* ---- from addresses to mappings ------------------------------------------------------------- */

/* One run over the process's threads; the first that is wanted answers. */
static int run(struct vp_sideband *s, uint32_t tgid, size_t cnt)
{
	struct bpf_program *prog = s->skel->progs.vp_resolve_new;
	int fd = vp_iter_open(prog, (pid_t)tgid);
	char none[64];

	if (fd == -ENOTSUP)
		fd = vp_iter_open(prog, 0);
	if (fd < 0)
		return fd;
	s->skel->bss->vp_resolve_tgid = tgid;
	s->skel->bss->vp_resolve_cnt = (uint32_t)cnt;
	s->skel->bss->vp_resolve_done = false;
	while (read(fd, none, sizeof(none)) < 0 && (errno == EAGAIN || errno == EINTR))
		;
	close(fd);
	return 0;
}

/* It could not be asked for. */
static void keep_for_later(struct vp_sideband *s, const struct new_mapping *m)
{
	if (m->tries >= LOOKS_WHILE_LOCKED || s->locked_cnt == VP_SIDEBAND_BATCH) {
		s->stats.locked_cnt++;
		return;
	}
	s->locked[s->locked_cnt] = *m;
	s->locked[s->locked_cnt++].tries++;
}

static void ask(struct vp_sideband *s, uint32_t tgid, const struct new_mapping *m, size_t cnt)
{
	if (!cnt)
		return;
	for (size_t i = 0; i < cnt; i++)
		s->addrs[i] = m[i].addr;
	/* A process that is gone, or not wanted, is nobody's loss. */
	if (run(s, tgid, cnt) || !s->skel->bss->vp_resolve_done)
		return;
	for (size_t i = 0; i < cnt; i++) {
		if (s->addrs[i])
			keep_for_later(s, &m[i]);
		else
			s->stats.asked_cnt++;
	}
}

/* How many of cnt the process may have. */
static size_t take_tokens(struct vp_sideband *s, uint32_t tgid, size_t cnt)
{
	struct bucket *b = &s->buckets[tgid % BUCKET_CNT];
	uint64_t now = vp_now_ns(), more;

	if (b->tgid != tgid)
		*b = (struct bucket){.tgid = tgid, .tokens = BURST_CNT, .filled_ns = now};
	more = (now - b->filled_ns) / NS_PER_TOKEN;
	b->filled_ns += more * NS_PER_TOKEN;
	b->tokens = more < BURST_CNT - b->tokens ? b->tokens + (uint32_t)more : BURST_CNT;
	if (cnt > b->tokens) {
		s->stats.limited_cnt += cnt - b->tokens;
		cnt = b->tokens;
	}
	b->tokens -= (uint32_t)cnt;
	return cnt;
}

static bool is_wanted(const struct vp_sideband *s, uint32_t tgid)
{
	uint32_t flags;

	switch (s->filter) {
	case VP_FILTER_TGID:
		return !bpf_map_lookup_elem(vp_shared_maps_fd(s->maps, "targets"), &tgid, &flags) &&
		       (flags & VP_TARGET_F_ARMED);
	case VP_FILTER_TID:
		for (size_t i = 0; i < s->targets->cnt; i++) {
			if ((uint32_t)s->targets->tgids[i] == tgid)
				return true;
		}
		return false;
	default:
		return true;
	}
}

static int by_process(const void *a, const void *b)
{
	const struct new_mapping *x = a, *y = b;

	if (x->tgid != y->tgid)
		return (x->tgid > y->tgid) - (x->tgid < y->tgid);
	return (x->addr > y->addr) - (x->addr < y->addr);
}

/* Sorts, and drops what is there twice: only what is mapped now matters. */
static void sort_pending(struct vp_sideband *s)
{
	size_t n = 0;

	qsort(s->pending, s->pending_cnt, sizeof(*s->pending), by_process);
	for (size_t i = 0; i < s->pending_cnt; i++) {
		if (n == 0 || by_process(&s->pending[n - 1], &s->pending[i]))
			s->pending[n++] = s->pending[i];
	}
	s->pending_cnt = n;
}

static void ask_pending(struct vp_sideband *s)
{
	size_t end;

	sort_pending(s);
	for (size_t i = 0; i < s->pending_cnt; i = end) {
		uint32_t tgid = s->pending[i].tgid;

		end = i;
		while (end < s->pending_cnt && s->pending[end].tgid == tgid)
			end++;
		if (is_wanted(s, tgid))
			ask(s, tgid, &s->pending[i], take_tokens(s, tgid, end - i));
	}
	s->pending_cnt = 0;
}

/* ---- perf's records ------------------------------------------------------------------------- */

/* Memory that is nobody's file and has no name of the kernel's, as [vdso] is. */
static bool is_plain_memory(const struct mmap2_head *m)
{
	if (m->ino || m->maj || m->min)
		return false;
	return !strncmp(m->name, "//anon", 6) || !strncmp(m->name, "[heap]", 6) ||
	       !strncmp(m->name, "[stack", 6);
}

static void on_mmap2(struct vp_sideband *s, const struct mmap2_head *m)
{
	s->stats.seen_cnt++;
	/* 0 and -1: a process that has no number in our pid namespace */
	if (m->tgid == 0 || (int32_t)m->tgid < 0 || is_plain_memory(m))
		return;
	if (s->pending_cnt == VP_SIDEBAND_BATCH)
		ask_pending(s);
	s->pending[s->pending_cnt++] = (struct new_mapping){.tgid = m->tgid, .addr = m->addr};
}

static void on_record(struct vp_sideband *s, const struct perf_event_header *h)
{
	if (h->type == PERF_RECORD_MMAP2 && h->size >= sizeof(struct mmap2_head))
		on_mmap2(s, (const void *)h);
	else if (h->type == PERF_RECORD_LOST && h->size >= sizeof(*h) + 2 * sizeof(uint64_t))
		/* header, id, lost */
		s->stats.lost_cnt += ((const uint64_t *)(h + 1))[1];
}

/* The record at pos in one piece; headers never wrap, being 8 bytes of a multiple of 8. */
static const struct perf_event_header *record_at(struct vp_sideband *s, const struct cpu_ring *r,
						 uint64_t pos)
{
	const char *data = (const char *)r->page + r->page->data_offset;
	size_t off = pos & (s->ring_bytes - 1), first = s->ring_bytes - off;
	const struct perf_event_header *h = (const void *)(data + off);

	if (h->size <= first)
		return h;
	memcpy(s->record, h, first);
	memcpy(s->record + first, data, h->size - first);
	return (const void *)s->record;
}

static void read_cpu(struct vp_sideband *s, const struct cpu_ring *r)
{
	uint64_t head = __atomic_load_n(&r->page->data_head, __ATOMIC_ACQUIRE);
	uint64_t pos = r->page->data_tail;

	while (pos < head) {
		const struct perf_event_header *h = record_at(s, r, pos);

		if (h->size < sizeof(*h))
			break;
		on_record(s, h);
		pos += h->size;
	}
	__atomic_store_n(&r->page->data_tail, head, __ATOMIC_RELEASE);
}

void vp_sideband_look(void *sideband)
{
	struct vp_sideband *s = sideband;

	memcpy(s->pending, s->locked, s->locked_cnt * sizeof(*s->locked));
	s->pending_cnt = s->locked_cnt;
	s->locked_cnt = 0;
	for (size_t i = 0; i < s->ring_cnt; i++)
		read_cpu(s, &s->rings[i]);
	if (s->pending_cnt)
		ask_pending(s);
}

/* ---- its events ----------------------------------------------------------------------------- */

static int open_event(const struct vp_sideband *s, int cpu)
{
	struct perf_event_attr attr = {
		.size = PERF_ATTR_SIZE_VER5,
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_DUMMY,
		.mmap = 1,
		.mmap2 = 1,
		/* No wakeup for a record: only before the buffer is full. */
		.watermark = 1,
		.wakeup_watermark = (uint32_t)s->ring_bytes / 2,
	};
	int fd = (int)syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

static int map_ring(struct vp_sideband *s, struct cpu_ring *r)
{
	struct epoll_event readable = {.events = EPOLLIN};
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	r->page = mmap(NULL, page + s->ring_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, r->fd, 0);
	if (r->page == MAP_FAILED) {
		r->page = NULL;
		return -errno;
	}
	return epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, r->fd, &readable) ? -errno : 0;
}

static int add_cpu(void *sideband, int cpu)
{
	struct vp_sideband *s = sideband;
	struct cpu_ring *r;

	if (vp_array_room((void **)&s->rings, &s->ring_cap, s->ring_cnt, 1, sizeof(*s->rings)))
		return -ENOMEM;
	r = &s->rings[s->ring_cnt];
	*r = (struct cpu_ring){.fd = open_event(s, cpu)};
	if (r->fd == -ENODEV && s->ring_cnt) /* went offline meanwhile */
		return 0;
	if (r->fd < 0)
		return r->fd;
	s->ring_cnt++;
	return map_ring(s, r);
}

int vp_sideband_attach(struct vp_sideband *s, struct vp_ring *ring, struct vp_err *e)
{
	int err;

	s->addrs = mmap(NULL, VP_SIDEBAND_BATCH * sizeof(*s->addrs), PROT_READ | PROT_WRITE,
			MAP_SHARED, bpf_map__fd(s->skel->maps.resolve_addrs), 0);
	if (s->addrs == MAP_FAILED) {
		s->addrs = NULL;
		return vp_err_set(e, -errno, "BPF map resolve_addrs: %s", strerror(errno));
	}
	s->skel->bss->vp_target_cgroup_id = s->targets->cgroup_id;
	err = vp_perf_each_cpu(add_cpu, s);
	if (err)
		return vp_err_set(e, err, "perf events of new mappings: %s%s", strerror(-err),
				  vp_err_hint(err));
	vp_ring_add_source(ring, s->epoll_fd, vp_sideband_look, s);
	return 0;
}

void vp_sideband_detach(struct vp_sideband *s)
{
	for (size_t i = 0; i < s->ring_cnt; i++)
		ioctl(s->rings[i].fd, PERF_EVENT_IOC_DISABLE, 0);
}

static void close_rings(struct vp_sideband *s)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	for (size_t i = 0; i < s->ring_cnt; i++) {
		if (s->rings[i].page)
			munmap(s->rings[i].page, page + s->ring_bytes);
		close(s->rings[i].fd);
	}
	free(s->rings);
}

/* ---- as a whole ----------------------------------------------------------------------------- */

static int open_object(struct vp_sideband *s, struct vp_load_unit *unit, struct vp_err *e)
{
	struct bpf_object_open_opts opts = vp_core_btf_opts(&s->maps->core_btf);

	s->skel = resolve__open_opts(&opts);
	if (!s->skel)
		return vp_err_set(e, -errno, "BPF object resolve: %s", strerror(errno));
	s->skel->rodata->vp_filter = s->filter;
	s->skel->rodata->vp_pidns_inum = vp_pidns_inum();
	*unit = (struct vp_load_unit){.name = "resolve", .skeleton = s->skel->skeleton};
	return vp_shared_maps_reuse(s->maps, s->skel->obj, e);
}

int vp_sideband_open(struct vp_sideband **out, const struct vp_sideband_opts *o,
		     struct vp_shared_maps *maps, struct vp_load_unit *unit, struct vp_err *e)
{
	struct vp_sideband *s = calloc(1, sizeof(*s));
	int err;

	if (!s)
		return vp_err_set(e, -ENOMEM, "out of memory");
	s->maps = maps;
	s->filter = o->filter;
	s->targets = o->targets;
	s->ring_bytes = o->ring_bytes ? o->ring_bytes : RING_BYTES_DEFAULT;
	s->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	err = s->epoll_fd < 0 ? vp_err_set(e, -errno, "epoll: %s", strerror(errno))
			      : open_object(s, unit, e);
	if (err) {
		vp_sideband_close(s);
		return err;
	}
	*out = s;
	return 0;
}

void vp_sideband_close(struct vp_sideband *s)
{
	if (!s)
		return;
	close_rings(s);
	if (s->epoll_fd >= 0)
		close(s->epoll_fd);
	if (s->addrs)
		munmap(s->addrs, VP_SIDEBAND_BATCH * sizeof(*s->addrs));
	resolve__destroy(s->skel);
	free(s);
}

void vp_sideband_get_stats(const struct vp_sideband *s, struct vp_sideband_stats *out)
{
	*out = s->stats;
}
