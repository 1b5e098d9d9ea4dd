/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Names of the code that a process's JIT has made, for `vmaprof sym -p`. */
#ifndef VP_SYM_JIT_H
#define VP_SYM_JIT_H

#include "../symbolize/jit.h"
#include "../util/err.h"

#include <sys/types.h>

struct vp_sym_jit;

/*
 * What the process has told up to now; its mappings are walked once, for where its jitdump is. 0 or
 * negative errno with e filled. Free with vp_sym_jit_close (NULL is fine).
 */
int vp_sym_jit_open(struct vp_sym_jit **out, pid_t tgid, struct vp_err *e);
void vp_sym_jit_close(struct vp_sym_jit *j);

/* What it has told since. 0 or -ENOMEM. */
int vp_sym_jit_read(struct vp_sym_jit *j);

/* 0 or -ENOENT. */
int vp_sym_jit_find(struct vp_sym_jit *j, uint64_t addr, struct vp_jit_symbol *out);

#endif
