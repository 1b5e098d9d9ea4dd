/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The registry: limits, threads, states; and this process as a target. */
#include "fixture_elf.h"
#include "symbolize/symbolizer.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

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

TestSuite(symbolizer, .init = set_up, .fini = tear_down, .timeout = 30);

static enum vp_sym_reason reason_of(uint32_t id)
{
	struct vp_file_info info;

	cr_assert(zero(int, vp_symbolizer_file_info(s, id, &info)));
	return info.reason;
}

/* A library with cnt functions; returns its path. */
static const char *many_functions(const char *name, int cnt)
{
	fixture_run(&x,
		    "awk 'BEGIN { for (i = 0; i < %d; i++)"
		    " printf \".globl s%%d\\n.type s%%d,@function\\ns%%d: nop\\n.size s%%d,1\\n\","
		    " i, i, i, i }' > %s.s && gcc -shared -nostdlib -o %s %s.s",
		    cnt, name, name, name);
	return fixture_path(&x, name);
}

Test(symbolizer, a_file_never_loaded_is_called_so)
{
	struct vp_file_info info;
	struct vp_symbol sym;

	cr_expect(eq(int, vp_symbolizer_file_info(s, 1, &info), -ENOENT));
	cr_expect(eq(int, vp_symbolizer_file(s, 1, 0, &sym), -ENOENT));
	cr_expect(eq(int, sym.reason, VP_SYM_NOT_LOADED));
	cr_expect(zero(ptr, (void *)sym.name));
}

Test(symbolizer, a_file_is_read_once)
{
	const char *path = many_functions("l", 10);

	cr_assert(zero(int, vp_symbolizer_load_path(s, 1, path)));
	unlink(path);
	cr_assert(zero(int, vp_symbolizer_load_path(s, 1, path)));
	cr_expect(eq(int, reason_of(1), VP_SYM_OK));
}

Test(symbolizer, demangling_can_be_off)
{
	struct vp_symbolizer_opts opts = {.demangle = 0};
	struct vp_symbol sym = {0};
	uint64_t offset;

	vp_symbolizer_free(s);
	cr_assert(zero(int, vp_symbolizer_new(&s, &opts)));
	fixture_text(&x, "c.s",
		     ".globl _Z3foov\n.type _Z3foov,@function\n_Z3foov: ret\n"
		     ".size _Z3foov,1\n");
	fixture_run(&x, "gcc -shared -nostdlib -o c.so c.s");
	const char *path = fixture_path(&x, "c.so");
	cr_assert(zero(int, vp_symbolizer_load_path(s, 1, path)));
	cr_assert(zero(int,
		       vp_symbolizer_offset_of(s, 1, fixture_symbol(path, "_Z3foov", 0), &offset)));
	cr_assert(zero(int, vp_symbolizer_file(s, 1, offset, &sym)));
	cr_expect(eq(str, (char *)sym.name, (char *)"_Z3foov"));
}

Test(symbolizer, the_vdso_is_named)
{
	const char *base = (const char *)(uintptr_t)getauxval(AT_SYSINFO_EHDR);
	int named = 0;

	if (!base)
		cr_skip("no vdso here");
	for (uint64_t offset = 0; offset < 0x4000; offset++) {
		struct vp_symbol sym;

		if (vp_symbolizer_vdso(s, offset, &sym))
			continue;
		cr_assert(eq(int, sym.source, VP_SYM_VDSO));
		named |= !strcmp(sym.name, "__vdso_clock_gettime");
	}
	cr_expect(named);
}

Test(symbolizer, every_reason_has_a_text)
{
	for (int i = 0; i < VP_SYM_REASON_CNT; i++)
		cr_expect(gt(sz, strlen(vp_sym_reason_text((enum vp_sym_reason)i)), 3));
	cr_expect(eq(str, (char *)vp_sym_reason_text((enum vp_sym_reason)1000),
		     (char *)"unknown reason"));
}

/* ---- this process, as the kernel would describe it ---- */

struct self {
	uint64_t start, end, offset; /* of the executable segment of the program */
};

static int find_self(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct self *self = arg;

	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];

		if (p->p_type != PT_LOAD || !(p->p_flags & PF_X))
			continue;
		self->start = (info->dlpi_addr + p->p_vaddr) & ~0xfffULL;
		self->end = (info->dlpi_addr + p->p_vaddr + p->p_filesz + 0xfff) & ~0xfffULL;
		self->offset = p->p_offset & ~0xfffULL;
	}
	return 1; /* the first is the program */
}

__attribute__((noinline)) static int function_of_this_test(int n)
{
	return n * 3 + (int)getpid();
}

