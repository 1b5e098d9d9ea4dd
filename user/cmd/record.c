/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* vmaprof record: from samples to a picture. */
#include "cmd.h"

#include "../kernel/danger.h"
#include "../kernel/features.h"
#include "../kernel/privileges.h"
#include "../kernel/session.h"
#include "../model/joiner.h"
#include "../model/report_builder.h"
#include "../output/outfile.h"
#include "../output/writers.h"
#include "../symbolize/debuginfod.h"
#include "../util/child.h"
#include "../util/clock.h"
#include "../util/procinfo.h"
#include "../util/terminal.h"
#include "record_args.h"
#include "record_end.h"
#include "record_perfdata.h"
#include "record_rows.h"
#include "record_wait.h"
#include "run_meta.h"
#include "summary.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <linux/magic.h>
#include <poll.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define STACK_BYTES_MAX	      (256ULL << 20)
#define JOINER_BYTES_MAX      (64ULL << 20)
#define ROWS_IDLE_NS	      (120ULL * 1000000000)
#define DEBUGINFOD_SILENCE_NS (8ULL * 1000000000)
/* After the recording's end. */
#define DEBUGINFOD_WAIT_NS    (2ULL * 1000000000)

enum format { FORMAT_FOLDED, FORMAT_HTML, FORMAT_PERFDATA };

struct run {
	struct vp_record_args args;
	enum format format;
	struct vp_run_meta meta;
	struct vp_outfile *out;
	uint64_t out_bytes;
	struct vp_symbolizer *symbolizer;
	struct vp_jit *jit;
	struct debuginfod *debuginfod; /* NULL: not asked for */
	struct vp_perfdata *perfdata;
	struct vp_row_store *rows; /* NULL: --call-graph fp */
	struct vp_row_start row_start;
	struct vp_file_pool *pool;
	size_t unread_cnt; /* files whose file system did not answer */
	struct vp_recording recording;
	struct vp_joiner joiner;
	struct vp_decoder decoder;
	struct vp_session *session;
	struct vp_child child;
	struct vp_waiter *waiter;
	struct vp_built_report built;
	uint64_t counters[VP_CNT_CNT];
	uint64_t start_ns, stopped_ns, named_ns;
};

static int choose_format(struct run *r, struct vp_err *e)
{
	const char *name = r->args.output, *dot = strrchr(name, '.');

	if (!strcmp(name, "-") || !strncmp(name, "/dev/", 5) || (dot && !strcmp(dot, ".folded")))
		r->format = FORMAT_FOLDED;
	else if (dot && (!strcmp(dot, ".html") || !strcmp(dot, ".htm")))
		r->format = FORMAT_HTML;
	else if (dot && !strcmp(dot, ".data"))
		r->format = FORMAT_PERFDATA;
	else
		return vp_err_set(e, -EINVAL,
				  "-o %s: the ending names no format (.html, .folded, .data)",
				  name);
	return 0;
}

/* Every named process must be there now; threads stand for their process. */
static int check_targets(struct run *r, struct vp_err *e)
{
	struct vp_procinfo info;
	int err = 0;

	for (size_t i = 0; i < r->args.pids.cnt && !err; i++) {
		err = vp_procinfo_check(r->args.pids.pid[i], &info, e);
		if (!err)
			r->args.pids.pid[i] = info.tgid;
	}
	for (size_t i = 0; i < r->args.tids.cnt && !err; i++) {
		err = vp_procinfo_check(r->args.tids.pid[i], &info, e);
		if (err == -ESRCH && vp_procinfo_read(r->args.tids.pid[i], &info))
			vp_err_set(e, err, "TID %d: no such thread (ps -eL lists them)",
				   r->args.tids.pid[i]);
	}
	return err;
}

static int check(struct run *r, struct vp_err *e)
{
	int err = vp_features_check(e);

	if (!err)
		err = vp_privileges_check(e);
	if (!err && !r->args.force_kernel)
		err = vp_kernel_check(e);
	if (!err)
		err = vp_perf_freq_check(r->args.freq_hz, e);
	if (!err)
		err = check_targets(r, e);
	return err;
}

