/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The kernel side's search for a rule against vp_rows_find(), question by question. */
#include "fixture_elf.h"
#include "prog/find_rules.h"
#include "recorder.h"
#include "target.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kernel/loader.h"
#include "kernel/shared_maps.h"
#include "unwind/row_maps.h"
#include "unwind/rows.h"
#include "util/clock.h"

#include "maps.skel.h"

#define QUESTIONS 100000
#define WAIT_MS	  20000

static struct {
	struct vp_shared_maps shared;
	struct vp_row_maps maps;
	struct bpf_object *obj;
	struct rule_question *q;
	struct fixture x;
	char top[512]; /* of the sources */
	uint64_t random;
} env;

static void set_up(void)
{
	struct vp_err e = {""};
	ssize_t n = readlink("/proc/self/exe", env.top, sizeof(env.top) - 1);

	cr_assert(gt(long, n, 0));
	/* TOP/build/selftests/bpf */
	for (int i = 0; i < 3; i++)
		*strrchr(env.top, '/') = '\0';
	if (system("command -v clang >/dev/null") || chdir(env.top) || access("kern", R_OK))
		cr_skip_test("no compiler for BPF, or no sources");
	fixture_new(&env.x);
	vp_loader_capture_messages(false);
	cr_assert(zero(int, vp_shared_maps_create(&env.shared, 4096, 16, &e)), "%s", e.text);
	cr_assert(
		zero(int, vp_row_maps_open(&env.maps, bpf_map__fd(env.shared.skel->maps.row_arrays),
					   bpf_map__fd(env.shared.skel->maps.row_files), &e)),
		"%s", e.text);
	env.random = 4711;
}

static void tear_down(void)
{
	vp_row_maps_close(&env.maps);
	vp_shared_maps_destroy(&env.shared);
	bpf_object__close(env.obj);
	fixture_remove(&env.x);
}

/* What .fini would do, which does not run after it. */
static void skip(const char *why)
{
	tear_down();
	cr_skip_test("%s", why);
}

TestSuite(row_search, .init = set_up, .fini = tear_down, .timeout = 90);

static uint32_t pick(uint32_t below)
{
	env.random ^= env.random >> 12;
	env.random ^= env.random << 25;
	env.random ^= env.random >> 27;
	return (uint32_t)((env.random * 0x2545f4914f6cdd1dULL) >> 33) % below;
}

/* ---- the program ---------------------------------------------------------------------------- */

static void open_program(bool in_task)
{
	struct vp_err e = {""};
	struct bpf_map *map;

	fixture_run(&env.x,
		    "clang -g -O2 -target bpf -mcpu=v3 -D__TARGET_ARCH_x86 %s -I'%s/vmlinux/x86' "
		    "-I'%s/include' -I'%s/kern' -c '%s/selftests/bpf/prog/find_rules.bpf.c' -o o",
		    in_task ? "-DVP_UNWIND_IN_TASK" : "", env.top, env.top, env.top, env.top);
	env.obj = bpf_object__open_file(fixture_path(&env.x, "o"), NULL);
	cr_assert(env.obj != NULL);
	cr_assert(zero(int, vp_shared_maps_reuse(&env.shared, env.obj, &e)), "%s", e.text);
	map = bpf_object__find_map_by_name(env.obj, "questions");
	cr_assert(zero(int, bpf_map__set_max_entries(map, QUESTIONS)));
	map = bpf_object__find_map_by_name(env.obj, ".rodata");
	cr_assert(zero(int, bpf_map__set_initial_value(map, &(uint32_t){QUESTIONS}, 4)));
	cr_assert(zero(int, bpf_object__load(env.obj)));
	env.q = mmap(NULL, QUESTIONS * sizeof(*env.q), PROT_READ | PROT_WRITE, MAP_SHARED,
		     bpf_object__find_map_fd_by_name(env.obj, "questions"), 0);
	cr_assert(env.q != MAP_FAILED);
}

static void ask_all(void)
{
	const struct bpf_program *p = bpf_object__find_program_by_name(env.obj, "find_rules");
	LIBBPF_OPTS(bpf_test_run_opts, o);

	cr_assert(zero(int, bpf_prog_test_run_opts(bpf_program__fd(p), &o)));
	cr_assert(eq(u32, o.retval, 1));
}

/* ---- rows ----------------------------------------------------------------------------------- */

static struct vp_rule random_rule(void)
{
	return (struct vp_rule){
		.cfa_off = (int32_t)pick(1 << 30) - (1 << 29),
		.cfa_add = (int16_t)pick(65536),
		.cfa = (uint8_t)(1 + pick(4)),
		.reg = (uint8_t)pick(16),
		.saved = {(int16_t)pick(65536), 1, 2, 3, 4, 5, (int16_t)pick(65536)},
		.ra_reg = (uint8_t)pick(256),
		.flags = (uint8_t)pick(16),
	};
}

