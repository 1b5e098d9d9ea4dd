/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A small "kernel" that runs elsewhere than it was linked to, in a root of its own. */
#include "fixture_elf.h"
#include "made_records.h"
#include "model/report_builder.h"
#include "symbolize/kernel_debug.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RELEASE "6.1.0-made"
#define MOVED	0x2400000ULL
#define ID	"0x0123456789abcdef0123456789abcdef01234567"
#define ID_FILE "usr/lib/debug/.build-id/01/23456789abcdef0123456789abcdef01234567.debug"

static struct fixture x;
static struct vp_symbolizer *names;
static struct debug_finder *finder;
static struct kernel_debug *debug;

/* vmlinux, in the fixture's directory; kallsyms and the notes as such a kernel shows them. */
static void build(void)
{
	fixture_text(&x, "k.c",
		     "static volatile int v;\n"
		     "static inline int twice(int n) { asm volatile(\".globl inner\\n\"\n"
		     "\t\"inner: nop\"); return 2 * n; }\n"
		     "__attribute__((noinline)) int do_work(int n)\n"
		     "{\n"
		     "\tv = n;\n"
		     "\treturn twice(n) + v;\n"
		     "}\n"
		     "void _start(void) { do_work(1); for (;;) ; }\n");
	fixture_run(&x,
		    "gcc -g -O2 -static -nostdlib -no-pie -fno-pie -mcmodel=kernel "
		    "-Wl,-Ttext=0xffffffff81000000,--defsym=_text=0xffffffff81000000,"
		    "--defsym=_etext=0xffffffff81001000,"
		    "--build-id=%s -o vmlinux k.c",
		    ID);
	fixture_run(&x, "mkdir -p sys/kernel usr/lib/debug/.build-id/01 usr/lib/debug/boot "
			"usr/lib/debug/lib/modules/" RELEASE " lib/modules/" RELEASE "/build");
	fixture_run(&x, "objcopy -O binary --only-section=.note.gnu.build-id vmlinux id &&"
			" printf '\\6\\0\\0\\0\\4\\0\\0\\0\\1\\1\\0\\0Linux\\0\\0\\0\\0\\0\\0\\0' "
			"| cat - id >sys/kernel/notes");
	fixture_run(&x, "nm vmlinux | python3 -c '\n"
			"import sys\n"
			"for line in sys.stdin:\n"
			"    a, t, n = line.split()\n"
			"    t = \"T\" if t == \"A\" else t\n"
			"    print(\"%%x\" %% (int(a, 16) + 0x2400000), t, n)' >kallsyms");
}

static void open_debug(const char *release)
{
	const struct vp_symbolizer_opts symbolizer = {
		.kallsyms_path = fixture_path(&x, "kallsyms"),
		.host_root = x.dir,
	};
	const struct debug_finder_opts finding = {.host_root = x.dir};
	struct kernel_debug_opts o = {.host_root = x.dir, .release = release};

	cr_assert(zero(int, vp_symbolizer_new(&names, &symbolizer)));
	cr_assert(zero(int, debug_finder_new(&finder, &finding)));
	o.names = names;
	o.finder = finder;
	cr_assert(zero(int, kernel_debug_new(&debug, &o)));
}

static void close_debug(void)
{
	kernel_debug_free(debug);
	debug_finder_free(finder);
	vp_symbolizer_free(names);
	debug = NULL;
	finder = NULL;
	names = NULL;
}

static void set_up(void)
{
	fixture_new(&x);
	build();
}

static void tear_down(void)
{
	close_debug();
	fixture_remove(&x);
}

TestSuite(kernel_debug, .init = set_up, .fini = tear_down, .timeout = 60);

