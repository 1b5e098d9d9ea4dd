/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* vmaprof sym: names of addresses, as addr2line -a -f -i -p has them. */
#include "cmd.h"
#include "sym_ask.h"

#include "../kernel/loader.h"
#include "../kernel/privileges.h"
#include "../util/args.h"
#include "../util/array.h"
#include "../util/json.h"
#include "../util/terminal.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define WORD_MAX    64
#define INPUT_BYTES (64U << 10)

static const char help[] =
	"usage: vmaprof sym -e FILE [--json] [ADDR…]\n"
	"       vmaprof sym -p PID  [--json] [ADDR…]\n"
	"\n"
	"Names addresses (hexadecimal): function, file and line, and the calls that were inlined\n"
	"there, innermost first. Without ADDR, or for an ADDR of -, addresses are read from\n"
	"standard input and answered as they come.\n"
	"\n"
	"  -e, --exe FILE     a program, library or debug file; addresses are as linked (nm, "
	"readelf);\n"
	"                     of what is not linked (.o, .ko) they are offsets in .text\n"
	"  -p, --pid PID      a process; addresses are its own, or the kernel's\n"
	"      --json         a JSON object per address and line\n"
	"      --no-demangle  names as the linker has them\n"
	"  -i, --inlines      is always on\n"
	"\n"
	"examples:\n"
	"  vmaprof sym -e /usr/bin/python3 0x5a1b20\n"
	"  vmaprof sym -p 1234 7f0c5be01a37\n";

struct sym_args {
	const char *file;
	pid_t pid;
	bool json, raw;
};

struct addrs {
	uint64_t *addr;
	size_t cnt, cap;
};

/* ---- addresses ---- */

static int add_addr(struct addrs *a, const char *text, struct vp_err *e)
{
	uint64_t addr;

	if (vp_parse_u64(text, 16, &addr))
		return vp_err_set(e, -EINVAL, "'%s' is no hexadecimal address", text);
	if (vp_array_room((void **)&a->addr, &a->cap, a->cnt, 1, sizeof(*a->addr)))
		return vp_err_set(e, -ENOMEM, "out of memory");
	a->addr[a->cnt++] = addr;
	return 0;
}

/* Standard input, in pieces that are there without waiting. */
struct input {
	char word[WORD_MAX + 1]; /* begun, perhaps not ended */
	size_t len;
	bool at_end;
	char bytes[INPUT_BYTES];
};

static int end_word(struct input *in, struct addrs *a, struct vp_err *e)
{
	in->word[in->len] = '\0';
	if (!in->len)
		return 0;
	in->len = 0;
	return add_addr(a, in->word, e);
}

static int add_bytes(struct input *in, size_t cnt, struct addrs *a, struct vp_err *e)
{
	int err = 0;

	for (size_t i = 0; i < cnt && !err; i++) {
		if (isspace((unsigned char)in->bytes[i]))
			err = end_word(in, a, e);
		else if (in->len < WORD_MAX) /* a longer one is none in any case */
			in->word[in->len++] = in->bytes[i];
	}
	return err;
}

static bool has_more(void)
{
	struct pollfd p = {.fd = STDIN_FILENO, .events = POLLIN};

	return poll(&p, 1, 0) > 0;
}

/* Waits for an address at least, then takes what is there; in->at_end: it was the last. */
static int read_some(struct input *in, struct addrs *a, struct vp_err *e)
{
	int err = 0;

	while (!err && a->cnt < VP_SYM_ASK_MAX - INPUT_BYTES) {
		ssize_t got = read(STDIN_FILENO, in->bytes, sizeof(in->bytes));

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return vp_err_set(e, -EIO, "standard input cannot be read: %s",
					  strerror(errno));
		if (!got) {
			in->at_end = true;
			return end_word(in, a, e);
		}
		err = add_bytes(in, (size_t)got, a, e);
		if (!err && a->cnt && !in->len && !has_more())
			break;
	}
	return err;
}

/* ---- answers ---- */

static void print_hex(const char *name, uint64_t value)
{
	printf("\"%s\":\"0x%" PRIx64 "\"", name, value);
}

static void print_string(const char *name, const char *value)
{
	printf(",\"%s\":", name);
	vp_json_string(stdout, value);
}

static void print_json_frame(const struct vp_sym_frame *f)
{
	fputs("{\"function\":", stdout);
	vp_json_string(stdout, f->function);
	printf(",\"offset\":%" PRIu64, f->offset);
	print_string("file", f->file);
	if (f->file)
		printf(",\"line\":%" PRIu32, f->line);
	else
		fputs(",\"line\":null", stdout);
	printf(",\"inlined\":%s", f->inlined ? "true" : "false");
	print_string("source", f->source);
	putchar('}');
}

static void print_json(const struct vp_sym_answer *a)
{
	putchar('{');
	print_hex("addr", a->addr);
	print_string("module", a->module);
	print_string("build_id", a->build_id);
	fputs(",\"frames\":[", stdout);
	for (size_t i = 0; i < a->frame_cnt; i++) {
		if (i)
			putchar(',');
		print_json_frame(&a->frames[i]);
	}
	putchar(']');
	print_string("reason", a->reason);
	fputs("}\n", stdout);
}

/*
 * 0x0000000000001149: add at /src/sum.c:3
 *  (inlined by) main at /src/sum.c:8
 */
