/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Records as bytes: the whole, the broken and the hostile. */
#include "model/decode.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct vp_mmap2 last_mmap2;
static struct vp_rec_sample last_sample;
static uint64_t last_kern[VP_MAX_KERN_FRAMES];
static struct vp_frame last_user[VP_MAX_USER_FRAMES];
static struct vp_rec_user_stack last_stack;
static int mmap2_cnt, sample_cnt, fixed_cnt, stack_cnt, answer;

static int on_mmap2(void *ctx, const struct vp_mmap2 *m)
{
	(void)ctx;
	last_mmap2 = *m;
	mmap2_cnt++;
	return answer;
}

static int on_sample(void *ctx, const struct vp_rec_sample *s, const uint64_t *kern,
		     const struct vp_frame *user)
{
	(void)ctx;
	last_sample = *s;
	memcpy(last_kern, kern, s->kern_cnt * sizeof(*kern));
	memcpy(last_user, user, s->user_cnt * sizeof(*user));
	sample_cnt++;
	return answer;
}

static int on_exec(void *ctx, const struct vp_rec_exec *r)
{
	(void)ctx;
	(void)r;
	fixed_cnt++;
	return answer;
}

static int on_fork(void *ctx, const struct vp_rec_fork *r)
{
	(void)ctx;
	(void)r;
	fixed_cnt++;
	return answer;
}

static int on_exit_rec(void *ctx, const struct vp_rec_exit *r)
{
	(void)ctx;
	(void)r;
	fixed_cnt++;
	return answer;
}

static int on_inherit(void *ctx, const struct vp_rec_inherit *r)
{
	(void)ctx;
	(void)r;
	fixed_cnt++;
	return answer;
}

static int on_comm(void *ctx, const struct vp_rec_comm *r)
{
	(void)ctx;
	(void)r;
	fixed_cnt++;
	return answer;
}

static int on_user_stack(void *ctx, const struct vp_rec_user_stack *r, const struct vp_frame *user)
{
	(void)ctx;
	last_stack = *r;
	memcpy(last_user, user, r->user_cnt * sizeof(*user));
	stack_cnt++;
	return answer;
}

static const struct vp_record_ops ops = {
	.mmap2 = on_mmap2,
	.sample = on_sample,
	.exec = on_exec,
	.fork = on_fork,
	.exit = on_exit_rec,
	.inherit = on_inherit,
	.comm = on_comm,
	.user_stack = on_user_stack,
};

static struct vp_decoder d = {.ops = &ops};

TestSuite(decode);

/* ---- making records ------------------------------------------------------------------------- */

/* The record being made: in memory of exactly its size, so that a sanitizer sees each step beyond. */
static int decode_exactly(const void *rec, size_t size)
{
	void *copy = malloc(size ? size : 1);
	int err;

	cr_assert(copy != NULL);
	memcpy(copy, rec, size);
	err = vp_decode(&d, copy, size);
	free(copy);
	return err;
}

static struct {
	struct vp_rec_mmap2 rec;
	char name[VP_PATH_MAX + 64];
} made;

/* name of len bytes with the NULs that it may hold; padded as the kernel side does. */
static size_t make_mmap2(uint16_t flags, const char *name, size_t len)
{
	size_t padded = (len + 8) & ~(size_t)7;

	memset(&made, 0, sizeof(made));
	memcpy(made.name, name, len);
	made.rec.hdr.kind = VP_REC_MMAP2;
	made.rec.hdr.flags = flags;
	made.rec.hdr.size = (uint32_t)(sizeof(made.rec) + padded);
	made.rec.proc.tgid = 4200000;
	made.rec.name_bytes = (uint16_t)padded;
	made.rec.verdict = VP_VERDICT_FILE;
	made.rec.perf.type = VP_PERF_RECORD_MMAP2;
	made.rec.perf.size = (uint16_t)(sizeof(made.rec.perf) + padded);
	made.rec.perf.addr = 0x1000;
	made.rec.perf.len = 0x1000;
	strcpy(made.rec.comm, "made up");
	return made.rec.hdr.size;
}