/* "inner file:line inlined, outer file:line" */
static const char *chain_at(uint64_t addr)
{
	const struct dwarf_frame *f;
	static char text[512];
	struct vp_symbol sym;
	size_t cnt, used = 0;

	if (vp_symbolizer_kernel(names, addr, &sym))
		return vp_sym_reason_text(sym.reason);
	cnt = kernel_debug_find(debug, addr, &sym, &f);
	text[0] = '\0';
	for (size_t i = 0; i < cnt; i++) {
		const char *slash = f[i].file ? strrchr(f[i].file, '/') : NULL;

		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s %s:%u%s",
					 i ? ", " : "", f[i].function, slash ? slash + 1 : "?",
					 f[i].line, f[i].inlined ? " inlined" : "");
	}
	return cnt ? text : "none";
}

/* Of the address that the running kernel has the symbol at. */
static const char *chain_of(const char *symbol)
{
	return chain_at(fixture_symbol(fixture_path(&x, "vmlinux"), symbol, 0) + MOVED);
}

static void expect(const char *symbol, const char *chain)
{
	cr_expect(eq(str, (char *)chain_of(symbol), (char *)chain), "%s", symbol);
}

#define CHAIN "twice k.c:2 inlined, do_work k.c:7"

/* Only there, as vmlinux is known after it. */
static void expect_at(const char *place)
{
	fixture_run(&x, "cp vmlinux %s", place);
	open_debug(RELEASE);
	cr_expect(eq(str, (char *)chain_of("inner"), (char *)CHAIN), "%s", place);
	close_debug();
	fixture_run(&x, "rm %s", place);
	open_debug(RELEASE);
	cr_expect(eq(str, (char *)chain_of("inner"), (char *)"none"), "without %s", place);
	close_debug();
}

Test(kernel_debug, is_found_in_all_the_places_where_it_may_be)
{
	expect_at(ID_FILE);
	expect_at("usr/lib/debug/boot/vmlinux-" RELEASE);
	expect_at("usr/lib/debug/lib/modules/" RELEASE "/vmlinux");
	expect_at("lib/modules/" RELEASE "/build/vmlinux");
}

Test(kernel_debug, a_kernel_that_was_moved_has_its_lines_and_inlined_calls)
{
	fixture_run(&x, "cp vmlinux " ID_FILE);
	open_debug(RELEASE);
	expect("inner", CHAIN);
	expect("do_work", "do_work k.c:6");
	cr_expect(eq(str, (char *)kernel_debug_build_id(debug, "[kernel]"), (char *)ID + 2));
}

Test(kernel_debug, of_another_build_is_not_taken)
{
	fixture_run(&x, "cp vmlinux usr/lib/debug/boot/vmlinux-" RELEASE);
	fixture_run(&x, "gcc -g -O2 -shared -nostdlib -fPIC -Wl,--build-id=0xabcd -o other k.c &&"
			" cp other " ID_FILE);
	open_debug(RELEASE);
	expect("inner", CHAIN);
	close_debug();
	fixture_run(&x, "cp other usr/lib/debug/boot/vmlinux-" RELEASE);
	open_debug(RELEASE);
	expect("inner", "none");
}

Test(kernel_debug, a_stripped_one_and_one_without_lines_are_as_good_as_none)
{
	fixture_run(&x, "strip -o " ID_FILE " vmlinux");
	open_debug(RELEASE);
	expect("inner", "none");
	close_debug();
	fixture_run(&x, "strip -g -o " ID_FILE " vmlinux");
	open_debug(RELEASE);
	expect("inner", "none");
}

Test(kernel_debug, without_notes_nothing_is_looked_for)
{
	fixture_run(&x, "cp vmlinux " ID_FILE);
	fixture_run(&x, "rm sys/kernel/notes");
	open_debug(RELEASE);
	expect("inner", "none");
	cr_expect(eq(ptr, (void *)kernel_debug_build_id(debug, "[kernel]"), NULL));
	close_debug();
	/* nor of those that are none */
	fixture_run(&x, "printf '\\377%%.0s' $(seq 100) >sys/kernel/notes");
	open_debug(RELEASE);
	expect("inner", "none");
	close_debug();
	fixture_run(&x, "printf '\\4\\0\\0\\0\\377\\0\\0\\0\\3\\0\\0\\0GNU\\0' >sys/kernel/notes");
	open_debug(RELEASE);
	expect("inner", "none");
}

