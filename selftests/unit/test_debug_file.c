/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Debug files in all the places where they may be, and what must not be taken for one. */
#include "fixture_elf.h"
#include "target.h"
#include "symbolize/debug_file.h"
#include "symbolized.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

static struct fixture x;
static struct debug_finder *finder;
static struct debug_found found;

static void use_root(const char *root)
{
	debug_finder_free(finder);
	cr_assert(zero(int,
		       debug_finder_new(&finder, &(struct debug_finder_opts){.host_root = root})));
}

/* Paths below the fixture's directory stand for the host's. */
static void set_up(void)
{
	fixture_new(&x);
	use_root(x.dir);
	fixture_text(&x, "m.c",
		     "__attribute__((noinline)) static int hidden(int n) { return n * 3; }\n"
		     "int main(int c, char **v) { (void)v; return hidden(c); }\n");
	fixture_run(&x, "mkdir -p app/.debug usr/lib/debug/.build-id/01 usr/lib/debug/app");
}

static void tear_down(void)
{
	debug_finder_free(finder);
	fixture_remove(&x);
}

TestSuite(debug_file, .init = set_up, .fini = tear_down, .timeout = 30);

/* app/prog, stripped, with a link to prog.debug, which is left in the fixture's directory. */
static void build(const char *id)
{
	fixture_run(&x, "gcc -O1 -g -Wl,--build-id=%s -o whole m.c", id);
	fixture_run(&x, "objcopy --only-keep-debug whole prog.debug && strip -o app/prog whole &&"
			" objcopy --add-gnu-debuglink=prog.debug app/prog");
}

static int find_for(uint32_t tgid, const char *path)
{
	struct elf_file *f;
	int fd = open(fixture_path(&x, "app/prog"), O_RDONLY | O_CLOEXEC), err;

	cr_assert(ge(int, fd, 0));
	cr_assert(zero(int, elf_file_open(&f, fd)));
	err = debug_finder_open(finder, f, &(struct debug_origin){tgid, path}, &found);
	elf_file_close(f);
	close(fd);
	if (!err)
		close(found.fd);
	return err;
}

static int find(void)
{
	return find_for(0, "/app/prog");
}

#define EXPECT_FOUND(where, how)                                                                   \
	do {                                                                                       \
		cr_assert(zero(int, find()));                                                      \
		cr_expect(eq(str, found.path, (char *)(where)));                                   \
		cr_expect(eq(int, found.way, how));                                                \
		cr_expect(zero(u32, found.tgid));                                                  \
	} while (0)

Test(debug_file, is_found_by_a_link_in_each_usual_place)
{
	static const char *const places[] = {"/app/prog.debug", "/app/.debug/prog.debug",
					     "/usr/lib/debug/app/prog.debug"};

	build("none");
	cr_expect(eq(int, find(), -ENOENT));
	for (size_t i = 0; i < 3; i++) {
		use_root(x.dir); /* it remembers that there was none */
		fixture_run(&x, "cp prog.debug .%s", places[i]);
		EXPECT_FOUND(places[i], DEBUG_BY_LINK);
		fixture_run(&x, "rm .%s", places[i]);
	}
}

Test(debug_file, a_link_with_another_crc_leads_nowhere)
{
	build("none");
	fixture_run(&x, "cp prog.debug app/ && printf x >>app/prog.debug");
	cr_expect(eq(int, find(), -ENOENT));
}

/* Its CRC is right, and would take as long as somebody likes. */
Test(debug_file, a_link_to_a_file_of_holes_leads_nowhere)
{
	build("none");
	fixture_run(&x, "cp prog.debug app/ && truncate -s 64M app/prog.debug && cd app &&"
			" objcopy -R .gnu_debuglink prog &&"
			" objcopy --add-gnu-debuglink=prog.debug prog");
	cr_expect(eq(int, find(), -ENOENT));
}

