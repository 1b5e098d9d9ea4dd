/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "row_maps.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define BATCH_MAX 64

static size_t page_align(size_t bytes)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	return (bytes + page - 1) / page * page;
}

/* An mmapable array (kernel/bpf/arraymap.c): the struct has a page of its own before the data. */
uint64_t vp_row_array_bytes(uint32_t elem_cnt)
{
	return page_align(1) + page_align((size_t)elem_cnt * VP_ROWS_ELEM_BYTES);
}

static int new_array(const char *name, uint32_t elem_cnt)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = BPF_F_INNER_MAP | BPF_F_MMAPABLE);

	return bpf_map_create(BPF_MAP_TYPE_ARRAY, name, sizeof(__u32), VP_ROWS_ELEM_BYTES, elem_cnt,
			      &opts);
}

int vp_row_array_new(const struct vp_rows *rows, const struct vp_rows_desc *desc)
{
	size_t bytes = page_align((size_t)desc->elem_cnt * VP_ROWS_ELEM_BYTES);
	int fd = new_array("vp_rows", desc->elem_cnt);
	void *elems;

	if (fd < 0)
		return fd;
	elems = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (elems == MAP_FAILED) {
		int err = -errno;

		close(fd);
		return err;
	}
	vp_rows_fill(rows, desc, elems);
	munmap(elems, bytes);
	return fd;
}

static int map_files(struct vp_row_maps *m)
{
	struct bpf_map_info info = {0};
	__u32 size = sizeof(info);
	void *files;

	if (bpf_obj_get_info_by_fd(m->files_fd, &info, &size))
		return -errno;
	if (info.value_size != sizeof(*m->files))
		return -EINVAL;
	m->cnt = info.max_entries;
	m->mapped_bytes = page_align(m->cnt * sizeof(*m->files));
	files = mmap(NULL, m->mapped_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, m->files_fd, 0);
	if (files == MAP_FAILED)
		return -errno;
	m->files = files;
	return 0;
}

static int open_all(struct vp_row_maps *m, int arrays_fd, int files_fd)
{
	int err;

	m->arrays_fd = fcntl(arrays_fd, F_DUPFD_CLOEXEC, 0);
	m->files_fd = m->arrays_fd < 0 ? -1 : fcntl(files_fd, F_DUPFD_CLOEXEC, 0);
	if (m->files_fd < 0)
		return -errno;
	err = map_files(m);
	if (err)
		return err;
	m->empty_fd = new_array("vp_no_rows", 1);
	return m->empty_fd < 0 ? m->empty_fd : 0;
}

int vp_row_maps_open(struct vp_row_maps *m, int arrays_fd, int files_fd, struct vp_err *e)
{
	int err;

	*m = (struct vp_row_maps){.arrays_fd = -1, .files_fd = -1, .empty_fd = -1};
	err = open_all(m, arrays_fd, files_fd);
	if (err) {
		vp_row_maps_close(m);
		return vp_err_set(e, err, "maps of unwind rows: %s%s", strerror(-err),
				  vp_err_hint(err));
	}
	return 0;
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

void vp_row_maps_close(struct vp_row_maps *m)
{
	if (m->files)
		munmap(m->files, m->mapped_bytes);
	m->files = NULL;
	close_fd(&m->arrays_fd);
	close_fd(&m->files_fd);
	close_fd(&m->empty_fd);
}

/*
 * How many, from the first, are in place now. The kernel waits for a grace period per call, so
 * in one; if it has no batches for maps of maps, one by one.
 */
static size_t put_arrays(int arrays_fd, const __u32 *file_ids, const int *fds, size_t cnt)
{
	__u32 done = (__u32)cnt;
	size_t i = 0;

	if (!bpf_map_update_batch(arrays_fd, file_ids, fds, &done, NULL))
		return cnt;
	while (i < cnt && !bpf_map_update_elem(arrays_fd, &file_ids[i], &fds[i], BPF_ANY))
		i++;
	return i;
}

void vp_row_maps_set_state(struct vp_row_maps *m, uint32_t file_id, uint32_t state)
{
	__atomic_store_n(&m->files[file_id].state, state, __ATOMIC_RELEASE);
}

/*
 * Written while state is not READY. A look-up that began before the file's last rows were freed
 * may see a mixture of two descs: it is bounded by the array, and one frame may be wrong.
 */
static void tell_kernel(struct vp_row_maps *m, const struct vp_row_slot *slot, uint64_t now_ns)
{
	struct vp_row_file *file = &m->files[slot->file_id];

	file->desc = slot->desc;
	file->used = (__u32)(now_ns >> VP_ROW_USED_SHIFT);
	vp_row_maps_set_state(m, slot->file_id, VP_ROW_FILE_READY);
}

static void take_back(struct vp_row_maps *m, const struct vp_row_slot *slot)
{
	vp_row_maps_set_state(m, slot->file_id, VP_ROW_FILE_UNKNOWN);
	m->files[slot->file_id].desc = (struct vp_rows_desc){0};
}

/*
 * Where there has never been an array the kernel side may be told before: it finds none, or this
 * one. So rows are in use while we wait for the grace period.
 */
static size_t put_batch(struct vp_row_maps *m, const struct vp_row_slot *slots, size_t cnt,
			uint64_t now_ns)
{
	__u32 file_ids[BATCH_MAX] = {0};
	bool told[BATCH_MAX];
	int fds[BATCH_MAX] = {0};
	size_t done;

	for (size_t i = 0; i < cnt; i++) {
		file_ids[i] = slots[i].file_id;
		fds[i] = slots[i].fd;
		told[i] = !m->files[slots[i].file_id].desc.elem_cnt;
		if (told[i])
			tell_kernel(m, &slots[i], now_ns);
	}
	done = put_arrays(m->arrays_fd, file_ids, fds, cnt);
	for (size_t i = 0; i < done; i++)
		if (!told[i])
			tell_kernel(m, &slots[i], now_ns);
	for (size_t i = done; i < cnt; i++)
		if (told[i])
			take_back(m, &slots[i]);
	return done;
}

static size_t batch_of(size_t left)
{
	return left < BATCH_MAX ? left : BATCH_MAX;
}

size_t vp_row_maps_put(struct vp_row_maps *m, const struct vp_row_slot *slots, size_t cnt,
		       uint64_t now_ns)
{
	size_t done = 0;

	while (done < cnt) {
		size_t n = batch_of(cnt - done), put = put_batch(m, slots + done, n, now_ns);

		done += put;
		if (put < n)
			break;
	}
	return done;
}

/*
 * Not by deletion, which has no batches: a hundred idle files would take seconds. Failing only
 * means that an array stays until its place is needed again.
 */
void vp_row_maps_drop(struct vp_row_maps *m, const uint32_t *file_ids, size_t cnt)
{
	int fds[BATCH_MAX];

	for (size_t i = 0; i < BATCH_MAX; i++)
		fds[i] = m->empty_fd;
	for (size_t done = 0; done < cnt; done += batch_of(cnt - done))
		put_arrays(m->arrays_fd, file_ids + done, fds, batch_of(cnt - done));
}
