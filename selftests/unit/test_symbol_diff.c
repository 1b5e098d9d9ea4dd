/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Ten thousand addresses of each of this machine's larger programs and libraries, half of them in
 * functions and half anywhere in the code, against nm's list of the same file:
 *
 *   in one or more sized symbols     a name of one that begins closest before the address
 *   in none, behind a sizeless one   that one, in its section, or no name
 *   else                             no name, a stub's, or one out of Go's own table
 *
 * and against llvm-symbolizer where a sized symbol covers the address.
 */
#include "fixture_elf.h"
#include "symbolized.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ADDRESS_CNT 10000

struct symbol {
	uint64_t start, end; /* equal: no size */
	char *name;
};

static struct symbol *symbols; /* by start */
static uint64_t *reach;	       /* the furthest end of symbols[0 .. i] */
static size_t symbol_cnt, symbol_cap;
static struct fixture x;

static void forget_all(void)
{
	while (symbol_cnt)
		free(symbols[--symbol_cnt].name);
}

static void set_up(void)
{
	fixture_new(&x);
}

static void tear_down(void)
{
	forget_all();
	free(symbols);
	free(reach);
	fixture_remove(&x);
}

TestSuite(symbol_diff, .init = set_up, .fini = tear_down, .timeout = 120);

static void add_symbol(uint64_t start, uint64_t size, const char *name)
{
	if (symbol_cnt == symbol_cap) {
		symbol_cap = symbol_cap ? 2 * symbol_cap : 4096;
		symbols = realloc(symbols, symbol_cap * sizeof(*symbols));
		cr_assert(ne(ptr, symbols, NULL));
	}
	symbols[symbol_cnt++] = (struct symbol){start, start + size, strdup(name)};
}

static int by_start(const void *a, const void *b)
{
	const struct symbol *s = a, *t = b;

	return s->start < t->start ? -1 : s->start > t->start;
}

/* Of code; the version behind '@' is no part of the name. */
static void read_nm(const char *path, const char *option)
{
	static char line[1 << 20], name[1 << 20];
	char command[PATH_MAX + 64], type;
	uint64_t start, size;

	snprintf(command, sizeof(command), "nm -f posix --defined-only %s '%s' 2>/dev/null", option,
		 path);
	FILE *f = popen(command, "r");
	while (f && fgets(line, sizeof(line), f)) {
		size = 0;
		if (sscanf(line, "%s %c %lx %lx", name, &type, &start, &size) < 3 ||
		    !strchr("tTwWi", type))
			continue;
		if (strchr(name + 1, '@'))
			*strchr(name + 1, '@') = '\0';
		add_symbol(start, size, name);
	}
	if (f)
		pclose(f);
}

static void read_all(const char *path)
{
	forget_all();
	read_nm(path, "");
	read_nm(path, "-D");
	cr_assert(gt(sz, symbol_cnt, 0), "%s", path);
	qsort(symbols, symbol_cnt, sizeof(*symbols), by_start);
	reach = realloc(reach, symbol_cnt * sizeof(*reach));
	for (size_t i = 0; i < symbol_cnt; i++)
		reach[i] = i && reach[i - 1] > symbols[i].end ? reach[i - 1] : symbols[i].end;
}