static struct {
	struct vp_rec_sample rec;
	uint8_t tail[VP_MAX_KERN_FRAMES * 8 + VP_MAX_USER_FRAMES * sizeof(struct vp_frame) + 64];
} sample;

static size_t make_sample(uint16_t kern, uint16_t user)
{
	size_t size = sizeof(sample.rec) + kern * sizeof(uint64_t) + user * sizeof(struct vp_frame);

	memset(&sample.rec, 0, sizeof(sample.rec));
	memset(sample.tail, 0x5a, sizeof(sample.tail));
	sample.rec.hdr.kind = VP_REC_SAMPLE;
	sample.rec.hdr.size = (uint32_t)size;
	sample.rec.kern_cnt = kern;
	sample.rec.user_cnt = user;
	strcpy(sample.rec.comm, "made up");
	return size;
}

static struct {
	struct vp_rec_user_stack rec;
	uint8_t tail[(VP_MAX_USER_FRAMES + 2) * sizeof(struct vp_frame)];
} stack;

static size_t make_user_stack(uint16_t user)
{
	size_t size = sizeof(stack.rec) + user * sizeof(struct vp_frame);

	memset(&stack.rec, 0, sizeof(stack.rec));
	memset(stack.tail, 0x5a, sizeof(stack.tail));
	stack.rec.hdr.kind = VP_REC_USER_STACK;
	stack.rec.hdr.size = (uint32_t)size;
	stack.rec.user_cnt = user;
	stack.rec.user_end = VP_END_BOTTOM;
	stack.rec.cookie = 7;
	return size;
}

static int calls_cnt(void)
{
	return mmap2_cnt + sample_cnt + fixed_cnt + stack_cnt;
}

static void expect_bad(const void *rec, size_t size)
{
	uint64_t before = d.bad_cnt;
	int calls = calls_cnt();

	cr_expect(zero(int, decode_exactly(rec, size)));
	cr_expect(eq(u64, d.bad_cnt, before + 1));
	cr_expect(eq(int, calls_cnt(), calls));
}

/* ---- headers and fixed records -------------------------------------------------------------- */

Test(decode, a_record_shorter_than_its_header_is_bad)
{
	struct vp_rec_hdr hdr = {.kind = VP_REC_EXIT, .size = sizeof(hdr)};

	for (uint32_t n = 0; n < sizeof(hdr); n++) {
		hdr.size = n;
		expect_bad(&hdr, n);
	}
}

Test(decode, a_size_that_is_not_the_rings_is_bad)
{
	struct vp_rec_exit r = {.hdr = {.kind = VP_REC_EXIT, .size = sizeof(r) - 1}};

	expect_bad(&r, sizeof(r));
	r.hdr.size = sizeof(r) + 1;
	expect_bad(&r, sizeof(r));
	r.hdr.size = 0;
	expect_bad(&r, sizeof(r));
}

Test(decode, unknown_kinds_are_counted_and_skipped)
{
	struct vp_rec_hdr hdr = {.size = sizeof(hdr)};
	const uint16_t kinds[] = {0, VP_REC_KIND_CNT, 100, UINT16_MAX};

	for (size_t i = 0; i < 4; i++) {
		hdr.kind = kinds[i];
		cr_expect(zero(int, decode_exactly(&hdr, sizeof(hdr))));
	}
	cr_expect(eq(u64, d.unknown_cnt, 4));
	cr_expect(zero(u64, d.bad_cnt));
}

