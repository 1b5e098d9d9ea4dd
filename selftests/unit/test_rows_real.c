/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Files that this machine runs: against libdw, and single functions whose frames are special. */
#include "fixture_elf.h"
#include "rows_oracle.h"
#include "symbolize/vdso_image.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

TestSuite(rows_real, .timeout = 60);

static const char libc_path[] = "/lib/x86_64-linux-gnu/libc.so.6";

static struct vp_rows *compile(const char *path)
{
	struct vp_rows *rows = NULL;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd >= 0)
		cr_assert(zero(int, vp_rows_compile(&rows, fd)), "%s", path);
	close(fd);
	return rows;
}

/* Compares a file with libdw, if it exists. */
static void expect_no_difference(const char *path)
{
	struct rows_oracle_counts counts = {0};
	struct vp_rows *rows = compile(path);
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (!rows)
		return;
	cr_assert(zero(int, rows_oracle_compare(rows, fd, path, stderr, &counts)));
	cr_expect(zero(u64, counts.differences), "%s", path);
	cr_expect(ge(u64, counts.pieces, rows->cnt));
	cr_expect(zero(u64, rows->stats.bad_fde_cnt), "%s", path);
	vp_rows_free(rows);
	close(fd);
}

Test(rows_real, libraries_and_programs_unwind_as_libdw_says)
{
	static const char *const paths[] = {
		libc_path,
		"/lib64/ld-linux-x86-64.so.2",
		"/lib/x86_64-linux-gnu/libm.so.6",
		"/usr/lib/x86_64-linux-gnu/libcrypto.so.3",
		"/usr/lib/x86_64-linux-gnu/libstdc++.so.6",
		"/usr/lib/x86_64-linux-gnu/libgcc_s.so.1",
		"/usr/bin/python3",
		"/usr/bin/bash",
		"/proc/self/exe",
	};

	for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++)
		expect_no_difference(paths[i]);
}

/* The oracle must be able to disagree. */
Test(rows_real, a_wrong_rule_is_noticed)
{
	struct rows_oracle_counts counts = {0};
	struct vp_rows *rows = compile(libc_path);
	int fd = open(libc_path, O_RDONLY | O_CLOEXEC);
	FILE *null = fopen("/dev/null", "we");

	for (uint32_t i = 1; i < rows->rule_cnt; i++)
		rows->rules[i].saved[VP_SAVED_FP] = VP_SAVED_LOST;
	rows_oracle_compare(rows, fd, "wrong", null, &counts);
	cr_expect(ge(u64, counts.differences, rows->cnt / 2));
	fclose(null);
	vp_rows_free(rows);
	close(fd);
}

/* At a byte of an exported function of libc, whose code is at its link-time addresses in the file. */
static const struct vp_rule *rule_in(const struct vp_rows *rows, const char *function, int into)
{
	void *handle = dlopen(libc_path, RTLD_NOW), *at = handle ? dlsym(handle, function) : NULL;
	const struct vp_rule *r;
	Dl_info info;

	cr_assert(at && dladdr(at, &info), "%s", function);
	r = vp_rows_find(rows, (uint64_t)((char *)at - (char *)info.dli_fbase + into), NULL);
	cr_assert(not(zero(ptr, (void *)r)), "%s", function);
	dlclose(handle);
	return r;
}

Test(rows_real, libcs_vfork_keeps_its_return_address_in_a_register)
{
	struct vp_rows *rows = compile(libc_path);
	int found = 0;

	for (int i = 0; i < 32; i++) {
		const struct vp_rule *r = rule_in(rows, "vfork", i);

		found |= (r->flags & VP_RULE_F_RA_REG) && r->ra_reg == 5 && r->cfa == VP_CFA_REG;
	}
	cr_expect(found);
	vp_rows_free(rows);
}

/* Where libc returns to from a signal handler: some FDE says that it is a signal frame. */
Test(rows_real, libcs_signal_return_is_a_signal_frame)
{
	struct vp_rows *rows = compile(libc_path);
	int found = 0;

	for (uint32_t i = 0; i < rows->cnt; i++) {
		const struct vp_rule *r = &rows->rules[rows->rule[i]];

		if (!(r->flags & VP_RULE_F_SIGNAL))
			continue;
		found++;
		cr_expect(eq(int, r->cfa, VP_CFA_DEREF));
		cr_expect(eq(int, r->cfa_off, 160));
		cr_expect(eq(int, r->flags,
			     VP_RULE_F_SIGNAL | VP_RULE_F_SAVED_BASE | VP_RULE_F_RA_BASE));
		cr_expect(eq(int, r->saved[VP_SAVED_FP], 120 / 8));
		cr_expect(eq(int, r->saved[VP_SAVED_RA], 168 / 8));
	}
	cr_expect(eq(int, found, 1));
	vp_rows_free(rows);
}

Test(rows_real, new_threads_have_an_outermost_frame)
{
	struct vp_rows *rows = compile(libc_path);
	int found = 0;

	for (int i = 0; i < 128; i++)
		found |= rule_in(rows, "clone", i)->cfa == VP_CFA_END;
	cr_expect(found);
	vp_rows_free(rows);
}

static bool is_plain_or_clone(const struct vp_rule *r)
{
	return (r->cfa == VP_CFA_REG || r->cfa == VP_CFA_CLONE) && r->reg == 7 && r->cfa_off == 8;
}

