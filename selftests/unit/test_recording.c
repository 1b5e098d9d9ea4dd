/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "fixture_elf.h"
#include "made_records.h"
#include "model/recording.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct vp_recording r;
static struct made m;

static void set_up(void)
{
	r.max_stack_bytes = UINT64_MAX;
	made_init(&m, &vp_recording_ops, &r);
}

static void tear_down(void)
{
	vp_recording_free(&r);
}

TestSuite(recording, .init = set_up, .fini = tear_down);

static void sample_at(uint64_t offset)
{
	const struct vp_frame f = made_file_frame(1, 0x1000 + offset, offset);

	cr_assert(zero(int, made_sample(&m, NULL, 0, &f, 1, VP_END_BOTTOM)));
}

Test(recording, counts_what_it_gets)
{
	const uint64_t kern[] = {0xffffffff81000000, 0xffffffff81000010};
	const struct vp_frame user[] = {
		made_file_frame(1, 0x1100, 0x100),
		made_frame(VP_VERDICT_BUSY, 0x2200),
		made_frame(VP_VERDICT_BUSY, 0x3300),
	};

	m.ts_ns = 500;
	cr_assert(zero(int, made_sample(&m, kern, 2, user, 3, VP_END_BAD_FP)));
	m.ts_ns = 400; /* from another CPU */
	cr_assert(zero(int, made_sample(&m, kern, 1, user, 1, VP_END_BOTTOM)));
	m.ts_ns = 900;
	cr_assert(zero(int, made_sample(&m, kern, 1, NULL, 0, VP_END_KERNEL_ONLY)));
	/* a number that this program does not know counts nowhere and breaks nothing */
	cr_assert(zero(int, made_sample(&m, kern, 1, NULL, 0, UINT16_MAX)));
	cr_expect(eq(u64, r.sample_cnt, 4));
	cr_expect(eq(u64, r.frame_cnt, 4));
	cr_expect(eq(u64, r.unresolved_cnt, 2));
	cr_expect(eq(u64, r.end_cnt[VP_END_BAD_FP], 1));
	cr_expect(eq(u64, r.end_cnt[VP_END_BOTTOM], 1));
	cr_expect(eq(u64, r.end_cnt[VP_END_KERNEL_ONLY], 1));
	cr_expect(eq(u64, r.first_ns, 400));
	cr_expect(eq(u64, r.last_ns, 900));
	cr_assert(eq(sz, r.procs.cnt, 1));
	cr_expect(eq(u64, r.procs.proc[0].sample_cnt, 4));
}

Test(recording, kernel_frames_come_first_and_each_side_has_a_leaf)
{
	const uint64_t kern[] = {0xffffffff81000000, 0xffffffff81000010};
	const struct vp_frame user[] = {made_file_frame(1, 0x1100, 0x100),
					made_frame(VP_VERDICT_ANON_EXEC, 0x2200)};
	const struct vp_at *at;

	cr_assert(zero(int, made_sample(&m, kern, 2, user, 2, VP_END_BOTTOM)));
	cr_assert(eq(sz, r.stacks.frame_cnt, 4));
	at = r.stacks.frames;
	cr_expect(eq(u64, at[0].value, kern[0]));
	cr_expect(eq(u32, at[0].verdict, VP_AT_KERNEL));
	cr_expect(eq(u32, at[0].leaf, 1));
	cr_expect(zero(u32, at[1].leaf));
	cr_expect(eq(u64, at[2].value, 0x100));
	cr_expect(eq(u32, at[2].file_id, 1));
	cr_expect(eq(u32, at[2].leaf, 1));
	cr_expect(eq(u64, at[3].value, 0x2200));
	cr_expect(zero(u32, at[3].file_id));
	cr_expect(zero(u32, at[3].leaf));
}

Test(recording, one_stack_serves_all_processes_that_share_the_file)
{
	sample_at(0x10);
	m.proc.tgid++;
	sample_at(0x10);
	m.proc.exec_id++;
	m.comm = "other";
	sample_at(0x10);
	cr_expect(eq(sz, r.stacks.stack_cnt, 1));
	cr_expect(eq(sz, r.stacks.tally_cnt, 3));
	cr_expect(eq(sz, r.procs.cnt, 3));
	cr_expect(eq(sz, r.comms.cnt, 2));
}

