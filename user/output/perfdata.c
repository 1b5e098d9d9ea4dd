// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The frame of a perf.data file (its records are made in perfdata_records.c):
 *
 *	header 104 | id of the event | attr 128, where the ids are | data: records | features
 *
 * The header is written last, so an interrupted file is not mistaken for a whole one.
 *
 * Order. Every record carries a time (sample_id_all) and perf sorts by it, keeping the file's
 * order among equal times; time 0 counts as before everything. Records are written as the ring
 * has them, which is nearly but not quite the order of time: a sample finished in task context
 * carries the time of its interrupt, which the task may have slept on for minutes. A
 * FINISHED_ROUND record would let perf hand out what it has sorted so far, and then report
 * such a sample as out of order; no round is long enough to rule it out. So none is written:
 * perf keeps about 50 bytes per record (not the record) until the end of the file, 50 MB for
 * a million samples, and is never wrong.
 */
#include "perfdata_int.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Remembered mappings: some 250,000 of them, more than a host with 5,000 processes has. */
#define MAPS_MAX_BYTES (32u << 20)

#define CLOCK_ID_MONOTONIC 1 /* of hdr.ts_ns; spelt out, for <time.h> may number it otherwise */

/* What each record carries, in the order of its body in perfdata_records.c. */
#define SAMPLE_TYPE                                                                                \
	(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |            \
	 PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD | PERF_SAMPLE_CALLCHAIN)

/* sample_id: tid, time, cpu, identifier. */
#define TRAILER_BYTES 32

/* Header 8, seven words, the chain with its two markers. */
#define SAMPLE_MAX_BYTES (64 + 8 * (VP_MAX_KERN_FRAMES + VP_MAX_USER_FRAMES + 2))

#define MMAP2_MAX_BYTES (sizeof(struct vp_perf_mmap2) + VP_PATH_MAX + 8 + TRAILER_BYTES)

_Static_assert(SAMPLE_MAX_BYTES <= PD_RECORD_MAX, "deepest sample fits");
_Static_assert(MMAP2_MAX_BYTES <= PD_RECORD_MAX, "longest mapping fits");
_Static_assert(PD_RECORD_MAX <= UINT16_MAX, "perf's sizes are 16 bits");

/* ---- bytes ---- */

int pd_write(struct vp_perfdata *w, const void *data, size_t bytes)
{
	if (w->err)
		return w->err;
	if (bytes && fwrite(data, 1, bytes, w->f) != bytes)
		return w->err = -EIO;
	w->pos += bytes;
	return 0;
}

int pd_seek(struct vp_perfdata *w, uint64_t offset)
{
	if (w->err)
		return w->err;
	if (fseeko(w->f, (off_t)offset, SEEK_SET))
		return w->err = -EIO;
	w->pos = offset;
	return 0;
}

void pd_put_bytes(struct vp_perfdata *w, const void *data, size_t bytes)
{
	memcpy(w->record + w->len, data, bytes);
	w->len += bytes;
}

void pd_put_u32(struct vp_perfdata *w, uint32_t v)
{
	pd_put_bytes(w, &v, sizeof(v));
}

void pd_put_u64(struct vp_perfdata *w, uint64_t v)
{
	pd_put_bytes(w, &v, sizeof(v));
}

void pd_put_name(struct vp_perfdata *w, const char *s)
{
	size_t len = strlen(s) + 1;

	pd_put_bytes(w, s, len);
	memset(w->record + w->len, 0, 7);
	w->len = (w->len + 7) & ~(size_t)7;
}

void pd_begin(struct vp_perfdata *w, uint32_t type, uint16_t misc)
{
	struct perf_event_header h = {.type = type, .misc = misc};

	w->len = 0;
	pd_put_bytes(w, &h, sizeof(h));
}

int pd_end(struct vp_perfdata *w)
{
	((struct perf_event_header *)w->record)->size = (uint16_t)w->len;
	return pd_write(w, w->record, w->len);
}

int pd_end_with_trailer(struct vp_perfdata *w, const struct pd_origin *o)
{
	pd_put_u32(w, o->tgid);
	pd_put_u32(w, o->tid);
	pd_put_u64(w, o->time_ns);
	pd_put_u32(w, o->cpu);
	pd_put_u32(w, 0);
	pd_put_u64(w, PD_EVENT_ID);
	return pd_end(w);
}

/* ---- the kernel ---- */

