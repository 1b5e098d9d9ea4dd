/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Small files that tests build for themselves, each in its own directory. Failing to build
 * one aborts the process: a test that could not be set up must not look passed.
 */
#ifndef FIXTURE_ELF_H
#define FIXTURE_ELF_H

#include <stddef.h>
#include <stdint.h>

struct fixture {
	char dir[64];
};

void fixture_new(struct fixture *x);
void fixture_remove(struct fixture *x);

/* DIR/name, in one of eight static buffers that take turns. */
const char *fixture_path(const struct fixture *x, const char *name);

/* Returns the path, as fixture_path. */
const char *fixture_write(const struct fixture *x, const char *name, const void *bytes, size_t n);
const char *fixture_text(const struct fixture *x, const char *name, const char *text);

/* Runs a shell command in the directory. */
void fixture_run(const struct fixture *x, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* The same; returns its success instead of insisting on it. */
int fixture_try(const struct fixture *x, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* The whole file; caller frees. */
unsigned char *fixture_read(const char *path, size_t *size);

/* Link-time address of a symbol, by nm (with -D if dynamic). */
uint64_t fixture_symbol(const char *path, const char *name, int dynamic);

#endif