Test(decode, records_without_a_tail_have_exactly_their_size)
{
	static const struct {
		uint16_t kind;
		uint32_t size;
	} fixed[] = {
		{VP_REC_EXEC, sizeof(struct vp_rec_exec)},
		{VP_REC_FORK, sizeof(struct vp_rec_fork)},
		{VP_REC_EXIT, sizeof(struct vp_rec_exit)},
		{VP_REC_INHERIT, sizeof(struct vp_rec_inherit)},
		{VP_REC_COMM, sizeof(struct vp_rec_comm)},
	};

	for (size_t i = 0; i < sizeof(fixed) / sizeof(*fixed); i++) {
		uint64_t buf[16] = {0};
		struct vp_rec_hdr *hdr = (void *)buf;

		hdr->kind = fixed[i].kind;
		hdr->size = fixed[i].size;
		cr_expect(zero(int, decode_exactly(buf, hdr->size)));
		cr_expect(eq(int, fixed_cnt, (int)i + 1));
		for (uint32_t n = sizeof(*hdr); n < sizeof(buf); n++) {
			hdr->size = n;
			if (n != fixed[i].size)
				expect_bad(buf, n);
		}
	}
}

Test(decode, an_exec_with_an_endless_name_is_bad)
{
	struct vp_rec_exec r = {.hdr = {.kind = VP_REC_EXEC, .size = sizeof(r)}};

	memset(r.comm, 'x', sizeof(r.comm));
	expect_bad(&r, sizeof(r));
}

Test(decode, a_comm_with_an_endless_name_is_bad)
{
	struct vp_rec_comm r = {.hdr = {.kind = VP_REC_COMM, .size = sizeof(r)}};

	memset(r.comm, 'x', sizeof(r.comm));
	expect_bad(&r, sizeof(r));
}

Test(decode, what_an_op_returns_is_passed_on)
{
	struct vp_rec_exit r = {.hdr = {.kind = VP_REC_EXIT, .size = sizeof(r)}};
	size_t size = make_mmap2(0, "/x", 2);

	answer = -ENOSPC;
	cr_expect(eq(int, decode_exactly(&made, size), -ENOSPC));
	cr_expect(eq(int, decode_exactly(&sample, make_sample(1, 1)), -ENOSPC));
	cr_expect(eq(int, decode_exactly(&stack, make_user_stack(1)), -ENOSPC));
	cr_expect(eq(int, decode_exactly(&r, sizeof(r)), -ENOSPC));
}

Test(decode, ops_may_be_missing)
{
	static const struct vp_record_ops none;
	struct vp_rec_exec r = {.hdr = {.kind = VP_REC_EXEC, .size = sizeof(r)}};
	size_t size = make_mmap2(0, "/x", 2);

	d.ops = &none;
	cr_expect(zero(int, decode_exactly(&made, size)));
	cr_expect(zero(int, decode_exactly(&sample, make_sample(2, 2))));
	cr_expect(zero(int, decode_exactly(&stack, make_user_stack(2))));
	cr_expect(zero(int, decode_exactly(&r, sizeof(r))));
	cr_expect(zero(u64, d.bad_cnt + d.unknown_cnt));
}

/* ---- samples -------------------------------------------------------------------------------- */

Test(decode, a_sample_is_split_into_kernel_and_user)
{
	uint64_t kern[2] = {0xffffffff81000000, 0xffffffff81000001};
	struct vp_frame user[2] = {{.pc = 1, .verdict = 1}, {.pc = 2, .verdict = 2}};
	size_t size = make_sample(2, 2);

	memcpy(sample.tail, kern, sizeof(kern));
	memcpy(sample.tail + sizeof(kern), user, sizeof(user));
	cr_expect(zero(int, decode_exactly(&sample, size)));
	cr_assert(eq(int, sample_cnt, 1));
	cr_expect(zero(int, memcmp(last_kern, kern, sizeof(kern))));
	cr_expect(zero(int, memcmp(last_user, user, sizeof(user))));
}

Test(decode, samples_of_any_allowed_length_are_taken)
{
	cr_expect(zero(int, decode_exactly(&sample, make_sample(0, 0))));
	cr_expect(zero(
		int, decode_exactly(&sample, make_sample(VP_MAX_KERN_FRAMES, VP_MAX_USER_FRAMES))));
	cr_expect(eq(int, sample_cnt, 2));
	cr_expect(zero(u64, d.bad_cnt));
}

