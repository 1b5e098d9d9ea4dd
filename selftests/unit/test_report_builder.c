/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* From made-up records to labels. */
#include "fixture_elf.h"
#include "made_records.h"
#include "model/report_builder.h"
#include "proc_life.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct vp_recording r;
static struct vp_symbolizer *s;
static struct vp_built_report b;
static struct made m;
static struct fixture x;

static const char kallsyms[] = "ffffffff81000000 T _text\n"
			       "ffffffff81000000 T _stext\n"
			       "ffffffff81000100 T made_outer\n"
			       "ffffffff81000200 T made_inner\n"
			       "ffffffff81000300 T _etext\n"
			       "ffffffffc0000000 t mod_fn\t[made_mod]\n"
			       "ffffffffc0000100 t mod_end\t[made_mod]\n";

static const char hidden[] = "0000000000000000 T _text\n0000000000000000 T _stext\n";

static bool keep_files;

static void open_symbolizer(const char *text)
{
	const struct vp_symbolizer_opts o = {
		.kallsyms_path = fixture_text(&x, "kallsyms", text),
		.keep_files = keep_files,
	};

	cr_assert(zero(int, vp_symbolizer_new(&s, &o)));
}

static void set_up(void)
{
	fixture_new(&x);
	r.max_stack_bytes = UINT64_MAX;
	made_init(&m, &vp_recording_ops, &r);
}

static void tear_down(void)
{
	vp_report_free(&b);
	vp_symbolizer_free(s);
	vp_recording_free(&r);
	fixture_remove(&x);
}

TestSuite(report_builder, .init = set_up, .fini = tear_down);

static uint64_t max_bytes; /* for what inlines add; 0: the default */

static void build_with(bool inlines)
{
	const struct vp_report_opts opts = {.inlines = inlines, .max_bytes = max_bytes};
	static const struct vp_meta meta;

	if (!s)
		open_symbolizer(kallsyms);
	cr_assert(zero(int, vp_report_build(&b, &r, s, &meta, &opts)));
	cr_expect(eq(ptr, (void *)b.report.meta, (void *)&meta));
	for (size_t i = 0; i < b.report.label_cnt; i++)
		cr_expect(eq(u32, b.report.labels[i]->id, (uint32_t)i));
}

static void build(void)
{
	build_with(false);
}

static void sample(const struct vp_frame *user, size_t cnt)
{
	cr_assert(zero(int, made_sample(&m, NULL, 0, user, cnt, VP_END_BOTTOM)));
}

static void sample_busy(uint64_t pc)
{
	const struct vp_frame f = made_frame(VP_VERDICT_BUSY, pc);

	sample(&f, 1);
}

static void map_lib(uint64_t start, uint64_t end, uint64_t pgoff, uint32_t id, const char *name)
{
	cr_assert(zero(int, made_map(&m, start, end, pgoff, id, VP_VERDICT_FILE, name)));
}

/* Text of a stack's frame, counted from the innermost. */
static const struct vp_label *label(size_t stack, size_t frame)
{
	const struct vp_stack *st = &b.report.stacks[stack];

	cr_assert(lt(sz, stack, b.report.stack_cnt));
	cr_assert(lt(sz, frame, st->frame_cnt));
	return st->frames[st->frame_cnt - 1 - frame];
}

static void expect_label(size_t stack, size_t frame, const char *text, const char *module,
			 enum vp_label_kind kind)
{
	const struct vp_label *l = label(stack, frame);

	cr_expect(eq(str, (char *)l->text, (char *)text));
	cr_expect(eq(str, (char *)l->module, (char *)module));
	cr_expect(eq(int, l->kind, kind));
}

/* ---- stitching ------------------------------------------------------------------------------ */

Test(report_builder, a_busy_frame_is_resolved_by_a_later_record)
{
	sample_busy(0x5123);
	sample_busy(0x5123);
	map_lib(0x5000, 0x6000, 0x2000, 1, "/lib/libmade.so");
	build();
	expect_label(0, 0, "libmade.so+0x2123", "libmade.so", VP_LABEL_USER);
	cr_expect(eq(u64, b.stitched_cnt, 2));
	cr_expect(zero(u64, b.unresolved_cnt));
}

