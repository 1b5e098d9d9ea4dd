/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Loading several objects: all of the required ones or none, and who is to blame. */
#include "proc_life.h"
#include "target.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include <bpf/bpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernel/loader.h"
#include "kernel/pidns.h"
#include "kernel/shared_maps.h"

#include "find.skel.h"
#include "sampler.skel.h"
#include "synth.skel.h"
#include "track.skel.h"

enum { FIND, TRACK, SYNTH, SAMPLER, UNIT_CNT };

static struct vp_shared_maps maps;
static struct find *find;
static struct track *track;
static struct synth *synth;
static struct sampler *sampler;
static struct vp_load_unit units[UNIT_CNT];

static void open_units(void)
{
	struct vp_err e = {""};

	cr_assert(zero(int, vp_shared_maps_create(&maps, 1 << 16, 64, &e)), "%s", e.text);
	find = find__open();
	track = track__open();
	synth = synth__open();
	sampler = sampler__open();
	cr_assert(find && track && synth && sampler);
	units[FIND] = (struct vp_load_unit){.name = "find", .skeleton = find->skeleton};
	units[TRACK] = (struct vp_load_unit){.name = "track", .skeleton = track->skeleton};
	units[SYNTH] = (struct vp_load_unit){.name = "synth", .skeleton = synth->skeleton};
	units[SAMPLER] = (struct vp_load_unit){.name = "sampler", .skeleton = sampler->skeleton};
	for (int i = 0; i < UNIT_CNT; i++)
		cr_assert(zero(int, vp_shared_maps_reuse(&maps, *units[i].skeleton->obj, NULL)));
}

static void close_units(void)
{
	vp_load_units_free(units, UNIT_CNT);
	find__destroy(find);
	track__destroy(track);
	synth__destroy(synth);
	sampler__destroy(sampler);
	vp_shared_maps_destroy(&maps);
}

static void set_up(void)
{
	vp_loader_capture_messages(false);
}

TestSuite(loader, .init = set_up);

/*
 * Moves between registers with an offset: no relocation touches them, every verifier refuses
 * them. All, because some stand in branches that constants make dead.
 */
static void spoil(struct bpf_program *prog)
{
	struct bpf_insn *insn = (struct bpf_insn *)bpf_program__insns(prog);
	size_t spoilt = 0;

	for (size_t i = 0; i < bpf_program__insn_cnt(prog); i++) {
		if (insn[i].code == (BPF_ALU64 | BPF_MOV | BPF_X)) {
			insn[i].off = 7;
			spoilt++;
		}
	}
	cr_assert(gt(sz, spoilt, 0));
}

static char *report_of_units(void)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	cr_assert(f != NULL);
	vp_load_report(f, units, UNIT_CNT);
	fclose(f);
	return text;
}

static size_t count_lines(const char *text)
{
	size_t n = 0;

	for (; *text; text++)
		n += *text == '\n';
	return n;
}

Test(loader, all_units_load)
{
	struct vp_err e = {""};

	open_units();
	cr_assert(zero(int, vp_load(units, UNIT_CNT, false, &e)), "%s", e.text);
	for (int i = 0; i < UNIT_CNT; i++) {
		cr_expect(zero(int, units[i].err));
		cr_expect(zero(ptr, units[i].log));
		cr_expect(gt(u64, units[i].load_ns, 0));
	}
	cr_expect(ge(int, bpf_program__fd(sampler->progs.vp_sample), 0));
	close_units();
}

Test(loader, a_refused_unit_takes_all_with_it_and_the_first_in_order_is_named)
{
	struct vp_err e = {""};
	char *report, *synth_line;
	int err;

	open_units();
	/* the costliest fails, too, but comes last in order */
	spoil(sampler->progs.vp_sample);
	spoil(synth->progs.vp_walk);
	err = vp_load(units, UNIT_CNT, false, &e);
	cr_expect(eq(int, err, -EINVAL), "%s", strerror(-err));
	cr_expect(strstr(e.text, "synth") != NULL, "%s", e.text);
	cr_expect(strstr(e.text, "sampler") == NULL, "%s", e.text);
	for (int i = 0; i < UNIT_CNT; i++)
		cr_expect(zero(ptr, *units[i].skeleton->obj), "%s is still open", units[i].name);

	report = report_of_units();
	synth_line = strstr(report, "synth: Invalid argument\n");
	cr_expect(eq(ptr, synth_line, report), "%s", report);
	/* its log whole: libbpf's words and the verifier's reason */
	cr_expect(strstr(report, "reserved fields") != NULL, "%s", report);
	cr_expect(gt(sz, count_lines(report), 5));
	/* the other: a line, the last one */
	cr_expect(strstr(report, "\nsampler: Invalid argument\n") != NULL, "%s", report);
	cr_expect(eq(str, report + strlen(report) - strlen("sampler: Invalid argument\n"),
		     "sampler: Invalid argument\n"));
	cr_expect(strstr(report, "vp_sample") == NULL);
	free(report);
	close_units();
}

