/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The test is the process with the JIT: its map is /tmp/perf-PID.map. */
#include "proc_life.h"
#include "symbolize/jit.h"
#include "target.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct vp_jit *jit;
static struct vp_proc_id life;
static char map[64], dump[64];

static void set_up(void)
{
	life = proc_life(getpid());
	snprintf(map, sizeof(map), "/tmp/perf-%d.map", getpid());
	snprintf(dump, sizeof(dump), "/tmp/jit-%d.dump", getpid());
	/* of an earlier test that was killed */
	unlink(map);
	unlink(dump);
	cr_assert(zero(int, vp_jit_new(&jit, NULL)));
}

static void tear_down(void)
{
	vp_jit_free(jit);
	unlink(map);
	unlink(dump);
}

TestSuite(jit, .init = set_up, .fini = tear_down, .timeout = 60);

static void reopen(const struct vp_jit_opts *opts)
{
	vp_jit_free(jit);
	cr_assert(zero(int, vp_jit_new(&jit, opts)));
}

static void write_map(const char *mode, const char *text)
{
	FILE *f = fopen(map, mode);

	cr_assert(ne(ptr, f, NULL));
	fputs(text, f);
	fclose(f);
}

static void read_life(const struct vp_proc_id *id)
{
	cr_assert(zero(int, vp_jit_read(jit, id, NULL)));
}

static void expect_of(const struct vp_proc_id *id, uint64_t addr, const char *name)
{
	struct vp_jit_symbol got;

	if (vp_jit_look_up(jit, id, addr, &got))
		strcpy(got.name, "none");
	cr_expect(eq(str, (char *)got.name, (char *)name), "at %lx", addr);
}

static void expect(uint64_t addr, const char *name)
{
	read_life(&life);
	expect_of(&life, addr, name);
}

static struct vp_jit_stats stats(void)
{
	struct vp_jit_stats s;

	vp_jit_get_stats(jit, &s);
	return s;
}

Test(jit, a_map_is_read_again_as_it_grows)
{
	expect(0x1000, "none");
	write_map("w", "1000 20 first\n");
	expect(0x1000, "first");
	expect(0x2000, "none");
	write_map("a", "2000 20 two hal");
	expect(0x2000, "none");
	write_map("a", "ves\nno line\n");
	expect(0x2000, "two halves");
	write_map("a", "1000 20 third\n");
	expect(0x1000, "third");
	cr_expect(eq(u64, stats().bad_cnt, 1));
	cr_expect(eq(u64, stats().life_cnt, 1));
}

Test(jit, what_was_read_stays_when_the_file_is_gone)
{
	write_map("w", "1000 20 first\n");
	expect(0x1000, "first");
	unlink(map);
	expect(0x1000, "first");
}

Test(jit, a_file_that_was_truncated_or_replaced_starts_again)
{
	struct stat before, after;

	write_map("w", "1000 20 first\n2000 20 second\n");
	expect(0x1000, "first");
	/* shorter */
	write_map("w", "1000 20 third\n");
	expect(0x1000, "third");
	expect(0x2000, "second");
	/* longer than it was when it was read, the same inode */
	write_map("w", "3000 20 fourth\n1000 20 fifth\n4000 20 sixth\n");
	expect(0x1000, "fifth");
	expect(0x3000, "fourth");
	/* another inode */
	cr_assert(zero(int, stat(map, &before)));
	rename(map, dump);
	write_map("w", "5000 20 seventh\n3000 20 eighth\n4000 20 ninth with a long name\n");
	unlink(dump);
	cr_assert(zero(int, stat(map, &after)));
	cr_assert(ne(u64, before.st_ino, after.st_ino));
	expect(0x5000, "seventh");
	expect(0x3000, "eighth");
	expect(0x1000, "fifth");
}

Test(jit, lives_have_their_own)
{
	struct vp_proc_id exec = life, other = life, stranger = life;

	exec.exec_id++;
	other.start_ns -= 5000000000; /* the number was used before */
	stranger.tgid = 1;
	write_map("w", "1000 20 first\n");
	expect(0x1000, "first");
	expect_of(&exec, 0x1000, "none");
	read_life(&other);
	expect_of(&other, 0x1000, "none");
	read_life(&stranger);
	expect_of(&stranger, 0x1000, "none");
	read_life(&exec);
	expect_of(&exec, 0x1000, "first");
}

Test(jit, a_map_from_before_the_process_is_not_its_own)
{
	struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = 1000000000}};

	write_map("w", "1000 20 first\n");
	cr_assert(zero(int, utimensat(AT_FDCWD, map, times, 0)));
	expect(0x1000, "none");
}

/* ---- jitdumps ---- */

static void write_dump(uint32_t pid, uint64_t addr, const char *name)
{
	const uint32_t header[] = {0x4a695444, 1, 40, 62, 0, pid, 0, 0, 0, 0};
	uint32_t prefix[] = {0, (uint32_t)(56 + strlen(name) + 1 + 32), 5, 0, pid, pid};
	const uint64_t fields[] = {addr, addr, 32, 1};
	const char code[32] = "";
	FILE *f = fopen(dump, "w");

	cr_assert(ne(ptr, f, NULL));
	fwrite(header, sizeof(header), 1, f);
	fwrite(prefix, sizeof(prefix), 1, f);
	fwrite(fields, sizeof(fields), 1, f);
	fwrite(name, strlen(name) + 1, 1, f);
	fwrite(code, sizeof(code), 1, f);
	fclose(f);
}

