/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "record_args.h"

#include "../kernel/perf_events.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char help[] =
	"usage: vmaprof record [-a | -p PID,… | -t TID,… | -G CGROUP] [OPTION…]\n"
	"       vmaprof record [OPTION…] -- COMMAND [ARGUMENT…]\n"
	"\n"
	"Samples the stacks of programs until Ctrl-C, --duration or the command's end.\n"
	"\n"
	"  -a                     all processes (the default)\n"
	"  -p, --pid PID,…        these processes and the children they start\n"
	"  -t, --tid TID,…        these threads\n"
	"  -G, --cgroup CGROUP    processes of a cgroup (v2): a path, or relative to its mount\n"
	"  -F, --freq HZ          samples a second on each CPU (99)\n"
	"  -e, --event EVENT      cycles or cpu-clock (cycles where the machine has them)\n"
	"      --duration S       end after S seconds\n"
	"  -o, --output FILE      its ending picks the format: .html flame graph (vmaprof.html),\n"
	"                         .folded stacks, .data for perf; -: folded on standard output\n"
	"      --call-graph G     dwarf: unwind by .eh_frame; fp: by frame pointers; auto (the\n"
	"                         default): each frame by .eh_frame, else by frame pointer\n"
	"      --unwind-mode M    inline: unwind in the sample's interrupt; deferred: in the "
	"task,\n"
	"                         on its way back to user mode; auto (the default): deferred\n"
	"                         where the kernel can (Linux 6.18)\n"
	"      --track HOW        new mappings are seen by fentry, kprobe or sideband (perf's "
	"records);\n"
	"                         auto (the default): the first that the kernel allows;\n"
	"                         off: by the samples that hit them\n"
	"      --unwind-memory MB for unwind information in the kernel (256)\n"
	"      --symbol-memory SIZE\n"
	"                         for symbols of files: megabytes, or with K, M or G (256M)\n"
	"      --inlines          inlined calls as frames of their own, and lines of functions,\n"
	"                         where there is debug information (slower)\n"
	"      --debuginfod       get missing debug files from the servers in DEBUGINFOD_URLS\n"
	"      --all-maps         record all mappings, not only executable ones\n"
	"      --no-mm-walk       ask for mappings by bpf_find_vma alone: in the interrupt, one\n"
	"                         unknown address a sample\n"
	"      --force-kernel     even on a kernel that can lock up when it is sampled\n"
	"  -q, --quiet            no progress, no summary\n"
	"  -v, --verbose          more of both\n"
	"\n"
	"Exits 0 when a profile was written, whatever the command's own status; 1 when none was,\n"
	"with the reason; 2 when the command line is wrong.\n"
	"\n"
	"examples:\n"
	"  vmaprof record --duration 10\n"
	"  vmaprof record -p 1234 -F 499 -o out.data      then: perf report -i out.data\n"
	"  vmaprof record -o - -- make -j8 > make.folded\n"
	"  vmaprof record -G system.slice/nginx.service --duration 30 -o nginx.html\n";

#define UNWIND_BYTES_DEFAULT (256ULL << 20)
#define SYMBOL_BYTES_DEFAULT (256ULL << 20)
#define SYMBOL_BYTES_MIN     (1ULL << 20)

enum {
	OPT_DURATION = 256,
	OPT_UNWIND,
	OPT_CALL_GRAPH,
	OPT_UNWIND_MEMORY,
	OPT_SYMBOL_MEMORY,
	OPT_TRACK,
	OPT_DEBUGINFOD,
	OPT_INLINES,
	OPT_ALL_MAPS,
	OPT_FORCE,
	OPT_NO_MM_WALK,
	OPT_SEQUENTIAL
};

static const struct option options[] = {
	{"all-cpus", no_argument, NULL, 'a'},
	{"pid", required_argument, NULL, 'p'},
	{"tid", required_argument, NULL, 't'},
	{"cgroup", required_argument, NULL, 'G'},
	{"freq", required_argument, NULL, 'F'},
	{"event", required_argument, NULL, 'e'},
	{"duration", required_argument, NULL, OPT_DURATION},
	{"output", required_argument, NULL, 'o'},
	{"unwind-mode", required_argument, NULL, OPT_UNWIND},
	{"call-graph", required_argument, NULL, OPT_CALL_GRAPH},
	{"track", required_argument, NULL, OPT_TRACK},
	{"unwind-memory", required_argument, NULL, OPT_UNWIND_MEMORY},
	{"symbol-memory", required_argument, NULL, OPT_SYMBOL_MEMORY},
	{"debuginfod", no_argument, NULL, OPT_DEBUGINFOD},
	{"inlines", no_argument, NULL, OPT_INLINES},
	{"all-maps", no_argument, NULL, OPT_ALL_MAPS},
	{"force-kernel", no_argument, NULL, OPT_FORCE},
	{"no-mm-walk", no_argument, NULL, OPT_NO_MM_WALK},
	{"sequential-load", no_argument, NULL, OPT_SEQUENTIAL},
	{"quiet", no_argument, NULL, 'q'},
	{"verbose", no_argument, NULL, 'v'},
	{"help", no_argument, NULL, 'h'},
	{NULL, 0, NULL, 0},
};

static int usage(const char *option, const char *value, const char *want)
{
	return vp_usage_error("record", "%s '%s': %s", option, value, want);
}

static int parse_duration(struct vp_record_args *a, const char *s)
{
	char *end;
	double seconds = strtod(s, &end);

	if (end == s || *end || !isfinite(seconds) || seconds <= 0 || seconds > 1e9)
		return usage("--duration", s, "want seconds, more than 0");
	a->duration_ns = (uint64_t)(seconds * 1e9);
	return 0;
}

