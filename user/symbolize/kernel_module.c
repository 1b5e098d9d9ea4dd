/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "kernel_module.h"

#include "mapped_file.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TEXT_BYTES 64

int kernel_module_text(int root_fd, const char *name, uint64_t *addr)
{
	char path[PATH_MAX], text[TEXT_BYTES] = "";
	ssize_t n = 0;
	int fd;

	snprintf(path, sizeof(path), "/sys/module/%s/sections/.text", name);
	fd = mapped_file_open_in(root_fd, path);
	if (fd >= 0) {
		n = read(fd, text, sizeof(text) - 1);
		close(fd);
	}
	*addr = n > 0 ? strtoull(text, NULL, 16) : 0;
	return *addr ? 0 : -ENOENT;
}

static bool is_same_name(const char *base, size_t len, const char *name)
{
	for (size_t i = 0; i < len; i++) {
		char a = base[i] == '-' ? '_' : base[i], b = name[i] == '-' ? '_' : name[i];

		if (a != b)
			return false;
	}
	return name[len] == '\0';
}

/* line: "kernel/fs/xfs/xfs.ko.xz: kernel/lib/libcrc32c.ko.xz". Cuts it behind ".ko". */
static bool is_line_of(char *line, const char *name)
{
	char *end = strchr(line, ':'), *base, *suffix;

	if (!end)
		return false;
	*end = '\0';
	base = strrchr(line, '/');
	base = base ? base + 1 : line;
	suffix = strstr(base, ".ko");
	if (!suffix || !is_same_name(base, (size_t)(suffix - base), name))
		return false;
	suffix[strlen(".ko")] = '\0';
	return true;
}

static int find_line(FILE *f, const char *name, char path[PATH_MAX])
{
	char *line = NULL;
	size_t cap = 0;
	int err = -ENOENT;

	while (err && getline(&line, &cap, f) > 0) {
		if (is_line_of(line, name) && strlen(line) < PATH_MAX) {
			stpcpy(path, line);
			err = 0;
		}
	}
	free(line);
	return err;
}

int kernel_module_path(int root_fd, const char *release, const char *name, char path[PATH_MAX])
{
	int fd, err;
	FILE *f;

	snprintf(path, PATH_MAX, "/lib/modules/%s/modules.dep", release);
	fd = mapped_file_open_in(root_fd, path);
	f = fd < 0 ? NULL : fdopen(fd, "r");
	if (!f) {
		if (fd >= 0)
			close(fd);
		return -ENOENT;
	}
	err = find_line(f, name, path);
	fclose(f);
	return err;
}
