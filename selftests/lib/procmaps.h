/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* /proc/PID/maps, which the product never reads: what its answers are compared with. */
#ifndef PROCMAPS_H
#define PROCMAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct procmaps_row {
	uint64_t start, end, pgoff, ino;
	uint32_t maj, min;
	char prot[5]; /* "r-xp" */
	char *name;   /* unescaped; "" for none */
};

struct procmaps {
	struct procmaps_row *row;
	size_t cnt;
};

/* Aborts if it cannot be read. [vsyscall] is left out: it is no VMA. */
void procmaps_read(struct procmaps *m, pid_t pid);
void procmaps_free(struct procmaps *m);

/* NULL if nothing is mapped there. */
const struct procmaps_row *procmaps_find(const struct procmaps *m, uint64_t addr);
/* The first row of that name that is executable (or any, if `any`). */
const struct procmaps_row *procmaps_named(const struct procmaps *m, const char *name, int any);

/* The whole text of /proc/PID/NAME; caller frees. */
char *procfs_text(pid_t pid, const char *name);

/* Whether a thread sleeps, by its number. */
bool procfs_is_asleep(pid_t tid);

#endif
