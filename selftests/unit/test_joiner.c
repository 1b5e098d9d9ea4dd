/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Deferred samples and their user parts: who gets which, when, and what it costs. */
#include "made_records.h"
#include "model/joiner.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

/* ---- the consumer --------------------------------------------------------------------------- */

/* What it was given, in order; only the last LOG_CNT of it. */
struct entry {
	uint16_t kind;
	struct vp_rec_sample s; /* VP_REC_SAMPLE */
	uint64_t kern0;		/* the first kernel frame */
	uint64_t pc0;		/* the first user frame */
	uint32_t tid;
};

#define LOG_CNT 4096

static struct entry entries[LOG_CNT];
static size_t entry_cnt;
static uint64_t end_cnt[VP_END_CNT];
static bool check_frames;
static int answer;

static struct vp_joiner j;
static struct made m;

static struct entry *add_entry(void *ctx, uint16_t kind, uint32_t tid)
{
	struct entry *e = &entries[entry_cnt++ % LOG_CNT];

	cr_assert(eq(ptr, ctx, &m));
	*e = (struct entry){.kind = kind, .tid = tid};
	return e;
}

static int on_mmap2(void *ctx, const struct vp_mmap2 *r)
{
	add_entry(ctx, VP_REC_MMAP2, r->rec.proc.tgid);
	return answer;
}

/* Kernel and user frames are numbered from the first one on. */
static void expect_whole_frames(const struct vp_rec_sample *s, const uint64_t *kern,
				const struct vp_frame *user)
{
	for (size_t i = 0; i < s->kern_cnt; i++)
		cr_assert(eq(u64, kern[i], kern[0] + i));
	for (size_t i = 0; i < s->user_cnt; i++) {
		cr_assert(eq(u64, user[i].pc, user[0].pc + i));
		cr_assert(eq(u32, user[i].flags, i ? VP_FRAME_F_FP : VP_FRAME_F_LEAF));
	}
}

static int on_sample(void *ctx, const struct vp_rec_sample *s, const uint64_t *kern,
		     const struct vp_frame *user)
{
	struct entry *e = add_entry(ctx, VP_REC_SAMPLE, s->tid);

	cr_assert(user != NULL && (kern != NULL || s->kern_cnt == 0));
	cr_assert(zero(u32, s->hdr.flags & VP_SAMPLE_F_DEFERRED));
	cr_assert(zero(u64, s->cookie));
	cr_assert(eq(
		u32, s->hdr.size,
		(uint32_t)(sizeof(*s) + s->kern_cnt * 8U + s->user_cnt * sizeof(struct vp_frame))));
	e->s = *s;
	e->kern0 = s->kern_cnt ? kern[0] : 0;
	e->pc0 = s->user_cnt ? user[0].pc : 0;
	if (check_frames)
		expect_whole_frames(s, kern, user);
	end_cnt[s->user_end]++;
	return answer;
}

static int on_exec(void *ctx, const struct vp_rec_exec *r)
{
	add_entry(ctx, VP_REC_EXEC, r->tid);
	return answer;
}

static int on_fork(void *ctx, const struct vp_rec_fork *r)
{
	add_entry(ctx, VP_REC_FORK, r->child_tid);
	return answer;
}

static int on_exit_rec(void *ctx, const struct vp_rec_exit *r)
{
	add_entry(ctx, VP_REC_EXIT, r->tid);
	return answer;
}

static int on_inherit(void *ctx, const struct vp_rec_inherit *r)
{
	add_entry(ctx, VP_REC_INHERIT, r->proc.tgid);
	return answer;
}

static int on_comm(void *ctx, const struct vp_rec_comm *r)
{
	add_entry(ctx, VP_REC_COMM, r->tid);
	return answer;
}

static int on_user_stack(void *ctx, const struct vp_rec_user_stack *r, const struct vp_frame *user)
{
	(void)ctx;
	(void)r;
	(void)user;
	cr_fatal("the consumer sees a user stack");
	return 0;
}

static const struct vp_record_ops inner = {
	.mmap2 = on_mmap2,
	.sample = on_sample,
	.exec = on_exec,
	.fork = on_fork,
	.exit = on_exit_rec,
	.inherit = on_inherit,
	.comm = on_comm,
	.user_stack = on_user_stack,
};

static void set_up(void)
{
	j = (struct vp_joiner){.inner = &inner, .inner_ctx = &m, .max_bytes = 16 << 20};
	made_init(&m, &vp_joiner_ops, &j);
	check_frames = true;
}

/* Nothing is left over after the last one is gone. */
static void tear_down(void)
{
	vp_joiner_free(&j);
	cr_expect(zero(u64, j.bytes));
	cr_expect(zero(u64, vp_joiner_waiting(&j)));
	cr_expect(zero(sz, j.thread_cnt));
}

TestSuite(joiner, .init = set_up, .fini = tear_down);

/* ---- what comes in -------------------------------------------------------------------------- */