/* libc has no FDE there: see code_rows.h. */
Test(rows_real, the_return_from_a_clone_is_like_its_call)
{
	struct vp_rows *rows = compile(libc_path);
	const struct vp_rule *end = NULL;

	cr_expect(ge(u64, rows->stats.from_code_cnt, 2));
	for (int i = 0; i < 128 && !end; i++) {
		const struct vp_rule *r = rule_in(rows, "clone", i);

		if (r->cfa == VP_CFA_END)
			end = r;
		else
			cr_expect(is_plain_or_clone(r), "%d", i);
	}
	cr_expect(end != NULL);
	vp_rows_free(rows);
}

Test(rows_real, the_vdso_has_rows)
{
	struct vp_rows *rows;
	size_t size;
	const void *image = vdso_image(&size);

	if (!image)
		cr_skip_test("no vdso");
	cr_assert(zero(int, vp_rows_compile_memory(&rows, image, size)));
	cr_expect(gt(u32, rows->cnt, 4));
	vp_rows_free(rows);
}

/* ---- programs built for it ------------------------------------------------------------------ */

static struct fixture x;

static void set_up(void)
{
	fixture_new(&x);
}

static void tear_down(void)
{
	fixture_remove(&x);
}

TestSuite(rows_built, .init = set_up, .fini = tear_down, .timeout = 60);

static const char *build(const char *flags)
{
	fixture_text(
		&x, "p.c",
		"#include <stdlib.h>\n"
		"#include <string.h>\n"
		"typedef int vec __attribute__((vector_size(32)));\n"
		"__attribute__((noinline)) int leaf(volatile vec *v, int n)\n"
		"{ char *p = __builtin_alloca(n); memset(p, n, n); return p[n / 2] + (*v)[0]; }\n"
		"int main(int argc, char **argv)\n"
		"{ volatile vec v = {argc}; (void)argv; return leaf(&v, argc * 100) + rand(); }\n");
	fixture_run(&x, "gcc %s -o p p.c", flags);
	return fixture_path(&x, "p");
}

Test(rows_built, the_init_function_is_told_by_its_code)
{
	struct vp_rows *rows = NULL;
	uint64_t at = 0;
	const struct vp_rule *r;
	FILE *f;

	build("-O2");
	fixture_run(&x, "readelf -dW p | sed -n 's/.*(INIT) *0x/0x/p' >init");
	f = fopen(fixture_path(&x, "init"), "r");
	cr_assert(f && fscanf(f, "%lx", &at) == 1);
	fclose(f);
	rows = compile(fixture_path(&x, "p"));
	/* its link-time address is its file offset in a PIE's first segments */
	r = vp_rows_find(rows, at, NULL);
	cr_assert(r && r->cfa == VP_CFA_REG && r->cfa_off == 8 && r->saved[VP_SAVED_RA] == -1);
	r = vp_rows_find(rows, at + 10, NULL);
	cr_assert(r && r->cfa == VP_CFA_REG && r->cfa_off == 16);
	vp_rows_free(rows);
}

static uint64_t debug_fdes(const char *path)
{
	struct vp_rows *rows = compile(path);
	uint64_t cnt = rows->stats.from_debug_cnt;

	vp_rows_free(rows);
	return cnt;
}

Test(rows_built, optimized_and_not)
{
	static const char *const flags[] = {"-O0",
					    "-O2",
					    "-O2 -mavx2",
					    "-O3 -fno-omit-frame-pointer",
					    "-O2 -no-pie",
					    "-O2 -static",
					    "-O2 -Wl,-z,noseparate-code",
					    "-O2 -Wl,--no-eh-frame-hdr"};

	for (size_t i = 0; i < sizeof(flags) / sizeof(*flags); i++)
		expect_no_difference(build(flags[i]));
}

Test(rows_built, without_asynchronous_tables_debug_frame_is_read)
{
	static const char *const flags[] = {
		"-g -O2 -fno-asynchronous-unwind-tables -fno-unwind-tables -gz=none",
		"-g -O2 -fno-asynchronous-unwind-tables -fno-unwind-tables -gz=zlib",
		"-g -O2 -fno-asynchronous-unwind-tables -fno-unwind-tables -gz=zlib-gnu",
	};

	for (size_t i = 0; i < sizeof(flags) / sizeof(*flags); i++) {
		const char *path = build(flags[i]);

		cr_expect(ge(u64, debug_fdes(path), 2), "%s", flags[i]);
		expect_no_difference(path);
	}
}

Test(rows_built, a_stripped_file_keeps_its_rows)
{
	const char *path = build("-O2");
	struct vp_rows *before = compile(path), *after;

	/* and without section headers */
	fixture_run(&x, "strip -s p && (objcopy --strip-section-headers p || true) 2>/dev/null");
	after = compile(path);
	cr_expect(eq(u32, after->cnt, before->cnt));
	cr_expect(zero(int, memcmp(after->key, before->key, before->cnt * sizeof(*before->key))));
	vp_rows_free(before);
	vp_rows_free(after);
}

/* Its entries are not relocated: they would all be about the same address. */
Test(rows_built, an_object_that_is_not_linked_has_none)
{
	const char *path = build("-O2 -c");
	struct vp_rows *rows;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	cr_assert(ge(int, fd, 0));
	cr_expect(eq(int, vp_rows_compile(&rows, fd), VP_ROWS_NO_CFI));
	cr_expect(eq(ptr, rows, NULL));
	close(fd);
}
