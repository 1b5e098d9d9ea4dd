/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "child.h"

#include "process.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
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

int vp_child_prepare(struct vp_child *c, char **argv, const sigset_t *mask, struct vp_err *e)
{
	int go[2], report[2];

	/* No pipe: a child that was killed meanwhile must not end us by SIGPIPE. */
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, go))
		return vp_err_set(e, -errno, "%s: socketpair: %s", argv[0], strerror(errno));
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
	close(go[0]);
	close(report[1]);
	c->go_fd = go[1];
	c->err_fd = report[0];
	if (c->pid > 0)
		return 0;
	c->pid = 0;
	close(c->go_fd);
	close(c->err_fd);
	return vp_err_set(e, -errno, "%s: fork: %s", argv[0], strerror(errno));
}

int vp_child_release(struct vp_child *c, char **argv, struct vp_err *e)
{
	int err = 0;
	ssize_t n;

	/* EPIPE: it was killed meanwhile; its end is seen elsewhere. */
	(void)!send(c->go_fd, "g", 1, MSG_NOSIGNAL);
	close(c->go_fd);
	c->go_fd = -1;
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
	close(c->go_fd);
	close(c->err_fd);
	waitpid(c->pid, NULL, 0);
	c->pid = 0;
}