#define KERN 0xffffffff81000000

/* A sample of m's thread; `id` is its first kernel frame and its time. */
static void deferred_of(uint64_t id, uint64_t cookie, size_t kern_cnt)
{
	uint64_t kern[VP_MAX_KERN_FRAMES];

	for (size_t i = 0; i < kern_cnt; i++)
		kern[i] = KERN + id + i;
	m.ts_ns = id;
	cr_assert(zero(int, made_deferred(&m, kern, kern_cnt, cookie)));
}

static void deferred(uint64_t id, uint64_t cookie)
{
	deferred_of(id, cookie, 3);
}

static int send_stack(uint64_t pc, size_t cnt, uint64_t cookie)
{
	static struct vp_frame user[VP_MAX_USER_FRAMES];

	for (size_t i = 0; i < cnt; i++)
		user[i] = made_file_frame(1, pc + i, i);
	m.ts_ns = 1000000;
	return made_user_stack(&m, user, cnt, VP_END_BOTTOM, cookie);
}

static void user_stack(uint64_t pc, uint64_t cookie)
{
	cr_assert(zero(int, send_stack(pc, 4, cookie)));
}

static void thread(uint32_t tid)
{
	m.tid = tid;
}

/* ---- what comes out ------------------------------------------------------------------------- */

static const struct entry *last_entry(void)
{
	cr_assert(gt(sz, entry_cnt, 0));
	return &entries[(entry_cnt - 1) % LOG_CNT];
}

/* The i-th that came out is sample `id` with that user part. */
static void expect_sample(size_t i, uint64_t id, uint16_t end, uint64_t pc)
{
	const struct entry *e = &entries[i];

	cr_assert(lt(sz, i, entry_cnt));
	cr_assert(eq(u32, e->kind, VP_REC_SAMPLE));
	cr_expect(eq(u64, e->kern0, KERN + id));
	cr_expect(eq(u64, e->s.hdr.ts_ns, id));
	cr_expect(eq(u32, e->s.hdr.flags, VP_SAMPLE_F_KERNEL_MODE));
	cr_expect(eq(u32, e->s.user_end, end));
	cr_expect(eq(u32, e->s.user_cnt, pc ? 4 : 0));
	cr_expect(eq(u64, e->pc0, pc));
}

static void expect_other(size_t i, uint16_t kind, uint32_t tid)
{
	cr_assert(lt(sz, i, entry_cnt));
	cr_expect(eq(u32, entries[i].kind, kind));
	cr_expect(eq(u32, entries[i].tid, tid));
}

static void expect_waiting(uint64_t n)
{
	cr_expect(eq(u64, vp_joiner_waiting(&j), n));
}

/* ---- what is not deferred ------------------------------------------------------------------- */

Test(joiner, whole_samples_go_straight_through)
{
	const uint64_t kern[] = {KERN, KERN + 1};
	const struct vp_frame user[] = {made_file_frame(1, 5, 0), made_file_frame(1, 6, 0)};

	m.ts_ns = 77;
	deferred(1, 1);
	cr_assert(zero(int, made_sample(&m, kern, 2, user, 2, VP_END_NO_ROW)));
	cr_assert(eq(sz, entry_cnt, 1));
	cr_expect(eq(u32, entries[0].s.user_end, VP_END_NO_ROW));
	cr_expect(eq(u32, entries[0].s.user_cnt, 2));
	cr_expect(eq(u64, entries[0].pc0, 5));
	expect_waiting(1);
}

Test(joiner, other_records_go_straight_through)
{
	const struct vp_rec_fork fork = {.hdr = {.kind = VP_REC_FORK}, .child_tid = 5};
	const struct vp_rec_comm comm = {.hdr = {.kind = VP_REC_COMM}, .tid = 6};

	cr_assert(zero(int, made_map(&m, 0x1000, 0x2000, 0, 0, VP_VERDICT_FILE, "/x")));
	cr_assert(zero(int, vp_joiner_ops.fork(&j, &fork)));
	cr_assert(zero(int, made_inherit(&m, m.proc, m.proc)));
	cr_assert(zero(int, made_exec(&m)));
	cr_assert(zero(int, made_exit(&m)));
	cr_assert(zero(int, vp_joiner_ops.comm(&j, &comm)));
	expect_other(0, VP_REC_MMAP2, MADE_TGID);
	expect_other(1, VP_REC_FORK, 5);
	expect_other(2, VP_REC_INHERIT, MADE_TGID);
	expect_other(3, VP_REC_EXEC, MADE_TGID);
	expect_other(4, VP_REC_EXIT, MADE_TGID);
	expect_other(5, VP_REC_COMM, 6);
	cr_expect(zero(u64, j.bytes));
}

