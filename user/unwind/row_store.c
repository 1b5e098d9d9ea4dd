/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "row_store.h"

#include "../symbolize/mapped_file.h"
#include "../symbolize/vdso_image.h"
#include "../util/array.h"
#include "../util/clock.h"
#include "row_maps.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define VDSO_ID 0

/* In units of `used`: one unit ago may be an instant ago. */
#define RECENT_AGE 1

enum phase {
	PHASE_ABSENT, /* may be asked for */
	PHASE_LOADING,
	PHASE_LOADED,
	PHASE_FREEING, /* its array is on the way out */
	PHASE_NONE,    /* for good */
};

struct file {
	uint64_t bytes;	   /* its array takes, once known */
	uint64_t start_ns; /* of the last attempt */
	char *name;	   /* if that failed */
	uint32_t row_cnt;
	uint32_t age; /* when last looked at: sorting needs one that stays */
	uint8_t phase;
	uint8_t result; /* of the last attempt */
};

struct vp_row_store {
	struct vp_row_maps maps;
	uint64_t max_bytes;
	uint32_t idle_age; /* in units of `used` */

	pthread_mutex_t lock; /* all below; never held while the kernel is waited for */
	struct file *files;   /* by file_id, maps.cnt of them */
	uint32_t top;	      /* those from here on were never asked for */
	struct vp_row_slot *filled;
	size_t filled_cnt, filled_cap;
	bool publishing; /* a thread sees to those filled */
	struct vp_row_store_stats stats;
};

static const char *const result_text[VP_ROW_RESULT_CNT] = {
	[VP_ROW_CANNOT_OPEN] = "cannot be opened",
	[VP_ROW_OTHER_FILE] = "another file has taken its place",
	[VP_ROW_OVER_LIMIT] = "its rows take more than the memory limit",
	[VP_ROW_NO_ROOM] = "no room within the memory limit",
	[VP_ROW_NO_MEMORY] = "out of memory",
	[VP_ROW_FREED] = "freed",
	[VP_ROW_NOT_ASKED] = "not asked for",
};

const char *vp_row_result_text(int result)
{
	if (result < 0 || result >= VP_ROW_RESULT_CNT)
		return "?";
	return result_text[result] ? result_text[result] : vp_rows_reason_text(result);
}

/* ---- states; with the lock held ---- */

/* Asking again would have the same outcome. */
static bool is_final(int result)
{
	return result != VP_ROWS_OK && (result <= VP_ROWS_TOO_LARGE || result == VP_ROW_OVER_LIMIT);
}

static void set_failed(struct vp_row_store *s, uint32_t file_id, int result, const char *name)
{
	struct file *f = &s->files[file_id];
	bool final = is_final(result);

	f->result = (uint8_t)result;
	f->phase = final ? PHASE_NONE : PHASE_ABSENT;
	free(f->name);
	f->name = name ? strdup(name) : NULL;
	vp_row_maps_set_state(&s->maps, file_id, final ? VP_ROW_FILE_NONE : VP_ROW_FILE_UNKNOWN);
	if (result == VP_ROW_OVER_LIMIT || result == VP_ROW_NO_ROOM)
		s->stats.refused_cnt++;
}

static void set_loaded(struct vp_row_store *s, uint32_t file_id, uint64_t now_ns)
{
	struct file *f = &s->files[file_id];
	uint64_t took_ns = now_ns - f->start_ns;

	f->phase = PHASE_LOADED;
	f->result = VP_ROWS_OK;
	free(f->name);
	f->name = NULL;
	s->stats.row_cnt += f->row_cnt;
	s->stats.load_cnt++;
	s->stats.load_ns += took_ns;
	if (took_ns > s->stats.max_load_ns)
		s->stats.max_load_ns = took_ns;
}

/* Its array follows when the lock is free: see drop(). */
static void set_freeing(struct vp_row_store *s, uint32_t file_id)
{
	struct file *f = &s->files[file_id];

	f->phase = PHASE_FREEING;
	f->result = VP_ROW_FREED;
	vp_row_maps_set_state(&s->maps, file_id, VP_ROW_FILE_UNKNOWN);
	s->stats.bytes -= f->bytes;
	s->stats.row_cnt -= f->row_cnt;
}

/* ---- who leaves ---- */

struct victims {
	uint32_t *file_ids;
	size_t cnt, cap;
};

