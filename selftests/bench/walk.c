// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The executable mappings of a process with 128,000: by the task_vma iterator, by
 * PROCMAP_QUERY, and by /proc/PID/maps merely read and parsed. Times are CPU time.
 */
#include "kernel/loader.h"
#include "kernel/walker.h"
#include "mapped_child.h"
#include "procmap_query.h"

#define TOTAL	   128000L
#define ROUNDS	   11
#define RING_BYTES (1 << 20)

/* A walker with what it needs; decoded records are only counted. */
struct walk {
	struct vp_shared_maps maps;
	struct vp_walker walker;
	struct vp_record_ops ops;
	struct vp_decoder decoder;
	struct vp_ring *ring;
	long found;
};

static int count_mapping(void *ctx, const struct vp_mmap2 *m)
{
	struct walk *w = ctx;

	(void)m;
	w->found++;
	return 0;
}

static void walk_open(struct walk *w, bool all_maps)
{
	struct vp_load_unit unit = {0};
	struct vp_err e = {""};

	*w = (struct walk){.ops.mmap2 = count_mapping};
	w->decoder = (struct vp_decoder){.ops = &w->ops, .ctx = w};
	if (vp_shared_maps_create(&w->maps, RING_BYTES, 1, &e) ||
	    vp_walker_open(&w->walker, &w->maps, all_maps, false, &unit, &e) ||
	    vp_load(&unit, 1, false, &e) ||
	    vp_ring_open(&w->ring, vp_shared_maps_ring_fd(&w->maps), &w->decoder, &e))
		bench_die("%s", e.text);
	vp_load_units_free(&unit, 1);
}

static void walk_close(struct walk *w)
{
	vp_ring_close(w->ring);
	vp_walker_close(&w->walker);
	vp_shared_maps_destroy(&w->maps);
}

static long by_iterator(struct walk *w, pid_t pid)
{
	struct vp_err e = {""};

	w->found = 0;
	if (vp_walker_walk(&w->walker, w->ring, &pid, 1, &e))
		bench_die("%s", e.text);
	return w->found;
}

static FILE *open_maps(pid_t pid)
{
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	f = fopen(path, "re");
	if (!f)
		bench_die("%s: %s", path, strerror(errno));
	return f;
}

/* -1: this kernel has no PROCMAP_QUERY. */
static long by_query(pid_t pid, bool names)
{
	static char name[4096];
	FILE *maps = open_maps(pid);
	struct pm_query q = {
		.size = sizeof(q),
		.query_flags = PM_EXECUTABLE | PM_COVERING_OR_NEXT,
	};
	long found = 0;

	for (;;) {
		q.vma_name_addr = names ? (uintptr_t)name : 0;
		q.vma_name_size = names ? sizeof(name) : 0;
		if (ioctl(fileno(maps), PM_QUERY, &q))
			break;
		q.query_addr = q.vma_end;
		found++;
	}
	if (errno == ENOTTY)
		found = -1;
	else if (errno != ENOENT)
		bench_die("PROCMAP_QUERY: %s", strerror(errno));
	fclose(maps);
	return found;
}

static long by_read(pid_t pid)
{
	static char buf[65536];
	FILE *maps = open_maps(pid);
	ssize_t n;

	while ((n = read(fileno(maps), buf, sizeof(buf))) > 0)
		;
	if (n < 0)
		bench_die("reading /proc/PID/maps: %s", strerror(errno));
	fclose(maps);
	return 0;
}

static long by_parsing(pid_t pid)
{
	FILE *maps = open_maps(pid);
	char line[8192], name[4097], prot[5];
	unsigned long start, end, pgoff, ino;
	unsigned int major, minor;
	long found = 0;

	while (fgets(line, sizeof(line), maps)) {
		name[0] = '\0';
		/* NOLINTNEXTLINE(cert-err34-c): how everyone does it */
		if (sscanf(line, "%lx-%lx %4s %lx %x:%x %lu %4096[^\n]", &start, &end, prot, &pgoff,
			   &major, &minor, &ino, name) < 7)
			bench_die("a line of /proc/PID/maps was not understood: %s", line);
		found += prot[2] == 'x' && strcmp(name, "[vsyscall]") != 0;
	}
	fclose(maps);
	return found;
}

enum way { ITERATOR, ITERATOR_ALL, QUERY_NAMES, QUERY, READ, PARSE, WAY_CNT };

struct ways {
	struct walk exec, all;
	bool have_query;
	struct bench_series ms[WAY_CNT];
	long found[WAY_CNT];
};

static long go(struct ways *s, enum way way, pid_t pid)
{
	switch (way) {
	case ITERATOR:
		return by_iterator(&s->exec, pid);
	case ITERATOR_ALL:
		return by_iterator(&s->all, pid);
	case QUERY_NAMES:
	case QUERY:
		return s->have_query ? by_query(pid, way == QUERY_NAMES) : 0;
	case READ:
		return by_read(pid);
	default:
		return by_parsing(pid);
	}
}

