/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A probe returns 1 (there), 0 (not there) or a negative errno (could not be asked, or was
 * refused), and may describe what it found in detail. Existence is read from BTF where BTF
 * knows, because that needs no privilege; what a policy can forbid is tried.
 */
#include "features.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../util/err.h"
#include "basics.h"
#include "danger.h"
#include "mm_walk.h"
#include "trial.h"

/* Inode of the initial PID namespace in nsfs: PROC_PID_INIT_INO (linux/proc_ns.h). */
#define INIT_PID_NS_INO 0xEFFFFFFCU

struct vp_features {
	struct btf *btf;
	int btf_err; /* why btf is NULL; 0: not loaded yet */
	bool probed[VP_FEAT_CNT];
	struct vp_feature rows[VP_FEAT_CNT];
	char detail[VP_FEAT_CNT][VP_DETAIL_LEN];
};

/* ---- vmlinux BTF ---- */

static const struct btf *kernel_btf(struct vp_features *f)
{
	libbpf_print_fn_t print;

	if (!f->btf && !f->btf_err) {
		print = libbpf_set_print(NULL); /* the table says it if there is none */
		f->btf = btf__load_vmlinux_btf();
		if (!f->btf)
			f->btf_err = errno ? -errno : -ENOENT;
		libbpf_set_print(print);
	}
	return f->btf;
}

/* Type id, 0 if there is no such type, or why there is no BTF. */
static int find_type(struct vp_features *f, const char *name, __u32 kind)
{
	const struct btf *btf = kernel_btf(f);
	int id;

	if (!btf)
		return f->btf_err;
	id = btf__find_by_name_kind(btf, name, kind);
	return id > 0 ? id : 0;
}

static bool type_has_member(const struct btf *btf, __u32 id, const char *name)
{
	const struct btf_type *t = btf__type_by_id(btf, id);
	const struct btf_member *m;

	if (!t || !btf_is_composite(t))
		return false;
	m = btf_members(t);
	for (int i = 0; i < btf_vlen(t); i++, m++) {
		const char *member = btf__name_by_offset(btf, m->name_off);

		if (strcmp(member, name) == 0)
			return true;
		if (!member[0] && type_has_member(btf, m->type, name))
			return true;
	}
	return false;
}

bool vp_features_has_member(struct vp_features *f, const char *type, const char *member)
{
	int id = find_type(f, type, BTF_KIND_STRUCT);

	if (id == 0)
		id = find_type(f, type, BTF_KIND_UNION);
	return id > 0 && member[0] && type_has_member(f->btf, (__u32)id, member);
}

static int probe_member(struct vp_features *f, const char *type, const char *member)
{
	return kernel_btf(f) ? vp_features_has_member(f, type, member) : f->btf_err;
}

/* Does the kernel's enum have this enumerator? All of these enums are 32 bits wide. */
static int probe_enumerator(struct vp_features *f, const char *name, const char *enumerator)
{
	int id = find_type(f, name, BTF_KIND_ENUM);
	const struct btf_type *t;
	const struct btf_enum *e;

	if (id <= 0)
		return id;
	t = btf__type_by_id(f->btf, (__u32)id);
	e = btf_enum(t);
	for (int i = 0; i < btf_vlen(t); i++, e++) {
		if (strcmp(btf__name_by_offset(f->btf, e->name_off), enumerator) == 0)
			return 1;
	}
	return 0;
}

/* ---- trials ---- */

/* 1 if a tracing program loads for the BTF type of this name; 0 if BTF has no such type. */
static int try_tracing(struct vp_features *f, const char *target, __u32 kind,
		       enum bpf_attach_type attach)
{
	int id = find_type(f, target, kind);

	return id > 0 ? vp_tried(vp_trial_load(BPF_PROG_TYPE_TRACING, attach, id)) : id;
}

/*
 * Is the helper there, and may a perf_event program call it? libbpf's own probe takes every
 * refusal but "unknown func" for a yes, also that of an unprivileged load: hence the first try.
 */
