/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * usage: verifier-stats BUDGET OBJECT...
 *
 * Loads every program of the objects alone and prints what the verifier had to do for it:
 *
 *     vp_sample vp_inline=1         41210 of  60000 insns      18.4 ms
 *
 * BUDGET holds a line for each program and configuration, "NAME MAX_INSNS [KNOB=VALUE]…". A
 * knob is a variable in .rodata: code that a knob's default switches off is not verified, so
 * a program is listed with the knobs that make it largest.
 *
 * Exit 1: a program is past its budget, has none, or cannot be loaded though it is not an
 * optional one (SEC("?…")).
 */
#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_LEN       64
#define MAX_LINES      128
#define STATS_BYTES    (64 << 10)
#define LOG_BYTES      (16 << 20)
#define LOG_TAIL_LINES 12

/* libbpf creates no map of size 0; the loader would set these at run time. */
#define RINGBUF_BYTES (1 << 20)
#define MAP_ENTRIES   1024

/* verifier log levels of bpf(2) */
#define LOG_LEVEL_FULL	1
#define LOG_LEVEL_STATS 4

struct budget_line {
	char program[NAME_LEN];
	char knobs[256]; /* "a=1 b=2", may be empty */
	long max_insns;	 /* -1: not in the file */
	bool used;
};

struct budget {
	struct budget_line line[MAX_LINES];
	int cnt;
};

struct stats {
	long insns;
	long time_us;
};

static int read_budget(struct budget *b, const char *path)
{
	char text[512];
	int nr = 0, err = 0;
	FILE *f = fopen(path, "r");

	if (!f)
		return errno == ENOENT ? 0 : -errno;

	while (fgets(text, sizeof(text), f)) {
		struct budget_line *l = &b->line[b->cnt];
		int got;

		nr++;
		text[strcspn(text, "#\n")] = '\0';
		got = sscanf(text, "%63s %ld %255[^\n]", l->program, &l->max_insns, l->knobs);
		if (got < 1)
			continue;
		if (got == 1 || l->max_insns <= 0 || b->cnt == MAX_LINES - 1) {
			fprintf(stderr, "%s:%d: want NAME MAX_INSNS [KNOB=VALUE]...\n", path, nr);
			err = -EINVAL;
			break;
		}
		b->cnt++;
	}
	fclose(f);
	return err;
}

static void size_map(struct bpf_map *m)
{
	if (!m || bpf_map__max_entries(m) != 0)
		return;
	bpf_map__set_max_entries(m, bpf_map__type(m) == BPF_MAP_TYPE_RINGBUF ? RINGBUF_BYTES
									     : MAP_ENTRIES);
}

/* Where a variable of .rodata is: its bytes in the map's initial value, or NULL. */
static void *find_rodata(struct bpf_object *obj, const char *name, size_t *size)
{
	const struct btf *btf = bpf_object__btf(obj);
	struct bpf_map *map = bpf_object__find_map_by_name(obj, ".rodata");
	int sec_id = btf ? btf__find_by_name_kind(btf, ".rodata", BTF_KIND_DATASEC) : -ENOENT;
	const struct btf_var_secinfo *var;
	const struct btf_type *sec;
	size_t bytes = 0;
	char *base;

	if (!map || sec_id < 0)
		return NULL;
	/* const in the prototype; it is what a skeleton of this object writes knobs to */
	base = (char *)bpf_map__initial_value(map, &bytes);
	sec = btf__type_by_id(btf, sec_id);
	var = btf_var_secinfos(sec);
	for (int i = 0; i < btf_vlen(sec); i++, var++) {
		const struct btf_type *t = btf__type_by_id(btf, var->type);

		if (strcmp(btf__name_by_offset(btf, t->name_off), name) != 0)
			continue;
		*size = var->size;
		return base && var->offset + var->size <= bytes ? base + var->offset : NULL;
	}
	return NULL;
}

static int set_knob(struct bpf_object *obj, const char *name, unsigned long long value)
{
	size_t size = 0;
	void *at = find_rodata(obj, name, &size);
	__u32 v32 = value;
	__u16 v16 = value;
	__u8 v8 = value;

	if (!at)
		return -ENOENT;
	switch (size) {
	case 1:
		memcpy(at, &v8, size);
		return 0;
	case 2:
		memcpy(at, &v16, size);
		return 0;
	case 4:
		memcpy(at, &v32, size);
		return 0;
	case 8:
		memcpy(at, &value, size);
		return 0;
	default:
		return -EINVAL;
	}
}

static int set_knobs(struct bpf_object *obj, const char *knobs)
{
	char text[256], name[NAME_LEN], *save = NULL;
	unsigned long long value;

	snprintf(text, sizeof(text), "%s", knobs);
	for (char *k = strtok_r(text, " \t", &save); k; k = strtok_r(NULL, " \t", &save)) {
		int err = -EINVAL;

		if (sscanf(k, "%63[^=]=%lli", name, (long long *)&value) == 2)
			err = set_knob(obj, name, value);
		if (err) {
			fprintf(stderr, "knob %s: %s\n", k, strerror(-err));
			return err;
		}
	}
	return 0;
}

