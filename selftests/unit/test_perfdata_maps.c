/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "output/perfdata_comms.h"
#include "output/perfdata_maps.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include <stdio.h>
#include <string.h>

static struct vp_proc_id life(uint32_t tgid, uint32_t exec_id)
{
	return (struct vp_proc_id){.start_ns = 7, .tgid = tgid, .exec_id = exec_id};
}

static void add(struct pd_maps *m, struct pd_proc *p, uint64_t start, uint64_t end,
		const char *name)
{
	struct pd_map map = {
		.start = start, .end = end, .pgoff = start, .ino = 5, .time_ns = start};

	pd_maps_add(m, p, &map, name);
}

/* "start-end@pgoff=name " of every mapping, in hex. */
static const char *shown(const struct pd_proc *p)
{
	static char text[1024];
	size_t len = 0;

	text[0] = 0;
	for (uint32_t i = 0; i < p->cnt; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len, "%lx-%lx@%lx=%s ",
					p->maps[i].start, p->maps[i].end, p->maps[i].pgoff,
					pd_map_name(&p->maps[i]));
	return text;
}

#define SETUP()                                                                                    \
	struct vp_proc_id id = life(42, 1);                                                        \
	struct pd_maps *m = pd_maps_new(1 << 20);                                                  \
	struct pd_proc *p = pd_maps_get(m, &id)

Test(perfdata_maps, are_kept_by_address)
{
	SETUP();
	add(m, p, 0x3000, 0x4000, "c");
	add(m, p, 0x1000, 0x2000, "a");
	add(m, p, 0x2000, 0x3000, "b");
	cr_expect(eq(str, (char *)shown(p), "1000-2000@1000=a 2000-3000@2000=b 3000-4000@3000=c "));
	cr_expect(eq(ptr, pd_proc_at(p, 0x1fff), &p->maps[0]));
	cr_expect(eq(ptr, pd_proc_at(p, 0x2000), &p->maps[1]));
	cr_expect(eq(ptr, pd_proc_at(p, 0xfff), NULL));
	cr_expect(eq(ptr, pd_proc_at(p, 0x4000), NULL));
	cr_expect(pd_proc_overlaps(p, 0x3fff, 0x9000));
	cr_expect(not(pd_proc_overlaps(p, 0x4000, 0x9000)));
	pd_maps_free(m);
}

Test(perfdata_maps, newer_mappings_cut_older_ones)
{
	SETUP();
	add(m, p, 0x1000, 0x9000, "old");
	add(m, p, 0x3000, 0x4000, "mid");
	cr_expect(eq(str, (char *)shown(p),
		     "1000-3000@1000=old 3000-4000@3000=mid 4000-9000@4000=old "));
	add(m, p, 0x2000, 0x5000, "new");
	cr_expect(eq(str, (char *)shown(p),
		     "1000-2000@1000=old 2000-5000@2000=new 5000-9000@5000=old "));
	add(m, p, 0x0, 0x10000, "all");
	cr_expect(eq(str, (char *)shown(p), "0-10000@0=all "));
	pd_maps_free(m);
}

Test(perfdata_maps, the_same_mapping_again_takes_no_room)
{
	SETUP();
	uint64_t bytes;

	add(m, p, 0x1000, 0x2000, "jit");
	bytes = pd_maps_bytes(m);
	for (int i = 0; i < 100000; i++)
		add(m, p, 0x1000, 0x2000, "jit");
	cr_expect(eq(u64, pd_maps_bytes(m), bytes));
	cr_expect(eq(u32, p->cnt, 1));
	pd_maps_free(m);
}

Test(perfdata_maps, empty_and_wrapping_ranges_are_ignored)
{
	SETUP();
	add(m, p, 0x1000, 0x1000, "empty");
	add(m, p, 0x2000, 0x1000, "wrapped");
	cr_expect(eq(u32, p->cnt, 0));
	pd_maps_free(m);
}

Test(perfdata_maps, stay_within_their_bytes_and_count_what_they_forget)
{
	SETUP();
	char name[4096];

	(void)p;
	memset(name, 'x', sizeof(name) - 1);
	for (uint32_t i = 0; i < 5000; i++) {
		id = life(100 + i, 1);
		p = pd_maps_get(m, &id);
		snprintf(name + 100 + i % 3000, 10, "%u", i);
		for (uint64_t a = 0; a < 20; a++)
			add(m, p, a << 12, (a + 1) << 12, name);
		cr_assert(le(u64, pd_maps_bytes(m), 1 << 20));
	}
	cr_expect(gt(u64, pd_maps_dropped(m), 50000));
	cr_expect(ne(ptr, pd_maps_find(m, &id), NULL), "the last one is still there");
	pd_maps_free(m);
}