Test(report_builder, text_in_anonymous_memory_is_marked_also_where_it_was_stitched)
{
	struct vp_frame f = made_file_frame(1, 0x5123, 0x2123);

	map_lib(0x5000, 0x6000, 0x2000, 1, "/bin/made");
	f.flags |= VP_FRAME_F_REMAPPED;
	sample(&f, 1);
	sample_busy(0x5223);
	m.map_flags = VP_MMAP2_F_REMAPPED;
	map_lib(0x5000, 0x6000, 0x2000, 1, "//anon");
	build();
	expect_label(0, 0, "made+0x2123", "made (remapped)", VP_LABEL_USER);
	expect_label(1, 0, "made+0x2223", "made (remapped)", VP_LABEL_USER);
	cr_expect(eq(u64, r.remapped_cnt, 1));
}

Test(report_builder, a_busy_frame_stays_unknown_without_a_record)
{
	sample_busy(0x5123);
	sample_busy(0x6000);
	map_lib(0x5200, 0x6000, 0, 1, "/lib/libmade.so");
	build();
	expect_label(0, 0, "[unknown]", "[unknown]", VP_LABEL_UNKNOWN);
	expect_label(1, 0, "[unknown]", "[unknown]", VP_LABEL_UNKNOWN);
	cr_expect(zero(u64, b.stitched_cnt));
	cr_expect(eq(u64, b.unresolved_cnt, 2));
}

Test(report_builder, records_of_another_life_resolve_nothing)
{
	const struct vp_proc_id life = m.proc;

	sample_busy(0x5123);
	m.proc.exec_id = life.exec_id + 1;
	map_lib(0x5000, 0x6000, 0, 1, "/lib/after-exec.so");
	m.proc.exec_id = life.exec_id - 1;
	map_lib(0x5000, 0x6000, 0, 2, "/lib/before-exec.so");
	m.proc = life;
	m.proc.start_ns++;
	map_lib(0x5000, 0x6000, 0, 3, "/lib/reused-tgid.so");
	m.proc = life;
	m.proc.tgid++;
	map_lib(0x5000, 0x6000, 0, 4, "/lib/other-process.so");
	build();
	expect_label(0, 0, "[unknown]", "[unknown]", VP_LABEL_UNKNOWN);
	cr_expect(eq(u64, b.unresolved_cnt, 1));
}

Test(report_builder, the_same_address_means_different_things_in_different_lives)
{
	sample_busy(0x5123);
	map_lib(0x5000, 0x6000, 0, 1, "/lib/one.so");
	m.proc.exec_id++;
	sample_busy(0x5123);
	map_lib(0x5000, 0x6000, 0x1000, 2, "/lib/two.so");
	m.proc.exec_id++;
	sample_busy(0x5123);
	build();
	expect_label(0, 0, "one.so+0x123", "one.so", VP_LABEL_USER);
	expect_label(1, 0, "two.so+0x1123", "two.so", VP_LABEL_USER);
	expect_label(2, 0, "[unknown]", "[unknown]", VP_LABEL_UNKNOWN);
}

Test(report_builder, inherited_records_resolve_too)
{
	const struct vp_proc_id parent = m.proc;

	map_lib(0x5000, 0x6000, 0, 1, "/lib/libmade.so");
	m.proc.tgid++;
	sample_busy(0x5123);
	cr_assert(zero(int, made_inherit(&m, m.proc, parent)));
	build();
	expect_label(0, 0, "libmade.so+0x123", "libmade.so", VP_LABEL_USER);
}

Test(report_builder, a_busy_frame_in_generated_code_is_that)
{
	sample_busy(0x5123);
	cr_assert(zero(int, made_map(&m, 0x5000, 0x6000, 0, 0, VP_VERDICT_ANON_EXEC, "//anon")));
	build();
	expect_label(0, 0, "[jit]", "[jit]", VP_LABEL_JIT);
	cr_expect(eq(u64, b.stitched_cnt, 1));
}

Test(report_builder, resolved_early_or_late_is_one_label)
{
	const struct vp_frame f = made_file_frame(1, 0x5123, 0x123);

	map_lib(0x5000, 0x6000, 0, 1, "/lib/libmade.so");
	sample(&f, 1);
	sample_busy(0x5123);
	build();
	cr_assert(eq(sz, b.report.stack_cnt, 2));
	cr_expect(eq(ptr, (void *)label(0, 0), (void *)label(1, 0)));
}

