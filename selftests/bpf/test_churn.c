/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The property: each frame of each sample resolves to what was mapped at that moment, whatever the
 * process does to its mappings. The workload churner does it all, in an order that a seed
 * decides, and logs it. VP_CHURN_SEED=N adds a seed.
 */
#include "churn_oracle.h"
#include "expect.h"
#include "recorder.h"
#include "target.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernel/btf_mentions.h"

static struct recorder r;
static char dir[] = "/tmp/vmaprof-churn.XXXXXX";

static void tear_down(void)
{
	char command[64];

	recorder_close(&r);
	if (strchr(dir, 'X'))
		return;
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	cr_expect(zero(int, system(command)));
}

TestSuite(churn, .fini = tear_down, .timeout = 120);

#define CHURN_HZ 3999
#define CHURN_MS "1200"

/* A stack is made within this time after its sample's, even if the machine takes our CPU away. */
#define MAKING_NS 3000000

/* ---- what is counted ------------------------------------------------------------------------- */

static struct tally {
	const char *seed;
	struct churn_oracle log;
	uint32_t root, base_execs;
	size_t first;	/* item of this seed's records */
	size_t frames;	/* of which the log says something */
	size_t several; /* stacks with three mappings or more of those */
	size_t wrong, busy, busy_unlocked, stitched, stitched_wrong, duplicates, inherited;
	size_t reports, again; /* of memory, which may be pushed out of what is known: vp_far */
	char text[8192];       /* the first that is wrong */
} t;

/* The churner's number of a file by the kernel side's, or CHURN_FILES. */
static uint32_t churn_file_of(const struct record_log *l, uint32_t file_id)
{
	for (size_t i = 0; i < l->cnt; i++) {
		const struct log_item *it = &l->item[i];

		if (it->hdr.kind != VP_REC_MMAP2 || it->mmap2.file_id != file_id)
			continue;
		for (uint32_t k = 0; k < t.log.log->file_cnt; k++) {
			const struct churn_file *f = &t.log.log->file[k];

			if (f->ino == it->mmap2.perf.ino && f->maj == it->mmap2.perf.maj &&
			    f->min == it->mmap2.perf.min)
				return k;
		}
		break;
	}
	return CHURN_FILES;
}

/* One element a file_id, + 1; 0: not looked for yet. */
static uint32_t known_files[VP_MAX_USER_FRAMES];

static uint32_t churn_file(const struct record_log *l, uint32_t file_id)
{
	uint32_t i = file_id % VP_MAX_USER_FRAMES;

	if (file_id >= VP_MAX_USER_FRAMES)
		return churn_file_of(l, file_id);
	if (!known_files[i])
		known_files[i] = churn_file_of(l, file_id) + 1;
	return known_files[i] - 1;
}

static uint32_t mm_of(const struct vp_proc_id *id)
{
	return churn_oracle_mm(&t.log, id->tgid, id->exec_id - t.base_execs);
}

/* ---- stacks ---------------------------------------------------------------------------------- */

struct stack {
	const struct log_item *it;
	const struct vp_proc_id *proc;
	const struct vp_frame *frame;
	uint32_t cnt, mm;
	struct churn_moment when;
};

/*
 * Kernels before 6.4 do not count changes of an mm: there a mapping that was replaced by one of its
 * size is noticed when what is known of it is old (VP_TRUST_SHIFT in kern/core_fixes.bpf.h).
 */
static uint64_t trust_ns(void)
{
	static int counts = -1;

	if (counts < 0)
		counts = vp_btf_mentions("mm_lock_seq");
	return counts ? 0 : 2ULL << 26;
}

/*
 * Taken in the interrupt, right after the sample's time; or in the task, before the record's
 * time and after that of the first sample that waited.
 */
static bool as_stack(const struct log_item *it, struct stack *s)
{
	if (it->hdr.kind == VP_REC_SAMPLE && it->sample.user_cnt) {
		*s = (struct stack){
			it,
			&it->sample.proc,
			it->user,
			it->sample.user_cnt,
			0,
			{it->hdr.ts_ns, it->hdr.ts_ns + MAKING_NS, it->hdr.ts_ns, it->sample.tid, trust_ns()}};
	} else if (it->hdr.kind == VP_REC_USER_STACK) {
		*s = (struct stack){
			it,
			&it->user_stack.proc,
			it->user,
			it->user_stack.user_cnt,
			0,
			{it->user_stack.cookie, it->hdr.ts_ns, it->hdr.ts_ns, it->user_stack.tid, trust_ns()}};
	} else {
		return false;
	}
	s->mm = mm_of(s->proc);
	return s->mm != 0;
}

