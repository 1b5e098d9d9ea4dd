// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A process with 128,000 mappings that maps, runs and unmaps anonymous code 4,000 times a second:
 * what sampling it at 99 Hz costs by `vmaprof record`, by reading /proc/PID/maps again whenever
 * a sample hits unknown code, by perf record and by bcc's profile.
 */
#include "others.h"

#include <ctype.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>

/* the skeleton does not include it */
#include "../e2e/open_counter.h"

#include "open_counter.skel.h"

#define VMAS	   "128000"
#define HZ	   99
#define WINDOW_MS  10000
#define SETTLE_MS  2000
#define OTHER_MS   5000 /* what is only beside it */
#define DURATION   "14" /* settling, window and a little */
#define RING_PAGES 8
#define RANGES_MAX 1024

struct target {
	pid_t pid;
	char pid_text[16];
	char counter_path[4096];
	volatile uint64_t *counter; /* pages that it has mapped */
	struct open_counter_bpf *opens;
};

/* Of a window. */
struct cost {
	double core; /* CPU seconds a second */
	double rate; /* of the target's mappings, a second */
};

static void start_target(struct target *t)
{
	char *argv[] = {strdup(bench_sibling(BENCH_WORKLOAD("paced_churn"))), VMAS, "4000",
			t->counter_path, NULL};
	const char *tmp = getenv("TMPDIR");
	FILE *out;
	int fd;

	snprintf(t->counter_path, sizeof(t->counter_path), "%s/churn.XXXXXX", tmp ? tmp : "/tmp");
	fd = mkstemp(t->counter_path);
	if (fd < 0 || ftruncate(fd, 4096))
		bench_die("%s: %s", t->counter_path, strerror(errno));
	t->counter = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
	if (t->counter == MAP_FAILED)
		bench_die("mmap: %s", strerror(errno));
	close(fd);
	t->pid = bench_spawn(argv, 1, &out);
	others_wait_for(out, "READY ");
	fclose(out);
	snprintf(t->pid_text, sizeof(t->pid_text), "%d", t->pid);
	free(argv[0]);
}

static void end_target(struct target *t)
{
	bench_kill(t->pid);
	unlink(t->counter_path);
}

static double rate_since(const struct target *t, uint64_t before, uint64_t start_ns)
{
	return (double)(*t->counter - before) / (double)(bench_now_ns() - start_ns) * 1e9;
}

/* ---- vmaprof -------------------------------------------------------------------------------- */

static void follow(struct target *t, pid_t pid, bool on)
{
	__u32 key = (__u32)pid;
	__u8 one = 1;

	if (on)
		bpf_map__update_elem(t->opens->maps.followed, &key, sizeof(key), &one, sizeof(one),
				     BPF_ANY);
	else
		bpf_map__delete_elem(t->opens->maps.followed, &key, sizeof(key), 0);
}

static pid_t start_record(struct target *t, const char *mode, FILE **err)
{
	char *argv[] = {strdup(bench_sibling(BENCH_VMAPROF)),
			"record",
			"-p",
			t->pid_text,
			"-F",
			"99",
			"--duration",
			DURATION,
			"-o",
			"/dev/null",
			(char *)mode,
			NULL};
	pid_t pid = bench_spawn(argv, 2, err);

	free(argv[0]);
	others_wait_for(*err, " sampling ");
	return pid;
}

static void end_child(pid_t pid, FILE *out, const char *what)
{
	int status;
	char line[4096];

	while (fgets(line, sizeof(line), out))
		;
	fclose(out);
	if (waitpid(pid, &status, 0) != pid || status)
		bench_die("%s failed", what);
}

/* Of the window between a and b. */
static void report_record(const struct others_cost *a, const struct others_cost *b, double ns,
			  double rate)
{
	double all = b->cpu_ns + b->run_ns + b->task_ns - a->cpu_ns - a->run_ns - a->task_ns;

	bench_target("churn.cpu", "vmaprof record: CPU time, of a core", all / ns * 100, "%",
		     "<=", 0.5);
	bench_row("churn.cpu_process", "… of the process itself",
		  (b->cpu_ns - a->cpu_ns) / ns * 100, "%");
	bench_row("churn.cpu_programs", "… of its BPF programs", (b->run_ns - a->run_ns) / ns * 100,
		  "%");
	bench_row("churn.cpu_task", "… of user stacks taken in the target",
		  (b->task_ns - a->task_ns) / ns * 100, "%");
	bench_row("churn.first_walk", "… mappings walked before that", a->walk_runs, "");
	bench_target("churn.walks", "… mappings walked in the window", b->walk_runs - a->walk_runs,
		     "", "=", 0);
	bench_row("churn.samples", "… samples a second", (b->samples - a->samples) / ns * 1e9, "");
	bench_row("churn.sample", "… a sample, in the interrupt and in the target",
		  (b->run_ns + b->task_ns - a->run_ns - a->task_ns) / (b->samples - a->samples) /
			  1000,
		  "us");
	bench_row("churn.rate", "… mappings of the target a second", rate, "");
}

