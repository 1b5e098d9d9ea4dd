/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Stacks of real code by the rows of real files. */
#include "expect.h"
#include "spinner.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "util/clock.h"

static struct recorder r = {.mode = VP_UNWIND_INLINE, .call_graph = VP_CALL_GRAPH_AUTO};

static void tear_down(void)
{
	recorder_close(&r);
}

TestSuite(unwind, .fini = tear_down, .timeout = 60);

static void set_deferred(void)
{
	recorder_defer(&r);
}

TestSuite(unwind_deferred, .init = set_deferred, .fini = tear_down, .timeout = 60);

/* ---- code without frame pointers ------------------------------------------------------------ */

/*
 * nofp_outermost calls fn, which is nofp_root, which calls nofp_middle and that nofp_leaf, which
 * spins. What is in rbp from nofp_middle on is no address.
 */
void nofp_outermost(void (*fn)(void));
void nofp_root(void);
void nofp_middle(void);
void nofp_leaf(void);
__asm__(".pushsection .text\n"
	".type nofp_outermost, @function\n"
	"nofp_outermost:\n"
	"	.cfi_startproc\n"
	"	.cfi_undefined rip\n"
	"	push %rax\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	call *%rdi\n"
	"	ud2\n"
	"	.cfi_endproc\n"
	".size nofp_outermost, . - nofp_outermost\n"
	".balign 256\n"
	".type nofp_root, @function\n"
	"nofp_root:\n"
	"	.cfi_startproc\n"
	"	sub $4104, %rsp\n"
	"	.cfi_adjust_cfa_offset 4104\n"
	"	call nofp_middle\n"
	"	add $4104, %rsp\n"
	"	.cfi_adjust_cfa_offset -4104\n"
	"	ret\n"
	"	.cfi_endproc\n"
	".size nofp_root, . - nofp_root\n"
	".balign 256\n"
	".type nofp_middle, @function\n"
	"nofp_middle:\n"
	"	.cfi_startproc\n"
	"	push %rbp\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	.cfi_rel_offset rbp, 0\n"
	"	mov $0x1234567, %ebp\n"
	"	call nofp_leaf\n"
	"	pop %rbp\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	.cfi_restore rbp\n"
	"	ret\n"
	"	.cfi_endproc\n"
	".size nofp_middle, . - nofp_middle\n"
	".balign 256\n"
	".type nofp_leaf, @function\n"
	"nofp_leaf:\n"
	"	.cfi_startproc\n"
	"1:	pause\n"
	"	jmp 1b\n"
	"	.cfi_endproc\n"
	".size nofp_leaf, . - nofp_leaf\n"
	".balign 256\n"
	".popsection\n");

static void spin_without_frame_pointers(void *arg)
{
	(void)arg;
	target_tell(0);
	nofp_outermost(nofp_root);
}

static void start_recording(struct target *t, target_body body, void *arg, bool with_rows)
{
	recorder_open(&r, VP_FILTER_TGID, 0);
	target_start(t, body, arg);
	target_hear(t);
	recorder_add(&r, t->pid, VP_TARGET_F_ARMED);
	recorder_walk(&r, t->pid);
	if (with_rows)
		recorder_load_rows(&r);
	recorder_attach(&r);
}

/* Frames of nofp_leaf, nofp_middle, nofp_root and nofp_outermost, as many as there are. */
static bool is_nofp_chain(const struct log_item *it)
{
	static void (*const functions[])(void) = {nofp_leaf, nofp_middle, nofp_root,
						  (void (*)(void))nofp_outermost};

	if (it->sample.user_cnt > 4)
		return false;
	for (size_t i = 0; i < it->sample.user_cnt; i++) {
		if (!is_in(log_frame_at(&it->user[i]), functions[i]))
			return false;
	}
	return true;
}

static uint32_t flags_of(const struct log_item *it)
{
	uint32_t flags = 0;

	for (size_t i = 0; i < it->sample.user_cnt; i++)
		flags |= it->user[i].flags;
	return flags;
}