Test(joiner, the_consumers_ops_may_be_missing)
{
	static const struct vp_record_ops none;
	const struct vp_rec_fork fork = {.hdr = {.kind = VP_REC_FORK}};
	const struct vp_rec_comm comm = {.hdr = {.kind = VP_REC_COMM}};

	j.inner = &none;
	cr_assert(zero(int, made_map(&m, 0x1000, 0x2000, 0, 0, VP_VERDICT_FILE, "/x")));
	cr_assert(zero(int, made_sample(&m, NULL, 0, NULL, 0, VP_END_BOTTOM)));
	cr_assert(zero(int, vp_joiner_ops.fork(&j, &fork)));
	cr_assert(zero(int, vp_joiner_ops.comm(&j, &comm)));
	cr_assert(zero(int, made_inherit(&m, m.proc, m.proc)));
	deferred(1, 1);
	user_stack(0x1000, 1);
	deferred(2, 1);
	deferred(3, 2);
	cr_assert(zero(int, made_exec(&m)));
	cr_assert(zero(int, made_exit(&m)));
	cr_expect(zero(int, vp_joiner_flush(&j)));
}

/* ---- joining -------------------------------------------------------------------------------- */

Test(joiner, a_sample_waits_for_its_user_part)
{
	deferred(1, 5);
	cr_expect(zero(sz, entry_cnt));
	expect_waiting(1);
	user_stack(0x1000, 5);
	cr_expect(eq(sz, entry_cnt, 1));
	expect_sample(0, 1, VP_END_BOTTOM, 0x1000);
	cr_expect(eq(u32, entries[0].tid, MADE_TGID));
	cr_expect(eq(str, entries[0].s.comm, "made"));
	cr_expect(eq(u64, entries[0].s.period, 1000));
	expect_waiting(0);
	cr_expect(eq(u64, j.joined_cnt, 1));
}

Test(joiner, all_samples_of_a_cookie_share_the_user_part_in_their_order)
{
	for (uint64_t i = 1; i <= 100; i++)
		deferred_of(i, 5, i);
	expect_waiting(100);
	user_stack(0x1000, 5);
	cr_assert(eq(sz, entry_cnt, 100));
	for (uint64_t i = 1; i <= 100; i++) {
		expect_sample(i - 1, i, VP_END_BOTTOM, 0x1000);
		cr_expect(eq(u32, entries[i - 1].s.kern_cnt, (uint32_t)i));
	}
}

Test(joiner, stacks_of_any_length_are_joined)
{
	static const size_t cnt[] = {0, 1, 31, 32, 33, 1000, VP_MAX_USER_FRAMES, 5, 0};

	for (uint64_t i = 0; i < sizeof(cnt) / sizeof(*cnt); i++) {
		deferred_of(i, i, i % 2 ? 1 : VP_MAX_KERN_FRAMES);
		cr_assert(zero(int, send_stack(0x1000, cnt[i], i)));
		cr_expect(eq(u32, last_entry()->s.user_cnt, (uint32_t)cnt[i]));
		/* and from memory */
		deferred_of(i, i, 1);
		cr_expect(eq(u32, last_entry()->s.user_cnt, (uint32_t)cnt[i]));
		cr_expect(eq(sz, entry_cnt, 2 * (i + 1)));
	}
}

Test(joiner, a_sample_without_any_kernel_frame_is_joined)
{
	deferred_of(1, 5, 0);
	user_stack(0x1000, 5);
	cr_assert(eq(sz, entry_cnt, 1));
	cr_expect(eq(u64, entries[0].pc0, 0x1000));
	cr_expect(zero(u32, entries[0].s.kern_cnt));
}

Test(joiner, a_cookie_may_have_any_value)
{
	static const uint64_t cookies[] = {0, UINT64_MAX, 1, 0, 1ULL << 32, 1};

	for (uint64_t i = 0; i < sizeof(cookies) / sizeof(*cookies); i++) {
		deferred(i, cookies[i]);
		user_stack(0x1000 + i, cookies[i]);
		expect_sample(i, i, VP_END_BOTTOM, 0x1000 + i);
	}
}

Test(joiner, the_reason_of_the_end_is_the_user_parts)
{
	deferred(1, 5);
	cr_assert(zero(int, made_user_stack(&m, NULL, 0, VP_END_BAD_MEMORY, 5)));
	expect_sample(0, 1, VP_END_BAD_MEMORY, 0);
	deferred(2, 5);
	expect_sample(1, 2, VP_END_BAD_MEMORY, 0);
	cr_expect(eq(u64, j.joined_cnt, 2));
}

Test(joiner, a_late_sample_gets_the_last_user_part)
{
	deferred(1, 5);
	user_stack(0x1000, 5);
	deferred(2, 5);
	deferred(3, 5);
	cr_assert(eq(sz, entry_cnt, 3));
	expect_sample(1, 2, VP_END_BOTTOM, 0x1000);
	expect_sample(2, 3, VP_END_BOTTOM, 0x1000);
	expect_waiting(0);
}

