/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* ELF files as compilers, linkers and strip leave them. */
#include "fixture_elf.h"
#include "symbolize/elf_symbols.h"
#include "symbolize/symbolizer.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FILE_ID 7

static struct fixture x;
static struct vp_symbolizer *s;

static void set_up(void)
{
	fixture_new(&x);
	cr_assert(zero(int, vp_symbolizer_new(&s, NULL)));
}

static void tear_down(void)
{
	vp_symbolizer_free(s);
	fixture_remove(&x);
}

TestSuite(elf_symbols, .init = set_up, .fini = tear_down, .timeout = 30);

static const char asm_source[] =
	".text\n"
	".globl real_impl, alias_a, nosize, sized\n"
	".weak weak_b\n"
	".type real_impl,@function\n.type weak_b,@function\n.type loc_c,@function\n"
	".type alias_a,@function\n"
	"loc_c: weak_b: alias_a: real_impl: nop; nop; nop; ret\n"
	".size real_impl, 4\n.size weak_b, 4\n.size loc_c, 4\n.size alias_a, 4\n"
	"nop; nop; nop; nop\n" /* a gap */
	"nosize: nop; nop; nop; nop\n"
	".type sized,@function\n"
	"sized: nop\nlabel_in_sized: nop\n.Llocal: ret\n.size sized, .-sized\n"
	".type versioned,@function\n.globl versioned\n"
	"versioned: ret\n.size versioned, .-versioned\n"
	".type _Z3foov,@function\n_Z3foov: ret\n.size _Z3foov, 1\n"
	".type \"a b;c\",@function\n\"a b;c\": ret\n.size \"a b;c\", 1\n"
	".type \"caf\xc3\xa9\",@function\n\"caf\xc3\xa9\": ret\n.size \"caf\xc3\xa9\", 1\n"
	".section .other,\"ax\",@progbits\n"
	".globl other_nosize\n"
	"other_nosize: nop; nop; nop; nop\n"
	".section .third,\"ax\",@progbits\n"
	"nop; nop; nop; nop\n"
	".data\n.globl object\n.type object,@object\n.size object,8\nobject: .quad 0\n"
	".section .note.GNU-stack,\"\",@progbits\n";

/* main.c with an assembler part and whatever flags. */
static const char *build(const char *name, const char *flags)
{
	fixture_text(&x, "a.s", asm_source);
	fixture_text(&x, "m.c", "int main(void) { return 0; }\n");
	fixture_run(&x, "gcc %s -o %s m.c a.s", flags, name);
	return fixture_path(&x, name);
}

static uint64_t offset_of(uint64_t vaddr)
{
	uint64_t offset = 0;

	cr_assert(zero(int, vp_symbolizer_offset_of(s, FILE_ID, vaddr, &offset)));
	return offset;
}

static const char *name_at(uint64_t offset)
{
	struct vp_symbol sym;

	return vp_symbolizer_file(s, FILE_ID, offset, &sym) ? vp_sym_reason_text(sym.reason)
							    : sym.name;
}

#define EXPECT_AT(vaddr, want) cr_expect(eq(str, (char *)name_at(offset_of(vaddr)), (char *)(want)))
#define GAP		       vp_sym_reason_text(VP_SYM_GAP)

static struct vp_file_info load(const char *path)
{
	struct vp_file_info info;

	cr_assert(zero(int, vp_symbolizer_load_path(s, FILE_ID, path)));
	cr_assert(zero(int, vp_symbolizer_file_info(s, FILE_ID, &info)));
	return info;
}

Test(elf_symbols, an_alias_is_named_by_the_shortest_global_name)
{
	const char *path = build("a", "");
	uint64_t addr = fixture_symbol(path, "real_impl", 0);

	cr_assert(zero(int, load(path).reason));
	EXPECT_AT(addr, "alias_a");
	EXPECT_AT(addr + 3, "alias_a");
}