/* All samples of a target that spins without frame pointers: so many frames, that end, flagged so. */
static void expect_nofp(bool with_rows, uint32_t frames, uint16_t end, bool no_rows)
{
	struct target t;
	size_t n = 0;

	start_recording(&t, spin_without_frame_pointers, NULL, with_rows);
	recorder_wait_in_function(&r, t.pid, nofp_leaf, 50);
	recorder_stop(&r);
	for (size_t i = 0; i < r.log.cnt; i++) {
		const struct log_item *it = &r.log.item[i];

		/* the first may not be there yet */
		if (it->hdr.kind != VP_REC_SAMPLE || !it->sample.user_cnt ||
		    !is_in(it->user[0].pc, nofp_leaf))
			continue;
		cr_expect(is_nofp_chain(it));
		cr_expect(eq(u32, it->sample.user_cnt, frames));
		cr_expect(eq(u32, it->sample.user_end, end));
		cr_expect(eq(int, !!(flags_of(it) & VP_FRAME_F_NO_ROWS), no_rows));
		cr_expect(zero(u32, flags_of(it) & VP_FRAME_F_FP));
		n++;
	}
	cr_expect(ge(sz, n, 50));
	target_end(&t);
}

/* The same with frame pointers. */
static void expect_fp(bool with_rows, uint32_t frames, uint16_t end, bool no_rows, bool by_fp)
{
	struct target t;
	size_t n = 0;

	start_recording(&t, spin, spin_root, with_rows);
	recorder_wait_in_function(&r, t.pid, spin_leaf, 50);
	recorder_stop(&r);
	for (size_t i = 0; i < r.log.cnt; i++) {
		const struct log_item *it = &r.log.item[i];

		if (it->hdr.kind != VP_REC_SAMPLE || !it->sample.user_cnt ||
		    !is_in(it->user[0].pc, spin_leaf))
			continue;
		cr_expect(eq(u32, it->sample.user_cnt, frames));
		if (frames == 4)
			cr_expect(is_spin_root_chain(it->user, it->sample.user_cnt));
		cr_expect(eq(u32, it->sample.user_end, end));
		cr_expect(eq(int, !!(flags_of(it) & VP_FRAME_F_NO_ROWS), no_rows));
		cr_expect(eq(int, !!(flags_of(it) & VP_FRAME_F_FP), by_fp));
		n++;
	}
	cr_expect(ge(sz, n, 50));
	target_end(&t);
}

static void rows_make_a_stack_whole(void)
{
	expect_nofp(true, 4, VP_END_BOTTOM, false);
}

static void rows_that_are_missing_are_told(void)
{
	expect_nofp(false, 1, VP_END_NO_ROW, true);
}

static void frame_pointers_stand_in_for_rows(void)
{
	expect_fp(false, 4, VP_END_BOTTOM, true, true);
}

static void rows_come_before_frame_pointers(void)
{
	expect_fp(true, 4, VP_END_BOTTOM, false, false);
}

static void by_rows_alone_a_stack_is_whole(void)
{
	r.call_graph = VP_CALL_GRAPH_DWARF;
	expect_nofp(true, 4, VP_END_BOTTOM, false);
}

static void by_rows_alone_nothing_stands_in_for_them(void)
{
	r.call_graph = VP_CALL_GRAPH_DWARF;
	expect_fp(false, 1, VP_END_NO_ROW, true, false);
}

static void by_frame_pointers_alone_rows_are_not_looked_at(void)
{
	r.call_graph = VP_CALL_GRAPH_FP;
	expect_nofp(true, 1, VP_END_BAD_FP, false);
}

/* ---- through libc --------------------------------------------------------------------------- */

static int spin_instead_of_comparing(const void *a, const void *b)
{
	(void)a;
	(void)b;
	spin_leaf();
	return 0;
}

static void sort_for_ever(void *arg)
{
	int two[] = {1, 2};

	(void)arg;
	target_tell(0);
	qsort(two, 2, sizeof(two[0]), spin_instead_of_comparing);
}

/* From the comparison through libc and all of the test's own stack to where the process began. */
static void a_callback_of_libcs_has_its_whole_stack(void)
{
	size_t n = 0, samples;
	struct target t;

	start_recording(&t, sort_for_ever, NULL, true);
	recorder_wait_in_function(&r, t.pid, spin_leaf, 50);
	recorder_stop(&r);
	samples = record_log_count(&r.log, VP_REC_SAMPLE);
	for (size_t i = 0; i < samples; i++) {
		const struct log_item *it = record_log_nth(&r.log, VP_REC_SAMPLE, i);
		bool ours = false, libc = false;

		if (it->sample.user_cnt < 2 || !is_in(it->user[0].pc, spin_leaf))
			continue;
		for (size_t j = 2; j < it->sample.user_cnt; j++) {
			libc |= strstr(name_of_file(&r.log, it->user[j].file_id), "/libc.so") !=
				NULL;
			ours |= is_in(it->user[j].pc, (void (*)(void))sort_for_ever);
		}
		cr_expect(is_in(it->user[1].pc, (void (*)(void))spin_instead_of_comparing));
		cr_expect(libc && ours);
		cr_expect(eq(u32, it->sample.user_end, VP_END_BOTTOM));
		cr_expect(zero(u32, flags_of(it) & VP_FRAME_F_NO_ROWS));
		n++;
	}
	cr_expect(ge(sz, n, 50));
	target_end(&t);
}

