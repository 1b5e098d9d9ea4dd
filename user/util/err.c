/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "err.h"

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
