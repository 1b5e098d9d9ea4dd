/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "scene.h"

#include "spinner.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "unwind/row_maps.h"
#include "util/clock.h"

#define WAIT_MS	   20000
#define CODE_PAGES (SCENE_CODE_BYTES / PAGE)
#define SYMBOLIC   0xffff000000000000ULL

uint64_t scene_value(uint32_t i, uint64_t symbolic)
{
	uint64_t offset = symbolic & ~SYMBOLIC;

	switch (symbolic & SYMBOLIC) {
	case START(0) & SYMBOLIC:
		return SCENE_CODE + SCENE_ROWS_START + i * SCENE_FUNCS * FUNC_BYTES + offset;
	case AT(0) & SYMBOLIC:
		return SCENE_STACK + i * SCENE_STRIDE + offset;
	default:
		return symbolic;
	}
}

/* ---- the target ----------------------------------------------------------------------------- */

/* Loads all registers, by DWARF number, and goes to pc. The thread's own stack is left for good. */
void enter_scene(const uint64_t reg[16], uint64_t pc) __attribute__((noreturn));
__asm__(".pushsection .text\n"
	".type enter_scene, @function\n"
	"enter_scene:\n"
	"	mov 56(%rdi), %rsp\n"
	"	mov 0(%rdi), %rax\n"
	"	mov 8(%rdi), %rdx\n"
	"	mov 16(%rdi), %rcx\n"
	"	mov 24(%rdi), %rbx\n"
	"	mov 48(%rdi), %rbp\n"
	"	mov 64(%rdi), %r8\n"
	"	mov 72(%rdi), %r9\n"
	"	mov 80(%rdi), %r10\n"
	"	mov 88(%rdi), %r11\n"
	"	mov 96(%rdi), %r12\n"
	"	mov 104(%rdi), %r13\n"
	"	mov 112(%rdi), %r14\n"
	"	mov 120(%rdi), %r15\n"
	/* rsi and rdi are nobody's: no scene uses them */
	"	jmp *%rsi\n"
	".size enter_scene, . - enter_scene\n"
	".popsection\n");

static const struct scene *scenes;
static uint32_t scene_cnt;
/* Shared with the target. */
static uint32_t *tids;

struct entry {
	uint64_t reg[16];
	uint64_t pc;
	uint32_t i;
};

static void *enter(void *arg)
{
	const struct entry *e = arg;

	__atomic_store_n(&tids[e->i], (uint32_t)gettid(), __ATOMIC_RELEASE);
	enter_scene(e->reg, e->pc);
}

