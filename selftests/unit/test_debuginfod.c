/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Debug files from a server: a directory, which the client takes for one, and one that is silent. */
#include "fixture_elf.h"
#include "symbolize/debuginfod.h"
#include "symbolize/symbolizer.h"
#include "util/clock.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define FILE_ID 1
#define FAR_NS	20000000000

static struct fixture x;
static struct debuginfod *d;

static void set_up(void)
{
	char url[128];

	fixture_new(&x);
	snprintf(url, sizeof(url), "file://%s", x.dir);
	setenv("DEBUGINFOD_URLS", url, 1);
	setenv("DEBUGINFOD_CACHE_PATH", fixture_path(&x, "cache"), 1);
	fixture_text(&x, "m.c",
		     "__attribute__((noinline)) static int hidden(int n) { return n * 3; }\n"
		     "int main(int c, char **v) { (void)v; return hidden(c); }\n");
	fixture_run(&x, "gcc -O1 -g -Wl,--build-id=0x0123456789abcdef -o whole m.c &&"
			" strip -o prog whole");
}

static void tear_down(void)
{
	debuginfod_free(d);
	fixture_remove(&x);
}

/* Far longer than debuginfod_new() is told to wait, far less than the client would by itself. */
TestSuite(debuginfod, .init = set_up, .fini = tear_down, .timeout = 40);

static void need(uint64_t silence_ns)
{
	int err = debuginfod_new(&d, silence_ns);

	if (err == -ENOENT)
		cr_skip("libdebuginfod is not installed");
	cr_assert(zero(int, err));
}

static const char *name_of_hidden(void)
{
	const struct vp_symbolizer_opts opts = {
		.demangle = 1, .host_root = x.dir, .fetch = debuginfod_fetch, .fetch_ctx = d};
	static char name[64];
	struct vp_symbolizer *s;
	struct vp_symbol sym;
	uint64_t offset;

	cr_assert(zero(int, vp_symbolizer_new(&s, &opts)));
	cr_assert(zero(int, vp_symbolizer_load_path(s, FILE_ID, fixture_path(&x, "prog"))));
	cr_assert(zero(
		int, vp_symbolizer_offset_of(s, FILE_ID,
					     fixture_symbol(fixture_path(&x, "whole"), "hidden", 0),
					     &offset)));
	debuginfod_end_at(d, vp_now_ns() + FAR_NS);
	vp_symbolizer_read_fetched(s, FILE_ID);
	vp_symbolizer_file(s, FILE_ID, offset, &sym);
	snprintf(name, sizeof(name), "%s", sym.name ? sym.name : "");
	vp_symbolizer_free(s);
	return name;
}

Test(debuginfod, names_what_is_nowhere_else)
{
	struct debuginfod_stats st;

	need(FAR_NS);
	cr_expect(eq(str, (char *)name_of_hidden(), ""));
	debuginfod_get_stats(d, &st);
	cr_expect(eq(sz, st.asked_cnt, 1));
	cr_expect(eq(sz, st.missing_cnt, 1));
	debuginfod_free(d);

	/* The client remembers that there was none. */
	fixture_run(&x, "rm -rf cache && mkdir -p buildid/0123456789abcdef &&"
			" objcopy --only-keep-debug whole buildid/0123456789abcdef/debuginfo");
	need(FAR_NS);
	cr_expect(eq(str, (char *)name_of_hidden(), "hidden"));
	debuginfod_get_stats(d, &st);
	cr_expect(eq(sz, st.found_cnt, 1));
}

Test(debuginfod, another_build_s_file_is_not_believed)
{
	need(FAR_NS);
	fixture_run(&x, "mkdir -p buildid/0123456789abcdef &&"
			" gcc -g -Wl,--build-id=0x99 -o buildid/0123456789abcdef/debuginfo m.c");
	cr_expect(eq(str, (char *)name_of_hidden(), ""));
}

Test(debuginfod, without_a_server_there_is_none)
{
	setenv("DEBUGINFOD_URLS", "", 1);
	cr_expect(eq(int, debuginfod_new(&d, 1), -EDESTADDRREQ));
}

/* It takes connections, as the kernel does for it, and never says a word. */
static void serve_silence(void)
{
	struct sockaddr_in addr = {.sin_family = AF_INET,
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(addr);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char url[64];

	cr_assert(ge(int, fd, 0));
	cr_assert(zero(int, bind(fd, (struct sockaddr *)&addr, len)));
	cr_assert(zero(int, listen(fd, 8)));
	cr_assert(zero(int, getsockname(fd, (struct sockaddr *)&addr, &len)));
	snprintf(url, sizeof(url), "http://127.0.0.1:%u", ntohs(addr.sin_port));
	setenv("DEBUGINFOD_URLS", url, 1);
}

Test(debuginfod, a_server_that_is_silent_is_given_up_and_not_asked_again)
{
	static const uint8_t id[20] = {1, 2, 3};
	struct debuginfod_stats st;

	serve_silence();
	need(500000000);
	/* nobody waits meanwhile */
	cr_expect(eq(int, debuginfod_fetch(d, id, sizeof(id)), -EAGAIN));
	debuginfod_end_at(d, vp_now_ns() + FAR_NS);
	cr_expect(eq(int, debuginfod_fetch(d, id, sizeof(id)), -ETIME));
	for (uint8_t i = 0; i < 100; i++)
		cr_expect(eq(int, debuginfod_fetch(d, &i, 1), -ETIME));
	debuginfod_get_stats(d, &st);
	cr_expect(eq(sz, st.asked_cnt, 101));
	cr_expect(eq(sz, st.unanswered_cnt, 101));
	cr_expect(zero(sz, debuginfod_left(d)));
}

Test(debuginfod, at_the_end_no_file_is_waited_for)
{
	static const uint8_t id[20] = {1, 2, 3};

	serve_silence();
	need(FAR_NS);
	cr_expect(eq(int, debuginfod_fetch(d, id, sizeof(id)), -EAGAIN));
	debuginfod_end_at(d, vp_now_ns());
	cr_expect(eq(int, debuginfod_fetch(d, id, sizeof(id)), -ETIME));
}