/* Where the table of files was full, a frame has no file_id: only its address tells. */
Test(recording, a_file_without_a_number_is_told_by_its_address)
{
	const struct vp_frame f = made_file_frame(VP_FILE_ID_NONE, 0x7100, 0x100);

	cr_assert(zero(int, made_sample(&m, NULL, 0, &f, 1, VP_END_BOTTOM)));
	cr_expect(eq(u64, r.stacks.frames[0].value, 0x7100));
}

/* Each of the two vdso images has offsets of its own. */
Test(recording, the_vdso_of_32_bit_programs_is_not_taken_for_that_of_64_bit_ones)
{
	struct vp_frame f[] = {made_frame(VP_VERDICT_VDSO, 0x7ffd00001820),
			       made_frame(VP_VERDICT_VDSO, 0xf7f11820)};

	f[0].offset = f[1].offset = 0x820;
	cr_assert(zero(int, made_sample(&m, NULL, 0, f, 2, VP_END_BOTTOM)));
	cr_assert(eq(sz, r.stacks.frame_cnt, 2));
	cr_expect(eq(u64, r.stacks.frames[0].value, 0x820));
	cr_expect(eq(u64, r.stacks.frames[1].value, 0xf7f11820));
}

Test(recording, beyond_the_memory_limit_samples_are_counted_and_no_error)
{
	r.max_stack_bytes = 50000;
	for (uint64_t i = 0; i < 5000; i++)
		sample_at(i);
	cr_expect(eq(u64, r.sample_cnt, 5000));
	cr_expect(gt(u64, r.stacks_full_cnt, 1000));
	cr_expect(eq(u64, r.stacks_full_cnt + r.stacks.tally_cnt, 5000));
	/* known ones still count */
	sample_at(0);
	cr_expect(eq(u64, r.stacks_full_cnt + r.stacks.tally_cnt, 5000));
}

Test(recording, mappings_and_their_files_are_kept_by_life)
{
	const struct vp_proc_id parent = m.proc;
	struct vp_proc_id child = parent;
	const struct vp_process *p;

	cr_assert(zero(int, made_map(&m, 0x1000, 0x2000, 0, 3, VP_VERDICT_FILE, "/lib/x")));
	cr_assert(zero(int, made_map(&m, 0x1000, 0x2000, 0, 3, VP_VERDICT_FILE, "/lib/x")));
	m.proc.exec_id++;
	cr_assert(zero(int, made_map(&m, 0x1000, 0x2000, 0, 4, VP_VERDICT_FILE, "/lib/y")));
	child.tgid++;
	cr_assert(zero(int, made_inherit(&m, child, parent)));
	cr_assert(eq(sz, r.procs.cnt, 3));
	cr_expect(eq(sz, r.procs.proc[0].xmap_cnt, 1));
	p = &r.procs.proc[vp_procs_get(&r.procs, &child)];
	cr_assert(eq(sz, p->xmap_cnt, 1));
	cr_expect(eq(u32, p->xmaps[0].file_id, 3));
	cr_expect(eq(str, vp_files_get(&r.files, 3)->name, "/lib/x"));
	cr_expect(eq(str, vp_files_get(&r.files, 4)->name, "/lib/y"));
	cr_expect(zero(ptr, vp_files_get(&r.files, 0)));
	cr_expect(zero(ptr, vp_files_get(&r.files, 1)));
	cr_expect(zero(ptr, vp_files_get(&r.files, UINT32_MAX)));
}

Test(recording, one_may_inherit_from_a_process_never_heard_of)
{
	const struct vp_proc_id nobody = {.start_ns = 9, .tgid = 9, .exec_id = 9};

	cr_expect(zero(int, made_inherit(&m, m.proc, nobody)));
}