Test(kernel_debug, hidden_addresses_have_none)
{
	fixture_run(&x, "cp vmlinux " ID_FILE);
	fixture_run(&x, "sed -i 's/^[0-9a-f]*/0000000000000000/' kallsyms");
	open_debug(RELEASE);
	expect("inner", vp_sym_reason_text(VP_SYM_HIDDEN));
}

Test(kernel_debug, names_of_modules_do_not_lead_out_of_their_directory)
{
	fixture_run(&x, "mkdir -p sys/module/good/notes notes &&"
			" cp id sys/module/good/notes/.note.gnu.build-id &&"
			" cp id notes/.note.gnu.build-id");
	open_debug(RELEASE);
	cr_expect(eq(str, (char *)kernel_debug_build_id(debug, "[good]"), (char *)ID + 2));
	cr_expect(eq(ptr, (void *)kernel_debug_build_id(debug, "[../..]"), NULL));
	cr_expect(eq(ptr, (void *)kernel_debug_build_id(debug, "[]"), NULL));
	cr_expect(eq(ptr, (void *)kernel_debug_build_id(debug, "[bpf]"), NULL));
}

Test(kernel_debug, frames_of_a_recording_have_lines_and_inlined_calls)
{
	static const struct vp_meta meta;
	static struct vp_recording r = {.max_stack_bytes = UINT64_MAX};
	struct vp_report_opts opts = {.inlines = true};
	struct vp_built_report b;
	struct made m;
	uint64_t inner = fixture_symbol(fixture_path(&x, "vmlinux"), "inner", 0) + MOVED;

	fixture_run(&x, "cp vmlinux " ID_FILE);
	open_debug(RELEASE);
	opts.kernel = debug;
	made_init(&m, &vp_recording_ops, &r);
	cr_assert(zero(int, made_sample(&m, &inner, 1, NULL, 0, VP_END_KERNEL_ONLY)));
	cr_assert(zero(int, vp_report_build(&b, &r, names, &meta, &opts)));
	cr_assert(eq(sz, b.report.stacks[0].frame_cnt, 2));
	const struct vp_label *outer = b.report.stacks[0].frames[0];
	const struct vp_label *call = b.report.stacks[0].frames[1];
	/* as names-only calls it: kallsyms knows no sizes, so the label is a function to it */
	cr_expect(eq(str, (char *)outer->text, "inner"));
	cr_expect(eq(str, (char *)call->text, "twice"));
	cr_expect(eq(int, outer->kind, VP_LABEL_KERNEL));
	cr_expect(eq(int, call->kind, VP_LABEL_INLINED));
	cr_expect(eq(str, (char *)call->module, "[kernel]"));
	cr_assert(eq(sz, outer->line_cnt, 1));
	cr_expect(eq(u32, outer->lines[0].line, 7));
	cr_expect(zero(u64, b.inlined_cnt));
	vp_report_free(&b);

	opts.kernel = NULL;
	cr_assert(zero(int, vp_report_build(&b, &r, names, &meta, &opts)));
	cr_expect(eq(sz, b.report.stacks[0].frame_cnt, 1));
	vp_report_free(&b);
	vp_recording_free(&r);
}

/* ---- modules ---- */

#define MODULE_TEXT 0xffffffffc0123000ULL
#define MODULE_ID   "0xfedcba98"
#define MODULE_PATH "lib/modules/" RELEASE "/kernel/drivers/made-mod.ko"

