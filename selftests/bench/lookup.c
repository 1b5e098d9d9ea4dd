// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What finding the mapping of a PC costs in the kernel: the product's table of executable mappings
 * and what it could be instead, over random PCs in random mappings, which this process really
 * has. See prog/lookup.bpf.c.
 */
#include "bench.h"

#include <bpf/bpf.h>
#include <sys/mman.h>

/* the skeleton does not include it */
#include "prog/lookup.h"

#include "lookup.skel.h"

#define ROUNDS	   31
#define PAGE	   4096UL
#define BASE	   0x100000000000UL
#define PAGES_BITS 8 /* of a mapping: up to 256 pages, small ones as often as large ones */

enum way {
	NOTHING,
	TABLE,
	PRODUCT,
	SLOTS_FIRST,
	LINEAR,
	BINARY,
	TRIE,
	HASH,
	SETS,
	FIND_VMA,
	TREE,
	WAY_CNT
};

static const struct {
	const char *program, *id, *what;
} ways[WAY_CNT] = {
	[NOTHING] = {"by_nothing", "nothing", "the loop itself"},
	[TABLE] = {"by_table", "table", "the table of a process, once a sample"},
	[PRODUCT] = {"by_product", "product", "the product's table"},
	[SLOTS_FIRST] = {"by_slots_first", "slots_first",
			 "… its slots asked before the shared cache"},
	[LINEAR] = {"by_linear", "linear", "linear scan, newest first"},
	[BINARY] = {"by_binary", "binary", "binary search in a sorted array"},
	[TRIE] = {"by_trie", "trie", "LPM trie of (tgid, address)"},
	[HASH] = {"by_hash", "hash", "hash of (tgid, page)"},
	[SETS] = {"by_in_set", "sets", "4-way set-associative array of (tgid, page)"},
	[FIND_VMA] = {"by_find_vma", "find_vma", "bpf_find_vma (interrupts on)"},
	[TREE] = {"by_tree", "tree", "the mm's tree, read without its lock"},
};

struct state {
	struct lookup_bpf *skel;
	struct vp_xmap *sorted;
	uint32_t cnt;
	uint32_t prefix_cnt;
	uint64_t page_cnt;
	bool no_tree; /* before 6.1 */
	uint64_t seed;
	struct bench_series ns[WAY_CNT];
};

static uint64_t random_below(struct state *s, uint64_t n)
{
	s->seed ^= s->seed << 13;
	s->seed ^= s->seed >> 7;
	s->seed ^= s->seed << 17;
	return s->seed % n;
}

/* ---- mappings ------------------------------------------------------------------------------- */

static void map_one(const struct vp_xmap *x)
{
	void *p = mmap((void *)x->start, x->end - x->start, PROT_READ | PROT_EXEC,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);

	if (p == MAP_FAILED)
		bench_die("mmap: %s", strerror(errno));
}

static void map_all(struct state *s, uint32_t cnt)
{
	uint64_t at = BASE;

	s->cnt = cnt;
	s->page_cnt = 0;
	for (uint32_t i = 0; i < cnt; i++) {
		struct vp_xmap *x = &s->sorted[i];
		uint64_t pages = 1 + random_below(s, 1UL << random_below(s, PAGES_BITS + 1));

		at += PAGE * (1 + random_below(s, 64));
		*x = (struct vp_xmap){.start = at, .end = at + pages * PAGE, .file_id = 1};
		x->verdict = VP_VERDICT_FILE;
		at = x->end;
		s->page_cnt += pages;
		map_one(x);
	}
}

static void unmap_all(const struct state *s)
{
	const struct vp_xmap *last = &s->sorted[s->cnt - 1];

	munmap((void *)BASE, last->end - BASE);
}

static uint64_t pick_hit(struct state *s)
{
	const struct vp_xmap *x = &s->sorted[random_below(s, s->cnt)];

	return x->start + random_below(s, x->end - x->start);
}

/* Right before a mapping there is always a page that is none. */
static uint64_t pick_miss(struct state *s)
{
	return s->sorted[random_below(s, s->cnt)].start - 1 - random_below(s, PAGE);
}

static const struct vp_xmap *mapping_of(const struct state *s, uint64_t pc)
{
	for (uint32_t i = 0; i < s->cnt; i++)
		if (pc >= s->sorted[i].start && pc < s->sorted[i].end)
			return &s->sorted[i];
	return NULL;
}

/* ---- filling what is compared --------------------------------------------------------------- */

static void must(int err, const char *what)
{
	if (err)
		bench_die("%s: %s", what, strerror(errno));
}