/* ---- labels --------------------------------------------------------------------------------- */

Test(report_builder, frames_are_outermost_first_and_counts_add_up)
{
	const uint64_t kern[] = {0xffffffff81000210, 0xffffffff81000110};
	const struct vp_frame user[] = {made_file_frame(1, 0x1, 0x1), made_file_frame(1, 0x2, 0x2)};
	const struct vp_stack *st;

	map_lib(0x0, 0x1000, 0, 1, "/lib/a");
	m.tid = 77;
	m.comm = "thread";
	for (int i = 0; i < 3; i++)
		cr_assert(zero(int, made_sample(&m, kern, 2, user, 2, VP_END_BOTTOM)));
	build();
	cr_assert(eq(sz, b.report.stack_cnt, 1));
	st = &b.report.stacks[0];
	cr_expect(eq(u64, st->count, 3));
	cr_expect(eq(u32, st->tgid, MADE_TGID));
	cr_expect(eq(u32, st->tid, 77));
	cr_expect(eq(str, (char *)st->comm, "thread"));
	cr_assert(eq(sz, st->frame_cnt, 4));
	cr_expect(eq(str, (char *)st->frames[0]->text, "a+0x2"));
	cr_expect(eq(str, (char *)st->frames[1]->text, "a+0x1"));
	cr_expect(eq(str, (char *)st->frames[2]->text, "made_outer"));
	cr_expect(eq(str, (char *)st->frames[3]->text, "made_inner"));
	cr_expect(eq(u64, b.report.sample_cnt, 3));
	cr_expect(eq(u64, b.user_frame_cnt, 6));
}

Test(report_builder, kernel_addresses_have_kernel_labels)
{
	/* a leaf at a function's first byte is in it, a return address there is of the one before */
	const uint64_t kern[] = {0xffffffff81000200, 0xffffffff81000200, 0xffffffffc0000010,
				 0xffffffff90000000};

	cr_assert(zero(int, made_sample(&m, kern, 4, NULL, 0, VP_END_KERNEL_ONLY)));
	build();
	expect_label(0, 0, "made_inner", "[kernel]", VP_LABEL_KERNEL);
	expect_label(0, 1, "made_outer", "[kernel]", VP_LABEL_KERNEL);
	expect_label(0, 2, "mod_fn", "[made_mod]", VP_LABEL_KERNEL);
	cr_expect(eq(int, label(0, 3)->kind, VP_LABEL_KERNEL));
	cr_expect(zero(u64, b.user_frame_cnt));
	cr_expect(zero(u64, b.user_nameless_cnt));
}

Test(report_builder, the_vsyscall_page_is_user_code_whichever_stack_has_it)
{
	const uint64_t kern[] = {0xffffffff81000100, 0xffffffffff600400};
	const struct vp_frame user[] = {made_frame(VP_VERDICT_NO_VMA, 0xffffffffff600400)};

	cr_assert(zero(int, made_sample(&m, kern, 2, NULL, 0, VP_END_KERNEL_ONLY)));
	cr_assert(zero(int, made_sample(&m, kern, 2, user, 1, VP_END_BOTTOM)));
	build();
	for (size_t i = 0; i < 2; i++) {
		cr_expect(eq(u64, b.report.stacks[i].frame_cnt, 2));
		expect_label(i, 1, "[vsyscall]", "[vsyscall]", VP_LABEL_USER);
	}
}

Test(report_builder, hidden_kernel_addresses_are_one_label)
{
	const uint64_t kern[] = {0xffffffff81000200, 0xffffffff81000100};

	open_symbolizer(hidden);
	cr_assert(zero(int, made_sample(&m, kern, 2, NULL, 0, VP_END_KERNEL_ONLY)));
	build();
	expect_label(0, 0, "[kernel]", "[kernel]", VP_LABEL_KERNEL);
	cr_expect(eq(ptr, (void *)label(0, 0), (void *)label(0, 1)));
}

