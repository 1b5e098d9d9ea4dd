// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Schedules work in the context of a task, from an interrupt or a system call, and notes what became of
 * it.
 *
 * 6.18 has the functions as NAME_impl, with a last argument for the verifier (ea0714d61dea); since 7.0
 * (6e663ffdf760) they are NAME without it. 7.0 still has NAME_impl in its BTF, but nobody may call it:
 * a program with a call of it does not load, even where it is never reached. So each program is there
 * twice, and user space takes one of them.
 */
#include "vmlinux.h"

#include <bpf/bpf_helpers.h>

#include "task_work.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define EBUSY 16

extern int bpf_task_work_schedule_resume_impl(struct task_struct *task, struct bpf_task_work *work,
					      void *map,
					      int (*callback)(struct bpf_map *, void *, void *),
					      void *aux) __ksym __weak;
extern int bpf_task_work_schedule_signal_impl(struct task_struct *task, struct bpf_task_work *work,
					      void *map,
					      int (*callback)(struct bpf_map *, void *, void *),
					      void *aux) __ksym __weak;
extern int
bpf_task_work_schedule_resume(struct task_struct *task, struct bpf_task_work *work, void *map,
			      int (*callback)(struct bpf_map *, void *, void *)) __ksym __weak;
extern int
bpf_task_work_schedule_signal(struct task_struct *task, struct bpf_task_work *work, void *map,
			      int (*callback)(struct bpf_map *, void *, void *)) __ksym __weak;

struct work {
	struct bpf_task_work work;
	__u32 tid; /* of the thread that it was scheduled in */
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, WORKS_MAX);
	__type(key, __u32);
	__type(value, struct work);
} works SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct work);
} other_works SEC(".maps");

/* Written by user space: which thread, in which system call; what to do; which address to find. */
__u32 wanted_tid = 0;
__u64 wanted_fd = 0;
__u32 asked = 0;
__u64 entered_max = ~0ULL;
__u64 addr = 0;

/*
 * Written by the programs. There is one thread that they run in, and a callback does not nest: plain
 * adds. An interrupt can fall into a callback, but they write different words.
 */
__u64 entered = 0; /* times that a program was there */
struct answers scheduled = {}, again = {}, found = {};
__u64 no_value = 0; /* times that there was no room for a value */
__u64 called = 0, in_another_thread = 0;

static __always_inline void count(struct answers *a, long err)
{
	a->last = err;
	if (!err)
		a->ok++;
	else if (err == -EBUSY)
		a->busy++;
	else
		a->other++;
}

static long on_vma(struct task_struct *task, struct vm_area_struct *vma, void *ctx)
{
	return 0;
}

/* In the task, on its way to user mode; sleepable. */
static int in_task(struct bpf_map *map, void *key, void *value)
{
	struct work *w = value;
	struct task_struct *task = bpf_get_current_task_btf();
	__u64 zero = 0;

	if ((__u32)task->pid != w->tid)
		in_another_thread++;
	for (int i = 0; i < FINDS; i++)
		count(&found, bpf_find_vma(task, addr, on_vma, &zero, 0));
	__sync_fetch_and_add(&called, 1);
	return 0;
}

static __always_inline struct work *value_of(__u32 key)
{
	static const struct work none;
	struct work *w = bpf_map_lookup_elem(&works, &key);

	if (!w && !bpf_map_update_elem(&works, &key, &none, BPF_NOEXIST))
		w = bpf_map_lookup_elem(&works, &key);
	if (!w)
		no_value++;
	return w;
}

#define resume_impl(t, w)  bpf_task_work_schedule_resume_impl(t, &(w)->work, &works, in_task, NULL)
#define signal_impl(t, w)  bpf_task_work_schedule_signal_impl(t, &(w)->work, &works, in_task, NULL)
#define resume_plain(t, w) bpf_task_work_schedule_resume(t, &(w)->work, &works, in_task)
#define signal_plain(t, w) bpf_task_work_schedule_signal(t, &(w)->work, &works, in_task)