static uint32_t age_of(const struct vp_row_store *s, uint32_t file_id, uint64_t now_ns)
{
	/* The kernel side writes it meanwhile: any value it has had is as good. */
	uint32_t used = __atomic_load_n(&s->maps.files[file_id].used, __ATOMIC_RELAXED);
	uint32_t age = (uint32_t)(now_ns >> VP_ROW_USED_SHIFT) - used;

	return age > INT32_MAX ? 0 : age; /* used since now_ns was read */
}

/* Loaded files not used for more than `age`; where memory is short, some of them. */
static void find_older(struct vp_row_store *s, uint32_t age, uint64_t now_ns, struct victims *v)
{
	for (uint32_t i = VDSO_ID + 1; i < s->top; i++) {
		struct file *f = &s->files[i];

		if (f->phase != PHASE_LOADED)
			continue;
		f->age = age_of(s, i, now_ns);
		if (f->age <= age)
			continue;
		if (vp_array_room((void **)&v->file_ids, &v->cap, v->cnt, 1, sizeof(*v->file_ids)))
			return;
		v->file_ids[v->cnt++] = i;
	}
}

static int oldest_first(const void *a, const void *b, void *ctx)
{
	const struct file *files = ctx;
	uint32_t age_a = files[*(const uint32_t *)a].age, age_b = files[*(const uint32_t *)b].age;

	return (age_a < age_b) - (age_a > age_b);
}

/* The least recently used files that hold so many bytes together, or none. */
static void find_least_used(struct vp_row_store *s, uint64_t bytes, struct victims *v)
{
	uint64_t found = 0;
	size_t n = 0;

	find_older(s, RECENT_AGE, vp_now_ns(), v);
	if (v->cnt)
		qsort_r(v->file_ids, v->cnt, sizeof(*v->file_ids), oldest_first, s->files);
	while (n < v->cnt && found < bytes)
		found += s->files[v->file_ids[n++]].bytes;
	v->cnt = found < bytes ? 0 : n;
}

/* Without the lock, because it waits for the kernel. Frees what is in v. */
static void drop(struct vp_row_store *s, struct victims *v)
{
	if (v->cnt) {
		vp_row_maps_drop(&s->maps, v->file_ids, v->cnt);
		pthread_mutex_lock(&s->lock);
		for (size_t i = 0; i < v->cnt; i++)
			s->files[v->file_ids[i]].phase = PHASE_ABSENT;
		pthread_mutex_unlock(&s->lock);
	}
	free(v->file_ids);
}

void vp_row_store_trim(struct vp_row_store *s, uint64_t now_ns)
{
	struct victims v = {0};

	pthread_mutex_lock(&s->lock);
	find_older(s, s->idle_age, now_ns, &v);
	for (size_t i = 0; i < v.cnt; i++)
		set_freeing(s, v.file_ids[i]);
	s->stats.idle_cnt += v.cnt;
	pthread_mutex_unlock(&s->lock);
	drop(s, &v);
}

/* ---- room; with the lock held ---- */

/* Whether there is room for so many bytes once those in v have left. */
static int find_room(struct vp_row_store *s, uint64_t bytes, struct victims *v)
{
	if (bytes > s->max_bytes)
		return VP_ROW_OVER_LIMIT;
	if (s->stats.bytes + bytes <= s->max_bytes)
		return VP_ROWS_OK;
	find_least_used(s, s->stats.bytes + bytes - s->max_bytes, v);
	return v->cnt ? VP_ROWS_OK : VP_ROW_NO_ROOM;
}

static int take_room(struct vp_row_store *s, uint64_t bytes, struct victims *v)
{
	int result = find_room(s, bytes, v);

	if (result != VP_ROWS_OK)
		return result;
	for (size_t i = 0; i < v->cnt; i++)
		set_freeing(s, v->file_ids[i]);
	s->stats.evicted_cnt += v->cnt;
	s->stats.bytes += bytes;
	if (s->stats.bytes > s->stats.peak_bytes)
		s->stats.peak_bytes = s->stats.bytes;
	return VP_ROWS_OK;
}

/* A file that found no room before is compiled again only if it would find some now. */
static int check_room(struct vp_row_store *s, uint32_t file_id)
{
	struct victims v = {0};
	int result = find_room(s, s->files[file_id].bytes, &v);

	free(v.file_ids);
	return result;
}

/* ---- loading ---- */

static struct file *get_wanted(struct vp_row_store *s, uint32_t file_id)
{
	struct file *f = file_id < s->maps.cnt ? &s->files[file_id] : NULL;

	return f && f->phase == PHASE_ABSENT ? f : NULL;
}