/* made-mod.ko, loaded as made_mod, with a function of which a part is elsewhere. */
static void build_module(void)
{
	fixture_text(&x, "m.c",
		     "static volatile int v;\n"
		     "__attribute__((noinline)) int first(int n) { v = n; return n + v; }\n"
		     "static inline int half(int n) { asm volatile(\".globl in_module\\n\"\n"
		     "\t\"in_module: nop\"); return n / 2; }\n"
		     "int module_work(int n)\n"
		     "{\n"
		     "\tv = n;\n"
		     "\treturn half(n) + first(v);\n"
		     "}\n"
		     "__attribute__((section(\".init.text\"))) int begin(void) { return v; }\n");
	fixture_run(&x, "gcc -g -O2 -fno-pie -mcmodel=kernel -c -o m.o m.c &&"
			" ld -r --build-id=" MODULE_ID " -o made-mod.ko m.o");
	fixture_run(&x, "mkdir -p sys/module/made_mod/notes sys/module/made_mod/sections "
			"usr/lib/debug/lib/modules/" RELEASE "/kernel/drivers "
			"usr/lib/debug/.build-id/fe lib/modules/" RELEASE "/kernel/drivers");
	fixture_run(&x, "objcopy -O binary --only-section=.note.gnu.build-id made-mod.ko "
			"sys/module/made_mod/notes/.note.gnu.build-id");
	fixture_run(&x, "echo 0xffffffffc0123000 >sys/module/made_mod/sections/.text");
	fixture_run(&x, "nm made-mod.ko | python3 -c '\n"
			"import sys\n"
			"for line in sys.stdin:\n"
			"    a, t, n = line.split()\n"
			"    base = 0xffffffffc0125000 if n == \"begin\" else 0xffffffffc0123000\n"
			"    print(\"%%x\" %% (int(a, 16) + base), t, n + \"\\t[made_mod]\")' "
			">>kallsyms");
	fixture_text(&x, "lib/modules/" RELEASE "/modules.dep",
		     "kernel/lib/made-mod2.ko:\nno line\n"
		     "kernel/drivers/made-mod.ko.xz: kernel/lib/made-mod2.ko\n");
}

static const char *module_chain_of(const char *symbol)
{
	return chain_at(MODULE_TEXT + fixture_symbol(fixture_path(&x, "made-mod.ko"), symbol, 0));
}

#define MODULE_CHAIN "half m.c:3 inlined, module_work m.c:8"

static void expect_module_at(const char *place)
{
	fixture_run(&x, "cp made-mod.ko %s", place);
	open_debug(RELEASE);
	cr_expect(eq(str, (char *)module_chain_of("in_module"), (char *)MODULE_CHAIN), "%s", place);
	close_debug();
	fixture_run(&x, "rm %s", place);
	open_debug(RELEASE);
	cr_expect(eq(str, (char *)module_chain_of("in_module"), (char *)"none"), "without %s",
		  place);
	close_debug();
}

Test(kernel_debug, modules_are_found_by_their_build_id_and_in_modules_dep)
{
	build_module();
	expect_module_at("usr/lib/debug/.build-id/fe/dcba98.debug");
	expect_module_at("usr/lib/debug/" MODULE_PATH);
	expect_module_at("usr/lib/debug/" MODULE_PATH ".debug");
	expect_module_at(MODULE_PATH);
}

Test(kernel_debug, a_modules_debug_file_without_its_code_will_do)
{
	build_module();
	fixture_run(&x, "objcopy --only-keep-debug made-mod.ko usr/lib/debug/" MODULE_PATH);
	open_debug(RELEASE);
	cr_expect(eq(str, (char *)module_chain_of("in_module"), (char *)MODULE_CHAIN));
	cr_expect(eq(str, (char *)module_chain_of("first"), (char *)"first m.c:2"));
	cr_expect(eq(str, (char *)chain_at(0xffffffffc0125000), (char *)"none"), "not in .text");
}

Test(kernel_debug, a_module_whose_address_is_hidden_has_none)
{
	build_module();
	fixture_run(&x, "cp made-mod.ko " MODULE_PATH);
	fixture_run(&x, "echo 0x0000000000000000 >sys/module/made_mod/sections/.text");
	open_debug(RELEASE);
	cr_expect(eq(str, (char *)module_chain_of("in_module"), (char *)"none"));
}
