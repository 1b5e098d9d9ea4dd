/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Processes for tests to look at. They die with the test, never assert, and talk to it in
 * numbers through a socket; the test waits for them with a deadline and aborts when it is missed.
 */
#ifndef TARGET_H
#define TARGET_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct target {
	pid_t pid;
	int fd;
};

/* What the child runs; it _exits when that returns. */
typedef void (*target_body)(void *arg);

void target_start(struct target *t, target_body body, void *arg);
/* Kills and collects it; fine if it has ended. */
void target_end(struct target *t);
/* Waits for its end; the status as waitpid gives it. */
int target_wait(struct target *t);

/* In the test: a number to the child, one from it. */
void target_say(struct target *t, uint64_t n);
uint64_t target_hear(struct target *t);

/* In the child, by any thread: the same. */
void target_tell(uint64_t n);
uint64_t target_await(void);
/* In the child: never returns, uses no CPU. */
void target_pause(void) __attribute__((noreturn));
/* In the child: insists on ok. */
void target_check(bool ok);
/* In the child: mmap of whole pages, which has to work; where they are. */
uint64_t target_map(void *at, int fd, size_t bytes, off_t offset, int prot, int flags);

/* Makes DIR/name anew, that many bytes of zeros; its descriptor for both, or -1. */
int zeros_file(const char *dir, const char *name, size_t bytes);

/* In a process that parent has just made: ends with it, also if it has ended already. */
void target_die_with(pid_t parent);
/* fork(), and the child ends with its parent. */
pid_t target_fork(void);
/* In a thread of the child: waits until the thread that leads has exited. */
void target_await_lone(void);

/* Milliseconds of CLOCK_MONOTONIC. */
uint64_t now_ms(void);

/* What all time limits are multiplied by: $VMAPROF_PATIENCE, of who runs tests on an emulated machine. */
unsigned int test_patience(void);

/* Polls `what` each few ms until it is true or the time, times that, is up; its last value. */
bool wait_until(bool (*what)(void *arg), void *arg, unsigned int limit_ms);

#endif
