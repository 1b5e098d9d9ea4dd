/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Shared by perfdata.c (the file), perfdata_records.c and perfdata_features.c. */
#ifndef VP_PERFDATA_INT_H
#define VP_PERFDATA_INT_H

#include "perfdata.h"
#include "perfdata_comms.h"
#include "perfdata_maps.h"

#include <linux/perf_event.h>
#include <stddef.h>

/*
 * sizeof(struct perf_event_attr) as of Linux 5.13 (VER7). A larger one is refused by older
 * perf ("unsupported ABI"), and nothing newer is used.
 */
#define PD_ATTR_BYTES 128

/* struct perf_file_section: where something lies in the file. */
struct pd_section {
	uint64_t offset, size;
};

#define PD_FEATURE_BITS 256

/* struct perf_file_header, at offset 0. */
struct pd_header {
	char magic[8]; /* "PERFILE2", also tells the byte order */
	uint64_t size;
	uint64_t attr_size; /* attr and the section of its ids */
	struct pd_section attrs, data, event_types;
	uint64_t features[PD_FEATURE_BITS / 64];
};

_Static_assert(sizeof(struct pd_header) == 104, "perf file header");
_Static_assert(sizeof(struct perf_event_attr) >= PD_ATTR_BYTES, "attr has all that is written");

/* The id of the one event. Any number that is not 0, which perf takes for "no id". */
#define PD_EVENT_ID 1

#define PD_BUILD_ID_MAX 20

struct pd_build_id {
	char *name;
	uint8_t id[PD_BUILD_ID_MAX];
	uint8_t len;
	uint8_t is_kernel;
};

/* The longest records: a sample with the deepest chain, a mapping with the longest name. */
#define PD_RECORD_MAX (16 * 1024)

struct vp_perfdata {
	FILE *f; /* borrowed */
	int err; /* once failed, stays failed */
	uint64_t pos;
	struct pd_header header;
	union {
		struct perf_event_attr attr;
		unsigned char attr_bytes[sizeof(struct perf_event_attr)];
	};
	struct pd_maps *maps;
	struct pd_comms *comms;
	struct pd_build_id *build_ids;
	size_t build_id_cnt, build_id_cap;
	size_t len; /* of the record being put together */
	_Alignas(8) unsigned char record[PD_RECORD_MAX];
};

/* Who and when: what ends every record but a sample. */
struct pd_origin {
	uint32_t tgid, tid, cpu;
	uint64_t time_ns;
};

/* Appends to the file. 0 or -EIO. */
int pd_write(struct vp_perfdata *w, const void *data, size_t bytes);

/* Writes the feature sections at w->pos and sets their bits in w->header. 0 or -EIO. */
int pd_write_features(struct vp_perfdata *w, const struct vp_meta *meta);

/*
 * Puts a record together: begin, put, end. end writes it; with the trailer for all but samples.
 * Names are NUL-terminated, at most VP_PATH_MAX + 8 bytes, and padded to 8.
 */
void pd_begin(struct vp_perfdata *w, uint32_t type, uint16_t misc);
void pd_put_bytes(struct vp_perfdata *w, const void *data, size_t bytes);
void pd_put_u32(struct vp_perfdata *w, uint32_t v);
void pd_put_u64(struct vp_perfdata *w, uint64_t v);
void pd_put_name(struct vp_perfdata *w, const char *s);
int pd_end(struct vp_perfdata *w);
int pd_end_with_trailer(struct vp_perfdata *w, const struct pd_origin *o);

/* Moves to an offset to write there. 0 or -EIO. */
int pd_seek(struct vp_perfdata *w, uint64_t offset);

#endif