#define DO_AS_ASKED(kind)                                                                          \
	static __always_inline void do_as_asked_##kind(void)                                       \
	{                                                                                          \
		struct task_struct *task = bpf_get_current_task_btf();                             \
		__u32 key = 0;                                                                     \
		struct work *w;                                                                    \
                                                                                                   \
		w = value_of(key);                                                                 \
		if (!w)                                                                            \
			return;                                                                    \
		w->tid = task->pid;                                                                \
		if (asked & TW_SIGNAL)                                                             \
			count(&scheduled, signal_##kind(task, w));                                 \
		else                                                                               \
			count(&scheduled, resume_##kind(task, w));                                 \
		if (asked & TW_TWICE)                                                              \
			count(&again, resume_##kind(task, w));                                     \
		if (asked & TW_DELETE)                                                             \
			bpf_map_delete_elem(&works, &key);                                         \
		__sync_fetch_and_add(&entered, 1);                                                 \
	}

DO_AS_ASKED(impl)
DO_AS_ASKED(plain)

static __always_inline bool is_wanted(void)
{
	return (__u32)bpf_get_current_pid_tgid() == wanted_tid && entered < entered_max;
}

/* Is this read(wanted_fd)? x86-64: its number is 0. */
static __always_inline bool is_wanted_read(struct bpf_raw_tracepoint_args *ctx)
{
	const struct pt_regs *regs = (const void *)ctx->args[0];
	__u64 fd = 0;

	if (!is_wanted() || ctx->args[1] != 0)
		return false;
	bpf_probe_read_kernel(&fd, sizeof(fd), &regs->di);
	return fd == wanted_fd;
}

#define PROGRAMS(kind)                                                                             \
	/* Hook: a sample; hardirq, IRQs off. */                                                   \
	SEC("?perf_event")                                                                         \
	int in_interrupt_##kind(void *ctx)                                                         \
	{                                                                                          \
		if (is_wanted())                                                                   \
			do_as_asked_##kind();                                                      \
		return 0;                                                                          \
	}                                                                                          \
                                                                                                   \
	/* Hook: entry of a system call; IRQs on. */                                               \
	SEC("?raw_tp/sys_enter")                                                                   \
	int in_syscall_##kind(struct bpf_raw_tracepoint_args *ctx)                                 \
	{                                                                                          \
		if (is_wanted_read(ctx))                                                           \
			do_as_asked_##kind();                                                      \
		return 0;                                                                          \
	}

PROGRAMS(impl)
PROGRAMS(plain)

/* ---- for the benchmark: a program's test run, which is a system call -------------------------- */

__u64 before_ns = 0, after_ns = 0; /* around the call that schedules */
__u64 called_ns = 0;		   /* 0: not yet */

static int note_time(struct bpf_map *map, void *key, void *value)
{
	called_ns = bpf_ktime_get_ns();
	return 0;
}

#define TIMED(kind, schedule)                                                                      \
	SEC("?raw_tp")                                                                             \
	int timed_##kind(void *ctx)                                                                \
	{                                                                                          \
		struct task_struct *task = bpf_get_current_task_btf();                             \
		struct work *w = value_of(0);                                                      \
		long err;                                                                          \
                                                                                                   \
		if (!w)                                                                            \
			return 1;                                                                  \
		called_ns = 0;                                                                     \
		before_ns = bpf_ktime_get_ns();                                                    \
		err = schedule;                                                                    \
		after_ns = bpf_ktime_get_ns();                                                     \
		return err != 0;                                                                   \
	}

TIMED(impl, bpf_task_work_schedule_resume_impl(task, &w->work, &works, note_time, NULL))
TIMED(plain, bpf_task_work_schedule_resume(task, &w->work, &works, note_time))

/* The same without it. */
SEC("?raw_tp")
int timed_nothing(void *ctx)
{
	struct work *w = value_of(0);

	if (!w)
		return 1;
	before_ns = bpf_ktime_get_ns();
	after_ns = bpf_ktime_get_ns();
	return 0;
}

/* ---- programs that the verifier refuses -------------------------------------------------------- */

/* A value of one map, and another map. */
SEC("?perf_event")
int of_another_map_impl(void *ctx)
{
	struct work *w = value_of(0);

	if (w)
		bpf_task_work_schedule_resume_impl(bpf_get_current_task_btf(), &w->work,
						   &other_works, in_task, NULL);
	return 0;
}

SEC("?perf_event")
int of_another_map_plain(void *ctx)
{
	struct work *w = value_of(0);

	if (w)
		bpf_task_work_schedule_resume(bpf_get_current_task_btf(), &w->work, &other_works,
					      in_task);
	return 0;
}

/* A task that may go away any time. */
SEC("?perf_event")
int of_an_untrusted_task_impl(void *ctx)
{
	struct work *w = value_of(0);

	if (w)
		resume_impl(bpf_get_current_task_btf()->real_parent, w);
	return 0;
}

SEC("?perf_event")
int of_an_untrusted_task_plain(void *ctx)
{
	struct work *w = value_of(0);

	if (w)
		resume_plain(bpf_get_current_task_btf()->real_parent, w);
	return 0;
}

/* Memory that is in no map. */
SEC("?perf_event")
int of_no_map_impl(void *ctx)
{
	struct work w = {};

	resume_impl(bpf_get_current_task_btf(), &w);
	return 0;
}

SEC("?perf_event")
int of_no_map_plain(void *ctx)
{
	struct work w = {};

	resume_plain(bpf_get_current_task_btf(), &w);
	return 0;
}
