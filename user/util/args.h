/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Numbers and lists on the command line. */
#ifndef VP_ARGS_H
#define VP_ARGS_H

#include "err.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct vp_pids {
	pid_t *pid;
	size_t cnt;
};

/*
 * Appends "7,8,9" (positive decimal numbers), each once. 0, -ENOMEM, or -EINVAL with e filled.
 * Free with vp_pids_free.
 */
int vp_pids_parse(struct vp_pids *p, const char *arg, struct vp_err *e);
void vp_pids_free(struct vp_pids *p);

/* A whole unsigned number, decimal or 0x… 0 or -EINVAL. */
int vp_parse_u64(const char *s, int base, uint64_t *out);

/* Bytes: a decimal number of megabytes, or of what a K, M or G behind it says. 0 or -EINVAL. */
int vp_parse_size(const char *s, uint64_t *bytes);

/* A positive decimal number that a process may have. 0 or -EINVAL. */
int vp_parse_pid(const char *s, pid_t *out);

/* Exit codes of commands. */
#define VP_EXIT_OK	0
#define VP_EXIT_FAILURE 1
#define VP_EXIT_USAGE	2

/* "vmaprof: CMD: …" on standard error. Return the exit code for it. */
int vp_fail(const char *cmd, const struct vp_err *e);
int vp_usage_error(const char *cmd, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