static void report_inline(const struct others_cost *a, const struct others_cost *b, double ns,
			  double rate)
{
	bench_target("churn.inline_cpu", "vmaprof record --unwind-mode inline: CPU time, of a core",
		     (b->cpu_ns + b->run_ns - a->cpu_ns - a->run_ns) / ns * 100, "%", "<=", 0.5);
	bench_target("churn.inline_walks", "… mappings walked in the window",
		     b->walk_runs - a->walk_runs, "", "=", 0);
	bench_row("churn.inline_samples", "… samples a second",
		  (b->samples - a->samples) / ns * 1e9, "");
	bench_row("churn.inline_rate", "… mappings of the target a second", rate, "");
}

/* mode: an option of vmaprof record, or NULL. */
static void measure_record(struct target *t, const char *mode,
			   void (*report)(const struct others_cost *a, const struct others_cost *b,
					  double ns, double rate))
{
	struct others_cost a, b;
	uint64_t start, before;
	double ns, rate;
	FILE *err;
	pid_t pid = start_record(t, mode, &err);

	bench_sleep_ms(SETTLE_MS);
	a = others_read_cost(pid);
	start = bench_now_ns();
	before = *t->counter;
	bench_sleep_ms(WINDOW_MS);
	b = others_read_cost(pid);
	ns = (double)(bench_now_ns() - start);
	rate = rate_since(t, before, start);
	end_child(pid, err, "vmaprof record");
	report(&a, &b, ns, rate);
}

static void measure_modes(struct target *t)
{
	int stats = bpf_enable_stats(BPF_STATS_RUN_TIME);

	if (stats < 0) {
		bench_skip("churn.cpu", "CPU time", "this kernel keeps no statistics of programs");
		return;
	}
	measure_record(t, NULL, report_record);
	measure_record(t, "--unwind-mode=inline", report_inline);
	close(stats);
}

/* A run of its own: counting opens costs every system call of the machine something. */
static void count_opens(struct target *t)
{
	FILE *err;
	pid_t pid;

	t->opens = open_counter_bpf__open_and_load();
	if (!t->opens || open_counter_bpf__attach(t->opens)) {
		bench_skip("churn.opens", "opens of /proc/*/maps", "cannot be counted here");
		open_counter_bpf__destroy(t->opens);
		return;
	}
	/* A child is followed from its birth on. */
	follow(t, getpid(), true);
	pid = start_record(t, NULL, &err);
	follow(t, getpid(), false);
	end_child(pid, err, "vmaprof record");
	if (t->opens->bss->counts.all_opens == 0)
		bench_die("the counter of opens saw none at all");
	bench_target("churn.opens", "opens of any /proc/*/maps by it, and queries",
		     (double)(t->opens->bss->counts.map_opens + t->opens->bss->counts.map_queries),
		     "", "=", 0);
	open_counter_bpf__destroy(t->opens);
}

/* ---- the old way: text ---------------------------------------------------------------------- */

struct range {
	uint64_t start, end;
};

struct text_reader {
	pid_t pid;
	struct perf_event_mmap_page *ring;
	struct range code[RANGES_MAX];
	size_t code_cnt;
	size_t read_cnt, sample_cnt;
};

