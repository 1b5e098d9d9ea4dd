/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Instances of task iterators. */
#ifndef VP_ITER_FD_H
#define VP_ITER_FD_H

#include <bpf/libbpf.h>
#include <sys/types.h>

/*
 * A descriptor whose read() runs prog over the tasks of tgid; 0: over all tasks. The caller
 * closes it. Negative errno; -ENOTSUP: this kernel cannot filter (f0d74c4da1f0, 6.1).
 */
int vp_iter_open(struct bpf_program *prog, pid_t tgid);

#endif
