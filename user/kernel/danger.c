/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "danger.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <zlib.h>

#include "../util/err.h"

/* A decimal number below 100000 at *s, which moves behind it; -1 if there is none. */
static int take_number(const char **s)
{
	int n = 0;

	if (!isdigit((unsigned char)**s))
		return -1;
	while (isdigit((unsigned char)**s)) {
		n = n * 10 + (*(*s)++ - '0');
		if (n >= 100000)
			return -1;
	}
	return n;
}

/* "6.1.170-1", "6.3~rc4-1", "6.2": what follows the numbers does not matter. */
static int parse_numbers(const char *s, struct vp_kernel_version *out)
{
	struct vp_kernel_version v = {};

	v.major = take_number(&s);
	if (v.major < 0 || *s++ != '.')
		return -EINVAL;
	v.minor = take_number(&s);
	if (v.minor < 0)
		return -EINVAL;
	if (*s == '.' && isdigit((unsigned char)s[1])) {
		s++;
		v.patch = take_number(&s);
		if (v.patch < 0)
			return -EINVAL;
	}
	*out = v;
	return 0;
}

int vp_kernel_version_parse(const char *release, const char *version, struct vp_kernel_version *out)
{
	const char *debian = version ? strstr(version, "Debian ") : NULL;
	struct vp_kernel_version true_version;

	if (!release || parse_numbers(release, out))
		return -EINVAL;
	if (!debian || parse_numbers(debian + strlen("Debian "), &true_version))
		return 0;
	if (true_version.major == out->major && true_version.minor == out->minor)
		*out = true_version;
	return 0;
}

int vp_kernel_version_ubuntu(const char *text, struct vp_kernel_version *out)
{
	const char *last;

	if (!text || strncmp(text, "Ubuntu ", strlen("Ubuntu ")) != 0)
		return -EINVAL;
	last = strrchr(text, ' ');
	/* "Ubuntu 6.2.0-26.26" alone holds the ABI number, not a stable version. */
	if (last == text + strlen("Ubuntu"))
		return -EINVAL;
	return parse_numbers(last + 1, out);
}

bool vp_kernel_version_dangerous(const struct vp_kernel_version *v)
{
	if (v->major == 5)
		return v->minor == 19;
	if (v->major != 6)
		return false;
	switch (v->minor) {
	case 0:
	case 2:
		return true;
	case 1:
		return v->patch < 36;
	case 3:
		return v->patch < 10;
	default:
		return false;
	}
}

static int explain(const struct vp_kernel_version *v, char *why, size_t len)
{
	if (!vp_kernel_version_dangerous(v))
		return 0;
	snprintf(why, len,
		 "Linux %d.%d.%d can lock up when BPF reads user memory in an interrupt "
		 "(fixed in 6.1.36, 6.3.10 and 6.4)",
		 v->major, v->minor, v->patch);
	return 1;
}

int vp_kernel_dangerous(const char *release, const char *version, char *why, size_t len)
{
	struct vp_kernel_version v;

	if (vp_kernel_version_parse(release, version, &v))
		return 0;
	return explain(&v, why, len);
}

/* Does this line say NAME=y or NAME=m? */
static bool line_sets(const char *line, const char *name)
{
	size_t len = strlen(name);

	return strncmp(line, name, len) == 0 && line[len] == '=' &&
	       (line[len + 1] == 'y' || line[len + 1] == 'm');
}

int vp_kernel_config_get(const char *path, const char *name)
{
	char line[1024];
	int found = 0;
	int err = Z_OK;
	gzFile f;

	errno = 0;
	f = gzopen(path, "rbe"); /* reads plain files as they are */
	if (!f)
		return errno ? -errno : -ENOMEM;
	while (!found && gzgets(f, line, sizeof(line)))
		found = line_sets(line, name);
	gzerror(f, &err);
	gzclose(f);
	/* a damaged file proves nothing about what it does not show */
	return !found && err != Z_OK ? -EIO : found;
}

/* 1 or 0 by the first configuration that can be read, else negative errno. */
static int running_config_get(const char *release, const char *name)
{
	char path[256];
	int err;

	err = vp_kernel_config_get("/proc/config.gz", name);
	if (err >= 0)
		return err;
	snprintf(path, sizeof(path), "/boot/config-%s", release);
	err = vp_kernel_config_get(path, name);
	if (err >= 0)
		return err;
	snprintf(path, sizeof(path), "/lib/modules/%s/config", release);
	return vp_kernel_config_get(path, name);
}

static int running_version(const struct utsname *u, struct vp_kernel_version *v)
{
	FILE *f = fopen("/proc/version_signature", "re");
	char line[256] = "";

	if (f) {
		if (!fgets(line, sizeof(line), f))
			line[0] = '\0';
		fclose(f);
	}
	if (!vp_kernel_version_ubuntu(line, v))
		return 0;
	return vp_kernel_version_parse(u->release, u->version, v);
}

int vp_kernel_check(struct vp_err *e)
{
	struct vp_kernel_version v;
	struct utsname u;
	char why[256];

	if (uname(&u) || running_version(&u, &v) || !explain(&v, why, sizeof(why)))
		return 0;
	if (running_config_get(u.release, "CONFIG_HARDENED_USERCOPY") == 0)
		return 0;
	return vp_err_set(e, -EPERM, "%s (update the kernel, or --force-kernel to go on)", why);
}