static int parse_pids(struct vp_pids *pids, const char *arg)
{
	struct vp_err e = {"out of memory"};

	return vp_pids_parse(pids, arg, &e) ? vp_usage_error("record", "%s", e.text) : 0;
}

static int parse_unwind_mode(struct vp_record_args *a, const char *s)
{
	if (!strcmp(s, "auto"))
		a->unwind_mode = VP_UNWIND_AUTO;
	else if (!strcmp(s, "inline"))
		a->unwind_mode = VP_UNWIND_INLINE;
	else if (!strcmp(s, "deferred"))
		a->unwind_mode = VP_UNWIND_DEFERRED;
	else
		return usage("--unwind-mode", s, "want inline, deferred or auto");
	return 0;
}

static int parse_call_graph(struct vp_record_args *a, const char *s)
{
	if (!strcmp(s, "auto"))
		a->call_graph = VP_CALL_GRAPH_AUTO;
	else if (!strcmp(s, "fp"))
		a->call_graph = VP_CALL_GRAPH_FP;
	else if (!strcmp(s, "dwarf"))
		a->call_graph = VP_CALL_GRAPH_DWARF;
	else
		return usage("--call-graph", s, "want fp, dwarf or auto");
	return 0;
}

static int parse_track(struct vp_record_args *a, const char *s)
{
	if (vp_track_rung_parse(s, &a->track))
		return 0;
	return usage("--track", s, "want fentry, kprobe, sideband, auto or off");
}

static int parse_unwind_memory(struct vp_record_args *a, const char *s)
{
	uint64_t mb;

	if (vp_parse_u64(s, 10, &mb) || mb == 0 || mb > UINT32_MAX)
		return usage("--unwind-memory", s, "want megabytes, at least 1");
	a->unwind_bytes = mb << 20;
	return 0;
}

static int parse_symbol_memory(struct vp_record_args *a, const char *s)
{
	if (vp_parse_size(s, &a->symbol_bytes) || a->symbol_bytes < SYMBOL_BYTES_MIN)
		return usage("--symbol-memory", s, "want a size such as 256M, at least 1M");
	return 0;
}

static int parse_option(struct vp_record_args *a, int c)
{
	switch (c) {
	case 'a':
		a->all = true;
		return 0;
	case 'p':
		return parse_pids(&a->pids, optarg);
	case 't':
		return parse_pids(&a->tids, optarg);
	case 'G':
		a->cgroup = optarg;
		return 0;
	case 'F':
		if (vp_parse_u64(optarg, 10, &a->freq_hz) || a->freq_hz > UINT32_MAX)
			return usage("-F", optarg, "want samples a second");
		return 0;
	case 'e':
		a->event = optarg;
		return 0;
	case 'o':
		a->output = optarg;
		return 0;
	case 'q':
		a->quiet = true;
		return 0;
	case 'v':
		a->verbose = true;
		return 0;
	case OPT_DURATION:
		return parse_duration(a, optarg);
	case OPT_UNWIND:
		return parse_unwind_mode(a, optarg);
	case OPT_CALL_GRAPH:
		return parse_call_graph(a, optarg);
	case OPT_TRACK:
		return parse_track(a, optarg);
	case OPT_UNWIND_MEMORY:
		return parse_unwind_memory(a, optarg);
	case OPT_SYMBOL_MEMORY:
		return parse_symbol_memory(a, optarg);
	case OPT_DEBUGINFOD:
		a->debuginfod = true;
		return 0;
	case OPT_INLINES:
		a->inlines = true;
		return 0;
	case OPT_ALL_MAPS:
		a->all_maps = true;
		return 0;
	case OPT_FORCE:
		a->force_kernel = true;
		return 0;
	case OPT_NO_MM_WALK:
		a->no_mm_walk = true;
		return 0;
	case OPT_SEQUENTIAL:
		a->sequential_load = true;
		return 0;
	case 'h':
		fputs(help, stdout);
		return -1;
	default:
		return vp_usage_error("record", "unknown option, or its value is missing");
	}
}

static int check_targets(struct vp_record_args *a)
{
	int named = !!a->all + !!a->pids.cnt + !!a->tids.cnt + !!a->cgroup + !!a->command;

	if (named > 1)
		return vp_usage_error("record",
				      "name one target: -a, -p, -t, -G or a command after --");
	if (named == 0)
		a->all = true;
	return 0;
}

int vp_record_parse(struct vp_record_args *a, int argc, char **argv)
{
	int c, ret = 0;

	*a = (struct vp_record_args){.freq_hz = VP_FREQ_DEFAULT_HZ,
				     .unwind_bytes = UNWIND_BYTES_DEFAULT,
				     .symbol_bytes = SYMBOL_BYTES_DEFAULT,
				     .output = "vmaprof.html"};
	opterr = 0;
	while (!ret && (c = getopt_long(argc, argv, "+ap:t:G:F:e:o:qvh", options, NULL)) != -1) {
		if (c == '?')
			ret = vp_usage_error("record",
					     "'%s': unknown option, or its value is missing",
					     argv[optind - 1]);
		else
			ret = parse_option(a, c);
	}
	if (!ret && optind < argc)
		a->command = argv + optind;
	else if (!ret && optind > 1 && !strcmp(argv[optind - 1], "--"))
		ret = vp_usage_error("record", "which command? nothing follows --");
	return ret ? ret : check_targets(a);
}

void vp_record_args_free(struct vp_record_args *a)
{
	vp_pids_free(&a->pids);
	vp_pids_free(&a->tids);
}
