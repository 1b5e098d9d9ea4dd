// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* build: -O2 -g -fomit-frame-pointer -ldl */
/*
 * big_library [NESTS [CPU_SECONDS]]: a stack that runs NESTS (4) times through libc (qsort) and
 * through LLVM, a library of 100 MB (its handler of errors), and ends in big_spin. Without frame
 * pointers, about seven frames a nest.
 */
#include "workload.h"

#include <dlfcn.h>

typedef void *llvm;

static llvm (*context_create)(void);
static void (*set_handler)(llvm context, void (*handler)(llvm, void *), void *arg);
static llvm (*buffer_create)(const char *data, size_t len, const char *name, int needs_nul);
static int (*parse_bitcode)(llvm context, llvm buffer, llvm *module);
static long nests;
static volatile unsigned long turns;

static void nest(void);

__attribute__((noipa)) void big_spin(void)
{
	wl_ready("nests=%ld", nests);
	while (!wl_stop)
		turns++;
}

static void on_error(llvm info, void *arg)
{
	(void)info;
	(void)arg;
	nest();
	turns++;
}

/* No bitcode: the parser reports that to the handler. */
static int compare(const void *a, const void *b)
{
	llvm context = context_create(), module;

	set_handler(context, on_error, NULL);
	parse_bitcode(context, buffer_create("no bitcode", 10, "", 0), &module);
	turns++;
	return *(const int *)a - *(const int *)b;
}

static void nest(void)
{
	int two[2] = {2, 1};

	if (wl_stop)
		return;
	if (nests-- > 0)
		qsort(two, 2, sizeof(*two), compare);
	else
		big_spin();
	turns++;
}

static void *find(void *library, const char *name)
{
	void *f = dlsym(library, name);

	if (!f) {
		fprintf(stderr, "%s\n", dlerror());
		exit(77);
	}
	return f;
}

int main(int argc, char **argv)
{
	void *library = dlopen("libLLVM-14.so.1", RTLD_NOW);

	if (!library) {
		fprintf(stderr, "%s\n", dlerror());
		return 77;
	}
	context_create = find(library, "LLVMContextCreate");
	set_handler = find(library, "LLVMContextSetDiagnosticHandler");
	buffer_create = find(library, "LLVMCreateMemoryBufferWithMemoryRange");
	parse_bitcode = find(library, "LLVMParseBitcodeInContext2");
	nests = (long)wl_arg(argc, argv, 1, 4);
	wl_die_with_parent();
	wl_stop_after(wl_arg(argc, argv, 2, 0));
	nest();
	return 0;
}