Test(decode, a_sample_whose_counts_do_not_match_its_size_is_bad)
{
	size_t size = make_sample(3, 5);

	sample.rec.user_cnt++;
	expect_bad(&sample, size);
	sample.rec.user_cnt -= 2;
	expect_bad(&sample, size);
	make_sample(3, 5);
	sample.rec.kern_cnt += 3; /* a user frame's size: the sum is right again */
	sample.rec.user_cnt--;
	cr_expect(zero(int, decode_exactly(&sample, size)));
	sample.rec.kern_cnt = UINT16_MAX;
	sample.rec.user_cnt = UINT16_MAX;
	expect_bad(&sample, size);
}

Test(decode, a_sample_beyond_the_limits_is_bad)
{
	expect_bad(&sample, make_sample(VP_MAX_KERN_FRAMES + 1, 0));
	expect_bad(&sample, make_sample(0, VP_MAX_USER_FRAMES + 1));
}

Test(decode, a_sample_with_an_endless_name_is_bad)
{
	size_t size = make_sample(1, 1);

	memset(sample.rec.comm, 'x', sizeof(sample.rec.comm));
	expect_bad(&sample, size);
}

Test(decode, each_truncation_of_a_sample_is_bad)
{
	size_t size = make_sample(2, 3);

	for (size_t n = 0; n < size; n++) {
		sample.rec.hdr.size = (uint32_t)n;
		expect_bad(&sample, n);
	}
}

Test(decode, a_deferred_sample_has_a_cookie_and_no_user_frames)
{
	size_t size = make_sample(2, 0);

	sample.rec.hdr.flags = VP_SAMPLE_F_DEFERRED | VP_SAMPLE_F_KERNEL_MODE;
	sample.rec.cookie = UINT64_MAX;
	cr_expect(zero(int, decode_exactly(&sample, size)));
	cr_expect(eq(int, sample_cnt, 1));
	cr_expect(eq(u64, last_sample.cookie, UINT64_MAX));

	size = make_sample(2, 1);
	sample.rec.hdr.flags = VP_SAMPLE_F_DEFERRED;
	sample.rec.cookie = 7;
	expect_bad(&sample, size);
}

Test(decode, a_cookie_in_a_sample_that_is_not_deferred_is_bad)
{
	size_t size = make_sample(2, 1);

	sample.rec.cookie = 1;
	expect_bad(&sample, size);
	sample.rec.hdr.flags = (uint16_t)~VP_SAMPLE_F_DEFERRED;
	expect_bad(&sample, size);
}

/* ---- user stacks ---------------------------------------------------------------------------- */

Test(decode, a_user_stack_comes_as_it_is)
{
	const struct vp_frame user[2] = {{.pc = 1, .verdict = 1}, {.pc = 2, .verdict = 2}};
	size_t size = make_user_stack(2);

	memcpy(stack.tail, user, sizeof(user));
	cr_expect(zero(int, decode_exactly(&stack, size)));
	cr_assert(eq(int, stack_cnt, 1));
	cr_expect(zero(int, memcmp(&last_stack, &stack.rec, sizeof(last_stack))));
	cr_expect(zero(int, memcmp(last_user, user, sizeof(user))));
}

Test(decode, user_stacks_of_any_allowed_length_are_taken)
{
	cr_expect(zero(int, decode_exactly(&stack, make_user_stack(0))));
	cr_expect(zero(int, decode_exactly(&stack, make_user_stack(VP_MAX_USER_FRAMES))));
	cr_expect(eq(int, stack_cnt, 2));
	expect_bad(&stack, make_user_stack(VP_MAX_USER_FRAMES + 1));
}

Test(decode, a_user_stack_whose_count_does_not_match_its_size_is_bad)
{
	size_t size = make_user_stack(3);

	stack.rec.user_cnt = 2;
	expect_bad(&stack, size);
	stack.rec.user_cnt = 4;
	expect_bad(&stack, size);
	stack.rec.user_cnt = UINT16_MAX;
	expect_bad(&stack, size);
	stack.rec.user_cnt = 3;
	for (size_t n = 0; n < size; n++) {
		stack.rec.hdr.size = (uint32_t)n;
		expect_bad(&stack, n);
	}
}