static void describe_target(struct run *r)
{
	const struct vp_record_args *a = &r->args;
	char *out = r->meta.target;
	size_t size = sizeof(r->meta.target);

	if (a->command)
		snprintf(out, size, "command %s", a->command[0]);
	else if (a->cgroup)
		snprintf(out, size, "cgroup %s", a->cgroup);
	else if (a->pids.cnt)
		snprintf(out, size, a->pids.cnt > 1 ? "PID %d and %zu more" : "PID %d",
			 a->pids.pid[0], a->pids.cnt - 1);
	else if (a->tids.cnt)
		snprintf(out, size, a->tids.cnt > 1 ? "thread %d and %zu more" : "thread %d",
			 a->tids.pid[0], a->tids.cnt - 1);
	else
		snprintf(out, size, "all processes");
}

static int open_debuginfod(struct run *r, struct vp_err *e)
{
	int err = 0;

	if (r->args.debuginfod)
		err = debuginfod_new(&r->debuginfod, DEBUGINFOD_SILENCE_NS);
	if (err == -EDESTADDRREQ)
		return vp_err_set(e, err,
				  "--debuginfod: no server is known (set DEBUGINFOD_URLS, e.g. to "
				  "https://debuginfod.debian.net)");
	if (err == -ENOENT)
		return vp_err_set(
			e, err, "--debuginfod: no libdebuginfod (apt-get install libdebuginfod1)");
	return err ? vp_err_set(e, err, "out of memory") : 0;
}

static int open_symbolizer(struct run *r, struct vp_err *e)
{
	int err = open_debuginfod(r, e);
	struct vp_symbolizer_opts opts = {
		.demangle = 1,
		.keep_files = r->args.inlines || r->args.debuginfod,
	};

	if (err)
		return err;
	opts.max_bytes = r->args.symbol_bytes;
	if (r->debuginfod) {
		opts.fetch = debuginfod_fetch;
		opts.fetch_ctx = r->debuginfod;
	}
	if (vp_symbolizer_new(&r->symbolizer, &opts))
		return vp_err_set(e, -ENOMEM, "out of memory");
	return 0;
}

static int open_user_side(struct run *r, struct vp_err *e)
{
	const struct vp_jit_opts jit = {.lines = r->args.inlines};
	int err;

	err = vp_outfile_open(&r->out, r->args.output, e);
	if (err)
		return err;
	err = open_symbolizer(r, e);
	if (err)
		return err;
	if (vp_jit_new(&r->jit, &jit))
		return vp_err_set(e, -ENOMEM, "out of memory");
	r->recording.max_stack_bytes = STACK_BYTES_MAX;
	r->joiner = (struct vp_joiner){
		.inner = &vp_recording_ops,
		.inner_ctx = &r->recording,
		.max_bytes = JOINER_BYTES_MAX,
	};
	r->decoder = (struct vp_decoder){.ops = &vp_joiner_ops, .ctx = &r->joiner};
	return 0;
}

static uint32_t filter_of(const struct vp_record_args *a)
{
	if (a->pids.cnt || a->command)
		return VP_FILTER_TGID;
	if (a->tids.cnt)
		return VP_FILTER_TID;
	return a->cgroup ? VP_FILTER_CGROUP : VP_FILTER_ALL;
}