Test(loader, a_map_that_the_kernel_refuses_is_a_failure_like_any)
{
	struct vp_err e = {""};
	char *report;

	open_units();
	cr_assert(zero(int, bpf_map__set_value_size(synth->maps.walk_seen, 1U << 31)));
	cr_expect(lt(int, vp_load(units, UNIT_CNT, false, &e), 0));
	cr_expect(strstr(e.text, "synth") != NULL, "%s", e.text);
	for (int i = 0; i < UNIT_CNT; i++)
		cr_expect(zero(ptr, *units[i].skeleton->obj));
	report = report_of_units();
	cr_expect(strstr(report, "walk_seen") != NULL, "%s", report);
	free(report);
	close_units();
}

Test(loader, an_optional_unit_that_is_refused_leaves_the_others)
{
	struct vp_err e = {""};

	open_units();
	units[TRACK].optional = true;
	spoil(track->progs.vp_fork);
	cr_assert(zero(int, vp_load(units, UNIT_CNT, false, &e)), "%s", e.text);
	cr_expect(eq(int, units[TRACK].err, -EINVAL));
	cr_assert(units[TRACK].log != NULL);
	cr_expect(strstr(units[TRACK].log, "reserved fields") != NULL);
	for (int i = 0; i < UNIT_CNT; i++) {
		if (i != TRACK)
			cr_expect(zero(int, units[i].err));
	}
	cr_expect(ge(int, bpf_program__fd(sampler->progs.vp_sample), 0));
	cr_expect(ge(int, bpf_program__fd(find->progs.vp_find_all), 0));
	cr_expect(ge(int, bpf_program__fd(synth->progs.vp_walk), 0));
	close_units();
}

/* What differs from run to run: the verifier's times, and where maps lie. */
static void forget(char *text, const char *what, const char *until)
{
	for (char *c = strstr(text, what); c; c = strstr(c, what))
		memset(c, '#', strcspn(c, until));
}

static char *fail_and_report(bool sequential, struct vp_err *e)
{
	char *report;

	open_units();
	spoil(sampler->progs.vp_sample);
	spoil(synth->progs.vp_walk);
	cr_expect(eq(int, vp_load(units, UNIT_CNT, sequential, e), -EINVAL));
	report = report_of_units();
	close_units();
	forget(report, "verification time", "\n");
	forget(report, "0xffff", " \n");
	return report;
}

Test(loader, one_after_the_other_gives_the_same_as_at_once)
{
	struct vp_err at_once = {""}, in_turn = {""};
	char *a = fail_and_report(false, &at_once), *b = fail_and_report(true, &in_turn);

	cr_expect(eq(str, at_once.text, in_turn.text));
	cr_expect(eq(str, a, b));
	free(a);
	free(b);

	open_units();
	cr_expect(zero(int, vp_load(units, UNIT_CNT, true, &in_turn)));
	close_units();
}

/* ---- leaks ---------------------------------------------------------------------------------- */

#define IDS_MAX 16384

struct ids {
	uint32_t id[IDS_MAX];
	size_t cnt;
};

typedef int (*next_id)(uint32_t, uint32_t *);

static void get_ids(struct ids *s, next_id next)
{
	uint32_t id = 0;

	s->cnt = 0;
	while (s->cnt < IDS_MAX && !next(id, &id))
		s->id[s->cnt++] = id;
}

static bool has_id(const struct ids *s, uint32_t id)
{
	for (size_t i = 0; i < s->cnt; i++) {
		if (s->id[i] == id)
			return true;
	}
	return false;
}

/* Ids that came into being meanwhile and are not gone yet: ours, or a passing program's. */
struct newcomers {
	struct ids before, after;
	next_id next;
};

static bool are_gone(void *arg)
{
	struct newcomers *n = arg;
	static struct ids now;

	get_ids(&now, n->next);
	for (size_t i = 0; i < n->after.cnt; i++) {
		if (!has_id(&n->before, n->after.id[i]) && has_id(&now, n->after.id[i]))
			return false;
	}
	return true;
}

static void load_in_vain(void)
{
	struct vp_err e;

	open_units();
	spoil(sampler->progs.vp_sample);
	cr_assert(eq(int, vp_load(units, UNIT_CNT, false, &e), -EINVAL));
	vp_load_units_free(units, UNIT_CNT);
}

Test(loader, a_failure_leaves_nothing_behind)
{
	static struct newcomers progs = {.next = bpf_prog_get_next_id},
				maps_ = {.next = bpf_map_get_next_id};
	size_t fds;

	/* what libbpf keeps for good (BTF of the kernel, …) is open after the first time */
	load_in_vain();
	close_units();
	fds = open_fds();
	get_ids(&progs.before, progs.next);
	get_ids(&maps_.before, maps_.next);
	load_in_vain();
	/* programs: at once. Maps: those that are shared live until we close them. */
	get_ids(&progs.after, progs.next);
	get_ids(&maps_.after, maps_.next);
	cr_expect(gt(sz, maps_.after.cnt, 5));
	cr_expect(wait_until(are_gone, &progs, 20000), "programs are left");
	close_units();
	cr_expect(wait_until(are_gone, &maps_, 20000), "maps are left");
	cr_expect(eq(sz, open_fds(), fds));
}

Test(loader, success_and_closing_leave_nothing_behind)
{
	struct vp_err e;
	size_t fds = 0;

	for (int round = 0; round < 2; round++) {
		open_units();
		cr_assert(zero(int, vp_load(units, UNIT_CNT, false, &e)));
		close_units();
		if (round == 0)
			fds = open_fds();
	}
	cr_expect(eq(sz, open_fds(), fds));
}