static int probe_helper(struct vp_features *f, const char *enumerator, enum bpf_func_id id)
{
	int err = probe_enumerator(f, "bpf_func_id", enumerator);

	if (err <= 0)
		return err;
	err = vp_tried(vp_trial_load(BPF_PROG_TYPE_PERF_EVENT, 0, 0));
	if (err < 0)
		return err;
	return libbpf_probe_bpf_helper(BPF_PROG_TYPE_PERF_EVENT, id, NULL);
}

static int read_int(const char *path, int *value)
{
	FILE *f = fopen(path, "re");
	int n;

	*value = 0;
	if (!f)
		return -errno;
	n = fscanf(f, "%d", value); // NOLINT(cert-err34-c): the kernel wrote it
	fclose(f);
	return n == 1 ? 0 : -EINVAL;
}

/* ---- one probe per feature ---- */

static int probe_btf(struct vp_features *f, char *detail)
{
	(void)detail;
	return kernel_btf(f) ? 1 : f->btf_err;
}

static int probe_find_vma(struct vp_features *f, char *detail)
{
	(void)detail;
	return probe_helper(f, "BPF_FUNC_find_vma", BPF_FUNC_find_vma);
}

static int probe_loop(struct vp_features *f, char *detail)
{
	(void)detail;
	return probe_helper(f, "BPF_FUNC_loop", BPF_FUNC_loop);
}

static int probe_task_vma(struct vp_features *f, char *detail)
{
	(void)detail;
	return try_tracing(f, "bpf_iter_task_vma", BTF_KIND_FUNC, BPF_TRACE_ITER);
}

static int probe_ringbuf(struct vp_features *f, char *detail)
{
	int err = probe_enumerator(f, "bpf_map_type", "BPF_MAP_TYPE_RINGBUF");
	__u32 size = (__u32)sysconf(_SC_PAGESIZE);
	int fd;

	(void)detail;
	if (err <= 0)
		return err;
	fd = bpf_map_create(BPF_MAP_TYPE_RINGBUF, "vp_probe", 0, 0, size, NULL);
	return vp_tried(fd < 0 ? -errno : fd);
}

/* Lockdown in confidentiality mode takes the helper away from everyone. */
static int probe_probe_read(struct vp_features *f, char *detail)
{
	int err = probe_helper(f, "BPF_FUNC_probe_read_kernel", BPF_FUNC_probe_read_kernel);
	char line[VP_DETAIL_LEN - 32] = "";
	FILE *s;

	if (err)
		return err;
	s = fopen("/sys/kernel/security/lockdown", "re");
	if (!s)
		return 0;
	if (fgets(line, sizeof(line), s)) {
		line[strcspn(line, "\n")] = '\0';
		snprintf(detail, VP_DETAIL_LEN, "lockdown: %s", line);
	}
	fclose(s);
	return 0;
}

static int probe_cpu_clock(struct vp_features *f, char *detail)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_freq = 99,
		.freq = 1,
	};
	int fd = vp_trial_event(&attr);
	int paranoid;

	(void)f;
	if ((fd == -EACCES || fd == -EPERM) &&
	    !read_int("/proc/sys/kernel/perf_event_paranoid", &paranoid))
		snprintf(detail, VP_DETAIL_LEN, "kernel.perf_event_paranoid is %d", paranoid);
	return vp_tried(fd);
}

static int probe_cycles(struct vp_features *f, char *detail)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_HARDWARE,
		.config = PERF_COUNT_HW_CPU_CYCLES,
		.sample_freq = 99,
		.freq = 1,
	};
	int fd = vp_trial_event(&attr);

	(void)f;
	(void)detail;
	/* Virtual machines without a PMU; EBUSY would be a PMU that somebody else pinned. */
	if (fd == -ENOENT || fd == -EOPNOTSUPP || fd == -ENODEV)
		return 0;
	return vp_tried(fd);
}

/* Fork, exec and exit must all be there; one trial shows whether tp_btf is allowed. */
static int probe_proc_events(struct vp_features *f, char *detail)
{
	static const char *const names[] = {
		"btf_trace_sched_process_exec",
		"btf_trace_sched_process_exit",
		"btf_trace_sched_process_fork",
	};
	int last = 0;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		last = find_type(f, names[i], BTF_KIND_TYPEDEF);
		if (last == 0)
			snprintf(detail, VP_DETAIL_LEN, "BTF has no %s", names[i]);
		if (last <= 0)
			return last;
	}
	return vp_tried(vp_trial_load(BPF_PROG_TYPE_TRACING, BPF_TRACE_RAW_TP, last));
}

