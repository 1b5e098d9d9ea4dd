/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <zlib.h>

#include "kernel/danger.h"

#define DEBIAN(v) "#1 SMP PREEMPT_DYNAMIC Debian " v " (2026-01-01)"

struct row {
	const char *release;
	const char *version; /* uname -v */
	int major, minor, patch;
	int dangerous;
};

static const struct row rows[] = {
	/* vanilla and distributions whose release is the stable version */
	{"5.17.0", "#1 SMP", 5, 17, 0, 0},
	{"5.18.19-100.fc35.x86_64", "#1 SMP PREEMPT_DYNAMIC Sun Aug 21", 5, 18, 19, 0},
	{"5.19.0", "#1 SMP", 5, 19, 0, 1},
	{"5.19.17-2-pve", "#1 SMP PREEMPT_DYNAMIC PVE 5.19.17-2", 5, 19, 17, 1},
	{"6.0.0", "#1 SMP", 6, 0, 0, 1},
	{"6.0.19-arch1-1", "#1 SMP PREEMPT_DYNAMIC", 6, 0, 19, 1},
	{"6.1.0", "#1 SMP", 6, 1, 0, 1},
	{"6.1.25-37.47.amzn2023.x86_64", "#1 SMP PREEMPT_DYNAMIC Mon Apr 24", 6, 1, 25, 1},
	{"6.1.35", "#1 SMP", 6, 1, 35, 1},
	{"6.1.36", "#1 SMP", 6, 1, 36, 0},
	{"6.1.141+", "#1 SMP", 6, 1, 141, 0},
	{"6.2.0", "#1 SMP", 6, 2, 0, 1},
	{"6.2.16-3-pve", "#1 SMP PREEMPT_DYNAMIC PVE 6.2.16-3", 6, 2, 16, 1},
	{"6.3.9-200.fc38.x86_64", "#1 SMP PREEMPT_DYNAMIC", 6, 3, 9, 1},
	{"6.3.10-200.fc38.x86_64", "#1 SMP PREEMPT_DYNAMIC", 6, 3, 10, 0},
	{"6.3.0-rc4", "#1 SMP", 6, 3, 0, 1},
	{"6.4.0-rc1-00032-gdeadbeef", "#1 SMP", 6, 4, 0, 0},
	{"6.10.3", "#1 SMP", 6, 10, 3, 0},
	{"6.12.100+deb12-cloud-amd64", DEBIAN("6.12.100-1~bpo12+1"), 6, 12, 100, 0},
	{"6.18.44-fc-v657", "#1 SMP PREEMPT_DYNAMIC @0", 6, 18, 44, 0},
	{"5.15.167.4-microsoft-standard-WSL2", "#1 SMP", 5, 15, 167, 0},
	{"7.0.0", "#1 SMP", 7, 0, 0, 0},
	{"4.19", "", 4, 19, 0, 0},
	/* Debian: the release is an ABI number, the stable version is in uname -v */
	{"6.1.0-47-cloud-amd64", DEBIAN("6.1.170-1"), 6, 1, 170, 0},
	{"6.1.0-9-amd64", DEBIAN("6.1.27-1"), 6, 1, 27, 1},
	{"6.1.0-10-amd64", DEBIAN("6.1.37-1"), 6, 1, 37, 0},
	{"6.1.0-9-rt-amd64", "#1 SMP PREEMPT_RT Debian 6.1.27-1 (2023-05-08)", 6, 1, 27, 1},
	{"6.1.0-0.deb11.7-amd64", DEBIAN("6.1.20-2~bpo11+1"), 6, 1, 20, 1},
	{"6.3.0-1-amd64", DEBIAN("6.3.7-1"), 6, 3, 7, 1},
	{"6.3.0-2-amd64", DEBIAN("6.3.11-1"), 6, 3, 11, 0},
	{"6.3.0-0-amd64", DEBIAN("6.3~rc4-1~exp1"), 6, 3, 0, 1},
	/* words that are not about this kernel's version */
	{"6.1.40", "#1 SMP Debian kernel team", 6, 1, 40, 0},
	{"6.1.40", DEBIAN("6.2.1-1"), 6, 1, 40, 0},
	{"6.1.40", "#1 SMP built on Debian ", 6, 1, 40, 0},
	{"6.1.40", NULL, 6, 1, 40, 0},
};

Test(danger, reads_the_stable_version_out_of_uname)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct row *r = &rows[i];
		struct vp_kernel_version v = {-1, -1, -1};

		cr_expect(zero(int, vp_kernel_version_parse(r->release, r->version, &v)), "%s",
			  r->release);
		cr_expect(eq(int, v.major, r->major), "%s", r->release);
		cr_expect(eq(int, v.minor, r->minor), "%s", r->release);
		cr_expect(eq(int, v.patch, r->patch), "%s", r->release);
	}
}

Test(danger, names_the_kernels_that_lock_up)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct row *r = &rows[i];
		char why[256] = "";

		cr_expect(eq(int, vp_kernel_dangerous(r->release, r->version, why, sizeof(why)),
			     r->dangerous),
			  "%s", r->release);
		cr_expect(eq(int, why[0] != '\0', r->dangerous), "%s", r->release);
	}
}

