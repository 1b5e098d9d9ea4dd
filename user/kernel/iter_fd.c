/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "iter_fd.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <unistd.h>

int vp_iter_open(struct bpf_program *prog, pid_t tgid)
{
	union bpf_iter_link_info info = {.task.pid = (__u32)tgid};
	DECLARE_LIBBPF_OPTS(bpf_iter_attach_opts, opts, .link_info = &info,
			    .link_info_len = sizeof(info));
	struct bpf_link *link = bpf_program__attach_iter(prog, tgid ? &opts : NULL);
	int fd;

	if (!link) {
		/* A kernel that does not know the member finds bytes that should be zero. */
		return tgid && (errno == E2BIG || errno == EINVAL) ? -ENOTSUP : -errno;
	}
	fd = bpf_iter_create(bpf_link__fd(link));
	if (fd < 0)
		fd = -errno;
	/* The descriptor keeps what it needs of the link. */
	bpf_link__destroy(link);
	return fd;
}