/* Its sample was lost, or all of them come late. */
Test(joiner, a_user_part_that_nobody_waits_for_is_for_late_samples)
{
	user_stack(0x1000, 5);
	cr_expect(zero(sz, entry_cnt));
	deferred(1, 5);
	expect_sample(0, 1, VP_END_BOTTOM, 0x1000);
}

Test(joiner, a_late_sample_of_another_cookie_waits_for_its_own)
{
	user_stack(0x1000, 5);
	deferred(1, 6);
	cr_expect(zero(sz, entry_cnt));
	user_stack(0x2000, 6);
	expect_sample(0, 1, VP_END_BOTTOM, 0x2000);
	/* the one before the last is not known any more */
	deferred(2, 5);
	expect_waiting(1);
}

Test(joiner, a_late_sample_of_another_life_waits_for_its_own)
{
	user_stack(0x1000, 5);
	m.proc.start_ns++;
	deferred(1, 5);
	cr_expect(zero(sz, entry_cnt));
	user_stack(0x2000, 5);
	expect_sample(0, 1, VP_END_BOTTOM, 0x2000);
}

Test(joiner, threads_do_not_disturb_each_other)
{
	thread(10);
	deferred(1, 5);
	thread(11);
	deferred(2, 5);
	thread(10);
	deferred(3, 5);
	thread(11);
	user_stack(0x2000, 5);
	cr_assert(eq(sz, entry_cnt, 1));
	expect_sample(0, 2, VP_END_BOTTOM, 0x2000);
	deferred(4, 5);
	thread(10);
	user_stack(0x1000, 5);
	deferred(5, 5);
	cr_assert(eq(sz, entry_cnt, 5));
	expect_sample(1, 4, VP_END_BOTTOM, 0x2000);
	expect_sample(2, 1, VP_END_BOTTOM, 0x1000);
	expect_sample(3, 3, VP_END_BOTTOM, 0x1000);
	expect_sample(4, 5, VP_END_BOTTOM, 0x1000);
	cr_expect(eq(u32, entries[1].tid, 11));
	cr_expect(eq(u32, entries[4].tid, 10));
	cr_expect(zero(u64, j.exited_cnt + j.in_kernel_cnt + j.full_cnt));
}

/* ---- user parts that never come ------------------------------------------------------------- */

Test(joiner, a_new_cookie_ends_the_wait_of_the_old_one)
{
	deferred(1, 5);
	deferred(2, 5);
	deferred(3, 6);
	cr_assert(eq(sz, entry_cnt, 2));
	expect_sample(0, 1, VP_END_EXITED, 0);
	expect_sample(1, 2, VP_END_EXITED, 0);
	cr_expect(eq(u64, j.exited_cnt, 2));
	user_stack(0x1000, 6);
	expect_sample(2, 3, VP_END_BOTTOM, 0x1000);
}

Test(joiner, a_user_part_of_a_new_cookie_ends_the_wait_of_the_old_one)
{
	deferred(1, 5);
	user_stack(0x1000, 6);
	expect_sample(0, 1, VP_END_EXITED, 0);
	deferred(2, 6);
	expect_sample(1, 2, VP_END_BOTTOM, 0x1000);
	cr_expect(eq(u64, j.exited_cnt, 1));
}

Test(joiner, an_exit_follows_what_waited_for_the_thread)
{
	thread(10);
	deferred(1, 5);
	deferred(2, 5);
	thread(11);
	deferred(3, 5);
	thread(10);
	cr_assert(zero(int, made_exit(&m)));
	cr_assert(eq(sz, entry_cnt, 3));
	expect_sample(0, 1, VP_END_EXITED, 0);
	expect_sample(1, 2, VP_END_EXITED, 0);
	expect_other(2, VP_REC_EXIT, 10);
	cr_expect(eq(u64, j.exited_cnt, 2));
	expect_waiting(1);
}

Test(joiner, an_exit_frees_what_was_kept_for_the_thread)
{
	uint64_t before;

	cr_assert(zero(int, send_stack(0x1000, 500, 5)));
	cr_expect(eq(sz, j.thread_cnt, 1));
	before = j.bytes;
	cr_assert(zero(int, made_exit(&m)));
	cr_expect(zero(sz, j.thread_cnt));
	cr_expect(le(u64, j.bytes + 500 * sizeof(struct vp_frame), before));
	/* the number is another thread's now */
	deferred(1, 5);
	expect_waiting(1);
}

Test(joiner, an_exec_follows_what_waited_for_any_thread_of_the_process)
{
	for (uint32_t tid = 10; tid < 20; tid++) {
		thread(tid);
		deferred(tid, 5);
	}
	thread(30);
	user_stack(0x1000, 7);
	m.proc.tgid++;
	thread(21);
	deferred(21, 5); /* of another process */
	m.proc.tgid--;

	/* thread 15 exec'd: it is the leader from now on */
	m.proc.exec_id++;
	thread(0);
	cr_assert(zero(int, made_exec(&m)));
	cr_assert(eq(sz, entry_cnt, 11));
	for (uint64_t i = 0; i < 10; i++)
		expect_sample(i, 10 + i, VP_END_EXITED, 0);
	expect_other(10, VP_REC_EXEC, MADE_TGID);
	cr_expect(eq(u64, j.exited_cnt, 10));
	expect_waiting(1);
	cr_expect(eq(sz, j.thread_cnt, 1));
}