Test(elf_symbols, a_mark_of_the_assembler_is_no_name_but_of_a_function)
{
	const char *path = build("a", "");
	uint64_t label = fixture_symbol(path, "nosize", 0),
		 sized = fixture_symbol(path, "sized", 0);

	fixture_run(&x, "objcopy --redefine-sym nosize='$d' --redefine-sym sized='$x.f' a");
	load(path);
	EXPECT_AT(label, GAP);
	EXPECT_AT(sized, "$x.f");
}

Test(elf_symbols, a_gap_between_functions_has_no_name)
{
	const char *path = build("a", "");

	load(path);
	EXPECT_AT(fixture_symbol(path, "real_impl", 0) + 4, GAP);
	EXPECT_AT(fixture_symbol(path, "real_impl", 0) + 7, GAP);
}

Test(elf_symbols, assembler_code_without_size_ends_at_the_next_symbol)
{
	const char *path = build("a", "");

	load(path);
	EXPECT_AT(fixture_symbol(path, "nosize", 0) + 3, "nosize");
	EXPECT_AT(fixture_symbol(path, "nosize", 0) + 4, "sized");
}

Test(elf_symbols, assembler_code_without_size_ends_with_its_section)
{
	const char *path = build("a", "");

	load(path);
	EXPECT_AT(fixture_symbol(path, "other_nosize", 0) + 3, "other_nosize");
	EXPECT_AT(fixture_symbol(path, "other_nosize", 0) + 4, GAP);
}

Test(elf_symbols, init_does_not_swallow_the_plt)
{
	fixture_text(&x, "p.c", "int puts(const char *); int main(void) { return puts(\"\"); }\n");
	fixture_run(&x, "gcc -O0 -no-pie -fcf-protection=none -o p p.c");
	load(fixture_path(&x, "p"));

	uint64_t init = fixture_symbol(fixture_path(&x, "p"), "_init", 0);
	EXPECT_AT(init, "_init");
	EXPECT_AT(init + 32, GAP); /* .plt begins at the next multiple of 16 */
}

Test(elf_symbols, labels_inside_a_function_do_not_name_it)
{
	const char *path = build("a", "");

	load(path);
	EXPECT_AT(fixture_symbol(path, "label_in_sized", 0), "sized");
}

Test(elf_symbols, names_are_demangled_or_kept_as_bytes)
{
	const char *path = build("a", "");

	load(path);
	EXPECT_AT(fixture_symbol(path, "_Z3foov", 0), "foo()");
	EXPECT_AT(fixture_symbol(path, "a b;c", 0), "a b;c");
	EXPECT_AT(fixture_symbol(path, "caf\xc3\xa9", 0), "caf\xc3\xa9");
}

Test(elf_symbols, equal_names_are_one_pointer)
{
	const char *path = build("a", "");
	uint64_t addr = fixture_symbol(path, "real_impl", 0);

	load(path);
	cr_expect(eq(ptr, (void *)name_at(offset_of(addr)), (void *)name_at(offset_of(addr + 1))));
}

Test(elf_symbols, data_is_no_code)
{
	const char *path = build("a", "-no-pie");
	uint64_t offset;

	load(path);
	cr_expect(
		ne(int,
		   vp_symbolizer_offset_of(s, FILE_ID, fixture_symbol(path, "object", 0), &offset),
		   0));
}

Test(elf_symbols, every_kind_of_executable_has_one_formula)
{
	static const char *const flags[] = {"-no-pie",
					    "-pie",
					    "-static-pie",
					    "-static",
					    "-no-pie -Wl,-Ttext-segment=0x30000000",
					    "-shared -Wl,-Ttext-segment=0x3000000000",
					    "-Wl,-z,noseparate-code",
					    "-m32 -nostdlib -fno-pic -no-pie -Wl,--entry=main"};

	for (size_t i = 0; i < sizeof(flags) / sizeof(*flags); i++) {
		fixture_text(&x, "a.s", asm_source);
		fixture_text(&x, "m.c", "int main(void) { return 0; }\n");
		if (!fixture_try(&x, "gcc %s -o k m.c a.s 2>/dev/null", flags[i])) {
			cr_log_warn("cannot build with %s", flags[i]);
			continue;
		}
		vp_symbolizer_free(s);
		cr_assert(zero(int, vp_symbolizer_new(&s, NULL)));
		load(fixture_path(&x, "k"));
		EXPECT_AT(fixture_symbol(fixture_path(&x, "k"), "sized", 0) + 1, "sized");
		EXPECT_AT(fixture_symbol(fixture_path(&x, "k"), "main", 0), "main");
	}
}

