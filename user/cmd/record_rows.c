/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "record_rows.h"

#include "../util/command_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define BUDGET_NS (300ULL * 1000000)
#define MAP_BYTES 4096

/* MAP_FAILED: it cannot be mapped so, and is learned of when the command does. */
static void *map_executable(const char *path)
{
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
	void *at;

	if (fd < 0)
		return MAP_FAILED;
	at = mmap(NULL, MAP_BYTES, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	close(fd);
	return at;
}

/*
 * What a command will map, we map first, for the walk to tell: only the kernel knows a file's
 * identity as its mappings have it. Returns the mappings, in the order of files; NULL: none.
 */
static void **map_command(const char *command, struct vp_strings *files)
{
	void **at;

	vp_command_files(command, files);
	at = calloc(files->cnt + 1, sizeof(*at));
	for (size_t i = 0; at && i < files->cnt; i++)
		at[i] = map_executable(files->str[i]);
	return at;
}

static void unmap_command(void **at, size_t cnt)
{
	for (size_t i = 0; at && i < cnt; i++) {
		if (at[i] != MAP_FAILED)
			munmap(at[i], MAP_BYTES);
	}
	free(at);
}

int vp_record_first_rows(struct vp_recording *r, struct vp_session *s, const char *command,
			 struct vp_row_start *out, struct vp_err *e)
{
	struct vp_strings files = {0};
	const pid_t self = getpid();
	void **at = NULL;
	int err = 0;

	if (command) {
		at = map_command(command, &files);
		err = vp_session_walk(s, &self, 1, e);
	}
	if (!err) {
		err = vp_row_start(r, BUDGET_NS, out);
		if (err)
			vp_err_set(e, err, "unwind rows: %s", strerror(-err));
	}
	unmap_command(at, files.cnt);
	vp_strings_free(&files);
	return err;
}
