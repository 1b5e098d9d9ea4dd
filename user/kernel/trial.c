/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "trial.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

static const struct bpf_insn return_zero[] = {
	{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = 0},
	{.code = BPF_JMP | BPF_EXIT},
};

#define RETURN_ZERO_CNT (sizeof(return_zero) / sizeof(return_zero[0]))

int vp_trial_load(enum bpf_prog_type type, enum bpf_attach_type attach, int btf_id)
{
	LIBBPF_OPTS(bpf_prog_load_opts, opts, .expected_attach_type = attach,
		    .attach_btf_id = (__u32)btf_id);
	int fd;

	fd = bpf_prog_load(type, "vp_probe", "Dual BSD/GPL", return_zero, RETURN_ZERO_CNT, &opts);
	return fd < 0 ? -errno : fd;
}

int vp_tried(int fd)
{
	if (fd < 0)
		return fd;
	close(fd);
	return 1;
}

int vp_trial_event(struct perf_event_attr *attr)
{
	int cpu = sched_getcpu();
	long fd;

	attr->size = PERF_ATTR_SIZE_VER5; /* what the oldest kernel knows is enough here */
	attr->disabled = 1;
	fd = syscall(SYS_perf_event_open, attr, -1, cpu < 0 ? 0 : cpu, -1, PERF_FLAG_FD_CLOEXEC);
	return fd < 0 ? -errno : (int)fd;
}