/* Rows as dense as functions are, now and then with a gap that a block cannot span. */
static struct vp_rows *make_rows(uint32_t cnt, uint32_t rule_cnt)
{
	struct vp_rows *rows = calloc(1, sizeof(*rows));
	uint32_t key = pick(2) * pick(100);

	cr_assert(rows != NULL);
	rows->base = 0x1000 * (1 + pick(100));
	rows->cnt = cnt;
	rows->rule_cnt = rule_cnt;
	rows->key = calloc(cnt, sizeof(*rows->key));
	rows->rule = calloc(cnt, sizeof(*rows->rule));
	rows->rules = calloc(rule_cnt, sizeof(*rows->rules));
	cr_assert(rows->key && rows->rule && rows->rules);
	for (uint32_t i = 1; i < rule_cnt; i++)
		rows->rules[i] = random_rule();
	for (uint32_t i = 0; i < cnt; i++) {
		rows->key[i] = key;
		rows->rule[i] = (uint16_t)pick(rule_cnt);
		key += 1 + pick(64) + (pick(2000) ? 0 : 60000 + pick(20000));
	}
	rows->span = key + pick(1000);
	return rows;
}

static void put_rows(uint32_t file_id, const struct vp_rows *rows, bool dirs)
{
	struct vp_row_slot slot = {.file_id = file_id, .desc = vp_rows_layout(rows)};

	cr_expect(eq(int, slot.desc.dir_cnt > 0, dirs));
	slot.fd = vp_row_array_new(rows, &slot.desc);
	cr_assert(ge(int, slot.fd, 0));
	cr_assert(eq(sz, vp_row_maps_put(&env.maps, &slot, 1, vp_now_ns()), 1));
	close(slot.fd);
}

/* ---- asking --------------------------------------------------------------------------------- */

/* Anywhere, or next to a row's beginning, or to the beginning or end of all. */
static uint64_t random_offset(const struct vp_rows *rows)
{
	switch (pick(8)) {
	case 0:
		return rows->base + rows->span - 2 + pick(4);
	case 1:
		return rows->base + rows->key[0] - 2 + pick(4);
	case 2 ... 4:
		return rows->base + rows->key[pick(rows->cnt)] - 1 + pick(3);
	default:
		return rows->base + pick(rows->span);
	}
}

static void expect_answer(const struct rule_question *q, const struct vp_rows *rows)
{
	static const struct vp_rule none;
	const struct vp_rule *want = vp_rows_find(rows, q->offset, NULL);

	cr_assert(eq(u32, q->state, VP_ROW_FILE_READY));
	cr_assert(zero(int, memcmp(&q->rule, want ? want : &none, sizeof(none))),
		  "file %u, offset %" PRIx64 " (row %" PRIx64 ")", q->file_id, (uint64_t)q->offset,
		  (uint64_t)(q->offset - rows->base));
}

/* Rows are file 1 + i's. */
static void compare(struct vp_rows **rows, uint32_t cnt)
{
	size_t found = 0;

	for (uint32_t i = 0; i < QUESTIONS; i++) {
		uint32_t which = pick(cnt);

		env.q[i] = (struct rule_question){.file_id = 1 + which,
						  .offset = random_offset(rows[which])};
		memset(&env.q[i].rule, 0xaa, sizeof(env.q[i].rule));
	}
	ask_all();
	for (uint32_t i = 0; i < QUESTIONS; i++) {
		expect_answer(&env.q[i], rows[env.q[i].file_id - 1]);
		found += env.q[i].rule.cfa != VP_CFA_NONE;
	}
	cr_expect(gt(sz, found, QUESTIONS / 2));
}

static void compare_made_rows(bool in_task)
{
	/* 256 keys to a block, 256 blocks to a directory, 256 of these */
	static const uint32_t sizes[] = {1, 2, 255, 256, 257, 1000, 50000, 66000, 70000, 1000000};
	static const uint32_t rules[] = {2, 3, 42, 43, 84, 85, 1000, 5000, 65536, 65536};
	enum { CNT = sizeof(sizes) / sizeof(sizes[0]) };
	struct vp_rows *rows[CNT];

	open_program(in_task);
	for (uint32_t i = 0; i < CNT; i++) {
		rows[i] = make_rows(sizes[i], rules[i]);
		put_rows(1 + i, rows[i], sizes[i] > 65536);
	}
	compare(rows, CNT);
	for (uint32_t i = 0; i < CNT; i++)
		vp_rows_free(rows[i]);
}

Test(row_search, finds_in_an_interrupt_what_user_space_finds)
{
	compare_made_rows(false);
}

Test(row_search, finds_in_a_task_what_user_space_finds)
{
	if (!recorder_can_defer())
		skip("no stack is taken in a task on this kernel");
	compare_made_rows(true);
}