/* ---- signals -------------------------------------------------------------------------------- */

/* What a handler returns to, without unwind information, in a page of its own. */
void bare_restorer(void);
__asm__(".pushsection .text\n"
	".balign 4096\n"
	"	nop\n"
	".type bare_restorer, @function\n"
	"bare_restorer:\n"
	"	mov $15, %rax\n"
	"	syscall\n"
	".size bare_restorer, . - bare_restorer\n"
	".balign 4096\n"
	".popsection\n");

/* Has the page mapped in this process. */
static void touch_restorer(void)
{
	(void)*(volatile char *)bare_restorer;
}

static void spin_in_a_handler(int sig)
{
	(void)sig;
	touch_restorer();
	target_tell(0);
	spin_root();
	NOT_THE_END();
}

/* As the kernel takes it: glibc would put its own restorer in. */
struct kernel_sigaction {
	void (*handler)(int sig);
	unsigned long flags;
	void (*restorer)(void);
	uint64_t mask;
};

#define KERNEL_SA_RESTORER 0x04000000UL

static bool on_other_stack;
static void (*handler)(int sig) = spin_in_a_handler;

static void spin_until_a_signal(void *arg)
{
	const struct kernel_sigaction sa = {
		.handler = handler,
		.flags = KERNEL_SA_RESTORER | (on_other_stack ? SA_ONSTACK : 0),
		.restorer = bare_restorer,
	};
	const stack_t other = {
		.ss_sp = mmap(NULL, 16 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			      -1, 0),
		.ss_size = 16 * PAGE,
	};

	(void)arg;
	target_check(other.ss_sp != MAP_FAILED && !sigaltstack(&other, NULL));
	target_check(!syscall(SYS_rt_sigaction, SIGUSR1, &sa, NULL, sizeof(sa.mask)));
	target_tell(0);
	call_outermost(spin_root);
}

/* spin_root's three, the handler, the restorer, then what was interrupted. */
static bool is_signal_chain(const struct log_item *it)
{
	const struct vp_frame *f = it->user;

	return it->sample.user_cnt == 9 && is_in(f[0].pc, spin_leaf) && is_in(f[2].pc, spin_root) &&
	       is_in(f[3].pc, (void (*)(void))spin_in_a_handler) &&
	       f[4].pc == (uint64_t)bare_restorer && is_spin_root_chain(f + 5, 4) &&
	       f[5].flags & VP_FRAME_F_LEAF && !(f[4].flags & VP_FRAME_F_LEAF) &&
	       it->sample.user_end == VP_END_BOTTOM;
}

static void expect_signal_chains(bool with_rows)
{
	size_t n = 0, wrong = 0;
	uint64_t since;
	struct target t;

	start_recording(&t, spin_until_a_signal, NULL, with_rows);
	recorder_wait(&r, 5);
	cr_assert(zero(int, kill(t.pid, SIGUSR1)));
	target_hear(&t);
	since = vp_now_ns();
	recorder_wait(&r, 100);
	recorder_stop(&r);
	for (size_t i = 0; i < r.log.cnt; i++) {
		const struct log_item *it = &r.log.item[i];

		if (it->hdr.kind != VP_REC_SAMPLE || it->hdr.ts_ns < since ||
		    !it->sample.user_cnt || !is_in(it->user[0].pc, spin_leaf))
			continue;
		n++;
		wrong += !is_signal_chain(it);
	}
	cr_expect(ge(sz, n, 50));
	cr_expect(zero(sz, wrong));
	target_end(&t);
}

static void what_a_signal_interrupted_is_found_by_rows(void)
{
	expect_signal_chains(true);
}

static void what_a_signal_interrupted_is_found_without_rows(void)
{
	expect_signal_chains(false);
}

static void what_a_signal_interrupted_is_found_by_frame_pointers(void)
{
	r.call_graph = VP_CALL_GRAPH_FP;
	expect_signal_chains(false);
}

static void what_a_signal_interrupted_is_found_from_another_stack(void)
{
	on_other_stack = true;
	expect_signal_chains(true);
}

