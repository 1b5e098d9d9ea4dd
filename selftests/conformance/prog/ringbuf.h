/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Shared by the cases of the ring buffer and their programs. */
#ifndef RINGBUF_H
#define RINGBUF_H

#define RING_BYTES 4096 /* a page: x86 */
#define OUTPUT_MAX 8192

/* The largest record: a ring is never wholly full, and each has a header of 8 bytes. */
#define LARGEST (RING_BYTES - 16)

struct ring_record {
	unsigned long long number;
	unsigned long long cpu;
};

#endif
