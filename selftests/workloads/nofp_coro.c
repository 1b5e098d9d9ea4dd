// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* build: -O2 -g -fomit-frame-pointer -pthread */
/*
 * nofp_coro [CPU_SECONDS]: two coroutines (makecontext) with stacks from mmap, which switch to
 * each other now and then; their outermost frame is libc's __start_context. `nofp_coro one`
 * stays in the first.
 */
#include "nofp.h"

#include <limits.h>
#include <ucontext.h>

#define STACK_BYTES 65536

static ucontext_t back, first, second;
static unsigned long turns = 10000000;

WL_STEP void first_spin(void)
{
	for (unsigned long i = 0; i != turns && !wl_stop; i++)
		wl_count++;
}

WL_STEP void second_spin(void)
{
	for (unsigned long i = 0; i != turns && !wl_stop; i++)
		wl_count++;
}

WL_STEP void first_main(void)
{
	WL_SPOIL_REGISTERS();
	while (!wl_stop) {
		first_spin();
		swapcontext(&first, &second);
	}
}

WL_STEP void second_main(void)
{
	WL_SPOIL_REGISTERS();
	while (!wl_stop) {
		second_spin();
		swapcontext(&second, &first);
	}
}

static void make(ucontext_t *context, void (*start)(void))
{
	if (getcontext(context))
		wl_die("getcontext");
	context->uc_stack.ss_sp =
		mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	context->uc_stack.ss_size = STACK_BYTES;
	context->uc_link = &back;
	if (context->uc_stack.ss_sp == MAP_FAILED)
		wl_die("mmap");
	makecontext(context, start, 0);
}

int main(int argc, char **argv)
{
	int one = argc > 1 && !strcmp(argv[1], "one");

	wl_die_with_parent();
	wl_stop_after(wl_arg(argc, argv, 1 + one, 0));
	make(&first, first_main);
	make(&second, second_main);
	if (one) {
		turns = ULONG_MAX;
		wl_ready("chain=first_main;first_spin");
	} else {
		wl_ready("chain=first_main;first_spin|second_main;second_spin|first_main;"
			 "swapcontext|second_main;swapcontext|first_main|second_main");
	}
	swapcontext(&back, &first);
	return 0;
}