/* vp_procs grows while both lives are added: neither may be looked at by an old address. */
Test(recording, many_inherit_from_one)
{
	struct vp_proc_id child = m.proc;

	cr_assert(zero(int, made_map(&m, 0x1000, 0x2000, 0, 3, VP_VERDICT_FILE, "/lib/x")));
	for (uint32_t i = 0; i < 1000; i++) {
		child.tgid++;
		cr_assert(zero(int, made_inherit(&m, child, m.proc)));
		cr_assert(eq(sz, r.procs.proc[vp_procs_get(&r.procs, &child)].xmap_cnt, 1));
	}
}

Test(recording, hostile_file_ids_cost_no_memory)
{
	cr_assert(zero(int, made_map(&m, 0x1000, 0x2000, 0, UINT32_MAX, VP_VERDICT_FILE, "/x")));
	cr_assert(zero(int, made_map(&m, 0x1000, 0x3000, 0, 1u << 30, VP_VERDICT_FILE, "/x")));
	cr_expect(le(sz, r.files.cap, 1u << 20));
}

Test(recording, a_file_is_read_at_its_first_frame_and_never_again)
{
	struct vp_symbolizer_stats stats;
	struct vp_symbolizer *s;
	struct fixture x;
	const char *path;
	struct vp_err e;
	uint64_t read = 0;

	fixture_new(&x);
	fixture_text(&x, "t.c", "int f(void) { return 1; }\n");
	fixture_run(&x, "gcc -shared -o lib t.c");
	path = fixture_path(&x, "lib");
	cr_assert(zero(int, vp_symbolizer_new(&s, NULL)));
	cr_assert(zero(int, vp_file_pool_start(&r.pool, s, NULL, NULL, &e)));
	cr_assert(zero(int, made_map(&m, 0x1000, 0x9000, 0, 1, VP_VERDICT_FILE, path)));
	vp_file_pool_wait(r.pool);
	vp_symbolizer_get_stats(s, &stats);
	cr_expect(zero(u64, stats.file_cnt[VP_SYM_OK]), "read before there was a frame in it");

	sample_at(0x10);
	cr_expect(vp_files_get(&r.files, 1)->requested);
	vp_file_pool_wait(r.pool);
	/* gone: whoever reads it again gets nothing */
	fixture_remove(&x);
	for (uint64_t i = 0; i < 100; i++)
		sample_at(i);
	vp_file_pool_wait(r.pool);
	vp_symbolizer_get_stats(s, &stats);
	for (int i = 0; i < VP_SYM_REASON_CNT; i++)
		read += stats.file_cnt[i];
	cr_expect(eq(u64, read, 1));
	cr_expect(eq(u64, stats.file_cnt[VP_SYM_OK], 1));
	vp_file_pool_stop(r.pool);
	vp_symbolizer_free(s);
}

/* ---- code of JITs ---- */

static atomic_size_t jit_cnt;
static char jit_dump[64];
static uint64_t jit_dump_start;

static void note_jit(void *ctx, const struct vp_proc_id *life, const struct vp_mapped_file *dump)
{
	(void)ctx;
	if (memcmp(life, &m.proc, sizeof(*life)))
		abort();
	snprintf(jit_dump, sizeof(jit_dump), "%s", dump ? dump->name : "none");
	jit_dump_start = dump ? dump->start : 0;
	jit_cnt++;
}

static void no_symbols(void *ctx, uint32_t file_id, const struct vp_mapped_file *f, int fd)
{
	(void)ctx;
	(void)fd;
	(void)file_id;
	(void)f;
}

static void open_jit_pool(void)
{
	const struct vp_file_work work = {.symbols = no_symbols, .jit = note_jit};
	struct vp_err e = {""};

	cr_assert(zero(int, vp_file_pool_start_work(&r.pool, &work, 0, &e)), "%s", e.text);
}

/* A sample at ms with this frame; how often it has been asked what the JIT tells. */
static size_t asked_at(uint64_t ms, const struct vp_frame *f)
{
	m.ts_ns = 1000000000 + ms * 1000000;
	cr_assert(zero(int, made_sample(&m, NULL, 0, f, 1, VP_END_BOTTOM)));
	vp_file_pool_wait(r.pool);
	return jit_cnt;
}

