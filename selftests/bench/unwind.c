// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Unwinding by rows: what a frame costs in both modes, on stacks without frame pointers through
 * libc and a library of 100 MB, against frame pointers of an equally deep stack.
 */
#include "sampling.h"

#define SECONDS	     4
#define FRAME_NS_MAX 150

static double other_ns;

static struct sampling_cost record(const char *workload, const char *arg, uint32_t call_graph,
				   enum vp_unwind_mode mode)
{
	const struct sampling_opts o = {
		.workload = workload,
		.arg = arg,
		.wanted = true,
		.call_graph = call_graph,
		.mode = mode,
		.seconds = SECONDS,
	};

	return sampling_run(&o);
}

static void report_floor(void)
{
	const struct sampling_opts o = {
		.workload = BENCH_WORKLOAD("recurse"),
		.arg = "1",
		.call_graph = VP_CALL_GRAPH_FP,
		.mode = VP_UNWIND_INLINE,
		.seconds = SECONDS,
	};
	struct sampling_cost c = sampling_run(&o);

	other_ns = c.runs > 0 ? c.ns / c.runs : 0;
}

/* All of a sample that is not the kernel's stack, over its frames, so more than one frame more. */
static void report_mode(const char *id, const char *what, enum vp_unwind_mode mode)
{
	struct sampling_cost few =
		record(BENCH_WORKLOAD("big_library"), "1", VP_CALL_GRAPH_DWARF, mode);
	struct sampling_cost usual =
		record(BENCH_WORKLOAD("big_library"), "3", VP_CALL_GRAPH_DWARF, mode);
	struct sampling_cost deep =
		record(BENCH_WORKLOAD("big_library"), "8", VP_CALL_GRAPH_DWARF, mode);
	double per_frame = (sampling_ns(&deep, other_ns) - sampling_ns(&few, other_ns)) /
			   (sampling_frames(&deep) - sampling_frames(&few));
	char row[64], text[96];

	snprintf(row, sizeof(row), "unwind.%s.sample", id);
	snprintf(text, sizeof(text), "%s: a sample with %.1f user frames", what,
		 sampling_frames(&usual));
	bench_row(row, text, sampling_ns(&usual, other_ns), "ns");
	snprintf(row, sizeof(row), "unwind.%s.frame", id);
	snprintf(text, sizeof(text), "%s: each frame more", what);
	if (mode == VP_UNWIND_INLINE)
		bench_target(row, text, per_frame, "ns", "<=", FRAME_NS_MAX);
	else
		bench_row(row, text, per_frame, "ns");
	snprintf(row, sizeof(row), "unwind.%s.bottom", id);
	snprintf(text, sizeof(text), "%s: stacks that are whole", what);
	bench_target(row, text,
		     100 * (few.bottom + usual.bottom + deep.bottom) /
			     (few.whole_samples + usual.whole_samples + deep.whole_samples),
		     "%", ">=", 99.5);
}

static void report_fp(void)
{
	struct sampling_cost usual =
		record(BENCH_WORKLOAD("recurse"), "30", VP_CALL_GRAPH_FP, VP_UNWIND_INLINE);

	bench_row("unwind.fp.sample", "by frame pointers, inline: a sample with 30-odd user frames",
		  sampling_ns(&usual, other_ns), "ns");
}

int main(void)
{
	int stats;

	vp_loader_capture_messages(false);
	bench_group("Unwinding by rows (999 Hz; stacks through libc and a library of 100 MB)");
	stats = bpf_enable_stats(BPF_STATS_RUN_TIME);
	if (stats < 0) {
		bench_skip("unwind", "ns of a frame", "this kernel keeps no such statistics");
		return 0;
	}
	report_floor();
	report_fp();
	report_mode("inline", "inline", VP_UNWIND_INLINE);
	report_mode("deferred", "deferred", VP_UNWIND_DEFERRED);
	close(stats);
	return 0;
}
