/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "outfile.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* Leaves room in NAME_MAX for the dot and the suffix of the temporary name. */
#define TMP_NAME_MAX 200
#define TMP_TRIES    100
#define MAX_LINKS    40

struct vp_outfile {
	FILE *f;
	char *shown;  /* as the user named it: for messages */
	char *target; /* with symbolic links followed; NULL: written directly, nothing to rename */
	char *tmp;    /* what is written until commit; NULL with target */
	bool is_stdout;
};

struct hint {
	int err;
	const char *why; /* NULL: strerror */
	const char *fix;
};

static const struct hint hints[] = {
	{ENOENT, "its directory does not exist", "create it first, or choose another with -o"},
	{ENOTDIR, "a part of the path is not a directory", "choose another file with -o"},
	{EISDIR, "is a directory", "name a file in it with -o"},
	{EACCES, "permission denied", "choose a place you may write to with -o"},
	{EPERM, "permission denied", "choose a place you may write to with -o"},
	{EROFS, NULL, "choose a writable file system with -o"},
	{ENOSPC, NULL, "free some space, or choose another disk with -o"},
	{EDQUOT, NULL, "free some space, or choose another disk with -o"},
	{EFBIG, NULL, "raise the limit with ulimit -f, or record for less time"},
	{ENAMETOOLONG, NULL, "choose a shorter name with -o"},
	{ELOOP, NULL, "choose another file with -o"},
	{EPIPE, "the reader has gone away", "write to a file with -o"},
	{ENXIO, "nothing reads from it", "choose a file with -o"},
};

static int explain(const char *path, int err, struct vp_err *e)
{
	for (size_t i = 0; i < sizeof(hints) / sizeof(hints[0]); i++) {
		const struct hint *h = &hints[i];

		if (h->err == err)
			return vp_err_set(e, -err, "%s: %s (%s)", path,
					  h->why ? h->why : strerror(err), h->fix);
	}
	return vp_err_set(e, -err, "%s: %s (choose another file with -o)", path, strerror(err));
}

static void outfile_free(struct vp_outfile *o)
{
	free(o->shown);
	free(o->target);
	free(o->tmp);
	free(o);
}

/* "dir/name" -> "dir/" + link if link is relative; takes nothing over. NULL: no memory. */
static char *beside(const char *path, const char *link)
{
	const char *slash = strrchr(path, '/');
	char *out;

	if (link[0] == '/' || !slash)
		return strdup(link);
	if (asprintf(&out, "%.*s%s", (int)(slash - path + 1), path, link) < 0)
		return NULL;
	return out;
}

/*
 * Follows symbolic links by hand: unlike realpath() this also says where a link to nothing
 * points, which is the file that open(2) would create. *out is owned by the caller.
 */
static int follow_links(const char *path, char **out)
{
	char *at = strdup(path);

	for (int i = 0; at && i < MAX_LINKS; i++) {
		char link[PATH_MAX];
		ssize_t n = readlink(at, link, sizeof(link) - 1);

		if (n < 0) {
			*out = at;
			return 0;
		}
		link[n] = '\0';

		char *next = beside(at, link);
		free(at);
		at = next;
	}
	if (!at)
		return -ENOMEM;
	free(at);
	return -ELOOP;
}

/* A new name ".NAME.XXXXXXXX" in the directory of target. NULL: no memory. */
static char *tmp_name(const char *target)
{
	const char *slash = strrchr(target, '/');
	const char *name = slash ? slash + 1 : target;
	uint32_t salt = 0;
	char *out;

	if (getrandom(&salt, sizeof(salt), 0) != sizeof(salt))
		salt = (uint32_t)getpid();
	if (asprintf(&out, "%.*s.%.*s.%08x", (int)(name - target), target, TMP_NAME_MAX, name,
		     salt) < 0)
		return NULL;
	return out;
}

