/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Commands that wait before their first instruction. */
#include "proc_life.h"
#include "target.h"
#include "util/child.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char dir[] = "/tmp/vmaprof-child.XXXXXX";
static char path[64];
static struct vp_child c;
static sigset_t mask;

static void set_up(void)
{
	cr_assert(mkdtemp(dir) != NULL);
	snprintf(path, sizeof(path), "%s/file", dir);
	sigprocmask(SIG_SETMASK, NULL, &mask);
}

static void tear_down(void)
{
	unlink(path);
	rmdir(dir);
}

TestSuite(child, .init = set_up, .fini = tear_down);

static void prepare(char **argv)
{
	struct vp_err e = {""};

	cr_assert(zero(int, vp_child_prepare(&c, argv, &mask, &e)), "%s", e.text);
	cr_assert(gt(int, c.pid, 0));
}

static int exit_code(pid_t pid)
{
	int status = -1;

	cr_assert(eq(int, waitpid(pid, &status, 0), pid));
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static void expect_no_child(void)
{
	cr_expect(eq(int, waitpid(-1, NULL, WNOHANG), -1));
	cr_expect(eq(int, errno, ECHILD));
}

Test(child, runs_when_released_and_not_before)
{
	char script[128], *argv[] = {"sh", "-c", script, NULL};
	size_t fds = open_fds();
	struct vp_err e = {""};
	struct stat st;

	snprintf(script, sizeof(script), "echo > %s; exit 7", path);
	prepare(argv);
	cr_expect(lt(int, stat(path, &st), 0));
	cr_expect(zero(int, waitpid(c.pid, NULL, WNOHANG)));
	cr_assert(zero(int, vp_child_release(&c, argv, &e)), "%s", e.text);
	cr_expect(eq(int, exit_code(c.pid), 7));
	cr_expect(zero(int, stat(path, &st)));
	cr_expect(eq(sz, open_fds(), fds));
}

Test(child, a_command_that_is_not_there_is_said_so)
{
	char *argv[] = {"vp-no-such-command", NULL};
	size_t fds = open_fds();
	struct vp_err e = {""};

	prepare(argv);
	cr_expect(eq(int, vp_child_release(&c, argv, &e), -ENOENT));
	cr_expect(
		eq(str, e.text, "vp-no-such-command: command not found (check its name and PATH)"));
	cr_expect(zero(int, c.pid));
	expect_no_child();
	cr_expect(eq(sz, open_fds(), fds));
	vp_child_abandon(&c);
}

Test(child, what_cannot_be_executed_is_said_so)
{
	char *argv[] = {path, NULL};
	struct vp_err e = {""};
	int fd = open(path, O_RDWR | O_CREAT, 0644);

	cr_assert(ge(int, fd, 0));
	close(fd);
	prepare(argv);
	cr_expect(eq(int, vp_child_release(&c, argv, &e), -EACCES));
	cr_expect(strstr(e.text, "cannot be executed: Permission denied") != NULL, "%s", e.text);
	expect_no_child();

	argv[0] = dir;
	prepare(argv);
	cr_expect(eq(int, vp_child_release(&c, argv, &e), -EACCES));
	expect_no_child();
}

Test(child, an_abandoned_command_never_runs)
{
	char script[128], *argv[] = {"sh", "-c", script, NULL};
	size_t fds = open_fds();
	struct stat st;

	snprintf(script, sizeof(script), "echo > %s", path);
	prepare(argv);
	vp_child_abandon(&c);
	cr_expect(zero(int, c.pid));
	expect_no_child();
	cr_expect(lt(int, stat(path, &st), 0));
	cr_expect(eq(sz, open_fds(), fds));
	vp_child_abandon(&c);
}

Test(child, a_running_command_is_not_abandoned)
{
	char *argv[] = {"sleep", "100", NULL};
	struct vp_err e = {""};

	prepare(argv);
	cr_assert(zero(int, vp_child_release(&c, argv, &e)));
	vp_child_abandon(&c);
	cr_expect(zero(int, kill(c.pid, 0)));
	cr_expect(zero(int, waitpid(c.pid, NULL, WNOHANG)));
	kill(c.pid, SIGKILL);
	cr_expect(eq(int, exit_code(c.pid), -SIGKILL));
}

/* As after a kill from elsewhere: neither an error nor a signal to us. */
Test(child, one_that_was_killed_before_its_release_is_no_error)
{
	char *argv[] = {"true", NULL};
	size_t fds = open_fds();
	struct vp_err e = {""};
	siginfo_t info;

	prepare(argv);
	kill(c.pid, SIGKILL);
	/* dead, but not collected: its ends of the pipes are closed */
	cr_assert(zero(int, waitid(P_PID, (id_t)c.pid, &info, WEXITED | WNOWAIT)));
	cr_expect(zero(int, vp_child_release(&c, argv, &e)));
	cr_expect(eq(int, exit_code(c.pid), -SIGKILL));
	cr_expect(eq(sz, open_fds(), fds));
}

Test(child, the_command_gets_the_mask_that_was_given)
{
	char *argv[] = {"sh", "-c", "kill -TERM $$; exit 3", NULL};
	struct vp_err e = {""};
	sigset_t all, old;

	/* as the caller blocks what it waits for itself */
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &old);
	mask = old;
	prepare(argv);
	cr_assert(zero(int, vp_child_release(&c, argv, &e)));
	cr_expect(eq(int, exit_code(c.pid), -SIGTERM));
	sigprocmask(SIG_SETMASK, &old, NULL);
}

static bool file_has_pipe(const struct stat *st)
{
	char want[64], line[256];
	FILE *f = fopen(path, "re");
	bool found = false;

	cr_assert(f != NULL);
	snprintf(want, sizeof(want), "pipe:[%lu]", (unsigned long)st->st_ino);
	while (fgets(line, sizeof(line), f))
		found |= strstr(line, want) != NULL;
	fclose(f);
	return found;
}

Test(child, the_command_has_none_of_our_pipes)
{
	char script[128], *argv[] = {"sh", "-c", script, NULL};
	struct vp_err e = {""};
	struct stat go, report;

	snprintf(script, sizeof(script), "for f in /proc/$$/fd/*; do readlink $f; done > %s", path);
	prepare(argv);
	cr_assert(zero(int, fstat(c.go_fd, &go)));
	cr_assert(zero(int, fstat(c.err_fd, &report)));
	cr_assert(zero(int, vp_child_release(&c, argv, &e)));
	cr_expect(zero(int, exit_code(c.pid)));
	cr_expect(not(file_has_pipe(&go)));
	cr_expect(not(file_has_pipe(&report)));
}