Test(danger, says_which_version_and_where_it_is_fixed)
{
	char why[256] = "";

	vp_kernel_dangerous("6.1.0-9-amd64", DEBIAN("6.1.27-1"), why, sizeof(why));
	cr_assert(ne(ptr, strstr(why, "Linux 6.1.27 "), NULL), "%s", why);
	cr_assert(ne(ptr, strstr(why, "6.1.36"), NULL), "%s", why);
}

Test(danger, cuts_the_reason_at_the_buffers_end)
{
	char why[8] = "xxxxxxx";

	cr_assert(eq(int, vp_kernel_dangerous("6.2.0", "", why, sizeof(why)), 1));
	cr_assert(eq(str, why, "Linux 6"));
}

Test(danger, does_not_refuse_what_it_cannot_read)
{
	static const char *const bad[] = {
		"",
		"linux",
		"6",
		"6.",
		".1",
		"v6.2",
		" 6.2.0",
		"6,2",
		"-6.2",
		"999999999999.1.2",
		"6.x",
		"6.99999999999",
		"6.1.99999999999",
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct vp_kernel_version v;
		char why[64] = "";

		cr_expect(eq(int, vp_kernel_version_parse(bad[i], "", &v), -EINVAL), "%s", bad[i]);
		cr_expect(zero(int, vp_kernel_dangerous(bad[i], "", why, sizeof(why))), "%s",
			  bad[i]);
	}
	cr_expect(zero(int, vp_kernel_dangerous(NULL, NULL, (char[8]){}, 8)));
}

Test(danger, reads_the_upstream_version_that_ubuntu_signs)
{
	struct vp_kernel_version v;

	cr_assert(zero(
		int, vp_kernel_version_ubuntu("Ubuntu 6.2.0-26.26~22.04.1-generic 6.2.13\n", &v)));
	cr_assert(eq(int, v.minor, 2));
	cr_assert(eq(int, v.patch, 13));
	cr_assert(zero(int, vp_kernel_version_ubuntu("Ubuntu 6.1.0-1035.35-oem 6.1.62", &v)));
	cr_assert(eq(int, v.patch, 62));
	cr_assert(eq(int, vp_kernel_version_ubuntu("", &v), -EINVAL));
	cr_assert(eq(int, vp_kernel_version_ubuntu("Ubuntu ", &v), -EINVAL));
	cr_assert(eq(int, vp_kernel_version_ubuntu("Ubuntu 6.2.0-26.26", &v), -EINVAL));
	cr_assert(eq(int, vp_kernel_version_ubuntu("Ubuntu x generic", &v), -EINVAL));
	cr_assert(eq(int, vp_kernel_version_ubuntu("Debian 6.2.0 6.2.13", &v), -EINVAL));
	cr_assert(eq(int, vp_kernel_version_ubuntu(NULL, &v), -EINVAL));
}

/* ---- the configuration ---- */

static const char config_text[] = "#\n# Automatically generated file\n#\n"
				  "CONFIG_BPF=y\n"
				  "# CONFIG_HARDENED_USERCOPY is not set\n"
				  "CONFIG_HARDENED_USERCOPY_DEFAULT_ON=y\n"
				  "CONFIG_NULL_BLK=m\n"
				  "CONFIG_HZ=250\n";

static void make_path(char *path, size_t len)
{
	const char *dir = getenv("TMPDIR");
	int fd;

	snprintf(path, len, "%s/vp-config-XXXXXX", dir ? dir : "/tmp");
	fd = mkstemp(path);
	cr_assert(ge(int, fd, 0));
	close(fd);
}

static void expect_config(const char *path)
{
	cr_expect(eq(int, vp_kernel_config_get(path, "CONFIG_BPF"), 1));
	cr_expect(eq(int, vp_kernel_config_get(path, "CONFIG_NULL_BLK"), 1));
	cr_expect(zero(int, vp_kernel_config_get(path, "CONFIG_HARDENED_USERCOPY")));
	cr_expect(eq(int, vp_kernel_config_get(path, "CONFIG_HARDENED_USERCOPY_DEFAULT_ON"), 1));
	cr_expect(zero(int, vp_kernel_config_get(path, "CONFIG_BP")));
	cr_expect(zero(int, vp_kernel_config_get(path, "CONFIG_HZ")));
	cr_expect(zero(int, vp_kernel_config_get(path, "CONFIG_NOT_THERE")));
}

Test(danger, looks_options_up_in_a_plain_configuration)
{
	char path[4096];
	FILE *f;

	make_path(path, sizeof(path));
	f = fopen(path, "w");
	fputs(config_text, f);
	fclose(f);
	expect_config(path);
	unlink(path);
}

Test(danger, looks_options_up_in_a_gzipped_configuration)
{
	char path[4096];
	gzFile f;

	make_path(path, sizeof(path));
	f = gzopen(path, "wb");
	gzputs(f, config_text);
	gzclose(f);
	expect_config(path);
	unlink(path);
}

Test(danger, takes_nothing_from_a_configuration_that_is_damaged_or_missing)
{
	char path[4096];
	gzFile f;

	cr_expect(eq(int, vp_kernel_config_get("/nonexistent/config", "CONFIG_BPF"), -ENOENT));

	make_path(path, sizeof(path));
	f = gzopen(path, "wb");
	gzputs(f, config_text);
	gzclose(f);
	cr_assert(zero(int, truncate(path, 60)));
	cr_expect(lt(int, vp_kernel_config_get(path, "CONFIG_HARDENED_USERCOPY"), 0));
	unlink(path);
}
