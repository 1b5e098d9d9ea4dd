// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * demo [CPU_SECONDS]: a small imaginary web service for `make demo`. Two http-worker threads
 * answer requests, a compressor, a logger and a rules-jit thread work beside them; all share
 * one CPU, so it takes about one core. Runs until it is killed.
 */
#include "workload.h"

#include <pthread.h>
#include <sched.h>
#include <sys/random.h>

#define ROW_CNT	   512
#define PAGE_BYTES 8192
#define BLOCK	   16384

/* Keeps a value that nothing else uses. */
#define USE(x) __asm__ volatile("" : : "r"(x) : "memory")

static char perf_map[64];

struct request {
	unsigned char raw[1024];
	unsigned int token_cnt;
	unsigned int hash;
};

struct service {
	unsigned int seed;
	unsigned int rows[ROW_CNT];
	char page[PAGE_BYTES];
	size_t page_used;
	int socket;
};

static unsigned int next_random(unsigned int *state)
{
	WL_KEEP_FRAME();

	*state = *state * 1664525u + 1013904223u;
	return *state >> 8;
}

/* ---- http-worker ---- */

void tokenize_headers(struct request *rq)
{
	WL_KEEP_FRAME();
	unsigned int tokens = 0;

	for (int pass = 0; pass < 12; pass++)
		for (size_t i = 0; i < sizeof(rq->raw); i++)
			tokens += rq->raw[i] == ' ' || rq->raw[i] == ':' || rq->raw[i] == '\n';
	rq->token_cnt = tokens;
}

void hash_cookie(struct request *rq)
{
	WL_KEEP_FRAME();
	unsigned int h = 2166136261u;

	for (int pass = 0; pass < 10; pass++)
		for (size_t i = 0; i < sizeof(rq->raw); i++)
			h = (h ^ rq->raw[i]) * 16777619u;
	rq->hash = h;
}

void parse_request(struct service *s, struct request *rq)
{
	for (size_t i = 0; i < sizeof(rq->raw); i += 8)
		rq->raw[i] = (unsigned char)next_random(&s->seed);
	tokenize_headers(rq);
	hash_cookie(rq);
}

unsigned int compare_keys(const unsigned int *rows, unsigned int at, unsigned int key)
{
	WL_KEEP_FRAME();
	unsigned int sum = 0;

	for (unsigned int i = 0; i < 24; i++)
		sum += rows[(at + i) % ROW_CNT] ^ key;
	USE(sum);
	return rows[at] < key;
}

unsigned int btree_lookup(const unsigned int *rows, unsigned int low, unsigned int high,
			  unsigned int key)
{
	unsigned int middle = low + (high - low) / 2;

	if (high - low < 2)
		return low;
	if (compare_keys(rows, middle, key))
		return btree_lookup(rows, middle, high, key);
	return btree_lookup(rows, low, middle, key);
}

static void swap_rows(unsigned int *a, unsigned int *b)
{
	WL_KEEP_FRAME();
	unsigned int t = *a;

	*a = *b;
	*b = t;
}

void quick_sort(unsigned int *rows, int low, int high)
{
	int i = low, j = high;
	unsigned int pivot;

	if (low >= high)
		return;
	pivot = rows[(low + high) / 2];
	while (i <= j) {
		while (rows[i] < pivot)
			i++;
		while (rows[j] > pivot)
			j--;
		if (i <= j)
			swap_rows(&rows[i++], &rows[j--]);
	}
	quick_sort(rows, low, j);
	quick_sort(rows, i, high);
}

void query_database(struct service *s, const struct request *rq)
{
	unsigned int found = 0;

	for (int i = 0; i < ROW_CNT; i++)
		s->rows[i] = next_random(&s->seed);
	quick_sort(s->rows, 0, ROW_CNT - 1);
	for (unsigned int i = 0; i < 300; i++)
		found += btree_lookup(s->rows, 0, ROW_CNT, (rq->hash + i * 7919) & 0xffffff);
	USE(found);
}

void escape_html(struct service *s, unsigned int value)
{
	WL_KEEP_FRAME();

	for (int i = 0; i < 160; i++) {
		char c = (char)(' ' + (value + (unsigned int)i * 31) % 95);

		s->page[s->page_used++ % PAGE_BYTES] = c == '<' || c == '&' ? '_' : c;
	}
}

void render_template(struct service *s, int depth)
{
	for (int i = 0; i < 3; i++) {
		escape_html(s, s->rows[(depth * 37 + i) % ROW_CNT]);
		if (depth > 0)
			render_template(s, depth - 1);
	}
}

void send_response(struct service *s)
{
	char sink[PAGE_BYTES];

	if (write(s->socket, s->page, PAGE_BYTES) > 0 &&
	    pread(s->socket, sink, sizeof(sink), 0) > 0)
		USE(sink);
	lseek(s->socket, 0, SEEK_SET);
}

void handle_request(struct service *s)
{
	struct request rq = {0};

	parse_request(s, &rq);
	query_database(s, &rq);
	render_template(s, 4);
	for (int i = 0; i < 12; i++)
		send_response(s);
}

void *http_worker(void *arg)
{
	struct service *s = calloc(1, sizeof(*s));

	prctl(PR_SET_NAME, "http-worker");
	if (!s)
		wl_die("calloc");
	s->seed = (unsigned int)(uintptr_t)arg;
	s->socket = memfd_create("socket", MFD_CLOEXEC);
	while (!wl_stop)
		handle_request(s);
	free(s);
	return NULL;
}

/* ---- compressor ---- */