/* Samples of the process with nothing but the address. */
static void open_samples(struct text_reader *r, int *fd)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.freq = 1,
		.sample_freq = HZ,
		.sample_type = PERF_SAMPLE_IP,
		.exclude_kernel = 1,
	};

	*fd = (int)syscall(SYS_perf_event_open, &attr, r->pid, -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (*fd < 0)
		bench_die("perf_event_open: %s", strerror(errno));
	r->ring = mmap(NULL, (RING_PAGES + 1) * 4096UL, PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
	if (r->ring == MAP_FAILED)
		bench_die("mmap: %s", strerror(errno));
}

/* "55d0a0000000-55d0a0001000 r-xp …": ascending. The hexadecimal by hand: sscanf takes twice as long. */
static bool parse_line(const char *line, struct range *x)
{
	char *end;

	x->start = strtoull(line, &end, 16);
	if (*end != '-')
		return false;
	x->end = strtoull(end + 1, &end, 16);
	return end[0] == ' ' && end[3] == 'x';
}

static void read_text(struct text_reader *r)
{
	char path[64], line[4200];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/maps", r->pid);
	f = fopen(path, "re");
	if (!f)
		bench_die("%s: %s", path, strerror(errno));
	r->code_cnt = 0;
	while (fgets(line, sizeof(line), f))
		if (r->code_cnt < RANGES_MAX && parse_line(line, &r->code[r->code_cnt]))
			r->code_cnt++;
	fclose(f);
	r->read_cnt++;
}

static bool is_known(const struct text_reader *r, uint64_t ip)
{
	for (size_t i = 0; i < r->code_cnt; i++)
		if (ip >= r->code[i].start && ip < r->code[i].end)
			return true;
	return false;
}

/* Whether one of the samples that wait hit unknown code; all are taken. */
static bool take_samples(struct text_reader *r)
{
	uint64_t head = __atomic_load_n(&r->ring->data_head, __ATOMIC_ACQUIRE);
	uint64_t tail = r->ring->data_tail;
	const char *data = (const char *)r->ring + 4096;
	bool unknown = false;

	/* a record of a sample: header and address, 16 bytes, so that none wraps around */
	while (tail < head) {
		const struct perf_event_header *h =
			(const void *)(data + tail % (RING_PAGES * 4096UL));

		if (h->size == 0)
			break;
		if (h->type == PERF_RECORD_SAMPLE) {
			r->sample_cnt++;
			unknown |= !is_known(r, *(const uint64_t *)(h + 1));
		}
		tail += h->size;
	}
	__atomic_store_n(&r->ring->data_tail, tail, __ATOMIC_RELEASE);
	return unknown;
}

/* Looks at the samples of each interval and reads the text at most once for them. */
static void measure_text(struct target *t)
{
	static struct text_reader r;
	uint64_t start, cpu, before;
	double s;
	int fd;

	r.pid = t->pid;
	open_samples(&r, &fd);
	read_text(&r);
	r.read_cnt = 0;
	start = bench_now_ns();
	cpu = bench_cpu_ns();
	before = *t->counter;
	while (bench_now_ns() - start < OTHER_MS * 1000000ULL) {
		bench_sleep_ms(1000 / HZ);
		if (take_samples(&r))
			read_text(&r);
	}
	s = (double)(bench_now_ns() - start) / 1e9;
	bench_row("churn.text_cpu", "reading /proc/PID/maps on unknown code: CPU time, of a core",
		  (double)(bench_cpu_ns() - cpu) / 1e9 / s * 100, "%");
	bench_row("churn.text_reads", "… times read, a second", (double)r.read_cnt / s, "");
	bench_row("churn.text_samples", "… samples, a second", (double)r.sample_cnt / s, "");
	bench_row("churn.text_rate", "… mappings of the target a second",
		  rate_since(t, before, start), "");
	munmap(r.ring, (RING_PAGES + 1) * 4096UL);
	close(fd);
}

/* ---- peers ---------------------------------------------------------------------------------- */

static bool is_installed(const char *name)
{
	char path[4096];
	const char *dirs = getenv("PATH");

	while (dirs && *dirs) {
		size_t n = strcspn(dirs, ":");

		snprintf(path, sizeof(path), "%.*s/%s", (int)n, dirs, name);
		if (!access(path, X_OK))
			return true;
		dirs += n + (dirs[n] == ':');
	}
	return false;
}

/* argv runs until it is interrupted. Not its start and its end. */
static bool measure_peer(struct target *t, char *const argv[], struct cost *c)
{
	uint64_t start, before;
	double cpu;
	FILE *err;
	pid_t pid = bench_spawn(argv, 2, &err);
	int status;

	bench_sleep_ms(SETTLE_MS);
	if (waitpid(pid, &status, WNOHANG) == pid) {
		fclose(err);
		return false;
	}
	start = bench_now_ns();
	before = *t->counter;
	cpu = others_cpu_ns(pid);
	bench_sleep_ms(OTHER_MS);
	c->core = (others_cpu_ns(pid) - cpu) / (double)(bench_now_ns() - start);
	c->rate = rate_since(t, before, start);
	bench_kill(pid);
	fclose(err);
	return true;
}

static void report_peer(struct target *t, const char *id, const char *what, char *const argv[])
{
	char name[64], text[96];
	struct cost c;

	snprintf(name, sizeof(name), "churn.%s", id);
	snprintf(text, sizeof(text), "%s: CPU time of the process, of a core", what);
	if (!is_installed(argv[0])) {
		bench_skip(name, text, "not installed");
		return;
	}
	if (!measure_peer(t, argv, &c)) {
		bench_skip(name, text, "does not work here");
		return;
	}
	bench_row(name, text, c.core * 100, "%");
	snprintf(name, sizeof(name), "churn.%s_rate", id);
	bench_row(name, "… mappings of the target a second", c.rate, "");
}

static void compare_peers(struct target *t)
{
	char *perf[] = {"perf", "record",    "-F", "99",	"-g",
			"-o",	"/dev/null", "-p", t->pid_text, NULL};
	char *bcc[] = {"profile-bpfcc", "-F", "99", "-p", t->pid_text, "60", NULL};

	report_peer(t, "perf", "perf record -F 99 -g -p", perf);
	report_peer(t, "bcc", "profile-bpfcc -F 99 -p", bcc);
}

static int ignore_messages(enum libbpf_print_level level, const char *fmt, va_list ap)
{
	(void)level;
	(void)fmt;
	(void)ap;
	return 0;
}

int main(void)
{
	static struct target t;

	libbpf_set_print(ignore_messages);
	start_target(&t);
	bench_group("A process with 128000 mappings that maps code 4,000 times a second, at 99 Hz");
	measure_modes(&t);
	count_opens(&t);
	measure_text(&t);
	compare_peers(&t);
	end_target(&t);
	return 0;
}