/* Set by the test. */
static volatile bool *is_second_stage;

/* The page is in no process's memory at first, and then it is. */
__attribute__((noipa)) static void spin_in_two_stages(void)
{
	void *page = (void *)((uint64_t)bare_restorer & ~(PAGE - 1));

	KEEP_FRAME();
	target_check(!madvise(page, PAGE, MADV_DONTNEED));
	target_tell(0);
	while (!*is_second_stage)
		;
	touch_restorer();
	target_tell(0);
	for (;;)
		;
}

static void spin_in_a_handler_in_two_stages(int sig)
{
	(void)sig;
	spin_in_two_stages();
	NOT_THE_END();
}

/* Of samples in that time: right ones, wrong ones. */
static void count_staged(uint64_t from, uint64_t to, size_t *right, size_t *wrong)
{
	*right = *wrong = 0;
	for (size_t i = 0; i < r.log.cnt; i++) {
		const struct log_item *it = &r.log.item[i];
		const struct vp_frame *f = it->user;

		if (it->hdr.kind != VP_REC_SAMPLE || it->hdr.ts_ns < from || it->hdr.ts_ns > to ||
		    !it->sample.user_cnt || !is_in(f[0].pc, spin_in_two_stages))
			continue;
		if (it->sample.user_cnt == 7 && f[2].pc == (uint64_t)bare_restorer &&
		    is_spin_root_chain(f + 3, 4) && it->sample.user_end == VP_END_BOTTOM)
			++*right;
		else
			++*wrong;
	}
}

/*
 * A trampoline that cannot be read is read again later: in the interrupt it is as good as not
 * there, but must not count as code without a rule for ever. The task itself has it brought in.
 */
static void what_is_in_a_missing_page_is_not_taken_for_other_code(void)
{
	uint64_t first, second;
	size_t right, wrong;
	struct target t;

	is_second_stage =
		mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	cr_assert(is_second_stage != MAP_FAILED);
	handler = spin_in_a_handler_in_two_stages;
	start_recording(&t, spin_until_a_signal, NULL, true);
	cr_assert(zero(int, kill(t.pid, SIGUSR1)));
	target_hear(&t);
	first = vp_now_ns();
	recorder_wait(&r, 100);
	*is_second_stage = true;
	target_hear(&t);
	second = vp_now_ns();
	recorder_wait(&r, 150);
	recorder_stop(&r);

	count_staged(second, UINT64_MAX, &right, &wrong);
	cr_expect(ge(sz, right, 50));
	cr_expect(zero(sz, wrong));
	if (r.mode == VP_UNWIND_DEFERRED) {
		count_staged(first, second, &right, &wrong);
		cr_expect(ge(sz, right, 50));
		cr_expect(zero(sz, wrong));
	}
	target_end(&t);
}

/* ---- system calls --------------------------------------------------------------------------- */

#define IOV_CNT	   1024
#define READ_BYTES (1UL << 20)

__attribute__((used)) static int reads_fd;
__attribute__((used)) static struct iovec reads_iov[IOV_CNT];

/*
 * Reads for ever. The instruction behind its system call has unwind information of its own, which
 * is wrong: a task in the system call must be looked up by what is before.
 */
void nofp_reads(void);
void nofp_behind(void);
__asm__(".pushsection .text\n"
	".type nofp_reads, @function\n"
	"nofp_reads:\n"
	"	.cfi_startproc\n"
	"	sub $24, %rsp\n"
	"	.cfi_adjust_cfa_offset 24\n"
	"1:	mov $19, %eax\n"
	"	mov reads_fd(%rip), %edi\n"
	"	lea reads_iov(%rip), %rsi\n"
	"	mov $1024, %edx\n"
	"	syscall\n"
	"	.cfi_endproc\n"
	".size nofp_reads, . - nofp_reads\n"
	".type nofp_behind, @function\n"
	"nofp_behind:\n"
	"	.cfi_startproc\n"
	"	.cfi_def_cfa_offset 16\n"
	"	jmp 1b\n"
	"	.cfi_endproc\n"
	".size nofp_behind, . - nofp_behind\n"
	".popsection\n");

static void read_without_frame_pointers(void *arg)
{
	void *room =
		mmap(NULL, READ_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)arg;
	reads_fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	target_check(room != MAP_FAILED && reads_fd >= 0);
	for (int i = 0; i < IOV_CNT; i++)
		reads_iov[i] = (struct iovec){room, READ_BYTES};
	target_tell(0);
	nofp_outermost(nofp_reads);
}

