// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * From the ring's records to perf's, and what must be said around them so that perf, which
 * knows nothing but the file, comes to the same names and mappings.
 */
#include "perfdata_int.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

/* ---- comms ---- */

/* perf calls the idle task so on every CPU; the kernel's swapper/N would change at each sample. */
static const char *comm_of(uint32_t tid, const char *comm)
{
	return tid ? comm : "swapper";
}

static int write_comm(struct vp_perfdata *w, const struct pd_origin *o, uint64_t start_ns,
		      const char *comm, uint16_t misc)
{
	const struct pd_comm *t;

	pd_comms_set(w->comms, o->tid, start_ns, o->time_ns, comm_of(o->tid, comm));
	t = pd_comms_find(w->comms, o->tid, start_ns);
	pd_begin(w, PERF_RECORD_COMM, misc);
	pd_put_u32(w, o->tgid);
	pd_put_u32(w, o->tid);
	pd_put_bytes(w, t->comm, sizeof(t->comm));
	return pd_end_with_trailer(w, o);
}

/*
 * A process whose leader was not heard of gets a name from whichever of its threads comes
 * first; perf shows ":TGID" otherwise. The leader's own first sample corrects it.
 */
static int name_leader(struct vp_perfdata *w, const struct vp_proc_id *proc, const char *comm,
		       const struct pd_origin *from)
{
	struct pd_origin o = *from;

	if (pd_comms_find(w->comms, proc->tgid, proc->start_ns))
		return 0;
	o.tid = proc->tgid;
	return write_comm(w, &o, proc->start_ns, comm, 0);
}

/*
 * A comm known only since later than this sample (one finished in task context may follow
 * younger ones of its thread) is said once more with the sample's time.
 */
static int name_thread(struct vp_perfdata *w, const struct vp_proc_id *proc, const char *comm,
		       const struct pd_origin *o)
{
	const struct pd_comm *t = pd_comms_find(w->comms, o->tid, proc->start_ns);

	if (t && t->since_ns <= o->time_ns &&
	    !strncmp(t->comm, comm_of(o->tid, comm), VP_COMM_LEN - 1))
		return 0;
	return write_comm(w, o, proc->start_ns, comm, 0);
}

/* ---- mappings ---- */

#define NOT_SAID_NS UINT64_MAX /* of a mapping that the file has not told of */

/* The name is missing: it follows. */
static void put_mmap2(struct vp_perfdata *w, const struct vp_perf_mmap2 *body)
{
	w->len = 0;
	pd_put_bytes(w, body, sizeof(*body));
}

static int write_map(struct vp_perfdata *w, const struct pd_map *map, const struct pd_origin *o)
{
	struct vp_perf_mmap2 body = {
		.type = PERF_RECORD_MMAP2,
		.misc = map->misc,
		.pid = o->tgid,
		.tid = o->tgid,
		.addr = map->start,
		.len = map->end - map->start,
		.pgoff = map->pgoff,
		.maj = map->maj,
		.min = map->min,
		.ino = map->ino,
		.ino_generation = map->ino_generation,
		.prot = map->prot,
		.flags = map->flags,
	};

	put_mmap2(w, &body);
	pd_put_name(w, pd_map_name(map));
	return pd_end_with_trailer(w, o);
}

static void remember(struct vp_perfdata *w, const struct vp_rec_mmap2 *rec, const char *name,
		     uint64_t time_ns)
{
	const struct vp_perf_mmap2 *b = &rec->perf;
	struct pd_map map = {
		.start = b->addr,
		.end = b->addr + b->len,
		.pgoff = b->pgoff,
		.ino = b->ino,
		.ino_generation = b->ino_generation,
		.time_ns = time_ns,
		.maj = b->maj,
		.min = b->min,
		.prot = b->prot,
		.flags = b->flags,
		.misc = b->misc,
	};

	if (b->prot & PROT_EXEC)
		pd_maps_add(w->maps, pd_maps_get(w->maps, &rec->proc), &map, name);
}