Test(jit, a_jitdump_precedes_a_map)
{
	write_map("w", "1000 20 of the map\n2000 20 only there\n");
	write_dump((uint32_t)getpid(), 0x1000, "of the dump");
	expect(0x1000, "of the dump");
	expect(0x101f, "of the dump");
	expect(0x1020, "none");
	expect(0x2000, "only there");
	/* replaced, and told by the same process */
	write_dump((uint32_t)getpid(), 0x3000, "another");
	expect(0x3000, "another");
}

Test(jit, a_jitdump_that_another_process_wrote_names_nothing)
{
	write_dump((uint32_t)getpid() + 1, 0x1000, "of another");
	expect(0x1000, "none");
	write_dump((uint32_t)getpid(), 0x1000, "own");
	expect(0x1000, "own");
}

/* ---- copies ---- */

static void be_a_copy(void *arg)
{
	(void)arg;
	target_pause();
}

static void run_a_program(void *arg)
{
	(void)arg;
	execlp("sleep", "sleep", "100", NULL);
}

static void read_copy(const struct vp_proc_id *copy)
{
	read_life(copy);
	expect_of(copy, 0x1000, "first");
}

Test(jit, a_forked_copy_has_the_names_that_its_parent_tells)
{
	struct vp_proc_id copy;
	char own[64];
	struct target t;
	FILE *f;

	write_map("w", "1000 20 first\n2000 20 second\n");
	target_start(&t, be_a_copy, NULL);
	copy = proc_life(t.pid);
	read_copy(&copy);
	/* but what it tells itself precedes */
	snprintf(own, sizeof(own), "/tmp/perf-%d.map", t.pid);
	f = fopen(own, "w");
	cr_assert(ne(ptr, f, NULL));
	fputs("2000 10 its own\n", f);
	fclose(f);
	read_copy(&copy);
	expect_of(&copy, 0x2000, "its own");
	expect_of(&copy, 0x2010, "second");
	expect(0x2000, "second");
	unlink(own);
	target_end(&t);
	/* what it was is known when it is gone */
	read_copy(&copy);
}

Test(jit, a_child_that_runs_a_program_of_its_own_has_no_names_of_its_parents)
{
	struct vp_proc_id child;
	struct target t;
	char byte;

	write_map("w", "1000 20 first\n");
	target_start(&t, run_a_program, NULL);
	child = proc_life(t.pid);
	/* its end of the socket is closed when it runs that */
	cr_assert(zero(sz, (size_t)read(t.fd, &byte, 1)));
	read_life(&child);
	expect_of(&child, 0x1000, "none");
	target_end(&t);
}

Test(jit, whose_copy_a_life_is_may_be_told)
{
	struct vp_proc_id copy = {.tgid = 4000000, .start_ns = 1, .exec_id = 2}, grandchild = copy;

	grandchild.exec_id = 3;
	write_map("w", "1000 20 first\n");
	cr_assert(zero(int, vp_jit_inherit(jit, &copy, &life)));
	cr_assert(zero(int, vp_jit_inherit(jit, &grandchild, &copy)));
	read_copy(&grandchild);
	/* not for ever if somebody says that it is its own grandparent */
	cr_assert(zero(int, vp_jit_inherit(jit, &life, &grandchild)));
	read_copy(&grandchild);
	expect_of(&grandchild, 0x2000, "none");
}

Test(jit, a_jitdump_that_a_copy_has_mapped_is_its_parents)
{
	struct vp_mapped_file m = {.tgid = (uint32_t)getpid(), .name = dump};
	struct vp_proc_id copy = {.tgid = 4000000, .start_ns = 1};
	struct stat st;

	write_dump((uint32_t)getpid(), 0x1000, "first");
	cr_assert(zero(int, stat(dump, &st)));
	m.user_ino = st.st_ino;
	cr_assert(zero(int, vp_jit_inherit(jit, &copy, &life)));
	cr_assert(zero(int, vp_jit_read(jit, &copy, &m)));
	expect_of(&copy, 0x1000, "first");
}

/* ---- all that is known ---- */

Test(jit, an_answer_says_how_far_into_what_and_where_it_is_from)
{
	struct vp_jit_symbol sym;

	write_map("w", "1000 20 first\n2000 20 second\n");
	write_dump((uint32_t)getpid(), 0x1000, "of the dump");
	read_life(&life);
	cr_assert(zero(int, vp_jit_look_up(jit, &life, 0x1004, &sym)));
	cr_expect(eq(str, sym.name, "of the dump"));
	cr_expect(eq(u64, sym.offset, 4));
	cr_expect(eq(str, (char *)sym.source, "jitdump"));
	cr_expect(zero(u32, sym.line));
	cr_assert(zero(int, vp_jit_look_up(jit, &life, 0x2008, &sym)));
	cr_expect(eq(str, sym.name, "second"));
	cr_expect(eq(u64, sym.offset, 8));
	cr_expect(eq(str, (char *)sym.source, "perf_map"));
	cr_expect(eq(int, vp_jit_look_up(jit, &life, 0x3000, &sym), -ENOENT));
}

