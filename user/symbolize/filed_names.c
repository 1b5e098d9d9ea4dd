/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "filed_names.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Most names are shorter. */
#define FIRST_BYTES    256
/* Of many strings those that are this close are read at once, if there are so many. */
#define WINDOW_BYTES   (64U << 10)
#define WINDOW_MIN_CNT 8

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

/* Up to cap bytes of the strings, as many as there are; how many that is, or negative errno. */
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
	if ((size_t)got < cap || !is_as_it_was(n))
		return -ESTALE;
	return got;
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

static size_t count_near(const uint32_t *offsets, size_t cnt)
{
	size_t near = 1;

	while (near < cnt && offsets[near] - offsets[0] < WINDOW_BYTES)
		near++;
	return near;
}

/* out[i] stays NULL where the window does not have the whole string. */
static void copy_near(const struct filed_names *n, const uint32_t *offsets, size_t cnt, size_t max,
		      char *window, char **out)
{
	ssize_t size = read_bytes(n, offsets[0], window, WINDOW_BYTES);

	for (size_t i = 0; i < cnt && size > 0; i++) {
		const char *name = window + (offsets[i] - offsets[0]);
		const char *end = window + size;

		if (name < end && memchr(name, '\0', (size_t)(end - name)))
			out[i] = strndup(name, max);
	}
}

void filed_names_copy_many(const struct filed_names *n, const uint32_t *offsets, size_t cnt,
			   size_t max, char **out)
{
	char *window = malloc(WINDOW_BYTES);

	memset(out, 0, cnt * sizeof(*out));
	for (size_t i = 0, near; i < cnt; i += near) {
		near = offsets[i] < n->size ? count_near(offsets + i, cnt - i) : 1;
		if (window && near >= WINDOW_MIN_CNT)
			copy_near(n, offsets + i, near, max, window, out + i);
		for (size_t j = i; j < i + near; j++) {
			if (!out[j])
				filed_names_copy(n, offsets[j], max, &out[j]);
		}
	}
	free(window);
}
