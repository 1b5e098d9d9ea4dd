/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* vmaprof maps: what the task_vma iterator tells, as text or JSON Lines. */
#include "cmd.h"

#include "../kernel/privileges.h"
#include "../kernel/ring.h"
#include "../kernel/shared_maps.h"
#include "../kernel/vsyscall.h"
#include "../kernel/walker.h"
#include "../model/mapping_text.h"
#include "../util/args.h"
#include "../util/procinfo.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#define RING_BYTES (1 << 20)

static const char help[] =
	"usage: vmaprof maps [-p PID,…] [--all-maps] [--json]\n"
	"\n"
	"Prints the executable mappings of processes (default: all) in the format of\n"
	"/proc/PID/maps, a comment line '# TGID COMM' before each process.\n"
	"\n"
	"  -p, --pid PID,…   these processes\n"
	"      --all-maps    all mappings, not only executable ones\n"
	"      --json        a JSON object per mapping and line\n";

struct maps_args {
	struct vp_pids pids;
	bool all_maps;
	bool json;
};

/* Rows of a process come together; the vsyscall row, which no walk yields, ends them. */
struct printer {
	const struct maps_args *args;
	struct vp_mmap2 last;
	bool any;
	bool *seen;    /* by the number of the PID in args */
	int write_err; /* errno of the first row that could not be written */
};

static void print_row(const struct printer *p, const struct vp_mmap2 *m)
{
	if (p->args->json)
		vp_mapping_print_json(stdout, m);
	else
		vp_mapping_print_text(stdout, m);
}

static void make_vsyscall_row(struct vp_mmap2 *m, const char *prot)
{
	struct vp_perf_mmap2 perf = {
		.addr = VP_VSYSCALL_ADDR,
		.len = VP_VSYSCALL_END - VP_VSYSCALL_ADDR,
		.prot = (prot[0] == 'r' ? 1 : 0) | 4,
		.flags = 2,
	};

	m->rec.perf = perf;
	m->rec.verdict = VP_VERDICT_SPECIAL;
	m->rec.hdr.flags = 0;
	strcpy(m->name, "[vsyscall]");
}

static void end_process(struct printer *p)
{
	const char *prot;

	if (!p->any || !(p->last.rec.hdr.flags & VP_MMAP2_F_VSYSCALL))
		return;
	prot = vp_vsyscall_prot();
	if (!prot)
		return;
	make_vsyscall_row(&p->last, prot);
	print_row(p, &p->last);
}

static void note_seen(struct printer *p, uint32_t tgid)
{
	for (size_t i = 0; i < p->args->pids.cnt; i++)
		p->seen[i] |= (uint32_t)p->args->pids.pid[i] == tgid;
}

/* A process that was named and has no row must not be passed over in silence. */
static int check_seen(const struct printer *p, struct vp_err *e)
{
	const struct vp_pids *pids = &p->args->pids;
	int err = 0;

	for (size_t i = 0; i < pids->cnt; i++) {
		struct vp_procinfo info;

		if (p->seen[i] || err)
			continue;
		err = vp_procinfo_check(pids->pid[i], &info, e);
		if (!err && p->args->all_maps)
			err = vp_err_set(
				e, -EACCES,
				"PID %d: this kernel does not show its mappings (a security "
				"policy?)",
				pids->pid[i]);
		else if (!err)
			err = vp_err_set(
				e, -ENOENT,
				"PID %d: no executable mapping is shown (try --all-maps; a "
				"security policy may hide them)",
				pids->pid[i]);
	}
	return err;
}

static int on_mmap2(void *ctx, const struct vp_mmap2 *m)
{
	struct printer *p = ctx;

	if (!p->any || memcmp(&p->last.rec.proc, &m->rec.proc, sizeof(m->rec.proc))) {
		end_process(p);
		note_seen(p, m->rec.proc.tgid);
		if (!p->args->json)
			vp_mapping_print_process(stdout, m);
	}
	p->any = true;
	p->last.rec = m->rec;
	print_row(p, m);
	if (!ferror(stdout))
		return 0;
	p->write_err = errno;
	return -EIO;
}

