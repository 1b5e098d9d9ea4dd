/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "run_meta.h"

#include "cmd.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* "model name : AMD EPYC 7B13" of x86; other architectures say it otherwise or not at all. */
static void read_cpu_desc(char *buf, size_t size)
{
	FILE *f = fopen("/proc/cpuinfo", "re");
	char line[256];

	buf[0] = '\0';
	while (f && fgets(line, sizeof(line), f)) {
		char *colon = strchr(line, ':');

		if (strncmp(line, "model name", 10) || !colon)
			continue;
		colon += strspn(colon, ": \t");
		colon[strcspn(colon, "\n")] = '\0';
		snprintf(buf, size, "%s", colon);
		break;
	}
	if (f)
		fclose(f);
}

void vp_run_meta_fill(struct vp_run_meta *m)
{
	uname(&m->uts);
	read_cpu_desc(m->cpu_desc, sizeof(m->cpu_desc));
	m->meta = (struct vp_meta){
		.version = vp_version,
		.hostname = m->uts.nodename,
		.release = m->uts.release,
		.arch = m->uts.machine,
		.cpu_desc = m->cpu_desc,
		.target = m->target,
		.argc = vp_argc,
		.argv = vp_argv,
		.cpus_online = (uint32_t)sysconf(_SC_NPROCESSORS_ONLN),
		.cpus_available = (uint32_t)sysconf(_SC_NPROCESSORS_CONF),
		.total_mem_kb =
			(uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE) / 1024,
		.start_realtime_s = time(NULL),
	};
}
