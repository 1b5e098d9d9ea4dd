// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* bpf_d_path in iter/task_vma: what a mapped file is called, and who may ask. */
#include "case.h"
#include "facts.h"
#include "judge.h"

#include "prog/dpath.h"

#include "dpath.skel.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE 4096UL

/* ---- files ------------------------------------------------------------------------------------ */

/* A /tmp of this case's own, which goes with it. */
static void have_own_tmp(void)
{
	mkdir("/tmp", 0777);
	if (unshare(CLONE_NEWNS) || mount("", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("tmpfs", "/tmp", "tmpfs", 0, NULL))
		ct_skip("a mount of one's own is not allowed here: %s", strerror(errno));
}

static void have_directory(const char *path)
{
	ct_require(mkdir(path, 0755) == 0, "mkdir %s: %s", path, strerror(errno));
}

static void *map_fd(int fd, int flags)
{
	void *p = mmap(NULL, PAGE, PROT_READ, flags, fd, 0);

	ct_require(p != MAP_FAILED, "mmap: %s", strerror(errno));
	return p;
}

/* A new file of a page, mapped. */
static void *map_new_file(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	void *p;

	ct_require(fd >= 0 && ftruncate(fd, PAGE) == 0, "%s: %s", path, strerror(errno));
	p = map_fd(fd, MAP_PRIVATE);
	close(fd);
	return p;
}

/* ---- asking ----------------------------------------------------------------------------------- */

struct asker {
	struct dpath_bpf *s;
	struct bpf_link *link;
};

/* The process whose mappings are asked for is this one, whoever reads. */
static void asker_begin(struct asker *a)
{
	union bpf_iter_link_info info = {.task.pid = (uint32_t)getpid()};
	DECLARE_LIBBPF_OPTS(bpf_iter_attach_opts, opts, .link_info = &info,
			    .link_info_len = sizeof(info));

	a->s = dpath_bpf__open_and_load();
	ct_require(a->s != NULL, "the programs do not load: %s", strerror(errno));
	a->s->bss->wanted_tgid = (uint32_t)getpid();
	libbpf_set_print(NULL);
	a->link = bpf_program__attach_iter(a->s->progs.path_of_vma, &opts);
	if (!a->link) /* before 6.1 there is no filter */
		a->link = bpf_program__attach_iter(a->s->progs.path_of_vma, NULL);
	ct_require(a->link != NULL, "iter/task_vma: %s", strerror(errno));
}

/* One walk, read in this process. 0 or an errno. */
static int walk(struct asker *a)
{
	int fd = bpf_iter_create(bpf_link__fd(a->link));
	char buf[256];
	ssize_t n;

	if (fd < 0)
		return errno;
	do {
		n = read(fd, buf, sizeof(buf));
	} while (n > 0 || (n < 0 && errno == EAGAIN));
	close(fd);
	return n < 0 ? errno : 0;
}

static void prepare(struct asker *a, const void *addr, uint32_t room)
{
	a->s->bss->wanted_addr = (uint64_t)addr;
	a->s->bss->room = room;
	a->s->bss->called = 0;
	memset(a->s->bss->path, 'x', DPATH_ROOM);
}

static long ask(struct asker *a, const void *addr, uint32_t room)
{
	int err;

	prepare(a, addr, room);
	err = walk(a);
	ct_require(!err, "reading the iterator: %s", strerror(err));
	ct_require(a->s->bss->called == 1, "called %u times for %p", a->s->bss->called, addr);
	return a->s->bss->length;
}

/* What was answered is this path, and its length with the NUL. */
static void expect_answer(const struct asker *a, const char *path)
{
	const char *got = a->s->bss->path;

	ct_expect(strnlen(got, DPATH_ROOM) < DPATH_ROOM && !strcmp(got, path),
		  "\"%.*s\" instead of \"%s\"", 80, got, path);
	ct_expect(a->s->bss->length == (long)strlen(path) + 1, "%lld for \"%s\"",
		  (long long)a->s->bss->length, path);
}

static void expect_path(const void *addr, const char *path)
{
	struct asker a;

	asker_begin(&a);
	ask(&a, addr, DPATH_ROOM);
	expect_answer(&a, path);
}

/* The last column of a mapping's line in /proc/self/maps. */
static void name_in_maps(const void *addr, char *name, size_t size)
{
	FILE *f = fopen("/proc/self/maps", "re");
	char line[PATH_MAX + 256];
	unsigned long start;
	int at = 0;

	name[0] = '\0';
	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%lx-%*x %*s %*s %*s %*s %n", &start, &at) == 1 &&
		    start == (unsigned long)addr)
			snprintf(name, size, "%.*s", (int)strcspn(line + at, "\n"), line + at);
	}
	if (f)
		fclose(f);
	ct_require(name[0], "/proc/self/maps has no name for %p", addr);
}

