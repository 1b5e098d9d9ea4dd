/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Symbols that are in no symbol table: packed ones, Go's own, stubs'. Answers by nm and objdump. */
#include "fixture_elf.h"
#include "symbolized.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct fixture x;

static void set_up(void)
{
	fixture_new(&x);
}

static void tear_down(void)
{
	fixture_remove(&x);
}

TestSuite(symbol_sources, .init = set_up, .fini = tear_down, .timeout = 60);

#define EXPECT(s, vaddr, name, source)                                                             \
	do {                                                                                       \
		cr_expect(eq(str, (char *)symbolized_name(s, vaddr), (char *)(name)));             \
		cr_expect(eq(str, (char *)symbolized_source(s, vaddr), (char *)(source)));         \
	} while (0)

/*
 * Asks for the addresses of lines "ADDRESS NAME" of a command's output. The name must be that
 * one; *cnt: of lines.
 */
static int differences(struct vp_symbolizer *s, const char *command, int *cnt)
{
	char line[8192], *name;
	int wrong = 0;
	FILE *f = popen(command, "r");

	cr_assert(ne(ptr, f, NULL));
	for (*cnt = 0; fgets(line, sizeof(line), f); ++*cnt) {
		uint64_t addr = strtoull(line, &name, 16);

		name += strspn(name, " ");
		name[strcspn(name, "\n")] = '\0';
		const char *ours = symbolized_name(s, addr);
		if (strcmp(ours, name) != 0 && wrong++ < 5)
			cr_log_warn("%lx is %s, we say %s", addr, name, ours);
	}
	pclose(f);
	return wrong;
}

/* ---- .gnu_debugdata ---- */

static const char mini_source[] =
	"__attribute__((noinline)) static int hidden(int n) { return n * 3; }\n"
	"int exported(int n) { return hidden(n) + 1; }\n"
	"int main(int c, char **v) { (void)v; return exported(c); }\n";

/* As distributions do it: what is not in .dynsym, packed, in the stripped file. */
static void build_mini(const char *compiler)
{
	fixture_text(&x, "m.c", mini_source);
	fixture_run(&x, "%s -O1 -g -rdynamic -o whole m.c", compiler);
	fixture_run(&x,
		    "nm -D whole --format=posix --defined-only | awk '{print $1}' | sort >dyn &&"
		    " nm whole --format=posix --defined-only | awk '$2 ~ /[TtD]/ {print $1}' | "
		    "sort >all &&"
		    " comm -13 dyn all >keep &&"
		    " objcopy --only-keep-debug whole d &&"
		    " objcopy -S --remove-section .comment --keep-symbols=keep d mini &&"
		    " xz -f mini && strip -o prog whole &&"
		    " objcopy --add-section .gnu_debugdata=mini.xz prog");
}

Test(symbol_sources, debugdata_has_what_is_not_exported)
{
	static const char *const compilers[] = {"gcc", "clang", "gcc -no-pie"};

	for (size_t i = 0; i < sizeof(compilers) / sizeof(*compilers); i++) {
		build_mini(compilers[i]);
		struct vp_symbolizer *s = symbolized(fixture_path(&x, "prog"), NULL);
		const char *whole = fixture_path(&x, "whole");

		EXPECT(s, fixture_symbol(whole, "hidden", 0), "hidden", "gnu_debugdata");
		EXPECT(s, fixture_symbol(whole, "exported", 0), "exported", "dynsym");
		vp_symbolizer_free(s);
	}
}

Test(symbol_sources, damaged_debugdata_leaves_the_exported_names)
{
	size_t size;

	build_mini("gcc");
	const char *whole = fixture_path(&x, "whole");
	uint64_t exported = fixture_symbol(whole, "exported", 0);
	unsigned char *packed = fixture_read(fixture_path(&x, "mini.xz"), &size);

	for (size_t cut = 0; cut < size; cut += size / 13 + 1) {
		fixture_write(&x, "cut", packed, cut ? cut : 1);
		fixture_run(&x, "objcopy --update-section .gnu_debugdata=cut prog cutprog");
		struct vp_symbolizer *s = symbolized(fixture_path(&x, "cutprog"), NULL);
		EXPECT(s, exported, "exported", "dynsym");
		vp_symbolizer_free(s);

		packed[size - 1 - cut] ^= 0x55;
		fixture_write(&x, "cut", packed, size);
		packed[size - 1 - cut] ^= 0x55;
		fixture_run(&x, "objcopy --update-section .gnu_debugdata=cut prog cutprog");
		s = symbolized(fixture_path(&x, "cutprog"), NULL);
		EXPECT(s, exported, "exported", "dynsym");
		vp_symbolizer_free(s);
	}
	free(packed);
}

Test(symbol_sources, debugdata_that_unpacks_without_end_is_left_alone)
{
	build_mini("gcc");
	fixture_run(&x, "head -c 200000000 /dev/zero | xz -0 >bomb &&"
			" objcopy --update-section .gnu_debugdata=bomb prog");
	struct vp_symbolizer *s = symbolized(fixture_path(&x, "prog"), NULL);
	EXPECT(s, fixture_symbol(fixture_path(&x, "whole"), "exported", 0), "exported", "dynsym");
	vp_symbolizer_free(s);
}

