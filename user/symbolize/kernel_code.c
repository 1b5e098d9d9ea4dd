/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "kernel_code.h"

#include "../util/index.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/*
 * A line: "nf_tables 303104 12 nft_ct,nft_chain_nat, Live 0xffffffffc0a43000 (E)". Who uses a module
 * changes all the time, so that is left out.
 */
uint64_t kernel_code_modules(FILE *modules)
{
	char name[64], addr[32], *line = NULL;
	uint64_t hash = 1;
	size_t size = 0;

	while (getline(&line, &size, modules) > 0) {
		if (sscanf(line, "%63s %*s %*s %*s %*s %31s", name, addr) != 2)
			continue;
		hash = vp_hash(hash, name, strlen(name));
		hash = vp_hash(hash, addr, strlen(addr));
	}
	free(line);
	return hash;
}

/* Programs are numbered as they are loaded, and no number comes twice. */
static int hash_programs(uint64_t *hash)
{
	uint32_t id = 0;

	while (!bpf_prog_get_next_id(id, &id))
		*hash = vp_hash(*hash, &id, sizeof(id));
	return errno == ENOENT ? 0 : -errno;
}

uint64_t kernel_code_stamp(void)
{
	FILE *modules = fopen("/proc/modules", "re");
	uint64_t hash = 1; /* of a kernel without modules */

	if (!modules && errno != ENOENT)
		return 0;
	if (modules) {
		hash = kernel_code_modules(modules);
		fclose(modules);
	}
	if (hash_programs(&hash))
		return 0;
	return hash ? hash : 1;
}