/* In the order of mapping, which is not that of the addresses. */
static void fill_arrays(struct state *s)
{
	struct vp_xmap *x = s->skel->bss->xmaps;

	memcpy(s->skel->bss->sorted, s->sorted, s->cnt * sizeof(*x));
	memcpy(x, s->sorted, s->cnt * sizeof(*x));
	for (uint32_t i = s->cnt - 1; i > 0; i--) {
		uint32_t j = (uint32_t)random_below(s, i + 1);
		struct vp_xmap t = x[i];

		x[i] = x[j];
		x[j] = t;
	}
	s->skel->bss->xmap_cnt = s->cnt;
}

/* A range is as many prefixes as there are aligned powers of two in it. */
static void fill_trie(struct state *s)
{
	s->prefix_cnt = 0;
	for (uint32_t i = 0; i < s->cnt; i++) {
		const struct vp_xmap *x = &s->skel->bss->xmaps[i];

		for (uint64_t at = x->start; at < x->end;) {
			unsigned int bits = (unsigned int)__builtin_ctzll(at);
			struct lookup_prefix key = {.tgid = LOOKUP_TGID};

			while ((1UL << bits) > x->end - at)
				bits--;
			key.bits = 96 - bits;
			key.addr = __builtin_bswap64(at);
			must(bpf_map__update_elem(s->skel->maps.prefixes, &key, sizeof(key), &i,
						  sizeof(i), BPF_ANY),
			     "prefixes");
			at += 1UL << bits;
			s->prefix_cnt++;
		}
	}
}

static void empty_trie(struct state *s)
{
	struct lookup_prefix key;

	while (!bpf_map__get_next_key(s->skel->maps.prefixes, NULL, &key, sizeof(key)))
		bpf_map__delete_elem(s->skel->maps.prefixes, &key, sizeof(key), 0);
}

static uint32_t index_of(const struct state *s, const struct vp_xmap *x)
{
	for (uint32_t i = 0; i < s->cnt; i++)
		if (s->skel->bss->xmaps[i].start == x->start)
			return i;
	bench_die("a mapping is lost");
}

static void enter_page(struct state *s, uint64_t page, const struct vp_xmap *x)
{
	struct lookup_page key = {LOOKUP_TGID, page};
	uint32_t i = index_of(s, x);

	must(bpf_map__update_elem(s->skel->maps.pages, &key, sizeof(key), &i, sizeof(i), BPF_ANY),
	     "pages");
}

/* False: the set has no room. */
static bool enter_set(struct state *s, uint64_t page, const struct vp_xmap *x)
{
	uint32_t key = lookup_set_of(page);
	struct lookup_set set;

	must(bpf_map__lookup_elem(s->skel->maps.sets, &key, sizeof(key), &set, sizeof(set), 0),
	     "sets");
	for (int i = 0; i < LOOKUP_WAYS; i++) {
		if (set.page[i] && set.page[i] != page)
			continue;
		set.page[i] = page;
		set.xmap[i] = *x;
		must(bpf_map__update_elem(s->skel->maps.sets, &key, sizeof(key), &set, sizeof(set),
					  BPF_ANY),
		     "sets");
		return true;
	}
	return false;
}

/* Random PCs, and their pages in what caches pages. */
static void fill_hits(struct state *s)
{
	for (uint32_t i = 0; i < LOOKUP_PCS;) {
		uint64_t pc = pick_hit(s);
		const struct vp_xmap *x = mapping_of(s, pc);

		if (!enter_set(s, pc / PAGE, x))
			continue;
		enter_page(s, pc / PAGE, x);
		s->skel->bss->pc_of[i] = index_of(s, x);
		s->skel->bss->pcs[i++] = pc;
	}
}

static void fill_misses(struct state *s)
{
	for (uint32_t i = 0; i < LOOKUP_PCS; i++)
		s->skel->bss->pcs[i] = pick_miss(s);
}

static void empty_pages(struct state *s)
{
	struct lookup_set none = {0};
	struct lookup_page key;

	for (uint32_t i = 0; i < 1 << LOOKUP_SET_BITS; i++)
		must(bpf_map__update_elem(s->skel->maps.sets, &i, sizeof(i), &none, sizeof(none),
					  BPF_ANY),
		     "sets");
	while (!bpf_map__get_next_key(s->skel->maps.pages, NULL, &key, sizeof(key)))
		bpf_map__delete_elem(s->skel->maps.pages, &key, sizeof(key), 0);
}

static int run_program(const struct state *s, const char *name)
{
	struct bpf_program *p = bpf_object__find_program_by_name(s->skel->obj, name);
	LIBBPF_OPTS(bpf_test_run_opts, o);

	must(bpf_prog_test_run_opts(bpf_program__fd(p), &o), name);
	return (int)o.retval;
}

/* ---- measuring ------------------------------------------------------------------------------ */

