/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* vmaprof find: addresses of a process to files and offsets, by bpf_find_vma. */
#include "cmd.h"

#include "../kernel/finder.h"
#include "../kernel/loader.h"
#include "../kernel/privileges.h"
#include "../kernel/vsyscall.h"
#include "../model/mapping_text.h"
#include "../model/verdict.h"
#include "../util/args.h"
#include "../util/array.h"
#include "../util/index.h"
#include "../util/json.h"
#include "../util/procinfo.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define ADDRS_MAX (1U << 23) /* bpf_loop's bound */

static const char help[] =
	"usage: vmaprof find -p PID [--json] ADDR…\n"
	"       vmaprof find -p PID [--json] -      (addresses from standard input)\n"
	"\n"
	"Resolves addresses (hexadecimal) of a process in the kernel, by bpf_find_vma: verdict,\n"
	"range, file offset and file. Verdicts: FILE, ANON_EXEC (JIT code), VDSO, SPECIAL,\n"
	"NOT_EXEC, NO_VMA, BUSY (could not be asked).\n"
	"\n"
	"  -p, --pid PID   the process\n"
	"      --json      a JSON object per address and line\n";

/* What a mapping is called, by where it starts. */
struct named {
	uint64_t start;
	uint32_t maj, min;
	uint64_t ino;
	char *name;
};

struct finding {
	pid_t pid;
	bool json;
	struct vp_find *finds;
	size_t cnt, cap;
	struct named *named;
	size_t named_cnt, named_cap;
	struct vp_index by_start;
};

static int add_addr(struct finding *f, const char *text, struct vp_err *e)
{
	uint64_t addr;

	if (vp_parse_u64(text, 16, &addr))
		return vp_err_set(e, -EINVAL, "'%s' is no hexadecimal address", text);
	if (f->cnt == ADDRS_MAX)
		return vp_err_set(e, -E2BIG, "more than %u addresses (ask in several calls)",
				  ADDRS_MAX);
	if (vp_array_room((void **)&f->finds, &f->cap, f->cnt, 1, sizeof(*f->finds)))
		return vp_err_set(e, -ENOMEM, "out of memory");
	f->finds[f->cnt++] = (struct vp_find){.addr = addr};
	return 0;
}

static int add_from_stdin(struct finding *f, struct vp_err *e)
{
	char word[64];
	int err = 0;

	while (!err && scanf("%63s", word) == 1)
		err = add_addr(f, word, e);
	if (!err && ferror(stdin))
		return vp_err_set(e, -EIO, "standard input cannot be read");
	return err;
}

static bool starts_at(const void *ctx, uint32_t item, const void *key)
{
	return ((const struct finding *)ctx)->named[item].start == *(const uint64_t *)key;
}

static struct named *find_named(const struct finding *f, uint64_t start)
{
	uint32_t i = vp_index_find(&f->by_start, vp_hash(0, &start, sizeof(start)), starts_at, f,
				   &start);

	return i == VP_INDEX_NONE ? NULL : &f->named[i];
}

static void fill_named(struct named *n, const struct vp_mmap2 *m)
{
	struct vp_mmap2 stripped = *m;

	vp_mapping_strip_deleted(&stripped);
	free(n->name);
	n->start = m->rec.perf.addr;
	n->maj = m->rec.perf.maj;
	n->min = m->rec.perf.min;
	n->ino = m->rec.perf.ino;
	n->name = strdup(stripped.name);
}

/* The last word on a start counts: the mapping may have changed during the run. */
static int on_mapping(void *ctx, const struct vp_mmap2 *m)
{
	struct finding *f = ctx;
	uint64_t start = m->rec.perf.addr;
	struct named *n = find_named(f, start);

	if (n) {
		fill_named(n, m);
		return n->name ? 0 : -ENOMEM;
	}
	if (vp_array_room((void **)&f->named, &f->named_cap, f->named_cnt, 1, sizeof(*n)))
		return -ENOMEM;
	n = &f->named[f->named_cnt];
	*n = (struct named){0};
	fill_named(n, m);
	if (!n->name)
		return -ENOMEM;
	return vp_index_add(&f->by_start, vp_hash(0, &start, sizeof(start)), f->named_cnt++);
}

/* The gate page is no VMA, so bpf_find_vma does not know it; it is the same in all processes. */
static void name_vsyscall(struct vp_find *find)
{
	if (find->verdict != VP_VERDICT_NO_VMA || find->addr < VP_VSYSCALL_ADDR ||
	    find->addr >= VP_VSYSCALL_END || !vp_vsyscall_prot())
		return;
	find->verdict = VP_VERDICT_SPECIAL;
	find->start = VP_VSYSCALL_ADDR;
	find->end = VP_VSYSCALL_END;
}