/* ---- cases ------------------------------------------------------------------------------------ */

static void a_plain_file(void)
{
	have_own_tmp();
	expect_path(map_new_file("/tmp/plain"), "/tmp/plain");
}

static void a_deleted_file(void)
{
	void *p;

	have_own_tmp();
	p = map_new_file("/tmp/gone");
	ct_require(unlink("/tmp/gone") == 0, "unlink: %s", strerror(errno));
	expect_path(p, "/tmp/gone (deleted)");
}

static void a_renamed_file(void)
{
	void *p;

	have_own_tmp();
	have_directory("/tmp/dir");
	p = map_new_file("/tmp/old");
	ct_require(rename("/tmp/old", "/tmp/dir/new") == 0, "rename: %s", strerror(errno));
	expect_path(p, "/tmp/dir/new");
}

static void a_memfd(void)
{
	int fd = memfd_create("of_the_case", MFD_CLOEXEC);

	ct_require(fd >= 0 && ftruncate(fd, PAGE) == 0, "memfd_create: %s", strerror(errno));
	expect_path(map_fd(fd, MAP_SHARED), "/memfd:of_the_case (deleted)");
}

static void shared_anonymous_memory(void)
{
	expect_path(map_fd(-1, MAP_SHARED | MAP_ANONYMOUS), "/dev/zero (deleted)");
}

static void too_long_for_the_buffer(void)
{
	const uint32_t whole = sizeof("/tmp/plain");
	struct asker a;
	void *p;

	have_own_tmp();
	p = map_new_file("/tmp/plain");
	asker_begin(&a);
	ask(&a, p, whole);
	expect_answer(&a, "/tmp/plain");
	for (uint32_t room = 1; room < whole; room++) {
		long n = ask(&a, p, room);

		ct_expect(n == -ENAMETOOLONG, "%u bytes: %ld", room, n);
		ct_expect(a.s->bss->path[room] == 'x', "%u bytes: written behind them", room);
	}
}

static void no_buffer(void)
{
	struct asker a;
	void *p;
	long n;

	have_own_tmp();
	p = map_new_file("/tmp/plain");
	asker_begin(&a);
	n = ask(&a, p, 0);
	ct_expect(n == 0, "%ld", n);
	ct_expect(a.s->bss->path[0] == 'x', "written to");
}

static void of_a_lazily_unmounted_file_system(void)
{
	void *p;

	have_own_tmp();
	have_directory("/tmp/mount");
	ct_require(mount("tmpfs", "/tmp/mount", "tmpfs", 0, NULL) == 0, "mount: %s",
		   strerror(errno));
	have_directory("/tmp/mount/dir");
	p = map_new_file("/tmp/mount/dir/file");
	expect_path(p, "/tmp/mount/dir/file");
	ct_require(umount2("/tmp/mount", MNT_DETACH) == 0, "umount: %s", strerror(errno));
	/* the way ends where its mount was */
	expect_path(p, "/dir/file");
}

#define NO_CHROOT 254

/* Reads in a process whose root is that directory. */
static void ask_from_root(struct asker *a, const char *root, const void *addr)
{
	int status = -1;
	pid_t pid;

	prepare(a, addr, DPATH_ROOM);
	pid = ct_fork();
	if (pid == 0)
		_exit(chroot(root) ? NO_CHROOT : walk(a));
	ct_require(pid > 0 && waitpid(pid, &status, 0) == pid, "waitpid: %s", strerror(errno));
	if (WIFEXITED(status) && WEXITSTATUS(status) == NO_CHROOT)
		ct_skip("chroot is refused (CAP_SYS_CHROOT)");
	ct_require(status == 0, "the reader in %s ended with %#x", root, status);
	ct_require(a->s->bss->called == 1, "called %u times", a->s->bss->called);
}

static void a_reader_with_another_root(void)
{
	void *inside, *outside;
	struct asker a;

	have_own_tmp();
	have_directory("/tmp/jail");
	inside = map_new_file("/tmp/jail/inside");
	outside = map_new_file("/tmp/outside");
	asker_begin(&a);
	ask(&a, inside, DPATH_ROOM);
	expect_answer(&a, "/tmp/jail/inside");
	ask_from_root(&a, "/tmp/jail", inside);
	expect_answer(&a, "/inside");
	/* out of its reach: nothing is cut */
	ask_from_root(&a, "/tmp/jail", outside);
	expect_answer(&a, "/tmp/outside");
}

/* /tmp/m, with a file of the lower layer in it. */
static void have_overlay(void)
{
	have_own_tmp();
	have_directory("/tmp/lower");
	have_directory("/tmp/upper");
	have_directory("/tmp/work");
	have_directory("/tmp/m");
	munmap(map_new_file("/tmp/lower/file"), PAGE);
	if (mount("overlay", "/tmp/m", "overlay", 0,
		  "lowerdir=/tmp/lower,upperdir=/tmp/upper,workdir=/tmp/work"))
		ct_skip("no overlayfs: %s", strerror(errno));
}

