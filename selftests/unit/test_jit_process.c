/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which files count as a process's own; its root is a directory of the test's. */
#include "fixture_elf.h"
#include "made_records.h"
#include "proc_life.h"
#include "symbolize/jit_process.h"
#include "target.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NS_TGID	  7
#define OTHER_UID 12345

static struct fixture x;
static struct jit_process p;
static struct stat st;
static int root_fd;

static void set_up(void)
{
	fixture_new(&x);
	fixture_run(&x, "mkdir tmp outside");
	root_fd = open(x.dir, O_PATH | O_DIRECTORY);
	cr_assert(ge(int, root_fd, 0));
	p = (struct jit_process){
		.ns_tgid = NS_TGID,
		.uid = geteuid(),
		.start_ns = (uint64_t)(time(NULL) - 60) * 1000000000,
		.known = true,
	};
}

static void tear_down(void)
{
	close(root_fd);
	fixture_remove(&x);
}

TestSuite(jit_process, .init = set_up, .fini = tear_down);

/* What is read from the map, "" if there is none that counts. */
static const char *map_text(void)
{
	static char text[64];
	int fd = jit_process_open_map(&p, root_fd, &st);
	ssize_t n = 0;

	memset(text, 0, sizeof(text));
	if (fd >= 0) {
		n = read(fd, text, sizeof(text) - 1);
		close(fd);
	}
	cr_assert(ge(int, (int)n, 0));
	return text;
}

static void expect_map(const char *text)
{
	cr_expect(eq(str, (char *)map_text(), (char *)text));
}

/* ---- files that count ---- */

Test(jit_process, the_map_has_the_number_and_the_place_that_the_process_knows)
{
	fixture_text(&x, "tmp/perf-8.map", "another's");
	expect_map("");
	fixture_text(&x, "tmp/perf-7.map", "own");
	expect_map("own");
	cr_expect(eq(i64, (int64_t)st.st_size, 3));
}

Test(jit_process, links_lead_nowhere)
{
	fixture_text(&x, "outside/real", "elsewhere");
	fixture_run(&x, "ln -s ../outside/real tmp/perf-7.map");
	expect_map("");
	fixture_run(&x, "rm tmp/perf-7.map && ln -s %s/outside/real tmp/perf-7.map", x.dir);
	expect_map("");
	fixture_run(&x, "rm tmp/perf-7.map && ln -s perf-7.map tmp/perf-7.map");
	expect_map("");
	fixture_run(&x, "rm tmp/perf-7.map && ln -s /dev/zero tmp/perf-7.map");
	expect_map("");
}

/* Root's files count; that one of them has a second name here is somebody else's doing. */
Test(jit_process, a_second_name_of_a_file_is_not_believed)
{
	fixture_text(&x, "outside/real", "elsewhere");
	fixture_run(&x, "ln outside/real tmp/perf-7.map");
	expect_map("");
	fixture_run(&x, "rm outside/real");
	expect_map("elsewhere");
}

Test(jit_process, a_directory_that_is_a_link_stays_below_the_root)
{
	fixture_text(&x, "outside/perf-7.map", "own");
	fixture_run(&x, "rmdir tmp && ln -s /outside tmp");
	expect_map("own");
	fixture_run(&x, "rm tmp && ln -s ../../../../../../outside tmp");
	expect_map("own");
	fixture_run(&x, "rm tmp && ln -s %s/outside tmp", x.dir);
	expect_map("");
}

Test(jit_process, what_is_no_regular_file_is_not_opened)
{
	fixture_run(&x, "mkfifo tmp/perf-7.map");
	expect_map("");
	fixture_run(&x, "rm tmp/perf-7.map && mkdir tmp/perf-7.map");
	expect_map("");
	if (fixture_try(&x, "rmdir tmp/perf-7.map && mknod tmp/perf-7.map c 1 5"))
		expect_map("");
}

Test(jit_process, only_the_processs_own_and_roots_count)
{
	const char *path = fixture_text(&x, "tmp/perf-7.map", "own");

	if (geteuid() == 0)
		cr_assert(zero(int, chown(path, OTHER_UID, OTHER_UID)));
	p.uid = geteuid() == 0 ? OTHER_UID : geteuid();
	p.ns_root = 99999;
	expect_map("own");
	p.uid++;
	expect_map("");
	/* a process that is not root in its user namespace any more */
	p.ns_root = p.uid - 1;
	expect_map("own");
}

