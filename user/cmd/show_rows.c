/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* vmaprof show-rows: the unwind rows of a file, as the kernel would get them. */
#include "cmd.h"

#include "../symbolize/elf_reader.h"
#include "../symbolize/mapped_file.h"
#include "../symbolize/vdso_image.h"
#include "../unwind/rows.h"
#include "../unwind/show_rows.h"
#include "../util/args.h"

#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char help[] =
	"usage: vmaprof show-rows [--json] FILE\n"
	"       vmaprof show-rows [--json] '[vdso]'\n"
	"\n"
	"Prints how to unwind from each address of an ELF file: the rows that vmaprof compiles\n"
	"from its .eh_frame and .debug_frame for the kernel. Compare with readelf -wF FILE.\n"
	"\n"
	"  offset, address   where the row begins: in the file, and as linked\n"
	"  CFA               the caller's stack pointer: register+offset, *(…) in memory there;\n"
	"                    rsp+8,+8@11: 8 more from byte 11 of a 16-byte .plt entry on;\n"
	"                    end: outermost frame; none: code without (usable) information\n"
	"  rbp … ra          u: the caller's value is the same; c-16: saved at CFA-16;\n"
	"                    rsp+120: saved there; rdi: in that register; lost: not known\n"
	"\n"
	"      --json        a JSON object per row and line\n";

struct show_args {
	const char *file;
	bool json;
};

static int parse(int argc, char **argv, struct show_args *a)
{
	static const struct option options[] = {
		{"json", no_argument, NULL, 'j'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	int c;

	opterr = 0;
	while ((c = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		switch (c) {
		case 'j':
			a->json = true;
			break;
		case 'h':
			fputs(help, stdout);
			return -1;
		default:
			return vp_usage_error("show-rows", "'%s' is no option", argv[optind - 1]);
		}
	}
	if (optind == argc)
		return vp_usage_error("show-rows", "which file?");
	if (optind + 1 < argc)
		return vp_usage_error("show-rows", "'%s' is one argument too many",
				      argv[optind + 1]);
	a->file = argv[optind];
	return 0;
}

/* What a person can do about it. */
static const char *reason_hint(int reason)
{
	switch (reason) {
	case VP_ROWS_NO_CFI:
		return "compile it with -fasynchronous-unwind-tables";
	case VP_ROWS_BAD_CFI:
		return "see readelf -wF, and link it again";
	case VP_ROWS_TOO_LARGE:
		return "is it really a program?";
	default:
		return "name a program or library of this machine";
	}
}

static int refuse(const struct show_args *a, int reason, struct vp_err *e)
{
	if (reason < 0)
		return vp_err_set(e, reason, "%s: %s (free some memory)", a->file,
				  strerror(-reason));
	return vp_err_set(e, -ENOEXEC, "%s: %s (%s)", a->file, vp_rows_reason_text(reason),
			  reason_hint(reason));
}

/* Takes the rows over. */
static int print_rows(const struct show_args *a, struct vp_rows *rows, const struct elf_file *f,
		      struct vp_err *e)
{
	int err = 0;

	if (a->json)
		vp_show_rows_json(stdout, rows, f->exec, f->exec_cnt);
	else
		vp_show_rows_text(stdout, rows, f->exec, f->exec_cnt, a->file);
	if (fflush(stdout) || ferror(stdout))
		err = vp_err_set(e, -EIO, "standard output: %s (write it elsewhere)",
				 strerror(errno));
	vp_rows_free(rows);
	return err;
}

static int show_vdso(const struct show_args *a, struct vp_err *e)
{
	size_t size;
	const void *image = vdso_image(&size);
	struct elf_file *f = NULL;
	struct vp_rows *rows;
	int err;

	if (!image)
		return vp_err_set(e, -ENOENT,
				  "[vdso]: this process has none (boot without vdso=0)");
	err = vp_rows_compile_memory(&rows, image, size);
	if (!err && elf_file_open_memory(&f, image, size)) {
		vp_rows_free(rows);
		err = -ENOMEM;
	}
	err = err ? refuse(a, err, e) : print_rows(a, rows, f, e);
	elf_file_close(f);
	return err;
}

static int show_file(const struct show_args *a, struct vp_err *e)
{
	int fd = mapped_file_open_path(a->file), err;
	struct elf_file *f = NULL;
	struct vp_rows *rows;

	if (fd == -EINVAL)
		return vp_err_set(e, fd, "%s: no regular file (name a program or library)",
				  a->file);
	if (fd < 0)
		return vp_err_set(e, fd, "%s: %s (check the path)", a->file, strerror(-fd));
	err = vp_rows_compile(&rows, fd);
	if (!err && elf_file_open(&f, fd)) {
		vp_rows_free(rows);
		err = VP_ROWS_NOT_ELF; /* it was one a moment ago */
	}
	err = err ? refuse(a, err, e) : print_rows(a, rows, f, e);
	elf_file_close(f);
	close(fd);
	return err;
}

int cmd_show_rows(int argc, char **argv)
{
	struct show_args a = {.file = ""};
	struct vp_err e = {""};
	int ret = parse(argc, argv, &a);

	if (ret)
		return ret < 0 ? VP_EXIT_OK : ret;
	ret = strcmp(a.file, "[vdso]") ? show_file(&a, &e) : show_vdso(&a, &e);
	return ret ? vp_fail("show-rows", &e) : VP_EXIT_OK;
}
