/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "perf_events.h"

#include "../util/args.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MAX_RATE_PATH "/proc/sys/kernel/perf_event_max_sample_rate"
#define ONLINE_PATH   "/sys/devices/system/cpu/online"

/* UINT64_MAX: no limit known. */
static uint64_t max_rate(void)
{
	FILE *f = fopen(MAX_RATE_PATH, "re");
	char line[32] = "";
	uint64_t max;

	if (f) {
		if (!fgets(line, sizeof(line), f))
			line[0] = '\0';
		fclose(f);
	}
	line[strcspn(line, "\n")] = '\0';
	return vp_parse_u64(line, 10, &max) ? UINT64_MAX : max;
}

int vp_perf_freq_check(uint64_t freq_hz, struct vp_err *e)
{
	uint64_t max = max_rate();

	if (freq_hz == 0)
		return vp_err_set(e, -EINVAL, "-F 0: no samples at all (give at least 1 Hz)");
	if (freq_hz > max)
		return vp_err_set(
			e, -EINVAL,
			"-F %" PRIu64 ": above the kernel's limit of %" PRIu64
			" Hz (lower -F, or: sysctl kernel.perf_event_max_sample_rate=%" PRIu64 ")",
			freq_hz, max, freq_hz);
	return 0;
}

static int open_event(const struct vp_perf_events *p, int cpu, uint32_t freq_hz)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = p->type,
		.config = p->config,
		.freq = 1,
		.sample_freq = freq_hz,
		.disabled = 1,
		/* An idle CPU is no news; only software events know this bit. */
		.exclude_idle = p->type == PERF_TYPE_SOFTWARE,
	};
	int fd = (int)syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

static void choose(struct vp_perf_events *p, bool cycles)
{
	p->name = cycles ? "cycles" : "cpu-clock";
	p->type = cycles ? PERF_TYPE_HARDWARE : PERF_TYPE_SOFTWARE;
	p->config = cycles ? (uint64_t)PERF_COUNT_HW_CPU_CYCLES : (uint64_t)PERF_COUNT_SW_CPU_CLOCK;
}

static int explain(struct vp_err *e, int err, const char *name)
{
	if (err == -EACCES || err == -EPERM)
		return vp_err_set(e, err,
				  "perf event %s: %s (needs CAP_PERFMON; see vmaprof doctor)", name,
				  strerror(-err));
	if (err == -ENOENT || err == -EOPNOTSUPP || err == -ENODEV)
		return vp_err_set(e, err, "perf event %s: this machine has none (try -e cpu-clock)",
				  name);
	return vp_err_set(e, err, "perf event %s: %s", name, strerror(-err));
}

/* Whether the machine has the event at all, tried on the CPU we are on. */
static int try_event(const struct vp_perf_events *p, uint32_t freq_hz)
{
	int fd = open_event(p, 0, freq_hz);

	if (fd < 0)
		return fd;
	close(fd);
	return 0;
}

static int choose_event(struct vp_perf_events *p, const char *event, uint32_t freq_hz,
			struct vp_err *e)
{
	if (event && strcmp(event, "cycles") && strcmp(event, "cpu-clock"))
		return vp_err_set(e, -EINVAL, "-e %s: not an event known here (cycles, cpu-clock)",
				  event);
	choose(p, !event || !strcmp(event, "cycles"));
	if (event || !try_event(p, freq_hz))
		return 0;
	p->fell_back = true;
	choose(p, false);
	return 0;
}

struct opening {
	struct vp_perf_events *p;
	uint32_t freq_hz;
};

static int add_cpu(void *ctx, int cpu)
{
	const struct opening *o = ctx;
	struct vp_perf_events *p = o->p;
	int fd = open_event(p, cpu, o->freq_hz);
	int *bigger;

	if (fd == -ENODEV && p->cnt) /* went offline meanwhile */
		return 0;
	if (fd < 0)
		return fd;
	bigger = realloc(p->fd, (p->cnt + 1) * sizeof(*bigger));
	if (!bigger) {
		close(fd);
		return -ENOMEM;
	}
	p->fd = bigger;
	p->fd[p->cnt++] = fd;
	return 0;
}

/* "0-3,6" */
static int for_list(const char *list, int (*on_cpu)(void *ctx, int cpu), void *ctx)
{
	const char *s = list;

	while (*s) {
		char *end;
		long first = strtol(s, &end, 10), last = first;

		if (end == s)
			return 0;
		if (*end == '-')
			last = strtol(end + 1, &end, 10);
		for (long cpu = first; cpu <= last; cpu++) {
			int err = on_cpu(ctx, (int)cpu);

			if (err)
				return err;
		}
		s = *end == ',' ? end + 1 : end;
		if (*s == '\n')
			break;
	}
	return 0;
}

static void online_cpus(char *buf, size_t size)
{
	FILE *f = fopen(ONLINE_PATH, "re");

	if (!f || !fgets(buf, (int)size, f))
		snprintf(buf, size, "0-%ld", sysconf(_SC_NPROCESSORS_ONLN) - 1);
	if (f)
		fclose(f);
}

int vp_perf_each_cpu(int (*on_cpu)(void *ctx, int cpu), void *ctx)
{
	char cpus[4096];

	online_cpus(cpus, sizeof(cpus));
	return for_list(cpus, on_cpu, ctx);
}

int vp_perf_events_open(struct vp_perf_events *p, const char *event, uint32_t freq_hz,
			struct vp_err *e)
{
	struct opening o = {p, freq_hz};
	int err = choose_event(p, event, freq_hz, e);

	if (err)
		return err;
	err = vp_perf_each_cpu(add_cpu, &o);
	if (err)
		return explain(e, err, p->name);
	p->link = calloc(p->cnt ? p->cnt : 1, sizeof(struct bpf_link *));
	return p->link ? 0 : vp_err_set(e, -ENOMEM, "out of memory");
}

int vp_perf_events_attach(struct vp_perf_events *p, struct bpf_program *prog, struct vp_err *e)
{
	for (size_t i = 0; i < p->cnt; i++) {
		/* Attaching enables the event; the link owns the descriptor from here on. */
		p->link[i] = bpf_program__attach_perf_event(prog, p->fd[i]);
		if (!p->link[i])
			return vp_err_set(e, -errno, "attaching the sampler: %s", strerror(errno));
		p->fd[i] = -1;
	}
	return 0;
}

void vp_perf_events_close(struct vp_perf_events *p)
{
	for (size_t i = 0; i < p->cnt; i++) {
		if (p->link && p->link[i])
			bpf_link__destroy(p->link[i]);
		else if (p->fd[i] >= 0)
			close(p->fd[i]);
	}
	free(p->fd);
	free(p->link);
	p->fd = NULL;
	p->link = NULL;
	p->cnt = 0;
}