static void check_counts(const struct ways *s)
{
	if (s->found[ITERATOR] != s->found[PARSE] ||
	    (s->have_query && s->found[QUERY] != s->found[PARSE]))
		bench_die("executable mappings: %ld by the iterator, %ld by PROCMAP_QUERY, %ld in "
			  "the "
			  "text",
			  s->found[ITERATOR], s->found[QUERY], s->found[PARSE]);
}

static void measure(struct ways *s, pid_t pid)
{
	memset(s->ms, 0, sizeof(s->ms));
	for (int round = 0; round < ROUNDS; round++) {
		for (enum way w = 0; w < WAY_CNT; w++) {
			uint64_t start = bench_cpu_ns();

			s->found[w] = go(s, w, pid);
			bench_add(&s->ms[w], (double)(bench_cpu_ns() - start) / 1e6);
		}
	}
	check_counts(s);
}

/* A row whose id is SHAPE.WHAT. */
static void row(const char *shape, const char *id, const char *what, double value, const char *unit)
{
	char whole[64];

	snprintf(whole, sizeof(whole), "walk.%s.%s", shape, id);
	bench_row(whole, what, value, unit);
}

static void target(const char *shape, const char *id, const char *what, double value,
		   const char *relation, double limit)
{
	char whole[64];

	snprintf(whole, sizeof(whole), "walk.%s.%s", shape, id);
	bench_target(whole, what, value, "x", relation, limit);
}

static void report_query(const struct ways *s, const char *shape)
{
	double iterator = bench_median(&s->ms[ITERATOR]);

	if (!s->have_query) {
		bench_skip("walk.iterator_to_query", "iterator : PROCMAP_QUERY",
			   "this kernel has no PROCMAP_QUERY (ENOTTY)");
		return;
	}
	row(shape, "query_names", "PROCMAP_QUERY, executable, with names",
	    bench_median(&s->ms[QUERY_NAMES]), "ms");
	row(shape, "query", "PROCMAP_QUERY, executable, without names", bench_median(&s->ms[QUERY]),
	    "ms");
	target(shape, "iterator_to_query_names", "iterator : PROCMAP_QUERY with names",
	       iterator / bench_median(&s->ms[QUERY_NAMES]), "<=", 1.5);
	row(shape, "iterator_to_query", "iterator : PROCMAP_QUERY without names",
	    iterator / bench_median(&s->ms[QUERY]), "x");
}

static void report(const struct ways *s, const char *shape)
{
	double iterator = bench_median(&s->ms[ITERATOR]), all = bench_median(&s->ms[ITERATOR_ALL]);
	double reading = bench_median(&s->ms[READ]), parsing = bench_median(&s->ms[PARSE]);

	row(shape, "iterator", "iterator, executable", iterator, "ms");
	row(shape, "read", "/proc/PID/maps merely read", reading, "ms");
	row(shape, "parse", "/proc/PID/maps by fgets and sscanf", parsing, "ms");
	report_query(s, shape);
	target(shape, "iterator_to_read", "iterator : merely reading", iterator / reading, "<", 1);
	target(shape, "parse_to_iterator", "parsing : iterator", parsing / iterator, ">=", 2.5);
	row(shape, "ns_per_vma", "iterator, a mapping looked at", iterator * 1e6 / (double)TOTAL,
	    "ns");
	row(shape, "all", "iterator, all mappings", all, "ms");
	row(shape, "all_ns_per_vma", "iterator, all, a mapping", all * 1e6 / (double)TOTAL, "ns");
	row(shape, "all_to_read", "iterator, all : merely reading", all / reading, "x");
	row(shape, "parse_to_all", "parsing : iterator, all", parsing / all, "x");
}

static void run_shape(struct ways *s, enum child_shape shape, const char *id, const char *title)
{
	struct mapped_child c = child_start(shape, TOTAL);
	char text[128];

	s->have_query = by_query(c.pid, false) >= 0;
	measure(s, c.pid);
	bench_kill(c.pid);
	snprintf(text, sizeof(text), "Walking %ld mappings, %ld of them executable: %s", TOTAL,
		 s->found[PARSE], title);
	bench_group(text);
	report(s, id);
}

int main(void)
{
	struct ways s = {0};

	vp_loader_capture_messages(false);
	walk_open(&s.exec, false);
	walk_open(&s.all, true);
	run_shape(&s, CHILD_FEW, "few", "a few dozen files");
	run_shape(&s, CHILD_HALF_ANON, "half_anon", "half are anonymous");
	run_shape(&s, CHILD_HALF_FILE, "half_file", "half are of a file");
	walk_close(&s.all);
	walk_close(&s.exec);
	return 0;
}