static void print_text(const struct vp_sym_answer *a)
{
	printf("0x%016" PRIx64 ": ", a->addr);
	for (size_t i = 0; i < a->frame_cnt; i++) {
		const struct vp_sym_frame *f = &a->frames[i];

		if (i)
			fputs(" (inlined by) ", stdout);
		vp_print_safe(stdout, f->function ? f->function : "??");
		fputs(" at ", stdout);
		vp_print_safe(stdout, f->file ? f->file : "??");
		if (f->line)
			printf(":%" PRIu32 "\n", f->line);
		else
			fputs(":?\n", stdout);
	}
	if (a->frame_cnt)
		return;
	fputs("?? at ??:? (", stdout);
	if (a->module) {
		vp_print_safe(stdout, a->module);
		fputs(": ", stdout);
	}
	printf("%s)\n", a->reason);
}

static int answer(struct vp_sym *s, const struct sym_args *args, const struct addrs *a,
		  struct vp_err *e)
{
	int err = 0;

	for (size_t at = 0, n; at < a->cnt && !err; at += n) {
		const struct vp_sym_answer *answers;

		n = a->cnt - at < VP_SYM_ASK_MAX ? a->cnt - at : VP_SYM_ASK_MAX;
		err = vp_sym_ask(s, a->addr + at, n, &answers, e);
		for (size_t i = 0; i < n && !err; i++) {
			if (args->json)
				print_json(&answers[i]);
			else
				print_text(&answers[i]);
		}
	}
	if (!err && (fflush(stdout) || ferror(stdout)))
		return vp_err_set(e, -EIO, "standard output: %s (write it elsewhere)",
				  strerror(errno));
	return err;
}

static int answer_input(struct vp_sym *s, const struct sym_args *args, struct addrs *a,
			struct vp_err *e)
{
	struct input *in = calloc(1, sizeof(*in));
	int err = 0;

	if (!in) {
		vp_err_set(e, -ENOMEM, "out of memory");
		return -ENOMEM;
	}
	while (!err && !in->at_end) {
		int end = read_some(in, a, e);

		/* What came before a word that is no address is answered all the same. */
		err = answer(s, args, a, e);
		err = err ? err : end;
		a->cnt = 0;
	}
	free(in);
	return err;
}

/* ---- the command ---- */

static int parse_options(int argc, char **argv, struct sym_args *a)
{
	static const struct option options[] = {
		{"exe", required_argument, NULL, 'e'},
		{"pid", required_argument, NULL, 'p'},
		{"inlines", no_argument, NULL, 'i'},
		{"json", no_argument, NULL, 'j'},
		{"help", no_argument, NULL, 'h'},
		{"no-demangle", no_argument, NULL, 'r'},
		{NULL, 0, NULL, 0},
	};
	int c;

	opterr = 0;
	while ((c = getopt_long(argc, argv, "e:p:ih", options, NULL)) != -1) {
		switch (c) {
		case 'e':
			a->file = optarg;
			break;
		case 'p':
			if (vp_parse_pid(optarg, &a->pid))
				return vp_usage_error("sym", "'%s' is no PID", optarg);
			break;
		case 'i':
			break;
		case 'r':
			a->raw = true;
			break;
		case 'j':
			a->json = true;
			break;
		case 'h':
			fputs(help, stdout);
			return -1;
		default:
			return vp_usage_error("sym", "'%s' is no option or lacks its value",
					      argv[optind - 1]);
		}
	}
	if (!a->file == !a->pid)
		return vp_usage_error("sym", a->file ? "either -e FILE or -p PID, not both"
						     : "of what? -e FILE or -p PID is missing");
	return 0;
}

/* The arguments are checked before anything is opened. */
static int parse_addrs(int argc, char **argv, struct addrs *a)
{
	struct vp_err e = {""};
	int err = 0;

	for (int i = optind; i < argc && !err; i++) {
		if (strcmp(argv[i], "-") != 0)
			err = add_addr(a, argv[i], &e);
	}
	return err ? vp_usage_error("sym", "%s", e.text) : 0;
}

static bool reads_input(int argc, char **argv)
{
	for (int i = optind; i < argc; i++) {
		if (!strcmp(argv[i], "-"))
			return true;
	}
	return optind == argc;
}

static int open_target(const struct sym_args *args, struct vp_sym **s, struct vp_err *e)
{
	int err;

	if (args->file)
		return vp_sym_open_file(s, args->file, !args->raw, e);
	vp_loader_capture_messages(false);
	err = vp_privileges_check(e);
	return err ? err : vp_sym_open_process(s, args->pid, !args->raw, e);
}

int cmd_sym(int argc, char **argv)
{
	struct sym_args args = {0};
	struct addrs a = {0};
	struct vp_err e = {""};
	struct vp_sym *s = NULL;
	int ret = parse_options(argc, argv, &args), err = 0;

	if (!ret)
		ret = parse_addrs(argc, argv, &a);
	if (!ret) {
		err = open_target(&args, &s, &e);
		if (!err)
			err = answer(s, &args, &a, &e);
		a.cnt = 0;
		if (!err && reads_input(argc, argv))
			err = answer_input(s, &args, &a, &e);
		if (err)
			ret = err == -EINVAL ? vp_usage_error("sym", "%s", e.text)
					     : vp_fail("sym", &e);
	}
	vp_sym_close(s);
	free(a.addr);
	return ret < 0 ? VP_EXIT_OK : ret;
}