Test(joiner, an_exec_ends_nothing_of_other_processes)
{
	const uint32_t first = m.proc.tgid;

	for (uint32_t i = 0; i < 1000; i++) {
		m.proc.tgid = first + i;
		deferred(i, 5);
	}
	m.proc.tgid = first + 500;
	cr_assert(zero(int, made_exec(&m)));
	cr_assert(eq(sz, entry_cnt, 2));
	expect_sample(0, 500, VP_END_EXITED, 0);
	expect_waiting(999);
}

Test(joiner, the_new_image_starts_afresh_after_its_exec)
{
	thread(0);
	deferred(1, 5);
	m.proc.exec_id++;
	deferred(2, 5); /* the new image, before exec is through */
	expect_sample(0, 1, VP_END_EXITED, 0);
	cr_assert(zero(int, made_exec(&m)));
	expect_sample(1, 2, VP_END_EXITED, 0);
	deferred(3, 5);
	user_stack(0x1000, 5);
	expect_other(2, VP_REC_EXEC, MADE_TGID);
	expect_sample(3, 3, VP_END_BOTTOM, 0x1000);
	cr_expect(eq(u64, j.exited_cnt, 2));
}

Test(joiner, an_exec_ends_a_thread_of_its_number_in_any_process)
{
	thread(77);
	deferred(1, 5);
	m.proc.tgid = 77;
	cr_assert(zero(int, made_exec(&m)));
	expect_sample(0, 1, VP_END_EXITED, 0);
	expect_other(1, VP_REC_EXEC, 77);
}

Test(joiner, a_user_part_of_another_life_is_nobodys)
{
	const struct vp_proc_id first = m.proc;

	for (int i = 0; i < 3; i++) {
		m.proc = first;
		deferred(1, 5);
		m.proc.start_ns += i == 0;
		m.proc.tgid += i == 1;
		m.proc.exec_id += i == 2;
		thread(MADE_TGID);
		user_stack(0x1000, 5);
		cr_assert(eq(sz, entry_cnt, (size_t)i + 1));
		expect_sample((size_t)i, 1, VP_END_EXITED, 0);
		expect_waiting(0);
	}
	cr_expect(eq(u64, j.exited_cnt, 3));
}

/* The exit was lost. */
Test(joiner, a_reused_number_is_another_thread)
{
	thread(10);
	deferred(1, 5);
	m.proc.tgid++;
	m.proc.start_ns++;
	deferred(2, 5);
	cr_assert(eq(sz, entry_cnt, 1));
	expect_sample(0, 1, VP_END_EXITED, 0);
	/* the process it had been of has nothing of it any more */
	m.proc.tgid--;
	thread(0);
	cr_assert(zero(int, made_exec(&m)));
	cr_expect(eq(sz, entry_cnt, 2));
	m.proc.tgid++;
	thread(10);
	user_stack(0x2000, 5);
	expect_sample(2, 2, VP_END_BOTTOM, 0x2000);
}

Test(joiner, the_end_of_the_recording_lets_all_go_in_order_of_arrival)
{
	for (uint64_t i = 0; i < 300; i++) {
		thread(10 + i % 7);
		deferred(i, 5);
	}
	thread(50);
	user_stack(0x1000, 5);
	expect_waiting(300);
	cr_expect(zero(int, vp_joiner_flush(&j)));
	cr_assert(eq(sz, entry_cnt, 300));
	for (uint64_t i = 0; i < 300; i++)
		expect_sample(i, i, VP_END_IN_KERNEL, 0);
	cr_expect(eq(u64, j.in_kernel_cnt, 300));
	expect_waiting(0);
	cr_expect(zero(int, vp_joiner_flush(&j)));
	cr_expect(eq(sz, entry_cnt, 300));
	/* only who has a last user part is still known */
	cr_expect(eq(sz, j.thread_cnt, 1));
}

/* ---- errors --------------------------------------------------------------------------------- */

Test(joiner, what_the_consumer_returns_is_passed_on)
{
	const struct vp_rec_fork fork = {.hdr = {.kind = VP_REC_FORK}};

	deferred(1, 5);
	deferred(2, 5);
	answer = -ENOSPC;
	cr_expect(eq(int, send_stack(0x1000, 1, 5), -ENOSPC));
	cr_expect(eq(int, vp_joiner_flush(&j), -ENOSPC));
	cr_expect(eq(int, made_sample(&m, NULL, 0, NULL, 0, 1), -ENOSPC));
	cr_expect(eq(int, vp_joiner_ops.fork(&j, &fork), -ENOSPC));
	cr_expect(eq(int, made_inherit(&m, m.proc, m.proc), -ENOSPC));
	cr_expect(eq(int, made_map(&m, 0, 1, 0, 0, VP_VERDICT_FILE, "/x"), -ENOSPC));
	cr_expect(eq(int, made_exec(&m), -ENOSPC));
	cr_expect(eq(int, made_exit(&m), -ENOSPC));
	cr_expect(zero(int, send_stack(0x1000, 1, 6)));
	cr_expect(eq(int, made_deferred(&m, NULL, 0, 6), -ENOSPC));
}

