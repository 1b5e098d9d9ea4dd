// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What a sample costs in the interrupt, by the kernel's own statistics of BPF programs, for
 * user stacks of several depths, by frame pointers.
 */
#include "sampling.h"

#define SECONDS 3

static struct sampling_cost sample(const char *depth, bool wanted)
{
	const struct sampling_opts o = {
		.workload = BENCH_WORKLOAD("recurse"),
		.arg = depth,
		.wanted = wanted,
		.call_graph = VP_CALL_GRAPH_FP,
		.mode = VP_UNWIND_INLINE,
		.seconds = SECONDS,
	};

	return sampling_run(&o);
}

static void report(const char *depth, const struct sampling_cost *c, double other_ns)
{
	char id[64], what[96];

	snprintf(id, sizeof(id), "sample.depth_%s", depth);
	snprintf(what, sizeof(what), "a sample with %.1f user frames", sampling_frames(c));
	bench_row(id, what, sampling_irq_ns(c, other_ns), "ns");
}

static void report_slope(const struct sampling_cost *deep, const struct sampling_cost *usual,
			 double other_ns)
{
	double ns = sampling_irq_ns(usual, other_ns);

	bench_row("sample.frame", "each frame more",
		  (sampling_irq_ns(deep, other_ns) - ns) /
			  (sampling_frames(deep) - sampling_frames(usual)),
		  "ns");
	bench_row("sample.cpu", "of a CPU at 999 Hz and depth 30", ns * SAMPLING_HZ / 1e9 * 100,
		  "%");
}

int main(void)
{
	static const char *const depths[] = {"1", "30", "300"};
	struct sampling_cost c[3], other;
	double other_ns, lost = 0;
	int stats;

	vp_loader_capture_messages(false);
	bench_group(
		"Frame pointers in the interrupt (999 Hz), by the kernel's statistics of programs");
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
