/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "fixture_elf.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static _Noreturn void give_up(const char *what, const char *which)
{
	fprintf(stderr, "fixture: %s: %s\n", what, which);
	abort();
}

void fixture_new(struct fixture *x)
{
	strcpy(x->dir, "/tmp/vmaprof-fixture-XXXXXX");
	if (!mkdtemp(x->dir))
		give_up("mkdtemp", x->dir);
	/* as user code would see the mapped file: under its real name */
	chmod(x->dir, 0755);
}

void fixture_remove(struct fixture *x)
{
	fixture_run(x, "rm -rf '%s'", x->dir);
}

const char *fixture_path(const struct fixture *x, const char *name)
{
	static char paths[8][256];
	static unsigned int turn;
	char *path = paths[turn++ % 8];

	snprintf(path, sizeof(paths[0]), "%s/%s", x->dir, name);
	return path;
}

const char *fixture_write(const struct fixture *x, const char *name, const void *bytes, size_t n)
{
	const char *path = fixture_path(x, name);
	FILE *f = fopen(path, "w");

	if (!f || fwrite(bytes, 1, n, f) != n || fclose(f))
		give_up("cannot write", path);
	return path;
}

const char *fixture_text(const struct fixture *x, const char *name, const char *text)
{
	return fixture_write(x, name, text, strlen(text));
}

static int run(const struct fixture *x, const char *fmt, va_list ap)
{
	char command[4096];
	int n = snprintf(command, sizeof(command), "cd '%s' && ", x->dir);

	vsnprintf(command + n, sizeof(command) - (size_t)n, fmt, ap);
	return system(command);
}

void fixture_run(const struct fixture *x, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	if (run(x, fmt, ap))
		give_up("command failed", fmt);
	va_end(ap);
}

int fixture_try(const struct fixture *x, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	int status = run(x, fmt, ap);
	va_end(ap);
	return status == 0;
}

unsigned char *fixture_read(const char *path, size_t *size)
{
	struct stat st;
	FILE *f = fopen(path, "r");

	if (!f || fstat(fileno(f), &st))
		give_up("cannot read", path);

	unsigned char *bytes = malloc((size_t)st.st_size + 1);
	if (!bytes || fread(bytes, 1, (size_t)st.st_size, f) != (size_t)st.st_size)
		give_up("cannot read", path);
	fclose(f);
	*size = (size_t)st.st_size;
	return bytes;
}

uint64_t fixture_symbol(const char *path, const char *name, int dynamic)
{
	char command[512], line[1024], type;
	uint64_t addr = 0, found = UINT64_MAX;
	int pos;

	snprintf(command, sizeof(command), "nm %s '%s'", dynamic ? "-D" : "", path);
	FILE *f = popen(command, "r");
	while (f && fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = '\0';
		if (sscanf(line, "%" SCNx64 " %c %n", &addr, &type, &pos) >= 2 &&
		    !strcmp(line + pos, name))
			found = addr;
	}
	if (!f || pclose(f) || found == UINT64_MAX)
		give_up("no such symbol", name);
	return found;
}
