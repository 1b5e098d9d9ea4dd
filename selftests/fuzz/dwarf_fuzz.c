/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The reader of debug information, with a second file as its supplementary file, package and split
 * files. An input ends with the size of that file (4 bytes, native) and a byte of what it is
 * for; if there are not as many bytes the file is its own.
 */
#include "symbolize/dwarf_info.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define AS_ALT	   1
#define AS_PACKAGE 2

struct input {
	const uint8_t *data, *other;
	size_t size, other_size;
	int opens_left;
	uint8_t flags;
};

static struct input parse(const uint8_t *data, size_t size)
{
	struct input in = {.data = data, .other = data, .opens_left = 4};
	uint32_t other_size;

	in.size = in.other_size = size;
	if (size < sizeof(other_size) + 1)
		return in;
	in.flags = data[--size];
	size -= sizeof(other_size);
	memcpy(&other_size, data + size, sizeof(other_size));
	if (other_size >= size)
		return in;
	in.size = size - other_size;
	in.other = data + in.size;
	in.other_size = other_size;
	return in;
}

static int other_file(const struct input *in)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	if (fd >= 0 && write(fd, in->other, in->other_size) != (ssize_t)in->other_size)
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
	return in->opens_left-- > 0 ? other_file(in) : -1;
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
	struct input in = parse(data, size);
	struct dwarf_opts opts = {
		.max_bytes = 64 << 10,
		.max_inflate_bytes = 16 << 20,
		.open_dwo = open_dwo,
		.ctx = &in,
	};
	struct dwarf_info *d = NULL;
	int fd;

	if (dwarf_info_open_memory(&d, in.data, in.size, &opts))
		return 0;
	fd = other_file(&in);
	if (in.flags & AS_ALT)
		dwarf_info_set_alt(d, fd);
	if (in.flags & AS_PACKAGE)
		dwarf_info_set_package(d, fd);
	look_up(d, 0, 0x2000, 5);
	look_up(d, 0x400000, 0x402000, 5);
	look_up(d, UINT64_MAX - 16, UINT64_MAX, 5);
	dwarf_info_close(d);
	close(fd);
	return 0;
}