static int open_kernel_side(struct run *r, struct vp_err *e)
{
	const struct vp_session_opts opts = {
		.filter = filter_of(&r->args),
		.unwind_mode = r->args.unwind_mode,
		.call_graph = r->args.call_graph,
		.freq_hz = (uint32_t)r->args.freq_hz,
		.event = r->args.event,
		.track = r->args.track,
		.all_maps = r->args.all_maps,
		.no_mm_walk = r->args.no_mm_walk,
		.sequential_load = r->args.sequential_load,
	};
	const struct vp_perf_events *events;
	int err = vp_session_open(&r->session, &opts, &r->decoder, !r->args.quiet, e);

	if (err)
		return err;
	events = vp_session_events(r->session);
	r->meta.meta.event = events->name;
	r->meta.meta.perf_type = events->type;
	r->meta.meta.perf_config = events->config;
	r->meta.meta.freq_hz = (uint32_t)r->args.freq_hz;
	return 0;
}

/* Needs the kernel side's maps, and must be there before its first record. */
static int open_pool(struct run *r, struct vp_err *e)
{
	const struct vp_row_store_opts opts = {
		.arrays_fd = vp_session_row_arrays_fd(r->session),
		.files_fd = vp_session_row_files_fd(r->session),
		.max_bytes = r->args.unwind_bytes,
		.idle_ns = ROWS_IDLE_NS,
	};
	int err = 0;

	if (r->args.call_graph != VP_CALL_GRAPH_FP)
		err = vp_row_store_new(&r->rows, &opts, e);
	if (!err)
		err = vp_file_pool_start(&r->pool, r->symbolizer, r->jit, r->rows, e);
	r->recording.pool = r->pool;
	r->recording.jit = r->jit;
	return err;
}

/* Needs the event's name, so after the kernel side, but before its first record. */
static int open_perfdata(struct run *r, struct vp_err *e)
{
	int err;

	if (r->format != FORMAT_PERFDATA)
		return 0;
	err = vp_perfdata_new(&r->perfdata, vp_outfile_stream(r->out), &r->meta.meta, 0, 0);
	if (err)
		return vp_err_set(e, err, "%s: %s", r->args.output,
				  err == -ESPIPE ? "a .data file cannot be written to a pipe"
						 : strerror(-err));
	r->recording.perfdata = r->perfdata;
	return 0;
}

/* A directory of the cgroup v2 file system, or -1. */
static int open_cgroup_at(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct statfs fs;

	if (fd >= 0 && (fstatfs(fd, &fs) || fs.f_type != CGROUP2_SUPER_MAGIC)) {
		close(fd);
		return -1;
	}
	return fd;
}

/* As given, else below the v2 mount. */
static int open_cgroup(const char *name, struct vp_err *e)
{
	struct vp_features *f;
	char path[4096];
	int fd = name[0] == '/' ? open_cgroup_at(name) : -1;

	if (fd < 0 && name[0] && !vp_features_new(&f)) {
		const struct vp_feature *mount = vp_features_get(f, VP_FEAT_CGROUP2);

		snprintf(path, sizeof(path), "%s/%s", mount->detail, name);
		if (mount->present)
			fd = open_cgroup_at(path);
		vp_features_free(f);
	}
	if (fd < 0)
		return vp_err_set(
			e, -ENOENT,
			"-G %s: no such cgroup (a path, or relative to the cgroup v2 mount)", name);
	return fd;
}

static int add_targets(struct run *r, struct vp_err *e)
{
	const struct vp_record_args *a = &r->args;
	int err = 0, fd;

	for (size_t i = 0; i < a->pids.cnt && !err; i++)
		err = vp_session_add_target(r->session, a->pids.pid[i],
					    VP_TARGET_F_ARMED | VP_TARGET_F_INHERIT, e);
	for (size_t i = 0; i < a->tids.cnt && !err; i++)
		err = vp_session_add_target(r->session, a->tids.pid[i], VP_TARGET_F_ARMED, e);
	if (!err && a->cgroup) {
		fd = open_cgroup(a->cgroup, e);
		if (fd < 0)
			return fd;
		err = vp_session_set_cgroup(r->session, fd, e);
		close(fd);
	}
	return err;
}

