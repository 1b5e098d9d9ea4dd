// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* build: -O2 -g -fomit-frame-pointer -pthread */
/*
 * nofp_signal [fault|alt|nested|async|system|storm [CPU_SECONDS]]: spins in a signal handler.
 *
 *   fault   a function whose first instruction faults: the address before it is in another one
 *   alt     the same, the handler has a stack of its own
 *   nested  the handler, on a stack of its own, faults and the next handler spins
 *   async   interrupts a leaf that uses the red zone below the stack pointer
 *   system  interrupts a system call
 *   storm   returns from it at once and is called again all the time: samples are in the delivery
 *           of signals and in the return from them, too
 *
 * The READY line calls libc's return function of handlers "signal".
 */
#include "nofp.h"

#include <time.h>

#define ALT_BYTES 65536

#if defined(__x86_64__)
__asm__(".text\n"
	".globl innocent_neighbour\n"
	".type innocent_neighbour, @function\n"
	"innocent_neighbour:\n"
	"	.cfi_startproc\n"
	"	sub $1000, %rsp\n"
	"	.cfi_def_cfa_offset 1008\n"
	"	ud2\n"
	"	.cfi_endproc\n"
	".size innocent_neighbour, . - innocent_neighbour\n"
	".globl faults_at_once\n"
	".type faults_at_once, @function\n"
	"faults_at_once:\n"
	"	.cfi_startproc\n"
	"	mov 0, %eax\n"
	"	ret\n"
	"	.cfi_endproc\n"
	".size faults_at_once, . - faults_at_once\n");
#endif
int faults_at_once(void);

static const char *mode;

WL_STEP void handler_spin(void)
{
	while (!wl_stop)
		wl_count++;
	_exit(0);
}

WL_STEP void on_second_fault(int sig)
{
	(void)sig;
	wl_ready("chain=main;faults;faults_at_once;signal;on_fault;faults_again;signal;on_second_"
		 "fault;"
		 "handler_spin");
	handler_spin();
	wl_count++;
}

WL_STEP int faults_again(void)
{
	volatile int *volatile nowhere = NULL;

	WL_SPOIL_REGISTERS();
	return 1 + *nowhere;
}

static void set_handler(int sig, void (*handler)(int), int flags)
{
	struct sigaction sa;

	memset(&sa, 0, sizeof(sa));
	sa.sa_handler = handler;
	sa.sa_flags = flags;
	sigaction(sig, &sa, NULL);
}

WL_STEP void on_fault(int sig)
{
	if (!strcmp(mode, "nested")) {
		set_handler(SIGSEGV, on_second_fault, SA_ONSTACK | SA_NODEFER);
		wl_count += (unsigned long)faults_again();
	}
	wl_ready("chain=main;faults;faults_at_once;signal;on_fault;handler_spin");
	handler_spin();
	wl_count += (unsigned long)sig;
}

WL_STEP void on_alarm(int sig)
{
	wl_ready("chain=main;%s;signal;on_alarm;handler_spin",
		 !strcmp(mode, "async") ? "red_zone_leaf" : "sleeps;clock_nanosleep");
	handler_spin();
	wl_count += (unsigned long)sig;
}

WL_STEP int faults(int n)
{
	WL_SPOIL_REGISTERS();
	return n + faults_at_once();
}

/* Ninety bytes of locals and no stack pointer that goes down. */
WL_STEP void red_zone_leaf(void)
{
	volatile unsigned char local[90] = {0};

	for (unsigned int i = 0;; i++)
		local[i % 90] += local[(i + 1) % 90] + 1;
}

WL_STEP void sleeps(void)
{
	struct timespec ts = {.tv_sec = 1000};

	WL_SPOIL_REGISTERS();
	clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, NULL);
	wl_count++;
}

WL_STEP void tick(void)
{
	for (int i = 0; i < 3000; i++)
		wl_count++;
}

WL_STEP void on_tick(int sig)
{
	WL_SPOIL_REGISTERS();
	tick();
	wl_count += (unsigned long)sig;
}

WL_STEP void is_interrupted(void)
{
	WL_SPOIL_REGISTERS();
	while (!wl_stop)
		wl_count++;
}

static void use_alt_stack(void)
{
	stack_t ss = {.ss_size = ALT_BYTES};

	ss.ss_sp =
		mmap(NULL, ALT_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (ss.ss_sp == MAP_FAILED || sigaltstack(&ss, NULL))
		wl_die("sigaltstack");
}

static void alarm_after(long us, long then_every_us, void (*handler)(int))
{
	struct itimerval it = {.it_value = {.tv_usec = us},
			       .it_interval = {.tv_usec = then_every_us}};

	set_handler(SIGALRM, handler, 0);
	setitimer(ITIMER_REAL, &it, NULL);
}

int main(int argc, char **argv)
{
	mode = argc > 1 ? argv[1] : "fault";
	wl_die_with_parent();
	wl_stop_after(wl_arg(argc, argv, 2, 0));
	if (!strcmp(mode, "async")) {
		alarm_after(50000, 0, on_alarm);
		red_zone_leaf();
	}
	if (!strcmp(mode, "system")) {
		alarm_after(50000, 0, on_alarm);
		sleeps();
	}
	if (!strcmp(mode, "storm")) {
		wl_ready("chain=main;is_interrupted|main;is_interrupted;signal|"
			 "main;is_interrupted;signal;on_tick|main;is_interrupted;signal;on_tick;"
			 "tick");
		alarm_after(100, 100, on_tick);
		is_interrupted();
		return 0;
	}
	if (!strcmp(mode, "fault")) {
		set_handler(SIGSEGV, on_fault, 0);
	} else {
		use_alt_stack();
		set_handler(SIGSEGV, on_fault, SA_ONSTACK | SA_NODEFER);
	}
	return faults(argc) == 1;
}
