// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Compiling the unwind rows of large files: how long, how many, and what they take in the kernel,
 * whose array is whole elements in whole pages. Times are CPU time of one thread with the file in
 * the page cache.
 */
#include "bench.h"

#include "unwind/rows.h"

#include <fcntl.h>

#define ROUNDS	   9
#define PAGE_BYTES 4096

static const struct {
	const char *id, *path;
} files[] = {
	{"libc", "/lib/x86_64-linux-gnu/libc.so.6"},
	{"libLLVM-14", "/usr/lib/x86_64-linux-gnu/libLLVM-14.so.1"},
	{"node", "/usr/bin/node"},
	{"python", "/usr/bin/python3"},
};

struct measured {
	struct bench_series compile_ms, fill_ms;
	struct vp_rows_desc desc;
	uint32_t rows, rules;
};

/* False: there is no such file. */
static bool measure_once(const char *path, struct measured *m)
{
	struct vp_rows *rows;
	int fd = open(path, O_RDONLY | O_CLOEXEC), reason;
	uint64_t start;
	void *image;

	if (fd < 0)
		return false;
	start = bench_cpu_ns();
	reason = vp_rows_compile(&rows, fd);
	bench_add(&m->compile_ms, (double)(bench_cpu_ns() - start) / 1e6);
	if (reason)
		bench_die("%s: %s", path, vp_rows_reason_text(reason));
	start = bench_cpu_ns();
	m->desc = vp_rows_layout(rows);
	image = calloc(m->desc.elem_cnt, VP_ROWS_ELEM_BYTES);
	if (!image)
		bench_die("out of memory");
	vp_rows_fill(rows, &m->desc, image);
	bench_add(&m->fill_ms, (double)(bench_cpu_ns() - start) / 1e6);
	m->rows = rows->cnt;
	m->rules = rows->rule_cnt;
	free(image);
	vp_rows_free(rows);
	close(fd);
	return true;
}

static void row(const char *file, const char *figure, const char *what, double value,
		const char *unit)
{
	char id[64], text[128];

	snprintf(id, sizeof(id), "rows.%s.%s", file, figure);
	snprintf(text, sizeof(text), "%s: %s", file, what);
	bench_row(id, text, value, unit);
}

static double kernel_bytes(const struct vp_rows_desc *d)
{
	uint64_t bytes = (uint64_t)d->elem_cnt * VP_ROWS_ELEM_BYTES;

	return (double)((bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES);
}

static void report(const char *file, const struct measured *m)
{
	double ms = bench_median(&m->compile_ms), bytes = kernel_bytes(&m->desc);
	char id[64], text[128];

	row(file, "rows", "rows", m->rows, "");
	row(file, "rules", "distinct rules", m->rules, "");
	snprintf(id, sizeof(id), "rows.%s.compile", file);
	snprintf(text, sizeof(text), "%s: compiling", file);
	if (!strcmp(file, "libLLVM-14"))
		bench_target(id, text, ms, "ms", "<", 250);
	else
		bench_row(id, text, ms, "ms");
	row(file, "speed", "rows a second", m->rows / ms / 1e3, "M");
	row(file, "fill", "laying them out for the kernel", bench_median(&m->fill_ms), "ms");
	row(file, "kib", "in the kernel", bytes / 1024, "KiB");
	row(file, "bytes_per_row", "a row in the kernel", bytes / m->rows, "B");
}

int main(void)
{
	bench_group("Compiling unwind rows");
	for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
		struct measured m = {.rows = 0};

		for (int round = 0; round < ROUNDS; round++) {
			if (!measure_once(files[i].path, &m))
				break;
		}
		if (m.rows)
			report(files[i].id, &m);
		else
			bench_skip("rows", files[i].id, "not on this machine");
	}
	return 0;
}