static bool agrees(const struct record_log *l, const struct vp_frame *f, uint32_t verdict,
		   const struct churn_maybe *maybe, uint32_t file_id, uint64_t offset)
{
	for (uint32_t i = 0; i < maybe->cnt; i++) {
		switch (maybe->is[i].state) {
		case CHURN_FILE:
			/* the caller's pc may be the first byte behind */
			if (verdict == VP_VERDICT_FILE &&
			    maybe->is[i].offset + (f->pc - log_frame_at(f)) == offset &&
			    maybe->is[i].file == churn_file(l, file_id))
				return true;
			break;
		case CHURN_ANON:
			if (verdict == VP_VERDICT_ANON_EXEC)
				return true;
			break;
		default:
			if (verdict == VP_VERDICT_NO_VMA || verdict == VP_VERDICT_NOT_EXEC)
				return true;
		}
	}
	return false;
}

/*
 * Nothing, says the log. But what runs is mapped: the loader maps a library, and runs code of it, before
 * the churner knows where.
 */
static bool is_none(const struct churn_maybe *maybe)
{
	for (uint32_t i = 0; i < maybe->cnt; i++)
		if (maybe->is[i].state != CHURN_NONE)
			return false;
	return true;
}

static size_t say_maybe(const struct churn_maybe *maybe, char *text, size_t size)
{
	size_t n = 0;

	for (uint32_t i = 0; i < maybe->cnt && n < size; i++) {
		if (maybe->is[i].state == CHURN_FILE)
			n += (size_t)snprintf(text + n, size - n, " file %u+%" PRIx64,
					      maybe->is[i].file, maybe->is[i].offset);
		else
			n += (size_t)snprintf(text + n, size - n, " %s",
					      maybe->is[i].state == CHURN_ANON ? "anon" : "none");
	}
	return n;
}

static void note_wrong(const struct record_log *l, const struct stack *s, uint32_t i,
		       const struct churn_maybe *maybe)
{
	const struct vp_frame *f = &s->frame[i];
	uint64_t at = log_frame_at(f);
	char wanted[512] = "", log[6000];

	if (t.wrong++)
		return;
	say_maybe(maybe, wanted, sizeof(wanted));
	churn_oracle_tell(&t.log, s->mm, at, &s->when, log, sizeof(log));
	snprintf(t.text, sizeof(t.text),
		 "seed %s: record %td of kind %u, %u/%u exec %u, frame %u of %u: pc %" PRIx64
		 " is verdict %u file %u (churner's %u) offset %" PRIx64 " flags %x, wanted:%s\n%s",
		 t.seed, s->it - l->item, s->it->hdr.kind, s->proc->tgid, s->when.tid,
		 s->proc->exec_id, i, s->cnt, (uint64_t)f->pc, f->verdict, f->file_id,
		 churn_file(l, f->file_id), (uint64_t)f->offset, f->flags, wanted, log);
}

/*
 * What userspace can make of it without guessing: all records of that life that hold the address
 * say the same.
 */
static void stitch(const struct record_log *l, const struct stack *s, const struct vp_frame *f,
		   const struct churn_maybe *maybe)
{
	const struct vp_rec_mmap2 *last = NULL;
	uint64_t at = log_frame_at(f);

	for (size_t i = t.first; i < l->cnt; i++) {
		const struct vp_rec_mmap2 *m = &l->item[i].mmap2;

		if (m->hdr.kind != VP_REC_MMAP2 || memcmp(&m->proc, s->proc, sizeof(m->proc)) ||
		    at < m->perf.addr || at >= m->perf.addr + m->perf.len)
			continue;
		if (last && (last->file_id != m->file_id || last->verdict != m->verdict ||
			     last->perf.addr - last->perf.pgoff != m->perf.addr - m->perf.pgoff))
			return;
		last = m;
	}
	if (!last)
		return;
	t.stitched++;
	t.stitched_wrong += !agrees(l, f, last->verdict, maybe, last->file_id,
				    f->pc - last->perf.addr + last->perf.pgoff);
}

