// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * zoo DIR: maps one of every kind of memory there is, each executable and not where that makes
 * sense, and pauses. Kinds the kernel does not offer are named in READY: missing=KIND,KIND.
 */
#include "workload.h"

#include <linux/io_uring.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <sys/ipc.h>
#include <sys/shm.h>
#include <sys/syscall.h>

#define PAGE	4096L
#define HUGE_2M (2L << 20)

static char missing[1024] = "none";

static void note_missing(const char *kind)
{
	size_t used = strcmp(missing, "none") ? strlen(missing) : 0;

	snprintf(missing + used, sizeof(missing) - used, "%s%s", used ? "," : "", kind);
}

static void keep(const char *kind, const void *p)
{
	if (p == MAP_FAILED)
		note_missing(kind);
}

/* Maps two pages of fd, one executable and one not, with a gap between. */
static void map_both(const char *kind, int fd, off_t offset, int flags)
{
	keep(kind, mmap(NULL, PAGE, PROT_READ | PROT_EXEC, flags, fd, offset));
	keep(kind, mmap(NULL, PAGE, PROT_READ | PROT_WRITE, flags, fd, offset + PAGE));
}

static int new_file(int dir, const char *name, off_t bytes)
{
	int fd = openat(dir, name, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);

	if (fd >= 0 && ftruncate(fd, bytes)) {
		close(fd);
		fd = -1;
	}
	return fd;
}

static void map_named(int dir, const char *kind, const char *name)
{
	int fd = new_file(dir, name, 2 * PAGE);

	if (fd < 0) {
		note_missing(kind);
		return;
	}
	map_both(kind, fd, 0, MAP_PRIVATE);
	close(fd);
}

static void map_names(int dir)
{
	map_named(dir, "spaces", " a name with  spaces ");
	map_named(dir, "newline", "two\nlines\n");
	map_named(dir, "utf8", "žluťoučký 馬 🐎");
	map_named(dir, "latin1", "not-utf8-\xff\xfe-\xe9");
	map_named(dir, "escapes", "back\\slash \\012 \"quoted\" \ttab \x01 ctrl");
	map_named(dir, "fake-deleted", "still here (deleted)");
	map_named(dir, "brackets", "[heap]");
	map_named(dir, "long-name",
		  "n123456789012345678901234567890123456789012345678901234567890123456789"
		  "012345678901234567890123456789012345678901234567890123456789012345678901"
		  "2345678901234567890123456789012345678901234567890123456789012345678901234"
		  "5678901234567890");
}

/* A file whose absolute path has exactly `bytes` bytes. */
static void map_long_path(const char *kind, int dir, const char *dir_path, size_t bytes,
			  int unlink_it)
{
	char component[256];
	size_t have = strlen(dir_path);
	int at = dup(dir), next, fd;

	while (at >= 0 && bytes - have > 201) {
		memset(component, unlink_it ? 'u' : 'p', 199);
		component[199] = '\0';
		mkdirat(at, component, 0755);
		next = openat(at, component, O_DIRECTORY | O_RDONLY | O_CLOEXEC);
		close(at);
		at = next;
		have += 200;
	}
	memset(component, 'f', sizeof(component));
	component[bytes - have - 1] = '\0';
	fd = new_file(at, component, 2 * PAGE);
	if (fd < 0) {
		note_missing(kind);
		return;
	}
	map_both(kind, fd, 0, MAP_PRIVATE);
	if (unlink_it)
		unlinkat(at, component, 0);
	close(fd);
	close(at);
}

static void map_deleted(int dir)
{
	int fd = new_file(dir, "gone", 2 * PAGE);

	if (fd < 0) {
		note_missing("deleted");
		return;
	}
	map_both("deleted", fd, 0, MAP_PRIVATE);
	unlinkat(dir, "gone", 0);
	close(fd);
	fd = new_file(dir, "before", 2 * PAGE);
	map_both("renamed", fd, 0, MAP_SHARED);
	renameat(dir, "before", dir, "after");
	close(fd);
}

/* Offsets above 4 GiB, in a sparse file. */
static void map_far(int dir)
{
	off_t far = (off_t)5 << 30;
	int fd = new_file(dir, "far", ((off_t)17 << 40) / 2);

	if (fd < 0)
		fd = new_file(dir, "far", far + 4 * PAGE);
	else
		map_both("far", fd, (off_t)8 << 40, MAP_PRIVATE);
	if (fd < 0) {
		note_missing("far");
		return;
	}
	map_both("far", fd, far, MAP_PRIVATE);
	map_both("far", fd, ((off_t)4 << 30) - PAGE, MAP_PRIVATE);
	close(fd);
}

static void map_memfds(void)
{
	int fd = memfd_create("zoo memfd", MFD_CLOEXEC);

	if (fd < 0 || ftruncate(fd, 2 * PAGE))
		note_missing("memfd");
	else
		map_both("memfd", fd, 0, MAP_SHARED);
	close(fd);
	fd = memfd_create("", MFD_CLOEXEC);
	if (fd >= 0 && !ftruncate(fd, 2 * PAGE))
		map_both("memfd-noname", fd, 0, MAP_PRIVATE);
	close(fd);
}