Test(elf_symbols, lld_files_are_addressed_by_their_segments)
{
	if (access("/usr/bin/ld.lld", X_OK) || access("/usr/bin/clang", X_OK))
		cr_skip("clang and lld are not installed");
	fixture_text(&x, "a.s", asm_source);
	fixture_text(&x, "m.c", "int main(void) { return 0; }\n");
	fixture_run(&x, "clang -fuse-ld=lld -o lld m.c a.s");

	const char *path = fixture_path(&x, "lld");
	uint64_t addr = fixture_symbol(path, "sized", 0);
	load(path);
	cr_assert(ne(u64, offset_of(addr), addr), "not the layout this test is for");
	EXPECT_AT(addr, "sized");
}

Test(elf_symbols, the_first_page_of_a_segment_is_a_gap_and_the_data_is_no_segment)
{
	if (access("/usr/bin/ld.lld", X_OK) || access("/usr/bin/clang", X_OK))
		cr_skip("clang and lld are not installed");
	fixture_text(&x, "m.c", "int main(void) { return 0; }\n");
	fixture_run(&x, "clang -fuse-ld=lld -o lld m.c");
	load(fixture_path(&x, "lld"));

	uint64_t text = offset_of(fixture_symbol(fixture_path(&x, "lld"), "_start", 0));
	cr_expect(eq(str, (char *)name_at(text & ~0xfffULL), (char *)GAP));
	cr_expect(eq(str, (char *)name_at(1ULL << 40),
		     (char *)vp_sym_reason_text(VP_SYM_NO_SEGMENT)));
}

Test(elf_symbols, a_stripped_program_says_so)
{
	fixture_text(&x, "m.c", "int main(void) { return 0; }\n");
	fixture_run(&x, "gcc -static -o st m.c && strip st");

	struct vp_file_info info = load(fixture_path(&x, "st"));
	cr_expect(eq(int, info.reason, VP_SYM_NO_SYMBOLS));
	cr_expect(eq(u8, info.build_id_len, 20));
	cr_expect(zero(u64, info.bytes));
	cr_expect(eq(str, (char *)name_at(0x1000), (char *)"stripped: no symbols"));
}

Test(elf_symbols, a_stripped_library_has_its_exported_names_only)
{
	struct vp_symbol sym;

	fixture_text(&x, "l.s",
		     ".text\n.globl exported\nexported: nop; nop; nop; nop\n"
		     "hidden1: nop; nop; nop; nop\n"
		     ".globl sized\n.type sized,@function\nsized: nop; ret\n.size sized,2\n"
		     ".section .note.GNU-stack,\"\",@progbits\n");
	fixture_run(&x, "gcc -shared -nostdlib -o l.so l.s && cp l.so whole && strip l.so");
	load(fixture_path(&x, "l.so"));

	uint64_t addr = fixture_symbol(fixture_path(&x, "l.so"), "exported", 1);
	EXPECT_AT(addr, "exported");
	EXPECT_AT(addr + 1, GAP); /* how far it goes nobody knows */
	EXPECT_AT(addr + 5, GAP); /* hidden1, by no means exported */
	EXPECT_AT(addr + 9, "sized");
	cr_assert(zero(int, vp_symbolizer_file(s, FILE_ID, offset_of(addr + 9), &sym)));
	cr_expect(eq(int, sym.source, VP_SYM_DYNSYM));
	cr_expect(eq(u64, sym.offset, 1));
}