bool vp_row_store_wants(struct vp_row_store *s, uint32_t file_id)
{
	bool wanted;

	pthread_mutex_lock(&s->lock);
	wanted = get_wanted(s, file_id) != NULL;
	pthread_mutex_unlock(&s->lock);
	return wanted;
}

/* Whether the caller alone is to load it now. */
static bool reserve(struct vp_row_store *s, uint32_t file_id, const char *name)
{
	struct file *f;
	int result = VP_ROWS_OK;

	pthread_mutex_lock(&s->lock);
	f = get_wanted(s, file_id);
	if (f) {
		f->start_ns = vp_now_ns();
		if (file_id >= s->top)
			s->top = file_id + 1;
		result = check_room(s, file_id);
		if (result == VP_ROWS_OK)
			f->phase = PHASE_LOADING;
		else
			set_failed(s, file_id, result, name);
	}
	pthread_mutex_unlock(&s->lock);
	return f && result == VP_ROWS_OK;
}

static int make_room(struct vp_row_store *s, uint32_t file_id, const struct vp_rows *rows,
		     uint64_t bytes)
{
	struct file *f = &s->files[file_id];
	struct victims v = {0};
	int result;

	pthread_mutex_lock(&s->lock);
	f->bytes = bytes;
	f->row_cnt = rows->cnt;
	result = take_room(s, bytes, &v);
	if (result == VP_ROWS_OK)
		s->stats.bad_fde_cnt += rows->stats.bad_fde_cnt;
	pthread_mutex_unlock(&s->lock);
	drop(s, &v);
	return result;
}

/* Makes the array and leaves it to publish(). */
static int fill(struct vp_row_store *s, struct vp_row_slot *slot, const struct vp_rows *rows)
{
	int err;

	slot->fd = vp_row_array_new(rows, &slot->desc);
	if (slot->fd < 0)
		return VP_ROW_NO_MEMORY;
	pthread_mutex_lock(&s->lock);
	err = vp_array_room((void **)&s->filled, &s->filled_cap, s->filled_cnt, 1, sizeof(*slot));
	if (!err)
		s->filled[s->filled_cnt++] = *slot;
	pthread_mutex_unlock(&s->lock);
	if (!err)
		return VP_ROWS_OK;
	close(slot->fd);
	return VP_ROW_NO_MEMORY;
}

static int fill_rows(struct vp_row_store *s, uint32_t file_id, const struct vp_rows *rows)
{
	struct vp_row_slot slot = {.file_id = file_id, .desc = vp_rows_layout(rows)};
	uint64_t bytes = vp_row_array_bytes(slot.desc.elem_cnt);
	int result = make_room(s, file_id, rows, bytes);

	if (result != VP_ROWS_OK)
		return result;
	result = fill(s, &slot, rows);
	if (result != VP_ROWS_OK) {
		pthread_mutex_lock(&s->lock);
		s->stats.bytes -= bytes;
		pthread_mutex_unlock(&s->lock);
	}
	return result;
}

/* With the lock held, which it gives up while it waits for the kernel. */
static void put_filled(struct vp_row_store *s)
{
	struct vp_row_slot *slots = s->filled;
	size_t cnt = s->filled_cnt, done;
	uint64_t now_ns;

	s->filled = NULL;
	s->filled_cnt = s->filled_cap = 0;
	pthread_mutex_unlock(&s->lock);
	done = vp_row_maps_put(&s->maps, slots, cnt, vp_now_ns());
	now_ns = vp_now_ns();
	for (size_t i = 0; i < cnt; i++)
		close(slots[i].fd);
	pthread_mutex_lock(&s->lock);
	for (size_t i = 0; i < done; i++)
		set_loaded(s, slots[i].file_id, now_ns);
	for (size_t i = done; i < cnt; i++) {
		s->stats.bytes -= s->files[slots[i].file_id].bytes;
		set_failed(s, slots[i].file_id, VP_ROW_NO_MEMORY, NULL);
	}
	free(slots);
}

/*
 * A thread that finds another one waiting leaves its array to that: with a grace period for each
 * file, and not for all that are ready, a hundred files would take a second.
 */
static void publish(struct vp_row_store *s)
{
	pthread_mutex_lock(&s->lock);
	if (!s->publishing) {
		s->publishing = true;
		while (s->filled_cnt)
			put_filled(s);
		s->publishing = false;
	}
	pthread_mutex_unlock(&s->lock);
}

