/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Probes of features.c for what all else stands on; each is an option of the kernel's
 * configuration. 1: there; 0: this kernel has it not; negative errno: refused. Nobody needs f.
 */
#ifndef VP_BASICS_H
#define VP_BASICS_H

#define VP_DETAIL_LEN 192 /* of the buffer `detail` */

struct vp_features;

int vp_probe_proc(struct vp_features *f, char *detail);
int vp_probe_sysfs(struct vp_features *f, char *detail);
int vp_probe_system_calls(struct vp_features *f, char *detail);
int vp_probe_bpf_syscall(struct vp_features *f, char *detail);
int vp_probe_perf_events(struct vp_features *f, char *detail);
int vp_probe_net(struct vp_features *f, char *detail);
int vp_probe_bpf_events(struct vp_features *f, char *detail);
int vp_probe_bpf_jit(struct vp_features *f, char *detail);

#endif