static void a_system_call_belongs_to_the_code_before_it(void)
{
	struct target t;
	size_t n = 0;

	start_recording(&t, read_without_frame_pointers, NULL, true);
	recorder_wait(&r, 100);
	recorder_stop(&r);
	for (size_t i = 0; i < r.log.cnt; i++) {
		const struct log_item *it = &r.log.item[i];
		const struct vp_frame *f = it->user;

		/* on the jump itself, in user mode, the wrong information is what counts */
		if (it->hdr.kind != VP_REC_SAMPLE || !it->sample.kern_cnt || !it->sample.user_cnt ||
		    f[0].pc != (uint64_t)nofp_behind)
			continue;
		cr_assert(eq(u32, it->sample.user_cnt, 2));
		cr_expect(is_in(f[1].pc, (void (*)(void))nofp_outermost));
		cr_expect(eq(u32, it->sample.user_end, VP_END_BOTTOM));
		n++;
	}
	cr_expect(ge(sz, n, 50));
	target_end(&t);
}

/* ---- rows that come and go ------------------------------------------------------------------ */

#define ROUNDS 12

/* Calls nofp_brief from twice as many places as the kernel side keeps the rules of. */
void nofp_many(void);
void nofp_many_end(void);
void nofp_brief(void);
__asm__(".pushsection .text\n"
	".type nofp_many, @function\n"
	"nofp_many:\n"
	"	.cfi_startproc\n"
	"	sub $24, %rsp\n"
	"	.cfi_adjust_cfa_offset 24\n"
	"	mov $0x1234567, %ebp\n"
	"1:\n"
	"	.rept 4096\n"
	"	call nofp_brief\n"
	"	.endr\n"
	"	jmp 1b\n"
	"	.cfi_endproc\n"
	".size nofp_many, . - nofp_many\n"
	".type nofp_many_end, @function\n"
	"nofp_many_end:\n"
	".type nofp_brief, @function\n"
	"nofp_brief:\n"
	"	.cfi_startproc\n"
	"	mov $5000, %ecx\n"
	"1:	dec %ecx\n"
	"	jne 1b\n"
	"	ret\n"
	"	.cfi_endproc\n"
	".size nofp_brief, . - nofp_brief\n"
	".popsection\n");

static void spin_in_many_places(void *arg)
{
	(void)arg;
	target_tell(0);
	nofp_outermost(nofp_many);
}

/* nofp_brief, nofp_many, nofp_outermost, as many as there are. */
static bool is_many_chain(const struct log_item *it)
{
	const struct vp_frame *f = it->user;
	uint32_t cnt = it->sample.user_cnt;

	return cnt <= 3 &&
	       (cnt < 2 || (f[1].pc > (uint64_t)nofp_many && f[1].pc < (uint64_t)nofp_many_end)) &&
	       (cnt < 3 || is_in(f[2].pc, (void (*)(void))nofp_outermost));
}

/*
 * Whatever moment the rows go at: a stack is whole, or a part of the right one whose last frame
 * says that rows were missing. And when they are there to stay, stacks are whole.
 */
static void rows_that_are_freed_make_no_wrong_stack(void)
{
	size_t whole = 0, cut = 0, wrong = 0, after = 0;
	struct target t;
	uint64_t since;

	r.freq_hz = 4999;
	start_recording(&t, spin_in_many_places, NULL, true);
	for (int i = 0; i < ROUNDS; i++) {
		recorder_wait(&r, 10);
		recorder_free_rows(&r);
		recorder_load_rows(&r);
	}
	since = vp_now_ns();
	recorder_wait(&r, 1500);
	recorder_settle(&r);
	recorder_stop(&r);
	for (size_t i = 0; i < r.log.cnt; i++) {
		const struct log_item *it = &r.log.item[i];
		bool is_whole, is_cut;

		if (it->hdr.kind != VP_REC_SAMPLE || !it->sample.user_cnt ||
		    !is_in(it->user[0].pc, nofp_brief))
			continue;
		is_whole = it->sample.user_cnt == 3 && it->sample.user_end == VP_END_BOTTOM;
		is_cut = it->user[it->sample.user_cnt - 1].flags & VP_FRAME_F_NO_ROWS &&
			 it->sample.user_end == VP_END_NO_ROW;
		whole += is_whole;
		cut += is_cut;
		wrong += !is_many_chain(it) || is_whole == is_cut;
		if (it->hdr.ts_ns > since) {
			after++;
			cr_expect(is_whole);
		}
	}
	cr_expect(zero(sz, wrong));
	cr_expect(gt(sz, whole, 100));
	cr_expect(gt(sz, cut, 20));
	cr_expect(gt(sz, after, 50));
	target_end(&t);
}