/* The command waits for its release; without exec events it is sampled from here on. */
static int prepare_command(struct run *r, bool tracking, struct vp_err *e)
{
	int err;

	if (!r->args.command)
		return 0;
	err = vp_child_prepare(&r->child, r->args.command, vp_waiter_old_mask(r->waiter), e);
	if (err)
		return err;
	return vp_session_add_target(r->session, r->child.pid,
				     VP_TARGET_F_INHERIT | (tracking ? 0 : VP_TARGET_F_ARMED), e);
}

/* What is mapped now, of those who will be sampled; a command's process has yet to exec. */
static int walk(struct run *r, struct vp_err *e)
{
	const struct vp_record_args *a = &r->args;
	int err = 0;

	if (a->command)
		return 0;
	if (!a->tids.cnt)
		return vp_session_walk(r->session, a->pids.pid, a->pids.cnt, e);

	for (size_t i = 0; i < a->tids.cnt && !err; i++) {
		struct vp_procinfo info;

		if (!vp_procinfo_read(a->tids.pid[i], &info))
			err = vp_session_walk(r->session, &info.tgid, 1, e);
	}
	return err;
}

static const char *call_graph_text(uint32_t call_graph)
{
	switch (call_graph) {
	case VP_CALL_GRAPH_FP:
		return "frame pointers";
	case VP_CALL_GRAPH_DWARF:
		return ".eh_frame";
	default:
		return ".eh_frame and frame pointers";
	}
}

static int load_first_rows(struct run *r, struct vp_err *e)
{
	const char *command = r->args.command ? r->args.command[0] : NULL;

	if (!r->rows)
		return 0;
	return vp_record_first_rows(&r->recording, r->session, command, &r->row_start, e);
}

static const char *rung_text(const struct vp_session *s)
{
	switch (vp_session_rung(s)) {
	case VP_TRACK_FENTRY:
		return "fentry";
	case VP_TRACK_KPROBE:
		return "kprobe";
	case VP_TRACK_SIDEBAND:
		return "sideband (perf's records)";
	default:
		return "the samples that hit them";
	}
}

static void print_start(const struct run *r, bool tracking)
{
	const struct vp_perf_events *ev = vp_session_events(r->session);

	if (r->args.quiet)
		return;
	fputs("vmaprof: sampling ", stderr);
	vp_print_safe(stderr, r->meta.target);
	fprintf(stderr, " at %u Hz on %zu CPUs by %s%s, unwinding by %s %s; Ctrl-C ends\n",
		r->meta.meta.freq_hz, ev->cnt, ev->name,
		ev->fell_back ? " (this machine has no hardware cycles)" : "",
		call_graph_text(r->args.call_graph),
		vp_session_is_deferred(r->session) ? "in the task (deferred)"
						   : "in the interrupt (inline)");
	if (r->rows)
		fprintf(stderr, "unwind rows of %zu files are there (%" PRIu64 " ms), %zu follow\n",
			r->row_start.file_cnt - r->row_start.left_cnt,
			r->row_start.took_ns / 1000000, r->row_start.left_cnt);
	if (r->args.verbose)
		fprintf(stderr, "new mappings are seen by %s; what is unknown is asked of %s\n",
			rung_text(r->session),
			vp_session_walks_mm(r->session) ? "bpf_find_vma and of the mm's tree"
							: "bpf_find_vma alone");
	if (!tracking)
		fputs("vmaprof: children are not followed and execs not seen: this kernel refuses "
		      "tp_btf programs (see vmaprof doctor)\n",
		      stderr);
}

/* From everything loaded to everything running: live tracking, tables, and last the sampler. */
static int start(struct run *r, struct vp_err *e)
{
	bool tracking;
	int err = add_targets(r, e);

	if (err)
		return err;
	err = vp_session_track_live(r->session, e);
	if (err)
		return err;
	tracking = vp_session_track(r->session);
	err = prepare_command(r, tracking, e);
	if (!err)
		err = walk(r, e);
	if (!err)
		err = load_first_rows(r, e);
	if (!err)
		err = vp_session_start(r->session, e);
	if (err)
		return err;
	r->start_ns = vp_now_ns();
	print_start(r, tracking);
	if (r->child.pid)
		err = vp_child_release(&r->child, r->args.command, e);
	return err;
}

