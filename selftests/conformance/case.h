/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Conformance cases: what bpf_find_vma, iter/task_vma and their neighbours do on this kernel. Each
 * runs in a process of its own, with a time limit; what it finds is pass, fail or skip, or, where a
 * kernel has a known bug, xfail.
 */
#ifndef CASE_H
#define CASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct ct_case {
	const char *name; /* "find_vma/first_and_last_byte" */
	const char *says; /* what is expected, a line */
	/*
	 * Which of the behaviours that README.md lists it looks at: "24" or "25, 26". Given behind the
	 * text of CT_CASE: .numbers = "24".
	 */
	const char *numbers;
	void (*run)(void);
	/*
	 * On a kernel with the bug that it looks for it leaves something behind that only a reboot
	 * mends: runs in a virtual machine alone.
	 */
	bool is_dangerous;
	unsigned int limit_s; /* 0: 90 */
};

/* One file's cases. */
struct ct_group {
	const struct ct_case *cases;
	size_t cnt;
};

/* The case that a function is; what follows the text are further members. */
#define CT_CASE(prefix, fn, text, ...)                                                             \
	{                                                                                          \
		.name = prefix #fn, .says = (text), .run = fn, ##__VA_ARGS__                       \
	}

#define CT_GROUP(name, array)                                                                      \
	const struct ct_group name = {array, sizeof(array) / sizeof((array)[0])}

/* ---- in a case ------------------------------------------------------------------------------- */

/* Ends the case as skipped. */
void ct_skip(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

/* May the case cost the kernel? For those that are dangerous on some kernels alone: see is_dangerous. */
bool ct_may_endanger(void);

/*
 * Here the kernel has a bug: what fails from now on is expected to, and that nothing fails is the
 * failure. fix: the commit or title that fixes it, and since when: it is shown behind "fixed by".
 */
void ct_known_bug(const char *fix);

/*
 * fork() (same result, same errors) of a child that is killed when the thread that made it ends, however
 * that comes: whoever kills the suite leaves nothing behind. For children that were made otherwise:
 * ct_die_with, called in them with their parent's pid.
 */
pid_t ct_fork(void);
void ct_die_with(pid_t parent);

/* Something to say with the result. */
void ct_note(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* What was seen and what had to be; the case goes on. */
void ct_check(bool ok, const char *file, int line, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

#define ct_expect(ok, ...) ct_check(ok, __FILE__, __LINE__, __VA_ARGS__)

/* The same, for what the rest of the case needs. */
#define ct_require(ok, ...)                                                                        \
	do {                                                                                       \
		bool ct_ok = (ok);                                                                 \
		ct_check(ct_ok, __FILE__, __LINE__, __VA_ARGS__);                                  \
		if (!ct_ok)                                                                        \
			ct_end();                                                                  \
	} while (0)

/* Ends the case with what was found so far. */
void ct_end(void) __attribute__((noreturn));

#endif
