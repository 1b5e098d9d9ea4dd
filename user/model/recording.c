/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "recording.h"

#include "../symbolize/jit.h"
#include "../symbolize/jit_process.h"

#include <errno.h>

/* The life, added if new; NULL: out of memory. Borrowed until the next call. */
static struct vp_process *get_process(struct vp_recording *r, const struct vp_proc_id *id,
				      uint64_t ts_ns)
{
	uint32_t i = vp_procs_get(&r->procs, id);
	struct vp_process *proc;

	if (i == VP_INDEX_NONE)
		return NULL;
	proc = &r->procs.proc[i];
	if (!proc->first_ns)
		proc->first_ns = ts_ns;
	return proc;
}

#define JIT_WAIT_MIN_NS 100000000ULL
#define JIT_WAIT_MAX_NS 1000000000ULL

/* The mapping of the jitdump, which may be gone; its file is not. */
static const struct vp_xmap *dump_mapping(const struct vp_process *proc)
{
	for (size_t i = 0; i < proc->xmap_cnt; i++) {
		if (proc->xmaps[i].file_id == proc->jit.dump_file_id)
			return &proc->xmaps[i];
	}
	return NULL;
}

#define ELDERS_MAX 8

/* A copy of a process runs the code that its elders have made and told of. */
static int link_elders(struct vp_recording *r, const struct vp_process *proc)
{
	int err = 0;

	for (int i = 0; i < ELDERS_MAX && !err && r->jit && proc->jit.from.tgid; i++) {
		uint32_t from = vp_procs_find(&r->procs, &proc->jit.from);

		err = vp_jit_inherit(r->jit, &proc->id, &proc->jit.from);
		if (from == VP_INDEX_NONE)
			break;
		proc = &r->procs.proc[from];
	}
	return err;
}

static int request_jit(struct vp_recording *r, const struct vp_process *proc)
{
	const struct vp_file *dump = vp_files_get(&r->files, proc->jit.dump_file_id);
	struct vp_mapped_file m;

	if (link_elders(r, proc))
		return -ENOMEM;
	if (!dump)
		return vp_file_pool_request_jit(r->pool, &proc->id, NULL);
	m = vp_file_mapped(dump, proc->id.tgid, dump_mapping(proc));
	return vp_file_pool_request_jit(r->pool, &proc->id, &m);
}

/*
 * A frame in code of a JIT: what it has told has to be read while the process is there, and again,
 * for it goes on telling. Looking whether it has costs some system calls.
 */
static int ask_jit(struct vp_recording *r, struct vp_process *proc, uint64_t ts_ns)
{
	struct vp_jit_state *jit = &proc->jit;

	if (!r->pool || (jit->asked_ns && ts_ns < jit->asked_ns + jit->wait_ns))
		return 0;
	jit->asked_ns = ts_ns;
	jit->wait_ns = jit->wait_ns ? 2 * jit->wait_ns : JIT_WAIT_MIN_NS;
	if (jit->wait_ns > JIT_WAIT_MAX_NS)
		jit->wait_ns = JIT_WAIT_MAX_NS;
	return request_jit(r, proc);
}

/* Also if no sample has said so: its frames may be put together from what is known now. */
static bool has_jit(const struct vp_process *proc)
{
	if (proc->jit.asked_ns || !proc->sample_cnt)
		return proc->jit.asked_ns;
	for (size_t i = 0; i < proc->xmap_cnt; i++) {
		if (proc->xmaps[i].verdict == VP_VERDICT_ANON_EXEC)
			return true;
	}
	return false;
}

/* Kernel frames are there; reading the names of its functions takes a tenth of a second. */
static int ask_kernel(struct vp_recording *r)
{
	const struct vp_mapped_file none = {.name = ""};

	if (!r->pool)
		return 0;
	r->kernel_asked = true;
	return vp_file_pool_request(r->pool, VP_FILE_SYMBOLS, VP_FILE_ID_NONE, &none);
}

int vp_recording_ask_again(struct vp_recording *r)
{
	int err = r->kernel_asked ? ask_kernel(r) : 0;

	for (size_t i = 0; i < r->procs.cnt && r->pool && !err; i++) {
		if (has_jit(&r->procs.proc[i]))
			err = request_jit(r, &r->procs.proc[i]);
	}
	return err;
}