/* Index behind the last symbol that begins at or before the address. */
static size_t behind(uint64_t addr)
{
	size_t lo = 0, hi = symbol_cnt;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (symbols[mid].start <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* The closest start of a sized symbol that covers the address; 0: none does. */
static uint64_t covering_start(uint64_t addr)
{
	for (size_t i = behind(addr); i-- > 0 && reach[i] > addr;) {
		if (symbols[i].end > addr)
			return symbols[i].start;
	}
	return 0;
}

/* Is it a name of a symbol that begins there, sized ones that cover the address only? */
static int begins_at(const char *name, uint64_t start, uint64_t addr, int sized)
{
	for (size_t i = behind(start); i-- > 0 && symbols[i].start == start;) {
		if ((!sized || symbols[i].end > addr) && !strcmp(symbols[i].name, name))
			return 1;
	}
	return 0;
}

static int is_sizeless_before(const char *name, uint64_t addr)
{
	size_t i = behind(addr);

	return i && begins_at(name, symbols[i - 1].start, addr, 0);
}

static int is_right(struct vp_symbolizer *s, uint64_t addr)
{
	const char *ours = symbolized_name(s, addr), *source = symbolized_source(s, addr);
	uint64_t start = covering_start(addr);
	int right;

	if (start)
		right = begins_at(ours, start, addr, 1);
	else
		right = !strcmp(source, "none") || !strcmp(source, "plt") ||
			!strcmp(source, "gopclntab") || is_sizeless_before(ours, addr);
	if (!right)
		cr_log_warn("%lx: we say %s (%s), nm begins at %lx", addr, ours, source, start);
	return right;
}

/* The sections of code together: [*from, *to). */
static void code_bounds(uint64_t *from, uint64_t *to)
{
	*from = symbols[0].start;
	*to = reach[symbol_cnt - 1];
}

static uint64_t pick(size_t i)
{
	uint64_t from, to, r = (uint64_t)random() << 31 ^ (uint64_t)random();

	if (i % 2) {
		const struct symbol *s = &symbols[r % symbol_cnt];

		return s->end > s->start ? s->start + (uint64_t)random() % (s->end - s->start)
					 : s->start;
	}
	code_bounds(&from, &to);
	return from + r % (to - from);
}

static void compare_with_nm(const char *path)
{
	struct vp_symbolizer *s = symbolized_raw(path, NULL);
	int wrong = 0;

	read_all(path);
	srandom(1);
	for (size_t i = 0; i < ADDRESS_CNT && wrong < 20; i++)
		wrong += !is_right(s, pick(i));
	cr_expect(zero(int, wrong), "%s", path);
	vp_symbolizer_free(s);
}

static char *self(void)
{
	return realpath("/proc/self/exe", NULL);
}

/* Programs and libraries that a machine for tests is likely to have. */
static const char *const paths[] = {
	"/bin/bash",
	"/usr/bin/perl",
	"/usr/bin/git",
	"/usr/bin/python3",
	"/usr/bin/gdb",
	"/usr/bin/perf",
	"/usr/bin/node",
	"/usr/lib/go-1.19/bin/go",
	"/usr/lib/x86_64-linux-gnu/libc.so.6",
	"/usr/lib/x86_64-linux-gnu/libm.so.6",
	"/lib64/ld-linux-x86-64.so.2",
	"/usr/lib/x86_64-linux-gnu/libstdc++.so.6",
	"/usr/lib/x86_64-linux-gnu/libcrypto.so.3",
	"/usr/lib/x86_64-linux-gnu/libLLVM-14.so.1",
	"/usr/lib/x86_64-linux-gnu/libclang-cpp.so.14",
	"/usr/lib/x86_64-linux-gnu/libdw.so.1",
	"/usr/lib/x86_64-linux-gnu/libperl.so.5.36",
	"/usr/lib/x86_64-linux-gnu/libpython3.11.so.1.0",
};

Test(symbol_diff, this_machine_s_files_are_named_as_nm_does)
{
	char *program = self();
	int cnt = 0;

	compare_with_nm(program);
	for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++) {
		if (access(paths[i], R_OK))
			continue;
		compare_with_nm(paths[i]);
		cnt++;
	}
	cr_expect(gt(int, cnt, 5));
	free(program);
}

/* Compiled code of each kind, at the addresses of all its bytes. */
Test(symbol_diff, fixtures_are_named_as_nm_does)
{
	static const char *const builds[] = {
		"gcc -O0",
		"gcc -O3 -freorder-blocks-and-partition",
		"gcc -O2 -flto",
		"gcc -O2 -static",
		"gcc -O2 -no-pie -Wl,-Ttext-segment=0x30000000",
		"gcc -O2 -Wl,-z,noseparate-code",
		"gcc -O2 -ffunction-sections -Wl,-z,max-page-size=0x200000",
		"clang -O0",
		"clang -O3 -fuse-ld=lld",
		"clang -O2 -fuse-ld=lld -Wl,-z,separate-loadable-segments",
		"clang -O2 -flto=thin -fuse-ld=lld",
	};

	fixture_text(&x, "m.c",
		     "#include <stdio.h>\n#include <stdlib.h>\n"
		     "__attribute__((cold, noinline)) static void fail(int n) { printf(\"%d\", n); "
		     "exit(n); }\n"
		     "__attribute__((noinline)) static int hot(int n) { if (n > 99) fail(n); "
		     "return n * 7; }\n"
		     "int weak(int) __attribute__((weak)); int weak(int n) { return n + 1; }\n"
		     "int alias(int) __attribute__((alias(\"weak\")));\n"
		     "int main(int c, char **v) { (void)v; return hot(c) + alias(c); }\n"
		     "__asm__(\".text\\nno_size: nop\\nnop\\n.section .more,\\\"ax\\\"\\nother: "
		     "ret\\nret\\n.text\");\n");
	for (size_t i = 0; i < sizeof(builds) / sizeof(*builds); i++) {
		if (fixture_try(&x, "%s -o prog m.c 2>log", builds[i]))
			compare_with_nm(fixture_path(&x, "prog"));
		else
			cr_log_warn("cannot build with %s", builds[i]);
	}
}

/*
 * Of overlapping symbols it takes another one than the closest at times; that is left to nm. It is
 * asked only where its symbol table has the answer, so without debug information.
 */
static void compare_with_llvm(const char *path)
{
	static char line[1 << 20];
	uint64_t addrs[ADDRESS_CNT];
	size_t cnt = 0, differ = 0;

	read_all(path);
	srandom(2);
	FILE *f = fopen(fixture_path(&x, "addrs"), "w");
	while (cnt < ADDRESS_CNT) {
		uint64_t addr = pick(1);

		if (!covering_start(addr))
			continue;
		addrs[cnt++] = addr;
		fprintf(f, "0x%lx\n", addr);
	}
	fclose(f);
	fixture_run(
		&x,
		"llvm-symbolizer --no-inlines --no-demangle --functions=linkage -e '%s' <addrs |"
		" awk 'NR %% 3 == 1' >names",
		path);
	f = fopen(fixture_path(&x, "names"), "r");
	struct vp_symbolizer *s = symbolized_raw(path, NULL);
	for (size_t i = 0; i < cnt; i++) {
		uint64_t start = covering_start(addrs[i]);

		cr_assert(ne(ptr, fgets(line, sizeof(line), f), NULL));
		line[strcspn(line, "@\n")] = '\0';
		/* Another alias of the same function is no difference. */
		if (!strcmp(line, symbolized_name(s, addrs[i])) ||
		    begins_at(line, start, addrs[i], 1))
			continue;
		if (differ++ < 5)
			cr_log_warn("%lx: we say %s, llvm-symbolizer %s", addrs[i],
				    symbolized_name(s, addrs[i]), line);
	}
	fclose(f);
	cr_expect(zero(sz, differ), "%s", path);
	vp_symbolizer_free(s);
}

Test(symbol_diff, this_machine_s_libraries_are_named_as_llvm_symbolizer_does)
{
	if (system("command -v llvm-symbolizer >/dev/null"))
		cr_skip("llvm-symbolizer is not installed");
	for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++) {
		if (strstr(paths[i], "/lib") && !access(paths[i], R_OK))
			compare_with_llvm(paths[i]);
	}
}
