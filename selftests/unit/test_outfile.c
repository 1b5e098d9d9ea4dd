/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "output/outfile.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char dir[] = "/tmp/vp_outfile.XXXXXX";

static void setup(void)
{
	cr_assert(mkdtemp(dir) != NULL);
	cr_assert(chdir(dir) == 0);
	umask(022);
}

static void teardown(void)
{
	char cmd[64];

	snprintf(cmd, sizeof(cmd), "rm -rf %s", dir);
	(void)!system(cmd);
}

TestSuite(outfile, .init = setup, .fini = teardown);

static void put_file(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	cr_assert(f != NULL);
	fputs(text, f);
	fclose(f);
}

static const char *content(const char *path)
{
	static char buf[256];
	FILE *f = fopen(path, "r");
	size_t n = f ? fread(buf, 1, sizeof(buf) - 1, f) : 0;

	buf[n] = '\0';
	if (f)
		fclose(f);
	return f ? buf : "(missing)";
}

static int file_cnt(const char *path)
{
	DIR *d = opendir(path);
	int n = 0;

	for (struct dirent *e; (e = readdir(d));)
		n += strcmp(e->d_name, ".") && strcmp(e->d_name, "..");
	closedir(d);
	return n;
}

static struct vp_outfile *must_open(const char *path)
{
	struct vp_outfile *o = NULL;
	struct vp_err e = {""};

	cr_assert(eq(int, vp_outfile_open(&o, path, &e), 0), "%s", e.text);
	return o;
}

static void write_file(const char *path, const char *text)
{
	struct vp_outfile *o = must_open(path);
	struct vp_err e = {""};

	fputs(text, vp_outfile_stream(o));
	cr_assert(eq(int, vp_outfile_commit(o, NULL, &e), 0), "%s", e.text);
}

static int open_error(const char *path, struct vp_err *e)
{
	struct vp_outfile *o = NULL;
	int err = vp_outfile_open(&o, path, e);

	cr_assert(o == NULL);
	cr_assert(strstr(e->text, " (") != NULL, "no advice: %s", e->text);
	cr_assert(strchr(e->text, '\n') == NULL);
	return err;
}

static mode_t mode_of(const char *path)
{
	struct stat st = {0};

	stat(path, &st);
	return st.st_mode & 07777;
}

Test(outfile, appears_only_at_commit_and_leaves_nothing_else)
{
	struct vp_outfile *o = must_open("a.html");
	struct vp_err e;
	uint64_t size = 0;

	fputs("hello", vp_outfile_stream(o));
	cr_assert(ne(int, access("a.html", F_OK), 0));
	cr_assert(eq(int, vp_outfile_commit(o, &size, &e), 0));
	cr_assert(eq(u64, size, 5));
	cr_assert(eq(str, (char *)content("a.html"), "hello"));
	cr_assert(eq(int, file_cnt("."), 1));
}

Test(outfile, keeps_the_older_file_as_old)
{
	write_file("a.html", "one");
	write_file("a.html", "two");
	write_file("a.html", "three");
	cr_assert(eq(str, (char *)content("a.html"), "three"));
	cr_assert(eq(str, (char *)content("a.html.old"), "two"));
	cr_assert(eq(int, file_cnt("."), 2));
}

Test(outfile, abort_leaves_the_older_file_alone)
{
	write_file("a.html", "one");
	struct vp_outfile *o = must_open("a.html");
	fputs("half", vp_outfile_stream(o));
	vp_outfile_abort(o);
	vp_outfile_abort(NULL);
	cr_assert(eq(str, (char *)content("a.html"), "one"));
	cr_assert(eq(int, file_cnt("."), 1));
}

Test(outfile, mode_follows_the_umask_or_the_older_file)
{
	umask(027);
	write_file("new.html", "x");
	cr_assert(eq(uint, mode_of("new.html"), 0640));

	put_file("private.html", "x");
	chmod("private.html", 0600);
	write_file("private.html", "y");
	cr_assert(eq(uint, mode_of("private.html"), 0600));
}

Test(outfile, stream_can_seek_and_be_rewritten)
{
	struct vp_outfile *o = must_open("a.data");
	FILE *f = vp_outfile_stream(o);
	struct vp_err e;

	fputs("????body", f);
	cr_assert(eq(int, fseek(f, 0, SEEK_SET), 0));
	fputs("head", f);
	cr_assert(eq(int, vp_outfile_commit(o, NULL, &e), 0));
	cr_assert(eq(str, (char *)content("a.data"), "headbody"));
}

Test(outfile, missing_directory_is_named_with_advice)
{
	struct vp_err e;

	cr_assert(eq(int, open_error("no/such/a.html", &e), -ENOENT));
	cr_assert(strncmp(e.text, "no/such/a.html: ", 16) == 0, "%s", e.text);
	cr_assert(strstr(e.text, "directory") != NULL);
}

Test(outfile, directory_that_takes_no_files_is_not_called_missing)
{
	struct vp_err e;

	cr_assert(eq(int, open_error("/proc/x.html", &e), -EACCES));
}

Test(outfile, error_while_writing_is_explained_at_commit)
{
	struct vp_outfile *o = must_open("/dev/full");
	struct vp_err e = {""};

	for (int i = 0; i < 100000; i++)
		fputs("more than a buffer", vp_outfile_stream(o));
	cr_assert(ne(int, ferror(vp_outfile_stream(o)), 0));
	cr_assert(eq(int, vp_outfile_commit(o, NULL, &e), -ENOSPC), "%s", e.text);
}

