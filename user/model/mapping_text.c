/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "mapping_text.h"

#include "../util/json.h"
#include "verdict.h"

#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>

#define NAME_COLUMN 73
#define ANON_NAME   "//anon"
#define DELETED	    " (deleted)"

void vp_mapping_prot(const struct vp_perf_mmap2 *perf, char out[5])
{
	out[0] = perf->prot & PROT_READ ? 'r' : '-';
	out[1] = perf->prot & PROT_WRITE ? 'w' : '-';
	out[2] = perf->prot & PROT_EXEC ? 'x' : '-';
	out[3] = perf->flags & MAP_SHARED ? 's' : 'p';
	out[4] = '\0';
}

void vp_mapping_strip_deleted(struct vp_mmap2 *m)
{
	size_t len = strlen(m->name), suffix = strlen(DELETED);

	if (!(m->rec.hdr.flags & VP_MMAP2_F_DELETED) || len < suffix)
		return;
	if (!strcmp(m->name + len - suffix, DELETED))
		m->name[len - suffix] = '\0';
}

void vp_mapping_print_name(FILE *f, const char *name)
{
	for (; *name; name++) {
		if (*name == '\n')
			fputs("\\012", f);
		else
			fputc(*name, f);
	}
}

void vp_mapping_print_process(FILE *f, const struct vp_mmap2 *m)
{
	fprintf(f, "# %u ", m->rec.proc.tgid);
	vp_mapping_print_name(f, m->rec.comm);
	fputc('\n', f);
}

void vp_mapping_print_text(FILE *f, const struct vp_mmap2 *m)
{
	const struct vp_perf_mmap2 *p = &m->rec.perf;
	char prot[5];
	int n;

	vp_mapping_prot(p, prot);
	n = fprintf(f, "%08" PRIx64 "-%08" PRIx64 " %s %08" PRIx64 " %02x:%02x %" PRIu64 " ",
		    (uint64_t)p->addr, (uint64_t)(p->addr + p->len), prot, (uint64_t)p->pgoff,
		    p->maj, p->min, (uint64_t)p->ino);
	if (strcmp(m->name, ANON_NAME)) {
		fprintf(f, "%*s", n < NAME_COLUMN ? NAME_COLUMN - n : 1, "");
		vp_mapping_print_name(f, m->name);
	}
	fputc('\n', f);
}

void vp_mapping_print_json(FILE *f, const struct vp_mmap2 *row)
{
	struct vp_mmap2 m = *row;
	const struct vp_perf_mmap2 *p = &m.rec.perf;
	char prot[5];

	vp_mapping_prot(p, prot);
	vp_mapping_strip_deleted(&m);
	fprintf(f,
		"{\"tgid\":%u,\"tid\":%u,\"start\":\"0x%" PRIx64 "\",\"end\":\"0x%" PRIx64
		"\",\"pgoff\":%" PRIu64 ",\"prot\":\"%s\",\"dev\":\"%u:%u\",\"ino\":%" PRIu64
		",\"ino_generation\":%" PRIu64 ",\"kind\":\"%s\",\"name\":",
		m.rec.proc.tgid, m.rec.proc.tgid, (uint64_t)p->addr, (uint64_t)(p->addr + p->len),
		(uint64_t)p->pgoff, prot, p->maj, p->min, (uint64_t)p->ino,
		(uint64_t)p->ino_generation, vp_verdict_name(m.rec.verdict));
	vp_json_string(f, m.name);
	fprintf(f, ",\"deleted\":%s}\n", m.rec.hdr.flags & VP_MMAP2_F_DELETED ? "true" : "false");
}
