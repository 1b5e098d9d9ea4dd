/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "procinfo.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PF_KTHREAD 0x00200000

static int read_file(const char *path, char *buf, size_t size)
{
	FILE *f = fopen(path, "re");
	size_t n;

	if (!f)
		return errno == ENOENT ? -ESRCH : -errno;
	n = fread(buf, 1, size - 1, f);
	fclose(f);
	buf[n] = '\0';
	return n > 0 ? 0 : -ESRCH;
}

/* Fields of /proc/PID/stat behind the command, counted from the state (proc(5)). */
#define FIELD_STATE   0
#define FIELD_FLAGS   6
#define FIELD_UTIME   11
#define FIELD_STIME   12
#define FIELD_THREADS 17
#define FIELD_CNT     18

/* "7 (a) b) Z 1 …": the command may hold anything, so the last ')' ends it. */
static int parse_stat(char *text, struct vp_procinfo *out)
{
	char *open = strchr(text, '('), *close = strrchr(text, ')'), *rest;
	char *field[FIELD_CNT];

	if (!open || !close || close < open || close[1] != ' ')
		return -EINVAL;
	*close = '\0';
	snprintf(out->comm, sizeof(out->comm), "%s", open + 1);
	rest = close + 2;
	for (int i = 0; i < FIELD_CNT; i++) {
		field[i] = strsep(&rest, " ");
		if (!field[i])
			return -EINVAL;
	}
	out->cpu_ticks =
		strtoull(field[FIELD_UTIME], NULL, 10) + strtoull(field[FIELD_STIME], NULL, 10);
	out->kernel_thread = strtoul(field[FIELD_FLAGS], NULL, 10) & PF_KTHREAD;
	out->zombie =
		strchr("ZX", field[FIELD_STATE][0]) && strtol(field[FIELD_THREADS], NULL, 10) <= 1;
	return 0;
}

static pid_t read_tgid(pid_t pid)
{
	char path[64], text[4096], *line;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	if (read_file(path, text, sizeof(text)))
		return pid;
	line = strstr(text, "\nTgid:");
	return line ? (pid_t)strtol(line + strlen("\nTgid:"), NULL, 10) : pid;
}

int vp_procinfo_read(pid_t pid, struct vp_procinfo *out)
{
	char path[64], text[1024];
	int err;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	err = read_file(path, text, sizeof(text));
	if (!err)
		err = parse_stat(text, out);
	if (!err)
		out->tgid = read_tgid(pid);
	return err;
}

int vp_procinfo_check(pid_t pid, struct vp_procinfo *out, struct vp_err *e)
{
	int err = vp_procinfo_read(pid, out);

	if (err == -ESRCH)
		return vp_err_set(e, err, "PID %d: no such process (ps -e lists them)", pid);
	if (err)
		return vp_err_set(e, err, "PID %d: %s", pid, strerror(-err));
	if (out->kernel_thread)
		return vp_err_set(e, -ESRCH,
				  "PID %d (%s): a kernel thread, which has no user mappings "
				  "(name a user process)",
				  pid, out->comm);
	if (out->zombie)
		return vp_err_set(e, -ESRCH,
				  "PID %d (%s): a zombie, its memory is gone (name a process that "
				  "still runs)",
				  pid, out->comm);
	return 0;
}