/*
 * A mapping from the walk existed before the recording: time 0, before all samples, also those
 * written earlier. Not so if its process is known to be younger: perf would apply it to the
 * former owner of the tgid, and forget it at the FORK.
 */
static uint64_t time_of_map(const struct vp_perfdata *w, const struct vp_rec_mmap2 *rec)
{
	const struct pd_proc *p = pd_maps_find(w->maps, &rec->proc);

	if (!(rec->hdr.flags & VP_MMAP2_F_FROM_WALK) || (p && p->born) ||
	    pd_maps_other_life(w->maps, &rec->proc))
		return rec->hdr.ts_ns;
	return 0;
}

int vp_perfdata_mmap2(struct vp_perfdata *w, const struct vp_rec_mmap2 *rec)
{
	const char *name = (const char *)(rec + 1);
	size_t name_bytes = rec->perf.size - sizeof(rec->perf);
	struct vp_perf_mmap2 body = rec->perf;
	struct pd_origin o = {rec->proc.tgid, rec->proc.tgid, rec->hdr.cpu, 0};

	if (rec->perf.size <= sizeof(rec->perf) || name_bytes > VP_PATH_MAX + 8 || name_bytes % 8 ||
	    !memchr(name, 0, name_bytes))
		return -EINVAL;
	if (!strcmp(name, "[vdso]"))
		body.pgoff = 0; /* perf takes the vdso for a file mapped from its beginning */
	o.time_ns = time_of_map(w, rec);
	name_leader(w, &rec->proc, rec->comm, &o);
	put_mmap2(w, &body);
	pd_put_bytes(w, name, name_bytes);
	remember(w, rec, name, o.time_ns);
	return pd_end_with_trailer(w, &o);
}

/*
 * The parent's mappings for a child that perf may have cloned too early, or not at all if the FORK
 * was lost: each is said again before the first sample in it. Where the child has one of its own,
 * that is the newer one.
 */
static void copy_maps(struct vp_perfdata *w, const struct pd_proc *from, struct pd_proc *to)
{
	for (uint32_t i = 0; i < from->cnt; i++) {
		struct pd_map map = from->maps[i];

		if (to && pd_proc_overlaps(to, map.start, map.end))
			continue;
		map.time_ns = NOT_SAID_NS;
		pd_maps_add(w->maps, to, &map, pd_map_name(&map));
	}
}

int vp_perfdata_inherit(struct vp_perfdata *w, const struct vp_rec_inherit *rec)
{
	struct pd_proc *from = pd_maps_find(w->maps, &rec->from);
	struct pd_proc *to;

	if (from == pd_maps_find(w->maps, &rec->proc) && from)
		return w->err;
	if (from)
		from->pinned = true;
	to = pd_maps_get(w->maps, &rec->proc);
	if (to)
		to->born = true;
	if (!from)
		return w->err;
	copy_maps(w, from, to);
	from->pinned = false;
	return w->err;
}

/* ---- samples ---- */

/* So long a sample's interrupt and the look-ups in it may take. */
#define INTERRUPT_NS 100000

/*
 * A mapping found by the sample itself, or between its interrupt and its end, carries a later
 * time than the sample, and perf would sort it behind. It is said again with the sample's time;
 * but not if it took another one's place meanwhile, which is what the samples before it were in.
 */
static int backdate_map(struct vp_perfdata *w, struct pd_proc *p, uint64_t pc,
			const struct pd_origin *o)
{
	struct pd_map *map = pd_proc_at(p, pc);

	if (!map || map->time_ns <= o->time_ns)
		return w->err;
	if (map->replaced && map->time_ns - o->time_ns > INTERRUPT_NS)
		return w->err;
	map->time_ns = o->time_ns;
	return write_map(w, map, o);
}

