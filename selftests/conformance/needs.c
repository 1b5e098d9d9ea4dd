// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "needs.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <linux/capability.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

static int lacks(const char *what)
{
	fprintf(stderr, "vmaprof-selftest: %s\n", what);
	return -1;
}

/* Which has all that BPF asks for; cases mount and unshare, too. */
static bool has_sys_admin(void)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {0};

	return !syscall(SYS_capget, &head, data) &&
	       data[CAP_TO_INDEX(CAP_SYS_ADMIN)].effective & CAP_TO_MASK(CAP_SYS_ADMIN);
}

static bool is_sys_mounted(void)
{
	struct statfs fs;

	return !statfs("/sys", &fs) && fs.f_type == SYSFS_MAGIC;
}

/* Of a program that reads the kernel's memory, as those of the cases do: 0 or -errno. */
static int load_one(void)
{
	const struct bpf_insn program[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = 1, .src_reg = 10},
		{.code = BPF_ALU64 | BPF_ADD | BPF_K, .dst_reg = 1, .imm = -8},
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 2, .imm = 8},
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 3, .imm = 0},
		{.code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_probe_read_kernel},
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0, .imm = 0},
		{.code = BPF_JMP | BPF_EXIT},
	};
	int fd = bpf_prog_load(BPF_PROG_TYPE_PERF_EVENT, "needs", "GPL", program,
			       sizeof(program) / sizeof(*program), NULL);

	if (fd < 0)
		return fd;
	close(fd);
	return 0;
}

/* security/lockdown takes the helper away: the verifier then says -EINVAL. */
static bool is_locked_down(void)
{
	FILE *f = fopen("/sys/kernel/security/lockdown", "re");
	char line[128] = "";

	if (f) {
		(void)!fgets(line, sizeof(line), f);
		fclose(f);
	}
	return strstr(line, "[confidentiality]") != NULL;
}

static int check_bpf(void)
{
	char text[160];
	int err = load_one();

	if (!err)
		return 0;
	if (is_locked_down())
		return lacks("the kernel is locked down (lockdown=confidentiality): programs may "
			     "not read its memory");
	if (err == -EPERM || err == -EACCES)
		return lacks("this root may not load BPF programs: that of a user namespace or "
			     "container, or lockdown");
	if (err == -ENOSYS)
		return lacks("this kernel has no BPF (CONFIG_BPF_SYSCALL)");
	snprintf(text, sizeof(text), "not even a trivial BPF program loads: %s", strerror(-err));
	return lacks(text);
}

int needs_check(void)
{
	if (geteuid() != 0)
		return lacks("needs root (sudo)");
	if (!has_sys_admin())
		return lacks("this root lacks a capability: CAP_SYS_ADMIN");
	if (!is_sys_mounted())
		return lacks("/sys is not mounted (mount -t sysfs sysfs /sys)");
	if (access("/sys/kernel/btf/vmlinux", R_OK))
		return lacks("this kernel has no BTF (CONFIG_DEBUG_INFO_BTF)");
	return check_bpf();
}
