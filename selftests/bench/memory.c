// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Memory of `vmaprof record -a` with 500 processes of ten libraries each: what its maps take in the
 * kernel, by the kernel's own count, and its resident memory without the pages of those maps.
 */
#include "others.h"

#define PROCESSES   "500"
#define SECONDS	    10
#define DURATION    "13"
#define MB	    (1024.0 * 1024)
#define WORTH_A_ROW (0.1 * MB)
#define ROW_ARRAYS  "row_arrays"

static pid_t start_processes(void)
{
	/* of them ten or so are on most machines, and are on those that build this */
	char *argv[] = {strdup(bench_sibling(BENCH_WORKLOAD("idlers"))),
			PROCESSES,
			"libstdc++.so.6",
			"libcrypto.so.3",
			"libssl.so.3",
			"libelf.so.1",
			"libdw.so.1",
			"libbpf.so.1",
			"libz.so.1",
			"libzstd.so.1",
			"liblzma.so.5",
			"libbz2.so.1.0",
			"libm.so.6",
			NULL};
	FILE *out;
	pid_t pid = bench_spawn(argv, 1, &out);

	others_wait_for(out, "READY ");
	fclose(out);
	free(argv[0]);
	return pid;
}

/* kB of a line "KEY: 123 kB". */
static double kb_of(const char *line, const char *key)
{
	size_t n = strlen(key);

	return strncmp(line, key, n) ? 0 : strtod(line + n, NULL);
}

/* Resident bytes. */
struct rss {
	double all;
	double anon;	/* the process's own */
	double in_maps; /* pages of BPF maps: counted there */
};

static struct rss resident(pid_t pid)
{
	char path[64], line[4200];
	struct rss r = {0};
	bool in_map = false;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/smaps", pid);
	f = fopen(path, "re");
	if (!f)
		bench_die("%s: %s", path, strerror(errno));
	while (fgets(line, sizeof(line), f)) {
		double kb = kb_of(line, "Rss:");

		/* "7f12-7f13 rw-s 00000000 00:0f 12   anon_inode:bpf-map" starts a mapping */
		if (strchr("0123456789abcdef", line[0]))
			in_map = strstr(line, "bpf-map") || strstr(line, "bpf_ringbuf");
		r.all += kb * 1024;
		r.anon += kb_of(line, "Anonymous:") * 1024;
		if (in_map)
			r.in_maps += kb * 1024;
	}
	fclose(f);
	return r;
}

/* Maps of one name as one: the first, which is the largest, gets the others' bytes. */
static void join_names(struct others_maps *m)
{
	size_t kept = 0;

	for (size_t i = 0; i < m->cnt; i++) {
		size_t same = 0;

		while (same < kept && strcmp(m->map[same].name, m->map[i].name))
			same++;
		if (same < kept)
			m->map[same].bytes += m->map[i].bytes;
		else
			m->map[kept++] = m->map[i];
	}
	m->cnt = kept;
	qsort(m->map, m->cnt, sizeof(*m->map), others_largest_first);
}

static double sum_of(const struct others_maps *m)
{
	double sum = 0;

	for (size_t i = 0; i < m->cnt; i++)
		sum += m->map[i].bytes;
	return sum;
}

static void report_maps(struct others_maps *m)
{
	join_names(m);
	for (size_t i = 0; i < m->cnt; i++) {
		char id[64], what[64];

		if (m->map[i].bytes < WORTH_A_ROW)
			return;
		snprintf(id, sizeof(id), "memory.map.%s", m->map[i].name);
		snprintf(what, sizeof(what), "… … %s", m->map[i].name);
		bench_row(id, what, m->map[i].bytes / MB, "MB");
	}
}

static void report(struct others_maps *m, const struct rss *r, double peak)
{
	bench_target("memory.all", "maps in the kernel and resident memory",
		     (sum_of(m) + r->all - r->in_maps) / MB, "MB", "<=", 64);
	bench_row("memory.rss", "… resident, without pages of maps", (r->all - r->in_maps) / MB,
		  "MB");
	bench_row("memory.anon", "… … of it its own, not of files", r->anon / MB, "MB");
	bench_row("memory.peak", "… at the peak, when names are looked up at the end",
		  (peak - r->in_maps) / MB, "MB");
	bench_row("memory.maps", "… maps in the kernel", sum_of(m) / MB, "MB");
	report_maps(m);
}

int main(void)
{
	char *argv[] = {strdup(bench_sibling(BENCH_VMAPROF)),
			"record",
			"-a",
			"--duration",
			DURATION,
			"-o",
			"/dev/null",
			NULL};
	static struct others_maps maps;
	pid_t processes = start_processes(), pid;
	struct rss r;
	struct rusage u;
	char line[4096];
	int status;
	FILE *err;

	bench_group("Memory of record -a with " PROCESSES " processes of ten libraries each");
	pid = bench_spawn(argv, 2, &err);
	others_wait_for(err, " sampling ");
	bench_sleep_ms(SECONDS * 1000L);
	r = resident(pid);
	others_read_maps(pid, &maps, ROW_ARRAYS);
	while (fgets(line, sizeof(line), err))
		;
	fclose(err);
	if (wait4(pid, &status, 0, &u) != pid || status)
		bench_die("%s record failed", argv[0]);
	report(&maps, &r, (double)u.ru_maxrss * 1024);
	bench_kill(processes);
	free(argv[0]);
	return 0;
}