Test(recording, a_jit_is_asked_at_its_first_frame_and_then_ever_more_seldom)
{
	const struct vp_frame jit = made_frame(VP_VERDICT_ANON_EXEC, 0x5000);
	const struct vp_frame file = made_file_frame(1, 0x1000, 0);

	open_jit_pool();
	cr_expect(zero(sz, asked_at(0, &file)));
	cr_expect(zero(int, vp_recording_ask_again(&r)));
	cr_expect(zero(sz, asked_at(1, &file)));
	cr_expect(eq(sz, asked_at(10, &jit), 1));
	cr_expect(eq(sz, asked_at(109, &jit), 1));
	cr_expect(eq(sz, asked_at(110, &jit), 2));
	cr_expect(eq(sz, asked_at(309, &jit), 2));
	cr_expect(eq(sz, asked_at(310, &jit), 3));
	for (uint64_t ms = 320; ms < 100000; ms += 10)
		asked_at(ms, &jit);
	cr_expect(ge(sz, jit_cnt, 90));
	cr_expect(le(sz, jit_cnt, 110));
	cr_expect(eq(str, jit_dump, "none"));
	/* and at the end */
	jit_cnt = 0;
	cr_expect(zero(int, vp_recording_ask_again(&r)));
	vp_file_pool_wait(r.pool);
	cr_expect(eq(sz, jit_cnt, 1));
	vp_file_pool_stop(r.pool);
}

Test(recording, a_jit_that_only_mappings_tell_of_is_asked_at_the_end)
{
	const struct vp_frame busy = made_frame(VP_VERDICT_BUSY, 0x5000);

	open_jit_pool();
	cr_expect(zero(sz, asked_at(0, &busy)));
	cr_expect(zero(int, vp_recording_ask_again(&r)));
	vp_file_pool_wait(r.pool);
	cr_expect(zero(sz, jit_cnt));
	cr_assert(zero(int, made_map(&m, 0x5000, 0x6000, 0, 0, VP_VERDICT_ANON_EXEC, "//anon")));
	cr_expect(zero(int, vp_recording_ask_again(&r)));
	vp_file_pool_wait(r.pool);
	cr_expect(eq(sz, jit_cnt, 1));
	vp_file_pool_stop(r.pool);
}

Test(recording, a_jitdump_is_known_by_its_mapping)
{
	const struct vp_frame jit = made_frame(VP_VERDICT_ANON_EXEC, 0x5000);

	open_jit_pool();
	cr_assert(zero(int, made_map(&m, 0x1000, 0x2000, 0, 3, VP_VERDICT_FILE, "/lib/x")));
	cr_assert(zero(int, made_map(&m, 0x3000, 0x4000, 0, 4, VP_VERDICT_FILE, "/x/jit-9.dump")));
	cr_assert(zero(int, made_map(&m, 0x6000, 0x7000, 0, 3, VP_VERDICT_FILE, "/lib/x")));
	/* at once: perhaps only a copy of the process is ever seen in its code */
	vp_file_pool_wait(r.pool);
	cr_expect(eq(sz, jit_cnt, 1));
	cr_expect(eq(str, jit_dump, "/x/jit-9.dump"));
	cr_expect(eq(sz, asked_at(0, &jit), 2));
	cr_expect(eq(str, jit_dump, "/x/jit-9.dump"));
	cr_expect(eq(u64, jit_dump_start, 0x3000));
	vp_file_pool_stop(r.pool);
}