/* This program's own file and libc. */
Test(row_search, finds_the_rules_of_real_files)
{
	static const char *const paths[] = {"/proc/self/exe", "/lib/x86_64-linux-gnu/libc.so.6"};
	struct vp_rows *rows[2];

	open_program(false);
	for (uint32_t i = 0; i < 2; i++) {
		int fd = open(paths[i], O_RDONLY | O_CLOEXEC);

		if (fd < 0)
			skip("libc is elsewhere");
		cr_assert(zero(int, vp_rows_compile(&rows[i], fd)));
		close(fd);
		put_rows(1 + i, rows[i], rows[i]->cnt > 65536);
	}
	compare(rows, 2);
	for (uint32_t i = 0; i < 2; i++)
		vp_rows_free(rows[i]);
}

Test(row_search, files_without_rows_have_their_state_and_no_rule)
{
	static const struct vp_rule none;
	struct vp_rows *rows = make_rows(1000, 10);
	const uint32_t empty = 3, unknown = 4, freed = 5;

	open_program(false);
	put_rows(freed, rows, false);
	vp_row_maps_set_state(&env.maps, empty, VP_ROW_FILE_NONE);
	vp_row_maps_set_state(&env.maps, freed, VP_ROW_FILE_UNKNOWN);
	vp_row_maps_drop(&env.maps, &freed, 1);
	for (uint32_t i = 0; i < QUESTIONS; i++) {
		env.q[i] = (struct rule_question){.file_id = 3 + i % 5, .offset = pick(1 << 20)};
		/* beyond the map */
		if (i % 5 > 2)
			env.q[i].file_id = i % 5 == 3 ? 65536 : UINT32_MAX;
		memset(&env.q[i].rule, 0xaa, sizeof(env.q[i].rule));
	}
	ask_all();
	for (uint32_t i = 0; i < QUESTIONS; i++) {
		const struct rule_question *q = &env.q[i];
		bool may_have = q->file_id == unknown || q->file_id == freed;

		cr_assert(zero(int, memcmp(&q->rule, &none, sizeof(none))));
		cr_assert(eq(u32, q->state, may_have ? VP_ROW_FILE_UNKNOWN : VP_ROW_FILE_NONE));
	}
	vp_rows_free(rows);
}

/* ---- rows that are freed meanwhile ---------------------------------------------------------- */

#define FREED_ID 7
#define ROUNDS	 60

static struct {
	pthread_t thread;
	atomic_uint asked; /* times that all was asked */
	atomic_bool enough;
	uint64_t ready, unknown, wrong;
} asker;

static void stay_on_this_cpu(void)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	cr_assert(zero(int, sched_setaffinity(0, sizeof(one), &one)));
}

/* Every offset has a rule. */
static void *ask_on_and_on(void *arg)
{
	while (!asker.enough) {
		ask_all();
		for (uint32_t i = 0; i < QUESTIONS; i++) {
			const struct rule_question *q = &env.q[i];
			bool has_rule = q->rule.cfa != VP_CFA_NONE;

			asker.ready += q->state == VP_ROW_FILE_READY && has_rule;
			asker.unknown += q->state == VP_ROW_FILE_UNKNOWN && !has_rule;
			asker.wrong += (q->state == VP_ROW_FILE_READY) != has_rule;
		}
		asker.asked++;
	}
	return arg;
}

static bool was_asked_again(void *seen)
{
	return asker.asked != *(unsigned int *)seen;
}

/*
 * A task that searches can be overtaken between any two steps. It may find the rule or learn that
 * there are no rows now, but never that the code has no rule: that is remembered.
 */
Test(row_search, rows_that_are_freed_meanwhile_are_not_taken_for_code_without_a_rule)
{
	struct vp_rows *rows = make_rows(1000, 1000);
	const uint32_t file_id = FREED_ID;

	if (!recorder_can_defer())
		skip("no stack is taken in a task on this kernel");
	open_program(true);
	for (uint32_t i = 0; i < rows->cnt; i++)
		rows->rule[i] = (uint16_t)(1 + i % (rows->rule_cnt - 1));
	for (uint32_t i = 0; i < QUESTIONS; i++)
		env.q[i] = (struct rule_question){
			.file_id = FREED_ID, .offset = rows->base + rows->key[pick(rows->cnt)]};
	stay_on_this_cpu();
	put_rows(FREED_ID, rows, false);
	cr_assert(zero(int, pthread_create(&asker.thread, NULL, ask_on_and_on, NULL)));
	for (int i = 0; i < ROUNDS; i++) {
		unsigned int seen = asker.asked;

		cr_assert(wait_until(was_asked_again, &seen, WAIT_MS));
		vp_row_maps_set_state(&env.maps, FREED_ID, VP_ROW_FILE_UNKNOWN);
		vp_row_maps_drop(&env.maps, &file_id, 1);
		put_rows(FREED_ID, rows, false);
	}
	asker.enough = true;
	pthread_join(asker.thread, NULL);
	cr_expect(zero(u64, asker.wrong));
	cr_expect(gt(u64, asker.ready, 0));
	cr_expect(gt(u64, asker.unknown, 0));
	vp_rows_free(rows);
}
