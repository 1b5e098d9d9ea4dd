/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "summary.h"

#include "../model/verdict.h"
#include "../util/terminal.h"
#include "../util/utf8.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define HOTTEST_CNT	   10
#define HOTTEST_NAME_BYTES 160
#define NAMELESS_CNT	   5

static double percent(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
}

uint64_t vp_summary_lost(const uint64_t counters[VP_CNT_CNT])
{
	return counters[VP_CNT_LOST_SAMPLE];
}

/* A loss by cause; silent when it did not happen. */
static void print_loss(FILE *f, const char *what, uint64_t n, uint64_t whole)
{
	if (!n)
		return;
	fprintf(f, "  %10" PRIu64 "  %s", n, what);
	if (whole)
		fprintf(f, " (%.2f %%)", percent(n, whole));
	fputc('\n', f);
}

static void print_losses(FILE *f, const struct vp_summary *s)
{
	const uint64_t *c = s->counters;
	uint64_t samples = c[VP_CNT_SAMPLES] + c[VP_CNT_LOST_SAMPLE];

	print_loss(f, "samples lost: the ring was full", c[VP_CNT_LOST_SAMPLE], samples);
	print_loss(f, "mappings lost: the ring was full", c[VP_CNT_LOST_MMAP2], 0);
	print_loss(f, "new mappings left to samples: the CPU was busy with another",
		   c[VP_CNT_LIVE_BUSY], 0);
	print_loss(f, "new mappings left to samples: perf's buffer was full", s->sideband.lost_cnt,
		   0);
	print_loss(f, "new mappings left to samples: their process maps too often",
		   s->sideband.limited_cnt, 0);
	print_loss(f, "new mappings left to samples: their process was changing them",
		   s->sideband.locked_cnt, 0);
	print_loss(f, "exec, fork and exit events lost: the ring was full", c[VP_CNT_LOST_EVENT],
		   0);
	print_loss(f, "samples not kept: the memory for distinct stacks was full",
		   s->recording->stacks_full_cnt, samples);
	print_loss(f, "samples without a kernel stack", c[VP_CNT_KERN_STACK_FAILED], samples);
	print_loss(f, "user stacks lost: the ring was full", c[VP_CNT_LOST_USER_STACK], samples);
	print_loss(f, "user stacks that could not be deferred", c[VP_CNT_DEFER_FAILED], samples);
	print_loss(f, "user stacks not taken: the thread ended, or exec'd, before it could be",
		   s->joiner->exited_cnt, samples);
	print_loss(f, "user stacks not taken: the thread was still in the kernel at the end",
		   s->joiner->in_kernel_cnt, samples);
	print_loss(f, "user stacks not waited for: the memory for samples was full",
		   s->joiner->full_cnt, samples);
	print_loss(f, "kernel stacks cut", s->recording->kern_cut_cnt, samples);
	print_loss(f, "processes beyond the kernel's table: their mappings were asked for anew",
		   c[VP_CNT_PROC_FULL], 0);
	print_loss(f, "files beyond the table of files: not named", c[VP_CNT_FILE_FULL], 0);
	print_loss(f, "files not read: their file system does not answer", s->unread_cnt, 0);
	print_loss(f, "file names too long", c[VP_CNT_NAME_CUT], 0);
	print_loss(f, "children not followed: the table of targets was full", c[VP_CNT_TARGET_FULL],
		   0);
	print_loss(f, "records not understood", s->decoder->bad_cnt + s->decoder->unknown_cnt, 0);
	print_loss(f, "user frames whose mapping never became known", s->built->unresolved_cnt,
		   s->built->user_frame_cnt);
}

static void print_jit_losses(FILE *f, const struct vp_summary *s)
{
	struct vp_jit_stats st;

	if (!s->recording->jit)
		return;
	vp_jit_get_stats(s->recording->jit, &st);
	print_loss(f, "names of JIT code not kept: the memory for their process was full",
		   st.dropped_cnt, 0);
	print_loss(f, "processes whose JIT code lost its names: the memory for all was full",
		   st.evicted_cnt, 0);
	print_loss(f, "perf maps and jitdumps not read to their end: too large", st.cut_cnt, 0);
	if (s->verbose)
		print_loss(f, "lines and records in perf maps and jitdumps that are none",
			   st.bad_cnt, 0);
}

