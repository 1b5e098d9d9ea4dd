// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Names only, no lines and no inlined calls: a large file opened, 10,000 program counters in its
 * functions answered, and asked for again, with names that stay in the file, and in memory packed, as
 * they are when more files are large than may be open; beside llvm-symbolizer for the same ones. CPU
 * time with the file in the page cache; memory is what is private and stays. SYMBOLS_FILE= names the file,
 * else it is libLLVM; the target is for 165,000 symbols, such as rustc's librustc_driver has.
 */
#include "bench.h"

#include "symbolize/symbolizer.h"

#include <malloc.h>

#define ROUNDS	    7
#define FILE_ID	    1
#define PC_CNT	    10000
#define WARM_ROUNDS 20
#define LINE_BYTES  (1 << 16)

static uint64_t pcs[PC_CNT], offsets[PC_CNT];

/* Functions with their sizes, by nm; each as likely as it is long. How many were read. */
static size_t read_pcs(const char *path)
{
	static char line[LINE_BYTES];
	static struct {
		uint64_t start, behind; /* behind: all sizes so far */
	} f[1 << 20];
	uint64_t size, total = 0;
	size_t cnt = 0;
	char command[4352], type;

	snprintf(command, sizeof(command),
		 "{ nm -n -f posix --defined-only '%s'; nm -D -n -f posix --defined-only '%s'; } "
		 "2>/dev/null",
		 path, path);
	FILE *nm = popen(command, "re");
	while (nm && cnt < sizeof(f) / sizeof(*f) && fgets(line, sizeof(line), nm)) {
		if (sscanf(line, "%*s %c %lx %lx", &type, &f[cnt].start, &size) != 3 || !size ||
		    !strchr("tTwWi", type))
			continue;
		total += size;
		f[cnt++].behind = total;
	}
	if (nm)
		pclose(nm);
	srandom(1);
	for (size_t i = 0; cnt && i < PC_CNT; i++) {
		uint64_t at = ((uint64_t)random() << 31 ^ (uint64_t)random()) % total;
		size_t lo = 0, hi = cnt;

		while (lo < hi) {
			size_t mid = (lo + hi) / 2;

			if (f[mid].behind <= at)
				lo = mid + 1;
			else
				hi = mid;
		}
		pcs[i] = f[lo].start + at - (lo ? f[lo - 1].behind : 0);
	}
	return cnt;
}

static size_t ask_all(struct vp_symbolizer *s)
{
	struct vp_symbol sym;
	size_t named = 0;

	for (size_t i = 0; i < PC_CNT; i++)
		named += !vp_symbolizer_file(s, FILE_ID, offsets[i], &sym);
	return named;
}

struct measured {
	struct bench_series load_ms, ask_ms, warm_us;
	double kept_kb;
	struct vp_file_info info;
	size_t named;
};

static double ms_since(uint64_t start)
{
	return (double)(bench_cpu_ns() - start) / 1e6;
}

static void measure_once(const char *path, const struct vp_symbolizer_opts *opts,
			 struct measured *m)
{
	struct vp_symbolizer *s;
	uint64_t start;
	double before;

	if (vp_symbolizer_new(&s, opts))
		bench_die("out of memory");
	malloc_trim(0);
	before = bench_private_kb();
	start = bench_cpu_ns();
	vp_symbolizer_load_path(s, FILE_ID, path);
	bench_add(&m->load_ms, ms_since(start));
	for (size_t i = 0; i < PC_CNT; i++)
		vp_symbolizer_offset_of(s, FILE_ID, pcs[i], &offsets[i]);
	start = bench_cpu_ns();
	vp_symbolizer_expect(s, FILE_ID, offsets, PC_CNT);
	m->named = ask_all(s);
	bench_add(&m->ask_ms, ms_since(start));
	start = bench_cpu_ns();
	for (int i = 0; i < WARM_ROUNDS; i++)
		ask_all(s);
	bench_add(&m->warm_us, ms_since(start) * 1e3 / PC_CNT / WARM_ROUNDS);
	malloc_trim(0);
	m->kept_kb = bench_private_kb() - before;
	vp_symbolizer_file_info(s, FILE_ID, &m->info);
	vp_symbolizer_free(s);
}