/* ---- in both modes -------------------------------------------------------------------------- */

Test(unwind, rows_make_a_stack_whole)
{
	rows_make_a_stack_whole();
}

Test(unwind_deferred, rows_make_a_stack_whole)
{
	rows_make_a_stack_whole();
}

Test(unwind, rows_that_are_missing_are_told)
{
	rows_that_are_missing_are_told();
}

Test(unwind_deferred, rows_that_are_missing_are_told)
{
	rows_that_are_missing_are_told();
}

Test(unwind, frame_pointers_stand_in_for_rows)
{
	frame_pointers_stand_in_for_rows();
}

Test(unwind_deferred, frame_pointers_stand_in_for_rows)
{
	frame_pointers_stand_in_for_rows();
}

Test(unwind, rows_come_before_frame_pointers)
{
	rows_come_before_frame_pointers();
}

Test(unwind_deferred, rows_come_before_frame_pointers)
{
	rows_come_before_frame_pointers();
}

Test(unwind, by_rows_alone_a_stack_is_whole)
{
	by_rows_alone_a_stack_is_whole();
}

Test(unwind_deferred, by_rows_alone_a_stack_is_whole)
{
	by_rows_alone_a_stack_is_whole();
}

Test(unwind, by_rows_alone_nothing_stands_in_for_them)
{
	by_rows_alone_nothing_stands_in_for_them();
}

Test(unwind_deferred, by_rows_alone_nothing_stands_in_for_them)
{
	by_rows_alone_nothing_stands_in_for_them();
}

Test(unwind, by_frame_pointers_alone_rows_are_not_looked_at)
{
	by_frame_pointers_alone_rows_are_not_looked_at();
}

Test(unwind_deferred, by_frame_pointers_alone_rows_are_not_looked_at)
{
	by_frame_pointers_alone_rows_are_not_looked_at();
}

Test(unwind, a_callback_of_libcs_has_its_whole_stack)
{
	a_callback_of_libcs_has_its_whole_stack();
}

Test(unwind_deferred, a_callback_of_libcs_has_its_whole_stack)
{
	a_callback_of_libcs_has_its_whole_stack();
}

Test(unwind, what_a_signal_interrupted_is_found_by_rows)
{
	what_a_signal_interrupted_is_found_by_rows();
}

Test(unwind_deferred, what_a_signal_interrupted_is_found_by_rows)
{
	what_a_signal_interrupted_is_found_by_rows();
}

Test(unwind, what_a_signal_interrupted_is_found_without_rows)
{
	what_a_signal_interrupted_is_found_without_rows();
}

Test(unwind_deferred, what_a_signal_interrupted_is_found_without_rows)
{
	what_a_signal_interrupted_is_found_without_rows();
}

Test(unwind, what_a_signal_interrupted_is_found_by_frame_pointers)
{
	what_a_signal_interrupted_is_found_by_frame_pointers();
}

Test(unwind_deferred, what_a_signal_interrupted_is_found_by_frame_pointers)
{
	what_a_signal_interrupted_is_found_by_frame_pointers();
}

Test(unwind, what_a_signal_interrupted_is_found_from_another_stack)
{
	what_a_signal_interrupted_is_found_from_another_stack();
}

Test(unwind_deferred, what_a_signal_interrupted_is_found_from_another_stack)
{
	what_a_signal_interrupted_is_found_from_another_stack();
}

Test(unwind, rows_that_are_freed_make_no_wrong_stack)
{
	rows_that_are_freed_make_no_wrong_stack();
}

Test(unwind_deferred, rows_that_are_freed_make_no_wrong_stack)
{
	rows_that_are_freed_make_no_wrong_stack();
}

Test(unwind, what_is_in_a_missing_page_is_not_taken_for_other_code)
{
	what_is_in_a_missing_page_is_not_taken_for_other_code();
}

Test(unwind_deferred, what_is_in_a_missing_page_is_not_taken_for_other_code)
{
	what_is_in_a_missing_page_is_not_taken_for_other_code();
}

Test(unwind, a_system_call_belongs_to_the_code_before_it)
{
	a_system_call_belongs_to_the_code_before_it();
}

Test(unwind_deferred, a_system_call_belongs_to_the_code_before_it)
{
	a_system_call_belongs_to_the_code_before_it();
}