static void print_symbols(FILE *f, const struct vp_summary *s)
{
	const struct vp_symbolizer_stats *st = &s->symbols;

	if (s->verbose)
		fprintf(f,
			"symbolized %" PRIu64 " functions of %" PRIu64
			" files in %.0f ms; tables of "
			"%.1f MB, names of %.1f MB\n",
			st->name_cnt, st->file_cnt[VP_SYM_OK], (double)s->naming_ns / 1e6,
			(double)st->table_bytes / (1 << 20), (double)st->name_bytes / (1 << 20));
	print_loss(f, "symbol tables made room for others (raise --symbol-memory)", st->evicted_cnt,
		   0);
	print_loss(f, "… of which were read again", st->reread_cnt, 0);
	print_loss(f, "files that lost their symbols for want of memory (raise --symbol-memory)",
		   st->lost_file_cnt, 0);
	print_loss(f, "names lost for want of memory (raise --symbol-memory)", st->lost_name_cnt,
		   0);
}

static void print_ends(FILE *f, const struct vp_summary *s)
{
	uint64_t all = 0;

	for (int i = 1; i < VP_END_CNT; i++) {
		if (i != VP_END_KERNEL_ONLY)
			all += s->recording->end_cnt[i];
	}
	if (!all)
		return;
	fputs("user stacks ended:", f);
	for (int i = 1; i < VP_END_CNT; i++) {
		if (i != VP_END_KERNEL_ONLY && s->recording->end_cnt[i])
			fprintf(f, " %s %.1f %%", vp_end_name(i),
				percent(s->recording->end_cnt[i], all));
	}
	fputc('\n', f);
}

/* Of files that should have had rows. That one has no .eh_frame is not worth a warning. */
static void print_failed_file(void *ctx, const char *name, int result)
{
	FILE *f = ctx;

	fputs("  ", f);
	vp_print_safe(f, name);
	fprintf(f, ": %s\n", vp_row_result_text(result));
}

struct first_failed {
	char *name;
	int result;
	uint64_t cnt;
};

static void note_failed_file(void *ctx, const char *name, int result)
{
	struct first_failed *first = ctx;

	if (result == VP_ROWS_NO_CFI || result == VP_ROWS_FOREIGN || first->cnt++ > 0)
		return;
	first->name = strdup(name);
	first->result = result;
}

static void print_rows(FILE *f, const struct vp_summary *s)
{
	struct first_failed first = {0};
	struct vp_row_store_stats st;

	if (!s->rows)
		return;
	vp_row_store_get_stats(s->rows, &st);
	if (s->verbose)
		fprintf(f,
			"unwind rows: %" PRIu64 " of %" PRIu64
			" files, %.1f MB in the kernel; freed "
			"%" PRIu64 " as idle, %" PRIu64 " to make room\n",
			st.row_cnt, st.file_cnt[VP_ROWS_OK], (double)st.bytes / (1 << 20),
			st.idle_cnt, st.evicted_cnt);
	if (s->verbose)
		print_loss(f,
			   "mappings beyond their process's table: kept in a cache that all share",
			   s->counters[VP_CNT_XMAP_FULL], 0);
	if (s->recording->fp_cnt)
		fprintf(f, "found by frame pointer: %.1f %% of user frames\n",
			percent(s->recording->fp_cnt, s->recording->frame_cnt));
	if (s->recording->remapped_cnt)
		fprintf(f,
			"in text that its program moved to anonymous memory: %.1f %% of user "
			"frames\n",
			percent(s->recording->remapped_cnt, s->recording->frame_cnt));
	print_loss(f, "user frames in files whose unwind rows were not there yet",
		   s->recording->no_rows_cnt, s->recording->frame_cnt);
	vp_row_store_each_failed(s->rows, note_failed_file, &first);
	if (first.cnt) {
		fprintf(f, "no unwind rows for %" PRIu64 " file%s: ", first.cnt,
			first.cnt > 1 ? "s, such as" : "");
		vp_print_safe(f, first.name ? first.name : "?");
		fprintf(f, " (%s)\n", vp_row_result_text(first.result));
	}
	if (s->verbose)
		vp_row_store_each_failed(s->rows, print_failed_file, f);
	print_loss(f, "files found no room for unwind rows (raise --unwind-memory)", st.refused_cnt,
		   0);
	free(first.name);
}

static bool begins_with_any(const char *s, const char *const *beginnings)
{
	for (; *beginnings; beginnings++) {
		if (!strncmp(s, *beginnings, strlen(*beginnings)))
			return true;
	}
	return false;
}

static bool is_debian(void)
{
	return access("/etc/debian_version", F_OK) == 0;
}

/* Debian calls the C library's debug package otherwise than all others. */
static const char *debug_package(const char *path)
{
	static const char *const glibc[] = {
		"ld-linux",
		"libBrokenLocale.",
		"libanl.",
		"libc.so.",
		"libc_malloc_debug.",
		"libdl.",
		"libm.so.",
		"libmemusage.",
		"libmvec.",
		"libnsl.so.1",
		"libnss_",
		"libpcprofile.",
		"libpthread.",
		"libresolv.",
		"librt.",
		"libthread_db.",
		"libutil.so.",
		NULL,
	};
	const char *slash = strrchr(path, '/');
	bool is_charset = strstr(path, "/gconv/") != NULL;

	if (!is_debian())
		return "install its debug package";
	if (is_charset || begins_with_any(slash ? slash + 1 : path, glibc))
		return "install libc6-dbg";
	return "install its debug package (find-dbgsym-packages of debian-goodies names it)";
}

