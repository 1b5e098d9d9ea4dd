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

/* text begins with the NUL of the string before. */
static enum vp_btf_mention find(const char *data, size_t size, const char *text, size_t len)
{
	enum vp_btf_mention found = VP_BTF_NOT;
	const char *end = data + size, *at;

	for (at = data; (at = memmem(at, (size_t)(end - at), text, len)); at++) {
		if (at + len < end && !at[len])
			return VP_BTF_WHOLE;
		found = VP_BTF_BEGINNING;
	}
	return found;
}

enum vp_btf_mention vp_btf_mentions(const char *name)
{
	char text[128];
	size_t size, len;
	char *data = read_btf(&size);
	enum vp_btf_mention found;

	if (!data)
		return VP_BTF_NOT;
	text[0] = '\0';
	len = 1 + (size_t)snprintf(text + 1, sizeof(text) - 1, "%s", name);
	found = find(data, size, text, len);
	free(data);
	return found;
}