Test(elf_symbols, a_few_kept_symbols_do_not_hide_the_exported_ones)
{
	struct vp_symbol sym;

	fixture_text(&x, "l.c",
		     "int exported(void) { return 1; }\n"
		     "static __attribute__((noinline, used)) int kept(void)\n"
		     "{ return 2; }\n");
	fixture_run(&x, "gcc -shared -o l.so l.c && strip -K kept l.so");

	const char *path = fixture_path(&x, "l.so");
	load(path);
	EXPECT_AT(fixture_symbol(path, "kept", 0), "kept");
	EXPECT_AT(fixture_symbol(path, "exported", 1), "exported");
	vp_symbolizer_file(s, FILE_ID, offset_of(fixture_symbol(path, "kept", 0)), &sym);
	cr_expect(eq(int, sym.source, VP_SYM_SYMTAB));
}

#define BUILD_ID_DIR "usr/lib/debug/.build-id"

static void use_host_root(const char *dir)
{
	vp_symbolizer_free(s);
	cr_assert(zero(int, vp_symbolizer_new(&s, &(struct vp_symbolizer_opts){.demangle = 1,
									       .host_root = dir})));
}

/* A stripped program with the build id 0123…, and that of its debug file, below the fixture. */
static uint64_t build_with_debug_file(const char *debug_id)
{
	uint64_t main_addr;

	build("whole", "-Wl,--build-id=0x0123456789abcdef");
	main_addr = fixture_symbol(fixture_path(&x, "whole"), "main", 0);
	fixture_run(&x, "gcc -Wl,--build-id=%s -o other m.c a.s && mkdir -p " BUILD_ID_DIR "/01",
		    debug_id);
	fixture_run(&x, "objcopy --only-keep-debug other " BUILD_ID_DIR "/01/23456789abcdef.debug");
	fixture_run(&x, "strip whole");
	use_host_root(x.dir);
	return main_addr;
}

Test(elf_symbols, a_stripped_program_is_named_by_its_debug_file)
{
	uint64_t addr = build_with_debug_file("0x0123456789abcdef");

	load(fixture_path(&x, "whole"));
	EXPECT_AT(addr, "main");
	EXPECT_AT(addr + 1, "main");
}

Test(elf_symbols, a_debug_file_of_another_build_names_nothing)
{
	uint64_t addr = build_with_debug_file("0x0123456789abcdee");

	load(fixture_path(&x, "whole"));
	EXPECT_AT(addr, vp_sym_reason_text(VP_SYM_NO_SYMBOLS));
}

Test(elf_symbols, symbol_versions_are_not_part_of_the_name)
{
	fixture_text(&x, "v.c",
		     "int f1(void) { return 1; } int f2(void) { return 2; }\n"
		     "__asm__(\".symver f1,so_ver@V1\\n.symver f2,so_ver@@V2\");\n");
	fixture_text(&x, "v.map", "V1 { local: f1; f2; }; V2 { } V1;\n");
	fixture_run(&x, "gcc -shared -o v.so v.c -Wl,--version-script=v.map");
	load(fixture_path(&x, "v.so"));

	uint64_t v2 = fixture_symbol(fixture_path(&x, "v.so"), "so_ver@@V2", 0);
	EXPECT_AT(v2, "so_ver");
}

Test(elf_symbols, an_ifunc_is_named_by_its_resolver)
{
	fixture_text(&x, "i.c",
		     "static int impl(void) { return 1; }\n"
		     "static void *resolve(void) { return (void *)impl; }\n"
		     "int dispatched(void) __attribute__((ifunc(\"resolve\")));\n"
		     "int main(void) { return dispatched(); }\n");
	fixture_run(&x, "gcc -o i i.c");
	load(fixture_path(&x, "i"));
	EXPECT_AT(fixture_symbol(fixture_path(&x, "i"), "dispatched", 0), "resolve");
	EXPECT_AT(fixture_symbol(fixture_path(&x, "i"), "impl", 0), "impl");
}

