// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "run_case.h"

#include "facts.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define DEFAULT_LIMIT_S 90

/* Shared with the child, so that what a case found before it died is not lost. */
struct findings {
	volatile int is_over; /* the case came to its end */
	int failed, skipped;
	struct ct_result result;
};

static struct findings *found;
static bool may_endanger;

/* ---- in the case ------------------------------------------------------------------------------ */

static void say(const char *format, va_list args)
{
	char *text = found->result.text;
	size_t len = strlen(text), room = sizeof(found->result.text) - len;

	if (room < 2)
		return;
	vsnprintf(text + len, room - 1, format, args);
	strcat(text, "\n");
}

void ct_note(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say(format, args);
	va_end(args);
}

void ct_end(void)
{
	found->is_over = 1;
	fflush(NULL);
	_exit(0);
}

void ct_skip(const char *format, ...)
{
	va_list args;

	found->skipped = 1;
	va_start(args, format);
	say(format, args);
	va_end(args);
	ct_end();
}

bool ct_may_endanger(void)
{
	return may_endanger;
}

void ct_known_bug(const char *fix)
{
	snprintf(found->result.fix, sizeof(found->result.fix), "%s", fix);
}

void ct_check(bool ok, const char *file, int line, const char *format, ...)
{
	const char *name = strrchr(file, '/');
	va_list args;
	char text[512];

	if (ok)
		return;
	found->failed++;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	ct_note("%s:%d: %s", name ? name + 1 : file, line, text);
}

/* ---- around it -------------------------------------------------------------------------------- */

static unsigned int now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (unsigned int)(t.tv_sec * 1000 + t.tv_nsec / 1000000);
}

void ct_die_with(pid_t parent)
{
	pid_t now;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	now = getppid();
	/* 0: it is in another PID namespace */
	if (now && now != parent)
		_exit(1);
}

pid_t ct_fork(void)
{
	pid_t parent = getpid(), pid = fork();

	if (pid == 0)
		ct_die_with(parent);
	return pid;
}

static volatile sig_atomic_t stopped_by;

static void on_signal(int sig)
{
	stopped_by = sig;
}

/* What is ignored stays so, as for who is run by nohup. */
static void handle_signals(void (*handler)(int))
{
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
	struct sigaction action = {.sa_handler = handler}, before;

	for (size_t i = 0; i < sizeof(signals) / sizeof(*signals); i++) {
		if (!sigaction(signals[i], NULL, &before) && before.sa_handler != SIG_IGN)
			sigaction(signals[i], &action, NULL);
	}
}

void run_case_mind_signals(void)
{
	handle_signals(on_signal);
}

int run_case_stopped_by(void)
{
	return stopped_by;
}

static void be_the_case(const struct ct_case *c)
{
	handle_signals(SIG_DFL);
	setpgid(0, 0);
	c->run();
	ct_end();
}

/* Its status, or -1 and killed: it outstayed its time, or a signal ends the run. */
static int wait_for(pid_t pid, unsigned int limit_s)
{
	unsigned int until = now_ms() + limit_s * 1000;
	int status;

	for (;;) {
		if (waitpid(pid, &status, WNOHANG) == pid)
			return status;
		if ((int)(now_ms() - until) > 0 || stopped_by)
			break;
		poll(NULL, 0, 5);
	}
	kill(pid, SIGKILL);
	/* a process whose mmap_lock has leaked does not die: do not wait for ever */
	for (int i = 0; i < 200; i++) {
		if (waitpid(pid, &status, WNOHANG) == pid)
			return -1;
		poll(NULL, 0, 10);
	}
	ct_note("it cannot be killed");
	return -1;
}

static enum ct_verdict verdict_of(const struct findings *f)
{
	bool has_bug = f->result.fix[0] != '\0';

	if (f->skipped)
		return CT_SKIP;
	if (f->failed)
		return has_bug ? CT_XFAIL : CT_FAIL;
	return has_bug ? CT_XPASS : CT_PASS;
}

static void run_in_child(const struct ct_case *c)
{
	unsigned int limit_s = c->limit_s ? c->limit_s : DEFAULT_LIMIT_S;
	pid_t pid;
	int status;

	fflush(NULL);
	pid = ct_fork();
	if (pid == 0)
		be_the_case(c);
	if (pid < 0) {
		ct_check(false, __FILE__, __LINE__, "fork: %s", strerror(errno));
		return;
	}
	status = wait_for(pid, limit_s);
	kill(-pid, SIGKILL);
	if (status < 0)
		ct_check(false, c->name, 0, "stopped after %u s", limit_s);
	else if (!found->is_over)
		ct_check(false, c->name, 0,
			 WIFSIGNALED(status) ? "died of signal %d" : "exited with %d",
			 WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
}

void run_case(const struct ct_case *c, bool dangerous, struct ct_result *out)
{
	unsigned int began = now_ms();

	if (!found)
		found = mmap(NULL, sizeof(*found), PROT_READ | PROT_WRITE,
			     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (found == MAP_FAILED)
		exit(2);
	memset(found, 0, sizeof(*found));
	may_endanger = dangerous || fact_sacrificial();
	if (c->is_dangerous && !may_endanger) {
		found->skipped = 1;
		ct_note("only in a virtual machine: it may cost the kernel (--dangerous)");
	} else {
		run_in_child(c);
	}
	*out = found->result;
	out->verdict = verdict_of(found);
	out->ms = now_ms() - began;
}