Test(symbolizer, a_function_of_this_process_is_named)
{
	char path[256];
	struct self self = {0};
	struct stat st;
	struct vp_symbol sym;
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);

	cr_assert(gt(long, n, 0));
	path[n] = '\0';
	cr_assert(zero(int, stat(path, &st)));
	dl_iterate_phdr(find_self, &self);
	struct vp_mapped_file m = {
		.tgid = (uint32_t)getpid(),
		.start = self.start,
		.end = self.end,
		.name = path,
		.key = {.mtime_ns = (uint64_t)st.st_mtim.tv_sec * 1000000000ULL +
				    (uint64_t)st.st_mtim.tv_nsec},
		.user_ino = st.st_ino,
	};
	cr_assert(zero(int, vp_symbolizer_load(s, 3, &m)));

	uint64_t pc = (uint64_t)(uintptr_t)function_of_this_test;
	cr_assert(zero(int, vp_symbolizer_file(s, 3, pc - self.start + self.offset, &sym)));
	cr_expect(eq(str, (char *)sym.name, (char *)"function_of_this_test"));
	cr_expect(zero(u64, sym.offset));
	cr_expect(ne(int, function_of_this_test(1), 0));
}

Test(symbolizer, a_replaced_file_is_not_believed)
{
	struct vp_mapped_file m = {
		.tgid = (uint32_t)getpid(),
		.name = many_functions("l", 10),
		.user_ino = 1,
	};
	struct vp_symbol sym;

	cr_assert(zero(int, vp_symbolizer_load(s, 1, &m)));
	cr_expect(eq(int, reason_of(1), VP_SYM_OTHER_FILE));
	vp_symbolizer_file(s, 1, 0x1000, &sym);
	cr_expect(eq(int, sym.reason, VP_SYM_OTHER_FILE));

	/* Of a process that is gone nobody knows what its name led to. */
	m.tgid = 0x7ffffffe;
	cr_assert(zero(int, vp_symbolizer_load(s, 2, &m)));
	cr_expect(eq(int, reason_of(2), VP_SYM_CANNOT_OPEN));
}

/* ---- threads ---- */

#define THREAD_CNT 4
#define FILE_CNT   12

static char shared_path[300];
static uint64_t shared_offset; /* of s7: its address, too, in a library linked at 0 */
static volatile int stop;

static void *load_all(void *failed)
{
	for (uint32_t id = 1; id <= FILE_CNT; id++) {
		if (vp_symbolizer_load_path(s, id, shared_path))
			*(int *)failed = 1;
	}
	return NULL;
}

static void *look_up_all(void *failed)
{
	const char *first[FILE_CNT + 1] = {0};

	while (!stop) {
		for (uint32_t id = 1; id <= FILE_CNT; id++) {
			struct vp_symbol sym;

			if (vp_symbolizer_file(s, id, shared_offset, &sym)) {
				if (sym.reason != VP_SYM_NOT_LOADED)
					*(int *)failed = 1;
				continue;
			}
			if (!first[id])
				first[id] = sym.name;
			if (first[id] != sym.name)
				*(int *)failed = 2;
		}
		struct vp_symbol sym;
		vp_symbolizer_kernel(s, 0xffffffff81000000ULL, &sym);
	}
	return NULL;
}

Test(symbolizer, threads_load_and_look_up_at_once)
{
	pthread_t loaders[THREAD_CNT], readers[THREAD_CNT];
	int failed[2 * THREAD_CNT] = {0};

	snprintf(shared_path, sizeof(shared_path), "%s", many_functions("l", 5000));
	shared_offset = fixture_symbol(shared_path, "s7", 0);
	for (int i = 0; i < THREAD_CNT; i++)
		cr_assert(zero(int, pthread_create(&readers[i], NULL, look_up_all, &failed[i])));
	for (int i = 0; i < THREAD_CNT; i++)
		cr_assert(zero(
			int, pthread_create(&loaders[i], NULL, load_all, &failed[THREAD_CNT + i])));
	for (int i = 0; i < THREAD_CNT; i++)
		pthread_join(loaders[i], NULL);
	stop = 1;
	for (int i = 0; i < THREAD_CNT; i++)
		pthread_join(readers[i], NULL);
	for (int i = 0; i < 2 * THREAD_CNT; i++)
		cr_expect(zero(int, failed[i]), "thread %d", i);
	for (uint32_t id = 1; id <= FILE_CNT; id++) {
		struct vp_symbol sym;

		cr_expect(eq(int, reason_of(id), VP_SYM_OK));
		cr_expect(zero(int, vp_symbolizer_file(s, id, shared_offset, &sym)));
		cr_expect(eq(str, (char *)sym.name, "s7"));
	}
}
