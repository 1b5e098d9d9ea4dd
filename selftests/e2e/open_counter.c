// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * open_counter OBJECT RESULT COMMAND ARGS…: runs the command, ends with its exit code and writes
 * one line to RESULT: opens of /proc/PID/maps and its like, PROCMAP_QUERY calls, all opens.
 * Only x86-64. For no_maps_opens.sh.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "open_counter.h"

#define FAILED 125

static void die(const char *what)
{
	fprintf(stderr, "open_counter: %s: %s\n", what, strerror(errno));
	exit(FAILED);
}

static struct bpf_object *load(const char *path)
{
	struct bpf_object *obj = bpf_object__open_file(path, NULL);
	struct bpf_program *prog;

	if (!obj || bpf_object__load(obj))
		die("load");
	bpf_object__for_each_program(prog, obj)
		if (!bpf_program__attach(prog))
			die(bpf_program__name(prog));
	return obj;
}

/* A child that waits for a byte before it becomes the command. */
static pid_t start(char **argv, int *go)
{
	int fds[2];
	pid_t pid;
	char byte;

	if (pipe(fds))
		die("pipe");
	pid = fork();
	if (pid < 0)
		die("fork");
	if (!pid) {
		close(fds[1]);
		if (read(fds[0], &byte, 1) != 1)
			_exit(FAILED);
		close(fds[0]);
		execvp(argv[0], argv);
		_exit(127);
	}
	close(fds[0]);
	*go = fds[1];
	return pid;
}

static void follow(struct bpf_object *obj, __u32 tgid)
{
	int fd = bpf_object__find_map_fd_by_name(obj, "followed");
	__u8 one = 1;

	if (bpf_map_update_elem(fd, &tgid, &one, BPF_ANY))
		die("follow");
}

/* The program has one global variable: the counts. */
static void read_counts(struct bpf_object *obj, struct open_counts *c)
{
	struct bpf_map *map;
	__u32 zero = 0;

	bpf_object__for_each_map(map, obj) {
		if (!strstr(bpf_map__name(map), ".bss"))
			continue;
		if (bpf_map__value_size(map) < sizeof(*c) ||
		    bpf_map_lookup_elem(bpf_map__fd(map), &zero, c))
			die("counters");
		return;
	}
	die("no counters");
}

int main(int argc, char **argv)
{
	struct bpf_object *obj;
	struct open_counts counts;
	int go, status;
	FILE *result;
	pid_t pid;

	if (argc < 4) {
		fprintf(stderr, "usage: open_counter OBJECT RESULT COMMAND ARGS...\n");
		return FAILED;
	}
	obj = load(argv[1]);
	pid = start(argv + 3, &go);
	follow(obj, (__u32)pid);
	if (write(go, "", 1) != 1)
		die("go");
	close(go);
	if (waitpid(pid, &status, 0) != pid)
		die("waitpid");
	read_counts(obj, &counts);
	result = fopen(argv[2], "w");
	if (!result)
		die(argv[2]);
	fprintf(result, "%llu %llu %llu\n", counts.map_opens, counts.map_queries, counts.all_opens);
	fclose(result);
	bpf_object__close(obj);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