Test(decode, a_user_stack_without_a_known_end_is_bad)
{
	size_t size = make_user_stack(1);

	for (int end = 0; end <= UINT16_MAX; end++) {
		stack.rec.user_end = (uint16_t)end;
		if (end > 0 && end < VP_END_CNT)
			cr_expect(zero(int, decode_exactly(&stack, size)));
		else
			expect_bad(&stack, size);
	}
	cr_expect(eq(int, stack_cnt, VP_END_CNT - 1));
}

/* ---- mappings ------------------------------------------------------------------------------- */

Test(decode, a_name_comes_as_it_is)
{
	size_t size = make_mmap2(VP_MMAP2_F_FROM_WALK | VP_MMAP2_F_DELETED, "/a b\n\xff", 6);

	cr_expect(zero(int, decode_exactly(&made, size)));
	cr_expect(eq(str, last_mmap2.name, "/a b\n\xff"));
	cr_expect(zero(int, memcmp(&last_mmap2.rec, &made.rec, sizeof(made.rec))));
}

static void expect_size_of_name(void)
{
	/* the decoder's own business */
	const uint16_t internal = VP_MMAP2_F_NAME_PARTS | VP_MMAP2_F_NAMELESS;
	uint16_t flags = last_mmap2.rec.hdr.flags;
	size_t padded = (strlen(last_mmap2.name) + 8) & ~(size_t)7;

	cr_expect(eq(sz, last_mmap2.rec.name_bytes, padded));
	cr_expect(eq(sz, last_mmap2.rec.perf.size, sizeof(struct vp_perf_mmap2) + padded));
	cr_expect(eq(sz, last_mmap2.rec.hdr.size, sizeof(struct vp_rec_mmap2) + padded));
	for (size_t i = strlen(last_mmap2.name); i < padded; i++)
		cr_expect(zero(chr, last_mmap2.name[i]));
	cr_expect(eq(u16, flags & (uint16_t)~internal, flags));
}

#define PARTS(flags, text) make_mmap2(VP_MMAP2_F_NAME_PARTS | (flags), text, sizeof(text) - 1)

static void expect_name(size_t size, const char *name)
{
	int before = mmap2_cnt;

	cr_expect(zero(int, decode_exactly(&made, size)));
	cr_assert(eq(int, mmap2_cnt, before + 1));
	cr_expect(eq(str, last_mmap2.name, (char *)name));
	expect_size_of_name();
}

Test(decode, parts_are_put_together_root_first)
{
	expect_name(PARTS(0, "libc.so.6\0lib\0usr"), "/usr/lib/libc.so.6");
	expect_name(PARTS(0, "libc.so.6\0lib\0usr\0"), "/usr/lib/libc.so.6");
	expect_name(PARTS(0, "x"), "/x");
	/* lengths around the padding */
	expect_name(PARTS(0, "1234567"), "/1234567");
	expect_name(PARTS(0, "123456"), "/123456");
	expect_name(PARTS(0, "12345678"), "/12345678");
}

Test(decode, no_parts_at_all_are_an_empty_name)
{
	expect_name(PARTS(0, ""), "");
	expect_name(PARTS(0, "\0\0\0"), "");
}

Test(decode, deleted_files_in_parts_say_so)
{
	expect_name(PARTS(VP_MMAP2_F_DELETED, "memfd:code"), "/memfd:code (deleted)");
	expect_name(PARTS(VP_MMAP2_F_DELETED, "lib\0tmp"), "/tmp/lib (deleted)");
	cr_expect(eq(u32, last_mmap2.rec.hdr.flags, VP_MMAP2_F_DELETED));
}

