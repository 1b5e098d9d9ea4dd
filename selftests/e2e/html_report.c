/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Writes an HTML report of made-up samples: html_report KIND FILE. Used by html_browser.sh,
 * which compiles it against the program's library.
 *
 *	known    a few stacks whose every number the browser check knows
 *	big      10,000 distinct stacks of about 50 frames
 *	deep     stacks of 1,150 frames
 *	hostile  names that try to break out of the page
 *	empty    no samples
 */
#include "output/outfile.h"
#include "output/writers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct made {
	struct vp_label *labels;
	const struct vp_label **by_id;
	size_t label_cnt;
	struct vp_stack *stacks;
	size_t stack_cnt;
	uint64_t sample_cnt;
};

#define LABEL_MAX 8000
#define STACK_MAX 20000

static const struct vp_label *label(struct made *m, const char *text, const char *module,
				    enum vp_label_kind kind)
{
	for (size_t i = 0; i < m->label_cnt; i++) {
		if (!strcmp(m->labels[i].text, text) && !strcmp(m->labels[i].module, module))
			return &m->labels[i];
	}

	struct vp_label *l = &m->labels[m->label_cnt];
	*l = (struct vp_label){
		.text = strdup(text), .module = module, .kind = kind, .id = (uint32_t)m->label_cnt};
	m->by_id[m->label_cnt++] = l;
	return l;
}

static void stack(struct made *m, const char *comm, uint32_t tgid, uint32_t tid, uint64_t count,
		  const struct vp_label *const *frames, size_t frame_cnt)
{
	const struct vp_label **copy = calloc(frame_cnt + 1, sizeof(*copy));

	memcpy(copy, frames, frame_cnt * sizeof(*copy));
	m->stacks[m->stack_cnt++] = (struct vp_stack){comm, tgid, tid, count, frame_cnt, copy};
	m->sample_cnt += count;
}

/* words: names outermost first, each 'u', 'k', 'j', 'i' or '?' (its kind) and the text. */
static void words(struct made *m, const char *comm, uint32_t tgid, uint32_t tid, uint64_t count,
		  const char *names)
{
	const struct vp_label *frames[64];
	char *copy = strdup(names), *save = NULL;
	size_t n = 0;

	for (char *w = strtok_r(copy, " ", &save); w; w = strtok_r(NULL, " ", &save)) {
		static const char kinds[] = "ukji?";
		enum vp_label_kind kind = (enum vp_label_kind)(strchr(kinds, w[0]) - kinds);

		frames[n++] = label(m, w + 1, kind == VP_LABEL_KERNEL ? "[kernel]" : "app", kind);
	}
	stack(m, comm, tgid, tid, count, frames, n);
	free(copy);
}

static void lines(struct made *m, const char *name, const struct vp_line *of, size_t cnt)
{
	for (size_t i = 0; i < m->label_cnt; i++) {
		if (!strcmp(m->labels[i].text, name)) {
			m->labels[i].lines = of;
			m->labels[i].line_cnt = cnt;
		}
	}
}

static void make_known(struct made *m)
{
	static const struct vp_line of_parse[] = {
		{"/src/parse.c", 12, 40}, {"/src/parse.c", 14, 14}, {"/src/parse.h", 0, 6}};
	static const struct vp_line of_send[] = {{"/src/send.h", 3, 20}};

	words(m, "web", 10, 10, 40, "umain userve uparse");
	words(m, "web", 10, 10, 10, "umain userve uparse uparse");
	words(m, "web", 10, 11, 20, "umain userve isend kdo_write");
	words(m, "db", 20, 20, 25, "umain ulookup");
	words(m, "db", 20, 20, 3, "umain j[jit] uparse");
	words(m, "db", 20, 20, 2, "?[unknown]");
	lines(m, "parse", of_parse, 3);
	lines(m, "send", of_send, 1);
}

static const char *const verbs[] = {"read",  "write", "parse",	"alloc", "free", "lookup", "insert",
				    "flush", "poll",  "decode", "hash",	 "copy", "merge",  "scan"};
static const char *const nouns[] = {"buffer", "request", "page",  "tuple",  "index", "socket",
				    "header", "node",	 "entry", "string", "queue", "block"};
#define CNT(a) (sizeof(a) / sizeof((a)[0]))

static uint32_t seed = 12345;

static uint32_t pick(uint32_t below)
{
	seed = seed * 1664525u + 1013904223u;
	return (seed >> 8) % below;
}

/* Real stacks share their outer frames more often than not. */
static uint32_t deeper(uint32_t below)
{
	uint32_t a = pick(below), b = pick(below);

	return a > b ? a : b;
}

static const struct vp_label *some_function(struct made *m, uint32_t which)
{
	char name[160];
	uint32_t v = which % CNT(verbs), n = which / CNT(verbs) % CNT(nouns);

	if (which % 11 == 3) {
		snprintf(name, sizeof(name),
			 "std::vector<app::%s%u, std::allocator<app::%s%u> >::%s(unsigned long)",
			 nouns[n], which, nouns[n], which, verbs[v]);
		return label(m, name, "libapp.so.1", VP_LABEL_INLINED);
	}
	snprintf(name, sizeof(name), "%s_%s_%u", verbs[v], nouns[n], which);
	if (which % 13 == 5)
		return label(m, name, "", VP_LABEL_JIT);
	return label(m, name, which % 3 ? "libapp.so.1" : "libc.so.6", VP_LABEL_USER);
}

