// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What finding one mapping, and looking at all, costs by how many there are. */
#include "bench.h"

#include "procmap_query.h"
#include "prog/bench.h"

#include "bench.skel.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE 4096UL

/* One page each, with one between them: what is mapped meanwhile does not come here. */
#define BASE	     0x200000000000UL
#define MAPPING(i)   (BASE + (uint64_t)(i)*2 * PAGE)
#define ENOUGH_NS    1500000000ULL /* of one figure */
#define ROUNDS_LEAST 3

static const struct bench_figure
	find_hit = {"find_vma.hit", "bpf_find_vma, a mapping"},
	find_miss = {"find_vma.miss", "bpf_find_vma, a gap"},
	tree_hit = {"tree_walk.hit", "walk of the tree by bpf_probe_read_kernel, a mapping"},
	tree_miss = {"tree_walk.miss", "walk of the tree by bpf_probe_read_kernel, a gap"};

enum way { VISIT, VISIT_PATH, QUERY, QUERY_NAME, READ, PARSE, WAY_CNT };

static const struct bench_figure of_way[WAY_CNT] = {
	[VISIT] = {"iterate.task_vma", "iter/task_vma, a mapping"},
	[VISIT_PATH] = {"iterate.task_vma_d_path", "iter/task_vma with bpf_d_path, a mapping"},
	[QUERY] = {"iterate.procmap_query", "PROCMAP_QUERY, a mapping"},
	[QUERY_NAME] = {"iterate.procmap_query_name", "PROCMAP_QUERY with names, a mapping"},
	[READ] = {"iterate.maps_read", "/proc/PID/maps, only read, a mapping"},
	[PARSE] = {"iterate.maps_parse", "/proc/PID/maps, fgets and sscanf, a mapping"},
};

static const struct bench_figure *const lookups[] = {&find_hit, &find_miss, &tree_hit, &tree_miss};

#define LOOKUP_CNT (sizeof(lookups) / sizeof(*lookups))

bool bench_vmas_is_wanted(void)
{
	bool any = false;

	for (size_t i = 0; i < LOOKUP_CNT; i++)
		any |= bench_is_wanted(lookups[i]);
	for (size_t w = 0; w < WAY_CNT; w++)
		any |= bench_is_wanted(&of_way[w]);
	return any;
}

void bench_vmas_skip(long vmas, const char *why)
{
	for (size_t i = 0; i < LOOKUP_CNT; i++)
		bench_skip(lookups[i], vmas, "%s", why);
	for (size_t w = 0; w < WAY_CNT; w++)
		bench_skip(&of_way[w], vmas, "%s", why);
}

struct scene {
	struct bench_bpf *s;
	struct bpf_link *visit, *visit_path;
	long vmas;   /* made for this */
	long in_all; /* as the iterator or the text counted last */
	uint64_t seed;
};

/* ---- mappings --------------------------------------------------------------------------------- */

static void map_all(const struct scene *sc)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		bench_die("/proc/self/exe: %s", strerror(errno));
	for (long i = 0; i < sc->vmas; i++) {
		void *p = mmap((void *)MAPPING(i), PAGE, PROT_READ,
			       MAP_PRIVATE | MAP_FIXED_NOREPLACE, fd, 0);

		if (p != (void *)MAPPING(i))
			bench_die("mapping %ld of %ld: %s", i, sc->vmas, strerror(errno));
	}
	close(fd);
}

static uint64_t random_below(struct scene *sc, uint64_t n)
{
	sc->seed ^= sc->seed << 13;
	sc->seed ^= sc->seed >> 7;
	sc->seed ^= sc->seed << 17;
	return sc->seed % n;
}

static void choose_pcs(struct scene *sc, bool hit)
{
	for (size_t i = 0; i < BENCH_PCS; i++)
		sc->s->bss->pcs[i] = MAPPING(random_below(sc, (uint64_t)sc->vmas)) +
				     random_below(sc, PAGE) + (hit ? 0 : PAGE);
}

/* ---- one mapping ------------------------------------------------------------------------------ */

/* What the loop itself takes, a PC. */
static double loop_ns(const struct scene *sc)
{
	double least = 1e9;

	for (int round = 0; round < BENCH_ROUNDS; round++) {
		double ns;

		bench_run_program(sc->s->progs.lookup_by_nothing);
		ns = (double)sc->s->bss->took_ns / BENCH_PCS;
		least = ns < least ? ns : least;
	}
	return least;
}

/* False: this kernel's tree is another one. */
static bool look_up(struct scene *sc, const struct bpf_program *p, bool hit,
		    struct bench_series *out)
{
	double loop = loop_ns(sc);

	for (int round = 0; round < BENCH_ROUNDS; round++) {
		bench_run_program(p);
		if (sc->s->bss->unclear_cnt == BENCH_PCS)
			return false;
		if (sc->s->bss->unclear_cnt || sc->s->bss->found_cnt != (hit ? BENCH_PCS : 0))
			bench_die("%s, %ld mappings: %llu of %d found, %llu unclear",
				  bpf_program__name(p), sc->vmas,
				  (unsigned long long)sc->s->bss->found_cnt, BENCH_PCS,
				  (unsigned long long)sc->s->bss->unclear_cnt);
		bench_add(out, (double)sc->s->bss->took_ns / BENCH_PCS - loop);
	}
	return true;
}

static void measure_lookup(struct scene *sc, const struct bench_figure *f,
			   const struct bpf_program *p, bool hit)
{
	struct bench_series ns = {0};

	if (!bench_is_wanted(f))
		return;
	choose_pcs(sc, hit);
	if (look_up(sc, p, hit, &ns))
		bench_result(f, sc->vmas, sc->in_all, &ns);
	else
		bench_skip(f, sc->vmas, "this kernel keeps mappings in another tree");
}