/* cnt parts of len bytes each. */
static size_t make_long_parts(uint16_t flags, size_t cnt, size_t len)
{
	static char parts[VP_PATH_MAX + 64];

	cr_assert(le(sz, cnt * (len + 1), sizeof(parts)));
	memset(parts, 'a', sizeof(parts));
	for (size_t i = 1; i <= cnt; i++)
		parts[i * (len + 1) - 1] = '\0';
	return make_mmap2(VP_MMAP2_F_NAME_PARTS | flags, parts, cnt * (len + 1) - 1);
}

Test(decode, long_names_in_parts_are_whole)
{
	cr_expect(zero(int, decode_exactly(&made, make_long_parts(0, 40, 99))));
	cr_expect(eq(sz, strlen(last_mmap2.name), 4000));
	expect_size_of_name();
	/* the longest path there is */
	cr_expect(zero(int, decode_exactly(&made, make_long_parts(0, 1, VP_PATH_MAX - 2))));
	cr_expect(eq(sz, strlen(last_mmap2.name), VP_PATH_MAX - 1));
	expect_size_of_name();
	cr_expect(zero(int, decode_exactly(&made, make_long_parts(0, 2047, 1))));
	cr_expect(eq(sz, strlen(last_mmap2.name), 4094));
	expect_size_of_name();
}

Test(decode, names_that_are_too_long_or_were_cut_are_called_so)
{
	expect_name(make_long_parts(0, 1, VP_PATH_MAX), "//toolong");
	expect_name(make_long_parts(0, 1, VP_PATH_MAX - 1), "//toolong");
	expect_name(PARTS(VP_MMAP2_F_NAME_CUT, "leaf\0dir"), "//toolong");
	expect_name(PARTS(VP_MMAP2_F_NAME_CUT | VP_MMAP2_F_DELETED, "leaf\0dir"), "//toolong");
}

Test(decode, deleted_fits_behind_a_long_name_or_is_left_out)
{
	for (size_t len = VP_PATH_MAX - 20; len < VP_PATH_MAX - 1; len++) {
		cr_expect(zero(int,
			       decode_exactly(&made, make_long_parts(VP_MMAP2_F_DELETED, 1, len))));
		cr_expect(lt(sz, strlen(last_mmap2.name), VP_PATH_MAX));
		expect_size_of_name();
	}
}

Test(decode, a_mapping_with_a_broken_name_is_bad)
{
	size_t size = make_mmap2(0, "/name", 5);

	made.name[7] = 'x'; /* not terminated */
	expect_bad(&made, size);

	size = make_mmap2(0, "/name", 5);
	made.rec.name_bytes = 0;
	expect_bad(&made, size);
	made.rec.name_bytes = 16;
	expect_bad(&made, size);
	made.rec.name_bytes = 7;
	made.rec.hdr.size = (uint32_t)size - 1;
	expect_bad(&made, size - 1);

	size = make_mmap2(0, "", 0);
	made.rec.hdr.size = sizeof(made.rec);
	made.rec.name_bytes = 0;
	expect_bad(&made, sizeof(made.rec));
}

Test(decode, a_name_beyond_the_limit_is_bad)
{
	static char big[sizeof(struct vp_rec_mmap2) + 2 * VP_PATH_MAX];

	make_mmap2(0, "/x", 2);
	made.rec.name_bytes = VP_PATH_MAX + 16;
	made.rec.hdr.size = sizeof(made.rec) + VP_PATH_MAX + 16;
	memcpy(big, &made, sizeof(made.rec));
	expect_bad(big, sizeof(made.rec) + VP_PATH_MAX + 16);
}

/* A writer copies perf.size bytes from perf. */
Test(decode, a_body_that_claims_another_size_than_its_name_has_is_bad)
{
	size_t size = make_mmap2(0, "/x", 2);

	made.rec.perf.size += 8;
	expect_bad(&made, size);
	made.rec.perf.size -= 16;
	expect_bad(&made, size);
	made.rec.perf.size = UINT16_MAX;
	expect_bad(&made, size);
}

Test(decode, a_range_that_wraps_around_is_bad)
{
	size_t size = make_mmap2(0, "/x", 2);

	made.rec.perf.addr = UINT64_MAX - 10;
	expect_bad(&made, size);
}