Test(report_builder, each_verdict_has_its_label)
{
	const struct vp_frame user[] = {
		made_frame(VP_VERDICT_ANON_EXEC, 0x1000),
		made_frame(VP_VERDICT_SPECIAL, 0x2000),
		made_frame(VP_VERDICT_NOT_EXEC, 0x3000),
		made_frame(VP_VERDICT_NO_VMA, 0x4000),
		made_frame(VP_VERDICT_NO_VMA, 0xffffffffff600400),
		made_frame(VP_VERDICT_NO_VMA, 0xffffffffff601000),
		made_file_frame(VP_FILE_ID_NONE, 0x5000, 0x10),
		made_frame(200, 0x6000),
	};

	sample(user, 8);
	build();
	expect_label(0, 0, "[jit]", "[jit]", VP_LABEL_JIT);
	expect_label(0, 1, "[uprobes]", "[uprobes]", VP_LABEL_USER);
	expect_label(0, 2, "[unknown]", "[unknown]", VP_LABEL_UNKNOWN);
	expect_label(0, 3, "[unknown]", "[unknown]", VP_LABEL_UNKNOWN);
	expect_label(0, 4, "[vsyscall]", "[vsyscall]", VP_LABEL_USER);
	expect_label(0, 5, "[unknown]", "[unknown]", VP_LABEL_UNKNOWN);
	expect_label(0, 6, "[unknown]+0x5000", "[unknown]", VP_LABEL_USER);
	expect_label(0, 7, "[unknown]", "[unknown]", VP_LABEL_UNKNOWN);
	cr_expect(eq(u64, b.user_nameless_cnt, 8));
}

Test(report_builder, code_in_a_memfd_that_is_no_elf_is_generated)
{
	const struct vp_frame user[] = {made_file_frame(1, 0x1010, 0x10),
					made_file_frame(2, 0x2010, 0x10)};
	const char *path = fixture_text(&x, "no elf", "this is no ELF file\n");

	/* opened below, so that it is known to be none: the name leads nowhere */
	open_symbolizer(kallsyms);
	cr_assert(zero(int, vp_symbolizer_load_path(s, 1, path)));
	cr_assert(zero(int, vp_symbolizer_load_path(s, 2, path)));
	map_lib(0x1000, 0x2000, 0, 1, "/memfd:jit");
	map_lib(0x2000, 0x3000, 0, 2, "/home/memfd");
	sample(user, 2);
	build();
	expect_label(0, 0, "[jit]", "memfd:jit", VP_LABEL_JIT);
	expect_label(0, 1, "memfd+0x10", "memfd", VP_LABEL_USER);
}

static const struct vp_nameless *account(const char *module)
{
	for (size_t i = 0; i < b.nameless_cnt; i++) {
		if (!strcmp(b.nameless[i].module, module))
			return &b.nameless[i];
	}
	return NULL;
}

/* ---- code of JITs --------------------------------------------------------------------------- */

static char jit_map[64];

/* The process of the next records is this one, whose JIT tells that. */
static void tell_jit(const char *text)
{
	FILE *f;

	m.proc = proc_life(getpid());
	snprintf(jit_map, sizeof(jit_map), "/tmp/perf-%d.map", getpid());
	f = fopen(jit_map, "w");
	cr_assert(ne(ptr, f, NULL));
	fputs(text, f);
	fclose(f);
	cr_assert(zero(int, vp_jit_new(&r.jit, NULL)));
	cr_assert(zero(int, vp_jit_read(r.jit, &m.proc, NULL)));
	unlink(jit_map);
}

Test(report_builder, code_of_a_jit_has_the_names_that_its_process_told)
{
	const struct vp_frame user[] = {
		made_frame(VP_VERDICT_ANON_EXEC, 0x1020), /* the leaf */
		made_frame(VP_VERDICT_ANON_EXEC, 0x1020), /* returns to the end of a call */
		made_frame(VP_VERDICT_ANON_EXEC, 0x1041),
	};

	tell_jit("1000 20 JS:caller\n1020 20 JS:next\n");
	sample(user, 3);
	m.proc.tgid++; /* the same addresses in another process */
	sample(user, 3);
	build();
	expect_label(0, 0, "JS:next", "[jit]", VP_LABEL_JIT);
	expect_label(0, 1, "JS:caller", "[jit]", VP_LABEL_JIT);
	expect_label(0, 2, "[jit]", "[jit]", VP_LABEL_JIT);
	for (size_t i = 0; i < 3; i++)
		expect_label(1, i, "[jit]", "[jit]", VP_LABEL_JIT);
	cr_expect(eq(u64, b.user_nameless_cnt, 4));
	cr_expect(eq(u64, account("[jit]")->frame_cnt, 4));
	vp_jit_free(r.jit);
}