/*
 * A mapping is learned of when a sample asks for it, but earlier samples of that life may
 * have a frame in it that was not asked for. Where nothing else was known of its addresses
 * it counts from the life's beginning (since_ns), as in our own stacks: see stitch() in
 * report_builder.c.
 */
static int write_mmap2(struct vp_perfdata *w, const struct vp_mmap2 *m, uint64_t since_ns)
{
	struct vp_mmap2 dated;

	if (!since_ns || since_ns >= m->rec.hdr.ts_ns)
		return vp_perfdata_mmap2(w, &m->rec);
	dated = *m;
	dated.rec.hdr.ts_ns = since_ns;
	return vp_perfdata_mmap2(w, &dated.rec);
}

/*
 * What a sample or an exec has shown is going to be unwound through. What the walk shows may
 * never run: see row_start.h.
 */
static int request_rows_of(struct vp_recording *r, const struct vp_mmap2 *m,
			   const struct vp_xmap *x)
{
	struct vp_file *file = vp_files_get(&r->files, m->rec.file_id);
	struct vp_mapped_file mapped;

	if (!r->pool || !file || file->rows_asked_ns || m->rec.verdict != VP_VERDICT_FILE ||
	    (m->rec.hdr.flags & VP_MMAP2_F_FROM_WALK))
		return 0;
	vp_file_ask_rows(file, m->rec.hdr.ts_ns);
	mapped = vp_file_mapped(file, m->rec.proc.tgid, x);
	return vp_file_pool_request(r->pool, VP_FILE_ROWS, m->rec.file_id, &mapped);
}

/* A copy of a file's text in anonymous memory goes by that file's name; as for us, so for perf. */
static int write_remapped(struct vp_recording *r, const struct vp_mmap2 *m)
{
	const struct vp_file *file = vp_files_get(&r->files, m->rec.file_id);
	struct vp_mmap2 named = *m;

	if (!r->perfdata)
		return 0;
	if (file) {
		vp_mmap2_set_name(&named, file->name);
		named.rec.file = file->rec.file;
		named.rec.perf.maj = file->rec.perf.maj;
		named.rec.perf.min = file->rec.perf.min;
		named.rec.perf.ino = file->rec.perf.ino;
		named.rec.perf.ino_generation = file->rec.perf.ino_generation;
	}
	return vp_perfdata_mmap2(r->perfdata, &named.rec);
}

/* Mapped for us to see it, not to be run. */
static bool is_jitdump(const struct vp_mmap2 *m)
{
	return m->rec.file_id != VP_FILE_ID_NONE && jit_is_dump_name(m->name);
}

/* Its code may be run by a copy of the process alone, which does not say where the file is. */
static int on_jitdump(struct vp_recording *r, struct vp_process *proc, uint32_t file_id)
{
	proc->jit.dump_file_id = file_id;
	return r->pool ? request_jit(r, proc) : 0;
}

static int on_mmap2(void *ctx, const struct vp_mmap2 *m)
{
	struct vp_recording *r = ctx;
	const struct vp_xmap x = {
		.start = m->rec.perf.addr,
		.end = m->rec.perf.addr + m->rec.perf.len,
		.pgoff = m->rec.perf.pgoff,
		.file_id = m->rec.file_id,
		.verdict = m->rec.verdict,
		.flags = m->rec.hdr.flags & VP_MMAP2_F_REMAPPED ? VP_XMAP_F_REMAPPED : 0,
	};
	struct vp_process *proc = get_process(r, &m->rec.proc, m->rec.hdr.ts_ns);
	bool first;
	int new;

	if (!proc)
		return -ENOMEM;
	first = !vp_process_overlaps(proc, x.start, x.end);
	new = vp_process_add_xmap(proc, &x);
	if (new <= 0)
		return new;
	if (x.flags & VP_XMAP_F_REMAPPED)
		return write_remapped(r, m);
	if (vp_files_add(&r->files, m))
		return -ENOMEM;
	if (is_jitdump(m) ? on_jitdump(r, proc, x.file_id) : request_rows_of(r, m, &x))
		return -ENOMEM;
	return r->perfdata ? write_mmap2(r->perfdata, m, first ? proc->first_ns : 0) : 0;
}

