/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "child.h"

#include "process.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* In the child: EOF on go instead of a byte means that the parent gave up. */
static void wait_and_exec(int go, int report, char **argv, const sigset_t *mask)
{
	char byte;
	int err;

	if (read(go, &byte, 1) != 1)
		_exit(127);
	sigprocmask(SIG_SETMASK, mask, NULL);
	vp_process_restore();
	execvp(argv[0], argv);
	err = errno;
	if (write(report, &err, sizeof(err)) < 0)
		_exit(126);
	_exit(127);
}

static void close_go(struct vp_child *c)
{
	close(c->go_fd);
	close(c->go_read_fd);
	c->go_fd = -1;
}

int vp_child_prepare(struct vp_child *c, char **argv, const sigset_t *mask, struct vp_err *e)
{
	int go[2], report[2];

	if (pipe2(go, O_CLOEXEC))
		return vp_err_set(e, -errno, "%s: pipe: %s", argv[0], strerror(errno));
	if (pipe2(report, O_CLOEXEC)) {
		close(go[0]);
		close(go[1]);
		return vp_err_set(e, -errno, "%s: pipe: %s", argv[0], strerror(errno));
	}
	c->pid = fork();
	if (c->pid == 0) {
		close(go[1]);
		wait_and_exec(go[0], report[1], argv, mask);
	}
	close(report[1]);
	c->go_fd = go[1];
	c->go_read_fd = go[0];
	c->err_fd = report[0];
	if (c->pid > 0)
		return 0;
	c->pid = 0;
	close_go(c);
	close(c->err_fd);
	return vp_err_set(e, -errno, "%s: fork: %s", argv[0], strerror(errno));
}

int vp_child_release(struct vp_child *c, char **argv, struct vp_err *e)
{
	int err = 0;
	ssize_t n;

	/* If it was killed meanwhile nobody reads this; its end is seen elsewhere. */
	(void)!write(c->go_fd, "g", 1);
	close_go(c);
	do {
		n = read(c->err_fd, &err, sizeof(err));
	} while (n < 0 && errno == EINTR);
	close(c->err_fd);
	if (n != sizeof(err))
		return 0;
	waitpid(c->pid, NULL, 0);
	c->pid = 0;
	if (err == ENOENT)
		return vp_err_set(e, -err, "%s: command not found (check its name and PATH)",
				  argv[0]);
	return vp_err_set(e, -err, "%s: cannot be executed: %s (check the file and its rights)",
			  argv[0], strerror(err));
}

void vp_child_abandon(struct vp_child *c)
{
	if (c->pid <= 0 || c->go_fd < 0)
		return;
	close_go(c);
	close(c->err_fd);
	waitpid(c->pid, NULL, 0);
	c->pid = 0;
}