/* ---- all mappings: how many there were, or -errno ---------------------------------------------- */

static struct bpf_link *attach(const struct bpf_program *p)
{
	union bpf_iter_link_info info = {.task.pid = (uint32_t)getpid()};
	DECLARE_LIBBPF_OPTS(bpf_iter_attach_opts, opts, .link_info = &info,
			    .link_info_len = sizeof(info));
	struct bpf_link *link;

	/* before 6.1: everybody's, without a message */
	libbpf_set_print(NULL);
	link = bpf_program__attach_iter(p, &opts);
	if (!link)
		link = bpf_program__attach_iter(p, NULL);
	if (!link)
		bench_die("iter/task_vma: %s", strerror(errno));
	return link;
}

static long by_iterator(struct scene *sc, const struct bpf_link *link)
{
	int fd = bpf_iter_create(bpf_link__fd(link));
	char buf[64];
	ssize_t n;

	if (fd < 0)
		return -errno;
	sc->s->bss->visited = 0;
	sc->s->bss->paths = 0;
	do {
		n = read(fd, buf, sizeof(buf));
	} while (n > 0 || (n < 0 && errno == EAGAIN));
	close(fd);
	if (n < 0)
		return -errno;
	if (link == sc->visit_path && (long)sc->s->bss->paths < sc->vmas)
		bench_die("%llu paths of %ld mappings", (unsigned long long)sc->s->bss->paths,
			  sc->vmas);
	return (long)sc->s->bss->visited;
}

static long by_query(bool names)
{
	static char name[4096];
	int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	struct pm_query q = {.size = sizeof(q), .query_flags = PM_COVERING_OR_NEXT};
	long cnt = 0;
	int err;

	for (;; cnt++) {
		q.vma_name_addr = names ? (uint64_t)name : 0;
		q.vma_name_size = names ? sizeof(name) : 0;
		if (ioctl(fd, PM_QUERY, &q))
			break;
		q.query_addr = q.vma_end;
	}
	err = errno;
	close(fd);
	return err == ENOENT ? cnt : -err;
}

static long by_reading(void)
{
	static char buf[65536];
	int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	long lines = 0;
	ssize_t n;

	while ((n = read(fd, buf, sizeof(buf))) > 0) {
		for (const char *p = buf; (p = memchr(p, '\n', (size_t)(buf + n - p))); p++)
			lines++;
	}
	close(fd);
	return n < 0 ? -errno : lines;
}

static long by_parsing(void)
{
	FILE *f = fopen("/proc/self/maps", "re");
	char line[8192], name[4097], prot[5];
	unsigned long start, end, offset, inode;
	unsigned int major, minor;
	long cnt = 0;

	while (f && fgets(line, sizeof(line), f)) {
		name[0] = '\0';
		if (sscanf(line, "%lx-%lx %4s %lx %x:%x %lu %4096[^\n]", &start, &end, prot,
			   &offset, &major, &minor, &inode, name) < 7)
			bench_die("not understood: %s", line);
		cnt++;
	}
	if (!f)
		return -errno;
	fclose(f);
	return cnt;
}

static long go(struct scene *sc, enum way w)
{
	switch (w) {
	case VISIT:
		return by_iterator(sc, sc->visit);
	case VISIT_PATH:
		return by_iterator(sc, sc->visit_path);
	case QUERY:
	case QUERY_NAME:
		return by_query(w == QUERY_NAME);
	case READ:
		return by_reading();
	default:
		return by_parsing();
	}
}

static void measure_way(struct scene *sc, enum way w)
{
	struct bench_series ns = {0};
	uint64_t began = bench_now_ns();

	if (!bench_is_wanted(&of_way[w]))
		return;
	while (ns.cnt < BENCH_ROUNDS &&
	       (ns.cnt < ROUNDS_LEAST || bench_now_ns() - began < ENOUGH_NS)) {
		uint64_t start = bench_cpu_ns();
		long cnt = go(sc, w);
		uint64_t took = bench_cpu_ns() - start;

		if (cnt == -ENOTTY) {
			bench_skip(&of_way[w], sc->vmas, "no PROCMAP_QUERY: it came with 6.11");
			return;
		}
		if (cnt < sc->vmas)
			bench_die("%s: %ld of %ld mappings", of_way[w].name, cnt, sc->vmas);
		sc->in_all = cnt;
		bench_add(&ns, (double)took / (double)cnt);
	}
	bench_result(&of_way[w], sc->vmas, sc->in_all, &ns);
}

void bench_vmas(long vmas)
{
	struct scene sc = {
		.vmas = vmas, .seed = 88172645463325252ULL, .s = bench_bpf__open_and_load()};

	if (!sc.s)
		bench_die("the programs do not load: %s", strerror(errno));
	sc.visit = attach(sc.s->progs.visit);
	sc.visit_path = attach(sc.s->progs.visit_with_path);
	map_all(&sc);
	sc.in_all = by_reading();
	measure_lookup(&sc, &find_hit, sc.s->progs.lookup_by_find_vma, true);
	measure_lookup(&sc, &find_miss, sc.s->progs.lookup_by_find_vma, false);
	measure_lookup(&sc, &tree_hit, sc.s->progs.lookup_by_tree, true);
	measure_lookup(&sc, &tree_miss, sc.s->progs.lookup_by_tree, false);
	for (enum way w = 0; w < WAY_CNT; w++)
		measure_way(&sc, w);
}
