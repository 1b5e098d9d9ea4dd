/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "procmaps.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

char *procfs_text(pid_t pid, const char *name)
{
	char path[64], *text = NULL;
	size_t len = 0, room = 0, n;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	f = fopen(path, "re");
	if (!f)
		abort();
	do {
		room = room * 2 + 65536;
		text = realloc(text, room + 1);
		if (!text)
			abort();
		n = fread(text + len, 1, room - len, f);
		len += n;
	} while (n > 0);
	fclose(f);
	text[len] = '\0';
	return text;
}

/* The kernel writes a newline as \012, and nothing else so. */
static char *unescaped(const char *s)
{
	char *out = malloc(strlen(s) + 1), *o = out;

	if (!out)
		abort();
	while (*s) {
		if (!strncmp(s, "\\012", 4)) {
			*o++ = '\n';
			s += 4;
		} else {
			*o++ = *s++;
		}
	}
	*o = '\0';
	return out;
}

static void add_row(struct procmaps *m, const char *line)
{
	struct procmaps_row r;
	int name = 0;

	if (sscanf(line,
		   "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %" SCNx32 ":%" SCNx32 " %" SCNu64 " %n",
		   &r.start, &r.end, r.prot, &r.pgoff, &r.maj, &r.min, &r.ino, &name) < 7)
		abort();
	if (!strcmp(line + name, "[vsyscall]"))
		return;
	r.name = unescaped(line + name);
	m->row = reallocarray(m->row, m->cnt + 1, sizeof(r));
	if (!m->row)
		abort();
	m->row[m->cnt++] = r;
}

void procmaps_read(struct procmaps *m, pid_t pid)
{
	char *text = procfs_text(pid, "maps"), *rest = text, *line;

	*m = (struct procmaps){0};
	while ((line = strsep(&rest, "\n"))) {
		if (*line)
			add_row(m, line);
	}
	free(text);
}

void procmaps_free(struct procmaps *m)
{
	for (size_t i = 0; i < m->cnt; i++)
		free(m->row[i].name);
	free(m->row);
	*m = (struct procmaps){0};
}

const struct procmaps_row *procmaps_find(const struct procmaps *m, uint64_t addr)
{
	for (size_t i = 0; i < m->cnt; i++) {
		if (addr >= m->row[i].start && addr < m->row[i].end)
			return &m->row[i];
	}
	return NULL;
}

const struct procmaps_row *procmaps_named(const struct procmaps *m, const char *name, int any)
{
	for (size_t i = 0; i < m->cnt; i++) {
		if (!strcmp(m->row[i].name, name) && (any || m->row[i].prot[2] == 'x'))
			return &m->row[i];
	}
	return NULL;
}

bool procfs_is_asleep(pid_t tid)
{
	char *text = procfs_text(tid, "stat"), *name_end = strrchr(text, ')');
	bool yes = name_end && name_end[2] == 'S';

	free(text);
	return yes;
}