static size_t kernel_tail(struct made *m, const struct vp_label **frames, size_t n)
{
	static const char *const tail[] = {"entry_SYSCALL_64_after_hwframe",
					   "do_syscall_64",
					   "ksys_write",
					   "vfs_write",
					   "ext4_file_write_iter",
					   "generic_perform_write",
					   "copy_page_from_iter_atomic"};
	size_t len = 3 + pick(CNT(tail) - 2);

	for (size_t i = 0; i < len && i < CNT(tail); i++)
		frames[n++] = label(m, tail[i], "[kernel]", VP_LABEL_KERNEL);
	return n;
}

/* Changes the end of the stack before, so that the graph tapers as a real one does. */
static void make_big(struct made *m)
{
	static const char *const comms[] = {"nginx", "postgres", "java", "kworker/0:1"};
	static const uint32_t skew[] = {0, 0, 0, 0, 1, 1, 1, 2, 2, 3};
	uint32_t path[64];

	for (size_t i = 0; i < CNT(path); i++)
		path[i] = pick(1500);
	for (size_t i = 0; i < 10000; i++) {
		const struct vp_label *frames[80];
		uint32_t who = skew[pick(CNT(skew))];
		size_t len = 44, n = 0, from = 2 + deeper(42);

		frames[n++] = label(m, "_start", "app", VP_LABEL_USER);
		frames[n++] = label(m, "main", "app", VP_LABEL_USER);
		for (size_t k = from; k < len; k++)
			path[k] = pick(1500);
		path[2] = who * 7;
		for (size_t k = 2; k < len; k++)
			frames[n++] = some_function(m, path[k]);
		if (i % 3 == 0)
			n = kernel_tail(m, frames, n);
		if (i % 97 == 0)
			frames[n++] = label(m, "[unknown]", "", VP_LABEL_UNKNOWN);
		stack(m, comms[who], 100 * (who + 1), 100 * (who + 1) + pick(6),
		      1 + (pick(20) == 0 ? pick(400) : pick(4)), frames, n);
	}
}

static void make_deep(struct made *m)
{
	const struct vp_label *frames[1150];

	for (size_t i = 0; i < 300; i++) {
		size_t len = 1150 - pick(300);

		for (size_t k = 0; k < len; k++)
			frames[k] = some_function(m, k < 800 ? (uint32_t)k % 5 : pick(40));
		stack(m, "deep", 7, 7, 1 + pick(5), frames, len);
	}
}

static void make_hostile(struct made *m)
{
	static const char *const names[] = {
		"</script><script>window.owned=1</script>",
		"<!--<script>",
		"]]>\"'`${window.owned=1}\\",
		"</noscript><img src=x onerror=window.owned=1>",
		"</textarea></style></title><svg onload=window.owned=1>",
		"\xff\xfe bad \xc3( utf-8 \xed\xa0\x80",
		"line\xe2\x80\xa8sep\xe2\x80\xa9par",
		"tab\tnl\ncr\r\x01\x1b[31m\x7f",
		"\xe2\x80\xaegnp.exe",
		"{{data}}{{nonce}}",
		"__proto__",
		"constructor",
		"\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e \xf0\x9f\x94\xa5",
		"",
	};
	static struct vp_line of[CNT(names)];
	const struct vp_label *frames[CNT(names)];

	for (size_t i = 0; i < CNT(names); i++) {
		of[i] = (struct vp_line){names[(i + 2) % CNT(names)], (uint32_t)i, 1};
		frames[i] = label(m, names[i], names[(i + 1) % CNT(names)],
				  (enum vp_label_kind)(i % 5));
		lines(m, names[i], of, i + 1);
		stack(m, names[i], 1, (uint32_t)i + 1, 1, frames, i + 1);
	}
}

static int write_report(const struct made *m, const char *path, const char *target)
{
	static char *argv[] = {"vmaprof",    "record", "-a", "-F",	    "99",
			       "--duration", "30",     "-o", "vmaprof.html"};
	struct vp_meta meta = {
		.version = "0.1",
		.hostname = "db7.example",
		.release = "6.12.43-amd64",
		.arch = "x86_64",
		.cpu_desc = "AMD EPYC 7B13",
		.target = target,
		.event = "cpu-clock",
		.argc = CNT(argv),
		.argv = argv,
		.cpus_online = 2,
		.freq_hz = 99,
		.start_realtime_s = 1760000000,
		.duration_ns = 30000000000ull,
		.lost_cnt = m->sample_cnt / 400,
	};
	struct vp_report r = {&meta,	m->stacks,    m->stack_cnt,
			      m->by_id, m->label_cnt, m->sample_cnt};
	struct vp_outfile *o;
	struct vp_err e;

	if (vp_outfile_open(&o, path, &e)) {
		fprintf(stderr, "%s\n", e.text);
		return 1;
	}
	if (vp_write_html(vp_outfile_stream(o), &r)) {
		vp_outfile_abort(o);
		return 1;
	}
	return vp_outfile_commit(o, NULL, &e) ? 1 : 0;
}

int main(int argc, char **argv)
{
	struct made m = {
		.labels = calloc(LABEL_MAX, sizeof(*m.labels)),
		.by_id = calloc(LABEL_MAX, sizeof(*m.by_id)),
		.stacks = calloc(STACK_MAX, sizeof(*m.stacks)),
	};
	const char *target = "all processes";

	if (argc != 3 || !m.labels || !m.by_id || !m.stacks)
		return 2;
	if (!strcmp(argv[1], "known"))
		make_known(&m);
	else if (!strcmp(argv[1], "big"))
		make_big(&m);
	else if (!strcmp(argv[1], "deep"))
		make_deep(&m);
	else if (!strcmp(argv[1], "hostile"))
		make_hostile(&m);
	if (!strcmp(argv[1], "hostile"))
		target = "</title><script>window.owned=1</script>{{data}}";
	return write_report(&m, argv[2], target);
}