/*
 * Since def3ae83da02 (6.8) f_path of the mapped file is the layer's, and what user space shall see
 * lies beside it; before, f_path was the overlay's.
 */
static void a_file_of_an_overlay(void)
{
	bool is_layers = fact_member("backing_file", "user_path");
	char name[PATH_MAX];
	int fd;
	void *p;

	have_overlay();
	fd = open("/tmp/m/file", O_RDONLY | O_CLOEXEC);
	ct_require(fd >= 0, "open: %s", strerror(errno));
	p = map_fd(fd, MAP_PRIVATE);
	name_in_maps(p, name, sizeof(name));
	ct_expect(!strcmp(name, "/tmp/m/file"), "/proc/self/maps has \"%s\"", name);
	expect_path(p, is_layers ? "/file" : "/tmp/m/file");
}

static void a_newline_in_a_name(void)
{
	char name[PATH_MAX];
	void *p;

	have_own_tmp();
	p = map_new_file("/tmp/two\nlines");
	expect_path(p, "/tmp/two\nlines");
	name_in_maps(p, name, sizeof(name));
	ct_expect(!strcmp(name, "/tmp/two\\012lines"), "/proc/self/maps has \"%s\"", name);
}

/* ---- who may ask ------------------------------------------------------------------------------ */

/* How kernels say that a program's type does not have a helper. */
static const char *const unknown[] = {"unknown func bpf_d_path", "cannot use helper bpf_d_path",
				      NULL};
static const char *const not_allowed[] = {"helper call is not allowed in probe",
					  "cannot use helper bpf_d_path", NULL};

static void in_programs_that_may_not(void)
{
	expect_refused(dpath_bpf__elf_bytes, "in_perf_event", unknown);
	expect_refused(dpath_bpf__elf_bytes, "in_raw_tp", unknown);
	expect_refused(dpath_bpf__elf_bytes, "in_kprobe", unknown);
	expect_refused(dpath_bpf__elf_bytes, "in_tp_btf", not_allowed);
}

static void in_the_iterator(void)
{
	expect_loads(dpath_bpf__elf_bytes, "path_of_vma");
}

/* Some systems let nobody load such programs; the verifier has said nothing then. */
static void in_functions(void)
{
	const char *log;
	int err = judge(dpath_bpf__elf_bytes, "in_listed_function", &log);

	if (err == -EPERM && !*log)
		ct_skip("fentry programs are refused on this system: %s", strerror(EPERM));
	if (!fact_function("filp_close"))
		ct_skip("no filp_close in this kernel");
	expect_loads(dpath_bpf__elf_bytes, "in_listed_function");
	expect_refused(dpath_bpf__elf_bytes, "in_other_function", not_allowed);
}

static const struct ct_case cases[] = {
	CT_CASE("d_path/", a_plain_file, "its path; the length includes the NUL", .numbers = "50"),
	CT_CASE("d_path/", a_deleted_file, "\" (deleted)\" behind its last path", .numbers = "51"),
	CT_CASE("d_path/", a_renamed_file, "its new path", .numbers = "51"),
	CT_CASE("d_path/", a_memfd, "\"/memfd:NAME (deleted)\"", .numbers = "52"),
	CT_CASE("d_path/", shared_anonymous_memory, "\"/dev/zero (deleted)\"", .numbers = "53"),
	CT_CASE("d_path/", too_long_for_the_buffer,
		"-ENAMETOOLONG up to the length without the NUL, and nothing behind the buffer",
		.numbers = "54"),
	CT_CASE("d_path/", no_buffer, "0, and nothing written", .numbers = "55"),
	CT_CASE("d_path/", of_a_lazily_unmounted_file_system, "the path inside that file system",
		.numbers = "56"),
	CT_CASE("d_path/", a_reader_with_another_root,
		"the path from the reader's root, or the whole if that is not above it",
		.numbers = "57"),
	CT_CASE("d_path/", a_file_of_an_overlay,
		"the layer's path since 6.8, where /proc/PID/maps has the overlay's",
		.numbers = "58"),
	CT_CASE("d_path/", a_newline_in_a_name, "as it is, where /proc/PID/maps has \\012",
		.numbers = "59"),
	CT_CASE("d_path/", in_programs_that_may_not,
		"refused in perf_event, raw_tp, kprobe, and tp_btf of another hook",
		.numbers = "60"),
	CT_CASE("d_path/", in_the_iterator, "loads", .numbers = "60"),
	CT_CASE("d_path/", in_functions, "loads in filp_close, which is listed, not in vfs_read",
		.numbers = "60"),
};

CT_GROUP(dpath_cases, cases);