/* Each at an address of its own, so that no two of the same kind become one. */
static void map_anonymous(void)
{
	const int prots[] = {PROT_NONE,
			     PROT_READ,
			     PROT_READ | PROT_WRITE,
			     PROT_READ | PROT_EXEC,
			     PROT_EXEC,
			     PROT_READ | PROT_WRITE | PROT_EXEC};
	char *base = mmap(NULL, 64 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *moved;

	if (base == MAP_FAILED)
		wl_die("mmap");
	munmap(base, 64 * PAGE);
	for (int i = 0; i < 6; i++) {
		keep("anon", mmap(base + 4 * i * PAGE, PAGE, prots[i],
				  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0));
		keep("shared-anon", mmap(NULL, PAGE, prots[i], MAP_SHARED | MAP_ANONYMOUS, -1, 0));
	}
	keep("locked", mmap(NULL, PAGE, PROT_READ | PROT_EXEC,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_LOCKED, -1, 0));
	keep("growsdown", mmap(base + 40 * PAGE, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_GROWSDOWN, -1, 0));
	/* moved memory keeps the page offset of where it was first mapped */
	moved = mmap(base + 50 * PAGE, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (moved != MAP_FAILED) {
		moved[0] = 1;
		keep("mremap",
		     mremap(moved, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, base + 60 * PAGE));
	}
}

static void map_huge(void)
{
	int flags = MAP_ANONYMOUS | MAP_HUGETLB;
	int fd = memfd_create("zoo huge", MFD_CLOEXEC | MFD_HUGETLB);

	keep("hugetlb", mmap(NULL, HUGE_2M, PROT_READ | PROT_EXEC, MAP_PRIVATE | flags, -1, 0));
	keep("hugetlb-shared",
	     mmap(NULL, HUGE_2M, PROT_READ | PROT_WRITE, MAP_SHARED | flags, -1, 0));
	if (fd < 0 || ftruncate(fd, HUGE_2M))
		note_missing("memfd-huge");
	else
		keep("memfd-huge", mmap(NULL, HUGE_2M, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0));
	close(fd);
}

static void map_devices(void)
{
	int fd = open("/dev/zero", O_RDWR | O_CLOEXEC);
	int shm = shmget(IPC_PRIVATE, 2 * PAGE, IPC_CREAT | 0700);

	if (fd < 0)
		note_missing("dev-zero");
	else
		map_both("dev-zero", fd, 0, MAP_PRIVATE);
	close(fd);
	if (shm < 0) {
		note_missing("sysv");
		return;
	}
	if (shmat(shm, NULL, SHM_EXEC) == (void *)-1)
		note_missing("sysv");
	shmctl(shm, IPC_RMID, NULL);
}

static void map_kernel_rings(void)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
				       .size = sizeof(attr),
				       .config = PERF_COUNT_SW_DUMMY,
				       .exclude_kernel = 1};
	struct io_uring_params params = {0};
	unsigned long aio = 0;
	int fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);

	keep("perf", mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
	fd = (int)syscall(SYS_io_uring_setup, 4, &params);
	keep("io-uring",
	     mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, IORING_OFF_SQ_RING));
	if (syscall(SYS_io_setup, 4, &aio))
		note_missing("aio");
}

/* The first instruction is one the kernel cannot emulate, so it is run out of line. */
__attribute__((naked, noinline)) static int probed(void)
{
	__asm__("xor %eax, %eax\n\tlea 1(%rax), %rax\n\tret");
}

/* A uprobe on probed() that was hit brings the [uprobes] mapping. */
static void map_uprobes(void)
{
	struct perf_event_attr attr = {.size = sizeof(attr)};
	unsigned long start = 0, pgoff = 0;
	char line[512];
	FILE *f = fopen("/sys/bus/event_source/devices/uprobe/type", "r");
	int type = 0, fd;

	if (!f || fscanf(f, "%d", &type) != 1)
		note_missing("uprobes");
	if (f)
		fclose(f);
	f = fopen("/proc/self/maps", "r");
	while (f && fgets(line, sizeof(line), f)) {
		unsigned long s, e, o;

		if (sscanf(line, "%lx-%lx %*s %lx", &s, &e, &o) == 3 &&
		    s <= (unsigned long)probed && (unsigned long)probed < e) {
			start = s;
			pgoff = o;
		}
	}
	if (f)
		fclose(f);
	attr.type = (uint32_t)type;
	attr.config1 = (uint64_t)(uintptr_t) "/proc/self/exe";
	attr.config2 = (unsigned long)probed - start + pgoff;
	fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (!type || fd < 0) {
		note_missing("uprobes");
		return;
	}
	probed();
}

static void *idle_thread(void *arg)
{
	for (;;)
		pause();
	return arg;
}

int main(int argc, char **argv)
{
	char path[4096];
	pthread_t thread;
	int dir;

	wl_die_with_parent();
	if (argc < 2 || !realpath(argv[1], path))
		wl_die("zoo DIR");
	dir = open(path, O_DIRECTORY | O_RDONLY | O_CLOEXEC);
	if (dir < 0)
		wl_die("open %s", path);
	map_names(dir);
	map_long_path("path-max", dir, path, 4095, 0);
	map_long_path("path-max-deleted", dir, path, 4085, 1);
	map_deleted(dir);
	map_far(dir);
	map_memfds();
	map_anonymous();
	map_huge();
	map_devices();
	map_kernel_rings();
	map_uprobes();
	pthread_create(&thread, NULL, idle_thread, NULL);
	wl_ready("missing=%s", missing);
	wl_pause();
}