/* At each point where a sample is passed on. */
Test(joiner, an_error_loses_no_memory)
{
	const uint64_t kern[] = {KERN};

	for (int i = 0; i < 6; i++) {
		answer = 0;
		thread(10);
		deferred(1, 5);
		if (i % 2)
			deferred(2, 5);
		answer = -EIO;
		if (i / 2 == 0)
			cr_expect(eq(int, made_deferred(&m, kern, 1, 6), -EIO));
		else if (i / 2 == 1)
			cr_expect(eq(int, send_stack(0x1000, 1, 6), -EIO));
		else
			cr_expect(eq(int, made_exit(&m), -EIO));
		expect_waiting(i % 2);
		vp_joiner_free(&j);
		cr_expect(zero(u64, j.bytes));
		cr_expect(zero(sz, j.thread_cnt));
	}
}

/* ---- memory --------------------------------------------------------------------------------- */

/* Zero under a sanitizer, which knows better itself. */
static size_t heap_bytes(void)
{
	return mallinfo2().uordblks + mallinfo2().hblkhd;
}

/* In any case: nothing is lost, nothing above the limit, and the allocator agrees. */
static void expect_bounded(uint64_t sent, size_t heap_before)
{
	uint64_t out = 0;

	for (int i = 0; i < VP_END_CNT; i++)
		out += end_cnt[i];
	cr_assert(le(u64, j.bytes, j.max_bytes));
	cr_assert(eq(u64, out + vp_joiner_waiting(&j), sent));
	cr_assert(eq(u64, j.joined_cnt + j.exited_cnt + j.in_kernel_cnt + j.full_cnt, out));
	/* blocks of 128 bytes and more: at most an eighth on top */
	cr_assert(le(sz, heap_bytes(), heap_before + j.max_bytes + j.max_bytes / 8 + 65536));
}

Test(joiner, a_hundred_thousand_threads_that_never_return_stay_within_the_limit)
{
	size_t before = heap_bytes();

	j.max_bytes = 1 << 20;
	for (uint32_t i = 0; i < 100000; i++) {
		thread(i);
		deferred_of(i, i, i % (VP_MAX_KERN_FRAMES + 1));
		if (i % 1000 == 0)
			expect_bounded(i + 1, before);
	}
	expect_bounded(100000, before);
	cr_expect(gt(u64, j.full_cnt, 90000));
	cr_expect(eq(u64, end_cnt[VP_END_IN_KERNEL], j.full_cnt));
	cr_expect(gt(u64, vp_joiner_waiting(&j), 500));
	/* the oldest had to go */
	cr_expect(eq(u64, last_entry()->tid, 100000 - (uint32_t)vp_joiner_waiting(&j) - 1));
	cr_expect(zero(int, vp_joiner_flush(&j)));
	expect_bounded(100000, before);
	cr_expect(eq(u64, end_cnt[VP_END_IN_KERNEL], 100000));
}

Test(joiner, a_hundred_thousand_threads_are_told_apart)
{
	check_frames = false;
	j.max_bytes = 256 << 20;
	for (uint32_t i = 0; i < 100000; i++) {
		thread(i);
		deferred_of(i, 1, 2);
	}
	expect_waiting(100000);
	for (uint32_t i = 100000; i-- > 0;) {
		thread(i);
		user_stack(i + 1, 1);
		cr_assert(eq(u64, last_entry()->kern0, KERN + i));
		cr_assert(eq(u64, last_entry()->pc0, i + 1));
	}
	cr_expect(eq(u64, j.joined_cnt, 100000));
	/* and they all exec at once */
	thread(0);
	cr_assert(zero(int, made_exec(&m)));
	cr_expect(zero(sz, j.thread_cnt));
}

Test(joiner, one_thread_in_an_endless_system_call_stays_within_the_limit)
{
	size_t before = heap_bytes();

	j.max_bytes = 200000;
	for (uint64_t i = 0; i < 100000; i++)
		deferred(i, 5);
	expect_bounded(100000, before);
	cr_expect(gt(u64, vp_joiner_waiting(&j), 500));
	cr_expect(eq(u64, last_entry()->s.user_end, VP_END_IN_KERNEL));
	/* the youngest are joined in the end */
	user_stack(0x1000, 5);
	expect_waiting(0);
	cr_expect(gt(u64, j.joined_cnt, 500));
	cr_expect(eq(u64, last_entry()->kern0, KERN + 99999));
}

