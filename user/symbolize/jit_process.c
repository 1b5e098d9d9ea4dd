/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "jit_process.h"

#include "mapped_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S 1000000000ULL

/* Times of files are those of the last tick, and a process's start is told in hundredths. */
#define SLACK_NS 50000000ULL

#define ENVIRON_BYTES_MAX 131072
#define DUMP_DIRS_MAX	  1000

/* ---- what /proc says of the process ----------------------------------------------------------- */

/* The file's beginning, NUL-terminated; how much, or negative errno. */
static ssize_t read_proc(int proc_fd, const char *name, char *buf, size_t size)
{
	int fd = openat(proc_fd, name, O_RDONLY | O_CLOEXEC);
	size_t got = 0;
	ssize_t n;

	if (fd < 0)
		return -errno;
	while (got < size - 1 && (n = read(fd, buf + got, size - 1 - got)) > 0)
		got += (size_t)n;
	close(fd);
	buf[got] = '\0';
	return got ? (ssize_t)got : -ESRCH;
}

#define FIELD_START_TIME 22 /* proc(5); the first behind the command is 3 */

/* When it started, in ticks. */
static int start_ticks(int proc_fd, uint64_t *ticks)
{
	char text[1024], *at;

	if (read_proc(proc_fd, "stat", text, sizeof(text)) < 0)
		return -ESRCH;
	at = strrchr(text, ')');
	for (int field = 2; at && field < FIELD_START_TIME; field++)
		at = strchr(at + 1, ' ');
	if (!at)
		return -ESRCH;
	*ticks = strtoull(at + 1, NULL, 10);
	return 0;
}

static uint64_t tick_ns(void)
{
	return NS_PER_S / (uint64_t)sysconf(_SC_CLK_TCK);
}

static bool is_life(int proc_fd, const struct vp_proc_id *life)
{
	uint64_t want = life->start_ns / tick_ns(), is;

	return !start_ticks(proc_fd, &is) && is + 1 >= want && is <= want + 1;
}

/* The number that ends the line, or that is its nth. */
static bool status_number(const char *status, const char *key, int nth, uint64_t *value)
{
	const char *at = strstr(status, key);
	char *end;

	if (!at)
		return false;
	at += strlen(key);
	for (int i = 0; i != nth && *at && *at != '\n'; i++) {
		*value = strtoull(at, &end, 10);
		if (end == at)
			return false;
		at = end;
	}
	return true;
}

/* What root of its user namespace is here. */
static uid_t root_of(int proc_fd)
{
	unsigned long inside, outside;
	char text[4096], *line, *end;

	if (read_proc(proc_fd, "uid_map", text, sizeof(text)) < 0)
		return 0;
	for (line = text; *line; line = *end ? end + 1 : end) {
		inside = strtoul(line, &end, 10);
		outside = strtoul(end, NULL, 10);
		if (inside == 0 && end != line)
			return (uid_t)outside;
		end = strchrnul(line, '\n');
	}
	return 0;
}

static uint64_t now_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
}

static uint64_t real_start_ns(const struct vp_proc_id *life)
{
	return now_ns(CLOCK_REALTIME) - now_ns(CLOCK_BOOTTIME) + life->start_ns;
}

static bool is_same_inode(int fd_a, const char *name_a, const char *b)
{
	struct stat sa, sb;

	return !fstatat(fd_a, name_a, &sa, 0) && !stat(b, &sb) && sa.st_dev == sb.st_dev &&
	       sa.st_ino == sb.st_ino;
}

static int read_process(struct jit_process *p, const struct vp_proc_id *life, int proc_fd)
{
	uint64_t ns_tgid = 0, uid = 0;
	char status[8192];

	if (read_proc(proc_fd, "status", status, sizeof(status)) < 0 ||
	    !status_number(status, "\nNSpid:", -1, &ns_tgid) ||
	    !status_number(status, "\nUid:", 2, &uid))
		return -ESRCH;
	p->ns_tgid = (uint32_t)ns_tgid;
	p->uid = (uid_t)uid;
	p->ns_root = root_of(proc_fd);
	p->start_ns = real_start_ns(life);
	p->has_our_root = is_same_inode(proc_fd, "ns/mnt", "/proc/self/ns/mnt") &&
			  is_same_inode(proc_fd, "root", "/");
	p->known = true;
	return 0;
}

static int open_tgid(uint32_t tgid)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%" PRIu32, tgid);
	fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* -ESTALE: another one has its number now. */
