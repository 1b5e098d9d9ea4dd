// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * From exec to the sampler attached, with BPF objects loaded concurrently and one after the other;
 * and where the time goes.
 */
#include "kernel/loader.h"
#include "kernel/perf_events.h"
#include "kernel/pidns.h"
#include "kernel/session.h"
#include "kernel/walker.h"
#include "bench.h"

#include "sampler.skel.h"
#include "track.skel.h"

#define ROUNDS	   10
#define RING_BYTES (4 << 20)

/* Until `vmaprof record` says that it samples. */
static double start_ms(bool sequential)
{
	char *argv[] = {strdup(bench_sibling(BENCH_VMAPROF)),
			"record",
			"-a",
			"--duration",
			"0.01",
			"-o",
			"/dev/null",
			sequential ? "--sequential-load" : NULL,
			NULL};
	char line[1024] = "";
	uint64_t start = bench_now_ns();
	FILE *out;
	pid_t pid = bench_spawn(argv, 2, &out);
	double ms;

	if (!fgets(line, sizeof(line), out) || strncmp(line, "vmaprof: sampling", 17))
		bench_die("%s record: %s", argv[0], line[0] ? line : "did not start");
	ms = bench_ms_since(start);
	while (fgets(line, sizeof(line), out))
		;
	fclose(out);
	waitpid(pid, NULL, 0);
	free(argv[0]);
	return ms;
}

enum { SAMPLER, WALK, TRACK, UNIT_CNT };
enum { OPEN, CONCURRENT, SEQUENTIAL, PHASE_CNT };

static const char *const unit_names[UNIT_CNT] = {"sampler", "synth", "track"};

struct loading {
	struct vp_shared_maps maps;
	struct sampler *sampler;
	struct track *track;
	struct vp_walker walker;
	struct vp_load_unit units[UNIT_CNT];
	struct bench_series maps_ms, phase_ms[PHASE_CNT], alone_ms[UNIT_CNT], together_ms[UNIT_CNT];
	struct bench_series cpu_ms; /* of loading one after the other */
};

static void open_objects(struct loading *l)
{
	struct bpf_object_open_opts opts = vp_core_btf_opts(&l->maps.core_btf);
	struct vp_err e = {""};

	l->sampler = sampler__open_opts(&opts);
	l->track = track__open_opts(&opts);
	if (!l->sampler || !l->track ||
	    vp_walker_open(&l->walker, &l->maps, false, true, &l->units[WALK], &e))
		bench_die("opening BPF objects: %s", e.text);
	l->sampler->rodata->vp_pidns_inum = vp_pidns_inum();
	l->track->rodata->vp_pidns_inum = vp_pidns_inum();
	l->units[SAMPLER] = (struct vp_load_unit){.skeleton = l->sampler->skeleton,
						  .core_btf = &l->maps.core_btf};
	l->units[TRACK] = (struct vp_load_unit){
		.skeleton = l->track->skeleton, .core_btf = &l->maps.core_btf, .optional = true};
	if (vp_shared_maps_reuse(&l->maps, l->sampler->obj, &e) ||
	    vp_shared_maps_reuse(&l->maps, l->track->obj, &e))
		bench_die("sharing maps among BPF objects");
}

/* What a session does before it attaches, each step timed. */
static void load_once(struct loading *l, bool sequential)
{
	struct bench_series *each = sequential ? l->alone_ms : l->together_ms;
	struct vp_err e = {""};
	uint64_t start = bench_now_ns(), cpu;

	if (vp_shared_maps_create(&l->maps, RING_BYTES, 4096, &e))
		bench_die("%s", e.text);
	bench_add(&l->maps_ms, bench_ms_since(start));

	start = bench_now_ns();
	open_objects(l);
	bench_add(&l->phase_ms[OPEN], bench_ms_since(start));

	start = bench_now_ns();
	cpu = bench_cpu_ns();
	if (vp_load(l->units, UNIT_CNT, sequential, &e))
		bench_die("%s", e.text);
	if (sequential)
		bench_add(&l->cpu_ms, (double)(bench_cpu_ns() - cpu) / 1e6);
	bench_add(&l->phase_ms[sequential ? SEQUENTIAL : CONCURRENT], bench_ms_since(start));
	for (int i = 0; i < UNIT_CNT; i++)
		bench_add(&each[i], (double)l->units[i].load_ns / 1e6);

	vp_load_units_free(l->units, UNIT_CNT);
	sampler__destroy(l->sampler);
	track__destroy(l->track);
	vp_walker_close(&l->walker);
	vp_shared_maps_destroy(&l->maps);
}