static void row(const char *how, const char *figure, const char *what, double value,
		const char *unit, double target)
{
	char id[64], text[128];

	snprintf(id, sizeof(id), "symbols.%s.%s", how, figure);
	snprintf(text, sizeof(text), "%s: %s", how, what);
	if (target > 0)
		bench_target(id, text, value, unit, "<=", target);
	else
		bench_row(id, text, value, unit);
}

static void report(const char *how, const struct measured *m)
{
	double load = bench_median(&m->load_ms), ask = bench_median(&m->ask_ms);

	row(how, "load", "opening and reading the file", load, "ms", 0);
	row(how, "ask", "10,000 PCs, most for the first time", ask, "ms", 0);
	row(how, "cold", "both together", load + ask, "ms", 25);
	row(how, "warm", "a PC whose function is known", bench_median(&m->warm_us), "us", 0.3);
	row(how, "table", "memory of the table", (double)m->info.bytes / 1e6, "MB", 5);
	row(how, "kept", "private memory, with the names asked for", m->kept_kb / 1e3, "MB", 0);
}

/* Its answers are thrown away. */
static void measure_llvm(const char *path)
{
	char input[] = "/tmp/vmaprof-bench-pcs-XXXXXX", command[4352];
	int fd = mkstemp(input), status;
	FILE *f = fd < 0 ? NULL : fdopen(fd, "w");
	struct rusage u;

	if (!f)
		bench_die("%s: %s", input, strerror(errno));
	for (size_t i = 0; i < PC_CNT; i++)
		fprintf(f, "0x%lx\n", pcs[i]);
	fclose(f);
	snprintf(command, sizeof(command),
		 "exec llvm-symbolizer --no-inlines --no-demangle -e '%s' <%s >/dev/null", path,
		 input);
	pid_t pid = fork();
	if (!pid) {
		execl("/bin/sh", "sh", "-c", command, (char *)NULL);
		_exit(127);
	}
	if (pid < 0 || wait4(pid, &status, 0, &u) != pid)
		bench_die("llvm-symbolizer: %s", strerror(errno));
	unlink(input);
	if (status) {
		bench_skip("symbols.llvm", "llvm-symbolizer", "not installed");
		return;
	}
	bench_row("symbols.llvm_ms", "llvm-symbolizer for the same", bench_cpu_s(&u) * 1e3, "ms");
	bench_row("symbols.llvm_mb", "… its largest memory", (double)u.ru_maxrss / 1e3, "MB");
}

int main(void)
{
	const char *path = getenv("SYMBOLS_FILE");
	static const struct vp_symbolizer_opts in_file = {.demangle = 0},
					       readable = {.demangle = 1},
					       in_memory = {.pack_bytes = 1, .names_in_memory = 1};
	struct measured filed = {.named = 0}, demangled = {.named = 0}, packed = {.named = 0};

	if (!path || !*path)
		path = "/usr/lib/x86_64-linux-gnu/libLLVM-14.so.1";
	bench_group("Names of a large file");
	if (!read_pcs(path)) {
		bench_skip("symbols", path, "not on this machine, or without symbols");
		return 0;
	}
	for (int i = 0; i < ROUNDS; i++) {
		measure_once(path, &in_file, &filed);
		measure_once(path, &readable, &demangled);
		measure_once(path, &in_memory, &packed);
	}
	bench_row("symbols.cnt", "ranges with a name", (double)filed.info.symbol_cnt, "");
	bench_row("symbols.named", "of 10,000 PCs in functions, named", (double)filed.named, "");
	report("filed", &filed);
	row("filed", "demangle", "10,000 PCs, names demangled by libiberty",
	    bench_median(&demangled.ask_ms), "ms", 0);
	report("packed", &packed);
	measure_llvm(path);
	return 0;
}