Test(joiner, cookies_that_never_come_cost_nothing)
{
	deferred(0, 0);
	for (uint64_t i = 1; i < 100000; i++) {
		deferred(i, i);
		cr_assert(eq(u64, vp_joiner_waiting(&j), 1));
	}
	cr_expect(eq(u64, j.exited_cnt, 99999));
	cr_expect(lt(u64, j.bytes, 10000));
}

Test(joiner, user_parts_that_nobody_waits_for_stay_within_the_limit)
{
	size_t before = heap_bytes();

	j.max_bytes = 1 << 20;
	for (uint32_t i = 0; i < 20000; i++) {
		thread(i);
		cr_assert(zero(int, send_stack(i + 1, i % 97, 5)));
		if (i % 100 == 0)
			expect_bounded(0, before);
	}
	cr_expect(gt(u64, j.forgotten_cnt, 15000));
	cr_expect(eq(u64, j.forgotten_cnt + j.thread_cnt, 20000));
	/* the last is known, the first is not */
	deferred(1, 5);
	cr_expect(eq(u64, last_entry()->pc0, 20000));
	thread(0);
	deferred(2, 5);
	cr_expect(eq(sz, entry_cnt, 1));
	cr_expect(zero(u64, j.full_cnt));
}

Test(joiner, of_the_last_user_parts_the_one_not_seen_for_longest_goes_first)
{
	j.max_bytes = 100000;
	thread(1);
	user_stack(0x1000, 5);
	for (uint32_t i = 2; i < 2000; i++) {
		thread(i);
		user_stack(0x2000, 5);
		thread(1);
		deferred(i, 5);
		cr_assert(eq(u64, last_entry()->pc0, 0x1000));
	}
	cr_expect(gt(u64, j.forgotten_cnt, 1000));
	cr_expect(eq(u64, j.joined_cnt, 1998));
}

/* Whatever is older goes first, be it a wait or a user part. */
Test(joiner, waits_and_last_user_parts_go_by_age)
{
	j.max_bytes = 20000;
	thread(1);
	deferred(1, 5);
	thread(2);
	user_stack(0x1000, 5);
	for (uint64_t i = 10; j.full_cnt == 0; i++) {
		thread(3);
		deferred(i, 5);
		cr_assert(zero(u64, j.forgotten_cnt));
	}
	expect_sample(0, 1, VP_END_IN_KERNEL, 0);
	for (uint64_t i = 1000; j.forgotten_cnt == 0; i++)
		deferred(i, 5);
	cr_expect(lt(u64, j.full_cnt, 5));
}

/* Room that was only kept for the next one. */
Test(joiner, a_user_part_that_is_over_is_not_forgotten)
{
	j.max_bytes = 20000;
	thread(1);
	cr_assert(zero(int, send_stack(0x1000, 500, 5)));
	deferred(1, 6);
	for (uint64_t i = 10; j.full_cnt == 0; i++) {
		thread(2);
		deferred(i, 5);
	}
	expect_sample(0, 1, VP_END_IN_KERNEL, 0);
	cr_expect(gt(u64, vp_joiner_waiting(&j), 30));
	cr_expect(zero(u64, j.forgotten_cnt));
}

/* A deep user part that can never fit is no reason to let all others go. */
Test(joiner, a_user_part_above_the_limit_is_used_but_not_kept)
{
	j.max_bytes = 10000;
	thread(2);
	deferred(1, 5);
	thread(1);
	deferred(2, 5);
	cr_assert(zero(int, send_stack(0x1000, 1000, 5)));
	cr_expect(eq(u32, last_entry()->s.user_cnt, 1000));
	cr_expect(eq(u64, j.forgotten_cnt, 1));
	cr_expect(eq(sz, entry_cnt, 1));
	expect_waiting(1);
	cr_expect(eq(sz, j.thread_cnt, 1));
}

Test(joiner, without_memory_samples_go_at_once)
{
	static const uint64_t limits[] = {0, 1, 1000, 2048, 2300, 2500, 2700};

	for (size_t i = 0; i < sizeof(limits) / sizeof(*limits); i++) {
		uint64_t sent = j.joined_cnt + j.exited_cnt + j.full_cnt;

		j.max_bytes = limits[i];
		for (uint32_t k = 0; k < 100; k++) {
			thread(k);
			deferred_of(k, 5, k);
			deferred_of(k, 6, 127 - k);
			cr_assert(zero(int, send_stack(0x1000, k, 6)));
			cr_assert(le(u64, j.bytes, limits[i]));
			sent += 2;
			cr_assert(
				eq(u64,
				   j.joined_cnt + j.exited_cnt + j.full_cnt + vp_joiner_waiting(&j),
				   sent));
		}
		j.full_cnt += vp_joiner_waiting(&j);
		vp_joiner_free(&j);
	}
}

