// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Addresses of a process with 128,000 mappings, resolved by bpf_find_vma: what one costs in
 * batches of several sizes, apart from the run that carries them. Times are CPU time.
 */
#include "kernel/finder.h"
#include "kernel/loader.h"
#include "mapped_child.h"
#include "procmap_query.h"

#define TOTAL	  128000L
#define ROUNDS	  15
#define BATCH_MAX 10000

enum batch { ONE_ADDRESS, RANDOM_1000, RANDOM_10000, SAME_1000, DIFFERENT_1000, BATCH_CNT };

static const struct {
	size_t cnt;
	const char *id, *what;
} batches[BATCH_CNT] = {
	[ONE_ADDRESS] = {1, "run", "a run with one address"},
	[RANDOM_1000] = {1000, "random_1000", "an address, 1,000 random ones"},
	[RANDOM_10000] = {10000, "random_10000", "an address, 10,000 random ones"},
	[SAME_1000] = {1000, "same_1000", "an address, 1,000 in one mapping"},
	[DIFFERENT_1000] = {1000, "different_1000", "an address, 1,000 in as many mappings"},
};

struct finding {
	struct mapped_child child;
	struct vp_finder *finder;
	struct vp_find finds[BATCH_MAX];
	uint64_t seed;
	long mappings; /* records that came */
	struct bench_series us[BATCH_CNT], query_us;
};

/* xorshift64: the same addresses in every run */
static uint64_t random_below(struct finding *f, uint64_t n)
{
	f->seed ^= f->seed << 13;
	f->seed ^= f->seed >> 7;
	f->seed ^= f->seed << 17;
	return f->seed % n;
}

static uint64_t pick(struct finding *f, enum batch b, size_t i)
{
	const struct mapped_child *c = &f->child;

	if (b == SAME_1000)
		return c->one + random_below(f, c->one_pages * CHILD_PAGE);
	if (b == DIFFERENT_1000)
		return c->base + (i * 127 % c->pages) * CHILD_PAGE + random_below(f, CHILD_PAGE);
	return c->base + random_below(f, c->pages * CHILD_PAGE);
}

static void fill(struct finding *f, enum batch b)
{
	for (size_t i = 0; i < batches[b].cnt; i++)
		f->finds[i] = (struct vp_find){.addr = pick(f, b, i)};
}

static void check_answers(const struct finding *f, size_t cnt)
{
	for (size_t i = 0; i < cnt; i++) {
		const struct vp_find *a = &f->finds[i];

		if (a->verdict != VP_VERDICT_NOT_EXEC || a->addr < a->start || a->addr >= a->end)
			bench_die("a wrong answer: verdict %u for %#lx", a->verdict,
				  (unsigned long)a->addr);
	}
}

static int count_mapping(void *ctx, const struct vp_mmap2 *m)
{
	(void)m;
	((struct finding *)ctx)->mappings++;
	return 0;
}

static void ask(struct finding *f, enum batch b)
{
	size_t cnt = batches[b].cnt;
	struct vp_err e = {""};
	uint64_t start;

	fill(f, b);
	start = bench_cpu_ns();
	if (vp_finder_ask(f->finder, f->child.pid, f->finds, cnt, &e))
		bench_die("%s", e.text);
	bench_add(&f->us[b], (double)(bench_cpu_ns() - start) / 1e3 / (double)cnt);
	check_answers(f, cnt);
}

/* The same by PROCMAP_QUERY, with names: one ioctl an address. False: this kernel has none. */
static bool ask_by_query(struct finding *f)
{
	char path[64], name[4096];
	uint64_t start;
	FILE *maps;

	fill(f, RANDOM_1000);
	snprintf(path, sizeof(path), "/proc/%d/maps", f->child.pid);
	start = bench_cpu_ns();
	maps = fopen(path, "re");
	if (!maps)
		bench_die("%s: %s", path, strerror(errno));
	for (size_t i = 0; i < batches[RANDOM_1000].cnt; i++) {
		struct pm_query q = {
			.size = sizeof(q),
			.query_addr = f->finds[i].addr,
			.vma_name_addr = (uintptr_t)name,
			.vma_name_size = sizeof(name),
		};

		if (ioctl(fileno(maps), PM_QUERY, &q)) {
			fclose(maps);
			return false;
		}
	}
	fclose(maps);
	bench_add(&f->query_us, (double)(bench_cpu_ns() - start) / 1e3 / 1000);
	return true;
}

static double open_finder(struct finding *f)
{
	struct vp_err e = {""};
	uint64_t start = bench_now_ns();

	if (vp_finder_open(&f->finder, BATCH_MAX, count_mapping, f, &e))
		bench_die("%s", e.text);
	return bench_ms_since(start);
}

static void row(const struct finding *f, enum batch b)
{
	char id[64];

	snprintf(id, sizeof(id), "find.%s", batches[b].id);
	bench_row(id, batches[b].what, bench_median(&f->us[b]), "us");
}

static void report(const struct finding *f, bool have_query)
{
	double small = bench_median(&f->us[RANDOM_1000]),
	       large = bench_median(&f->us[RANDOM_10000]);

	bench_target("find.random_1000", batches[RANDOM_1000].what, small, "us", "<", 1);
	row(f, RANDOM_10000);
	bench_row("find.each_more", "each address more (10,000 less 1,000)",
		  (10000 * large - 1000 * small) / 9000, "us");
	row(f, ONE_ADDRESS);
	row(f, SAME_1000);
	row(f, DIFFERENT_1000);
	if (have_query)
		bench_row("find.query", "an address by PROCMAP_QUERY with names, 1,000 random ones",
			  bench_median(&f->query_us), "us");
	else
		bench_skip("find.query", "an address by PROCMAP_QUERY",
			   "this kernel has no PROCMAP_QUERY (ENOTTY)");
}

int main(void)
{
	static struct finding f = {.seed = 88172645463325252ULL};
	bool have_query = true;
	double open_ms;

	vp_loader_capture_messages(false);
	f.child = child_start(CHILD_FEW, TOTAL);
	open_ms = open_finder(&f);
	for (int round = 0; round < ROUNDS; round++) {
		for (enum batch b = 0; b < BATCH_CNT; b++)
			ask(&f, b);
		have_query = have_query && ask_by_query(&f);
	}
	bench_group("Resolving addresses of a process with 128000 mappings by bpf_find_vma");
	report(&f, have_query);
	bench_row("find.open", "loading the finder", open_ms, "ms");
	vp_finder_close(f.finder);
	bench_kill(f.child.pid);
	return 0;
}
