// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* PROCMAP_QUERY: one mapping at a time, by ioctl on /proc/PID/maps. */
#include "procmap_query.h"

#include "case.h"
#include "facts.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE	 4096UL
#define VSYSCALL 0xffffffffff600000UL

/* Far from where the kernel puts mappings by itself. */
#define LONELY 0x200000000000UL

/* ---- asking ----------------------------------------------------------------------------------- */

static bool is_there(void)
{
	return fact_member("procmap_query", "query_addr");
}

static int open_maps(pid_t pid)
{
	char path[64];
	int fd;

	if (!is_there())
		ct_skip("no PROCMAP_QUERY: it came with 6.11");
	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	ct_require(fd >= 0, "%s: %s", path, strerror(errno));
	return fd;
}

/* 0 or the errno. */
static int query(int fd, struct pm_query *q)
{
	if (!q->size)
		q->size = sizeof(*q);
	return ioctl(fd, PM_QUERY, q) ? errno : 0;
}

static void expect_query(int fd, struct pm_query q, int err, const char *what)
{
	int got = query(fd, &q);

	ct_expect(got == err, "%s: %s instead of %s", what, strerror(got), strerror(err));
}

/* ---- mappings --------------------------------------------------------------------------------- */

static void *map_at(uint64_t at, uint64_t pages, int prot)
{
	void *p = mmap((void *)at, pages * PAGE, prot,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	ct_require(p == (void *)at, "mmap: %s", strerror(errno));
	return p;
}

/* The second page of this program's file. */
static void *map_exe(uint64_t at)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	void *p = mmap((void *)at, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED_NOREPLACE,
		       fd, PAGE);

	ct_require(p == (void *)at, "mapping /proc/self/exe: %s", strerror(errno));
	close(fd);
	return p;
}

/* What the text has of a mapping. */
struct text_line {
	unsigned long start, end, offset, inode;
	unsigned int major, minor;
	char prot[5], name[4096];
};

static struct text_line line_of(uint64_t start)
{
	FILE *f = fopen("/proc/self/maps", "re");
	struct text_line l = {0};
	char line[8192];

	while (f && l.start != start && fgets(line, sizeof(line), f)) {
		l.name[0] = '\0';
		sscanf(line, "%lx-%lx %4s %lx %x:%x %lu %4095[^\n]", &l.start, &l.end, l.prot,
		       &l.offset, &l.major, &l.minor, &l.inode, l.name);
	}
	if (f)
		fclose(f);
	ct_require(l.start == start, "/proc/self/maps has no mapping at %#lx",
		   (unsigned long)start);
	return l;
}

/* ---- cases ------------------------------------------------------------------------------------ */

static void whether_it_is_there(void)
{
	int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	struct pm_query q = {.query_flags = PM_COVERING_OR_NEXT};
	int err = query(fd, &q), wanted = is_there() ? 0 : ENOTTY;

	ct_expect(err == wanted, "%s instead of %s", strerror(err), strerror(wanted));
}

static void a_file(void)
{
	int fd = open_maps(getpid());
	char name[4096] = "";
	uint64_t at = (uint64_t)map_exe(LONELY);
	struct text_line l = line_of(at);
	struct pm_query q = {
		.query_addr = at + PAGE - 1,
		.vma_name_addr = (uint64_t)name,
		.vma_name_size = sizeof(name),
	};
	int err = query(fd, &q);

	ct_require(err == 0, "%s", strerror(err));
	ct_expect(q.vma_start == at && q.vma_end == at + PAGE, "%#llx-%#llx instead of %#llx",
		  (unsigned long long)q.vma_start, (unsigned long long)q.vma_end,
		  (unsigned long long)at);
	ct_expect(q.vma_flags == (PM_READABLE | PM_EXECUTABLE), "flags %#llx, the text has %s",
		  (unsigned long long)q.vma_flags, l.prot);
	ct_expect(q.vma_offset == PAGE && q.vma_page_size == PAGE, "offset %#llx, page %#llx",
		  (unsigned long long)q.vma_offset, (unsigned long long)q.vma_page_size);
	ct_expect(q.inode == l.inode && q.dev_major == l.major && q.dev_minor == l.minor,
		  "%x:%x %llu, the text has %x:%x %lu", q.dev_major, q.dev_minor,
		  (unsigned long long)q.inode, l.major, l.minor, l.inode);
	ct_expect(l.name[0] && !strcmp(name, l.name) && q.vma_name_size == strlen(l.name) + 1,
		  "%u bytes: \"%s\", the text has \"%s\"", q.vma_name_size, name, l.name);
}