Test(report_builder, code_of_a_jit_is_named_where_it_was_stitched_too)
{
	tell_jit("1000 20 JS:busy\n");
	sample_busy(0x1010);
	cr_assert(zero(int, made_map(&m, 0x1000, 0x2000, 0, 0, VP_VERDICT_ANON_EXEC, "//anon")));
	build();
	expect_label(0, 0, "JS:busy", "[jit]", VP_LABEL_JIT);
	cr_expect(eq(u64, b.stitched_cnt, 1));
	vp_jit_free(r.jit);
}

Test(report_builder, code_of_a_jit_in_a_memfd_is_named_by_the_address_it_is_mapped_at)
{
	const struct vp_frame f = made_file_frame(1, 0x7010, 0x1010);

	tell_jit("7000 20 JIT:shared\n8000 20 JIT:elsewhere\n");
	open_symbolizer(kallsyms);
	cr_assert(zero(int, vp_symbolizer_load_path(
				    s, 1, fixture_text(&x, "no elf", "this is no ELF file\n"))));
	map_lib(0x7000, 0x8000, 0x1000, 1, "/memfd:doublemapper");
	sample(&f, 1);
	m.proc.tgid++; /* which has it elsewhere, and tells nothing */
	map_lib(0x8000, 0x9000, 0x1000, 1, "/memfd:doublemapper");
	sample(&f, 1);
	build();
	expect_label(0, 0, "JIT:shared", "memfd:doublemapper", VP_LABEL_JIT);
	expect_label(1, 0, "[jit]", "memfd:doublemapper", VP_LABEL_JIT);
	vp_jit_free(r.jit);
}

Test(report_builder, functions_are_named_and_calls_belong_to_the_caller)
{
	struct vp_frame user[2];
	const char *path;
	uint64_t first, second;

	fixture_text(&x, "t.s",
		     ".globl first\n.type first,@function\nfirst: .skip 16, 0x90\n.size first,16\n"
		     ".globl second\n.type second,@function\nsecond: .skip 16, 0x90\n"
		     ".size second,16\n");
	fixture_run(&x, "gcc -shared -nostdlib -Wl,-z,noseparate-code -o lib.so t.s");
	path = fixture_path(&x, "lib.so");
	first = fixture_symbol(path, "first", 0);
	second = fixture_symbol(path, "second", 0);
	open_symbolizer(kallsyms);
	cr_assert(zero(int, vp_symbolizer_load_path(s, 1, path)));
	cr_assert(zero(int, vp_symbolizer_offset_of(s, 1, first, &first)));
	cr_assert(zero(int, vp_symbolizer_offset_of(s, 1, second, &second)));
	map_lib(0x10000, 0x20000, 0, 1, path);
	/* both at the first byte of `second` */
	user[0] = made_file_frame(1, 0x10000 + second, second);
	user[1] = user[0];
	sample(user, 2);
	build();
	expect_label(0, 0, "second", "lib.so", VP_LABEL_USER);
	expect_label(0, 1, "first", "lib.so", VP_LABEL_USER);
	cr_expect(zero(u64, b.user_nameless_cnt));
	cr_expect(zero(sz, b.nameless_cnt));
}

Test(report_builder, a_file_that_only_stitched_frames_use_is_read)
{
	const char *path;

	fixture_text(&x, "t.c", "int f(void) { return 1; }\n");
	fixture_run(&x, "gcc -shared -o lib.so t.c");
	path = fixture_path(&x, "lib.so");
	sample_busy(0x10000 + fixture_symbol(path, "f", 0));
	/* the segment of code is mapped with offset equal to address in such a small library */
	map_lib(0x10000, 0x20000, 0, 1, path);
	build();
	expect_label(0, 0, "f", "lib.so", VP_LABEL_USER);
}

/* ---- inlined calls and lines ---------------------------------------------------------------- */

