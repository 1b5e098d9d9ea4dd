// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Recording a workload to learn what a sample costs; shared by sampler.c and unwind.c. */
#ifndef SAMPLING_H
#define SAMPLING_H

#include "kernel/loader.h"
#include "kernel/session.h"
#include "model/joiner.h"
#include "model/recording.h"
#include "bench.h"

#include <bpf/bpf.h>

#define SAMPLING_HZ 999
#define FDS_LOOK    1024

struct sampling_opts {
	const char *workload, *arg;
	bool wanted; /* false: others than the workload are, so that every run ends at once */
	uint32_t call_graph;
	enum vp_unwind_mode mode;
	long seconds;
};

/* Of one recording. Runs are samples and what was asked for others' interrupts. */
struct sampling_cost {
	double ns; /* all runs of the program in the interrupt */
	double runs, samples, frames, lost;
	double task_ns; /* deferred mode: all user stacks */
	double bottom;	/* user stacks that ended so */
	double whole_samples;
	uint64_t row_cnt, row_bytes;
};

/* Our own descriptor of the program: its name alone could be another recorder's. */
BENCH int sampling_prog_fd(const char *name)
{
	char path[64], target[64];

	for (int fd = 0; fd < FDS_LOOK; fd++) {
		struct bpf_prog_info info = {0};
		__u32 len = sizeof(info);
		ssize_t n;

		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		n = readlink(path, target, sizeof(target) - 1);
		if (n < 0)
			continue;
		target[n] = '\0';
		/* the kernel keeps 15 characters of a name */
		if (!strcmp(target, "anon_inode:bpf-prog") &&
		    !bpf_obj_get_info_by_fd(fd, &info, &len) && !strncmp(info.name, name, 15))
			return fd;
	}
	bench_die("program %s not found", name);
}

BENCH void sampling_read_cost(struct sampling_cost *c, const struct vp_session *s)
{
	int fd = sampling_prog_fd(vp_session_is_deferred(s) ? "vp_sample_deferred" : "vp_sample");
	uint64_t counters[VP_CNT_CNT];
	struct bpf_prog_info info = {0};
	__u32 len = sizeof(info);

	if (vp_session_counters(s, counters) || bpf_obj_get_info_by_fd(fd, &info, &len))
		bench_die("reading counters: %s", strerror(errno));
	c->samples = (double)counters[VP_CNT_SAMPLES];
	c->frames = (double)counters[VP_CNT_FRAMES];
	c->lost = (double)counters[VP_CNT_LOST_SAMPLE];
	c->task_ns = (double)counters[VP_CNT_TASK_NS];
	c->runs = (double)info.run_cnt;
	c->ns = (double)info.run_time_ns;
}

/* All files that the workload maps, and the vdso, have rows before the first sample. */
BENCH struct vp_row_store *sampling_load_rows(const struct vp_session *s,
					      const struct vp_recording *r, struct vp_err *e)
{
	const struct vp_row_store_opts opts = {
		.arrays_fd = vp_session_row_arrays_fd(s),
		.files_fd = vp_session_row_files_fd(s),
		.max_bytes = 1ULL << 30,
		.idle_ns = 1ULL << 60,
	};
	struct vp_row_store *rows;

	if (vp_row_store_new(&rows, &opts, e))
		bench_die("%s", e->text);
	vp_row_store_load_vdso(rows);
	for (uint32_t id = 1; id < r->files.cnt; id++) {
		const struct vp_file *file = vp_files_get(&r->files, id);
		struct vp_mapped_file m;

		if (!file)
			continue;
		m = vp_file_mapped(file, 0, NULL);
		vp_row_store_load(rows, id, &m);
	}
	return rows;
}

BENCH struct sampling_cost sampling_run(const struct sampling_opts *o)
{
	const struct vp_session_opts opts = {.filter = VP_FILTER_TGID,
					     .freq_hz = SAMPLING_HZ,
					     .call_graph = o->call_graph,
					     .unwind_mode = o->mode};
	struct vp_recording rec = {.max_stack_bytes = 64 << 20};
	struct vp_joiner joiner = {
		.inner = &vp_recording_ops, .inner_ctx = &rec, .max_bytes = 16 << 20};
	struct vp_decoder decoder = {.ops = &vp_joiner_ops, .ctx = &joiner};
	pid_t pid = bench_workload(o->workload, o->arg);
	struct vp_row_store *rows = NULL;
	struct vp_row_store_stats stats = {0};
	struct vp_session *s = NULL;
	struct vp_err e = {""};
	struct sampling_cost c = {0};

	if (vp_session_open(&s, &opts, &decoder, false, &e) ||
	    vp_session_add_target(s, o->wanted ? pid : getpid(), VP_TARGET_F_ARMED, &e) ||
	    vp_session_walk(s, &pid, 1, &e))
		bench_die("%s", e.text);
	if (o->call_graph != VP_CALL_GRAPH_FP) {
		rows = sampling_load_rows(s, &rec, &e);
		vp_row_store_get_stats(rows, &stats);
	}
	if (vp_session_start(s, &e))
		bench_die("%s", e.text);
	bench_sleep_ms(o->seconds * 1000L);
	vp_session_stop(s, NULL, NULL);
	vp_joiner_flush(&joiner);
	sampling_read_cost(&c, s);
	c.bottom = (double)rec.end_cnt[VP_END_BOTTOM];
	c.whole_samples = (double)rec.sample_cnt;
	c.row_cnt = stats.row_cnt;
	c.row_bytes = stats.bytes;
	vp_session_close(s);
	vp_row_store_free(rows);
	vp_joiner_free(&joiner);
	vp_recording_free(&rec);
	bench_kill(pid);
	return c;
}

/* In the interrupt, less what the runs for others cost, `other_ns` each. */
BENCH double sampling_irq_ns(const struct sampling_cost *c, double other_ns)
{
	if (c->samples < 100)
		bench_die("only %.0f samples of the workload", c->samples);
	return (c->ns - (c->runs - c->samples) * other_ns) / c->samples;
}

/* In both places. */
BENCH double sampling_ns(const struct sampling_cost *c, double other_ns)
{
	return sampling_irq_ns(c, other_ns) + c->task_ns / c->samples;
}

BENCH double sampling_frames(const struct sampling_cost *c)
{
	return c->frames / c->samples;
}

#endif