static int watch_targets(struct run *r, struct vp_err *e)
{
	int err = 0;

	if (r->child.pid)
		err = vp_waiter_watch(r->waiter, r->child.pid);
	for (size_t i = 0; i < r->args.pids.cnt && !err; i++)
		err = vp_waiter_watch(r->waiter, r->args.pids.pid[i]);
	return err ? vp_err_set(e, err, "watching the target: %s", strerror(-err)) : 0;
}

static void show_progress(void *ctx)
{
	struct run *r = ctx;
	uint64_t c[VP_CNT_CNT];

	if (vp_session_counters(r->session, c))
		return;
	fprintf(stderr,
		"\r%4" PRIu64 " s  %" PRIu64 " samples  %" PRIu64 " lost  %.1f %% unresolved ",
		(vp_now_ns() - r->start_ns) / 1000000000, c[VP_CNT_SAMPLES], vp_summary_lost(c),
		c[VP_CNT_FRAMES]
			? 100.0 * (double)c[VP_CNT_FRAMES_UNRESOLVED] / (double)c[VP_CNT_FRAMES]
			: 0.0);
}

static int wait_for_end(struct run *r, struct vp_err *e)
{
	bool show = !r->args.quiet && isatty(STDERR_FILENO);
	int err = watch_targets(r, e);

	if (err)
		return err;
	if (vp_end_signals_take(vp_outfile_temporary(r->out), r->args.quiet))
		return vp_err_set(e, -ENOMEM, "out of memory");
	err = vp_waiter_wait(r->waiter, r->args.duration_ns, show ? show_progress : NULL, r);
	if (show)
		fputs("\r\033[K", stderr);
	if (err > 0)
		vp_end_signals_used();
	return err < 0 ? vp_err_set(e, err, "waiting: %s", strerror(-err)) : 0;
}

static bool stacks_are_missing(void *ctx)
{
	struct run *r = ctx;

	return vp_joiner_waiting(&r->joiner) > 0;
}

/* Ctrl-C ends the wait, not the program. */
static void wait_for_debug_files(struct run *r, uint64_t deadline_ns)
{
	const struct timespec slice = {.tv_nsec = 20000000};
	unsigned int came = vp_end_signals_cnt();
	size_t left = debuginfod_left(r->debuginfod);

	if (!left)
		return;
	vp_end_signals_allow();
	if (!r->args.quiet)
		fprintf(stderr,
			"waiting up to %llu s for %zu debug file%s of --debuginfod; Ctrl-C: "
			"without\n",
			DEBUGINFOD_WAIT_NS / 1000000000, left, left == 1 ? "" : "s");
	while (debuginfod_left(r->debuginfod) && vp_now_ns() < deadline_ns) {
		if (vp_end_signals_cnt() != came) {
			debuginfod_end_at(r->debuginfod, vp_now_ns());
			break;
		}
		nanosleep(&slice, NULL);
	}
}

/* What is not there soon is not waited for. */
static void take_debug_files(struct run *r)
{
	const uint64_t deadline_ns = vp_now_ns() + DEBUGINFOD_WAIT_NS;

	if (!r->debuginfod)
		return;
	debuginfod_end_at(r->debuginfod, deadline_ns);
	wait_for_debug_files(r, deadline_ns);
	for (size_t i = 0; i < r->recording.files.cnt; i++)
		vp_symbolizer_read_fetched(r->symbolizer, (uint32_t)i);
}

