/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "loader.h"

#include "../util/clock.h"

#include <errno.h>
#include <gelf.h>
#include <linux/bpf.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <time.h>

#define LOG_MAX	    (4 << 20)
#define THREADS_MAX 16

static bool print_verbose;

/* The stream of the unit that this thread is loading. */
static __thread FILE *unit_log;

static int keep_message(enum libbpf_print_level level, const char *fmt, va_list ap)
{
	if (print_verbose) {
		va_list copy;

		va_copy(copy, ap);
		vfprintf(stderr, fmt, copy);
		va_end(copy);
	}
	if (unit_log && level != LIBBPF_DEBUG && ftell(unit_log) < LOG_MAX)
		vfprintf(unit_log, fmt, ap);
	return 0;
}

void vp_loader_capture_messages(bool verbose)
{
	print_verbose = verbose;
	libbpf_set_print(keep_message);
}

/*
 * Instructions in the object's code sections: bpf_program__insn_cnt does not count the
 * functions that a program calls before it is loaded, and those are most of the sampler.
 */
static size_t unit_cost(const struct vp_load_unit *u)
{
	Elf *elf = elf_memory((char *)u->skeleton->data, u->skeleton->data_sz);
	Elf_Scn *scn = NULL;
	size_t bytes = 0;

	while (elf && (scn = elf_nextscn(elf, scn))) {
		GElf_Shdr shdr;

		if (gelf_getshdr(scn, &shdr) && (shdr.sh_flags & SHF_EXECINSTR))
			bytes += shdr.sh_size;
	}
	elf_end(elf);
	return bytes / sizeof(struct bpf_insn);
}

/*
 * Without a log buffer of its own, libbpf prints the verifier's log of a failed program
 * through the message callback, which is where we want it.
 */
static void load_unit(struct vp_load_unit *u)
{
	uint64_t start = vp_now_ns();
	size_t len;

	unit_log = open_memstream(&u->log, &len);
	u->err = bpf_object__load_skeleton(u->skeleton);
	if (unit_log)
		fclose(unit_log);
	unit_log = NULL;
	if (!u->err) {
		free(u->log);
		u->log = NULL;
	}
	u->load_ns = vp_now_ns() - start;
}

struct queue {
	struct vp_load_unit **by_cost;
	size_t cnt;
	size_t next;
};

static void *load_from_queue(void *arg)
{
	struct queue *q = arg;
	size_t i;

	while ((i = __atomic_fetch_add(&q->next, 1, __ATOMIC_RELAXED)) < q->cnt)
		load_unit(q->by_cost[i]);
	return NULL;
}

static int costlier_first(const void *a, const void *b)
{
	size_t ca = unit_cost(*(struct vp_load_unit *const *)a);
	size_t cb = unit_cost(*(struct vp_load_unit *const *)b);

	return (ca < cb) - (ca > cb);
}

/* The calling thread works, too; a thread that cannot be started only makes it slower. */
static void run_queue(struct queue *q, size_t threads)
{
	pthread_t ids[THREADS_MAX];
	size_t started = 0;

	while (started + 1 < threads && started < THREADS_MAX) {
		if (pthread_create(&ids[started], NULL, load_from_queue, q))
			break;
		started++;
	}
	load_from_queue(q);
	for (size_t i = 0; i < started; i++)
		pthread_join(ids[i], NULL);
}

/* Closes what was loaded, so that nothing half-working is handed over. */
static void unload(struct vp_load_unit *units, size_t cnt)
{
	for (size_t i = 0; i < cnt; i++) {
		bpf_object__close(*units[i].skeleton->obj);
		*units[i].skeleton->obj = NULL;
	}
}

/* One cut serves all units. */
static int fill_core_btf(const struct vp_load_unit *units, size_t cnt, struct vp_core_btf **btf)
{
	struct bpf_object *objs[cnt];
	size_t n = 0;

	*btf = NULL;
	for (size_t i = 0; i < cnt; i++) {
		if (!units[i].core_btf)
			continue;
		*btf = units[i].core_btf;
		objs[n++] = *units[i].skeleton->obj;
	}
	return *btf ? vp_core_btf_fill(*btf, objs, n) : 0;
}

int vp_load(struct vp_load_unit *units, size_t cnt, bool sequential, struct vp_err *e)
{
	struct vp_load_unit *by_cost[cnt];
	struct queue q = {.by_cost = by_cost, .cnt = cnt};
	size_t threads = sequential ? 1 : (size_t)get_nprocs();
	struct vp_core_btf *btf;
	int err = fill_core_btf(units, cnt, &btf);

	if (err) {
		unload(units, cnt);
		/* libbpf's word for a file that is in none of the usual places */
		if (err == -ESRCH)
			return vp_err_set(
				e, err,
				"the kernel has no BTF: /sys/kernel/btf/vmlinux is missing (it "
				"takes a kernel with CONFIG_DEBUG_INFO_BTF=y)");
		return vp_err_set(e, err, "the kernel's BTF: %s%s", strerror(-err),
				  vp_err_hint(err));
	}
	elf_version(EV_CURRENT);
	for (size_t i = 0; i < cnt; i++)
		by_cost[i] = &units[i];
	qsort(by_cost, cnt, sizeof(*by_cost), costlier_first);
	run_queue(&q, threads < cnt ? threads : cnt);
	if (btf)
		vp_core_btf_close(btf);

	for (size_t i = 0; i < cnt; i++) {
		err = units[i].err;
		if (!err || units[i].optional)
			continue;
		unload(units, cnt);
		return vp_err_set(e, err, "BPF object %s: %s%s", units[i].name, strerror(-err),
				  vp_err_hint(err));
	}
	return 0;
}

void vp_load_report(FILE *f, const struct vp_load_unit *units, size_t cnt)
{
	bool first = true;

	for (size_t i = 0; i < cnt; i++) {
		const struct vp_load_unit *u = &units[i];

		if (!u->err)
			continue;
		fprintf(f, "%s: %s\n", u->name, strerror(-u->err));
		if (first && u->log)
			fputs(u->log, f);
		first = false;
	}
}

void vp_load_units_free(struct vp_load_unit *units, size_t cnt)
{
	for (size_t i = 0; i < cnt; i++) {
		free(units[i].log);
		units[i].log = NULL;
	}
}