static bool is_packaged(const char *path)
{
	static const char *const packaged[] = {"/usr/", "/lib", "/bin/", "/sbin/", NULL};

	return begins_with_any(path, packaged) && strncmp(path, "/usr/local/", 11) != 0;
}

/* What would give the module names. */
static void print_hint(FILE *f, const struct vp_nameless *n, bool debuginfod)
{
	bool stripped = n->reason == VP_SYM_NO_SYMBOLS || n->reason == VP_SYM_GAP;

	if (!strcmp(n->module, "[jit]")) {
		fputs("made at run time: named if it writes a perf map (node --perf-basic-prof, …)",
		      f);
	} else if (n->module[0] == '[') {
		return;
	} else if (!stripped || n->has_symtab) {
		fputs(vp_sym_reason_text(n->reason), f);
	} else if (!is_packaged(n->module)) {
		fputs("stripped: build it with symbols, or put its debug file beside it", f);
	} else {
		fputs(debug_package(n->module), f);
		if (n->has_build_id && !debuginfod)
			fputs(", or --debuginfod", f);
	}
}

static void print_debug_files(FILE *f, const struct vp_summary *s)
{
	const struct debuginfod_stats *d = &s->debug_files;

	if (s->debuginfod)
		fprintf(f,
			"--debuginfod: %zu debug files asked for, %zu found, %zu not there, "
			"%zu not answered in time\n",
			d->asked_cnt, d->found_cnt, d->missing_cnt, d->unanswered_cnt);
}

static void print_nameless(FILE *f, const struct vp_summary *s)
{
	const struct vp_built_report *b = s->built;
	size_t max = s->verbose ? b->nameless_cnt : NAMELESS_CNT;

	if (!b->user_nameless_cnt)
		return;
	fprintf(f, "without a name: %.1f %% of user frames\n",
		percent(b->user_nameless_cnt, b->user_frame_cnt));
	for (size_t i = 0; i < b->nameless_cnt && i < max; i++) {
		const struct vp_nameless *n = &b->nameless[i];

		fprintf(f, "  %5.1f %%  ", percent(n->frame_cnt, b->user_frame_cnt));
		vp_print_safe(f, n->module);
		fputs("  ", f);
		print_hint(f, n, s->debuginfod);
		fputc('\n', f);
	}
	if (b->nameless_cnt > max)
		fprintf(f, "  … and %zu more (-v lists them)\n", b->nameless_cnt - max);
}

static void print_inlines(FILE *f, const struct vp_summary *s)
{
	const struct vp_built_report *b = s->built;

	if (!s->inlines)
		return;
	if (!b->debug_cnt && !b->debug_gone_cnt) {
		fputs("inlined calls: not known: no file has debug information (build with -g, or "
		      "install debug packages)\n",
		      f);
		return;
	}
	fprintf(f, "inlined calls: %.1f per 100 user frames, by debug information of %zu file%s\n",
		percent(b->inlined_cnt, b->user_frame_cnt), b->debug_cnt,
		b->debug_cnt == 1 ? "" : "s");
	if (b->debug_cut)
		fputs("  not of all frames: the memory for them was full (record less at a time)\n",
		      f);
	if (b->debug_gone_cnt)
		fprintf(f,
			"  not of %zu file%s, whose debug information could not be opened any "
			"more\n",
			b->debug_gone_cnt, b->debug_gone_cnt == 1 ? "" : "s");
}

struct hot {
	const struct vp_label *label;
	uint64_t self;
};

static int hottest_first(const void *a, const void *b)
{
	uint64_t sa = ((const struct hot *)a)->self, sb = ((const struct hot *)b)->self;

	return (sa < sb) - (sa > sb);
}

/* A name that leaves the line readable. */
static void print_cut(FILE *f, const char *name)
{
	char text[HOTTEST_NAME_BYTES + 2];

	snprintf(text, sizeof(text), "%s", name);
	vp_utf8_cut(text, HOTTEST_NAME_BYTES);
	vp_print_safe(f, text);
}