/* ---- Go ---- */

static int have_go(void)
{
	return fixture_try(&x, "go version >go.version 2>&1");
}

/* linker: a flag for go's. */
static int build_go(const char *mode, const char *linker)
{
	fixture_text(
		&x, "m.go",
		"package main\n"
		"type T struct{ n int }\n"
		"//go:noinline\n"
		"func (t *T) Work(k int) int { for i := 0; i < k; i++ { t.n += i }; return t.n }\n"
		"func main() { t := &T{}; println(t.Work(10)) }\n");
	return fixture_try(
		&x,
		"export HOME=\"$PWD\" GOCACHE=\"$PWD/cache\" GOFLAGS=-p=2 &&"
		" { go build -buildmode=%s -ldflags '%s' -o whole m.go &&"
		" go build -buildmode=%s -ldflags '-s -w %s' -o prog m.go; } >go.log 2>&1;"
		" chmod -R u+w cache; test -f prog",
		mode, linker, mode, linker);
}

/*
 * Each function at its first byte, by nm of the same program with symbols. A name without a dot is
 * of C; marks are no functions.
 */
static void compare_go(const char *mode, const char *linker)
{
	int cnt;

	if (!build_go(mode, linker)) {
		fixture_try(&x, "cat go.log >&2");
		cr_assert(0, "go cannot build it");
	}
	struct vp_symbolizer *s = symbolized(fixture_path(&x, "prog"), NULL);
	fixture_run(
		&x,
		"nm --defined-only whole | awk '$2 ~ /[tT]/ { $2 = \"\"; print }' |"
		" grep -F . | grep -vE ' (runtime\\.e?text|go\\.buildid|_?rt0_.*|go:.*|type\\..*|"
		"type:.*|.*\\.abi0|.*\\.cold)$' >names");
	char command[128];
	snprintf(command, sizeof(command), "cat %s", fixture_path(&x, "names"));
	cr_expect(zero(int, differences(s, command, &cnt)));
	cr_expect(gt(int, cnt, 500));
	EXPECT(s, fixture_symbol(fixture_path(&x, "whole"), "main.(*T).Work", 0) + 5,
	       "main.(*T).Work", "gopclntab");
	vp_symbolizer_free(s);
}

Test(symbol_sources, stripped_go_programs_name_every_function, .timeout = 300)
{
	if (!have_go())
		cr_skip("go is not installed");
	compare_go("exe", "");
}

Test(symbol_sources, stripped_go_programs_that_are_position_independent_do_too, .timeout = 300)
{
	if (!have_go())
		cr_skip("go is not installed");
	compare_go("pie", "");
}

/* C's linker has no section for the table, and leaves its one address to a relocation. */
Test(symbol_sources, stripped_go_programs_that_c_s_linker_made_do_too, .timeout = 300)
{
	if (!have_go())
		cr_skip("go is not installed");
	compare_go("pie", "-linkmode=external");
}

/* ---- stubs ---- */

static const char stub_source[] =
	"#include <stdlib.h>\n#include <stdio.h>\n#include <string.h>\n"
	"int (*volatile pointer)(const char *) = puts;\n"
	"int main(int c, char **v)\n"
	"{ void (*volatile f)(void *) = free; f(malloc(c)); puts(v[0]); pointer(v[0]);\n"
	"  printf(\"%d\", c); free(0); return (int)strlen(getenv(v[0])); }\n";

/* objdump names stubs, too; all but the first entry of .plt, which is for the others. */
static int compare_stubs(const char *path, const char *objdump, int *cnt)
{
	char command[512];
	struct vp_symbolizer *s = symbolized(path, NULL);

	snprintf(command, sizeof(command),
		 "%s -d -j .plt -j .plt.sec -j .plt.got '%s' 2>/dev/null |"
		 " sed -nE 's/^0*([0-9a-f]+) <([^*>]*@plt)>:$/\\1 \\2/p' | grep -vE '@@|\\*ABS'",
		 objdump, path);
	int wrong = differences(s, command, cnt);
	vp_symbolizer_free(s);
	return wrong;
}

Test(symbol_sources, stubs_are_named_after_what_they_call)
{
	static const char *const builds[] = {
		"gcc -fcf-protection=none -Wl,-z,lazy",
		"gcc -fcf-protection=none -Wl,-z,now",
		"gcc -fcf-protection -Wl,-z,lazy -Wl,-z,ibtplt",
		"gcc -fcf-protection -Wl,-z,now -Wl,-z,ibtplt",
		"gcc -no-pie -Wl,-z,lazy",
		"gcc -Wl,-z,noseparate-code",
		"clang",
	};
	int cnt;

	fixture_text(&x, "s.c", stub_source);
	for (size_t i = 0; i < sizeof(builds) / sizeof(*builds); i++) {
		if (!fixture_try(&x, "%s -O1 -o prog s.c 2>log", builds[i])) {
			cr_log_warn("cannot build with %s", builds[i]);
			continue;
		}
		cr_expect(zero(int, compare_stubs(fixture_path(&x, "prog"), "objdump", &cnt)), "%s",
			  builds[i]);
		cr_expect(gt(int, cnt, 3), "%s", builds[i]);
	}
}

