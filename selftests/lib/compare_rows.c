/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * usage: compare-rows FILE…, or with no FILE their names from standard input, one a line
 *
 * Compares the unwind rows of files with libdw's answers; files that have none are passed over.
 * One line of totals at the end. Exit 1 if there was a difference.
 */
#include "rows_oracle.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct totals {
	struct rows_oracle_counts counts;
	uint64_t files, without, odd, bad, rules_max;
};

/*
 * libgcrypt's Keccak names a new CFA register while the CFA is an expression. libdw (0.188) then
 * reads one member of a union where it wrote another and may crash.
 */
static bool is_too_much_for_libdw(const char *path)
{
	return strstr(path, "/libgcrypt.so") != NULL;
}

static void add_stats(struct totals *t, const struct vp_rows *rows)
{
	t->files++;
	t->odd += rows->stats.odd_rule_cnt;
	t->bad += rows->stats.bad_fde_cnt;
	if (rows->rule_cnt > t->rules_max)
		t->rules_max = rows->rule_cnt;
}

static void compare_file(struct totals *t, const char *path)
{
	struct vp_rows *rows;
	int fd = open(path, O_RDONLY | O_CLOEXEC), reason;

	if (fd < 0) {
		fprintf(stderr, "%s: %s\n", path, strerror(errno));
		t->without++;
		return;
	}
	reason = vp_rows_compile(&rows, fd);
	if (reason) {
		if (reason != VP_ROWS_NOT_ELF && reason != VP_ROWS_FOREIGN &&
		    reason != VP_ROWS_NO_CFI)
			printf("%s: %d\n", path, reason);
		t->without++;
	} else {
		add_stats(t, rows);
		if (!is_too_much_for_libdw(path) &&
		    rows_oracle_compare(rows, fd, path, stdout, &t->counts))
			printf("%s: has rows, but none for libdw\n", path);
		vp_rows_free(rows);
	}
	close(fd);
}

static void compare_list(struct totals *t, FILE *list)
{
	char *line = NULL;
	size_t cap = 0;
	ssize_t n;

	while ((n = getline(&line, &cap, list)) > 0) {
		if (line[n - 1] == '\n')
			line[n - 1] = '\0';
		compare_file(t, line);
	}
	free(line);
}

int main(int argc, char **argv)
{
	struct totals t = {.files = 0};

	if (argc < 2)
		compare_list(&t, stdin);
	for (int i = 1; i < argc; i++)
		compare_file(&t, argv[i]);
	printf("%" PRIu64 " files, %" PRIu64 " without rows, %" PRIu64 " rows, %" PRIu64
	       " pieces compared, %" PRIu64 " odd, %" PRIu64 " damaged, at most %" PRIu64
	       " rules, %" PRIu64 " registers lost, %" PRIu64 " not expressible, %" PRIu64
	       " differences\n",
	       t.files, t.without, t.counts.rows, t.counts.pieces, t.odd, t.bad, t.rules_max,
	       t.counts.lost, t.counts.none, t.counts.differences);
	return t.counts.differences != 0;
}
