/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Kernels that can lock up when a BPF program reads user memory in an interrupt.
 *
 * Commit 0aef499f3172 ("mm/usercopy: Detect vmalloc overruns", 5.19) made every checked user
 * copy into vmalloc memory (a vmapped stack, a BPF map) take vmap_area_lock, and
 * bpf_probe_read_user() is such a copy: an interrupt that lands while its own CPU holds that
 * lock waits for ever, and soon every other CPU waits with it. It takes
 * CONFIG_HARDENED_USERCOPY. Commit d319f344561d ("mm: Fix copy_from_user_nofault().") leaves
 * the check out while page faults are disabled: 6.4, 6.3.10 and 6.1.36; 5.19, 6.0 and 6.2 had
 * reached their end by then. Nothing in BTF or /proc tells whether the fix is in, so this is
 * the one feature that is read from version numbers.
 */
#ifndef VP_DANGER_H
#define VP_DANGER_H

#include <stdbool.h>
#include <stddef.h>

struct vp_err;

struct vp_kernel_version {
	int major;
	int minor;
	int patch; /* stable patch level; 0 where the string has none */
};

/*
 * The upstream version that release (uname -r) and version (uname -v) stand for. Debian
 * numbers its release by ABI ("6.1.0-47-amd64") and has the stable version in uname -v
 * ("… Debian 6.1.170-1 (2026-01-01)"); that one wins if it is of the same series. version may
 * be NULL. -EINVAL if release does not begin with "N.N".
 */
int vp_kernel_version_parse(const char *release, const char *version,
			    struct vp_kernel_version *out);

/*
 * The last word of Ubuntu's /proc/version_signature ("Ubuntu 6.2.0-26.26-generic 6.2.13") is
 * the upstream version. -EINVAL if text is not such a line.
 */
int vp_kernel_version_ubuntu(const char *text, struct vp_kernel_version *out);

/* Is v without the fix? Says nothing about the kernel's configuration. */
bool vp_kernel_version_dangerous(const struct vp_kernel_version *v);

/*
 * 1 and a reason in why (of len bytes) if a kernel with these uname strings can lock up,
 * whatever its configuration; else 0, which includes strings that cannot be read: then nothing
 * is known, and refusing would help nobody.
 */
int vp_kernel_dangerous(const char *release, const char *version, char *why, size_t len);

/*
 * Looks NAME up in the gzipped or plain kernel configuration at path. 1: =y or =m, 0: not set,
 * negative errno: the file cannot be read. An option that is not mentioned is not set.
 */
int vp_kernel_config_get(const char *path, const char *name);

/*
 * The same question about the running kernel, with its configuration (/proc/config.gz,
 * /boot/config-RELEASE, /lib/modules/RELEASE/config) asked as well: 0, or -EPERM with e
 * filled, which --force-kernel overrides.
 */
int vp_kernel_check(struct vp_err *e);

#endif
