// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The feature sections of perf.data: what is known of the recording besides its records.
 *
 *	data | section table: {offset, size} per feature | contents, in the same order
 *
 * The table's entries are in the order of the bits in the header, which says which are there.
 * A string is a u32 length, then that many bytes: text, NUL, zeros up to a multiple of 64.
 */
#include "perfdata_int.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* enum in tools/perf/util/header.h */
#define FEATURE_BUILD_ID    2
#define FEATURE_HOSTNAME    3
#define FEATURE_OSRELEASE   4
#define FEATURE_VERSION	    5
#define FEATURE_ARCH	    6
#define FEATURE_NRCPUS	    7
#define FEATURE_CPUDESC	    8
#define FEATURE_TOTAL_MEM   10
#define FEATURE_CMDLINE	    11
#define FEATURE_EVENT_DESC  12
#define FEATURE_SAMPLE_TIME 21

#define STRING_ALIGN 64

static const unsigned char zeros[STRING_ALIGN];

static size_t padding(size_t len, size_t align)
{
	return (align - len % align) % align;
}

static int put_string(struct vp_perfdata *w, const char *s)
{
	size_t len = s ? strlen(s) + 1 : 1;
	uint32_t padded = (uint32_t)(len + padding(len, STRING_ALIGN));

	pd_write(w, &padded, sizeof(padded));
	pd_write(w, s ? s : "", len);
	return pd_write(w, zeros, padded - len);
}

static int put_hostname(struct vp_perfdata *w, const struct vp_meta *meta)
{
	return put_string(w, meta->hostname);
}

static int put_release(struct vp_perfdata *w, const struct vp_meta *meta)
{
	return put_string(w, meta->release);
}

static int put_version(struct vp_perfdata *w, const struct vp_meta *meta)
{
	return put_string(w, meta->version);
}

static int put_arch(struct vp_perfdata *w, const struct vp_meta *meta)
{
	return put_string(w, meta->arch);
}

static int put_cpu_desc(struct vp_perfdata *w, const struct vp_meta *meta)
{
	return put_string(w, meta->cpu_desc);
}

/* Available first; perf report --header shows both. */
static int put_nrcpus(struct vp_perfdata *w, const struct vp_meta *meta)
{
	uint32_t cnt[2] = {meta->cpus_available, meta->cpus_online};

	return pd_write(w, cnt, sizeof(cnt));
}

static int put_total_mem(struct vp_perfdata *w, const struct vp_meta *meta)
{
	return pd_write(w, &meta->total_mem_kb, sizeof(meta->total_mem_kb));
}

static int put_cmdline(struct vp_perfdata *w, const struct vp_meta *meta)
{
	uint32_t argc = (uint32_t)meta->argc;

	pd_write(w, &argc, sizeof(argc));
	for (int i = 0; i < meta->argc; i++)
		put_string(w, meta->argv[i]);
	return w->err;
}

/*
 * The events with their names: u32 count, u32 bytes of an attr, then per event the attr,
 * u32 count of ids, the name, the ids (u64). Without it perf makes up "cpu-clock:HG".
 */
static int put_event_desc(struct vp_perfdata *w, const struct vp_meta *meta)
{
	uint32_t head[2] = {1, PD_ATTR_BYTES};
	uint32_t id_cnt = 1;
	uint64_t id = PD_EVENT_ID;

	pd_write(w, head, sizeof(head));
	pd_write(w, w->attr_bytes, PD_ATTR_BYTES);
	pd_write(w, &id_cnt, sizeof(id_cnt));
	put_string(w, meta->event);
	return pd_write(w, &id, sizeof(id));
}

static int put_sample_time(struct vp_perfdata *w, const struct vp_meta *meta)
{
	uint64_t time[2] = {meta->first_ns, meta->last_ns};

	return pd_write(w, time, sizeof(time));
}

/* struct perf_record_header_build_id; the name follows, padded to 8. */
struct build_id_event {
	struct perf_event_header header;
	uint32_t pid; /* -1: the host, not a guest */
	uint8_t id[PD_BUILD_ID_MAX];
	uint8_t len; /* valid with misc BUILD_ID_SIZE; else perf assumes 20 */
	uint8_t reserved[3];
};

_Static_assert(sizeof(struct build_id_event) == 36, "build id entry up to the name");

#define MISC_BUILD_ID_SIZE (1 << 15)