Test(decode, a_mapping_with_an_endless_comm_is_bad)
{
	size_t size = make_mmap2(0, "/x", 2);

	memset(made.rec.comm, 'x', sizeof(made.rec.comm));
	expect_bad(&made, size);
}

Test(decode, each_truncation_of_a_mapping_is_bad)
{
	size_t size = make_mmap2(0, "/usr/lib/libc.so.6", 18);

	for (size_t n = 0; n < size; n++) {
		made.rec.hdr.size = (uint32_t)n;
		expect_bad(&made, n);
	}
}

/* ---- damage --------------------------------------------------------------------------------- */

/* All that a consumer relies on, checked with the consumer's eyes. */
static void expect_sound_mmap2(void)
{
	cr_assert(memchr(last_mmap2.name, '\0', sizeof(last_mmap2.name)) != NULL);
	cr_assert(le(sz, last_mmap2.rec.name_bytes, sizeof(last_mmap2.name)));
	cr_assert(lt(sz, strlen(last_mmap2.name), last_mmap2.rec.name_bytes));
	cr_assert(memchr(last_mmap2.rec.comm, '\0', VP_COMM_LEN) != NULL);
}

static void flip(void *rec, size_t size, int bits)
{
	unsigned char *p = rec;

	for (int i = 0; i < bits; i++)
		p[(size_t)lrand48() % size] ^= (unsigned char)(1U << (lrand48() % 8));
}

Test(decode, flipped_bits_of_mappings_break_nothing)
{
	srand48(2);
	for (int i = 0; i < 60000; i++) {
		size_t size = i % 2 ? PARTS((uint16_t)(lrand48() & 0x1f), "leaf\0dir\0usr")
				    : make_mmap2((uint16_t)(lrand48() & 0x1f), "/usr/lib/x", 10);
		int before = mmap2_cnt;

		/* not the process: its map_files would be looked at */
		flip((char *)&made + sizeof(made.rec.hdr) + sizeof(made.rec.proc),
		     size - sizeof(made.rec.hdr) - sizeof(made.rec.proc), 1 + i % 5);
		if (i % 3 == 0)
			flip(&made, sizeof(made.rec.hdr), 1);
		cr_assert(zero(int, decode_exactly(&made, size)));
		if (mmap2_cnt != before)
			expect_sound_mmap2();
	}
	cr_expect(gt(int, mmap2_cnt, 1000));
	cr_expect(gt(u64, d.bad_cnt, 1000));
}

Test(decode, flipped_bits_of_samples_break_nothing)
{
	srand48(3);
	for (int i = 0; i < 60000; i++) {
		size_t size = make_sample((uint16_t)(i % 5), (uint16_t)(i % 7));

		flip(&sample, size, 1 + i % 5);
		cr_assert(zero(int, decode_exactly(&sample, size)));
	}
	cr_expect(gt(int, sample_cnt, 1000));
	cr_expect(gt(u64, d.bad_cnt, 1000));
}

Test(decode, flipped_bits_of_user_stacks_break_nothing)
{
	srand48(5);
	for (int i = 0; i < 60000; i++) {
		size_t size = make_user_stack((uint16_t)(i % 7));

		flip(&stack, size, 1 + i % 5);
		cr_assert(zero(int, decode_exactly(&stack, size)));
	}
	cr_expect(gt(int, stack_cnt, 1000));
	cr_expect(gt(u64, d.bad_cnt, 1000));
}

Test(decode, noise_is_no_record)
{
	static uint64_t noise[700];

	srand48(4);
	for (int i = 0; i < 60000; i++) {
		size_t size = (size_t)lrand48() % sizeof(noise);
		struct vp_rec_hdr *hdr = (void *)noise;

		for (size_t j = 0; j < 30; j++)
			noise[(size_t)lrand48() % 700] = (uint64_t)mrand48() << 20;
		hdr->size = (uint32_t)size;
		hdr->kind = (uint16_t)(lrand48() % 8);
		cr_assert(zero(int, decode_exactly(noise, size)));
	}
}