static void expect_name(int fd, const void *addr, const char *wanted)
{
	char name[4096] = "untouched";
	struct pm_query q = {
		.query_addr = (uint64_t)addr,
		.vma_name_addr = (uint64_t)name,
		.vma_name_size = sizeof(name),
	};
	int err = query(fd, &q);

	ct_expect(err == 0, "%s: %s", wanted, strerror(err));
	if (!*wanted)
		ct_expect(q.vma_name_size == 0, "%u bytes of name: \"%s\"", q.vma_name_size, name);
	else
		ct_expect(!strcmp(name, wanted) && q.vma_name_size == strlen(wanted) + 1,
			  "%u bytes: \"%s\" instead of \"%s\"", q.vma_name_size, name, wanted);
}

static void names_without_a_file(void)
{
	int fd = open_maps(getpid());
	char *heap = sbrk((intptr_t)PAGE);

	expect_name(fd, heap, "[heap]");
	expect_name(fd, &fd, "[stack]");
	expect_name(fd, map_at(LONELY, 1, PROT_READ), "");
}

static void nothing_there(void)
{
	int fd = open_maps(getpid());

	map_at(LONELY, 1, PROT_READ);
	expect_query(fd, (struct pm_query){.query_addr = LONELY + PAGE - 1}, 0, "the last byte");
	expect_query(fd, (struct pm_query){.query_addr = LONELY + PAGE}, ENOENT, "behind it");
	expect_query(fd, (struct pm_query){.query_addr = LONELY - 1}, ENOENT, "before it");
	expect_query(fd, (struct pm_query){.query_addr = 0}, ENOENT, "0");
	expect_query(fd, (struct pm_query){.query_addr = ~0UL}, ENOENT, "the last address");
	expect_query(fd, (struct pm_query){.query_addr = VSYSCALL}, ENOENT, "the vsyscall page");
	expect_query(fd,
		     (struct pm_query){.query_addr = VSYSCALL, .query_flags = PM_COVERING_OR_NEXT},
		     ENOENT, "or what follows it");
}

static void expect_found(int fd, uint64_t from, uint64_t flags, uint64_t at)
{
	struct pm_query q = {.query_addr = from, .query_flags = flags};
	int err = query(fd, &q);

	ct_expect(err == 0 && q.vma_start == at, "flags %#llx from %#llx: %s, %#llx, not %#llx",
		  (unsigned long long)flags, (unsigned long long)from, strerror(err),
		  (unsigned long long)q.vma_start, (unsigned long long)at);
}

static void the_next_that_fits(void)
{
	int fd = open_maps(getpid());
	const uint64_t r = LONELY, w = LONELY + 2 * PAGE, shared = LONELY + 4 * PAGE,
		       file = LONELY + 0x100000;

	map_exe(file);
	map_at(r, 1, PROT_READ);
	map_at(w, 1, PROT_READ | PROT_WRITE);
	ct_require(mmap((void *)shared, PAGE, PROT_READ,
			MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) != MAP_FAILED,
		   "mmap: %s", strerror(errno));
	expect_found(fd, r, PM_COVERING_OR_NEXT, r);
	expect_found(fd, r + PAGE, PM_COVERING_OR_NEXT, w);
	expect_found(fd, r, PM_COVERING_OR_NEXT | PM_WRITABLE, w);
	expect_found(fd, r, PM_COVERING_OR_NEXT | PM_READABLE | PM_SHARED, shared);
	expect_found(fd, r, PM_COVERING_OR_NEXT | PM_EXECUTABLE, file);
	expect_query(fd, (struct pm_query){.query_addr = r, .query_flags = PM_WRITABLE}, ENOENT,
		     "a mapping without that permission");
	expect_query(fd, (struct pm_query){.query_addr = r, .query_flags = PM_FILE_BACKED}, ENOENT,
		     "a mapping without a file");
	expect_query(fd, (struct pm_query){.query_addr = file, .query_flags = PM_FILE_BACKED}, 0,
		     "a mapping of a file");
}

static void what_cannot_be_asked(void)
{
	int fd = open_maps(getpid());
	char buf[64];
	/* `at` says where the mapping is, so that nothing else can be wrong */
	const uint64_t at = (uint64_t)map_at(LONELY, 1, PROT_READ), b = (uint64_t)buf;

	expect_query(fd, (struct pm_query){.query_addr = at, .query_flags = 0x40}, EINVAL,
		     "a flag that is none");
	expect_query(fd, (struct pm_query){.query_addr = at, .vma_name_size = 64}, EINVAL,
		     "a size for a name, but no address");
	expect_query(fd, (struct pm_query){.query_addr = at, .vma_name_addr = b}, EINVAL,
		     "an address for a name, but no size");
	expect_query(fd, (struct pm_query){.query_addr = at, .build_id_size = 20}, EINVAL,
		     "a size for a build id, but no address");
	expect_query(fd, (struct pm_query){.query_addr = at, .build_id_addr = b}, EINVAL,
		     "an address for a build id, but no size");
	expect_query(fd, (struct pm_query){.query_addr = at, .size = 23}, EINVAL,
		     "a structure that ends before the address");
	expect_query(fd, (struct pm_query){.query_addr = at, .size = 24}, 0,
		     "a structure that ends behind the address");
	expect_query(fd, (struct pm_query){.query_addr = at, .size = PAGE + 1}, E2BIG,
		     "a structure larger than a page");
}

