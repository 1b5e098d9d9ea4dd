/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the host tells of a loaded kernel module: where its text is, and where its file is. */
#ifndef VP_KERNEL_MODULE_H
#define VP_KERNEL_MODULE_H

#include <limits.h>
#include <stddef.h>
#include <stdint.h>

/* /sys/module/NAME/sections/.text below the root. 0 or -ENOENT: there is none, or it is hidden. */
int kernel_module_text(int root_fd, const char *name, uint64_t *addr);

/*
 * By modules.dep: below a kernel's directory of modules and without what compressing appends, as
 * "kernel/fs/xfs/xfs.ko" of "xfs". Names differ in '-' and '_'. 0 or -ENOENT.
 */
int kernel_module_path(int root_fd, const char *release, const char *name, char path[PATH_MAX]);

#endif