/* spot is in c, which is in b, which is in a; other is in a alone. */
static const char nested[] = "static volatile int sink;\n"
			     "static inline int c(int n)\n"
			     "{\n"
			     "	asm volatile(\".globl spot\\nspot: nop\");\n"
			     "	return n * sink;\n"
			     "}\n"
			     "static inline int b(int n)\n"
			     "{\n"
			     "	return c(n) + 1;\n"
			     "}\n"
			     "__attribute__((noinline)) int a(int n)\n"
			     "{\n"
			     "	asm volatile(\".globl other\\nother: nop\");\n"
			     "	return b(n) + sink;\n"
			     "}\n";

/* DIR/lib.so, which s has loaded as file 1. */
static const char *nested_lib(const char *options)
{
	const char *path = fixture_path(&x, "lib.so");

	fixture_text(&x, "t.c", nested);
	fixture_run(&x, "gcc -O2 -shared -fPIC %s -o lib.so t.c", options);
	return path;
}

static void load(const char *path)
{
	open_symbolizer(kallsyms);
	cr_assert(zero(int, vp_symbolizer_load_path(s, 1, path)));
	map_lib(0x10000, 0x20000, 0, 1, path);
}

static uint64_t offset_of(const char *path, const char *symbol)
{
	uint64_t offset;

	cr_assert(
		zero(int, vp_symbolizer_offset_of(s, 1, fixture_symbol(path, symbol, 0), &offset)));
	return offset;
}

static struct vp_frame spots[3];

/* `path` has what was stripped of the library that is sampled. */
static void sample_spots(const char *path)
{
	uint64_t spot = offset_of(path, "spot"), other = offset_of(path, "other");

	/* a caller's address is that of the byte behind its call */
	spots[0] = made_file_frame(1, 0x10000 + spot, spot);
	spots[1] = made_file_frame(1, 0x10001 + other, other + 1);
	spots[2] = made_file_frame(1, 0x10001 + spot, spot + 1);
	sample(spots, 3);
	sample(spots, 3);
}

static void expect_chains(void)
{
	static const char *const names[] = {"c", "b", "a", "a", "c", "b", "a"};

	cr_assert(eq(sz, b.report.stacks[0].frame_cnt, 7));
	for (size_t i = 0; i < 7; i++)
		expect_label(0, i, names[i], "lib.so",
			     names[i][0] == 'a' ? VP_LABEL_USER : VP_LABEL_INLINED);
	cr_expect(eq(u64, b.user_frame_cnt, 6));
	cr_expect(eq(u64, b.inlined_cnt, 8));
	cr_expect(eq(sz, b.debug_cnt, 1));
}

static void expect_functions_only(void)
{
	cr_assert(eq(sz, b.report.stacks[0].frame_cnt, 3));
	for (size_t i = 0; i < 3; i++)
		expect_label(0, i, "a", "lib.so", VP_LABEL_USER);
	for (size_t i = 0; i < b.report.label_cnt; i++)
		cr_expect(zero(sz, b.report.labels[i]->line_cnt));
	cr_expect(zero(u64, b.inlined_cnt));
	cr_expect(zero(sz, b.debug_cnt));
}

static void expect_line(const struct vp_label *l, size_t i, uint32_t line, uint64_t count)
{
	cr_assert(lt(sz, i, l->line_cnt));
	cr_expect(eq(str, (char *)l->lines[i].file, (char *)fixture_path(&x, "t.c")));
	cr_expect(eq(u32, l->lines[i].line, line));
	cr_expect(eq(u64, l->lines[i].count, count));
}

static size_t open_files(void)
{
	size_t cnt = 0;

	for (int fd = 0; fd < 1024; fd++)
		cnt += fcntl(fd, F_GETFD) >= 0;
	return cnt;
}

Test(report_builder, inlined_calls_are_frames_and_lines_do_not_split_labels)
{
	const char *path = nested_lib("-g");
	size_t files;

	load(path);
	sample_spots(path);
	files = open_files();
	build_with(true);
	expect_chains();
	cr_expect(eq(sz, b.report.label_cnt, 3));
	cr_expect(eq(ptr, (void *)label(0, 2), (void *)label(0, 3)));
	cr_expect(eq(sz, label(0, 2)->line_cnt, 2));
	expect_line(label(0, 2), 0, 14, 4);
	expect_line(label(0, 2), 1, 13, 2);
	expect_line(label(0, 1), 0, 9, 4);
	expect_line(label(0, 0), 0, 4, 4);
	cr_expect(eq(sz, open_files(), files));
}