static int probe_safe_user_read(struct vp_features *f, char *detail)
{
	struct vp_err e = {};

	(void)f;
	(void)detail;
	return vp_kernel_check(&e) == 0;
}

static int probe_task_filter(struct vp_features *f, char *detail)
{
	(void)detail;
	return probe_member(f, "bpf_iter_link_info", "task");
}

/*
 * Loading is not enough: architectures without direct ftrace calls accept the program and
 * refuse to attach it, and security policies refuse either.
 */
static int probe_fentry(struct vp_features *f, char *detail)
{
	int id = find_type(f, "perf_event_mmap", BTF_KIND_FUNC);
	int prog;
	int link;

	if (id <= 0)
		return id;
	prog = vp_trial_load(BPF_PROG_TYPE_TRACING, BPF_TRACE_FENTRY, id);
	if (prog < 0) {
		if (vp_tried(vp_trial_load(BPF_PROG_TYPE_PERF_EVENT, 0, 0)) == 1 && prog == -EPERM)
			snprintf(detail, VP_DETAIL_LEN, "refused by policy");
		return prog;
	}
	link = bpf_raw_tracepoint_open(NULL, prog);
	if (link < 0)
		link = -errno;
	close(prog);
	/* ENOTSUPP (524) is what trampolines return where they are not implemented. */
	return link == -EOPNOTSUPP || link == -524 ? 0 : vp_tried(link);
}

static int probe_kprobe(struct vp_features *f, char *detail)
{
	struct perf_event_attr attr = {};
	int type;
	int err;

	(void)f;
	(void)detail;
	err = read_int("/sys/bus/event_source/devices/kprobe/type", &type);
	if (err)
		return err == -ENOENT ? 0 : err;
	attr.type = (__u32)type;
	attr.kprobe_func = (__u64)(unsigned long)"perf_event_mmap";
	return vp_tried(vp_trial_event(&attr));
}

static int probe_sideband(struct vp_features *f, char *detail)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_DUMMY,
		.mmap = 1,
		.mmap2 = 1,
		.comm = 1,
		.comm_exec = 1,
		.task = 1,
		.sample_id_all = 1,
	};

	(void)f;
	(void)detail;
	return vp_tried(vp_trial_event(&attr));
}

/* The rung that record takes: see live.h. */
static int probe_live_tracking(struct vp_features *f, char *detail)
{
	static const struct {
		enum vp_feature_id id;
		const char *text;
	} rungs[] = {
		{VP_FEAT_FENTRY, "by fentry"},
		{VP_FEAT_KPROBE, "by kprobe"},
		{VP_FEAT_SIDEBAND, "by sideband"},
	};

	for (size_t i = 0; i < sizeof(rungs) / sizeof(rungs[0]); i++) {
		if (vp_features_have(f, rungs[i].id)) {
			snprintf(detail, VP_DETAIL_LEN, "%s", rungs[i].text);
			return 1;
		}
	}
	return vp_features_get(f, VP_FEAT_SIDEBAND)->err;
}

/* 6.18 and 6.19 have only the _impl name; 7.0 has the plain one, and nobody may call the other. */
static int probe_task_work(struct vp_features *f, char *detail)
{
	static const char *const names[] = {
		"bpf_task_work_schedule_resume",
		"bpf_task_work_schedule_resume_impl",
	};
	int id = 0;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && id == 0; i++) {
		id = find_type(f, names[i], BTF_KIND_FUNC);
		if (id > 0)
			snprintf(detail, VP_DETAIL_LEN, "%s", names[i]);
	}
	return id > 0 ? 1 : id;
}

/* There is a tree, and it is the one that we can read. */
static int probe_maple_walk(struct vp_features *f, char *detail)
{
	int err = probe_member(f, "maple_range_64", "pivot");
	libbpf_print_fn_t print;

	if (err != 1)
		return err;
	print = libbpf_set_print(NULL);
	err = vp_mm_walk_probe();
	libbpf_set_print(print);
	if (err == 0)
		snprintf(detail, VP_DETAIL_LEN, "the tree and bpf_find_vma disagree");
	return err;
}

