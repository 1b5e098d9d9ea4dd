/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "files.h"

#include "../util/array.h"
#include "mapping_text.h"

#include <string.h>

/* The kernel side hands out ids from 1 up and stops at the size of its table, 65536. */
#define FILE_ID_MAX (1U << 20)

#define ROWS_WAIT_MIN_NS 100000000ULL
#define ROWS_WAIT_MAX_NS 5000000000ULL

static char *stripped_name(const struct vp_mmap2 *m)
{
	struct vp_mmap2 copy = *m;

	vp_mapping_strip_deleted(&copy);
	return strdup(copy.name);
}

int vp_files_add(struct vp_files *f, const struct vp_mmap2 *m)
{
	uint32_t id = m->rec.file_id;
	struct vp_file *file;

	if (id == VP_FILE_ID_NONE || id > FILE_ID_MAX)
		return 0;
	if (id >= f->cnt) {
		if (vp_array_room((void **)&f->file, &f->cap, f->cnt, id + 1 - f->cnt,
				  sizeof(*f->file)))
			return -ENOMEM;
		memset(f->file + f->cnt, 0, (id + 1 - f->cnt) * sizeof(*f->file));
		f->cnt = id + 1;
	}
	file = &f->file[id];
	file->rec = m->rec;
	if (!file->name)
		file->name = stripped_name(m);
	return file->name ? 0 : -ENOMEM;
}

struct vp_file *vp_files_get(const struct vp_files *f, uint32_t file_id)
{
	return file_id < f->cnt && f->file[file_id].name ? &f->file[file_id] : NULL;
}

bool vp_file_ask_rows(struct vp_file *file, uint64_t ts_ns)
{
	uint64_t again_ns = file->rows_asked_ns + file->rows_wait_ns;

	if (ts_ns < again_ns)
		return false;
	if (!file->rows_wait_ns || ts_ns - again_ns > file->rows_wait_ns)
		file->rows_wait_ns = ROWS_WAIT_MIN_NS; /* the last time it did help */
	else if (file->rows_wait_ns < ROWS_WAIT_MAX_NS)
		file->rows_wait_ns *= 2;
	file->rows_asked_ns = ts_ns;
	return true;
}

struct vp_mapped_file vp_file_mapped(const struct vp_file *file, uint32_t tgid,
				     const struct vp_xmap *x)
{
	const struct vp_rec_mmap2 *rec = &file->rec;

	return (struct vp_mapped_file){
		.tgid = x ? tgid : rec->proc.tgid,
		.start = x ? x->start : rec->perf.addr,
		.end = x ? x->end : rec->perf.addr + rec->perf.len,
		.name = file->name,
		.key = rec->file,
		.user_dev_major = rec->perf.maj,
		.user_dev_minor = rec->perf.min,
		.user_ino = rec->perf.ino,
	};
}

bool vp_file_is_memory(const struct vp_file *file)
{
	return !strncmp(file->name, "/memfd:", 7);
}

void vp_files_free(struct vp_files *f)
{
	for (size_t i = 0; i < f->cnt; i++)
		free(f->file[i].name);
	free(f->file);
	*f = (struct vp_files){0};
}