unsigned int find_longest_match(const unsigned char *block, size_t at)
{
	WL_KEEP_FRAME();
	unsigned int best = 0;

	for (size_t from = at > 192 ? at - 192 : 0; from < at; from++) {
		unsigned int n = 0;

		while (n < 16 && block[from + n] == block[at + n])
			n++;
		best = n > best ? n : best;
	}
	return best;
}

unsigned int update_checksum(const unsigned char *block, size_t bytes)
{
	WL_KEEP_FRAME();
	unsigned int a = 1, b = 0;

	for (size_t i = 0; i < bytes; i++) {
		a = (a + block[i]) % 65521;
		b = (b + a) % 65521;
	}
	return b << 16 | a;
}

void fetch_block(unsigned char *block)
{
	if (getrandom(block, 2048, 0) != 2048)
		return;
	for (size_t i = 2048; i < BLOCK; i++)
		block[i] = block[i & 2047] & 0x3f;
}

void compress_block(const unsigned char *block)
{
	size_t at = 0;
	unsigned int sum;

	while (at < BLOCK - 16) {
		unsigned int n = find_longest_match(block, at);

		at += n > 2 ? n : 1;
	}
	sum = update_checksum(block, BLOCK);
	USE(sum);
}

void *compressor(void *arg)
{
	unsigned char *block = malloc(BLOCK);

	prctl(PR_SET_NAME, "compressor");
	if (!block)
		wl_die("malloc");
	while (!wl_stop) {
		fetch_block(block);
		compress_block(block);
	}
	free(block);
	return arg;
}

/* ---- logger ---- */

void format_line(char *line, size_t bytes, unsigned int n)
{
	WL_KEEP_FRAME();

	for (size_t i = 0; i < bytes; i++) {
		line[i] = (char)('0' + n % 10);
		n = n / 10 + (unsigned int)i;
	}
}

void append_log(int fd, const char *line, size_t bytes)
{
	if (write(fd, line, bytes) < 0)
		wl_die("write");
}

/* Fresh memory each time: page faults and their zeroing are part of the picture. */
void rotate_log(int fd)
{
	char *view;

	view = mmap(NULL, 64 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (view == MAP_FAILED)
		wl_die("mmap");
	for (size_t i = 0; i < 64; i++)
		view[i * 4096] = 1;
	munmap(view, 64 * 4096);
	if (ftruncate(fd, 0))
		wl_die("ftruncate");
	lseek(fd, 0, SEEK_SET);
}

void *logger(void *arg)
{
	int fd = memfd_create("log", MFD_CLOEXEC);
	char line[512];

	prctl(PR_SET_NAME, "logger");
	if (fd < 0)
		wl_die("memfd_create");
	for (unsigned int n = 0; !wl_stop; n++) {
		format_line(line, sizeof(line), n);
		append_log(fd, line, sizeof(line));
		if (n % 256 == 255)
			rotate_log(fd);
	}
	close(fd);
	return arg;
}

/* ---- rules-jit: compiled at run time, with frame pointers ---- */

typedef void rule_fn(void (*callback)(void), long rounds);

/* push rbp; mov rbp,rsp; 1: dec rsi; jnz 1b; call rdi; pop rbp; ret */
static const unsigned char rule_code[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0xff, 0xce,
					  0x75, 0xfb, 0xff, 0xd7, 0x5d, 0xc3};

void lookup_customer(void)
{
	WL_KEEP_FRAME();
	unsigned int sum = 0;

	for (unsigned int i = 0; i < 60000; i++)
		sum = sum * 33 + i;
	USE(sum);
}

void evaluate_rules(unsigned char *code)
{
	for (int i = 0; i < 16; i++)
		((rule_fn *)(code + (i % 4) * 64))(lookup_customer, 20000L * (1 + i % 4));
}

unsigned char *compile_rules(void)
{
	const char *const names[] = {"rule:discount", "rule:shipping", "rule:tax", "rule:fraud"};
	unsigned char *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
				   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	FILE *f;

	if (code == MAP_FAILED)
		wl_die("mmap");
	snprintf(perf_map, sizeof(perf_map), "/tmp/perf-%d.map", getpid());
	f = fopen(perf_map, "w");
	for (int i = 0; i < 4; i++) {
		memcpy(code + i * 64, rule_code, sizeof(rule_code));
		if (f)
			fprintf(f, "%lx %zx %s\n", (unsigned long)code + (unsigned long)i * 64,
				sizeof(rule_code), names[i]);
	}
	if (f)
		fclose(f);
	return code;
}

void *rules_engine(void *arg)
{
	prctl(PR_SET_NAME, "rules-jit");
	while (!wl_stop)
		evaluate_rules(arg);
	return NULL;
}

/* ---- */

static void on_end(int sig)
{
	if (perf_map[0])
		unlink(perf_map);
	signal(sig, SIG_DFL);
	raise(sig);
}

static void share_one_cpu(void)
{
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET(sched_getcpu(), &cpus);
	sched_setaffinity(0, sizeof(cpus), &cpus);
}

int main(int argc, char **argv)
{
	void *(*const mains[])(void *) = {http_worker, http_worker, compressor, logger,
					  rules_engine};
	pthread_t threads[5];
	void *rules;

	/* SIGTERM, not SIGKILL: the perf map must go */
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	signal(SIGTERM, on_end);
	signal(SIGINT, on_end);
	share_one_cpu();
	rules = compile_rules();
	wl_stop_after(wl_arg(argc, argv, 1, 0));
	for (long i = 0; i < 5; i++) {
		void *arg = i == 4 ? rules : (void *)(i + 1);

		if ((errno = pthread_create(&threads[i], NULL, mains[i], arg)))
			wl_die("pthread_create");
	}
	wl_ready("demo");
	for (int i = 0; i < 5; i++)
		pthread_join(threads[i], NULL);
	unlink(perf_map);
	return 0;
}
