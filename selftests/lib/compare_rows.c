/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * usage: compare-rows [-t SECONDS] [FILE…]
 *
 * Compares the unwind rows of files with libdw's answers; files that have none are passed over.
 * Without a FILE, their names come from standard input, one a line. Begins no file after SECONDS
 * of CPU time. Totals at the end. Exit 1 if there was a difference.
 */
#include "rows_oracle.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct totals {
	struct rows_oracle_counts counts;
	uint64_t files, without, not_begun, odd, bad, rules_max;
	clock_t limit;
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
	int fd, reason;

	if (t->limit && clock() > t->limit) {
		t->not_begun++;
		return;
	}
	fd = open(path, O_RDONLY | O_CLOEXEC);
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
		    rows_oracle_compare(rows, fd, path, stdout, &t->counts)) {
			printf("%s: has rows, but none for libdw\n", path);
			t->counts.differences++;
		}
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

static void print_totals(const struct totals *t)
{
	printf("%" PRIu64 " files, %" PRIu64 " without rows, %" PRIu64 " not begun\n", t->files,
	       t->without, t->not_begun);
	printf("%" PRIu64 " rows, at most %" PRIu64 " rules a file, %" PRIu64
	       " not expressible; %" PRIu64 " FDEs damaged\n",
	       t->counts.rows, t->rules_max, t->odd, t->bad);
	printf("%" PRIu64 " pieces compared, %" PRIu64 " registers lost, %" PRIu64
	       " without a rule, %" PRIu64 " differences\n",
	       t->counts.pieces, t->counts.lost, t->counts.none, t->counts.differences);
}

int main(int argc, char **argv)
{
	struct totals t = {.files = 0};
	int first = 1;

	if (argc > 2 && !strcmp(argv[1], "-t")) {
		t.limit = atoi(argv[2]) * CLOCKS_PER_SEC;
		first = 3;
	}
	if (argc == first)
		compare_list(&t, stdin);
	for (int i = first; i < argc; i++)
		compare_file(&t, argv[i]);
	print_totals(&t);
	return t.counts.differences != 0;
}