static int parse(int argc, char **argv, struct maps_args *a)
{
	static const struct option options[] = {
		{"pid", required_argument, NULL, 'p'},
		{"all-maps", no_argument, NULL, 'A'},
		{"json", no_argument, NULL, 'j'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	struct vp_err e;
	int c;

	opterr = 0;
	while ((c = getopt_long(argc, argv, "p:h", options, NULL)) != -1) {
		switch (c) {
		case 'p':
			if (vp_pids_parse(&a->pids, optarg, &e))
				return vp_usage_error("maps", "%s", e.text);
			break;
		case 'A':
			a->all_maps = true;
			break;
		case 'j':
			a->json = true;
			break;
		case 'h':
			fputs(help, stdout);
			return -1;
		default:
			return vp_usage_error("maps", "'%s' is no option or lacks its value",
					      argv[optind - 1]);
		}
	}
	if (optind < argc)
		return vp_usage_error("maps", "'%s' is one argument too many", argv[optind]);
	return 0;
}

/* A thread's number stands for its process, as it does for perf. */
static int check_pids(struct vp_pids *pids, struct vp_err *e)
{
	for (size_t i = 0; i < pids->cnt; i++) {
		struct vp_procinfo info;
		int err = vp_procinfo_check(pids->pid[i], &info, e);

		if (err)
			return err;
		pids->pid[i] = info.tgid;
	}
	return 0;
}

static int walk(const struct maps_args *a, struct vp_err *e)
{
	static const struct vp_record_ops ops = {.mmap2 = on_mmap2};
	struct printer printer = {.args = a};
	struct vp_decoder decoder = {.ops = &ops, .ctx = &printer};
	struct vp_shared_maps maps = {0};
	struct vp_walker walker = {0};
	struct vp_load_unit unit = {0};
	struct vp_ring *ring = NULL;
	int err;

	printer.seen = calloc(a->pids.cnt + 1, sizeof(*printer.seen));
	if (!printer.seen)
		return vp_err_set(e, -ENOMEM, "out of memory");
	err = vp_shared_maps_create(&maps, RING_BYTES, 1, e);
	if (!err)
		err = vp_walker_open(&walker, &maps, a->all_maps, false, &unit, e);
	if (!err)
		err = vp_load(&unit, 1, false, e);
	if (!err)
		err = vp_ring_open(&ring, vp_shared_maps_ring_fd(&maps), &decoder, e);
	if (!err)
		err = vp_walker_walk(&walker, ring, a->pids.pid, a->pids.cnt, e);
	if (!err)
		end_process(&printer);
	if (printer.write_err)
		vp_err_set(e, err, "standard output: %s (write it elsewhere)",
			   strerror(printer.write_err));
	if (!err)
		err = check_seen(&printer, e);
	vp_ring_close(ring);
	vp_walker_close(&walker);
	vp_load_units_free(&unit, 1);
	vp_shared_maps_destroy(&maps);
	free(printer.seen);
	return err;
}

int cmd_maps(int argc, char **argv)
{
	struct maps_args a = {0};
	struct vp_err e = {""};
	int ret = parse(argc, argv, &a);

	if (ret)
		return ret < 0 ? VP_EXIT_OK : ret;
	vp_loader_capture_messages(false);
	if (vp_privileges_check(&e) || check_pids(&a.pids, &e) || walk(&a, &e))
		ret = vp_fail("maps", &e);
	if (!ret && fflush(stdout)) {
		vp_err_set(&e, -errno, "standard output: %s (write it elsewhere)", strerror(errno));
		ret = vp_fail("maps", &e);
	}
	vp_pids_free(&a.pids);
	return ret;
}