static void check_stack(const struct record_log *l, const struct stack *s)
{
	bool execs = churn_oracle_execs(&t.log, s->proc->tgid, s->proc->exec_id - t.base_execs,
					s->when.hi_ns);
	uint64_t last_page = 0;
	uint32_t places = 0;

	for (uint32_t i = 0; i < s->cnt; i++) {
		const struct vp_frame *f = &s->frame[i];
		struct churn_maybe maybe;

		churn_oracle_look(&t.log, s->mm, log_frame_at(f), &s->when, &maybe);
		if (!maybe.cnt || maybe.cnt == CHURN_MAYBE_MAX)
			continue;
		if (i == 0 && f->verdict == VP_VERDICT_FILE && is_none(&maybe))
			continue;
		t.frames++;
		places += last_page != f->pc / CHURN_PAGE;
		last_page = f->pc / CHURN_PAGE;
		if (execs)
			maybe.is[maybe.cnt++].state = CHURN_NONE;
		if (f->verdict == VP_VERDICT_BUSY) {
			t.busy++;
			t.busy_unlocked += !churn_oracle_is_locked(&t.log, s->mm, &s->when);
			stitch(l, s, f, &maybe);
		} else if (!agrees(l, f, f->verdict, &maybe, f->file_id, f->offset)) {
			note_wrong(l, s, i, &maybe);
		}
	}
	t.several += places >= 3;
}

/* ---- records --------------------------------------------------------------------------------- */

struct report {
	const struct vp_rec_mmap2 *m;
	struct vp_proc_id life;
};

static bool is_same_mapping(const struct vp_rec_mmap2 *a, const struct vp_rec_mmap2 *b)
{
	return a->perf.addr == b->perf.addr && a->perf.len == b->perf.len &&
	       a->perf.pgoff == b->perf.pgoff && a->file_id == b->file_id &&
	       a->verdict == b->verdict;
}

static bool overlap(const struct vp_rec_mmap2 *a, const struct vp_rec_mmap2 *b)
{
	return a->perf.addr < b->perf.addr + b->perf.len &&
	       b->perf.addr < a->perf.addr + a->perf.len;
}

/* Was the newest report of that life that overlaps m the same, and is it still true since? */
static void check_report(const struct report *reports, size_t cnt, const struct vp_rec_mmap2 *m)
{
	for (size_t i = cnt; i-- > 0;) {
		const struct vp_rec_mmap2 *old = reports[i].m;

		if (memcmp(&reports[i].life, &m->proc, sizeof(m->proc)) || !overlap(old, m))
			continue;
		if (!is_same_mapping(old, m) ||
		    churn_oracle_changed(&t.log, mm_of(&m->proc), m->perf.addr,
					 m->perf.addr + m->perf.len, old->hdr.ts_ns, m->hdr.ts_ns))
			return;
		/* what a child has of its parent, it may say once more */
		if (memcmp(&old->proc, &m->proc, sizeof(m->proc))) {
			t.inherited++;
			return;
		}
		if (m->verdict == VP_VERDICT_ANON_EXEC) {
			t.again++;
			return;
		}
		if (!t.duplicates++ && !t.wrong)
			snprintf(t.text, sizeof(t.text),
				 "seed %s: %u exec %u: %" PRIx64 "+%" PRIx64 " file %u verdict %u "
				 "reported at %" PRIu64 " and at %" PRIu64,
				 t.seed, m->proc.tgid, m->proc.exec_id, (uint64_t)m->perf.addr,
				 (uint64_t)m->perf.len, m->file_id, m->verdict,
				 (uint64_t)old->hdr.ts_ns, (uint64_t)m->hdr.ts_ns);
		return;
	}
}

struct reports {
	struct report *report;
	size_t cnt, cap;
};

static void add_report(struct reports *rs, const struct vp_rec_mmap2 *m,
		       const struct vp_proc_id *life)
{
	if (rs->cnt == rs->cap) {
		rs->cap = 2 * rs->cap + 1024;
		rs->report = reallocarray(rs->report, rs->cap, sizeof(*rs->report));
		cr_assert(rs->report != NULL);
	}
	rs->report[rs->cnt++] = (struct report){m, *life};
}

/* Each mapping is reported once, unless it changed since. */
static void check_reports(const struct record_log *l)
{
	struct reports rs = {0};

	for (size_t i = t.first; i < l->cnt; i++) {
		const struct log_item *it = &l->item[i];

		if (it->hdr.kind == VP_REC_MMAP2) {
			t.reports++;
			check_report(rs.report, rs.cnt, &it->mmap2);
			add_report(&rs, &it->mmap2, &it->mmap2.proc);
		}
		if (it->hdr.kind != VP_REC_INHERIT)
			continue;
		for (size_t j = 0, n = rs.cnt; j < n; j++) {
			if (!memcmp(&rs.report[j].life, &it->inherit.from,
				    sizeof(it->inherit.from)))
				add_report(&rs, rs.report[j].m, &it->inherit.proc);
		}
	}
	free(rs.report);
}

