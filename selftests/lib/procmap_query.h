/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* PROCMAP_QUERY (6.11), which older headers lack. */
#ifndef PROCMAP_QUERY_H
#define PROCMAP_QUERY_H

#include <stdint.h>
#include <sys/ioctl.h>

/* struct procmap_query of uapi/linux/fs.h */
struct pm_query {
	uint64_t size;
	uint64_t query_flags;
	uint64_t query_addr;
	uint64_t vma_start;
	uint64_t vma_end;
	uint64_t vma_flags;
	uint64_t vma_page_size;
	uint64_t vma_offset;
	uint64_t inode;
	uint32_t dev_major;
	uint32_t dev_minor;
	uint32_t vma_name_size;
	uint32_t build_id_size;
	uint64_t vma_name_addr;
	uint64_t build_id_addr;
};

#define PM_QUERY _IOWR('f', 17, struct pm_query)

#define PM_READABLE	    0x01
#define PM_WRITABLE	    0x02
#define PM_EXECUTABLE	    0x04
#define PM_SHARED	    0x08
#define PM_COVERING_OR_NEXT 0x10
#define PM_FILE_BACKED	    0x20

#endif