Test(report_builder, names_only_is_the_default)
{
	const char *path = nested_lib("-g");

	load(path);
	sample_spots(path);
	build();
	expect_functions_only();
}

Test(report_builder, inlined_calls_without_debug_information_are_names_only)
{
	const char *path = nested_lib("");

	load(path);
	sample_spots(path);
	build_with(true);
	expect_functions_only();
}

Test(report_builder, debug_information_in_a_file_of_its_own_is_found)
{
	const char *path = nested_lib("-g");

	fixture_run(&x, "cp lib.so whole && objcopy --only-keep-debug lib.so lib.debug &&"
			"strip lib.so && objcopy --add-gnu-debuglink=lib.debug lib.so");
	load(path);
	sample_spots(fixture_path(&x, "whole"));
	build_with(true);
	expect_chains();
}

Test(report_builder, a_file_that_was_replaced_gives_no_inlined_calls)
{
	const char *path = nested_lib("-g");

	load(path);
	sample_spots(path);
	fixture_run(&x, "cp lib.so new && mv new lib.so");
	build_with(true);
	expect_functions_only();
}

Test(report_builder, a_file_that_was_kept_gives_them_though_it_and_its_debug_file_are_gone)
{
	const char *path = nested_lib("-g");

	fixture_run(&x, "cp lib.so whole && objcopy --only-keep-debug whole lib.debug &&"
			" strip lib.so && objcopy --add-gnu-debuglink=lib.debug lib.so");
	keep_files = true;
	load(path);
	sample_spots(fixture_path(&x, "whole"));
	fixture_run(&x, "rm lib.so lib.debug");
	build_with(true);
	expect_chains();
	cr_expect(zero(sz, b.debug_gone_cnt));
}

Test(report_builder, what_was_kept_and_written_to_is_counted_as_gone)
{
	const char *path = nested_lib("-g");

	keep_files = true;
	load(path);
	sample_spots(path);
	fixture_run(&x, "echo >>lib.so");
	build_with(true);
	expect_functions_only();
	cr_expect(eq(sz, b.debug_gone_cnt, 1));
}

Test(report_builder, inlined_calls_are_left_out_beyond_the_memory_for_them)
{
	const char *path = nested_lib("-g");

	load(path);
	sample_spots(path);
	for (uint32_t i = 1; i < 1000; i++) {
		m.tid = i;
		sample(spots, 3);
	}
	max_bytes =
		1000 * 4 * sizeof(void *) - 1; /* of four calls in each stack; names take less */
	build_with(true);
	cr_expect(b.debug_cut);
	for (size_t i = 0; i < 1000; i++) {
		cr_assert(eq(sz, b.report.stacks[i].frame_cnt, 3));
		expect_label(i, 0, "a", "lib.so", VP_LABEL_USER);
	}
	vp_report_free(&b);

	max_bytes++;
	build_with(true);
	cr_expect(not(b.debug_cut));
	cr_expect(eq(sz, b.report.stacks[999].frame_cnt, 7));
	vp_report_free(&b);

	max_bytes = 1; /* one frame's names are over it: the others are named by the symbol table */
	build_with(true);
	cr_expect(b.debug_cut);
	cr_expect(eq(sz, b.report.stacks[0].frame_cnt, 3));
}

Test(report_builder, line_tables_alone_give_lines_to_what_has_no_name)
{
	const char *path = fixture_path(&x, "lib.so");

	/* the assembler tells of lines, but of no function */
	fixture_text(&x, "t.s", "spot: nop\nother: nop\nret\n");
	fixture_run(&x, "gcc -g -shared -nostdlib -o lib.so t.s && cp lib.so whole &&"
			"objcopy --strip-symbol=spot --strip-symbol=other lib.so");
	load(path);
	sample_spots(fixture_path(&x, "whole"));
	build_with(true);
	cr_expect(eq(u64, b.user_nameless_cnt, 6));
	cr_assert(eq(sz, label(0, 1)->line_cnt, 1));
	cr_expect(eq(u32, label(0, 1)->lines[0].line, 2));
}

/* ---- modules ------------------------------------------------------------------------------- */