Test(recording, a_copy_has_the_jitdump_that_its_parent_maps)
{
	const struct vp_frame jit = made_frame(VP_VERDICT_ANON_EXEC, 0x5000);
	const struct vp_proc_id parent = m.proc;
	struct vp_proc_id copy = m.proc;

	open_jit_pool();
	cr_assert(zero(int, made_map(&m, 0x3000, 0x4000, 0, 4, VP_VERDICT_FILE, "/x/jit-9.dump")));
	vp_file_pool_wait(r.pool);
	copy.tgid++;
	cr_assert(zero(int, made_inherit(&m, copy, parent)));
	m.proc = copy;
	jit_dump[0] = '\0';
	cr_expect(eq(sz, asked_at(0, &jit), 2));
	cr_expect(eq(str, jit_dump, "/x/jit-9.dump"));
	/* one of its own precedes */
	cr_assert(zero(int, made_map(&m, 0x8000, 0x9000, 0, 5, VP_VERDICT_FILE, "/x/jit-10.dump")));
	cr_expect(eq(sz, asked_at(1000, &jit), 4));
	cr_expect(eq(str, jit_dump, "/x/jit-10.dump"));
	vp_file_pool_stop(r.pool);
}

Test(recording, a_jit_that_keeps_its_code_in_a_memfd_is_asked_too)
{
	const struct vp_frame jit = made_file_frame(3, 0x1000, 0);

	open_jit_pool();
	cr_assert(zero(int, made_map(&m, 0x1000, 0x2000, 0, 3, VP_VERDICT_FILE, "/memfd:code")));
	cr_expect(eq(sz, asked_at(0, &jit), 1));
	vp_file_pool_stop(r.pool);
}

/* ---- unwind rows ---- */

static atomic_size_t rows_cnt, symbols_cnt;
static struct vp_mapped_file rows_file;

static void note_rows(void *ctx, uint32_t file_id, const struct vp_mapped_file *f)
{
	(void)ctx;
	(void)file_id;
	rows_cnt++;
	rows_file = *f;
}

static void note_symbols(void *ctx, uint32_t file_id, const struct vp_mapped_file *f, int fd)
{
	(void)ctx;
	(void)fd;
	(void)file_id;
	(void)f;
	symbols_cnt++;
}

static uint64_t small(void *ctx, uint32_t file_id, const struct vp_mapped_file *f)
{
	(void)ctx;
	(void)file_id;
	(void)f;
	return 1;
}

static void note_requests(void)
{
	const struct vp_file_work work = {
		.rows = note_rows, .symbols = note_symbols, .size = small};
	struct vp_err e;

	cr_assert(zero(int, vp_file_pool_start_work(&r.pool, &work, 3, &e)));
}

static void expect_requests(size_t rows, size_t symbols)
{
	vp_file_pool_wait(r.pool);
	cr_expect(eq(sz, rows_cnt, rows), "rows at %llu ms", (unsigned long long)m.ts_ns / 1000000);
	cr_expect(eq(sz, symbols_cnt, symbols));
}

static void map_file(uint32_t file_id)
{
	const uint64_t start = 0x10000 * (uint64_t)file_id;

	cr_assert(zero(
		int, made_map(&m, start, start + 0x10000, 0, file_id, VP_VERDICT_FILE, "/lib/x")));
}

static void sample_without_rows(uint32_t file_id, uint64_t ms)
{
	struct vp_frame f = made_file_frame(file_id, 0x10000 * (uint64_t)file_id, 0);

	m.ts_ns = ms * 1000000;
	f.flags = VP_FRAME_F_NO_ROWS;
	cr_assert(zero(int, made_sample(&m, NULL, 0, &f, 1, VP_END_BOTTOM)));
}

Test(recording, rows_are_asked_for_once_a_sample_or_exec_shows_the_file)
{
	note_requests();
	m.map_flags = VP_MMAP2_F_FROM_WALK;
	map_file(1);
	expect_requests(0, 0);
	m.map_flags = 0;
	map_file(2);
	expect_requests(1, 0);
	cr_expect(eq(u32, rows_file.tgid, m.proc.tgid));
	cr_expect(eq(u64, rows_file.start, 0x20000));
	/* by whoever else maps it, not again; one that only the walk had seen, now */
	m.proc.tgid++;
	map_file(2);
	expect_requests(1, 0);
	map_file(1);
	expect_requests(2, 0);
	cr_expect(eq(u32, rows_file.tgid, m.proc.tgid));
	cr_assert(zero(int, made_map(&m, 0x1000, 0x2000, 0, 0, VP_VERDICT_VDSO, "[vdso]")));
	cr_assert(zero(int, made_map(&m, 0x3000, 0x4000, 0, 0, VP_VERDICT_ANON_EXEC, "//anon")));
	expect_requests(2, 0);
	vp_file_pool_stop(r.pool);
}

