/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "command_files.h"

#include "clock.h"

#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define LIST_BYTES 65536
#define LIST_MS	   500

static bool is_program(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISREG(st.st_mode) && !access(path, X_OK);
}

/* The path that execvp would take. */
static bool find_program(const char *command, char path[PATH_MAX])
{
	const char *dir = getenv("PATH"), *end;

	if (strchr(command, '/')) {
		snprintf(path, PATH_MAX, "%s", command);
		return is_program(path);
	}
	for (; dir && *dir; dir = *end ? end + 1 : end) {
		end = strchrnul(dir, ':');
		snprintf(path, PATH_MAX, "%.*s/%s", (int)(end - dir), dir, command);
		if (is_program(path))
			return true;
	}
	return false;
}

/* "#!/bin/sh -e": the interpreter. */
static bool script_interpreter(int fd, char path[PATH_MAX])
{
	char line[256];
	ssize_t n = pread(fd, line, sizeof(line) - 1, 0);
	size_t start, len;

	if (n < 3 || line[0] != '#' || line[1] != '!')
		return false;
	line[n] = '\0';
	start = 2 + strspn(line + 2, " \t");
	len = strcspn(line + start, " \t\r\n");
	snprintf(path, PATH_MAX, "%.*s", (int)len, line + start);
	return len > 0;
}

/* PT_INTERP: the dynamic loader. */
static bool elf_interpreter(int fd, char path[PATH_MAX])
{
	Elf *elf;
	size_t cnt = 0;
	bool found = false;

	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ, NULL);
	if (!elf || elf_getphdrnum(elf, &cnt))
		cnt = 0;
	for (size_t i = 0; i < cnt && !found; i++) {
		GElf_Phdr p;
		ssize_t n;

		if (!gelf_getphdr(elf, (int)i, &p) || p.p_type != PT_INTERP ||
		    p.p_filesz >= PATH_MAX)
			continue;
		n = pread(fd, path, p.p_filesz, (off_t)p.p_offset);
		path[n > 0 ? n : 0] = '\0';
		found = path[0] == '/';
	}
	elf_end(elf);
	return found;
}

/* Runs `loader --list program`; its pid, or -1. */
static pid_t spawn_list(const char *loader, const char *program, int out)
{
	char *const argv[] = {(char *)loader, "--list", (char *)program, NULL};
	posix_spawn_file_actions_t actions;
	pid_t pid;
	int err;

	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
	posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
	err = posix_spawn(&pid, loader, &actions, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	return err ? -1 : pid;
}

/* Until its end, or for so long as is worth waiting. */
static void read_list(int fd, char list[LIST_BYTES])
{
	uint64_t deadline = vp_now_ns() + LIST_MS * 1000000ULL, now;
	size_t len = 0;
	ssize_t n = 1;

	while (n > 0 && len < LIST_BYTES - 1 && (now = vp_now_ns()) < deadline) {
		struct pollfd p = {.fd = fd, .events = POLLIN};

		if (poll(&p, 1, (int)((deadline - now) / 1000000) + 1) <= 0)
			break;
		n = read(fd, list + len, LIST_BYTES - 1 - len);
		len += n > 0 ? (size_t)n : 0;
	}
	list[len] = '\0';
}

/* "\tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f…)", or without the arrow. */
static void add_listed(char *list, struct vp_strings *files)
{
	for (char *save, *line = strtok_r(list, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save)) {
		char *path = strchr(line, '/'), *end = strstr(line, " (0x");

		if (!path || !end || end <= path)
			continue;
		*end = '\0';
		vp_strings_add(files, path);
	}
}

static void add_libraries(const char *loader, const char *program, struct vp_strings *files)
{
	char list[LIST_BYTES];
	int out[2];
	pid_t pid;

	if (pipe2(out, O_CLOEXEC))
		return;
	pid = spawn_list(loader, program, out[1]);
	close(out[1]);
	if (pid > 0) {
		read_list(out[0], list);
		kill(pid, SIGKILL);
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			;
		add_listed(list, files);
	}
	close(out[0]);
}

static void add_program(const char *path, bool may_be_script, struct vp_strings *files)
{
	char interpreter[PATH_MAX];
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);

	if (fd < 0)
		return;
	if (script_interpreter(fd, interpreter)) {
		if (may_be_script)
			add_program(interpreter, false, files);
	} else {
		vp_strings_add(files, path);
		if (elf_interpreter(fd, interpreter) && is_program(interpreter)) {
			vp_strings_add(files, interpreter);
			add_libraries(interpreter, path, files);
		}
	}
	close(fd);
}

void vp_command_files(const char *command, struct vp_strings *files)
{
	char path[PATH_MAX];

	if (find_program(command, path))
		add_program(path, true, files);
}