Test(report_builder, deleted_is_not_part_of_a_module)
{
	const struct vp_frame f = made_file_frame(1, 0x1010, 0x10);

	map_lib(0x1000, 0x2000, 0, 1, "/lib/dir.with space/libmade.so.1");
	sample(&f, 1);
	build();
	expect_label(0, 0, "libmade.so.1+0x10", "libmade.so.1", VP_LABEL_USER);
}

Test(report_builder, very_long_module_names_are_cut_not_overrun)
{
	static char name[4000] = "/";
	const struct vp_frame f = made_file_frame(1, 0x1010, 0x10);

	memset(name + 1, 'n', sizeof(name) - 2);
	map_lib(0x1000, 0x2000, 0, 1, name);
	sample(&f, 1);
	build();
	cr_expect(eq(sz, strlen(label(0, 0)->text), 255 + 5));
	cr_expect(eq(str, (char *)label(0, 0)->text + 255, "+0x10"));
}

/* ---- accounts of what has no name ----------------------------------------------------------- */

Test(report_builder, nameless_frames_are_put_to_their_modules_account)
{
	const struct vp_frame user[] = {
		made_file_frame(1, 0x1010, 0x10), made_file_frame(1, 0x1020, 0x20),
		made_file_frame(2, 0x2010, 0x10), made_frame(VP_VERDICT_ANON_EXEC, 0x9000)};

	map_lib(0x1000, 0x2000, 0, 1, "/lib/same-name");
	map_lib(0x2000, 0x3000, 0, 2, "/opt/same-name");
	for (int i = 0; i < 10; i++)
		sample(user, 4);
	m.tid = 5;
	sample(user, 1);
	build();
	cr_assert(eq(sz, b.nameless_cnt, 3));
	/* the largest first */
	cr_expect(eq(str, (char *)b.nameless[0].module, "/lib/same-name"));
	cr_expect(eq(u64, b.nameless[0].frame_cnt, 21));
	cr_expect(eq(int, b.nameless[0].reason, VP_SYM_CANNOT_OPEN));
	cr_assert(account("/opt/same-name") != NULL);
	cr_expect(eq(u64, account("/opt/same-name")->frame_cnt, 10));
	cr_assert(account("[jit]") != NULL);
	cr_expect(eq(u64, account("[jit]")->frame_cnt, 10));
	cr_expect(eq(u64, b.user_nameless_cnt, 41));
	cr_expect(eq(u64, b.user_frame_cnt, 41));
}

Test(report_builder, unresolved_frames_are_on_the_account_of_unknown)
{
	sample_busy(0x5123);
	sample_busy(0x5124);
	build();
	cr_assert(account("[unknown]") != NULL);
	cr_expect(eq(u64, account("[unknown]")->frame_cnt, 2));
}

Test(report_builder, a_recording_without_samples_is_an_empty_report)
{
	build();
	cr_expect(zero(sz, b.report.stack_cnt));
	cr_expect(zero(sz, b.report.label_cnt));
	cr_expect(zero(u64, b.report.sample_cnt));
	cr_expect(zero(sz, b.nameless_cnt));
}

Test(report_builder, a_sample_without_frames_is_a_stack_without_frames)
{
	sample(NULL, 0);
	build();
	cr_assert(eq(sz, b.report.stack_cnt, 1));
	cr_expect(zero(sz, b.report.stacks[0].frame_cnt));
	cr_expect(eq(u64, b.report.sample_cnt, 1));
}

Test(report_builder, many_stacks_keep_their_frames_apart)
{
	map_lib(0, 1 << 20, 0, 1, "/lib/a");
	for (uint64_t i = 0; i < 3000; i++) {
		const struct vp_frame user[] = {made_file_frame(1, i, i),
						made_file_frame(1, i + 1, i + 1)};

		sample(user, 1 + i % 2);
	}
	build();
	cr_assert(eq(sz, b.report.stack_cnt, 3000));
	for (uint64_t i = 0; i < 3000; i++) {
		char text[32];

		snprintf(text, sizeof(text), "a+0x%lx", (unsigned long)i);
		cr_assert(eq(sz, b.report.stacks[i].frame_cnt, 1 + i % 2));
		cr_assert(eq(str, (char *)label(i, 0)->text, text));
	}
}
