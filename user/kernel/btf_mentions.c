/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "btf_mentions.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BTF_MAX_BYTES (256 << 20)

/* Whole, or NULL; *size is what was read. */
static char *read_btf(size_t *size)
{
	int fd = open("/sys/kernel/btf/vmlinux", O_RDONLY | O_CLOEXEC);
	struct stat st;
	char *data = NULL;
	ssize_t n = 1;

	*size = 0;
	if (fd >= 0 && !fstat(fd, &st) && st.st_size > 0 && st.st_size < BTF_MAX_BYTES)
		data = malloc((size_t)st.st_size);
	while (data && *size < (size_t)st.st_size && n > 0) {
		n = read(fd, data + *size, (size_t)st.st_size - *size);
		*size += n > 0 ? (size_t)n : 0;
	}
	if (fd >= 0)
		close(fd);
	return data;
}

bool vp_btf_mentions(const char *name)
{
	char text[128];
	size_t size, len;
	char *data = read_btf(&size);
	bool found;

	if (!data)
		return false;
	/* a string's first byte follows another string's NUL */
	text[0] = '\0';
	len = 1 + (size_t)snprintf(text + 1, sizeof(text) - 1, "%s", name);
	found = memmem(data, size, text, len) != NULL;
	free(data);
	return found;
}
