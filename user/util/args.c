/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "args.h"

#include "terminal.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int vp_parse_u64(const char *s, int base, uint64_t *out)
{
	char *end;

	if (!isxdigit((unsigned char)s[0]))
		return -EINVAL;
	errno = 0;
	*out = strtoull(s, &end, base);
	return errno || end == s || *end ? -EINVAL : 0;
}

int vp_parse_size(const char *s, uint64_t *bytes)
{
	static const char units[] = "KMG";
	const size_t len = strlen(s);
	const char *unit = len ? strchr(units, toupper((unsigned char)s[len - 1])) : NULL;
	const int shift = unit ? 10 * (int)(unit - units + 1) : 20;
	char number[24];
	uint64_t n;

	if (len >= sizeof(number))
		return -EINVAL;
	memcpy(number, s, len);
	number[len - (unit != NULL)] = '\0';
	if (vp_parse_u64(number, 10, &n) || n > UINT64_MAX >> shift)
		return -EINVAL;
	*bytes = n << shift;
	return 0;
}

int vp_parse_pid(const char *s, pid_t *out)
{
	uint64_t pid;

	if (vp_parse_u64(s, 10, &pid) || pid == 0 || pid > INT32_MAX)
		return -EINVAL;
	*out = (pid_t)pid;
	return 0;
}

static int pids_add(struct vp_pids *p, pid_t pid)
{
	pid_t *bigger;

	for (size_t i = 0; i < p->cnt; i++) {
		if (p->pid[i] == pid)
			return 0;
	}
	bigger = realloc(p->pid, (p->cnt + 1) * sizeof(*bigger));

	if (!bigger)
		return -ENOMEM;
	p->pid = bigger;
	p->pid[p->cnt++] = pid;
	return 0;
}

int vp_pids_parse(struct vp_pids *p, const char *arg, struct vp_err *e)
{
	char *copy = strdup(arg), *rest = copy, *item;
	int err = copy ? 0 : -ENOMEM;

	while (!err && (item = strsep(&rest, ","))) {
		pid_t pid;

		if (vp_parse_pid(item, &pid))
			err = vp_err_set(e, -EINVAL, "'%s' is no PID", item);
		else
			err = pids_add(p, pid);
	}
	free(copy);
	return err;
}

void vp_pids_free(struct vp_pids *p)
{
	free(p->pid);
	*p = (struct vp_pids){0};
}

int vp_fail(const char *cmd, const struct vp_err *e)
{
	fprintf(stderr, "vmaprof: %s: ", cmd);
	vp_print_safe(stderr, e->text[0] ? e->text : "failed (out of memory?)");
	fputc('\n', stderr);
	return VP_EXIT_FAILURE;
}

int vp_usage_error(const char *cmd, const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	fprintf(stderr, "vmaprof: %s: ", cmd);
	vp_print_safe(stderr, text);
	fprintf(stderr, " (see vmaprof %s --help)\n", cmd);
	return VP_EXIT_USAGE;
}
