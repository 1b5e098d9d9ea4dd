// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * adopted init DAEMON APP SECONDS: what a container's first process often does: starts DAEMON, whose
 * child is left to it, and becomes APP, another program. DAEMON and APP are copies of this one:
 * adopted daemon APP SECONDS: forks and ends; the child waits until its parent is APP, then spins.
 * adopted app SECONDS: spins.
 */
#include "workload.h"

#include <libgen.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

static volatile unsigned long counter;

__attribute__((noipa)) static void adopted_spin(const char *seconds)
{
	struct timespec now, start;

	clock_gettime(CLOCK_MONOTONIC, &start);
	do {
		for (int i = 0; i < 100000; i++)
			counter++;
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while (now.tv_sec - start.tv_sec < atol(seconds));
}

static void init(char **argv)
{
	char *daemon[] = {argv[2], "daemon", argv[3], argv[4], NULL};
	char *app[] = {argv[3], "app", argv[4], NULL};

	if (prctl(PR_SET_CHILD_SUBREAPER, 1))
		wl_die("prctl");
	if (fork() == 0) {
		execv(daemon[0], daemon);
		wl_die(daemon[0]);
	}
	wait(NULL);
	execv(app[0], app);
	wl_die(app[0]);
}

/* Is that the program which our parent runs now? */
static int is_parent(const char *name)
{
	char path[64], comm[32] = "";
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/comm", getppid());
	f = fopen(path, "r");
	if (f && fgets(comm, sizeof(comm), f))
		comm[strcspn(comm, "\n")] = '\0';
	if (f)
		fclose(f);
	return !strcmp(comm, name);
}

int main(int argc, char **argv)
{
	if (argc == 5 && !strcmp(argv[1], "init"))
		init(argv);
	if (argc == 4 && !strcmp(argv[1], "daemon")) {
		if (fork())
			_exit(0);
		while (!is_parent(basename(argv[2])))
			usleep(1000);
		adopted_spin(argv[3]);
	}
	if (argc == 3)
		adopted_spin(argv[2]);
	return 0;
}