static int write_kernel_map(struct vp_perfdata *w, const char *name, uint64_t start, uint64_t len,
			    uint64_t pgoff)
{
	struct pd_origin o = {.tgid = UINT32_MAX};

	pd_begin(w, PERF_RECORD_MMAP, PERF_RECORD_MISC_KERNEL);
	pd_put_u32(w, UINT32_MAX);
	pd_put_u32(w, 0);
	pd_put_u64(w, start);
	pd_put_u64(w, len);
	pd_put_u64(w, pgoff);
	pd_put_name(w, name);
	return pd_end_with_trailer(w, &o);
}

/*
 * What follows "[kernel.kallsyms]" is the symbol by which perf finds how far this boot's kernel
 * was relocated, and pgoff that symbol's address.
 */
int vp_perfdata_kernel(struct vp_perfdata *w, uint64_t stext, uint64_t etext)
{
	if (!stext || etext <= stext)
		return 0;
	return write_kernel_map(w, "[kernel.kallsyms]_stext", stext, etext - stext, stext);
}

int vp_perfdata_kernel_module(struct vp_perfdata *w, const char *name, uint64_t start, uint64_t len)
{
	char bracketed[128];

	if ((size_t)snprintf(bracketed, sizeof(bracketed), "[%s]", name) >= sizeof(bracketed))
		return -EINVAL;
	return write_kernel_map(w, bracketed, start, len, 0);
}

/* ---- the file ---- */

static void fill_attr(struct perf_event_attr *a, const struct vp_meta *meta)
{
	*a = (struct perf_event_attr){
		.type = meta->perf_type,
		.size = PD_ATTR_BYTES,
		.config = meta->perf_config,
		.sample_freq = meta->freq_hz,
		.sample_type = SAMPLE_TYPE,
		.freq = 1,
		.mmap = 1,
		.mmap2 = 1,
		.comm = 1,
		.comm_exec = 1,
		.task = 1,
		.sample_id_all = 1,
		.use_clockid = 1,
		.clockid = CLOCK_ID_MONOTONIC,
		.sample_max_stack = VP_MAX_KERN_FRAMES + VP_MAX_USER_FRAMES,
	};
}

/* Room for the header, the ids, and the one attr with its section of ids. */
static int write_front(struct vp_perfdata *w)
{
	struct pd_header nothing = {0};
	struct pd_section ids = {sizeof(nothing), sizeof(uint64_t)};
	uint64_t id = PD_EVENT_ID;

	pd_write(w, &nothing, sizeof(nothing));
	pd_write(w, &id, sizeof(id));
	w->header = (struct pd_header){
		.magic = {'P', 'E', 'R', 'F', 'I', 'L', 'E', '2'},
		.size = sizeof(w->header),
		.attr_size = PD_ATTR_BYTES + sizeof(ids),
		.attrs = {w->pos, PD_ATTR_BYTES + sizeof(ids)},
	};
	pd_write(w, w->attr_bytes, PD_ATTR_BYTES);
	pd_write(w, &ids, sizeof(ids));
	w->header.data.offset = w->pos;
	return w->err;
}

int vp_perfdata_new(struct vp_perfdata **out, FILE *f, const struct vp_meta *meta,
		    uint64_t kernel_stext, uint64_t kernel_etext)
{
	struct vp_perfdata *w;
	int err;

	if (fseeko(f, 0, SEEK_SET))
		return -ESPIPE;
	w = calloc(1, sizeof(*w));
	if (!w)
		return -ENOMEM;
	w->f = f;
	w->maps = pd_maps_new(MAPS_MAX_BYTES);
	w->comms = pd_comms_new();
	err = -ENOMEM;
	if (!w->maps || !w->comms)
		goto fail;
	fill_attr(&w->attr, meta);
	write_front(w);
	vp_perfdata_kernel(w, kernel_stext, kernel_etext);
	err = w->err;
	if (err)
		goto fail;
	*out = w;
	return 0;
fail:
	vp_perfdata_free(w);
	return err;
}

uint64_t vp_perfdata_dropped(const struct vp_perfdata *w)
{
	return pd_maps_dropped(w->maps);
}

int vp_perfdata_finish(struct vp_perfdata *w, const struct vp_meta *meta)
{
	w->header.data.size = w->pos - w->header.data.offset;
	pd_write_features(w, meta);
	pd_seek(w, 0);
	pd_write(w, &w->header, sizeof(w->header));
	if (!w->err && (fflush(w->f) || fseeko(w->f, 0, SEEK_END)))
		w->err = -EIO;
	return w->err;
}

void vp_perfdata_free(struct vp_perfdata *w)
{
	if (!w)
		return;
	for (size_t i = 0; i < w->build_id_cnt; i++)
		free(w->build_ids[i].name);
	free(w->build_ids);
	pd_maps_free(w->maps);
	pd_comms_free(w->comms);
	free(w);
}