Test(joiner, a_thread_that_works_for_long_needs_no_new_memory)
{
	uint64_t bytes = 0;

	for (uint64_t i = 0; i < 20000; i++) {
		for (uint64_t k = 0; k < 4; k++)
			deferred_of(4 * i + k, i, 20 + i % 3);
		cr_assert(zero(int, send_stack(0x1000, 40 + i % 20, i)));
		if (i == 10)
			bytes = j.bytes;
		cr_assert(i <= 10 || j.bytes == bytes);
	}
	cr_expect(eq(u64, j.joined_cnt, 80000));
}

/* ---- at random ------------------------------------------------------------------------------ */

/* What the rules say of a thread, as plain as can be. */
struct model {
	struct vp_proc_id life;
	uint64_t cookie, pc;
	bool known, came;
	uint64_t wait_cnt;
};

#define THREADS 12

static struct model threads[THREADS];
static uint64_t want_joined, want_exited, want_waiting;

static void model_end(struct model *t)
{
	want_exited += t->wait_cnt;
	want_waiting -= t->wait_cnt;
	*t = (struct model){0};
}

static struct model *model_at(uint32_t tid, uint64_t cookie)
{
	struct model *t = &threads[tid - 1];

	if (t->known && (t->cookie != cookie || memcmp(&t->life, &m.proc, sizeof(t->life))))
		model_end(t);
	t->known = true;
	t->cookie = cookie;
	t->life = m.proc;
	return t;
}

static void random_record(uint64_t id)
{
	uint32_t tid = 1 + (uint32_t)lrand48() % THREADS;
	uint64_t cookie = (uint64_t)lrand48() % 3;
	struct model *t;

	m.proc.tgid = 1 + (tid - 1) / 4;
	m.proc.exec_id = lrand48() % 8 == 0;
	thread(tid);
	switch (lrand48() % 16) {
	case 0:
		cr_assert(zero(int, made_exit(&m)));
		model_end(&threads[tid - 1]);
		break;
	case 1:
		cr_assert(zero(int, made_exec(&m)));
		for (uint32_t i = 0; i < THREADS; i++) {
			if (i / 4 + 1 == m.proc.tgid)
				model_end(&threads[i]);
		}
		break;
	case 2:
	case 3:
	case 4:
	case 5:
		user_stack(id, cookie);
		t = model_at(tid, cookie);
		want_joined += t->wait_cnt;
		want_waiting -= t->wait_cnt;
		t->wait_cnt = 0;
		t->came = true;
		t->pc = id;
		break;
	default:
		deferred_of(id, cookie, id % 30);
		t = model_at(tid, cookie);
		if (t->came) {
			want_joined++;
			cr_assert(eq(u64, last_entry()->pc0, t->pc));
		} else {
			t->wait_cnt++;
			want_waiting++;
		}
	}
}

Test(joiner, random_records_go_where_the_rules_say)
{
	srand48(6);
	for (uint64_t i = 1; i <= 200000; i++) {
		random_record(i);
		cr_assert(eq(u64, vp_joiner_waiting(&j), want_waiting));
		cr_assert(eq(u64, j.exited_cnt, want_exited));
		cr_assert(eq(u64, j.joined_cnt, want_joined));
	}
	cr_expect(gt(u64, want_exited, 1000));
	cr_expect(gt(u64, want_joined, 1000));
	cr_expect(zero(u64, j.full_cnt + j.forgotten_cnt));
}

Test(joiner, random_records_with_little_memory_break_nothing)
{
	size_t before = heap_bytes();

	srand48(7);
	for (uint64_t i = 1; i <= 100000; i++) {
		uint64_t cookie = (uint64_t)lrand48() % 3, out = 0;
		long what = lrand48() % 16;

		j.max_bytes = i % 1000 ? j.max_bytes : 3000 + (uint64_t)lrand48() % 30000;
		while (j.bytes > j.max_bytes) /* the limit is not meant to change */
			vp_joiner_free(&j);
		m.proc.tgid = 1 + (uint32_t)lrand48() % 5;
		thread(1 + (uint32_t)lrand48() % 60);
		for (int k = 0; k < VP_END_CNT; k++)
			out += end_cnt[k];
		if (what == 0)
			cr_assert(zero(int, made_exit(&m)));
		else if (what == 1)
			cr_assert(zero(int, made_exec(&m)));
		else if (what < 6)
			cr_assert(zero(int, send_stack(i, (size_t)lrand48() % 100, cookie)));
		else
			deferred_of(i, cookie, (size_t)lrand48() % VP_MAX_KERN_FRAMES);
		cr_assert(le(u64, j.bytes, j.max_bytes));
		cr_assert(le(u64, out, j.joined_cnt + j.exited_cnt + j.full_cnt));
	}
	cr_expect(gt(u64, j.full_cnt, 1000));
	cr_expect(gt(u64, j.forgotten_cnt, 1000));
	vp_joiner_free(&j);
	cr_expect(le(sz, heap_bytes(), before + 65536));
}
