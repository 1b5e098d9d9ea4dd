// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "target.h"

#include "case.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define ZOMBIES_THREADS 3

/* What a thread writes into the pipe once it is what it is to be. */
struct report {
	int has_own_files;
	pid_t tid;
};

static int ready[2];

static void stand_still(int has_own_files)
{
	struct report r = {has_own_files, (pid_t)syscall(SYS_gettid)};

	if (write(ready[1], &r, sizeof(r)) != sizeof(r))
		_exit(1);
	for (;;)
		pause();
}

static void *plain_thread(void *unused)
{
	stand_still(0);
	return unused;
}

static void *thread_with_own_files(void *unused)
{
	if (unshare(CLONE_FILES))
		_exit(1);
	stand_still(1);
	return unused;
}

static void start_thread(void *(*fn)(void *))
{
	pthread_t t;

	if (pthread_create(&t, NULL, fn, NULL))
		_exit(1);
}

static void be_the_target(enum target_kind kind)
{
	if (kind == TARGET_ZOMBIE_LEADER) {
		for (int i = 0; i < ZOMBIES_THREADS; i++)
			start_thread(plain_thread);
		syscall(SYS_exit, 0); /* this thread alone */
	}
	if (kind == TARGET_THREADS) {
		start_thread(plain_thread);
		start_thread(thread_with_own_files);
	}
	stand_still(0);
}

static char state_of(pid_t pid)
{
	char path[64], line[512] = "", *name_end;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	f = fopen(path, "re");
	if (!f)
		return '\0';
	if (!fgets(line, sizeof(line), f))
		line[0] = '\0';
	fclose(f);
	name_end = strrchr(line, ')');
	return name_end && name_end[1] ? name_end[2] : '\0';
}

static void wait_for_zombie(pid_t pid)
{
	for (int i = 0; i < 2000 && state_of(pid) != 'Z'; i++)
		poll(NULL, 0, 5);
	ct_require(state_of(pid) == 'Z', "the leader does not exit");
}

struct target target_start(enum target_kind kind)
{
	size_t reports = kind == TARGET_PLAIN ? 1 : 3;
	struct target t = {0};
	struct report r;

	ct_require(!pipe(ready), "pipe: %s", strerror(errno));
	t.pid = ct_fork();
	if (t.pid == 0)
		be_the_target(kind);
	ct_require(t.pid > 0, "fork: %s", strerror(errno));
	close(ready[1]);
	for (size_t i = 0; i < reports; i++) {
		ct_require(read(ready[0], &r, sizeof(r)) == sizeof(r),
			   "the process to be looked at has ended");
		if (r.has_own_files)
			t.own_files = r.tid;
		else if (r.tid != t.pid)
			t.plain = r.tid;
	}
	close(ready[0]);
	if (kind == TARGET_ZOMBIE_LEADER)
		wait_for_zombie(t.pid);
	return t;
}

void target_end(const struct target *t)
{
	kill(t->pid, SIGKILL);
	waitpid(t->pid, NULL, 0);
}

size_t target_ranges(pid_t pid, uint64_t (*range)[2], size_t max)
{
	char path[64], line[1024];
	size_t cnt = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	f = fopen(path, "re");
	ct_require(f != NULL, "%s: %s", path, strerror(errno));
	while (fgets(line, sizeof(line), f)) {
		if (strstr(line, "[vsyscall]"))
			continue;
		ct_require(cnt < max, "%s: more than %zu lines", path, max);
		if (sscanf(line, "%lx-%lx", &range[cnt][0], &range[cnt][1]) == 2)
			cnt++;
	}
	fclose(f);
	return cnt;
}