static uint64_t expected_sum(const struct state *s, enum way w)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < LOOKUP_PCS; i++) {
		uint64_t pc = s->skel->bss->pcs[i];
		const struct vp_xmap *x = mapping_of(s, pc);

		sum += w == NOTHING || w == TABLE ? pc : x ? x->start : 0;
	}
	return sum;
}

/* The product's table may have pushed something out: one page in a hundred. */
static bool is_right(const struct state *s, enum way w)
{
	uint64_t expected = expected_sum(s, w), sum = s->skel->bss->sum;

	return sum == expected || ((w == PRODUCT || w == SLOTS_FIRST) && sum < expected &&
				   (double)sum > 0.99 * (double)expected);
}

static void run_way(struct state *s, enum way w)
{
	if (run_program(s, ways[w].program))
		bench_die("%s failed", ways[w].program);
	bench_add(&s->ns[w], (double)s->skel->bss->took_ns / LOOKUP_PCS);
}

static void check(struct state *s, enum way w)
{
	if (w == TREE && s->skel->bss->sum == 0 && expected_sum(s, w))
		s->no_tree = true;
	else if (!is_right(s, w))
		bench_die("%s finds something else, %u mappings", ways[w].what, s->cnt);
}

/* All ways by turns; the first round says whether they are right. */
static void measure(struct state *s)
{
	memset(s->ns, 0, sizeof(s->ns));
	for (int round = 0; round < ROUNDS; round++) {
		for (enum way w = 0; w < WAY_CNT; w++) {
			run_way(s, w);
			if (round == 0 && (w != TREE || !s->no_tree))
				check(s, w);
		}
	}
}

static double cost(const struct state *s, enum way w)
{
	return bench_median(&s->ns[w]) - bench_median(&s->ns[NOTHING]);
}

static void report_way(const struct state *s, enum way w, const char *kind, double target)
{
	char id[64], what[96];

	snprintf(id, sizeof(id), "lookup.%s_%u.%s", kind, s->cnt, ways[w].id);
	snprintf(what, sizeof(what), "%u mappings, %s: %s", s->cnt, kind, ways[w].what);
	if (w == TREE && s->no_tree)
		bench_skip(id, what, "this kernel has no such tree");
	else if (w == PRODUCT && target > 0)
		bench_target(id, what, cost(s, w), "ns", "<=", target);
	else
		bench_row(id, what, cost(s, w), "ns");
}

static void report(const struct state *s, const char *kind, double target)
{
	for (enum way w = PRODUCT; w < WAY_CNT; w++)
		report_way(s, w, kind, target);
}

/* What the alternatives need room for. */
static void report_sizes(const struct state *s)
{
	char id[64], what[96];

	snprintf(id, sizeof(id), "lookup.%u.prefixes", s->cnt);
	snprintf(what, sizeof(what), "%u mappings: prefixes a mapping in a trie", s->cnt);
	bench_row(id, what, (double)s->prefix_cnt / s->cnt, "");
	snprintf(id, sizeof(id), "lookup.%u.pages", s->cnt);
	snprintf(what, sizeof(what), "%u mappings: pages a mapping", s->cnt);
	bench_row(id, what, (double)s->page_cnt / s->cnt, "");
}

/* target 0: none */
static void compare(struct state *s, uint32_t cnt, double target)
{
	map_all(s, cnt);
	fill_arrays(s);
	fill_trie(s);
	fill_hits(s);
	if (run_program(s, "fill_product"))
		bench_die("the product's table cannot be filled");
	measure(s);
	report(s, "known", target);
	fill_misses(s);
	measure(s);
	report(s, "unknown", 0);
	report_sizes(s);
	empty_trie(s);
	empty_pages(s);
	unmap_all(s);
}

static int ignore_messages(enum libbpf_print_level level, const char *fmt, va_list ap)
{
	(void)level;
	(void)fmt;
	(void)ap;
	return 0;
}

int main(void)
{
	static struct state s = {.seed = 88172645463325252ULL};

	libbpf_set_print(ignore_messages);
	s.sorted = calloc(LOOKUP_XMAPS_MAX, sizeof(*s.sorted));
	s.skel = lookup_bpf__open();
	if (!s.sorted || !s.skel)
		bench_die("lookup: %s", strerror(errno));
	bpf_map__set_max_entries(s.skel->maps.procs, 16);
	if (lookup_bpf__load(s.skel))
		bench_die("lookup: %s", strerror(errno));
	bench_group("Finding the mapping of a random PC in the kernel");
	compare(&s, 20, 40);
	bench_row("lookup.table", ways[TABLE].what, cost(&s, TABLE), "ns");
	compare(&s, 200, 100);
	compare(&s, 5000, 0);
	lookup_bpf__destroy(s.skel);
	free(s.sorted);
	return 0;
}
