/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The smallest programs and events there are, to see whether a kernel takes them. */
#ifndef VP_TRIAL_H
#define VP_TRIAL_H

#include <linux/bpf.h>
#include <linux/perf_event.h>

/* fd of a program that returns 0, or negative errno. btf_id 0: the type needs no target. */
int vp_trial_load(enum bpf_prog_type type, enum bpf_attach_type attach, int btf_id);

/* 1, or negative errno, of a trial that gave fd; closes it. */
int vp_tried(int fd);

/*
 * fd of a disabled event of all processes on the CPU we run on (CPU 0 may be offline), or
 * negative errno. Sets attr's size.
 */
int vp_trial_event(struct perf_event_attr *attr);

#endif
