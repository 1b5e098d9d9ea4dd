/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "target.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define HEAR_MS 20000

static int child_fd = -1;

uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

unsigned int test_patience(void)
{
	const char *text = getenv("VMAPROF_PATIENCE");
	long times = text ? strtol(text, NULL, 10) : 1;

	return times > 1 ? (unsigned int)times : 1;
}

bool wait_until(bool (*what)(void *arg), void *arg, unsigned int limit_ms)
{
	uint64_t end = now_ms() + (uint64_t)limit_ms * test_patience();

	while (!what(arg)) {
		if (now_ms() > end)
			return what(arg);
		poll(NULL, 0, 2);
	}
	return true;
}

static void die(const char *what)
{
	fprintf(stderr, "target: %s: %s\n", what, strerror(errno));
	abort();
}

void target_die_with(pid_t parent)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(0);
}

pid_t target_fork(void)
{
	pid_t parent = getpid(), pid = fork();

	if (pid == 0)
		target_die_with(parent);
	return pid;
}

void target_start(struct target *t, target_body body, void *arg)
{
	int fd[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fd))
		die("socketpair");
	fflush(NULL);
	t->pid = target_fork();
	if (t->pid < 0)
		die("fork");
	if (t->pid == 0) {
		close(fd[0]);
		child_fd = fd[1];
		body(arg);
		_exit(0);
	}
	close(fd[1]);
	t->fd = fd[0];
}

int target_wait(struct target *t)
{
	int status = -1;

	if (t->pid > 0)
		waitpid(t->pid, &status, 0);
	t->pid = 0;
	if (t->fd > 0)
		close(t->fd);
	t->fd = 0;
	return status;
}

void target_end(struct target *t)
{
	if (t->pid > 0)
		kill(t->pid, SIGKILL);
	target_wait(t);
}

void target_say(struct target *t, uint64_t n)
{
	if (send(t->fd, &n, sizeof(n), MSG_NOSIGNAL) != sizeof(n))
		die("say");
}

uint64_t target_hear(struct target *t)
{
	struct pollfd p = {.fd = t->fd, .events = POLLIN};
	uint64_t n;

	errno = ETIMEDOUT;
	if (poll(&p, 1, (int)(HEAR_MS * test_patience())) != 1)
		die("hear");
	errno = ECHILD;
	if (recv(t->fd, &n, sizeof(n), 0) != sizeof(n))
		die("hear");
	return n;
}

void target_tell(uint64_t n)
{
	if (send(child_fd, &n, sizeof(n), MSG_NOSIGNAL) != sizeof(n))
		_exit(98);
}

uint64_t target_await(void)
{
	uint64_t n;

	if (recv(child_fd, &n, sizeof(n), 0) != sizeof(n))
		_exit(97);
	return n;
}

/* The leader is a zombie as soon as its exit is through: state Z in its stat. */
static bool is_leader_gone(void)
{
	char text[512] = "";
	FILE *f = fopen("/proc/self/stat", "re");
	const char *name_end;

	if (!f)
		return false;
	if (!fgets(text, sizeof(text), f))
		text[0] = '\0';
	fclose(f);
	name_end = strrchr(text, ')');
	return name_end && !strncmp(name_end, ") Z ", 4);
}

void target_await_lone(void)
{
	while (!is_leader_gone())
		sched_yield();
}

void target_pause(void)
{
	for (;;)
		pause();
}

void target_check(bool ok)
{
	if (!ok) {
		fprintf(stderr, "target %d: setting up failed: %s\n", getpid(), strerror(errno));
		_exit(96);
	}
}

uint64_t target_map(void *at, int fd, size_t bytes, off_t offset, int prot, int flags)
{
	void *p = mmap(at, bytes, prot, flags, fd, offset);

	target_check(p != MAP_FAILED);
	return (uint64_t)p;
}

int zeros_file(const char *dir, const char *name, size_t bytes)
{
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);
	if (fd >= 0 && ftruncate(fd, (off_t)bytes)) {
		close(fd);
		return -1;
	}
	return fd;
}