static void map_stack(uint32_t i)
{
	uint64_t *words =
		mmap((void *)(SCENE_STACK + i * SCENE_STRIDE), PAGE, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	target_check(words == (void *)(SCENE_STACK + i * SCENE_STRIDE));
	for (int w = 0; w < SCENE_WORDS; w++)
		words[w] = scene_value(i, scenes[i].word[w]);
}

static void start_scene(uint32_t i)
{
	struct entry *e = calloc(1, sizeof(*e));
	pthread_t th;

	target_check(e != NULL);
	map_stack(i);
	for (int n = 0; n < 16; n++)
		e->reg[n] = scene_value(i, scenes[i].reg[n]);
	e->pc = scene_value(i, START(0)) + scenes[i].leaf;
	e->i = i;
	target_check(!pthread_create(&th, NULL, enter, e));
}

/* A jump to itself at every even address of a page. */
static void map_code(void)
{
	const uint64_t spin = SCENE_DATA_CODE;
	static uint8_t page[PAGE];
	int fd;

	for (size_t i = 0; i < PAGE; i += sizeof(spin))
		memcpy(page + i, &spin, sizeof(spin));
	fd = code_file(CODE_PAGES, page, PAGE);
	target_check(mmap((void *)SCENE_CODE, SCENE_CODE_BYTES, PROT_READ | PROT_EXEC,
			  MAP_PRIVATE | MAP_FIXED_NOREPLACE, fd, 0) == (void *)SCENE_CODE);
}

static void play_scenes(void *arg)
{
	(void)arg;
	map_code();
	for (uint32_t i = 0; i < scene_cnt; i++)
		start_scene(i);
	target_tell(0);
	target_pause();
}

/* ---- the recording -------------------------------------------------------------------------- */

/* Rule 0 is none, rule 1 + n is function n's. */
static struct vp_rows *make_rows(void)
{
	const uint32_t funcs = scene_cnt * SCENE_FUNCS;
	struct vp_rows *rows = calloc(1, sizeof(*rows));

	cr_assert(rows != NULL);
	rows->base = SCENE_ROWS_START;
	rows->span = funcs * FUNC_BYTES;
	rows->cnt = funcs;
	rows->rule_cnt = funcs + 1;
	rows->key = calloc(funcs, sizeof(*rows->key));
	rows->rule = calloc(funcs, sizeof(*rows->rule));
	rows->rules = calloc(funcs + 1, sizeof(*rows->rules));
	cr_assert(rows->key && rows->rule && rows->rules);
	for (uint32_t n = 0; n < funcs; n++) {
		rows->key[n] = n * FUNC_BYTES;
		rows->rule[n] = (uint16_t)(1 + n);
		rows->rules[1 + n] = scenes[n / SCENE_FUNCS].rule[n % SCENE_FUNCS];
	}
	return rows;
}

static uint32_t code_file_id(const struct recorder *r)
{
	for (size_t i = 0; i < r->log.cnt; i++) {
		const struct log_item *it = &r->log.item[i];

		if (it->hdr.kind == VP_REC_MMAP2 && it->mmap2.perf.addr == SCENE_CODE)
			return it->mmap2.file_id;
	}
	cr_assert(false, "the code's mapping was not reported");
	return 0;
}

static void put_rows(struct recorder *r)
{
	struct vp_rows *rows = make_rows();
	struct vp_row_slot slot = {.file_id = code_file_id(r), .desc = vp_rows_layout(rows)};
	struct vp_row_maps maps;
	struct vp_err e = {""};

	cr_assert(zero(int, vp_row_maps_open(&maps, vp_session_row_arrays_fd(r->s),
					     vp_session_row_files_fd(r->s), &e)),
		  "%s", e.text);
	slot.fd = vp_row_array_new(rows, &slot.desc);
	cr_assert(ge(int, slot.fd, 0));
	cr_assert(eq(sz, vp_row_maps_put(&maps, &slot, 1, vp_now_ns()), 1));
	close(slot.fd);
	vp_row_maps_close(&maps);
	vp_rows_free(rows);
}

struct wanted {
	struct record_log *log;
	size_t each;
};

/* Of each thread, in its scene. */
static bool are_all_sampled(void *arg)
{
	const struct wanted *w = arg;
	uint32_t left = scene_cnt;

	pthread_mutex_lock(&w->log->lock);
	for (uint32_t i = 0; i < scene_cnt; i++) {
		size_t n = 0;

		for (size_t j = 0; j < w->log->cnt && n < w->each; j++) {
			const struct log_item *it = &w->log->item[j];

			n += it->hdr.kind == VP_REC_SAMPLE && it->sample.tid == tids[i] &&
			     it->sample.user_cnt && it->user[0].pc >= SCENE_CODE &&
			     it->user[0].pc < SCENE_CODE + SCENE_CODE_BYTES;
		}
		left -= n >= w->each;
	}
	pthread_mutex_unlock(&w->log->lock);
	return !left;
}

void scenes_record(struct recorder *r, const struct scene *s, uint32_t cnt, size_t each,
		   uint32_t *tid)
{
	struct wanted w = {&r->log, each};
	struct target t;

	cr_assert(le(u32, cnt, SCENES_MAX));
	scenes = s;
	scene_cnt = cnt;
	tids = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	cr_assert(tids != MAP_FAILED);
	recorder_open(r, VP_FILTER_TGID, 0);
	target_start(&t, play_scenes, NULL);
	target_hear(&t);
	recorder_add(r, t.pid, VP_TARGET_F_ARMED);
	recorder_walk(r, t.pid);
	put_rows(r);
	recorder_attach(r);
	cr_assert(wait_until(are_all_sampled, &w, WAIT_MS));
	recorder_stop(r);
	memcpy(tid, tids, cnt * sizeof(*tid));
	munmap(tids, PAGE);
	target_end(&t);
}

/* ---- samples -------------------------------------------------------------------------------- */

bool scene_is_sample(const struct scene *s, uint32_t i, const struct log_item *it)
{
	return it->sample.user_cnt && it->user[0].pc == scene_value(i, START(0)) + s->leaf;
}

void scene_print_sample(const struct log_item *it)
{
	fprintf(stderr, "  %u frames, end %u:", it->sample.user_cnt, it->sample.user_end);
	for (uint32_t i = 0; i < it->sample.user_cnt && i < 12; i++)
		fprintf(stderr, " %" PRIx64 "/%x", (uint64_t)it->user[i].pc, it->user[i].flags);
	fprintf(stderr, "\n");
}