static void print_hottest(FILE *f, const struct vp_report *r)
{
	struct hot *hot = calloc(r->label_cnt + 1, sizeof(*hot));

	if (!hot)
		return;
	for (size_t i = 0; i < r->label_cnt; i++)
		hot[i].label = r->labels[i];
	for (size_t i = 0; i < r->stack_cnt; i++) {
		const struct vp_stack *st = &r->stacks[i];

		if (st->frame_cnt)
			hot[st->frames[st->frame_cnt - 1]->id].self += st->count;
	}
	qsort(hot, r->label_cnt, sizeof(*hot), hottest_first);
	fputs("hottest functions (self):\n", f);
	for (size_t i = 0; i < r->label_cnt && i < HOTTEST_CNT && hot[i].self; i++) {
		fprintf(f, "  %5.1f %%  ", percent(hot[i].self, r->sample_cnt));
		print_cut(f, hot[i].label->text);
		fputs("  (", f);
		vp_print_safe(f, hot[i].label->module);
		fputs(hot[i].label->kind == VP_LABEL_INLINED ? ", inlined)\n" : ")\n", f);
	}
	free(hot);
}

static void print_self(FILE *f, const struct vp_summary *s)
{
	const struct vp_meta *m = s->built->report.meta;
	struct rusage u;
	double cpu;

	getrusage(RUSAGE_SELF, &u);
	cpu = (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
	      (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
	fprintf(f, "vmaprof itself: %.2f s CPU (%.2f %% of one CPU), %ld MB memory\n", cpu,
		100.0 * cpu / ((double)m->duration_ns / 1e9), u.ru_maxrss / 1024);
}

static bool ends_with(const char *s, const char *ending)
{
	size_t len = strlen(s), n = strlen(ending);

	return len > n && !strcmp(s + len - n, ending);
}

static void print_output(FILE *f, const struct vp_summary *s)
{
	if (!strcmp(s->output, "-"))
		return;
	fputs("wrote ", f);
	vp_print_safe(f, s->output);
	fprintf(f, " (%" PRIu64 " kB)\n", (s->output_bytes + 1023) / 1024);
	if (ends_with(s->output, ".data") && s->inlines)
		fputs("it holds addresses: inlined calls are in .html and .folded, lines in perf "
		      "report -s srcline\n",
		      f);
	if (ends_with(s->output, ".data"))
		fputs("next: perf report -i ", f);
	else if (ends_with(s->output, ".html"))
		fputs("next: open in a browser: ", f);
	else
		return;
	vp_print_safe(f, s->output);
	fputc('\n', f);
}

static int by_number(const void *a, const void *b)
{
	uint32_t na = *(const uint32_t *)a, nb = *(const uint32_t *)b;

	return (na > nb) - (na < nb);
}

static size_t count_distinct(uint32_t *numbers, size_t cnt)
{
	size_t distinct = 0;

	qsort(numbers, cnt, sizeof(*numbers), by_number);
	for (size_t i = 0; i < cnt; i++)
		distinct += i == 0 || numbers[i] != numbers[i - 1];
	return distinct;
}

static void print_counts(FILE *f, const struct vp_summary *s)
{
	const struct vp_recording *r = s->recording;
	size_t cnt = r->stacks.tally_cnt, processes, threads;
	uint32_t *numbers = malloc((cnt + 1) * sizeof(*numbers));

	if (!numbers)
		return;
	for (size_t i = 0; i < cnt; i++)
		numbers[i] = r->procs.proc[r->stacks.tally[i].proc].id.tgid;
	processes = count_distinct(numbers, cnt);
	for (size_t i = 0; i < cnt; i++)
		numbers[i] = r->stacks.tally[i].tid;
	threads = count_distinct(numbers, cnt);
	free(numbers);
	fprintf(f, "%" PRIu64 " samples in %.1f s, %zu process%s, %zu thread%s, %" PRIu64 " lost\n",
		(uint64_t)r->sample_cnt, (double)s->built->report.meta->duration_ns / 1e9,
		processes, processes == 1 ? "" : "es", threads, threads == 1 ? "" : "s",
		vp_summary_lost(s->counters));
}

static void print_kernel_hint(FILE *f)
{
	if (access("/proc/kallsyms", F_OK))
		fputs("kernel functions have no names: this kernel has no list of them (it takes "
		      "CONFIG_KALLSYMS=y)\n",
		      f);
	else
		fputs("kernel functions have no names: kernel.kptr_restrict hides them "
		      "(sysctl kernel.kptr_restrict=0)\n",
		      f);
}

void vp_summary_print(FILE *f, const struct vp_summary *s)
{
	print_counts(f, s);
	print_losses(f, s);
	print_jit_losses(f, s);
	print_ends(f, s);
	print_rows(f, s);
	print_symbols(f, s);
	print_debug_files(f, s);
	print_nameless(f, s);
	print_inlines(f, s);
	if (s->kernel_hidden)
		print_kernel_hint(f);
	print_hottest(f, &s->built->report);
	print_self(f, s);
	print_output(f, s);
}