Test(outfile, directories_and_empty_names_are_refused)
{
	struct vp_err e;

	mkdir("d", 0755);
	cr_assert(eq(int, open_error("d", &e), -EISDIR));
	cr_assert(eq(int, open_error("new/", &e), -ENOENT));
	cr_assert(eq(int, open_error("", &e), -ENOENT));
	put_file("plain", "x");
	cr_assert(eq(int, open_error("plain/a.html", &e), -ENOTDIR));
}

Test(outfile, too_long_a_name_is_an_error_but_the_longest_possible_is_not)
{
	char name[NAME_MAX + 2];
	struct vp_err e;

	memset(name, 'n', sizeof(name));
	name[NAME_MAX + 1] = '\0';
	cr_assert(eq(int, open_error(name, &e), -ENAMETOOLONG));
	name[NAME_MAX] = '\0';
	write_file(name, "x");
	cr_assert(eq(str, (char *)content(name), "x"));
}

/* In a child, because root may write anywhere. */
static int open_as_nobody(const char *path)
{
	pid_t child = fork();
	int status = 0;

	if (child == 0) {
		struct vp_outfile *o;

		if (setgid(65534) || setuid(65534))
			_exit(77);
		_exit(-vp_outfile_open(&o, path, NULL));
	}
	waitpid(child, &status, 0);
	return WEXITSTATUS(status);
}

Test(outfile, what_may_not_be_written_is_refused_before_recording)
{
	if (geteuid() != 0)
		cr_skip_test("needs root to become nobody");
	chmod(".", 0755);
	cr_assert(eq(int, open_as_nobody("a.html"), EACCES));

	chmod(".", 0777);
	put_file("readonly.html", "x");
	chmod("readonly.html", 0444);
	cr_assert(eq(int, open_as_nobody("readonly.html"), EACCES));
}

Test(outfile, full_disk_is_reported_at_commit)
{
	struct vp_outfile *o = must_open("/dev/full");
	struct vp_err e = {""};

	fputs("x", vp_outfile_stream(o));
	cr_assert(eq(int, vp_outfile_commit(o, NULL, &e), -ENOSPC));
	cr_assert(strncmp(e.text, "/dev/full: ", 11) == 0, "%s", e.text);
	cr_assert(strstr(e.text, "(free some space") != NULL, "%s", e.text);
	cr_assert(eq(uint, mode_of("/dev/full"), 0666));
}

Test(outfile, failed_commit_leaves_the_older_file_where_it_was)
{
	write_file("a.html", "one");
	mkdir("a.html.old", 0755);
	put_file("a.html.old/x", "in the way");

	struct vp_outfile *o = must_open("a.html");
	struct vp_err e = {""};
	fputs("two", vp_outfile_stream(o));
	cr_assert(lt(int, vp_outfile_commit(o, NULL, &e), 0));
	cr_assert(strstr(e.text, "a.html.old: ") != NULL, "%s", e.text);
	cr_assert(eq(str, (char *)content("a.html"), "one"));
	cr_assert(eq(int, file_cnt("."), 2));
}

Test(outfile, symbolic_link_is_written_through)
{
	mkdir("real", 0755);
	put_file("real/a.html", "one");
	cr_assert(symlink("real/a.html", "link.html") == 0);
	write_file("link.html", "two");
	cr_assert(eq(str, (char *)content("real/a.html"), "two"));
	cr_assert(eq(str, (char *)content("real/a.html.old"), "one"));

	struct stat st;
	cr_assert(lstat("link.html", &st) == 0 && S_ISLNK(st.st_mode));
}

Test(outfile, symbolic_link_to_nothing_makes_its_target)
{
	mkdir("real", 0755);
	cr_assert(symlink("b.html", "real/a.html") == 0);
	cr_assert(symlink("real/a.html", "link.html") == 0);
	write_file("link.html", "x");
	cr_assert(eq(str, (char *)content("real/b.html"), "x"));
}

Test(outfile, symbolic_links_in_a_circle_are_an_error)
{
	struct vp_err e;

	cr_assert(symlink("b", "a") == 0 && symlink("a", "b") == 0);
	cr_assert(eq(int, open_error("a", &e), -ELOOP));
}

Test(outfile, fifo_is_written_directly)
{
	cr_assert(mkfifo("pipe", 0644) == 0);
	int fd = open("pipe", O_RDWR | O_NONBLOCK);

	write_file("pipe", "through");
	char buf[16] = "";
	cr_assert(eq(long, read(fd, buf, sizeof(buf) - 1), 7));
	cr_assert(eq(str, buf, "through"));
	close(fd);
	cr_assert(eq(int, file_cnt("."), 1));
}

Test(outfile, dash_is_standard_output_and_stays_open)
{
	int saved = dup(STDOUT_FILENO);
	int fd = open("captured", O_WRONLY | O_CREAT, 0644);

	fflush(stdout);
	dup2(fd, STDOUT_FILENO);
	write_file("-", "out");
	write_file("-", "put");
	dup2(saved, STDOUT_FILENO);
	close(saved);
	close(fd);
	cr_assert(eq(str, (char *)content("captured"), "output"));
	cr_assert(eq(int, file_cnt("."), 1));
}
