/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "filed_names.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Most names are shorter. */
#define FIRST_BYTES 256

struct filed_names {
	int fd;
	uint32_t size;
	uint64_t offset;
	struct timespec mtime;
	off_t file_size;
};

struct filed_names *filed_names_new(int fd, uint64_t offset, uint32_t size)
{
	struct filed_names *n = malloc(sizeof(*n));
	struct stat st;

	if (!n || fd < 0 || fstat(fd, &st)) {
		free(n);
		return NULL;
	}
	*n = (struct filed_names){
		.fd = fcntl(fd, F_DUPFD_CLOEXEC, 0),
		.size = size,
		.offset = offset,
		.mtime = st.st_mtim,
		.file_size = st.st_size,
	};
	if (n->fd >= 0)
		return n;
	free(n);
	return NULL;
}

void filed_names_free(struct filed_names *n)
{
	if (!n)
		return;
	close(n->fd);
	free(n);
}

/* To be asked after reading: what was read before a change is what it was. */
static int is_as_it_was(const struct filed_names *n)
{
	struct stat st;

	return !fstat(n->fd, &st) && st.st_size == n->file_size &&
	       st.st_mtim.tv_sec == n->mtime.tv_sec && st.st_mtim.tv_nsec == n->mtime.tv_nsec;
}

/* Up to cap bytes of the string, without NUL if it goes on. Its length there, or negative errno. */
static ssize_t read_string(const struct filed_names *n, uint32_t offset, char *text, size_t cap)
{
	ssize_t got;

	if (cap > n->size - offset)
		cap = n->size - offset;
	do {
		got = pread(n->fd, text, cap, (off_t)(n->offset + offset));
	} while (got < 0 && errno == EINTR);
	if (got < 0)
		return -EIO;
	if ((size_t)got < cap || !is_as_it_was(n))
		return -ESTALE;
	return (ssize_t)strnlen(text, cap);
}

int filed_names_copy(const struct filed_names *n, uint32_t offset, size_t max, char **out)
{
	size_t cap = FIRST_BYTES < max ? FIRST_BYTES : max;
	char *text = NULL;
	ssize_t len;

	if (offset >= n->size)
		return -EIO;
	for (;;) {
		char *bigger = realloc(text, cap + 1);

		len = bigger ? read_string(n, offset, bigger, cap) : -ENOMEM;
		text = bigger ? bigger : text;
		if (len < (ssize_t)cap || cap == max)
			break;
		cap = max; /* one of the few long ones */
	}
	if (len < 0) {
		free(text);
		return (int)len;
	}
	text[len] = '\0';
	*out = text;
	return 0;
}
