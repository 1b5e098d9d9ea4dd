/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How a failure travels: functions return 0 or a negative errno and, where a person must be
 * told why, fill a struct vp_err that the caller passed. Only main prints it.
 */
#ifndef VP_ERR_H
#define VP_ERR_H

/* text: "WHAT: WHY (HOW TO FIX)", without newline; empty: nothing was said. */
struct vp_err {
	char text[1024];
};

/*
 * Fills e (which may be NULL) and returns err, so that a failure is one statement:
 * return vp_err_set(e, -ENOENT, "%s: no such file", path). Cut at the buffer's end.
 */
int vp_err_set(struct vp_err *e, int err, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* " (HOW TO FIX)" for a failure to load or run BPF programs; starts with a space. Static. */
const char *vp_err_hint(int err);

#endif
