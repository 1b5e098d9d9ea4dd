/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "filed_names.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Most names are shorter; for the others it is so many times more. */
#define FIRST_BYTES  512
#define MORE	     8
/* Of many strings those that are this close to the next are read with it: that takes less time. */
#define GAP_BYTES    4096
#define WINDOW_BYTES (64U << 10)

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

/* Up to cap bytes of the strings, as many as there are; how many that is, or -EIO, -ESTALE. */
static ssize_t read_bytes(const struct filed_names *n, uint32_t offset, char *text, size_t cap)
{
	ssize_t got;

	if (cap > n->size - offset)
		cap = n->size - offset;
	do {
		got = pread(n->fd, text, cap, (off_t)(n->offset + offset));
	} while (got < 0 && errno == EINTR);
	if (got < 0)
		return -EIO;
	return (size_t)got < cap ? -ESTALE : got;
}

/* The same, up to the string's NUL. */
static ssize_t read_string(const struct filed_names *n, uint32_t offset, char *text, size_t cap)
{
	ssize_t got = read_bytes(n, offset, text, cap);

	return got < 0 ? got : (ssize_t)strnlen(text, (size_t)got);
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
		cap = cap * MORE < max ? cap * MORE : max;
	}
	if (len >= 0 && !is_as_it_was(n))
		len = -ESTALE;
	if (len < 0) {
		free(text);
		return (int)len;
	}
	text[len] = '\0';
	*out = text;
	return 0;
}

static size_t count_near(const uint32_t *offsets, size_t cnt)
{
	size_t near = 1;

	while (near < cnt && offsets[near] - offsets[near - 1] < GAP_BYTES &&
	       offsets[near] - offsets[0] < WINDOW_BYTES - FIRST_BYTES)
		near++;
	return near;
}

/* out[i] stays NULL where the window does not have the whole string. */
static void copy_near(const struct filed_names *n, const uint32_t *offsets, size_t cnt, size_t max,
		      char *window, char **out)
{
	size_t cap = offsets[cnt - 1] - offsets[0] + FIRST_BYTES;
	ssize_t size = read_bytes(n, offsets[0], window, cap);

	for (size_t i = 0; i < cnt && size > 0; i++) {
		const char *name = window + (offsets[i] - offsets[0]);
		const char *end = window + size;

		if (name < end && memchr(name, '\0', (size_t)(end - name)))
			out[i] = strndup(name, max);
	}
}

static void drop_all(char **names, size_t cnt)
{
	for (size_t i = 0; i < cnt; i++) {
		free(names[i]);
		names[i] = NULL;
	}
}

void filed_names_copy_many(const struct filed_names *n, const uint32_t *offsets, size_t cnt,
			   size_t max, char **out)
{
	char *window = malloc(WINDOW_BYTES);

	memset(out, 0, cnt * sizeof(*out));
	for (size_t i = 0, near; window && i < cnt && offsets[i] < n->size; i += near) {
		near = count_near(offsets + i, cnt - i);
		copy_near(n, offsets + i, near, max, window, out + i);
	}
	free(window);
	if (!is_as_it_was(n))
		drop_all(out, cnt);
	for (size_t i = 0; i < cnt; i++) {
		if (!out[i])
			filed_names_copy(n, offsets[i], max, &out[i]);
	}
}
