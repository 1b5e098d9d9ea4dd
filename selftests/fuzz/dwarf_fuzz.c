/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The reader of debug information, also with the file as its own supplementary and split files. */
#include "symbolize/dwarf_info.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
	const uint8_t *data;
	size_t size;
	int opens_left;
};

static int as_file(const struct input *in)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	if (fd >= 0 && write(fd, in->data, in->size) != (ssize_t)in->size)
		abort();
	return fd;
}

static int open_dwo(void *ctx, const char *comp_dir, const char *name, uint64_t id)
{
	struct input *in = ctx;

	(void)comp_dir;
	(void)id;
	if (strlen(name) > 65536)
		abort();
	return in->opens_left-- > 0 ? as_file(in) : -1;
}

static void look_up(struct dwarf_info *d, uint64_t from, uint64_t to, uint64_t step)
{
	for (uint64_t at = from; at - from < to - from; at += step) {
		const struct dwarf_frame *f;
		size_t cnt = dwarf_info_find(d, at, &f);

		for (size_t i = 0; i < cnt; i++) {
			if (f[i].inlined != (i + 1 < cnt))
				abort();
			if ((f[i].function && !f[i].function[0]) || (f[i].file && !f[i].file[0]))
				abort();
		}
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {data, size, 4};
	struct dwarf_opts opts = {
		.max_bytes = 64 << 10,
		.max_inflate_bytes = 16 << 20,
		.open_dwo = open_dwo,
		.ctx = &in,
	};
	struct dwarf_info *d = NULL;
	int fd;

	if (dwarf_info_open_memory(&d, data, size, &opts))
		return 0;
	fd = as_file(&in);
	if (size && data[size - 1] & 1)
		dwarf_info_set_alt(d, fd);
	if (size && data[size - 1] & 2)
		dwarf_info_set_package(d, fd);
	look_up(d, 0, 0x2000, 5);
	look_up(d, 0x400000, 0x402000, 5);
	look_up(d, UINT64_MAX - 16, UINT64_MAX, 5);
	dwarf_info_close(d);
	close(fd);
	return 0;
}
