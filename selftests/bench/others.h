/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What another process costs, seen from outside: its CPU time, and its BPF programs and maps. */
#ifndef OTHERS_H
#define OTHERS_H

#include "bench.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <dirent.h>

#include "vp_counters.h"

#define OTHERS_MAX 512

struct others_map {
	uint32_t id;
	char name[BPF_OBJ_NAME_LEN];
	double bytes; /* the kernel's own count */
};

struct others_maps {
	struct others_map map[OTHERS_MAX];
	size_t cnt;
};

/* Growing counts: two of them make a window. */
struct others_cost {
	double cpu_ns;	/* of the process */
	double run_ns;	/* of its BPF programs, wherever they ran */
	double task_ns; /* of deferred stacks, which those do not contain */
	double walk_runs;
	double samples;
};

BENCH double others_cpu_ns(pid_t pid)
{
	struct timespec ts;
	clockid_t clock;

	if (clock_getcpuclockid(pid, &clock) || clock_gettime(clock, &ts))
		bench_die("CPU time of %d: it has ended", pid);
	return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

/* Calls fn once for each fdinfo of pid with the text in it. */
BENCH void others_each_fd(pid_t pid, void (*fn)(const char *text, void *ctx), void *ctx)
{
	char path[300], text[1024];
	struct dirent *d;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fdinfo", pid);
	dir = opendir(path);
	if (!dir)
		bench_die("%s: %s", path, strerror(errno));
	while ((d = readdir(dir))) {
		size_t n;
		FILE *f;

		snprintf(path, sizeof(path), "/proc/%d/fdinfo/%s", pid, d->d_name);
		f = d->d_name[0] == '.' ? NULL : fopen(path, "re");
		if (!f)
			continue;
		n = fread(text, 1, sizeof(text) - 1, f);
		text[n] = '\0';
		fclose(f);
		fn(text, ctx);
	}
	closedir(dir);
}

/* The number behind "KEY:", or -1. */
BENCH double others_field(const char *text, const char *key)
{
	const char *at = strstr(text, key);

	return at ? strtod(at + strlen(key), NULL) : -1;
}

/* ---- programs ------------------------------------------------------------------------------- */

BENCH void others_add_prog(const char *text, void *ctx)
{
	struct others_cost *c = ctx;
	double id = others_field(text, "prog_id:");
	struct bpf_prog_info info = {0};
	__u32 len = sizeof(info);
	int fd = id < 0 || strstr(text, "link_type:") ? -1 : bpf_prog_get_fd_by_id((__u32)id);

	if (fd < 0)
		return;
	if (bpf_obj_get_info_by_fd(fd, &info, &len))
		bench_die("program %.0f: %s", id, strerror(errno));
	close(fd);
	c->run_ns += (double)info.run_time_ns;
	if (!strcmp(info.name, "vp_walk"))
		c->walk_runs += (double)info.run_cnt;
}

BENCH double others_counter(int fd, __u32 which)
{
	int cpus = libbpf_num_possible_cpus();
	__u64 *values = calloc((size_t)cpus, sizeof(*values));
	double sum = 0;

	if (!values || bpf_map_lookup_elem(fd, &which, values))
		bench_die("counters: %s", strerror(errno));
	for (int i = 0; i < cpus; i++)
		sum += (double)values[i];
	free(values);
	return sum;
}

/* ---- maps ----------------------------------------------------------------------------------- */

BENCH void others_enter_map(struct others_maps *m, int fd, double bytes)
{
	struct bpf_map_info info = {0};
	__u32 len = sizeof(info);

	if (bpf_obj_get_info_by_fd(fd, &info, &len))
		bench_die("a map: %s", strerror(errno));
	for (size_t i = 0; i < m->cnt; i++)
		if (m->map[i].id == info.id)
			return;
	if (m->cnt == OTHERS_MAX)
		bench_die("more than %d maps", OTHERS_MAX);
	m->map[m->cnt].id = info.id;
	m->map[m->cnt].bytes = bytes;
	memcpy(m->map[m->cnt++].name, info.name, sizeof(info.name));
}

/* "memlock" of a descriptor of ours. */
BENCH double others_map_bytes(int fd)
{
	char path[64], text[1024];
	size_t n;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	f = fopen(path, "re");
	if (!f)
		bench_die("%s: %s", path, strerror(errno));
	n = fread(text, 1, sizeof(text) - 1, f);
	text[n] = '\0';
	fclose(f);
	return others_field(text, "memlock:");
}

BENCH void others_enter_id(struct others_maps *m, __u32 id, double bytes)
{
	int fd = bpf_map_get_fd_by_id(id);

	if (fd < 0)
		return;
	others_enter_map(m, fd, bytes < 0 ? others_map_bytes(fd) : bytes);
	close(fd);
}

/* Maps of processes, not those in maps of maps. */
BENCH void others_add_map(const char *text, void *ctx)
{
	double id = others_field(text, "map_id:");

	if (id >= 0 && others_field(text, "map_type:") >= 0)
		others_enter_id(ctx, (__u32)id, others_field(text, "memlock:"));
}

/* The maps in a map of maps; nobody need have them open. In batches: it has 65,536 places. */
BENCH void others_add_inner(struct others_maps *m, __u32 outer_id)
{
	static __u32 keys[4096], ids[4096];
	int fd = bpf_map_get_fd_by_id(outer_id), err = 0;
	__u32 at, cnt;

	if (fd < 0)
		return;
	for (bool first = true; !err; first = false) {
		cnt = 4096;
		err = bpf_map_lookup_batch(fd, first ? NULL : &at, &at, keys, ids, &cnt, NULL);
		if (err && errno != ENOENT)
			bench_die("a map of maps: %s", strerror(errno));
		for (__u32 i = 0; i < cnt; i++)
			others_enter_id(m, ids[i], -1);
	}
	close(fd);
}

BENCH int others_largest_first(const void *a, const void *b)
{
	const struct others_map *x = a, *y = b;

	return (x->bytes < y->bytes) - (x->bytes > y->bytes);
}

/* All that pid has, those in its map of maps `outer`, too; largest first. */
BENCH void others_read_maps(pid_t pid, struct others_maps *m, const char *outer)
{
	size_t cnt;

	m->cnt = 0;
	others_each_fd(pid, others_add_map, m);
	cnt = m->cnt;
	for (size_t i = 0; i < cnt; i++)
		if (!strcmp(m->map[i].name, outer))
			others_add_inner(m, m->map[i].id);
	qsort(m->map, m->cnt, sizeof(*m->map), others_largest_first);
}

/* ---- both ----------------------------------------------------------------------------------- */

/* Of `vmaprof record`; bpf_enable_stats() is in force. */
BENCH struct others_cost others_read_cost(pid_t pid)
{
	static struct others_maps maps;
	struct others_cost c = {.cpu_ns = others_cpu_ns(pid)};

	others_each_fd(pid, others_add_prog, &c);
	others_read_maps(pid, &maps, "");
	for (size_t i = 0; i < maps.cnt; i++) {
		int fd;

		if (strcmp(maps.map[i].name, "counters"))
			continue;
		fd = bpf_map_get_fd_by_id(maps.map[i].id);
		if (fd < 0)
			break;
		c.task_ns = others_counter(fd, VP_CNT_TASK_NS);
		c.samples = others_counter(fd, VP_CNT_SAMPLES);
		close(fd);
		return c;
	}
	bench_die("process %d has no counters", pid);
}

/* Reads what it says until a line with that text has come. */
BENCH void others_wait_for(FILE *out, const char *text)
{
	char line[4096], first[4096] = "";

	while (fgets(line, sizeof(line), out)) {
		if (strstr(line, text))
			return;
		if (!first[0])
			memcpy(first, line, sizeof(first));
	}
	bench_die("it ended without saying \"%s\", but: %s", text, first);
}

#endif