Test(symbol_sources, stubs_by_lld_are_named_too)
{
	int cnt;

	fixture_text(&x, "s.c", stub_source);
	if (!fixture_try(&x, "clang -fuse-ld=lld -O1 -o prog s.c 2>log"))
		cr_skip("clang and lld are not installed");
	cr_expect(zero(int, compare_stubs(fixture_path(&x, "prog"), "llvm-objdump", &cnt)));
	cr_expect(gt(int, cnt, 3));
}

Test(symbol_sources, lazy_stubs_in_front_of_ibt_s_are_named_by_their_number)
{
	int cnt;

	fixture_text(&x, "s.c", stub_source);
	fixture_run(&x, "gcc -O1 -fcf-protection -Wl,-z,lazy -Wl,-z,ibtplt -o prog s.c");
	/* Those of .plt are in the order of .rela.plt, whose symbols readelf tells. */
	fixture_run(
		&x,
		"at=$(readelf -SW prog | sed -nE 's/.* \\.plt +PROGBITS +([0-9a-f]+) .*/\\1/p');"
		" readelf -rW prog | grep JUMP_SLO | awk -v at=\"$at\" 'BEGIN { split(at, d, \"\");"
		" for (i = 1; i <= length(at); i++) n = n * 16 + index(\"0123456789abcdef\", d[i]) "
		"- 1 }"
		" { sub(/@.*/, \"\", $5); printf \"%%x %%s@plt\\n\", n + 16 * NR, $5 }' >names");
	struct vp_symbolizer *s = symbolized(fixture_path(&x, "prog"), NULL);
	char command[128];
	snprintf(command, sizeof(command), "cat %s", fixture_path(&x, "names"));
	cr_expect(zero(int, differences(s, command, &cnt)));
	cr_expect(gt(int, cnt, 3));
	vp_symbolizer_free(s);
}

Test(symbol_sources, stubs_of_a_static_program_are_named_after_its_ifuncs)
{
	fixture_text(&x, "i.c",
		     "static int impl(void) { return 1; }\n"
		     "static void *resolve(void) { return (void *)impl; }\n"
		     "int dispatched(void) __attribute__((ifunc(\"resolve\")));\n"
		     "int main(void) { return dispatched(); }\n");
	fixture_run(
		&x,
		"gcc -static -O0 -fcf-protection=none -o prog i.c &&"
		" objdump -d --no-show-raw-insn prog |"
		" sed -nE '/<main>:/,/ret/s/.*call +([0-9a-f]+).*/\\1 dispatched@plt/p' >names");
	struct vp_symbolizer *s = symbolized(fixture_path(&x, "prog"), NULL);
	char command[128];
	int cnt;

	snprintf(command, sizeof(command), "cat %s", fixture_path(&x, "names"));
	cr_expect(zero(int, differences(s, command, &cnt)));
	cr_expect(eq(int, cnt, 1));
	vp_symbolizer_free(s);
}

Test(symbol_sources, the_names_of_stubs_are_demangled)
{
	fixture_text(&x, "l.cc", "namespace n { int f(int k) { return k; } }\n");
	fixture_text(&x, "p.cc",
		     "namespace n { int f(int); }\nint main(int c, char **) { return n::f(c); }\n");
	fixture_run(&x, "g++ -shared -fPIC -o l.so l.cc && g++ -O0 -o prog p.cc ./l.so &&"
			" objdump -d -j .plt prog | sed -nE 's/^0*([0-9a-f]+) <_ZN.*@plt>:/\\1 "
			"n::f(int)@plt/p' >names");
	struct vp_symbolizer *s = symbolized(fixture_path(&x, "prog"), NULL);
	char command[128];
	int cnt;

	snprintf(command, sizeof(command), "cat %s", fixture_path(&x, "names"));
	cr_expect(zero(int, differences(s, command, &cnt)));
	cr_expect(eq(int, cnt, 1));
	vp_symbolizer_free(s);
}

Test(symbol_sources, stubs_of_this_machine_s_programs_are_named_as_objdump_does)
{
	static const char *const paths[] = {
		"/bin/bash",
		"/usr/bin/perl",
		"/usr/bin/git",
		"/usr/bin/python3",
		"/usr/lib/x86_64-linux-gnu/libstdc++.so.6",
		"/usr/lib/x86_64-linux-gnu/libcrypto.so.3",
		"/usr/lib/x86_64-linux-gnu/libdw.so.1",
	};
	int cnt, total = 0;

	for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++) {
		if (access(paths[i], R_OK))
			continue;
		cr_expect(zero(int, compare_stubs(paths[i], "objdump -C", &cnt)), "%s", paths[i]);
		total += cnt;
	}
	cr_expect(gt(int, total, 500));
}
