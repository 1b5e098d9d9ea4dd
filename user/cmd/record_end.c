/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "record_end.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* For the handler, which any thread may run. */
static char *temporary_file;
static bool is_quiet;
static atomic_int harmless_cnt = 1;
static atomic_uint came_cnt;

static void give_up(int sig)
{
	if (temporary_file)
		unlink(temporary_file);
	_exit(128 + sig);
}

static void on_signal(int sig)
{
	static const char text[] =
		"the recording is over, its result is being written; again: throws it away\n";
	int left = atomic_fetch_sub(&harmless_cnt, 1);

	if (left <= 0)
		give_up(sig);
	atomic_fetch_add(&came_cnt, 1);
	if (left == 1 && !is_quiet)
		(void)!write(STDERR_FILENO, text, sizeof(text) - 1);
}

/* Not SIG_IGN: that would throw away one that came before the wait and is to end it. */
static void on_hangup(int sig)
{
	(void)sig;
}

int vp_end_signals_take(const char *temporary, bool quiet)
{
	struct sigaction act = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
	struct sigaction hangup = {.sa_handler = on_hangup, .sa_flags = SA_RESTART};
	struct sigaction quit = {.sa_handler = give_up};

	is_quiet = quiet;
	if (temporary) {
		temporary_file = strdup(temporary);
		if (!temporary_file)
			return -ENOMEM;
	}
	sigaction(SIGINT, &act, NULL);
	sigaction(SIGTERM, &act, NULL);
	sigaction(SIGHUP, &hangup, NULL);
	sigaction(SIGQUIT, &quit, NULL);
	return 0;
}

void vp_end_signals_used(void)
{
	atomic_fetch_sub(&harmless_cnt, 1);
}

void vp_end_signals_allow(void)
{
	atomic_fetch_add(&harmless_cnt, 1);
}

unsigned int vp_end_signals_cnt(void)
{
	return atomic_load(&came_cnt);
}