/* ---- runs ------------------------------------------------------------------------------------ */

static char log_path[64], seed_dir[64];

static const char *workload(const char *name)
{
	static char path[4096];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 64);

	cr_assert(gt(int, (int)n, 0));
	path[n] = '\0';
	snprintf(strrchr(path, '/'), 64, "/workloads/%s", name);
	return path;
}

struct command {
	const char *path, *seed;
};

static void run_churner(void *arg)
{
	const struct command *c = arg;

	target_tell(0);
	target_await();
	execl(c->path, "churner", log_path, seed_dir, c->seed, CHURN_MS, (char *)NULL);
}

/* Whether all that was sampled is in the log. User stacks that were lost are not told apart. */
static bool has_read_all(void *arg)
{
	struct recorder *rec = arg;

	if (vp_session_is_deferred(rec->s) && !recorder_counter(rec, VP_CNT_LOST_USER_STACK))
		return recorder_has_read_all(rec);
	return record_log_samples(&rec->raw) >= recorder_counter(rec, VP_CNT_SAMPLES);
}

static uint32_t execs_of(const struct record_log *l, uint32_t tgid)
{
	for (size_t i = t.first; i < l->cnt; i++) {
		const struct log_item *it = &l->item[i];

		if (it->hdr.kind == VP_REC_EXEC && it->exec.proc.tgid == tgid)
			return it->exec.proc.exec_id;
	}
	cr_assert(false, "no exec of %u", tgid);
	return 0;
}

static void check_seed(void)
{
	const struct record_log *l = &r.raw;
	struct stack s;

	t.base_execs = execs_of(l, t.root);
	for (size_t i = t.first; i < l->cnt; i++) {
		if (as_stack(&l->item[i], &s))
			check_stack(l, &s);
	}
	check_reports(l);
}

static void churn_with(const char *seed)
{
	struct command c = {workload("churner"), seed};
	struct target target;
	int status;

	snprintf(seed_dir, sizeof(seed_dir), "%s/%s", dir, seed);
	snprintf(log_path, sizeof(log_path), "%s/%s.log", dir, seed);
	cr_assert(zero(int, mkdir(seed_dir, 0700)));
	cr_assert(zero(int, churn_log_create(log_path)));
	t.seed = seed;
	target_start(&target, run_churner, &c);
	target_hear(&target);
	recorder_add(&r, target.pid, VP_TARGET_F_INHERIT);
	t.root = (uint32_t)target.pid;
	target_say(&target, 0);
	status = target_wait(&target);
	cr_assert(zero(int, status), "seed %s: the churner ended with status %x", seed, status);
	cr_assert(wait_until(has_read_all, &r, 20000));
	cr_assert(zero(int, churn_oracle_open(&t.log, log_path)));
	pthread_mutex_lock(&r.raw.lock);
	check_seed();
	t.first = r.raw.cnt;
	pthread_mutex_unlock(&r.raw.lock);
	churn_oracle_close(&t.log);
	memset(known_files, 0, sizeof(known_files));
}

static void say_tally(void)
{
	fprintf(stderr,
		"churn: %zu frames, %zu stacks of several mappings, %zu wrong, %zu busy "
		"(%zu while nobody changed mappings, %zu stitched, %zu of them wrong), %zu "
		"duplicates, %zu of a parent's, %zu of memory; full %" PRIu64 " table busy %" PRIu64
		" find busy %" PRIu64 "\n",
		t.frames, t.several, t.wrong, t.busy, t.busy_unlocked, t.stitched, t.stitched_wrong,
		t.duplicates, t.inherited, t.again, recorder_counter(&r, VP_CNT_XMAP_FULL),
		recorder_counter(&r, VP_CNT_TABLE_BUSY), recorder_counter(&r, VP_CNT_FIND_BUSY));
}

static void start(enum vp_unwind_mode mode, uint32_t call_graph, uint64_t ring_bytes)
{
	r.mode = mode;
	r.call_graph = call_graph;
	r.freq_hz = CHURN_HZ;
	r.keep_raw = true;
	cr_assert(mkdtemp(dir) != NULL);
	recorder_open(&r, VP_FILTER_TGID, ring_bytes);
	recorder_walk(&r, getpid());
	recorder_attach(&r);
}

