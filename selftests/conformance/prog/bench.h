/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Shared by the benchmarks and their programs. */
#ifndef PROG_BENCH_H
#define PROG_BENCH_H

#define BENCH_PCS	 4096 /* a power of two */
#define BENCH_RECORDS	 1024 /* at a time: all of them fit */
#define BENCH_RING_BYTES (256 * 1024)
#define BENCH_PATH_BYTES 4096

/* What is sent over the ring: as large as a small sample. */
struct bench_record {
	unsigned long long sent_ns;
	unsigned long long rest[7];
};

#endif