Test(debug_file, the_next_place_is_tried_after_a_wrong_crc)
{
	build("none");
	fixture_run(&x, "cp prog.debug app/.debug/ && cp prog.debug app/ &&"
			" printf x >>app/prog.debug");
	EXPECT_FOUND("/app/.debug/prog.debug", DEBUG_BY_LINK);
}

Test(debug_file, a_changed_file_gets_a_new_crc)
{
	build("none");
	fixture_run(&x, "cp prog.debug app/ && printf x >>app/prog.debug");
	cr_expect(eq(int, find_for(0, "/app/prog"), -ENOENT));
	fixture_run(&x, "cp prog.debug app/");
	/* Another path, for the first one is known to be missing; the file is the same inode. */
	cr_expect(zero(int, find_for(0, "/app/./prog")));
}

Test(debug_file, equal_build_ids_need_no_crc)
{
	build("0x0123456789");
	fixture_run(&x, "cp prog.debug app/ && printf x >>app/prog.debug");
	EXPECT_FOUND("/app/prog.debug", DEBUG_BY_LINK);
}

Test(debug_file, another_build_id_is_another_program)
{
	build("0x0123456789");
	fixture_run(
		&x,
		"gcc -g -Wl,--build-id=0x0123456788 -o other m.c &&"
		" cp other app/prog.debug && cp other usr/lib/debug/.build-id/01/23456789.debug");
	cr_expect(eq(int, find(), -ENOENT));
}

Test(debug_file, the_build_id_directory_comes_before_the_link)
{
	build("0x0123456789");
	fixture_run(
		&x,
		"cp prog.debug app/ && cp prog.debug usr/lib/debug/.build-id/01/23456789.debug");
	EXPECT_FOUND("/usr/lib/debug/.build-id/01/23456789.debug", DEBUG_BY_BUILD_ID);
}

Test(debug_file, a_program_is_not_its_own_debug_file)
{
	build("0x0123456789");
	fixture_run(&x, "ln app/prog usr/lib/debug/.build-id/01/23456789.debug &&"
			" ln -s prog app/prog.debug");
	cr_expect(eq(int, find(), -ENOENT));
}

Test(debug_file, links_do_not_lead_out_of_the_root)
{
	build("0x0123456789");
	fixture_run(&x, "mkdir in && cp -r app usr in/ &&"
			" ln -s \"$PWD/prog.debug\" in/app/prog.debug &&"
			" ln -s ../../prog.debug in/app/.debug/prog.debug");
	use_root(fixture_path(&x, "in"));
	cr_expect(eq(int, find(), -ENOENT));
	/* The same links within. */
	use_root(fixture_path(&x, "in"));
	fixture_run(&x, "cp prog.debug in/");
	EXPECT_FOUND("/app/.debug/prog.debug", DEBUG_BY_LINK);
}

Test(debug_file, fifos_and_directories_are_not_opened)
{
	build("0x0123456789");
	fixture_run(&x, "mkfifo app/prog.debug && mkdir app/.debug/prog.debug &&"
			" mkfifo usr/lib/debug/.build-id/01/23456789.debug");
	cr_expect(eq(int, find(), -ENOENT));
}

Test(debug_file, what_is_missing_is_not_looked_for_again_at_once)
{
	build("0x0123456789");
	cr_expect(eq(int, find(), -ENOENT));
	fixture_run(&x, "cp prog.debug app/");
	cr_expect(eq(int, find(), -ENOENT));
	use_root(x.dir);
	cr_expect(zero(int, find()));
}

Test(debug_file, a_link_of_strange_names_leads_nowhere)
{
	static const char *const names[] = {"../secret", "/etc/passwd", "..", ""};

	build("none");
	fixture_run(&x,
		    "cp prog.debug secret && cp app/prog plain && objcopy -R .gnu_debuglink plain");
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		char section[32] = "";

		strcpy(section, names[i]);
		fixture_write(&x, "link", section, 24);
		fixture_run(&x, "objcopy --add-section .gnu_debuglink=link plain app/prog");
		use_root(x.dir);
		cr_expect(eq(int, find(), -ENOENT), "%s", names[i]);
	}
}

