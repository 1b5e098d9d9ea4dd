/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Loads one program of an object alone, and says what the verifier thinks of it. */
#ifndef TRY_LOAD_H
#define TRY_LOAD_H

#include <bpf/libbpf.h>

/*
 * 0 or -errno; the object, which none of its programs has been loaded from before, is closed then.
 * log: the verifier's, until the next call; "" if it had nothing to say.
 */
int try_load(struct bpf_object *obj, const char *prog, const char **log);

/* A log's last line but for the statistics: why a program was refused. Valid until the next call. */
const char *reason_of(const char *log);

#endif
