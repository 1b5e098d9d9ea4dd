// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What a sample costs in the interrupt, by the kernel's own statistics of BPF programs, for
 * user stacks of several depths.
 */
#include "kernel/loader.h"
#include "kernel/session.h"
#include "bench.h"

#include <bpf/bpf.h>

#define SECONDS	 3
#define FREQ_HZ	 999
#define PROG	 "vp_sample"
#define FDS_LOOK 1024

/* Of one recording. Runs are samples and what was asked for others' interrupts. */
struct cost {
	double ns; /* all runs */
	double runs, samples, frames, lost;
};

/* Our own descriptor of the program: its name alone could be another recorder's. */
static int prog_fd(void)
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
		if (!strcmp(target, "anon_inode:bpf-prog") &&
		    !bpf_obj_get_info_by_fd(fd, &info, &len) && !strcmp(info.name, PROG))
			return fd;
	}
	bench_die("program " PROG " not found");
}

static void read_cost(struct cost *c, const struct vp_session *s)
{
	uint64_t counters[VP_CNT_CNT];
	struct bpf_prog_info info = {0};
	__u32 len = sizeof(info);

	if (vp_session_counters(s, counters) || bpf_obj_get_info_by_fd(prog_fd(), &info, &len))
		bench_die("reading counters: %s", strerror(errno));
	c->samples = (double)counters[VP_CNT_SAMPLES];
	c->frames = (double)counters[VP_CNT_FRAMES];
	c->lost = (double)counters[VP_CNT_LOST_SAMPLE];
	c->runs = (double)info.run_cnt;
	c->ns = (double)info.run_time_ns;
}

/* Of recurse at this depth; `wanted` false: of others than it, so that every run ends at once. */
static struct cost sample(const char *depth, bool wanted)
{
	const struct vp_session_opts opts = {.filter = VP_FILTER_TGID, .freq_hz = FREQ_HZ};
	static const struct vp_record_ops ops;
	struct vp_decoder decoder = {.ops = &ops};
	pid_t pid = bench_workload(BENCH_WORKLOAD("recurse"), depth);
	struct vp_session *s = NULL;
	pid_t target = wanted ? pid : getpid();
	struct vp_err e = {""};
	struct cost c;

	if (vp_session_open(&s, &opts, &decoder, false, &e) ||
	    vp_session_add_target(s, target, VP_TARGET_F_ARMED, &e) ||
	    vp_session_walk(s, &pid, 1, &e) || vp_session_start(s, &e))
		bench_die("%s", e.text);
	bench_sleep_ms(SECONDS * 1000L);
	vp_session_stop(s, NULL, NULL);
	read_cost(&c, s);
	vp_session_close(s);
	bench_kill(pid);
	return c;
}

/* Less what the runs for others cost, `other_ns` each. */
static double ns_per_sample(const struct cost *c, double other_ns)
{
	if (c->samples < 100)
		bench_die("only %.0f samples of the workload", c->samples);
	return (c->ns - (c->runs - c->samples) * other_ns) / c->samples;
}

static double frames_per_sample(const struct cost *c)
{
	return c->frames / c->samples;
}

static void report(const char *depth, const struct cost *c, double other_ns)
{
	char id[64], what[96];

	snprintf(id, sizeof(id), "sample.depth_%s", depth);
	snprintf(what, sizeof(what), "a sample with %.1f user frames", frames_per_sample(c));
	bench_row(id, what, ns_per_sample(c, other_ns), "ns");
}

static void report_slope(const struct cost *deep, const struct cost *usual, double other_ns)
{
	double ns = ns_per_sample(usual, other_ns);

	bench_row("sample.frame", "each frame more",
		  (ns_per_sample(deep, other_ns) - ns) /
			  (frames_per_sample(deep) - frames_per_sample(usual)),
		  "ns");
	bench_row("sample.cpu", "of a CPU at 999 Hz and depth 30", ns * FREQ_HZ / 1e9 * 100, "%");
}

int main(void)
{
	static const char *const depths[] = {"1", "30", "300"};
	struct cost c[3], other;
	double other_ns, lost = 0;
	int stats;

	vp_loader_capture_messages(false);
	bench_group(
		"The sampler in the interrupt (999 Hz), by the kernel's statistics of programs");
	stats = bpf_enable_stats(BPF_STATS_RUN_TIME);
	if (stats < 0) {
		bench_skip("sample", "ns of a sample", "this kernel keeps no such statistics");
		return 0;
	}
	other = sample(depths[0], false);
	other_ns = other.runs > 0 ? other.ns / other.runs : 0;
	for (int i = 0; i < 3; i++) {
		c[i] = sample(depths[i], true);
		report(depths[i], &c[i], other_ns);
		lost += c[i].lost;
	}
	report_slope(&c[2], &c[1], other_ns);
	bench_row("sample.other", "an interrupt of a task that is not wanted", other_ns, "ns");
	bench_target("sample.lost", "samples lost", lost, "", "=", 0);
	close(stats);
	return 0;
}