/* ---- limits ---- */

Test(jit, more_than_is_to_be_read_is_left)
{
	const struct vp_jit_opts o = {.read_bytes = 1 << 20};
	int fd;

	reopen(&o);
	write_map("w", "1000 20 first\n");
	/* four gigabytes that are no lines */
	fd = open(map, O_WRONLY);
	cr_assert(zero(int, ftruncate(fd, 1LL << 32)));
	close(fd);
	expect(0x1000, "first");
	cr_expect(eq(u64, stats().cut_cnt, 1));
	/* also if it starts again and again */
	for (int i = 0; i < 100; i++) {
		write_map("w", i % 2 ? "1000 20 odd\n" : "1000 20 even number\n");
		expect(0x1000, "first");
	}
}

Test(jit, names_beyond_a_processs_memory_are_counted)
{
	const struct vp_jit_opts o = {.process_bytes = 100000};
	FILE *f = fopen(map, "w");

	reopen(&o);
	for (int i = 0; i < 10000; i++)
		fprintf(f, "%x 10 function_%d\n", 0x10000 + i * 0x10, i);
	fclose(f);
	expect(0x10000, "function_0");
	expect(0x10000 + 9999 * 0x10, "none");
	cr_expect(gt(u64, stats().dropped_cnt, 5000));
	cr_expect(le(u64, stats().bytes, 100000));
}

Test(jit, when_all_is_full_the_life_not_asked_for_longest_goes)
{
	const struct vp_jit_opts o = {.max_bytes = 250};
	struct vp_proc_id lives[4];

	reopen(&o);
	write_map("w", "1000 20 first\n2000 20 second\n");
	for (uint32_t i = 0; i < 4; i++) {
		lives[i] = life;
		lives[i].exec_id = 10 + i;
		read_life(&lives[i]);
		read_life(&lives[0]);
	}
	cr_expect(eq(u64, stats().evicted_cnt, 2));
	cr_expect(le(u64, stats().bytes, 250));
	expect_of(&lives[0], 0x1000, "first");
	expect_of(&lives[1], 0x1000, "none");
	expect_of(&lives[2], 0x1000, "none");
	expect_of(&lives[3], 0x1000, "first");
	/* it is not read again, and no other goes for it */
	read_life(&lives[1]);
	expect_of(&lives[1], 0x1000, "none");
	cr_expect(eq(u64, stats().evicted_cnt, 2));
}

/* ---- threads ---- */

#define LINE_CNT 20000

static atomic_bool written;

static void *read_often(void *arg)
{
	struct vp_jit_symbol sym;

	(void)arg;
	while (!written) {
		vp_jit_read(jit, &life, NULL);
		vp_jit_look_up(jit, &life, 0x10000, &sym);
	}
	return NULL;
}

Test(jit, many_threads_read_while_the_file_grows)
{
	pthread_t thread[4];
	char name[32];
	FILE *f = fopen(map, "w");

	for (int i = 0; i < 4; i++)
		cr_assert(zero(int, pthread_create(&thread[i], NULL, read_often, NULL)));
	for (int i = 0; i < LINE_CNT; i++) {
		fprintf(f, "%x 10 f%d\n", 0x10000 + i * 0x10, i);
		if (i % 100 == 0)
			fflush(f);
	}
	fclose(f);
	written = true;
	for (int i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
	read_life(&life);
	for (int i = 0; i < LINE_CNT; i++) {
		snprintf(name, sizeof(name), "f%d", i);
		expect_of(&life, (uint64_t)(0x10000 + i * 0x10), name);
	}
	cr_expect(zero(u64, stats().bad_cnt));
}

static void *read_a_few_times(void *arg)
{
	for (int i = 0; i < 2000; i++)
		vp_jit_read(jit, &life, NULL);
	written = true;
	return arg;
}

Test(jit, a_file_that_is_truncated_and_written_while_it_is_read_is_survived)
{
	static char lines[1 << 16];
	const size_t len = sizeof("1000 20 again and again\n") - 1;
	pthread_t thread;
	int fd = open(map, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	cr_assert(ge(int, fd, 0));
	for (size_t at = 0; at + len < sizeof(lines); at += len)
		strcpy(lines + at, "1000 20 again and again\n");
	cr_assert(zero(int, pthread_create(&thread, NULL, read_a_few_times, NULL)));
	while (!written) {
		cr_assert(gt(sz, (size_t)pwrite(fd, lines, sizeof(lines) / len * len, 0), 0));
		cr_assert(zero(int, ftruncate(fd, 100)));
		cr_assert(zero(int, ftruncate(fd, 0)));
	}
	pthread_join(thread, NULL);
	close(fd);
	write_map("w", "2000 20 at last\n");
	expect(0x2000, "at last");
	cr_expect(le(u64, stats().bytes, 64 << 20));
}