Test(elf_symbols, clone_suffixes_are_kept)
{
	fixture_text(&x, "c.s",
		     ".text\n.type hot.cold,@function\nhot.cold: ret\n.size hot.cold,1\n"
		     ".type h.constprop.0,@function\nh.constprop.0: ret\n.size h.constprop.0,1\n"
		     ".section .note.GNU-stack,\"\",@progbits\n");
	fixture_run(&x, "gcc -shared -nostdlib -o c.so c.s");
	load(fixture_path(&x, "c.so"));
	EXPECT_AT(fixture_symbol(fixture_path(&x, "c.so"), "hot.cold", 0), "hot.cold");
	EXPECT_AT(fixture_symbol(fixture_path(&x, "c.so"), "h.constprop.0", 0), "h.constprop.0");
}

/* ---- build ids ---- */

static int build_id_len(const char *flag)
{
	fixture_text(&x, "b.c", "int main(void) { return 0; }\n");
	fixture_run(&x, "gcc -o b '-Wl,--build-id=%s' b.c", flag);
	vp_symbolizer_free(s);
	cr_assert(zero(int, vp_symbolizer_new(&s, NULL)));
	return load(fixture_path(&x, "b")).build_id_len;
}

Test(elf_symbols, build_ids_have_any_length_up_to_twenty)
{
	cr_expect(eq(int, build_id_len("none"), 0));
	cr_expect(eq(int, build_id_len("0xab12"), 2));
	cr_expect(eq(int, build_id_len("0x0102030405060708"), 8));
	cr_expect(eq(int, build_id_len("md5"), 16));
	cr_expect(eq(int, build_id_len("sha1"), 20));
	cr_expect(eq(int, build_id_len("0x0102030405060708091011121314151617181920ff"), 0));
}

Test(elf_symbols, the_build_id_is_found_without_section_headers)
{
	size_t size;

	fixture_text(&x, "b.c", "int main(void) { return 0; }\n");
	fixture_run(&x, "gcc -o b -Wl,--build-id=0xfeedf00d b.c");
	unsigned char *bytes = fixture_read(fixture_path(&x, "b"), &size);
	memset(bytes + 40, 0, 8); /* e_shoff */
	memset(bytes + 58, 0, 6); /* e_shentsize, e_shnum, e_shstrndx */

	struct vp_file_info info = load(fixture_write(&x, "nosh", bytes, size));
	cr_expect(eq(u8, info.build_id_len, 4));
	cr_expect(zero(int, memcmp(info.build_id, "\xfe\xed\xf0\x0d", 4)));
	cr_expect(eq(int, info.reason, VP_SYM_NO_SYMBOLS));
	free(bytes);
}

Test(elf_symbols, a_note_of_another_owner_is_no_build_id)
{
	fixture_text(&x, "n.s",
		     ".section .note.go.buildid,\"a\",@note\n"
		     ".long 4, 8, 3\n.asciz \"Go\\0\"\n.quad 1\n"
		     ".text\n.globl _start\n_start: ret\n"
		     ".section .note.GNU-stack,\"\",@progbits\n");
	fixture_run(&x, "gcc -nostdlib -static -Wl,--build-id=none -o n n.s");
	cr_expect(eq(u8, load(fixture_path(&x, "n")).build_id_len, 0));
}

/* ---- against another reader of the same files ---- */

/* Feeds every address of nm's list to both; nm's name must be one of that address. */
static void compare_with_nm(const char *path)
{
	char command[512], line[8192], name[8192], type;
	uint64_t addr, size;
	int compared = 0, total = 0, wrong = 0;
	const char *last_wrong = "";
	static char wrong_name[256];

	snprintf(command, sizeof(command), "nm -D -S --defined-only '%s' | sort", path);
	FILE *f = popen(command, "r");
	while (f && fgets(line, sizeof(line), f)) {
		struct vp_symbol sym;
		uint64_t offset;

		if (sscanf(line, "%lx %lx %c %8191s", &addr, &size, &type, name) != 4 ||
		    !strchr("TWti", type) || vp_symbolizer_offset_of(s, FILE_ID, addr, &offset))
			continue;
		if (total++ % 3 && total > 6000)
			continue;
		compared++;
		/* Any alias will do for the start; the last byte must have the same name. */
		struct vp_symbol end;
		if (vp_symbolizer_file(s, FILE_ID, offset, &sym) || sym.offset ||
		    vp_symbolizer_file(s, FILE_ID, offset + size - 1, &end)) {
			wrong++;
			snprintf(wrong_name, sizeof(wrong_name), "%.200s", name);
			last_wrong = wrong_name;
		}
	}
	if (f)
		pclose(f);
	cr_expect(zero(int, wrong), "%s: %d of %d, e.g. %s", path, wrong, compared, last_wrong);
	cr_expect(gt(int, compared, 500), "%s: %d", path, compared);
}