static int probe_mm_lock_seq(struct vp_features *f, char *detail)
{
	(void)detail;
	return probe_member(f, "mm_struct", "mm_lock_seq");
}

/*
 * PREEMPT_RT, where bpf_find_vma answers EBUSY to every caller with interrupts off: there a
 * spinlock is an rt_mutex called `lock`, elsewhere a raw spinlock called `rlock`.
 * /sys/kernel/realtime exists only on some of these kernels.
 */
static int probe_irq_find_vma(struct vp_features *f, char *detail)
{
	int err = probe_member(f, "spinlock", "lock");

	if (err == 1)
		snprintf(detail, VP_DETAIL_LEN, "this kernel is PREEMPT_RT");
	return err < 0 ? err : !err;
}

static int probe_mmap_lock_fix(struct vp_features *f, char *detail)
{
	(void)detail;
	return probe_member(f, "mmap_unlock_irq_work", "active");
}

/* Opens the first file that this process itself maps. */
static int probe_map_files(struct vp_features *f, char *detail)
{
	DIR *dir = opendir("/proc/self/map_files");
	struct dirent *entry;
	int err = -ENOENT;

	(void)f;
	(void)detail;
	if (!dir)
		return errno == ENOENT ? 0 : -errno;
	while ((entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		err = openat(dirfd(dir), entry->d_name, O_RDONLY | O_CLOEXEC);
		err = err < 0 ? -errno : err;
		break;
	}
	closedir(dir);
	return vp_tried(err);
}

/*
 * Any address that is not 0 will do. The first of them may truly be 0 (per-CPU symbols of older
 * x86 kernels), those a few lines further are not.
 */
static int probe_kallsyms(struct vp_features *f, char *detail)
{
	FILE *s = fopen("/proc/kallsyms", "re");
	char line[512];
	int found = 0;
	int restrict_level;
	int paranoid;

	(void)f;
	if (!s)
		return errno == ENOENT ? 0 : -errno;
	for (int i = 0; i < 64 && !found && fgets(line, sizeof(line), s); i++)
		found = strtoull(line, NULL, 16) != 0;
	fclose(s);
	if (!found && !read_int("/proc/sys/kernel/kptr_restrict", &restrict_level) &&
	    !read_int("/proc/sys/kernel/perf_event_paranoid", &paranoid))
		snprintf(detail, VP_DETAIL_LEN,
			 "kernel.kptr_restrict is %d, kernel.perf_event_paranoid %d",
			 restrict_level, paranoid);
	return found;
}

/* mountinfo: "36 35 0:31 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw" */
static int probe_cgroup2(struct vp_features *f, char *detail)
{
	FILE *s = fopen("/proc/self/mountinfo", "re");
	char line[4096];
	char mount[VP_DETAIL_LEN];
	int found = 0;

	(void)f;
	if (!s)
		return -errno;
	while (!found && fgets(line, sizeof(line), s)) {
		if (!strstr(line, " - cgroup2 ") ||
		    sscanf(line, "%*d %*d %*s %*s %191s", mount) != 1)
			continue;
		snprintf(detail, VP_DETAIL_LEN, "%s", mount);
		found = 1;
	}
	fclose(s);
	return found;
}

static int probe_init_pid_ns(struct vp_features *f, char *detail)
{
	struct stat st;

	(void)f;
	(void)detail;
	if (stat("/proc/self/ns/pid", &st))
		return errno == ENOENT ? 1 : -errno; /* a kernel without CONFIG_PID_NS */
	return st.st_ino == INIT_PID_NS_INO;
}

/* ---- the table ---- */

struct feature_def {
	const char *name;
	const char *since;
	const char *without;
	const char *hint;
	bool required;
	int (*probe)(struct vp_features *f, char *detail);
	__u64 needs; /* bits of features without which it cannot be there */
};

#define BIT(id) (1ULL << VP_FEAT_##id)

/* What a program needs, and one that looks into the kernel. */
#define NEEDS_PROGRAMS	 BIT(BPF_EVENTS)
#define NEEDS_TYPES	 BIT(BTF)
#define NEEDS_TYPED_PROG (NEEDS_PROGRAMS | NEEDS_TYPES)

static const struct feature_def defs[] = {
	[VP_FEAT_PROC] = {"proc", "1.0", "no process and no mapped file can be looked at",
			  "mount -t proc proc /proc, in a kernel with CONFIG_PROC_FS=y", true,
			  vp_probe_proc},
	[VP_FEAT_SYSFS] = {"sysfs", "2.6", "neither the kernel's types nor the CPUs are known",
			   "mount -t sysfs sysfs /sys, in a kernel with CONFIG_SYSFS=y", true,
			   vp_probe_sysfs},
	[VP_FEAT_SYSTEM_CALLS] = {"system_calls", "2.6.27", "records cannot be waited for",
				  "a kernel with CONFIG_FUTEX, CONFIG_EPOLL, CONFIG_EVENTFD and "
				  "CONFIG_SIGNALFD",
				  true, vp_probe_system_calls},
	[VP_FEAT_BPF_SYSCALL] = {"bpf", "3.18", "no maps and no programs",
				 "a kernel with CONFIG_BPF_SYSCALL=y", true, vp_probe_bpf_syscall},
	[VP_FEAT_PERF_EVENTS] = {"perf_events", "2.6.31", "no samples",
				 "a kernel with CONFIG_PERF_EVENTS=y", true, vp_probe_perf_events},
	[VP_FEAT_NET] = {"socket_filter", "3.19", "libbpf cannot try out what the kernel takes",
			 "a kernel with CONFIG_NET=y", true, vp_probe_net, BIT(BPF_SYSCALL)},
	[VP_FEAT_BPF_EVENTS] = {"bpf_events", "4.9", "no programs on perf events",
				"a kernel with CONFIG_BPF_EVENTS=y: needs CONFIG_UPROBE_EVENTS or "
				"CONFIG_KPROBE_EVENTS",
				true, vp_probe_bpf_events, BIT(BPF_SYSCALL) | BIT(PERF_EVENTS)},
	[VP_FEAT_JIT] = {"bpf_jit", "3.0", "programs that call back are refused",
			 "a kernel with CONFIG_BPF_JIT=y, and sysctl net.core.bpf_jit_enable=1",
			 true, vp_probe_bpf_jit, NEEDS_PROGRAMS},
	[VP_FEAT_BTF] = {"btf", "5.2", "no program can be loaded",
			 "a kernel with CONFIG_DEBUG_INFO_BTF=y", true, probe_btf,
			 BIT(SYSFS) | BIT(BPF_SYSCALL)},
	[VP_FEAT_FIND_VMA] = {"bpf_find_vma", "5.17 (7c7e3d31e785)", "addresses cannot be resolved",
			      "Linux 5.17 or later", true, probe_find_vma, NEEDS_TYPED_PROG},
	[VP_FEAT_LOOP] = {"bpf_loop", "5.17 (e6f2dd0f8067)", "stacks cannot be unwound",
			  "Linux 5.17 or later", true, probe_loop, NEEDS_TYPED_PROG},
	[VP_FEAT_TASK_VMA] = {"iter_task_vma", "5.13", "mappings that exist cannot be listed",
			      "Linux 5.13 or later", true, probe_task_vma, NEEDS_TYPED_PROG},
	[VP_FEAT_RINGBUF] = {"ringbuf", "5.8", "no way for records to user space",
			     "Linux 5.8 or later", true, probe_ringbuf, NEEDS_TYPES},
	[VP_FEAT_PROBE_READ] = {"probe_read", "5.5", "kernel memory cannot be read by BPF",
				"boot without lockdown=confidentiality", true, probe_probe_read,
				NEEDS_TYPED_PROG},
	[VP_FEAT_CPU_CLOCK] = {"cpu_clock", "2.6.31", "no samples",
			       "CAP_PERFMON, and sysctl kernel.perf_event_paranoid=2 (or less)",
			       true, probe_cpu_clock, BIT(PERF_EVENTS)},
	[VP_FEAT_PROC_EVENTS] = {"process_events", "5.5", "fork, exec and exit are not seen",
				 "a kernel with CONFIG_BPF_EVENTS=y", true, probe_proc_events,
				 NEEDS_TYPED_PROG},
	[VP_FEAT_SAFE_USER_READ] = {"safe_user_read", "6.4, 6.3.10, 6.1.36 (d319f344561d)",
				    "sampling can lock the machine up",
				    "update the kernel, or record --force-kernel", true,
				    probe_safe_user_read},
	[VP_FEAT_CYCLES] = {"hw_cycles", "2.6.31",
			    "cpu-clock instead: code with interrupts off is not seen",
			    "a CPU, or a virtual machine, with a PMU", false, probe_cycles,
			    BIT(PERF_EVENTS)},
	[VP_FEAT_TASK_FILTER] = {"iter_task_filter", "6.1 (f0d74c4da1f0)",
				 "a walk over all processes where one is meant",
				 "Linux 6.1 or later", false, probe_task_filter, NEEDS_TYPES},
	[VP_FEAT_FENTRY] = {"fentry", "5.5", "new mappings by kprobe or perf sideband",
			    "a policy with BPF trampolines, CONFIG_FUNCTION_TRACER=y", false,
			    probe_fentry, NEEDS_TYPED_PROG},
	[VP_FEAT_KPROBE] = {"kprobe", "4.17", "new mappings by fentry or perf sideband",
			    "a kernel with CONFIG_KPROBE_EVENTS=y", false, probe_kprobe,
			    BIT(PERF_EVENTS) | BIT(SYSFS)},
	[VP_FEAT_SIDEBAND] = {"perf_sideband", "3.16",
			      "no last resort where fentry and kprobe are missing", "CAP_PERFMON",
			      false, probe_sideband, BIT(PERF_EVENTS)},
	[VP_FEAT_LIVE_TRACKING] = {"live_tracking", "one of the three above",
				   "new mappings are known only when a sample hits them",
				   "CAP_PERFMON", false, probe_live_tracking, BIT(PERF_EVENTS)},
	[VP_FEAT_TASK_WORK] = {"task_work", "6.18",
			       "user stacks are taken in the interrupt (inline)",
			       "Linux 6.18 or later", false, probe_task_work, NEEDS_TYPES},
	[VP_FEAT_MAPLE_WALK] = {"maple_walk", "6.1",
				"one unknown address a sample is resolved inline",
				"Linux 6.1 or later", false, probe_maple_walk,
				NEEDS_TYPED_PROG | BIT(JIT) | BIT(NET)},
	[VP_FEAT_MM_LOCK_SEQ] = {"mm_lock_seq", "6.4",
				 "what is known is asked for again in each sample",
				 "a kernel with CONFIG_PER_VMA_LOCK=y", false, probe_mm_lock_seq,
				 NEEDS_TYPES},
	[VP_FEAT_IRQ_FIND_VMA] = {"irq_find_vma", "not PREEMPT_RT",
				  "addresses are resolved by the maple walk alone",
				  "a kernel without CONFIG_PREEMPT_RT", false, probe_irq_find_vma,
				  NEEDS_TYPES},
	[VP_FEAT_MMAP_LOCK_FIX] = {"mmap_lock_fix", "6.12.114, 6.1.191 (fa9dcacdcdf4)",
				   "other tools' nested find_vma can hang a process",
				   "update the kernel", false, probe_mmap_lock_fix, NEEDS_TYPES},
	[VP_FEAT_MAP_FILES] = {"map_files", "3.3",
			       "deleted files and those of containers have no symbols",
			       "CAP_CHECKPOINT_RESTORE", false, probe_map_files, BIT(PROC)},
	[VP_FEAT_KALLSYMS] = {"kallsyms", "2.6", "kernel functions have no names",
			      "CONFIG_KALLSYMS=y, CAP_SYSLOG, sysctl kernel.kptr_restrict=1", false,
			      probe_kallsyms, BIT(PROC)},
	[VP_FEAT_CGROUP2] = {"cgroup2", "4.5", "no record -G CGROUP",
			     "CONFIG_CGROUPS=y, mount -t cgroup2 none /sys/fs/cgroup", false,
			     probe_cgroup2, BIT(PROC)},
	[VP_FEAT_INIT_PID_NS] = {"init_pid_ns", "2.6.24",
				 "processes outside of this container are not seen",
				 "docker run --pid=host, hostPID: true", false, probe_init_pid_ns,
				 BIT(PROC)},
};

_Static_assert(sizeof(defs) / sizeof(defs[0]) == VP_FEAT_CNT, "one definition a feature");
_Static_assert(VP_FEAT_CNT <= 64, "needs has a bit for each");

int vp_features_new(struct vp_features **out)
{
	struct vp_features *f = calloc(1, sizeof(*f));

	*out = f;
	if (!f)
		return -ENOMEM;
	for (int i = 0; i < VP_FEAT_CNT; i++) {
		f->rows[i] = (struct vp_feature){
			.name = defs[i].name,
			.since = defs[i].since,
			.without = defs[i].without,
			.hint = defs[i].hint,
			.required = defs[i].required,
			.detail = f->detail[i],
		};
	}
	return 0;
}

/* The kernel's own word that there is no such thing; nobody refused to say. */
static bool is_absent(const struct vp_feature *row)
{
	return !row->present && row->err != -EPERM && row->err != -EACCES;
}

/* The name of the first feature that is absent and that all others here stand on, or NULL. */
static const char *find_missing_need(struct vp_features *f, __u64 needs)
{
	for (int i = 0; i < VP_FEAT_CNT; i++) {
		const struct vp_feature *row;

		if (!(needs & 1ULL << i))
			continue;
		row = vp_features_get(f, (enum vp_feature_id)i);
		if (is_absent(row))
			return row->needs ? row->needs : row->name;
	}
	return NULL;
}

const struct vp_feature *vp_features_get(struct vp_features *f, enum vp_feature_id id)
{
	struct vp_feature *row = &f->rows[id];
	int result = 0;

	if (f->probed[id])
		return row;
	row->needs = find_missing_need(f, defs[id].needs);
	if (!row->needs)
		result = defs[id].probe(f, f->detail[id]);
	row->present = result == 1;
	row->err = result < 0 ? result : 0;
	f->probed[id] = true;
	return row;
}

bool vp_features_have(struct vp_features *f, enum vp_feature_id id)
{
	return vp_features_get(f, id)->present;
}

/* What record cannot do without and this kernel has not, by its own word, up to `last`; or NULL. */
static const struct vp_feature *first_lack(struct vp_features *f, enum vp_feature_id last)
{
	for (int i = 0; i <= (int)last; i++) {
		const struct vp_feature *row;

		/* what --force-kernel overrides stops nobody */
		if (!defs[i].required || i == VP_FEAT_SAFE_USER_READ)
			continue;
		row = vp_features_get(f, (enum vp_feature_id)i);
		if (!row->present && !row->err && !row->needs)
			return row;
	}
	return NULL;
}

static bool explain(int err, enum vp_feature_id last, struct vp_err *e)
{
	const struct vp_feature *lack;
	struct vp_features *f;

	if (vp_features_new(&f))
		return false;
	lack = first_lack(f, last);
	if (lack)
		vp_err_set(e, err, "this kernel lacks %s: %s (%s)", lack->name,
			   lack->detail[0] ? lack->detail : lack->without, lack->hint);
	vp_features_free(f);
	return lack != NULL;
}

bool vp_features_explain(int err, struct vp_err *e)
{
	if (!err || err == -EPERM || err == -EACCES)
		return false;
	return explain(err, VP_FEAT_CNT - 1, e);
}

int vp_features_check(struct vp_err *e)
{
	return explain(-ENOSYS, VP_FEAT_PERF_EVENTS, e) ? -ENOSYS : 0;
}

int vp_features_probe(struct vp_features **out)
{
	int err = vp_features_new(out);

	if (err)
		return err;
	for (int i = 0; i < VP_FEAT_CNT; i++)
		vp_features_get(*out, (enum vp_feature_id)i);
	return 0;
}

void vp_features_free(struct vp_features *f)
{
	if (!f)
		return;
	btf__free(f->btf);
	free(f);
}