static int stop(struct run *r, struct vp_err *e)
{
	int err;

	r->stopped_ns = vp_now_ns();
	r->meta.meta.duration_ns = r->stopped_ns - r->start_ns;
	err = vp_session_stop(r->session, stacks_are_missing, r);
	if (!err)
		err = vp_joiner_flush(&r->joiner);
	if (!err)
		err = vp_recording_ask_again(&r->recording);
	r->meta.meta.first_ns = r->recording.first_ns;
	r->meta.meta.last_ns = r->recording.last_ns;
	vp_session_counters(r->session, r->counters);
	r->meta.meta.lost_cnt = vp_summary_lost(r->counters);
	vp_file_pool_end_rows(r->pool);
	r->unread_cnt = vp_file_pool_wait(r->pool);
	take_debug_files(r);
	if (err == -EIO && r->perfdata) {
		vp_outfile_commit(r->out, &r->out_bytes, e);
		r->out = NULL;
		return err;
	}
	return err ? vp_err_set(e, err, "keeping the samples: %s", strerror(-err)) : 0;
}

static int fail_empty(const struct run *r, struct vp_err *e)
{
	if (vp_summary_lost(r->counters))
		return vp_err_set(e, -ENODATA, "every sample was lost (lower -F)");
	if (r->args.all)
		return vp_err_set(e, -ENODATA,
				  "no samples: nothing ran, or --duration was too short for %u Hz",
				  r->meta.meta.freq_hz);
	return vp_err_set(e, -ENODATA,
			  "no samples: %s did not run on a CPU long enough (try a higher -F, or a "
			  "longer --duration)",
			  r->meta.target);
}

static int write_output(struct run *r)
{
	FILE *f = vp_outfile_stream(r->out);

	switch (r->format) {
	case FORMAT_FOLDED:
		return vp_write_folded(f, &r->built.report);
	case FORMAT_HTML:
		return vp_write_html(f, &r->built.report);
	case FORMAT_PERFDATA:
		return vp_record_perfdata_finish(r->perfdata, &r->meta.meta, &r->recording.files,
						 r->symbolizer);
	}
	return -EINVAL;
}

static int build_report(struct run *r)
{
	const struct kernel_debug_opts kernel = {
		.names = r->symbolizer,
		.finder = vp_symbolizer_finder(r->symbolizer),
		.demangle = true,
	};
	struct vp_report_opts opts = {.inlines = r->args.inlines};
	int err = 0;

	if (opts.inlines)
		err = kernel_debug_new(&opts.kernel, &kernel);
	if (!err)
		err = vp_report_build(&r->built, &r->recording, r->symbolizer, &r->meta.meta,
				      &opts);
	kernel_debug_free(opts.kernel);
	return err;
}

static int finish(struct run *r, struct vp_err *e)
{
	int err;

	if (r->recording.sample_cnt == 0)
		return fail_empty(r, e);
	err = build_report(r);
	if (err)
		return vp_err_set(e, err, "naming the frames: %s", strerror(-err));
	r->named_ns = vp_now_ns();
	err = write_output(r);
	/* A stream's -EIO does not say why: committing, which fails then, does. */
	if (err && err != -EIO)
		return vp_err_set(e, err, "%s: %s", r->args.output, strerror(-err));
	err = vp_outfile_commit(r->out, &r->out_bytes, e);
	r->out = NULL;
	return err;
}

static bool kernel_is_hidden(struct run *r)
{
	uint64_t stext, etext;

	return vp_symbolizer_kernel_bounds(r->symbolizer, &stext, &etext) != 0;
}

static void summarize(struct run *r)
{
	struct vp_summary s = {
		.built = &r->built,
		.recording = &r->recording,
		.joiner = &r->joiner,
		.decoder = &r->decoder,
		.rows = r->rows,
		.unread_cnt = r->unread_cnt,
		.naming_ns = r->named_ns - r->stopped_ns,
		.counters = r->counters,
		.output = r->args.output,
		.output_bytes = r->out_bytes,
		.verbose = r->args.verbose,
		.inlines = r->args.inlines,
		.debuginfod = r->args.debuginfod,
	};

	if (r->args.quiet)
		return;
	vp_symbolizer_get_stats(r->symbolizer, &s.symbols);
	if (r->debuginfod)
		debuginfod_get_stats(r->debuginfod, &s.debug_files);
	vp_session_sideband_stats(r->session, &s.sideband);
	s.kernel_hidden = kernel_is_hidden(r);
	vp_summary_print(stderr, &s);
}