/* Takes rows, which the result of compiling them tells of. */
static void store_rows(struct vp_row_store *s, uint32_t file_id, const char *name, int result,
		       struct vp_rows *rows)
{
	if (result < 0)
		result = VP_ROW_NO_MEMORY;
	if (result == VP_ROWS_OK)
		result = fill_rows(s, file_id, rows);
	vp_rows_free(rows);
	if (result == VP_ROWS_OK) {
		publish(s);
		return;
	}
	pthread_mutex_lock(&s->lock);
	set_failed(s, file_id, result, name);
	pthread_mutex_unlock(&s->lock);
}

static int compile_file(struct vp_rows **out, const struct vp_mapped_file *f)
{
	int fd = mapped_file_open(f, NULL), result;

	if (fd < 0)
		return fd == -ESTALE ? VP_ROW_OTHER_FILE : VP_ROW_CANNOT_OPEN;
	result = vp_rows_compile(out, fd);
	close(fd);
	return result;
}

void vp_row_store_load(struct vp_row_store *s, uint32_t file_id, const struct vp_mapped_file *f)
{
	struct vp_rows *rows = NULL;

	if (reserve(s, file_id, f->name)) {
		int result = compile_file(&rows, f);

		store_rows(s, file_id, f->name, result, rows);
	}
}

void vp_row_store_load_vdso(struct vp_row_store *s)
{
	struct vp_rows *rows = NULL;
	size_t size;
	const void *image = vdso_image(&size);

	if (reserve(s, VDSO_ID, "[vdso]")) {
		int result =
			image ? vp_rows_compile_memory(&rows, image, size) : VP_ROW_CANNOT_OPEN;

		store_rows(s, VDSO_ID, "[vdso]", result, rows);
	}
}

/* ---- what became of them ---- */

/* With the lock held. */
static int result_of(const struct vp_row_store *s, uint32_t file_id)
{
	const struct file *f;

	if (file_id >= s->top)
		return VP_ROW_NOT_ASKED;
	f = &s->files[file_id];
	return f->start_ns && f->phase != PHASE_LOADING ? f->result : VP_ROW_NOT_ASKED;
}

int vp_row_store_result(struct vp_row_store *s, uint32_t file_id)
{
	int result;

	pthread_mutex_lock(&s->lock);
	result = result_of(s, file_id);
	pthread_mutex_unlock(&s->lock);
	return result;
}

void vp_row_store_get_stats(struct vp_row_store *s, struct vp_row_store_stats *out)
{
	pthread_mutex_lock(&s->lock);
	*out = s->stats;
	for (uint32_t i = 0; i < s->top; i++)
		out->file_cnt[result_of(s, i)]++;
	pthread_mutex_unlock(&s->lock);
	out->file_cnt[VP_ROW_NOT_ASKED] = 0;
}

void vp_row_store_each_failed(struct vp_row_store *s,
			      void (*fn)(void *ctx, const char *name, int result), void *ctx)
{
	pthread_mutex_lock(&s->lock);
	for (uint32_t i = 0; i < s->top; i++) {
		if (s->files[i].name)
			fn(ctx, s->files[i].name, s->files[i].result);
	}
	pthread_mutex_unlock(&s->lock);
}

/* ---- life ---- */

int vp_row_store_new(struct vp_row_store **out, const struct vp_row_store_opts *o, struct vp_err *e)
{
	struct vp_row_store *s = calloc(1, sizeof(*s));
	int err;

	if (!s)
		return vp_err_set(e, -ENOMEM, "out of memory");
	pthread_mutex_init(&s->lock, NULL);
	s->max_bytes = o->max_bytes;
	s->idle_age = (uint32_t)(o->idle_ns >> VP_ROW_USED_SHIFT) + RECENT_AGE;
	err = vp_row_maps_open(&s->maps, o->arrays_fd, o->files_fd, e);
	if (!err) {
		s->files = calloc(s->maps.cnt, sizeof(*s->files));
		if (!s->files)
			err = vp_err_set(e, -ENOMEM, "out of memory");
	}
	if (err) {
		vp_row_store_free(s);
		return err;
	}
	*out = s;
	return 0;
}

void vp_row_store_free(struct vp_row_store *s)
{
	if (!s)
		return;
	for (uint32_t i = 0; s->files && i < s->top; i++)
		free(s->files[i].name);
	free(s->files);
	free(s->filled);
	vp_row_maps_close(&s->maps);
	pthread_mutex_destroy(&s->lock);
	free(s);
}
