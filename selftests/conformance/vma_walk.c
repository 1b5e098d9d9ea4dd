// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "vma_walk.h"

#include "case.h"
#include "facts.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static int load(struct walk *w, bool is_sleepable, char *log, size_t log_size)
{
	struct bpf_program *prog;
	int err;

	*w = (struct walk){.fd = -1};
	w->s = task_vma_bpf__open();
	ct_require(w->s != NULL, "open: %s", strerror(errno));
	prog = is_sleepable ? w->s->progs.walk_vmas_sleepable : w->s->progs.walk_vmas;
	bpf_program__set_autoload(prog, true);
	if (log)
		bpf_program__set_log_buf(prog, log, log_size);
	err = task_vma_bpf__load(w->s);
	if (err)
		return err;
	w->seen = mmap(NULL, SEEN_MAX * sizeof(*w->seen), PROT_READ, MAP_SHARED,
		       bpf_map__fd(w->s->maps.seen), 0);
	ct_require(w->seen != MAP_FAILED, "mmap: %s", strerror(errno));
	w->s->bss->wanted_tgid = (uint32_t)getpid();
	w->s->bss->room = ~0ULL;
	return 0;
}

void walk_load(struct walk *w)
{
	int err = load(w, false, NULL, 0);

	ct_require(!err, "the program does not load: %s", strerror(-err));
}

int walk_load_sleepable(struct walk *w, char *log, size_t log_size)
{
	return load(w, true, log, log_size);
}

int walk_attach(struct walk *w, const struct walk_filter *filter)
{
	DECLARE_LIBBPF_OPTS(bpf_iter_attach_opts, opts);
	bool is_sleepable = bpf_program__autoload(w->s->progs.walk_vmas_sleepable);
	union bpf_iter_link_info info;

	memset(&info, 0, sizeof(info));
	if (filter) {
		if (!fact_member("bpf_iter_aux_info", "task"))
			ct_skip("no filters in this kernel (6.1)");
		info.task.tid = filter->tid;
		info.task.pid = filter->pid;
		info.task.pid_fd = (uint32_t)filter->pid_fd;
		opts.link_info = &info;
		opts.link_info_len = sizeof(info);
	}
	w->link = bpf_program__attach_iter(
		is_sleepable ? w->s->progs.walk_vmas_sleepable : w->s->progs.walk_vmas, &opts);
	return w->link ? 0 : -errno;
}

void walk_open(struct walk *w)
{
	if (w->fd >= 0)
		close(w->fd);
	w->fd = bpf_iter_create(bpf_link__fd(w->link));
	ct_require(w->fd >= 0, "bpf_iter_create: %s", strerror(errno));
	w->s->bss->seen_cnt = 0;
	w->s->bss->refused_cnt = 0;
	w->s->bss->end_cnt = 0;
}

void walk_begin(struct walk *w, const struct walk_filter *filter)
{
	int err;

	err = walk_attach(w, filter);
	ct_require(!err, "attach: %s", strerror(-err));
	walk_open(w);
}

ssize_t walk_read(struct walk *w)
{
	static char text[65536];
	ssize_t n = read(w->fd, text, sizeof(text));

	return n < 0 ? -errno : n;
}

size_t walk_to_end(struct walk *w, size_t reads_max)
{
	for (size_t reads = 1; reads <= reads_max; reads++) {
		ssize_t n = walk_read(w);

		ct_require(n >= 0 || n == -EAGAIN, "read: %s", strerror((int)-n));
		if (n == 0) {
			ct_require(w->s->bss->lost_cnt == 0, "too many mappings for the case");
			return reads;
		}
	}
	ct_require(false, "no end after %zu reads, %llu mappings", reads_max,
		   (unsigned long long)w->s->bss->seen_cnt);
	return 0;
}

size_t walk_cnt_of(const struct walk *w, uint32_t tgid, uint32_t pid)
{
	size_t cnt = 0;

	for (size_t i = 0; i < w->s->bss->seen_cnt; i++)
		cnt += w->seen[i].tgid == tgid && (!pid || w->seen[i].pid == pid);
	return cnt;
}

size_t walk_cnt_of_range(const struct walk *w, uint64_t start, uint64_t end)
{
	size_t cnt = 0;

	for (size_t i = 0; i < w->s->bss->seen_cnt; i++)
		cnt += w->seen[i].start == start && w->seen[i].end == end;
	return cnt;
}

size_t walk_thread_cnt(const struct walk *w, uint32_t tgid)
{
	size_t cnt = 0;
	uint32_t last = 0;

	/* the records of a thread are together */
	for (size_t i = 0; i < w->s->bss->seen_cnt; i++) {
		if (w->seen[i].tgid != tgid || w->seen[i].pid == last)
			continue;
		last = w->seen[i].pid;
		cnt++;
	}
	return cnt;
}