static const struct named *name_of(const struct finding *f, const struct vp_find *find)
{
	static const struct named vsyscall = {.name = (char *)"[vsyscall]"};
	static const struct named nothing = {.name = (char *)""};
	const struct named *n;

	if (find->start == VP_VSYSCALL_ADDR)
		return &vsyscall;
	n = find->start || find->end ? find_named(f, find->start) : NULL;
	return n ? n : &nothing;
}

static void print_text(const struct finding *f, const struct vp_find *find)
{
	const struct named *n = name_of(f, find);

	printf("%016" PRIx64 " %-9s", (uint64_t)find->addr, vp_verdict_name(find->verdict));
	if (find->end) {
		printf(" %08" PRIx64 "-%08" PRIx64, (uint64_t)find->start, (uint64_t)find->end);
		printf(" +%08" PRIx64, (uint64_t)(find->addr - find->start + find->pgoff));
		printf(" %02x:%02x %" PRIu64 " ", n->maj, n->min, n->ino);
		vp_mapping_print_name(stdout, n->name);
	}
	putchar('\n');
}

static void print_json(const struct finding *f, const struct vp_find *find)
{
	const struct named *n = name_of(f, find);

	printf("{\"addr\":\"0x%" PRIx64 "\",\"verdict\":\"%s\"", (uint64_t)find->addr,
	       vp_verdict_name(find->verdict));
	if (find->end) {
		printf(",\"start\":\"0x%" PRIx64 "\",\"end\":\"0x%" PRIx64 "\",\"offset\":%" PRIu64
		       ",\"dev\":\"%u:%u\",\"ino\":%" PRIu64 ",\"name\":",
		       (uint64_t)find->start, (uint64_t)find->end,
		       (uint64_t)(find->addr - find->start + find->pgoff), n->maj, n->min, n->ino);
		vp_json_string(stdout, n->name);
	} else {
		fputs(",\"start\":null,\"end\":null,\"offset\":null,\"dev\":null,\"ino\":null,"
		      "\"name\":null",
		      stdout);
	}
	fputs("}\n", stdout);
}

static int parse_options(int argc, char **argv, struct finding *f)
{
	static const struct option options[] = {
		{"pid", required_argument, NULL, 'p'},
		{"json", no_argument, NULL, 'j'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	int c;

	opterr = 0;
	while ((c = getopt_long(argc, argv, "p:h", options, NULL)) != -1) {
		switch (c) {
		case 'p':
			if (vp_parse_pid(optarg, &f->pid))
				return vp_usage_error("find", "'%s' is no PID", optarg);
			break;
		case 'j':
			f->json = true;
			break;
		case 'h':
			fputs(help, stdout);
			return -1;
		default:
			return vp_usage_error("find", "'%s' is no option or lacks its value",
					      argv[optind - 1]);
		}
	}
	if (!f->pid)
		return vp_usage_error("find", "which process? -p PID is missing");
	if (optind == argc)
		return vp_usage_error("find", "which addresses?");
	return 0;
}

static int parse_addrs(int argc, char **argv, struct finding *f)
{
	struct vp_err e = {""};
	int err = 0;

	for (int i = optind; i < argc && !err; i++)
		err = strcmp(argv[i], "-") ? add_addr(f, argv[i], &e) : add_from_stdin(f, &e);
	return err ? vp_usage_error("find", "%s", e.text) : 0;
}

static int ask(struct finding *f, struct vp_err *e)
{
	struct vp_procinfo info;
	struct vp_finder *finder = NULL;
	int err = vp_procinfo_check(f->pid, &info, e);

	if (!err)
		err = vp_finder_open(&finder, f->cnt, on_mapping, f, e);
	if (!err)
		err = vp_finder_ask(finder, info.tgid, f->finds, f->cnt, e);
	vp_finder_close(finder);
	return err;
}

static int print_all(struct finding *f, struct vp_err *e)
{
	for (size_t i = 0; i < f->cnt; i++) {
		name_vsyscall(&f->finds[i]);
		if (f->json)
			print_json(f, &f->finds[i]);
		else
			print_text(f, &f->finds[i]);
	}
	if (fflush(stdout))
		return vp_err_set(e, -errno, "standard output: %s (write it elsewhere)",
				  strerror(errno));
	return 0;
}

static void finding_free(struct finding *f)
{
	for (size_t i = 0; i < f->named_cnt; i++)
		free(f->named[i].name);
	free(f->named);
	free(f->finds);
	vp_index_free(&f->by_start);
}

int cmd_find(int argc, char **argv)
{
	struct finding f = {0};
	struct vp_err e = {""};
	int ret = parse_options(argc, argv, &f);

	if (!ret)
		ret = parse_addrs(argc, argv, &f);
	if (!ret) {
		vp_loader_capture_messages(false);
		if (vp_privileges_check(&e) || ask(&f, &e) || print_all(&f, &e))
			ret = vp_fail("find", &e);
	}
	finding_free(&f);
	return ret < 0 ? VP_EXIT_OK : ret;
}