#define COMMAND_END_MS 1000

/* Whether the command is over, in status; waits for that a moment. */
static bool collect_command(pid_t pid, int wait_ms, int *status)
{
	struct pollfd ended = {.fd = (int)syscall(SYS_pidfd_open, pid, 0), .events = POLLIN};

	if (ended.fd >= 0) {
		poll(&ended, 1, wait_ms);
		close(ended.fd);
	}
	return waitpid(pid, status, WNOHANG) == pid;
}

/*
 * A command that outlives its recording is told to end, as perf does; how it ended is its own
 * business, but a crash is worth a line.
 */
static void end_command(struct run *r)
{
	int status;

	if (!r->child.pid || r->child.go_fd >= 0) /* none, or it never ran */
		return;
	if (!collect_command(r->child.pid, 0, &status)) {
		kill(r->child.pid, SIGTERM);
		collect_command(r->child.pid, COMMAND_END_MS, &status);
		r->child.pid = 0;
		return;
	}
	r->child.pid = 0;
	if (r->args.quiet || (WIFEXITED(status) && WEXITSTATUS(status) == 0))
		return;
	fputs("vmaprof: ", stderr);
	vp_print_safe(stderr, r->args.command[0]);
	if (WIFSIGNALED(status))
		fprintf(stderr, " was ended by signal %d (%s)\n", WTERMSIG(status),
			strsignal(WTERMSIG(status)));
	else
		fprintf(stderr, " exited with status %d\n", WEXITSTATUS(status));
}

/* From nothing to sampling. What the kernel lacks says more than what failed without it. */
static int begin(struct run *r, struct vp_err *e)
{
	int err = check(r, e);

	if (!err)
		err = vp_waiter_open(&r->waiter, e);
	if (!err)
		err = open_user_side(r, e);
	if (!err)
		err = open_kernel_side(r, e);
	if (!err)
		err = open_pool(r, e);
	if (!err)
		err = open_perfdata(r, e);
	if (!err)
		err = start(r, e);
	vp_features_explain(err, e);
	return err;
}

static int record(struct run *r, struct vp_err *e)
{
	int err = choose_format(r, e);

	describe_target(r);
	if (!err)
		err = begin(r, e);
	if (!err)
		err = wait_for_end(r, e);
	if (!err)
		err = stop(r, e);
	if (!err)
		err = finish(r, e);
	return err;
}

static void run_close(struct run *r)
{
	bool files_are_free;

	vp_child_abandon(&r->child);
	vp_session_close(r->session);
	files_are_free = vp_file_pool_stop(r->pool);
	if (files_are_free)
		vp_row_store_free(r->rows);
	vp_perfdata_free(r->perfdata);
	vp_outfile_abort(r->out);
	vp_report_free(&r->built);
	vp_joiner_free(&r->joiner);
	vp_recording_free(&r->recording);
	if (files_are_free) {
		vp_symbolizer_free(r->symbolizer);
		vp_jit_free(r->jit);
		debuginfod_free(r->debuginfod);
	}
	vp_waiter_close(r->waiter);
	vp_record_args_free(&r->args);
}

int cmd_record(int argc, char **argv)
{
	struct run r = {0};
	struct vp_err e = {""};
	int ret = vp_record_parse(&r.args, argc, argv);

	if (ret) {
		vp_record_args_free(&r.args);
		return ret < 0 ? VP_EXIT_OK : ret;
	}
	vp_loader_capture_messages(false);
	vp_run_meta_fill(&r.meta);
	if (record(&r, &e))
		ret = vp_fail("record", &e);
	end_command(&r);
	if (!ret)
		summarize(&r);
	run_close(&r);
	return ret;
}
