/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Symbols packed by xz: the packed bytes. */
#include "symbolize/debugdata.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t unpacked;
	int err;
	void *image = debugdata_unpack(data, size, &unpacked, &err);

	if (!image != !!err || (image && unpacked > 64U << 20))
		abort();
	free(image);
	return 0;
}