Test(recording, rows_are_asked_for_again_but_not_at_each_frame)
{
	note_requests();
	m.ts_ns = 1000000000;
	m.map_flags = VP_MMAP2_F_FROM_WALK;
	map_file(1);
	sample_without_rows(1, 1000);
	expect_requests(1, 1);
	sample_without_rows(1, 1001);
	sample_without_rows(1, 1099);
	expect_requests(1, 1);
	sample_without_rows(1, 1100);
	expect_requests(2, 1);
	/* more seldom while that does not help */
	sample_without_rows(1, 1299);
	expect_requests(2, 1);
	sample_without_rows(1, 1300);
	expect_requests(3, 1);
	for (uint64_t ms = 1301; ms < 101000; ms += 10) {
		sample_without_rows(1, ms);
		/* one that is being read is not asked for again */
		vp_file_pool_wait(r.pool);
	}
	cr_expect(lt(sz, rows_cnt, 30));
	cr_expect(gt(sz, rows_cnt, 15));
	/* freed long after it was loaded: as if for the first time */
	rows_cnt = 0;
	sample_without_rows(1, 200000);
	sample_without_rows(1, 200100);
	expect_requests(2, 1);
	/* a sample that was taken before, but came late */
	sample_without_rows(1, 150000);
	expect_requests(2, 1);
	vp_file_pool_stop(r.pool);
}

Test(recording, frames_that_have_rows_or_no_file_ask_for_none)
{
	struct vp_frame f = made_frame(VP_VERDICT_VDSO, 0x7000);

	note_requests();
	m.map_flags = VP_MMAP2_F_FROM_WALK;
	map_file(1);
	f.flags = VP_FRAME_F_NO_ROWS;
	cr_assert(zero(int, made_sample(&m, NULL, 0, &f, 1, VP_END_BOTTOM)));
	sample_at(0x10);
	expect_requests(0, 1);
	vp_file_pool_stop(r.pool);
}

/* ---- the kernel's symbols ---- */

static atomic_size_t kernel_cnt;

static void note_kernel(void *ctx, uint32_t file_id, const struct vp_mapped_file *f, int fd)
{
	(void)ctx;
	(void)fd;
	(void)f;
	kernel_cnt += file_id == VP_FILE_ID_NONE;
}

static size_t kernel_asked(const uint64_t *kern, size_t kern_cnt)
{
	const struct vp_frame f = made_file_frame(1, 0x1000, 0);

	cr_assert(zero(int, made_sample(&m, kern, kern_cnt, &f, 1, VP_END_BOTTOM)));
	vp_file_pool_wait(r.pool);
	return kernel_cnt;
}

Test(recording, the_kernels_symbols_are_asked_for_at_its_first_frame_and_at_the_end)
{
	const struct vp_file_work work = {.symbols = note_kernel};
	const uint64_t kern[] = {0xffffffff81000010ULL, 0xffffffff81000020ULL};
	struct vp_err e;

	cr_assert(zero(int, vp_file_pool_start_work(&r.pool, &work, 3, &e)));
	cr_expect(zero(sz, kernel_asked(NULL, 0)));
	cr_assert(zero(int, vp_recording_ask_again(&r)));
	vp_file_pool_wait(r.pool);
	cr_expect(zero(sz, kernel_cnt));
	cr_expect(eq(sz, kernel_asked(kern, 2), 1));
	cr_expect(eq(sz, kernel_asked(kern, 2), 1));
	cr_assert(zero(int, vp_recording_ask_again(&r)));
	vp_file_pool_wait(r.pool);
	cr_expect(eq(sz, kernel_cnt, 2));
	vp_file_pool_stop(r.pool);
}