Test(jit_process, a_file_from_before_its_time_is_of_another_that_had_its_number)
{
	struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {0}};
	const char *path = fixture_text(&x, "tmp/perf-7.map", "own");

	times[1].tv_sec = (time_t)(p.start_ns / 1000000000) + 1;
	cr_assert(zero(int, utimensat(AT_FDCWD, path, times, 0)));
	expect_map("own");
	times[1].tv_sec -= 3;
	cr_assert(zero(int, utimensat(AT_FDCWD, path, times, 0)));
	expect_map("");
}

/* ---- jitdumps ---- */

static void expect_dump(const struct vp_proc_id *life, const struct vp_mapped_file *m,
			const char *text)
{
	char got[64] = "";
	int fd = jit_process_open_dump(&p, life, root_fd, m, &st);

	if (fd >= 0) {
		cr_expect(ge(int, (int)read(fd, got, sizeof(got) - 1), 0));
		close(fd);
	}
	cr_expect(eq(str, (char *)got, (char *)text));
}

Test(jit_process, names_of_jitdumps)
{
	cr_expect(jit_is_dump_name("/tmp/jit-1.dump"));
	cr_expect(jit_is_dump_name("/root/.debug/jit/java-jit-20260101.x/jit-4711.dump"));
	cr_expect(jit_is_dump_name("jit-1.dump"));
	cr_expect(not(jit_is_dump_name("/tmp/jit-.dump")));
	cr_expect(not(jit_is_dump_name("/tmp/jit-1.dump (deleted)")));
	cr_expect(not(jit_is_dump_name("/tmp/jit-1.dumps")));
	cr_expect(not(jit_is_dump_name("/tmp/jit-1x.dump")));
	cr_expect(not(jit_is_dump_name("/jit-1.dump/lib.so")));
	cr_expect(not(jit_is_dump_name("")));
}

static struct vp_mapped_file mapped(const char *path, const char *name, void *at)
{
	struct vp_mapped_file m = {.name = name};

	cr_assert(zero(int, stat(path, &st)));
	m.key.mtime_ns = 1; /* it has been written since */
	m.user_ino = st.st_ino;
	m.user_dev_major = major(st.st_dev);
	m.user_dev_minor = minor(st.st_dev);
	m.tgid = (uint32_t)getpid();
	m.start = (uint64_t)(uintptr_t)at;
	m.end = m.start + 4096;
	return m;
}

Test(jit_process, a_jitdump_is_opened_through_its_mapping_also_when_it_has_no_name)
{
	const struct vp_proc_id life = proc_life(getpid());
	const char *path = fixture_text(&x, "jit-7.dump", "dump");
	int fd = open(path, O_RDONLY);
	void *at = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
	struct vp_mapped_file m = mapped(path, "/jit-7.dump", at);
	char test[64];

	close(fd);
	unlink(path);
	snprintf(test, sizeof(test), "/proc/self/map_files/%lx-%lx", m.start, m.end);
	if (access(test, R_OK))
		cr_skip_test("map_files cannot be used here");
	expect_dump(&life, &m, "dump");
}

Test(jit_process, a_jitdump_that_is_not_mapped_any_more_is_found_by_its_name)
{
	const struct vp_proc_id life = proc_life(getpid());
	const char *path = fixture_text(&x, "jit-7.dump", "dump");
	struct vp_mapped_file m = mapped(path, "/jit-7.dump", NULL);

	expect_dump(&life, &m, "dump");
	/* under its name is another */
	m.user_ino++;
	expect_dump(&life, &m, "");
	m.user_ino--;
	p.uid++;
	if (geteuid() != 0)
		expect_dump(&life, &m, "");
}

Test(jit_process, a_jitdump_in_tmp_is_found)
{
	const struct vp_proc_id life = proc_life(getpid());

	fixture_text(&x, "tmp/jit-8.dump", "another's");
	expect_dump(&life, NULL, "");
	fixture_text(&x, "tmp/jit-7.dump", "own");
	expect_dump(&life, NULL, "own");
}