#define FRAMES_MIN  2000 /* of them, and of those that are in reported mappings */
#define SEVERAL_MIN 200
#define MORE_SEEDS  20

/* A churner goes on for a time; where little fits into that, more follow until there is twice enough. */
static void churn_until_enough(void)
{
	static char seed[8];

	for (int i = 0;
	     i < MORE_SEEDS && (t.frames < 2 * FRAMES_MIN || t.several < 2 * SEVERAL_MIN); i++) {
		snprintf(seed, sizeof(seed), "%d", 101 + i);
		churn_with(seed);
	}
}

static void each_frame_is_what_was_mapped(enum vp_unwind_mode mode, uint32_t call_graph)
{
	static const char *const seeds[] = {"11", "23", "47"};
	const char *more = getenv("VP_CHURN_SEED");
	uint64_t slack;

	start(mode, call_graph, 0);
	for (size_t i = 0; i < sizeof(seeds) / sizeof(seeds[0]); i++)
		churn_with(seeds[i]);
	if (more)
		churn_with(more);
	churn_until_enough();
	recorder_stop(&r);
	say_tally();
	cr_expect(zero(sz, t.wrong), "%s", t.text);
	/* what could not be said is little, but for when the process itself keeps us from it */
	cr_expect(lt(sz, t.busy_unlocked * 100, t.frames));
	cr_expect(lt(sz, t.busy * 10, t.frames));
	/* Emulated, on one CPU, one or two more than that were seen, and are not explained yet. */
	slack = test_patience() > 1 ? 1 + t.frames / 4000 : 0;
	cr_expect(le(u64, t.duplicates,
		     recorder_counter(&r, VP_CNT_XMAP_FULL) +
			     recorder_counter(&r, VP_CNT_TABLE_BUSY) + slack),
		  "%s", t.text);
	cr_expect(lt(sz, t.again * 50, t.reports));
	cr_expect(ge(sz, t.frames, FRAMES_MIN));
	cr_expect(ge(sz, t.several, SEVERAL_MIN));
	cr_expect(zero(u64, recorder_counter(&r, VP_CNT_LOST_SAMPLE)));
	expect_all_announced(&r, FRAMES_MIN);
}

/* What is lost is counted, and what comes all the same is as right as ever. */
static void a_ring_that_is_full_makes_no_frame_wrong(enum vp_unwind_mode mode)
{
	char text[512];
	size_t frames, bad;

	start(mode, VP_CALL_GRAPH_FP, 8192);
	churn_with("5");
	recorder_stop(&r);
	say_tally();
	cr_expect(zero(sz, t.wrong), "%s", t.text);
	cr_expect(gt(u64, recorder_counter(&r, VP_CNT_LOST_SAMPLE), 0));
	cr_expect(gt(u64, recorder_counter(&r, VP_CNT_LOST_MMAP2), 0));
	cr_expect(eq(u64, record_log_count(&r.log, VP_REC_SAMPLE),
		     recorder_counter(&r, VP_CNT_SAMPLES)));
	bad = record_log_unannounced(&r.log, text, sizeof(text), &frames);
	cr_expect(zero(sz, bad), "of %zu: %s", frames, text);
	cr_expect(ge(sz, frames, 100));
}

Test(churn, each_frame_is_what_was_mapped_inline)
{
	each_frame_is_what_was_mapped(VP_UNWIND_INLINE, VP_CALL_GRAPH_FP);
}

Test(churn, each_frame_is_what_was_mapped_inline_by_rows)
{
	each_frame_is_what_was_mapped(VP_UNWIND_INLINE, VP_CALL_GRAPH_AUTO);
}

Test(churn, each_frame_is_what_was_mapped_deferred)
{
	recorder_defer(&r);
	each_frame_is_what_was_mapped(VP_UNWIND_DEFERRED, VP_CALL_GRAPH_FP);
}

Test(churn, each_frame_is_what_was_mapped_deferred_by_rows)
{
	recorder_defer(&r);
	each_frame_is_what_was_mapped(VP_UNWIND_DEFERRED, VP_CALL_GRAPH_AUTO);
}

Test(churn, a_ring_that_is_full_makes_no_frame_wrong_inline)
{
	a_ring_that_is_full_makes_no_frame_wrong(VP_UNWIND_INLINE);
}

Test(churn, a_ring_that_is_full_makes_no_frame_wrong_deferred)
{
	recorder_defer(&r);
	a_ring_that_is_full_makes_no_frame_wrong(VP_UNWIND_DEFERRED);
}
