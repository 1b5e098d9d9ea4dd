// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "ops_run.h"

#include "case.h"

#include "ops.skel.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SAMPLE_HZ 2000
/* A guest that is emulated on a busy machine takes its time. */
#define LIMIT_S	  60

static uint64_t now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec;
}

static struct ops_bpf *load(const struct op *ops, size_t cnt)
{
	struct ops_bpf *s = ops_bpf__open_and_load();

	ct_require(s != NULL, "the programs do not load: %s", strerror(errno));
	ct_require(cnt <= OPS_MAX, "%zu ops", cnt);
	memcpy(s->bss->ops, ops, cnt * sizeof(*ops));
	s->bss->op_cnt = (uint32_t)cnt;
	return s;
}

size_t attach_samples(struct bpf_program *prog, pid_t pid, struct bpf_link **links, size_t max)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_freq = SAMPLE_HZ,
		.freq = 1,
	};
	int cpus = pid < 0 ? libbpf_num_possible_cpus() : 1;
	size_t n = 0;

	for (int cpu = 0; cpu < cpus && n < max; cpu++) {
		int fd = (int)syscall(SYS_perf_event_open, &attr, pid, pid < 0 ? cpu : -1, -1,
				      PERF_FLAG_FD_CLOEXEC);

		if (fd < 0)
			continue; /* that CPU is not there */
		links[n] = bpf_program__attach_perf_event(prog, fd);
		ct_require(links[n] != NULL, "attach: %s", strerror(errno));
		n++;
	}
	ct_require(n > 0, "no cpu-clock event: %s", strerror(errno));
	return n;
}

static uint64_t runs_of(const struct ops_bpf *s)
{
	return __atomic_load_n(&s->bss->runs, __ATOMIC_RELAXED);
}

static void spin(enum ops_where where)
{
	switch (where) {
	case OPS_IN_INTERRUPT:
		for (volatile int i = 0; i < 100000; i++)
			;
		break;
	case OPS_IN_SYSCALL:
		syscall(SYS_getppid);
		break;
	case OPS_IN_MMAP:
		munmap(mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 4096);
		break;
	}
}

static void spin_until(const struct ops_bpf *s, uint64_t times, enum ops_where where)
{
	uint64_t end = now_s() + LIMIT_S;

	while (runs_of(s) < times && now_s() <= end)
		spin(where);
}

static uint64_t end_run(struct ops_bpf *s, struct op *ops, size_t cnt, uint64_t times)
{
	uint64_t runs = s->bss->runs;

	memcpy(ops, s->bss->ops, cnt * sizeof(*ops));
	ops_bpf__destroy(s);
	ct_require(runs >= times, "called %llu times of %llu", (unsigned long long)runs,
		   (unsigned long long)times);
	return runs;
}

static void detach(struct bpf_link **links, size_t cnt)
{
	for (size_t i = 0; i < cnt; i++)
		bpf_link__destroy(links[i]);
}

uint64_t ops_run(enum ops_where where, struct op *ops, size_t cnt, uint64_t times)
{
	struct ops_bpf *s = load(ops, cnt);
	struct bpf_link *link;
	size_t links = 1;

	s->bss->wanted_tgid = (uint32_t)getpid();
	if (where == OPS_IN_INTERRUPT) {
		links = attach_samples(s->progs.ops_in_interrupt, 0, &link, 1);
	} else {
		link = bpf_program__attach(where == OPS_IN_MMAP ? s->progs.ops_in_mmap
								: s->progs.ops_in_syscall);
		ct_require(link != NULL, "attach: %s", strerror(errno));
	}
	spin_until(s, times, where);
	detach(&link, links);
	return end_run(s, ops, cnt, times);
}

uint64_t ops_run_in(uint32_t task_flags, struct op *ops, size_t cnt, uint64_t times)
{
	struct bpf_link *links[1024];
	struct ops_bpf *s = load(ops, cnt);
	uint64_t end = now_s() + LIMIT_S;
	size_t n;

	s->bss->wanted_flags = task_flags;
	n = attach_samples(s->progs.ops_in_interrupt, -1, links, sizeof(links) / sizeof(*links));
	/* asleep: others are to run */
	while (runs_of(s) < times && now_s() <= end)
		usleep(2000);
	detach(links, n);
	return end_run(s, ops, cnt, times);
}

/* A few that are about to exit. */
static void fork_children(pid_t *pid, size_t cnt)
{
	for (size_t i = 0; i < cnt; i++) {
		pid[i] = ct_fork();
		if (pid[i] == 0)
			_exit(0);
	}
}

void op_run_of_exiting(struct op *op, size_t turns)
{
	struct ops_bpf *s = load(op, 1);
	struct bpf_link *link;
	pid_t pid[8];
	char byte;
	int fd;

	s->bss->wanted_tgid = (uint32_t)getpid();
	link = bpf_program__attach(s->progs.op_of_children);
	ct_require(link != NULL, "iter/task: %s", strerror(errno));
	for (size_t i = 0; i < turns; i++) {
		fork_children(pid, 8);
		fd = bpf_iter_create(bpf_link__fd(link));
		ct_require(fd >= 0, "bpf_iter_create: %s", strerror(errno));
		while (read(fd, &byte, 1) > 0)
			;
		close(fd);
		for (size_t k = 0; k < 8; k++)
			waitpid(pid[k], NULL, 0);
	}
	detach(&link, 1);
	end_run(s, op, 1, 1);
}

static uint64_t all_of(const struct op *op)
{
	return op->ok + op->busy + op->noent + op->inval + op->other;
}

static uint64_t count_of(const struct op *op, int err)
{
	switch (err) {
	case 0:
		return op->ok;
	case -EBUSY:
		return op->busy;
	case -ENOENT:
		return op->noent;
	case -EINVAL:
		return op->inval;
	default:
		return op->other;
	}
}

bool op_always(const struct op *op, int err)
{
	return all_of(op) > 0 && count_of(op, err) == all_of(op);
}

bool op_mostly(const struct op *op, int err)
{
	uint64_t cnt = count_of(op, err);

	return cnt > 0 && cnt + op->busy == all_of(op) && cnt > op->busy;
}

const char *op_text(const struct op *op)
{
	static char text[4][128];
	static unsigned int turn;
	char *t = text[turn++ % 4];

	snprintf(t, sizeof(text[0]),
		 "ok %llu, busy %llu, noent %llu, inval %llu, other %llu (last %lld)", op->ok,
		 op->busy, op->noent, op->inval, op->other, op->last);
	return t;
}