static pid_t spawn_with(const char *variable, const char *other)
{
	char *argv[] = {"sleep", "60", NULL};
	char *env[] = {"FIRST=1", (char *)variable, (char *)other, NULL};
	pid_t pid;

	cr_assert(zero(int, posix_spawnp(&pid, "sleep", NULL, NULL, argv, env)));
	return pid;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

Test(jit_process, what_an_agent_writes_below_home_is_found_the_youngest_first)
{
	pid_t pid = spawn_with("HOME=/home/java", NULL);
	struct vp_proc_id life = proc_life(pid);

	fixture_run(&x,
		    "mkdir -p home/java/.debug/jit/java-jit-1.A home/java/.debug/jit/java-jit-2.B "
		    "home/java/.debug/jit/java-jit-3.C");
	fixture_text(&x, "home/java/.debug/jit/java-jit-1.A/jit-7.dump", "young");
	fixture_text(&x, "home/java/.debug/jit/java-jit-2.B/jit-7.dump", "old");
	fixture_text(&x, "home/java/.debug/jit/java-jit-3.C/jit-8.dump", "another's");
	fixture_run(&x, "touch -d '-20 seconds' home/java/.debug/jit/java-jit-2.B/jit-7.dump");
	expect_dump(&life, NULL, "young");
	end(pid);
	/* JITDUMPDIR precedes */
	pid = spawn_with("HOME=/home/java", "JITDUMPDIR=/dumps");
	life = proc_life(pid);
	expect_dump(&life, NULL, "");
	fixture_run(&x, "mkdir -p dumps/.debug/jit/x");
	fixture_text(&x, "dumps/.debug/jit/x/jit-7.dump", "there");
	expect_dump(&life, NULL, "there");
	end(pid);
}

/* ---- who it is ---- */

Test(jit_process, of_a_live_process_its_number_owner_and_start_are_known)
{
	const struct vp_proc_id life = proc_life(getpid());
	uint64_t now_ns = (uint64_t)time(NULL) * 1000000000;
	int fd;

	p = (struct jit_process){0};
	fd = jit_process_open(&p, &life);
	cr_assert(ge(int, fd, 0));
	close(fd);
	cr_expect(p.known);
	cr_expect(p.has_our_root);
	cr_expect(eq(u32, p.ns_tgid, (uint32_t)getpid()));
	cr_expect(eq(u32, p.uid, geteuid()));
	cr_expect(gt(u64, p.start_ns, now_ns - 600000000000));
	cr_expect(le(u64, p.start_ns, now_ns + 1000000000));
}

static void enter_user_namespace(void *arg)
{
	(void)arg;
	target_tell(unshare(CLONE_NEWUSER) == 0);
	target_await();
	target_pause();
}

Test(jit_process, root_of_its_user_namespace_is_known_by_our_number)
{
	const unsigned int outside = geteuid() == 0 ? OTHER_UID : geteuid();
	struct vp_proc_id life;
	struct target t;
	char path[64], map[64];
	bool entered;
	int fd;

	target_start(&t, enter_user_namespace, NULL);
	entered = target_hear(&t);
	snprintf(path, sizeof(path), "/proc/%d/uid_map", t.pid);
	snprintf(map, sizeof(map), "0 %u 1\n", outside);
	fd = open(path, O_WRONLY);
	if (!entered || fd < 0 || write(fd, map, strlen(map)) < 0) {
		target_end(&t);
		cr_skip_test("cannot make a user namespace here");
	}
	close(fd);
	life = proc_life(t.pid);
	p = (struct jit_process){0};
	fd = jit_process_open(&p, &life);
	target_end(&t);
	cr_assert(ge(int, fd, 0));
	close(fd);
	cr_expect(eq(u32, p.ns_root, outside));
}

Test(jit_process, another_process_with_its_number_is_not_it)
{
	struct vp_proc_id life = proc_life(getpid());

	life.start_ns -= 1000000000;
	p = (struct jit_process){0};
	cr_expect(eq(int, jit_process_open(&p, &life), -ESRCH));
	cr_expect(not(p.known));
}

Test(jit_process, of_one_that_is_gone_only_what_was_seen_is_believed)
{
	const struct vp_proc_id life = {.tgid = MADE_TGID, .start_ns = 5000000000};
	struct stat ours, got;
	int fd;

	/* it had another root, which cannot be found any more */
	cr_expect(eq(int, jit_process_open(&p, &life), -ESRCH));
	p.has_our_root = true;
	fd = jit_process_open(&p, &life);
	cr_assert(ge(int, fd, 0));
	cr_assert(zero(int, fstat(fd, &got)));
	cr_assert(zero(int, stat("/", &ours)));
	cr_expect(eq(u64, got.st_ino, ours.st_ino));
	cr_expect(eq(u32, p.ns_tgid, NS_TGID));
	close(fd);
	/* never seen: the number it had here */
	p = (struct jit_process){0};
	fd = jit_process_open(&p, &life);
	cr_assert(ge(int, fd, 0));
	close(fd);
	cr_expect(eq(u32, p.ns_tgid, MADE_TGID));
	cr_expect(eq(u32, p.uid, geteuid()));
}