/* Not mkstemp(): its mode is 0600, and the umask cannot be read without changing it. */
static int create_tmp(struct vp_outfile *o)
{
	for (int i = 0; i < TMP_TRIES; i++) {
		char *tmp = tmp_name(o->target);
		if (!tmp)
			return -ENOMEM;

		int fd = open(tmp, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
		if (fd >= 0) {
			o->tmp = tmp;
			return fd;
		}
		free(tmp);
		if (errno != EEXIST)
			return -errno;
	}
	return -EEXIST;
}

/* Whether target's directory exists: /proc has one, and still says ENOENT to a new file. */
static bool in_directory(const char *target)
{
	const char *slash = strrchr(target, '/');
	char *dir = strndup(slash ? target : "./", slash ? (size_t)(slash - target) + 1 : 2);
	bool exists = dir && access(dir, F_OK) == 0;

	free(dir);
	return exists;
}

static int open_beside(struct vp_outfile *o, const struct stat *old)
{
	const char *end = strrchr(o->target, '/');
	if (end && end[1] == '\0')
		return -ENOENT;
	/* Renaming over a read-only file would work; its owner did not mean that. */
	if (old && faccessat(AT_FDCWD, o->target, W_OK, AT_EACCESS) != 0)
		return -errno;

	int fd = create_tmp(o);
	if (!o->tmp)
		return fd == -ENOENT && in_directory(o->target) ? -EACCES : fd;
	/* A profile that was private stays private. If this fails the umask's mode is fine. */
	if (old)
		(void)!fchmod(fd, old->st_mode & 0777);

	o->f = fdopen(fd, "w+");
	if (o->f)
		return 0;

	int err = -errno;
	close(fd);
	unlink(o->tmp);
	return err;
}

static int open_direct(struct vp_outfile *o, const char *path)
{
	int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
	if (fd < 0)
		return -errno;

	o->f = fdopen(fd, "w");
	if (o->f)
		return 0;

	int err = -errno;
	close(fd);
	return err;
}

/* /dev/stdout and its like name an open file, whose name must not be taken from it. */
static bool names_a_descriptor(const char *path)
{
	return strncmp(path, "/dev/std", 8) == 0 || strncmp(path, "/dev/fd/", 8) == 0 ||
	       strncmp(path, "/proc/", 6) == 0;
}

static int open_path(struct vp_outfile *o, const char *path)
{
	struct stat st;
	bool exists = stat(path, &st) == 0;

	if (path[0] == '\0')
		return -ENOENT;
	if (!exists && errno != ENOENT)
		return -errno;
	if (exists && S_ISDIR(st.st_mode))
		return -EISDIR;
	if (exists && (!S_ISREG(st.st_mode) || names_a_descriptor(path)))
		return open_direct(o, path);

	int err = follow_links(path, &o->target);
	if (err)
		return err;
	return open_beside(o, exists ? &st : NULL);
}

int vp_outfile_open(struct vp_outfile **out, const char *path, struct vp_err *e)
{
	struct vp_outfile *o = calloc(1, sizeof(*o));
	int err = 0;

	if (!o)
		return explain(path, ENOMEM, e);

	o->is_stdout = strcmp(path, "-") == 0;
	o->shown = strdup(o->is_stdout ? "standard output" : path);
	if (!o->shown)
		err = -ENOMEM;
	else if (o->is_stdout)
		o->f = stdout;
	else
		err = open_path(o, path);

	if (err) {
		outfile_free(o);
		return explain(path, -err, e);
	}
	*out = o;
	return 0;
}

FILE *vp_outfile_stream(struct vp_outfile *o)
{
	return o->f;
}

const char *vp_outfile_temporary(const struct vp_outfile *o)
{
	return o->tmp;
}

/* stdio keeps only the fact of an earlier write error, not its errno. */
static int guess_write_error(FILE *f)
{
	struct statvfs vfs;

	if (fstatvfs(fileno(f), &vfs) == 0 && vfs.f_blocks && vfs.f_bavail == 0)
		return -ENOSPC;
	return -EIO;
}

/* Flushes and, unless it is standard output, closes. size is 0 where there is none. */
static int finish_stream(struct vp_outfile *o, uint64_t *size_bytes)
{
	struct stat st;
	int err = 0;

	if (fflush(o->f) != 0)
		err = -errno;
	else if (ferror(o->f))
		err = guess_write_error(o->f);
	if (size_bytes)
		*size_bytes = fstat(fileno(o->f), &st) == 0 ? (uint64_t)st.st_size : 0;

	if (!o->is_stdout && fclose(o->f) != 0 && !err)
		err = -errno;
	o->f = NULL;
	return err;
}

static int put_in_place(const struct vp_outfile *o, struct vp_err *e)
{
	char *old;
	int err = 0;

	if (asprintf(&old, "%s.old", o->target) < 0)
		return explain(o->shown, ENOMEM, e);

	bool kept = rename(o->target, old) == 0;
	if (!kept && errno != ENOENT) {
		err = explain(old, errno, e);
	} else if (rename(o->tmp, o->target) != 0) {
		err = explain(o->shown, errno, e);
		if (kept)
			rename(old, o->target);
	}
	free(old);
	return err;
}

int vp_outfile_commit(struct vp_outfile *o, uint64_t *size_bytes, struct vp_err *e)
{
	int err = finish_stream(o, size_bytes);

	if (err)
		explain(o->shown, -err, e);
	else if (o->tmp)
		err = put_in_place(o, e);
	if (err && o->tmp)
		unlink(o->tmp);
	outfile_free(o);
	return err;
}

void vp_outfile_abort(struct vp_outfile *o)
{
	if (!o)
		return;
	if (o->f && !o->is_stdout)
		fclose(o->f);
	if (o->tmp)
		unlink(o->tmp);
	outfile_free(o);
}