static int open_proc(const struct vp_proc_id *life)
{
	int fd = open_tgid(life->tgid);

	if (fd < 0)
		return fd;
	if (!is_life(fd, life)) {
		close(fd);
		return -ESTALE;
	}
	return fd;
}

static int open_alive(struct jit_process *p, const struct vp_proc_id *life)
{
	int proc_fd = open_proc(life), root_fd;

	if (proc_fd < 0)
		return proc_fd;
	root_fd = openat(proc_fd, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root_fd < 0)
		root_fd = -errno;
	else if (read_process(p, life, proc_fd)) {
		close(root_fd);
		root_fd = -ESRCH;
	}
	close(proc_fd);
	return root_fd;
}

int jit_process_open(struct jit_process *p, const struct vp_proc_id *life)
{
	int fd = open_alive(p, life);

	if (fd >= 0)
		return fd;
	/* What is there under its number need not be its own. */
	if (fd == -ESTALE || (p->known && !p->has_our_root))
		return -ESRCH;
	/* Whose it was was not seen: then it may only be one's own, or root's. */
	if (!p->known) {
		p->ns_tgid = life->tgid;
		p->uid = geteuid();
		p->ns_root = 0;
		p->start_ns = real_start_ns(life);
	}
	fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int life_at(int proc_fd, uint32_t tgid, struct vp_proc_id *out)
{
	uint64_t ticks;

	if (start_ticks(proc_fd, &ticks))
		return -ESRCH;
	*out = (struct vp_proc_id){.tgid = tgid, .start_ns = ticks * tick_ns()};
	return 0;
}

int jit_process_life(uint32_t tgid, struct vp_proc_id *out)
{
	int fd = open_tgid(tgid), err;

	if (fd < 0)
		return -ESRCH;
	err = life_at(fd, tgid, out);
	close(fd);
	return err;
}

/* Each program's start puts the vdso, the stack and the loader elsewhere, and tells it where. */
static bool has_same_start(int a_fd, int b_fd)
{
	char a[4096], b[4096];
	ssize_t a_len = read_proc(a_fd, "auxv", a, sizeof(a)),
		b_len = read_proc(b_fd, "auxv", b, sizeof(b));

	return a_len > 0 && a_len == b_len && !memcmp(a, b, (size_t)a_len);
}

int jit_process_copied_from(const struct vp_proc_id *life, struct vp_proc_id *from)
{
	int fd = open_proc(life), parent_fd = -1, err = -ENOENT;
	uint64_t parent = 0;
	char status[8192];

	if (fd >= 0 && read_proc(fd, "status", status, sizeof(status)) > 0 &&
	    status_number(status, "\nPPid:", -1, &parent))
		parent_fd = open_tgid((uint32_t)parent);
	if (parent_fd >= 0 && has_same_start(fd, parent_fd))
		err = life_at(parent_fd, (uint32_t)parent, from);
	if (parent_fd >= 0)
		close(parent_fd);
	if (fd >= 0)
		close(fd);
	return err ? -ENOENT : 0;
}

/* ---- files ------------------------------------------------------------------------------------ */

static bool counts(const struct jit_process *p, const struct stat *st)
{
	uint64_t mtime_ns = (uint64_t)st->st_mtim.tv_sec * NS_PER_S + (uint64_t)st->st_mtim.tv_nsec;

	if (st->st_uid != p->uid && st->st_uid != 0 && st->st_uid != p->ns_root)
		return false;
	if (st->st_nlink > 1) /* anybody may have linked it there */
		return false;
	return mtime_ns + SLACK_NS >= p->start_ns;
}

/* Takes fd, of which *st is known. */
static int checked(const struct jit_process *p, int fd, const struct stat *st)
{
	if (fd < 0 || counts(p, st))
		return fd;
	close(fd);
	return -EPERM;
}

static int open_named(const struct jit_process *p, int dir_fd, const char *name, struct stat *st)
{
	int fd = mapped_file_open_below(dir_fd, name, st);

	return checked(p, fd, st);
}

int jit_process_open_map(const struct jit_process *p, int root_fd, struct stat *st)
{
	char name[64];

	snprintf(name, sizeof(name), "/tmp/perf-%" PRIu32 ".map", p->ns_tgid);
	return open_named(p, root_fd, name, st);
}

bool jit_is_dump_name(const char *name)
{
	const char *base = strrchr(name, '/');
	size_t digits;

	base = base ? base + 1 : name;
	if (strncmp(base, "jit-", 4))
		return false;
	digits = strspn(base + 4, "0123456789");
	return digits && !strcmp(base + 4 + digits, ".dump");
}

/* By its mapping; else by its name, under which the same inode must be, but it may have grown. */
static int open_mapped(const struct jit_process *p, int root_fd, const struct vp_mapped_file *m,
		       struct stat *st)
{
	int fd = mapped_file_open(m, NULL);

	if (fd >= 0) {
		if (!fstat(fd, st))
			return checked(p, fd, st);
		close(fd);
		return -EIO;
	}
	fd = open_named(p, root_fd, m->name, st);
	if (fd >= 0 && st->st_ino != m->user_ino) {
		close(fd);
		return -ESTALE;
	}
	return fd;
}

/* What follows the key ("NAME="), or NULL. */
static const char *find_variable(const char *env, size_t len, const char *key)
{
	const char *end = env + len;

	for (; env < end; env += strlen(env) + 1) {
		if (!strncmp(env, key, strlen(key)))
			return env + strlen(key);
	}
	return NULL;
}

/* The directory below which perf's agent has made one for the process; to be freed, or NULL. */
static char *agent_dir(const struct vp_proc_id *life)
{
	char *env = malloc(ENVIRON_BYTES_MAX), *dir = NULL;
	int proc_fd = open_proc(life);
	const char *home = NULL;
	ssize_t len = -1;

	if (env && proc_fd >= 0)
		len = read_proc(proc_fd, "environ", env, ENVIRON_BYTES_MAX);
	if (len > 0)
		home = find_variable(env, (size_t)len, "JITDUMPDIR=");
	if (len > 0 && !home)
		home = find_variable(env, (size_t)len, "HOME=");
	if (home && asprintf(&dir, "%s/.debug/jit", home) < 0)
		dir = NULL;
	if (proc_fd >= 0)
		close(proc_fd);
	free(env);
	return dir;
}

static DIR *open_dir(int root_fd, const char *name)
{
	struct open_how how = {
		.flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK,
		.resolve = RESOLVE_IN_ROOT,
	};
	int fd = (int)syscall(SYS_openat2, root_fd, name, &how, sizeof(how));
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (fd >= 0 && !dir)
		close(fd);
	return dir;
}

static bool is_younger(const struct stat *a, const struct stat *b)
{
	if (a->st_mtim.tv_sec != b->st_mtim.tv_sec)
		return a->st_mtim.tv_sec > b->st_mtim.tv_sec;
	return a->st_mtim.tv_nsec > b->st_mtim.tv_nsec;
}

/* The youngest DIR/x/jit-NUMBER.dump. */
static int search_dir(const struct jit_process *p, DIR *dir, struct stat *st)
{
	const struct dirent *entry;
	char name[512];
	int best = -ENOENT;

	for (int i = 0; i < DUMP_DIRS_MAX && (entry = readdir(dir)); i++) {
		struct stat other;
		int fd;

		if (entry->d_name[0] == '.')
			continue;
		snprintf(name, sizeof(name), "%s/jit-%" PRIu32 ".dump", entry->d_name, p->ns_tgid);
		fd = open_named(p, dirfd(dir), name, &other);
		if (fd < 0)
			continue;
		if (best >= 0 && !is_younger(&other, st)) {
			close(fd);
			continue;
		}
		if (best >= 0)
			close(best);
		best = fd;
		*st = other;
	}
	return best;
}

static int search_agents(const struct jit_process *p, const struct vp_proc_id *life, int root_fd,
			 struct stat *st)
{
	char *name = agent_dir(life);
	DIR *dir = name ? open_dir(root_fd, name) : NULL;
	int fd = dir ? search_dir(p, dir, st) : -ENOENT;

	if (dir)
		closedir(dir);
	free(name);
	return fd;
}

int jit_process_open_dump(const struct jit_process *p, const struct vp_proc_id *life, int root_fd,
			  const struct vp_mapped_file *mapped, struct stat *st)
{
	char name[64];
	int fd;

	if (mapped)
		return open_mapped(p, root_fd, mapped, st);
	snprintf(name, sizeof(name), "/tmp/jit-%" PRIu32 ".dump", p->ns_tgid);
	fd = open_named(p, root_fd, name, st);
	return fd >= 0 ? fd : search_agents(p, life, root_fd, st);
}
