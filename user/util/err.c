/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

int vp_err_set(struct vp_err *e, int err, const char *fmt, ...)
{
	if (!e)
		return err;

	va_list ap;
	va_start(ap, fmt);
	vsnprintf(e->text, sizeof(e->text), fmt, ap);
	va_end(ap);
	return err;
}

const char *vp_err_hint(int err)
{
	switch (err) {
	case -EMFILE:
		return " (raise the limit of open files: ulimit -n 256)";
	case -EFBIG:
		return " (raise the limit of file sizes: ulimit -f unlimited)";
	case -ENFILE:
		return " (raise sysctl fs.file-max)";
	case -ENOMEM:
		return " (the kernel is out of memory for BPF; see also ulimit -l)";
	case -EPERM:
		return " (run as root; vmaprof doctor tells what is missing)";
	default:
		return " (vmaprof doctor tells what this kernel lacks)";
	}
}