/* The page is no VMA, so that no record tells of it; perf's own come from /proc. */
static void say_vsyscall(struct vp_perfdata *w, const struct vp_rec_sample *rec, uint64_t pc,
			 const struct pd_origin *o)
{
	struct pd_proc *p = pd_maps_get(w->maps, &rec->proc);
	struct pd_map map = {
		.start = VP_VSYSCALL_ADDR,
		.end = VP_VSYSCALL_END,
		.time_ns = o->time_ns,
		.prot = PROT_EXEC,
		.flags = MAP_PRIVATE,
		.misc = PERF_RECORD_MISC_USER,
	};

	if (pc < map.start || pc >= map.end || !p || pd_proc_at(p, pc))
		return;
	pd_maps_add(w->maps, p, &map, "[vsyscall]");
	if (pd_proc_at(p, pc))
		write_map(w, pd_proc_at(p, pc), o);
}

static int backdate_maps(struct vp_perfdata *w, const struct vp_rec_sample *rec,
			 const struct vp_frame *frames, const struct pd_origin *o)
{
	struct pd_proc *p = pd_maps_find(w->maps, &rec->proc);

	if (!p || p->newest_ns <= o->time_ns)
		return w->err;
	for (uint32_t i = 0; i < rec->user_cnt; i++)
		backdate_map(w, p, frames[i].pc, o);
	return w->err;
}

static uint16_t sample_misc(const struct vp_rec_sample *rec)
{
	int kernel = rec->hdr.flags & VP_SAMPLE_F_KERNEL_MODE;

	if (rec->hdr.flags & VP_SAMPLE_F_GUEST)
		return kernel ? PERF_RECORD_MISC_GUEST_KERNEL : PERF_RECORD_MISC_GUEST_USER;
	return kernel ? PERF_RECORD_MISC_KERNEL : PERF_RECORD_MISC_USER;
}

/*
 * The innermost frame, in the mode that misc says: a kernel sample whose kernel stack could
 * not be had is at an unknown kernel address, not at its user leaf.
 */
static uint64_t sample_ip(const struct vp_rec_sample *rec, const uint64_t *kern,
			  const struct vp_frame *user)
{
	if (rec->hdr.flags & VP_SAMPLE_F_GUEST)
		return 0;
	if (rec->kern_cnt)
		return kern[0];
	if (rec->user_cnt && !(rec->hdr.flags & VP_SAMPLE_F_KERNEL_MODE))
		return user[0].pc;
	return 0;
}

/* u64 count, then the frames, innermost first; a marker (counted) says whose are next. */
static void put_chain(struct vp_perfdata *w, const struct vp_rec_sample *rec, const uint64_t *kern,
		      const struct vp_frame *user)
{
	uint64_t cnt = 0;

	if (rec->hdr.flags & VP_SAMPLE_F_GUEST) {
		pd_put_u64(w, 0);
		return;
	}
	cnt += rec->kern_cnt ? 1u + rec->kern_cnt : 0;
	cnt += rec->user_cnt ? 1u + rec->user_cnt : 0;
	pd_put_u64(w, cnt);
	if (rec->kern_cnt)
		pd_put_u64(w, (uint64_t)PERF_CONTEXT_KERNEL);
	for (uint32_t i = 0; i < rec->kern_cnt; i++)
		pd_put_u64(w, kern[i]);
	if (rec->user_cnt)
		pd_put_u64(w, (uint64_t)PERF_CONTEXT_USER);
	for (uint32_t i = 0; i < rec->user_cnt; i++)
		pd_put_u64(w, user[i].pc);
}

static int write_sample(struct vp_perfdata *w, const struct vp_rec_sample *rec,
			const uint64_t *kern, const struct vp_frame *user)
{
	pd_begin(w, PERF_RECORD_SAMPLE, sample_misc(rec));
	pd_put_u64(w, PD_EVENT_ID);
	pd_put_u64(w, sample_ip(rec, kern, user));
	pd_put_u32(w, rec->proc.tgid);
	pd_put_u32(w, rec->tid);
	pd_put_u64(w, rec->hdr.ts_ns);
	pd_put_u32(w, rec->hdr.cpu);
	pd_put_u32(w, 0);
	pd_put_u64(w, rec->period);
	put_chain(w, rec, kern, user);
	return pd_end(w);
}