/* ---- symbols out of them ---- */

static uint64_t hidden_addr(void)
{
	return fixture_symbol(fixture_path(&x, "whole"), "hidden", 0);
}

#define EXPECT_NAME(path, root, want)                                                              \
	do {                                                                                       \
		struct vp_symbolizer *s_ = symbolized(fixture_path(&x, path), root);               \
		cr_expect(eq(str, (char *)symbolized_name(s_, hidden_addr()), (char *)(want)));    \
		vp_symbolizer_free(s_);                                                            \
	} while (0)

Test(debug_file, names_a_stripped_program_through_its_link)
{
	build("none");
	EXPECT_NAME("app/prog", "/", vp_sym_reason_text(VP_SYM_NO_SYMBOLS));
	fixture_run(&x, "cp prog.debug app/.debug/");
	EXPECT_NAME("app/prog", "/", "hidden");
	/* Beside the file itself, not beside the link that leads to it. */
	fixture_run(&x, "mkdir bin && ln -s ../app/prog bin/prog");
	EXPECT_NAME("bin/prog", "/", "hidden");
}

Test(debug_file, completes_a_symbol_table_that_was_stripped_in_part)
{
	build("none");
	fixture_run(&x, "strip -K main -o app/prog whole && cp prog.debug app/ &&"
			" objcopy --add-gnu-debuglink=prog.debug app/prog");
	EXPECT_NAME("app/prog", "/", "hidden");
}

Test(debug_file, of_lld_is_addressed_by_the_program_s_segments)
{
	if (access("/usr/bin/ld.lld", X_OK) || access("/usr/bin/clang", X_OK))
		cr_skip("clang and lld are not installed");
	fixture_run(&x, "clang -O1 -g -fuse-ld=lld -o whole m.c &&"
			" objcopy --only-keep-debug whole prog.debug && strip -o app/prog whole &&"
			" objcopy --add-gnu-debuglink=prog.debug app/prog && cp prog.debug app/");
	EXPECT_NAME("app/prog", "/", "hidden");
}

Test(debug_file, with_compressed_sections_has_the_same_symbols)
{
	build("none");
	fixture_run(&x, "objcopy --compress-debug-sections prog.debug &&"
			" strip -o app/prog whole && cp prog.debug app/ &&"
			" objcopy --add-gnu-debuglink=prog.debug app/prog");
	EXPECT_NAME("app/prog", "/", "hidden");
}

/* ---- a process with a root of its own ---- */

/* A child whose root is DIR/in; reports by a byte when it is. 0: not allowed. */
static pid_t in_root(const char *root)
{
	int ready[2];
	char byte = 0;

	cr_assert(zero(int, pipe(ready)));
	pid_t pid = target_fork();
	if (!pid) {
		byte = !chroot(root) && !chdir("/");
		if (write(ready[1], &byte, 1) == 1 && byte)
			pause();
		_exit(0);
	}
	cr_assert(eq(long, read(ready[0], &byte, 1), 1));
	close(ready[0]);
	close(ready[1]);
	if (byte)
		return pid;
	waitpid(pid, NULL, 0);
	return 0;
}