static int put_build_id(struct vp_perfdata *w, const struct pd_build_id *b)
{
	size_t name_bytes = strlen(b->name) + 1;
	size_t pad = padding(sizeof(struct build_id_event) + name_bytes, 8);
	struct build_id_event ev = {
		.header.misc = MISC_BUILD_ID_SIZE,
		.header.size = (uint16_t)(sizeof(ev) + name_bytes + pad),
		.pid = UINT32_MAX,
		.len = b->len,
	};

	ev.header.misc |= b->is_kernel ? PERF_RECORD_MISC_KERNEL : PERF_RECORD_MISC_USER;
	memcpy(ev.id, b->id, b->len);
	pd_write(w, &ev, sizeof(ev));
	pd_write(w, b->name, name_bytes);
	return pd_write(w, zeros, pad);
}

static int put_build_ids(struct vp_perfdata *w, const struct vp_meta *meta)
{
	(void)meta;
	for (size_t i = 0; i < w->build_id_cnt; i++)
		put_build_id(w, &w->build_ids[i]);
	return w->err;
}

/* In the order of the bits, as the section table must be. */
static const struct feature {
	int bit;
	int (*put)(struct vp_perfdata *w, const struct vp_meta *meta);
} features[] = {
	{FEATURE_BUILD_ID, put_build_ids},
	{FEATURE_HOSTNAME, put_hostname},
	{FEATURE_OSRELEASE, put_release},
	{FEATURE_VERSION, put_version},
	{FEATURE_ARCH, put_arch},
	{FEATURE_NRCPUS, put_nrcpus},
	{FEATURE_CPUDESC, put_cpu_desc},
	{FEATURE_TOTAL_MEM, put_total_mem},
	{FEATURE_CMDLINE, put_cmdline},
	{FEATURE_EVENT_DESC, put_event_desc},
	{FEATURE_SAMPLE_TIME, put_sample_time},
};

#define FEATURE_CNT (sizeof(features) / sizeof(features[0]))

/* What was never learnt is left out rather than written as nothing. */
static int is_known(const struct vp_perfdata *w, const struct vp_meta *meta, int bit)
{
	switch (bit) {
	case FEATURE_BUILD_ID:
		return w->build_id_cnt > 0;
	case FEATURE_CPUDESC:
		return meta->cpu_desc && meta->cpu_desc[0];
	case FEATURE_CMDLINE:
		return meta->argc > 0;
	case FEATURE_SAMPLE_TIME:
		return meta->first_ns != 0;
	default:
		return 1;
	}
}

int pd_write_features(struct vp_perfdata *w, const struct vp_meta *meta)
{
	struct pd_section table[FEATURE_CNT] = {0};
	uint64_t table_pos = w->pos;
	size_t cnt = 0;

	for (size_t i = 0; i < FEATURE_CNT; i++)
		cnt += is_known(w, meta, features[i].bit);
	pd_write(w, table, cnt * sizeof(table[0])); /* to be filled in below */

	cnt = 0;
	for (size_t i = 0; i < FEATURE_CNT; i++) {
		int bit = features[i].bit;

		if (!is_known(w, meta, bit))
			continue;
		table[cnt].offset = w->pos;
		features[i].put(w, meta);
		table[cnt].size = w->pos - table[cnt].offset;
		cnt++;
		w->header.features[bit / 64] |= 1ull << (bit % 64);
	}
	pd_seek(w, table_pos);
	return pd_write(w, table, cnt * sizeof(table[0]));
}

int vp_perfdata_add_build_id(struct vp_perfdata *w, const char *name, const uint8_t *id,
			     uint8_t len, int is_kernel)
{
	struct pd_build_id b = {.len = len, .is_kernel = is_kernel != 0};

	if (!len || len > PD_BUILD_ID_MAX || strlen(name) > VP_PATH_MAX)
		return -EINVAL;
	if (w->build_id_cnt == w->build_id_cap) {
		size_t cap = w->build_id_cap ? w->build_id_cap * 2 : 64;
		void *grown = realloc(w->build_ids, cap * sizeof(b));

		if (!grown)
			return -ENOMEM;
		w->build_ids = grown;
		w->build_id_cap = cap;
	}
	memcpy(b.id, id, len);
	b.name = strdup(name);
	if (!b.name)
		return -ENOMEM;
	w->build_ids[w->build_id_cnt++] = b;
	return 0;
}