Test(perfdata_maps, one_process_cannot_take_everything)
{
	SETUP();
	char name[4096];

	memset(name, 'x', sizeof(name) - 1);
	for (uint64_t a = 0; a < 1000; a++) {
		snprintf(name + 4000, 10, "%lu", a);
		add(m, p, a << 12, (a + 1) << 12, name);
	}
	cr_expect(le(u64, pd_maps_bytes(m), 1 << 20));
	cr_expect(gt(u64, pd_maps_dropped(m), 700));
	cr_expect(gt(u32, p->cnt, 200));
	pd_maps_free(m);
}

Test(perfdata_maps, exited_processes_go_first_and_cost_nothing)
{
	SETUP();

	add(m, p, 0x1000, 0x2000, "kept");
	for (uint32_t i = 0; i < 50000; i++) {
		struct vp_proc_id child = life(100 + i, 1);

		add(m, pd_maps_get(m, &child), 0x1000, 0x2000, "kept");
		pd_maps_exit(m, &child);
		pd_maps_exit(m, &child);
	}
	cr_expect(zero(u64, pd_maps_dropped(m)));
	cr_expect(eq(ptr, pd_maps_find(m, &id), p));
	cr_expect(lt(u64, pd_maps_bytes(m), 1 << 20));
	pd_maps_free(m);
}

Test(perfdata_maps, exec_forgets_other_lives_only)
{
	SETUP();
	struct vp_proc_id next = life(42, 2), stranger = life(42 + 16384, 1);

	add(m, p, 0x1000, 0x2000, "old");
	add(m, pd_maps_get(m, &next), 0x1000, 0x2000, "new");
	add(m, pd_maps_get(m, &stranger), 0x1000, 0x2000, "same bucket");
	cr_expect(pd_maps_other_life(m, &next));
	cr_expect(not(pd_maps_other_life(m, &stranger)));
	pd_maps_exec(m, &next);
	cr_expect(eq(ptr, pd_maps_find(m, &id), NULL));
	cr_expect(ne(ptr, pd_maps_find(m, &next), NULL));
	cr_expect(ne(ptr, pd_maps_find(m, &stranger), NULL));
	cr_expect(zero(u64, pd_maps_dropped(m)));
	pd_maps_free(m);
}

Test(perfdata_maps, a_pinned_process_is_not_forgotten)
{
	SETUP();

	add(m, p, 0x1000, 0x2000, "pinned");
	p->pinned = true;
	for (uint32_t i = 0; i < 20000; i++) {
		id = life(100 + i, 1);
		add(m, pd_maps_get(m, &id), 0x1000, 0x2000, "other");
	}
	cr_expect(gt(u64, pd_maps_dropped(m), 0));
	id = life(42, 1);
	cr_expect(eq(ptr, pd_maps_find(m, &id), p));
	pd_maps_free(m);
}

Test(perfdata_comms, remember_who_said_what)
{
	struct pd_comms *c = pd_comms_new();

	cr_expect(eq(ptr, (void *)pd_comms_find(c, 1, 7), NULL));
	pd_comms_set(c, 1, 7, 100, "a comm that is too long");
	cr_expect(eq(str, (char *)pd_comms_find(c, 1, 7)->comm, "a comm that is "));
	cr_expect(eq(ptr, (void *)pd_comms_find(c, 1, 8), NULL), "the tid was reused");
	pd_comms_forget(c, 1);
	cr_expect(eq(ptr, (void *)pd_comms_find(c, 1, 7), NULL));
	pd_comms_free(c);
}

Test(perfdata_comms, a_full_set_gives_one_place_up)
{
	struct pd_comms *c = pd_comms_new();
	int kept = 0;

	for (uint32_t i = 0; i < 9; i++)
		pd_comms_set(c, 1 + i * 8192, 7, 100, "same set");
	for (uint32_t i = 0; i < 9; i++)
		kept += pd_comms_find(c, 1 + i * 8192, 7) != NULL;
	cr_expect(eq(int, kept, 8));
	pd_comms_free(c);
}