/*
 * The first frame in a file has its symbols read, through the process that is using it now; a
 * frame that the kernel side had no rows for, its rows.
 */
static int request_file(struct vp_recording *r, const struct vp_process *proc,
			const struct vp_frame *f, uint64_t ts_ns)
{
	struct vp_file *file = vp_files_get(&r->files, f->file_id);
	struct vp_mapped_file m;
	bool rows;
	int err = 0;

	if (!r->pool || !file)
		return 0;
	rows = (f->flags & VP_FRAME_F_NO_ROWS) && vp_file_ask_rows(file, ts_ns);
	if (!rows && file->requested)
		return 0;
	m = vp_file_mapped(file, proc->id.tgid, vp_process_find(proc, f->pc));
	if (rows)
		err = vp_file_pool_request(r->pool, VP_FILE_ROWS, f->file_id, &m);
	if (!err && !file->requested)
		err = vp_file_pool_request(r->pool, VP_FILE_SYMBOLS, f->file_id, &m);
	file->requested = true;
	return err;
}

static int request_names(struct vp_recording *r, struct vp_process *proc, const struct vp_frame *f,
			 uint64_t ts_ns)
{
	const struct vp_file *file = vp_files_get(&r->files, f->file_id);

	if (f->verdict == VP_VERDICT_ANON_EXEC || (file && vp_file_is_memory(file))) {
		int err = ask_jit(r, proc, ts_ns);

		if (err)
			return err;
	}
	return request_file(r, proc, f, ts_ns);
}

static struct vp_at kernel_at(uint64_t addr, bool leaf)
{
	return (struct vp_at){.value = addr, .verdict = VP_AT_KERNEL, .leaf = leaf};
}

/*
 * The image of 64-bit programs. That of 32-bit ones is another, which no name is known of: its
 * address is no offset in the first.
 */
static bool is_64bit_vdso(const struct vp_frame *f)
{
	return f->verdict == VP_VERDICT_VDSO && f->pc > UINT32_MAX;
}

static struct vp_at user_at(const struct vp_frame *f)
{
	bool in_file = f->verdict == VP_VERDICT_FILE && f->file_id != VP_FILE_ID_NONE;

	return (struct vp_at){
		.value = in_file || is_64bit_vdso(f) ? f->offset : f->pc,
		.file_id = in_file ? f->file_id : VP_FILE_ID_NONE,
		.verdict = f->verdict,
		.leaf = !!(f->flags & VP_FRAME_F_LEAF),
		.remapped = !!(f->flags & VP_FRAME_F_REMAPPED),
	};
}

/* Without what both stacks have: [vsyscall], a page of user code in the kernel's half. */
static size_t kern_only(const struct vp_rec_sample *s, const uint64_t *kern,
			const struct vp_frame *user)
{
	size_t n = s->kern_cnt;

	return n && s->user_cnt && kern[n - 1] == user[0].pc ? n - 1 : n;
}

static void note_sample(struct vp_recording *r, const struct vp_rec_sample *s)
{
	if (s->user_end < VP_END_CNT)
		r->end_cnt[s->user_end]++;
	if (s->hdr.flags & VP_SAMPLE_F_KERN_CUT)
		r->kern_cut_cnt++;
	if (!r->first_ns || s->hdr.ts_ns < r->first_ns)
		r->first_ns = s->hdr.ts_ns;
	if (s->hdr.ts_ns > r->last_ns)
		r->last_ns = s->hdr.ts_ns;
	atomic_fetch_add_explicit(&r->sample_cnt, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&r->frame_cnt, s->user_cnt, memory_order_relaxed);
}

static void note_frame(struct vp_recording *r, const struct vp_frame *f)
{
	if (f->verdict == VP_VERDICT_BUSY)
		atomic_fetch_add_explicit(&r->unresolved_cnt, 1, memory_order_relaxed);
	if (f->flags & VP_FRAME_F_FP)
		r->fp_cnt++;
	if (f->flags & VP_FRAME_F_NO_ROWS)
		r->no_rows_cnt++;
	if (f->flags & VP_FRAME_F_REMAPPED)
		r->remapped_cnt++;
}

