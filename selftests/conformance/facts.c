// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "facts.h"

#include <bpf/btf.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

static struct btf *vmlinux(void)
{
	static struct btf *btf;

	if (!btf)
		btf = btf__load_vmlinux_btf();
	return btf;
}

static bool has_member(const struct btf *btf, const struct btf_type *t, const char *member)
{
	const struct btf_member *m = btf_members(t);

	for (int i = 0; i < btf_vlen(t); i++) {
		const struct btf_type *inner = btf__type_by_id(btf, m[i].type);

		if (!strcmp(btf__name_by_offset(btf, m[i].name_off), member))
			return true;
		/* of an anonymous struct or union */
		if (!m[i].name_off && btf_is_composite(inner) && has_member(btf, inner, member))
			return true;
	}
	return false;
}

bool fact_member(const char *type, const char *member)
{
	struct btf *btf = vmlinux();
	int id = btf ? btf__find_by_name_kind(btf, type, BTF_KIND_STRUCT) : -1;

	return id > 0 && has_member(btf, btf__type_by_id(btf, (__u32)id), member);
}

bool fact_function(const char *name)
{
	return vmlinux() && btf__find_by_name_kind(vmlinux(), name, BTF_KIND_FUNC) > 0;
}

bool fact_member_is(const char *type, const char *member, const char *name)
{
	const struct btf *btf = vmlinux();
	int id = btf ? btf__find_by_name_kind(btf, type, BTF_KIND_STRUCT) : -1;
	const struct btf_type *t = id > 0 ? btf__type_by_id(btf, (__u32)id) : NULL;

	for (int i = 0; t && i < btf_vlen(t); i++) {
		const struct btf_member *m = &btf_members(t)[i];
		const struct btf_type *of = btf__type_by_id(btf, m->type);

		if (!strcmp(btf__name_by_offset(btf, m->name_off), member))
			return !strcmp(btf__name_by_offset(btf, of->name_off), name);
	}
	return false;
}

int fact_arguments(const char *name)
{
	const struct btf *btf = vmlinux();
	int id = btf ? btf__find_by_name_kind(btf, name, BTF_KIND_FUNC) : -1;

	if (id <= 0)
		return -1;
	return btf_vlen(btf__type_by_id(btf, btf__type_by_id(btf, (__u32)id)->type));
}

static bool file_has(const char *path, const char *text)
{
	FILE *f = fopen(path, "re");
	char line[4096];
	bool has = false;

	while (f && !has && fgets(line, sizeof(line), f))
		has = strstr(line, text) != NULL;
	if (f)
		fclose(f);
	return has;
}

bool fact_rt(void)
{
	return file_has("/sys/kernel/realtime", "1") || file_has("/proc/version", "PREEMPT_RT");
}

bool fact_sacrificial(void)
{
	return file_has("/proc/cmdline", "vmaprof.sacrificial");
}

int fact_cpus(void)
{
	/* the kernel wants room for as many as it was built for: 8192 at most */
	cpu_set_t set[8192 / CPU_SETSIZE];

	if (sched_getaffinity(0, sizeof(set), set))
		return 1;
	return CPU_COUNT_S(sizeof(set), set);
}

enum fact_lockdep fact_lockdep(void)
{
	FILE *f = fopen("/proc/lockdep_stats", "re");
	enum fact_lockdep found = LOCKDEP_ABSENT;
	char line[256];
	int is_on;

	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, " debug_locks: %d", &is_on) == 1)
			found = is_on ? LOCKDEP_ON : LOCKDEP_OFF;
	}
	if (f)
		fclose(f);
	return found;
}

enum fact_lockdep fact_lockdep_at_start(void)
{
	static enum fact_lockdep at_start;
	static bool is_known;

	if (!is_known) {
		at_start = fact_lockdep();
		is_known = true;
	}
	return at_start;
}