int vp_perfdata_sample(struct vp_perfdata *w, const struct vp_rec_sample *rec, const uint64_t *kern,
		       const struct vp_frame *user)
{
	struct pd_origin o = {rec->proc.tgid, rec->tid, rec->hdr.cpu, rec->hdr.ts_ns};

	if (rec->kern_cnt > VP_MAX_KERN_FRAMES || rec->user_cnt > VP_MAX_USER_FRAMES)
		return -EINVAL;
	name_thread(w, &rec->proc, rec->comm, &o);
	name_leader(w, &rec->proc, rec->comm, &o);
	if (rec->user_cnt)
		say_vsyscall(w, rec, user[0].pc, &o);
	backdate_maps(w, rec, user, &o);
	return write_sample(w, rec, kern, user);
}

/* ---- processes ---- */

int vp_perfdata_exec(struct vp_perfdata *w, const struct vp_rec_exec *rec)
{
	struct pd_origin o = {rec->proc.tgid, rec->tid, rec->hdr.cpu, rec->hdr.ts_ns};
	struct pd_proc *p;

	/* The new image's mappings may have come before this record: only older lives go. */
	pd_maps_exec(w->maps, &rec->proc);
	p = pd_maps_get(w->maps, &rec->proc);
	if (p)
		p->born = true;
	return write_comm(w, &o, rec->proc.start_ns, rec->comm, PERF_RECORD_MISC_COMM_EXEC);
}

int vp_perfdata_comm(struct vp_perfdata *w, const struct vp_rec_comm *rec)
{
	struct pd_origin o = {rec->proc.tgid, rec->tid, rec->hdr.cpu, rec->hdr.ts_ns};

	return name_thread(w, &rec->proc, rec->comm, &o);
}

/* struct perf_record_fork, of FORK and EXIT. */
static int write_task(struct vp_perfdata *w, uint32_t type, const struct pd_origin *o,
		      uint32_t parent_tgid, uint32_t parent_tid)
{
	pd_begin(w, type, 0);
	pd_put_u32(w, o->tgid);
	pd_put_u32(w, parent_tgid);
	pd_put_u32(w, o->tid);
	pd_put_u32(w, parent_tid);
	pd_put_u64(w, o->time_ns);
	return pd_end_with_trailer(w, o);
}

/* perf gives the child its parent's comm; whether that is known is all that matters here. */
static void inherit_comm(struct vp_perfdata *w, const struct vp_rec_fork *rec,
			 const struct pd_comm *parent)
{
	pd_comms_forget(w->comms, rec->child_tid);
	if (parent && parent->since_ns <= rec->hdr.ts_ns)
		pd_comms_set(w->comms, rec->child_tid, rec->child.start_ns, rec->hdr.ts_ns,
			     parent->comm);
}

int vp_perfdata_fork(struct vp_perfdata *w, const struct vp_rec_fork *rec)
{
	struct pd_origin o = {rec->child.tgid, rec->child_tid, rec->hdr.cpu, rec->hdr.ts_ns};

	inherit_comm(w, rec, pd_comms_find_any(w->comms, rec->parent_tid));
	if (rec->child.tgid != rec->parent_tgid) {
		struct pd_proc *p = pd_maps_get(w->maps, &rec->child);

		if (p)
			p->born = true;
	}
	return write_task(w, PERF_RECORD_FORK, &o, rec->parent_tgid, rec->parent_tid);
}

int vp_perfdata_exit(struct vp_perfdata *w, const struct vp_rec_exit *rec)
{
	struct pd_origin o = {rec->proc.tgid, rec->tid, rec->hdr.cpu, rec->hdr.ts_ns};

	pd_comms_forget(w->comms, rec->tid);
	if (rec->tid == rec->proc.tgid)
		pd_maps_exit(w->maps, &rec->proc);
	return write_task(w, PERF_RECORD_EXIT, &o, rec->parent_tgid, rec->parent_tgid);
}