static int on_sample(void *ctx, const struct vp_rec_sample *s, const uint64_t *kern,
		     const struct vp_frame *user)
{
	struct vp_recording *r = ctx;
	struct vp_at at[VP_MAX_KERN_FRAMES + VP_MAX_USER_FRAMES];
	struct vp_tally who = {.tid = s->tid};
	size_t kern_cnt = kern_only(s, kern, user), n = 0;
	int err;

	if (!get_process(r, &s->proc, s->hdr.ts_ns))
		return -ENOMEM;
	who.proc = vp_procs_get(&r->procs, &s->proc);
	who.comm = vp_strings_add(&r->comms, s->comm);
	if (who.proc == VP_INDEX_NONE || who.comm == VP_INDEX_NONE)
		return -ENOMEM;
	if (kern_cnt && !r->kernel_asked && ask_kernel(r))
		return -ENOMEM;
	for (size_t i = 0; i < kern_cnt; i++, n++)
		at[n] = kernel_at(kern[i], i == 0);
	for (size_t i = 0; i < s->user_cnt; i++, n++) {
		at[n] = user_at(&user[i]);
		note_frame(r, &user[i]);
		err = request_names(r, &r->procs.proc[who.proc], &user[i], s->hdr.ts_ns);
		if (err)
			return err;
	}
	note_sample(r, s);
	r->procs.proc[who.proc].sample_cnt++;
	err = vp_stacks_count(&r->stacks, at, n, &who, r->max_stack_bytes);
	if (err == -ENOSPC) {
		r->stacks_full_cnt++;
		err = 0;
	}
	if (!err && r->perfdata)
		err = vp_perfdata_sample(r->perfdata, s, kern, user);
	return err;
}

static int on_exec(void *ctx, const struct vp_rec_exec *rec)
{
	struct vp_recording *r = ctx;

	const struct vp_process *proc = get_process(r, &rec->proc, rec->hdr.ts_ns);
	struct vp_rec_exec dated = *rec;

	if (!proc)
		return -ENOMEM;
	/* A sample can hit the new image before exec is through and tells of it. */
	if (proc->first_ns < rec->hdr.ts_ns)
		dated.hdr.ts_ns = proc->first_ns - 1;
	return r->perfdata ? vp_perfdata_exec(r->perfdata, &dated) : 0;
}

static int on_fork(void *ctx, const struct vp_rec_fork *rec)
{
	struct vp_recording *r = ctx;

	return r->perfdata ? vp_perfdata_fork(r->perfdata, rec) : 0;
}

static int on_exit_rec(void *ctx, const struct vp_rec_exit *rec)
{
	struct vp_recording *r = ctx;

	return r->perfdata ? vp_perfdata_exit(r->perfdata, rec) : 0;
}

static void inherit_jit(struct vp_jit_state *jit, const struct vp_process *from)
{
	jit->from = from->id;
	if (jit->dump_file_id == VP_FILE_ID_NONE)
		jit->dump_file_id = from->jit.dump_file_id;
}

static int on_inherit(void *ctx, const struct vp_rec_inherit *rec)
{
	struct vp_recording *r = ctx;
	uint32_t to = vp_procs_get(&r->procs, &rec->proc),
		 from = vp_procs_get(&r->procs, &rec->from);

	if (to == VP_INDEX_NONE || from == VP_INDEX_NONE ||
	    vp_process_inherit(&r->procs.proc[to], &r->procs.proc[from]))
		return -ENOMEM;
	inherit_jit(&r->procs.proc[to].jit, &r->procs.proc[from]);
	return r->perfdata ? vp_perfdata_inherit(r->perfdata, rec) : 0;
}

/* Samples carry their thread's name themselves. */
static int on_comm(void *ctx, const struct vp_rec_comm *rec)
{
	struct vp_recording *r = ctx;

	return r->perfdata ? vp_perfdata_comm(r->perfdata, rec) : 0;
}

const struct vp_record_ops vp_recording_ops = {
	.mmap2 = on_mmap2,
	.sample = on_sample,
	.exec = on_exec,
	.fork = on_fork,
	.exit = on_exit_rec,
	.inherit = on_inherit,
	.comm = on_comm,
};

void vp_recording_free(struct vp_recording *r)
{
	vp_procs_free(&r->procs);
	vp_files_free(&r->files);
	vp_strings_free(&r->comms);
	vp_stacks_free(&r->stacks);
}