/* Opens the object with one program to load, its verifier log going to log. */
static struct bpf_object *open_one(const char *path, const struct budget_line *l, char *log,
				   size_t log_bytes, int level)
{
	struct bpf_object *obj = bpf_object__open_file(path, NULL);
	struct bpf_program *p;
	struct bpf_map *m;

	if (!obj)
		return NULL;
	bpf_object__for_each_map(m, obj) {
		size_map(m);
		size_map(bpf_map__inner_map(m));
	}
	bpf_object__for_each_program(p, obj) {
		bool wanted = strcmp(bpf_program__name(p), l->program) == 0;

		bpf_program__set_autoload(p, wanted);
		if (wanted) {
			bpf_program__set_log_buf(p, log, log_bytes);
			bpf_program__set_log_level(p, level);
		}
	}
	if (set_knobs(obj, l->knobs)) {
		bpf_object__close(obj);
		errno = EINVAL;
		return NULL;
	}
	return obj;
}

static int load_one(const char *path, const struct budget_line *l, char *log, size_t log_bytes,
		    int level)
{
	struct bpf_object *obj = open_one(path, l, log, log_bytes, level);
	int err;

	if (!obj)
		return -errno;
	err = bpf_object__load(obj);
	bpf_object__close(obj);
	return err;
}

/* The log ends in "verification time 183 usec\nstack depth 0\nprocessed 9 insns (limit …". */
static void parse_stats(const char *log, struct stats *s)
{
	const char *at = strstr(log, "processed ");

	s->insns = at ? strtol(at + strlen("processed "), NULL, 10) : -1;
	at = strstr(log, "verification time ");
	s->time_us = at ? strtol(at + strlen("verification time "), NULL, 10) : -1;
}

static void print_log_tail(const char *path, const struct budget_line *l)
{
	char *log = calloc(1, LOG_BYTES), *from;

	if (!log)
		return;
	load_one(path, l, log, LOG_BYTES, LOG_LEVEL_FULL);
	from = log + strlen(log);
	for (int n = 0; from > log && n <= LOG_TAIL_LINES; from--)
		n += from[-1] == '\n';
	fputs(from, stdout);
	free(log);
}

/* Returns whether all is well. */
static bool check_one(const char *path, const struct budget_line *l, bool optional)
{
	static char log[STATS_BYTES];
	char label[NAME_LEN + sizeof(l->knobs) + 1];
	struct stats s;
	int err;

	snprintf(label, sizeof(label), "%s %s", l->program, l->knobs);
	log[0] = '\0';
	err = load_one(path, l, log, sizeof(log), LOG_LEVEL_STATS);
	if (err) {
		printf("%-48s cannot load here: %s%s\n", label, strerror(-err),
		       optional ? " (optional)" : "");
		if (!optional)
			print_log_tail(path, l);
		return optional;
	}
	parse_stats(log, &s);
	printf("%-48s %7ld", label, s.insns);
	if (l->max_insns < 0)
		printf(" insns, NOT IN THE BUDGET");
	else
		printf(" of %7ld insns", l->max_insns);
	printf(" %9.1f ms", (double)s.time_us / 1000);
	if (s.insns < 0)
		printf("  NO STATISTICS");
	else if (l->max_insns >= 0 && s.insns > l->max_insns)
		printf("  PAST THE BUDGET");
	printf("\n");
	return s.insns >= 0 && s.insns <= l->max_insns;
}

static bool check_program(const char *path, const char *name, bool optional, struct budget *b)
{
	struct budget_line unknown = {.max_insns = -1};
	bool ok = true, found = false;

	for (int i = 0; i < b->cnt; i++) {
		if (strcmp(b->line[i].program, name) != 0)
			continue;
		found = b->line[i].used = true;
		ok &= check_one(path, &b->line[i], optional);
	}
	if (found)
		return ok;
	snprintf(unknown.program, sizeof(unknown.program), "%s", name);
	check_one(path, &unknown, optional);
	return false;
}

static bool check_object(const char *path, struct budget *b)
{
	struct bpf_object *obj = bpf_object__open_file(path, NULL);
	struct bpf_program *p;
	bool ok = true;

	if (!obj) {
		printf("%s: cannot open: %s\n", path, strerror(errno));
		return false;
	}
	bpf_object__for_each_program(p, obj)
		ok &= check_program(path, bpf_program__name(p), !bpf_program__autoload(p), b);
	bpf_object__close(obj);
	return ok;
}

int main(int argc, char **argv)
{
	static struct budget budget;
	bool ok = true;

	if (argc < 3) {
		fprintf(stderr, "usage: %s BUDGET OBJECT...\n", argv[0]);
		return 2;
	}
	if (read_budget(&budget, argv[1]))
		return 1;
	libbpf_set_print(NULL);
	libbpf_set_strict_mode(LIBBPF_STRICT_ALL);
	for (int i = 2; i < argc; i++)
		ok &= check_object(argv[i], &budget);
	for (int i = 0; i < budget.cnt; i++) {
		if (budget.line[i].used)
			continue;
		printf("%-48s in the budget, but in no object\n", budget.line[i].program);
		ok = false;
	}
	return ok ? 0 : 1;
}
