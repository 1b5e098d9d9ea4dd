/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "basics.h"

#include "trial.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#define JIT_PATH "/proc/sys/net/core/bpf_jit_enable"

/* A file that is there if the file system is mounted; its existence needs no privilege. */
static int probe_mounted(const char *file)
{
	if (!access(file, F_OK))
		return 1;
	return errno == ENOENT || errno == ENOTDIR ? 0 : -errno;
}

int vp_probe_proc(struct vp_features *f, char *detail)
{
	(void)f;
	(void)detail;
	return probe_mounted("/proc/self/status");
}

int vp_probe_sysfs(struct vp_features *f, char *detail)
{
	(void)f;
	(void)detail;
	return probe_mounted("/sys/devices/system/cpu/possible");
}

/* Is the system call there that gave fd? One that is refused is. */
static bool is_there(int fd)
{
	bool there = fd >= 0 || errno != ENOSYS;

	if (fd >= 0)
		close(fd);
	return there;
}

/*
 * Calls that an embedded kernel may be built without. Threads cannot wait for each other without
 * futex(): libc ends the process then.
 */
int vp_probe_system_calls(struct vp_features *f, char *detail)
{
	const char *missing = NULL;
	sigset_t none;
	int word = 0;

	(void)f;
	sigemptyset(&none);
	if (syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0) < 0 && errno == ENOSYS)
		missing = "FUTEX";
	else if (!is_there(epoll_create1(EPOLL_CLOEXEC)))
		missing = "EPOLL";
	else if (!is_there(eventfd(0, EFD_CLOEXEC)))
		missing = "EVENTFD";
	else if (!is_there(signalfd(-1, &none, SFD_CLOEXEC)))
		missing = "SIGNALFD";
	if (missing)
		snprintf(detail, VP_DETAIL_LEN, "it was built without CONFIG_%s", missing);
	return !missing;
}

/* Any other answer than ENOSYS, also a refusal, comes from a kernel that has the call. */
int vp_probe_bpf_syscall(struct vp_features *f, char *detail)
{
	(void)f;
	(void)detail;
	return syscall(SYS_bpf, -1, NULL, 0) == 0 || errno != ENOSYS;
}

int vp_probe_perf_events(struct vp_features *f, char *detail)
{
	(void)f;
	(void)detail;
	return syscall(SYS_perf_event_open, NULL, 0, -1, -1, 0) >= 0 || errno != ENOSYS;
}

/* 1, 0 if the kernel has no programs of the type, or why it refused. */
static int probe_type(enum bpf_prog_type type)
{
	int fd = vp_trial_load(type, 0, 0);

	return fd == -EINVAL ? 0 : vp_tried(fd);
}

int vp_probe_net(struct vp_features *f, char *detail)
{
	(void)f;
	(void)detail;
	return probe_type(BPF_PROG_TYPE_SOCKET_FILTER);
}

int vp_probe_bpf_events(struct vp_features *f, char *detail)
{
	(void)f;
	(void)detail;
	return probe_type(BPF_PROG_TYPE_PERF_EVENT);
}

/*
 * Asked of a loaded program: the sysctl is not visible in containers, whose network namespace
 * does not have it.
 */
int vp_probe_bpf_jit(struct vp_features *f, char *detail)
{
	int fd = vp_trial_load(BPF_PROG_TYPE_PERF_EVENT, 0, 0);
	struct bpf_prog_info info = {};
	__u32 len = sizeof(info);
	int err = 0;

	(void)f;
	if (fd < 0)
		return fd;
	if (bpf_obj_get_info_by_fd(fd, &info, &len))
		err = -errno;
	close(fd);
	if (!err && !info.jited_prog_len && !access(JIT_PATH, F_OK))
		snprintf(detail, VP_DETAIL_LEN, "net.core.bpf_jit_enable is 0");
	return err ? err : info.jited_prog_len > 0;
}