Test(elf_symbols, every_exported_function_of_libc_is_named)
{
	const char *path = "/usr/lib/x86_64-linux-gnu/libc.so.6";

	if (access(path, R_OK))
		cr_skip("no such library here");
	load(path);
	compare_with_nm(path);
}

Test(elf_symbols, every_exported_function_of_libstdcxx_is_named)
{
	const char *path = "/usr/lib/x86_64-linux-gnu/libstdc++.so.6";

	if (access(path, R_OK))
		cr_skip("no such library here");
	load(path);
	compare_with_nm(path);
}

struct nm_line {
	uint64_t addr, size;
	char name[96];
};

/* Sized functions of a program, by address. */
static int read_nm(const char *path, struct nm_line *out, int max)
{
	char command[512], line[4096], type;
	int n = 0;

	snprintf(command, sizeof(command), "nm -n -S --defined-only '%s'", path);
	FILE *f = popen(command, "r");
	while (f && n < max && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%lx %lx %c %95s", &out[n].addr, &out[n].size, &type,
			   out[n].name) == 4 &&
		    strchr("tTwWi", type))
			n++;
	}
	if (f)
		pclose(f);
	return n;
}

/* Is it one of the names that nm has for the function of line i? */
static int is_alias(const struct nm_line *nm, int cnt, int i, const char *name)
{
	for (int k = 0; k < cnt; k++) {
		if (nm[k].addr == nm[i].addr && !strcmp(nm[k].name, name))
			return 1;
	}
	return 0;
}

/*
 * Both are asked for the middle of every function of this program. They may choose another
 * of several aliases, so either name must be one that nm has for the function.
 */
Test(elf_symbols, agrees_with_llvm_symbolizer_on_this_very_program, .timeout = 60)
{
	static struct nm_line nm[4000];
	char self[256], llvm[4096];
	int differ = 0;
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (system("command -v llvm-symbolizer >/dev/null"))
		cr_skip("llvm-symbolizer is not installed");
	cr_assert(gt(long, n, 0));
	self[n] = '\0';
	load(self);

	int cnt = read_nm(self, nm, 4000);
	cr_assert(gt(int, cnt, 50));
	FILE *f = fopen(fixture_path(&x, "addrs"), "w");
	for (int i = 0; i < cnt; i++)
		fprintf(f, "0x%lx\n", nm[i].addr + nm[i].size / 2);
	fclose(f);
	fixture_run(&x,
		    "llvm-symbolizer --no-inlines --no-demangle -f=linkage -e '%s' < addrs |"
		    " awk 'NR %% 3 == 1' > names",
		    self);

	f = fopen(fixture_path(&x, "names"), "r");
	for (int i = 0; i < cnt; i++) {
		cr_assert(not(zero(ptr, fgets(llvm, sizeof(llvm), f))));
		llvm[strcspn(llvm, "\n")] = '\0';

		const char *ours = name_at(offset_of(nm[i].addr + nm[i].size / 2));
		if (!is_alias(nm, cnt, i, llvm) || is_alias(nm, cnt, i, ours))
			continue;
		differ++;
		cr_log_warn("%s: we say %s, llvm %s", nm[i].name, ours, llvm);
	}
	fclose(f);
	cr_expect(zero(int, differ));
}
