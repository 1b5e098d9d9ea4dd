/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The few kernel types that our objects relocate against, cut out of the kernel's BTF once.
 * For each type name of each object libbpf searches all types, 100,000 and more: longer than
 * the verifier takes. Given this, it searches some hundred. bpf_core_type_id_kernel() would be
 * wrong with it; no object of ours uses that.
 */
#ifndef VP_CORE_BTF_H
#define VP_CORE_BTF_H

#include <bpf/libbpf.h>
#include <stddef.h>

struct vp_core_btf {
	int fd; /* memfd; -1: none, and path is empty */
	char path[32];
};

/* An empty file. Without memory or memfds there is none, and objects are opened as usual. */
void vp_core_btf_open(struct vp_core_btf *b);
void vp_core_btf_close(struct vp_core_btf *b);

/* For X__open_opts(): has the object relocated against it, if there is one. */
struct bpf_object_open_opts vp_core_btf_opts(const struct vp_core_btf *b);

/*
 * Fills it with what these objects need; between their opening and their loading. Where cutting
 * fails it becomes a copy of the whole. Negative errno: nothing can be loaded.
 */
int vp_core_btf_fill(struct vp_core_btf *b, struct bpf_object *const *objs, size_t cnt);

#endif