Test(debug_file, is_found_in_the_root_of_the_process)
{
	build("0x0123456789");
	fixture_run(&x, "mkdir -p in/app in/usr/lib/debug/.build-id/01");
	use_root("/");
	pid_t pid = in_root(fixture_path(&x, "in"));
	if (!pid)
		cr_skip("not allowed to change the root");

	cr_expect(eq(int, find_for((uint32_t)pid, "/app/prog"), -ENOENT));
	use_root("/");
	fixture_run(&x, "cp prog.debug in/app/");
	cr_assert(zero(int, find_for((uint32_t)pid, "/app/prog")));
	cr_expect(eq(str, found.path, (char *)"/app/prog.debug"));
	cr_expect(eq(u32, found.tgid, (uint32_t)pid));

	fixture_run(&x, "cp prog.debug in/usr/lib/debug/.build-id/01/23456789.debug");
	cr_assert(zero(int, find_for((uint32_t)pid, "/app/prog")));
	cr_expect(eq(int, found.way, DEBUG_BY_BUILD_ID));
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

Test(debug_file, the_host_s_build_id_directory_comes_before_the_process_s)
{
	build("0x0123456789");
	fixture_run(&x, "mkdir -p in/usr/lib/debug/.build-id/01 &&"
			" cp prog.debug in/usr/lib/debug/.build-id/01/23456789.debug &&"
			" cp prog.debug usr/lib/debug/.build-id/01/23456789.debug");
	pid_t pid = in_root(fixture_path(&x, "in"));
	if (!pid)
		cr_skip("not allowed to change the root");
	cr_assert(zero(int, find_for((uint32_t)pid, "/app/prog")));
	cr_expect(zero(u32, found.tgid));
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

Test(debug_file, names_what_a_process_with_a_root_of_its_own_has_mapped)
{
	struct vp_symbolizer *s;
	struct vp_symbol sym;
	struct stat st;
	uint64_t offset;

	build("none");
	fixture_run(&x, "mkdir -p in/app/.debug && cp app/prog in/app/ &&"
			" cp prog.debug in/app/.debug/");
	pid_t pid = in_root(fixture_path(&x, "in"));
	if (!pid)
		cr_skip("not allowed to change the root");

	cr_assert(zero(int, stat(fixture_path(&x, "in/app/prog"), &st)));
	const struct vp_mapped_file m = {
		.tgid = (uint32_t)pid,
		.name = "/app/prog",
		.user_ino = st.st_ino,
		.user_dev_major = major(st.st_dev),
		.user_dev_minor = minor(st.st_dev),
	};
	cr_assert(zero(int, vp_symbolizer_new(&s, NULL)));
	cr_assert(zero(int, vp_symbolizer_load(s, 1, &m)));
	cr_assert(zero(int, vp_symbolizer_offset_of(s, 1, hidden_addr(), &offset)));
	cr_assert(zero(int, vp_symbolizer_file(s, 1, offset, &sym)), "%s",
		  vp_sym_reason_text(sym.reason));
	cr_expect(eq(str, (char *)sym.name, "hidden"));
	cr_expect(eq(int, sym.source, VP_SYM_SYMTAB));
	vp_symbolizer_free(s);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* ---- what DWARF refers to ---- */

static int find_alt(const char *path, const char *at)
{
	struct elf_file *f;
	int fd = open(fixture_path(&x, path), O_RDONLY | O_CLOEXEC), err;

	cr_assert(zero(int, elf_file_open(&f, fd)));
	err = debug_finder_open_alt(finder, f, &(struct debug_origin){0, at}, &found);
	elf_file_close(f);
	close(fd);
	if (!err)
		close(found.fd);
	return err;
}

/* .gnu_debugaltlink as dwz writes it: a path, a NUL and a build id. */
static void link_alt(const char *path)
{
	char section[64] = "";

	strcpy(section, path);
	memcpy(section + strlen(path) + 1, "\x01\x23\x45\x67\x89", 5);
	fixture_write(&x, "alt", section, strlen(path) + 6);
	fixture_run(&x, "objcopy --add-section .gnu_debugaltlink=alt prog.debug app/linked.debug");
}

Test(debug_file, the_file_that_dwz_shares_is_found_by_path_or_build_id)
{
	build("0xabcdef");
	cr_expect(eq(int, find_alt("prog.debug", "/app/prog.debug"), -ENODATA));
	fixture_run(&x, "gcc -g -Wl,--build-id=0x0123456789 -o shared m.c && mkdir dwz");

	link_alt("../dwz/shared");
	cr_expect(eq(int, find_alt("app/linked.debug", "/app/linked.debug"), -ENOENT));
	fixture_run(&x, "cp shared dwz/");
	cr_assert(zero(int, find_alt("app/linked.debug", "/app/linked.debug")));
	cr_expect(eq(str, found.path, (char *)"/app/../dwz/shared"));

	link_alt("/dwz/shared");
	cr_assert(zero(int, find_alt("app/linked.debug", NULL)));

	fixture_run(&x, "cp shared usr/lib/debug/.build-id/01/23456789.debug");
	cr_assert(zero(int, find_alt("app/linked.debug", NULL)));
	cr_expect(eq(int, found.way, DEBUG_BY_BUILD_ID));

	/* Another build at the same path. */
	fixture_run(&x, "rm usr/lib/debug/.build-id/01/* &&"
			" gcc -g -Wl,--build-id=0x99 -o dwz/shared m.c");
	cr_expect(eq(int, find_alt("app/linked.debug", NULL), -ENOENT));
}

static int find_dwo(const char *comp_dir, const char *name)
{
	int err = debug_finder_open_dwo(finder, &(struct debug_origin){0, "/app/prog"}, comp_dir,
					name, &found);

	if (!err)
		close(found.fd);
	return err;
}

Test(debug_file, split_dwarf_is_found_where_it_was_compiled_or_beside_the_program)
{
	fixture_run(&x, "mkdir -p src/obj && touch src/obj/a.dwo app/b.dwo app/prog.dwp");
	cr_assert(zero(int, find_dwo("/src", "obj/a.dwo")));
	cr_expect(eq(str, found.path, (char *)"/src/obj/a.dwo"));
	cr_assert(zero(int, find_dwo("/gone", "/src/obj/a.dwo")));
	cr_expect(eq(str, found.path, (char *)"/src/obj/a.dwo"));
	cr_assert(zero(int, find_dwo(NULL, "b.dwo")));
	cr_expect(eq(str, found.path, (char *)"/app/b.dwo"));
	cr_assert(zero(int, find_dwo("/gone", "obj/b.dwo")));
	cr_expect(eq(str, found.path, (char *)"/app/b.dwo"));
	cr_expect(eq(int, find_dwo("/src", "c.dwo"), -ENOENT));

	cr_assert(zero(int, debug_finder_open_dwp(finder, &(struct debug_origin){0, "/app/prog"},
						  &found)));
	close(found.fd);
	cr_expect(eq(str, found.path, (char *)"/app/prog.dwp"));
}

/* ---- debug files from elsewhere ---- */

static int fetch_cnt;

static int fetch(void *ctx, const uint8_t *id, size_t len)
{
	fetch_cnt++;
	cr_expect(eq(sz, len, 5));
	cr_expect(eq(u8, id[0], 1));
	return ctx ? open(ctx, O_RDONLY | O_CLOEXEC) : -ENOENT;
}

static void use_fetch(const char *path)
{
	debug_finder_free(finder);
	cr_assert(zero(int, debug_finder_new(&finder, &(struct debug_finder_opts){
							      .host_root = x.dir,
							      .fetch = fetch,
							      .fetch_ctx = (void *)(uintptr_t)path,
						      })));
}

Test(debug_file, is_fetched_when_it_is_nowhere_and_only_once_when_that_fails)
{
	build("0x0123456789");
	use_fetch(NULL);
	cr_expect(eq(int, find(), -ENOENT));
	cr_expect(eq(int, find(), -ENOENT));
	cr_expect(eq(int, fetch_cnt, 1));

	use_fetch(fixture_path(&x, "prog.debug"));
	EXPECT_FOUND("", DEBUG_BY_FETCH);
	fixture_run(&x, "cp prog.debug app/");
	EXPECT_FOUND("/app/prog.debug", DEBUG_BY_LINK);
	cr_expect(eq(int, fetch_cnt, 2));
}

Test(debug_file, what_was_fetched_must_be_the_right_build)
{
	build("0x0123456789");
	fixture_run(&x, "gcc -g -Wl,--build-id=0x0123456788 -o other m.c");
	use_fetch(fixture_path(&x, "other"));
	cr_expect(eq(int, find(), -ENOENT));
	cr_expect(eq(int, fetch_cnt, 1));
}
