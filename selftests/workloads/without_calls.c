// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * without_calls NAME[,NAME…] COMMAND ARGS…: runs a command for which the kernel lacks these system
 * calls: ENOSYS, as from a kernel that was built without their option.
 */
#include "workload.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/syscall.h>

static const struct {
	const char *name;
	int number;
} calls[] = {
	{"bpf", SYS_bpf},	    {"perf_event_open", SYS_perf_event_open},
	{"futex", SYS_futex},	    {"epoll_create1", SYS_epoll_create1},
	{"eventfd2", SYS_eventfd2}, {"signalfd4", SYS_signalfd4},
	{"capget", SYS_capget},
};

#define CALL_CNT (sizeof(calls) / sizeof(calls[0]))

static int number_of(const char *name)
{
	for (size_t i = 0; i < CALL_CNT; i++)
		if (!strcmp(calls[i].name, name))
			return calls[i].number;
	fprintf(stderr, "without_calls: %s: not a call known here\n", name);
	exit(99);
}

static void take_away(int number)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned int)number, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = {sizeof(code) / sizeof(code[0]), code};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog))
		wl_die("seccomp");
}

int main(int argc, char **argv)
{
	char *list, *name;

	if (argc < 3) {
		fprintf(stderr, "usage: without_calls NAME[,NAME…] COMMAND ARGS…\n");
		return 2;
	}
	list = argv[1];
	while ((name = strsep(&list, ",")))
		take_away(number_of(name));
	execvp(argv[2], argv + 2);
	wl_die("%s", argv[2]);
}
