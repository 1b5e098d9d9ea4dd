/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "debugdata.h"

#include <errno.h>
#include <lzma.h>
#include <stdint.h>
#include <stdlib.h>

#define UNPACKED_MAX_BYTES   (64U << 20)
#define DICTIONARY_MAX_BYTES (80U << 20)
#define UNPACKED_FIRST_BYTES (256U << 10)

static int lzma_error(lzma_ret ret)
{
	switch (ret) {
	case LZMA_MEM_ERROR:
		return -ENOMEM;
	case LZMA_MEMLIMIT_ERROR:
		return -EFBIG;
	default:
		return -ENOEXEC;
	}
}

/* Room for more output. */
static int grow(lzma_stream *z, uint8_t **out, size_t *cap)
{
	size_t used = *cap - z->avail_out, new_cap = *cap ? *cap * 2 : UNPACKED_FIRST_BYTES;
	uint8_t *p;

	if (new_cap > UNPACKED_MAX_BYTES)
		return -EFBIG;
	p = realloc(*out, new_cap);
	if (!p)
		return -ENOMEM;
	*out = p;
	*cap = new_cap;
	z->next_out = p + used;
	z->avail_out = new_cap - used;
	return 0;
}

static int unpack(lzma_stream *z, uint8_t **out, size_t *cap)
{
	lzma_ret ret = LZMA_OK;
	int err = 0;

	while (!err && ret == LZMA_OK) {
		err = z->avail_out ? 0 : grow(z, out, cap);
		if (!err)
			ret = lzma_code(z, LZMA_FINISH);
	}
	if (!err && ret != LZMA_STREAM_END)
		err = lzma_error(ret);
	return err;
}

void *debugdata_unpack(const void *packed, size_t packed_size, size_t *size, int *err)
{
	lzma_stream z = LZMA_STREAM_INIT;
	uint8_t *out = NULL;
	size_t cap = 0;
	lzma_ret ret = lzma_stream_decoder(&z, DICTIONARY_MAX_BYTES, 0);

	z.next_in = packed;
	z.avail_in = packed_size;
	*err = ret == LZMA_OK ? unpack(&z, &out, &cap) : lzma_error(ret);
	*size = cap - z.avail_out;
	lzma_end(&z);
	if (!*err)
		return out;
	free(out);
	return NULL;
}
