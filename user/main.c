/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cmd/cmd.h"
#include "util/args.h"
#include "util/process.h"
#include "util/terminal.h"

#include <stdio.h>
#include <string.h>

#ifndef VP_VERSION
#define VP_VERSION "unknown"
#endif

const char *vp_version = VP_VERSION;
int vp_argc;
char **vp_argv;

static const char help[] =
	"vmaprof: a sampling profiler that never reads /proc/PID/maps\n"
	"\n"
	"usage: vmaprof COMMAND [OPTION…]\n"
	"\n"
	"  record     sample programs or the whole machine into a flame graph, perf.data or folded "
	"stacks\n"
	"  maps       print the mappings of processes, as the kernel's iterator tells them\n"
	"  find       resolve addresses of a process to files and offsets, in the kernel\n"
	"  sym        name addresses of a process or a file: functions, lines, inlined calls\n"
	"  doctor     say what works on this kernel, what does not, and how to get it\n"
	"  show-rows  print how to unwind from each address of an ELF file\n"
	"\n"
	"vmaprof COMMAND --help tells more; vmaprof --version the version.\n"
	"\n"
	"examples:\n"
	"  vmaprof record --duration 10                 the machine, ten seconds → vmaprof.html\n"
	"  vmaprof record -p 1234 -o out.data           one process until Ctrl-C, for perf report\n"
	"  vmaprof record -F 499 -o - -- make -j8       a command and its children, folded on "
	"stdout\n"
	"  vmaprof maps -p 1234 --all-maps              its mappings\n";

static const struct {
	const char *name;
	int (*run)(int argc, char **argv);
} commands[] = {
	{"record", cmd_record}, {"maps", cmd_maps},	{"find", cmd_find},
	{"sym", cmd_sym},	{"doctor", cmd_doctor}, {"show-rows", cmd_show_rows},
};

static int is_any(const char *arg, const char *a, const char *b, const char *c)
{
	return !strcmp(arg, a) || !strcmp(arg, b) || !strcmp(arg, c);
}

int main(int argc, char **argv)
{
	vp_process_setup();
	vp_argc = argc;
	vp_argv = argv;
	if (argc < 2 || is_any(argv[1], "--help", "-h", "help")) {
		fputs(help, stdout);
		return VP_EXIT_OK;
	}
	if (is_any(argv[1], "--version", "-V", "version")) {
		printf("vmaprof %s\n", vp_version);
		return VP_EXIT_OK;
	}
	for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++) {
		if (!strcmp(argv[1], commands[i].name))
			return commands[i].run(argc - 1, argv + 1);
	}
	fputs("vmaprof: '", stderr);
	vp_print_safe(stderr, argv[1]);
	fputs("' is no command (see vmaprof --help)\n", stderr);
	return VP_EXIT_USAGE;
}