/* What a session adds: events, the walk over all processes, the attachments. */
static double session_ms(void)
{
	const struct vp_session_opts opts = {.filter = VP_FILTER_ALL, .freq_hz = 99};
	static const struct vp_record_ops ops;
	struct vp_decoder decoder = {.ops = &ops};
	struct vp_session *s;
	struct vp_err e = {""};
	uint64_t start;
	double ms;

	if (vp_session_open(&s, &opts, &decoder, false, &e))
		bench_die("%s", e.text);
	start = bench_now_ns();
	vp_session_track(s);
	if (vp_session_walk(s, NULL, 0, &e) || vp_session_start(s, &e))
		bench_die("%s", e.text);
	ms = bench_ms_since(start);
	vp_session_stop(s, NULL, NULL);
	vp_session_close(s);
	return ms;
}

static void report_whole(const struct bench_series *together, const struct bench_series *alone)
{
	double median = bench_median(together);

	bench_group("From exec to the sampler attached (vmaprof record -a)");
	bench_target("start.median", "median of 10", median, "ms", "<=", 150);
	bench_row("start.min", "fastest", bench_quantile(together, 0), "ms");
	bench_row("start.max", "slowest", bench_quantile(together, 1), "ms");
	bench_row("start.sequential", "objects loaded one after the other, median",
		  bench_median(alone), "ms");
	bench_row("start.sequential_max", "… slowest", bench_quantile(alone, 1), "ms");
	bench_row("start.speedup", "one after the other : concurrently",
		  bench_median(alone) / median, "x");
}

static void report_parts(const struct loading *l, const struct bench_series *attach)
{
	char id[64], what[64];

	bench_group("… its parts, in one process");
	bench_row("start.maps", "shared maps made", bench_median(&l->maps_ms), "ms");
	bench_row("start.open", "objects opened", bench_median(&l->phase_ms[OPEN]), "ms");
	bench_row("start.load", "objects loaded, concurrently",
		  bench_median(&l->phase_ms[CONCURRENT]), "ms");
	bench_row("start.load_sequential", "objects loaded, one after the other",
		  bench_median(&l->phase_ms[SEQUENTIAL]), "ms");
	bench_row("start.load_cpu", "… CPU time of that", bench_median(&l->cpu_ms), "ms");
	for (int i = 0; i < UNIT_CNT; i++) {
		snprintf(id, sizeof(id), "start.load.%s", unit_names[i]);
		snprintf(what, sizeof(what), "… %s alone", unit_names[i]);
		bench_row(id, what, bench_median(&l->alone_ms[i]), "ms");
		snprintf(id, sizeof(id), "start.load_concurrent.%s", unit_names[i]);
		snprintf(what, sizeof(what), "… %s beside the others", unit_names[i]);
		bench_row(id, what, bench_median(&l->together_ms[i]), "ms");
	}
	bench_row("start.attach", "tracking attached, all processes walked, sampler attached",
		  bench_median(attach), "ms");
}

int main(void)
{
	struct bench_series together = {0}, alone = {0}, attach = {0};
	struct loading l = {0};

	vp_loader_capture_messages(false);
	start_ms(false); /* the file's pages come into memory */
	for (int round = 0; round < ROUNDS; round++) {
		bench_add(&together, start_ms(false));
		bench_add(&alone, start_ms(true));
		load_once(&l, false);
		load_once(&l, true);
		bench_add(&attach, session_ms());
	}
	report_whole(&together, &alone);
	report_parts(&l, &attach);
	return 0;
}