/* A structure of a later kernel: what this one does not know must be 0. */
static void a_larger_structure(void)
{
	int fd = open_maps(getpid());
	struct {
		struct pm_query q;
		uint64_t later;
	} big = {
		.q = {.size = sizeof(big), .query_addr = (uint64_t)map_at(LONELY, 1, PROT_READ)},
	};
	int err = query(fd, &big.q);

	ct_expect(err == 0, "0 behind what is known: %s", strerror(err));
	big.later = 1;
	err = query(fd, &big.q);
	ct_expect(err == E2BIG, "1 behind what is known: %s", strerror(err));
}

static void a_name_too_long_for_its_buffer(void)
{
	int fd = open_maps(getpid());
	char name[4096];
	uint64_t at = (uint64_t)map_exe(LONELY);
	uint32_t whole = (uint32_t)strlen(line_of(at).name) + 1;
	struct pm_query q = {.query_addr = at, .vma_name_addr = (uint64_t)name};

	q.vma_name_size = whole;
	expect_query(fd, q, 0, "the whole name");
	q.vma_name_size = whole - 1;
	expect_query(fd, q, ENAMETOOLONG, "without its NUL");
	q.vma_name_size = 1;
	expect_query(fd, q, ENAMETOOLONG, "a byte");
}

/* A process of ours that waits; *done: closed to let it go on. */
static pid_t start_child(void (*then)(void), int *done)
{
	int go[2];
	pid_t pid;

	ct_require(pipe2(go, O_CLOEXEC) == 0, "pipe: %s", strerror(errno));
	pid = ct_fork();
	if (pid == 0) {
		char byte;

		close(go[1]);
		(void)!read(go[0], &byte, 1);
		then();
		_exit(1);
	}
	ct_require(pid > 0, "fork: %s", strerror(errno));
	close(go[0]);
	*done = go[1];
	return pid;
}

/* Stops right behind the exec, because it is traced. */
static void exec_and_stop(void)
{
	ptrace(PTRACE_TRACEME, 0, NULL, NULL);
	execl("/proc/self/exe", "vmaprof-selftest", "--list", (char *)NULL);
}

static void exit_now(void)
{
	_exit(0);
}

static bool has_mapping(int fd)
{
	struct pm_query q = {.query_flags = PM_COVERING_OR_NEXT};

	return query(fd, &q) == 0;
}

static void after_its_exit(void)
{
	int done, fd, status;
	pid_t pid = start_child(exit_now, &done);

	fd = open_maps(pid);
	ct_expect(has_mapping(fd), "a live process has no mapping");
	close(done);
	waitpid(pid, &status, 0);
	expect_query(fd, (struct pm_query){.query_flags = PM_COVERING_OR_NEXT}, ESRCH,
		     "after its exit");
}

static void after_its_exec(void)
{
	int done, old, new, status;
	pid_t pid = start_child(exec_and_stop, &done);

	old = open_maps(pid);
	ct_expect(has_mapping(old), "a live process has no mapping");
	close(done);
	ct_require(waitpid(pid, &status, 0) == pid && WIFSTOPPED(status), "no exec (status %#x)",
		   status);
	expect_query(old, (struct pm_query){.query_flags = PM_COVERING_OR_NEXT}, ESRCH,
		     "a file opened before the exec");
	new = open_maps(pid);
	ct_expect(has_mapping(new), "one opened behind it finds no mapping");
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
}

static const struct ct_case cases[] = {
	CT_CASE("procmap_query/", whether_it_is_there, "answered since 6.11, -ENOTTY before",
		.numbers = "74"),
	CT_CASE("procmap_query/", a_file, "range, permissions, offset, device, inode and path",
		.numbers = "74"),
	CT_CASE("procmap_query/", names_without_a_file, "[heap], [stack]; none: a length of 0",
		.numbers = "74"),
	CT_CASE("procmap_query/", nothing_there, "-ENOENT, for the vsyscall page, too",
		.numbers = "74"),
	CT_CASE("procmap_query/", the_next_that_fits,
		"the first at or behind the address with all of the permissions", .numbers = "74"),
	CT_CASE("procmap_query/", what_cannot_be_asked, "-EINVAL; -E2BIG", .numbers = "74"),
	CT_CASE("procmap_query/", a_larger_structure,
		"taken if what is not known is 0, else -E2BIG", .numbers = "74"),
	CT_CASE("procmap_query/", a_name_too_long_for_its_buffer, "-ENAMETOOLONG", .numbers = "74"),
	CT_CASE("procmap_query/", after_its_exit, "-ESRCH", .numbers = "74"),
	CT_CASE("procmap_query/", after_its_exec, "-ESRCH until it is opened again",
		.numbers = "74"),
};

CT_GROUP(procmap_query_cases, cases);
