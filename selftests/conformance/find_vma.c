// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* bpf_find_vma: what it finds, what it says when there is nothing, and when it says "busy". */
#include "case.h"
#include "facts.h"
#include "ops_run.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE  4096UL
#define TIMES 200 /* samples or calls */

#define PF_KTHREAD 0x00200000 /* the idle task has it, too */

/* Far from where the kernel puts mappings by itself: what libraries map meanwhile is not next to it. */
#define LONELY 0x200000000000UL

static char *lonely_page(void)
{
	char *p = mmap((void *)LONELY, PAGE, PROT_READ,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	ct_require(p == (void *)LONELY, "mmap: %s", strerror(errno));
	return p;
}

static bool covers(const struct op *op, uint64_t addr)
{
	return op->called > 0 && op->start <= addr && addr < op->end;
}

/* Several addresses, each in calls of its own: in an interrupt there is one to a sample. */
static void expect_all(const uint64_t *addr, size_t cnt, int err)
{
	for (size_t i = 0; i < cnt; i++) {
		struct op in_irq = {.kind = OP_FIND_VMA, .addr = addr[i]}, in_syscall = in_irq;

		ops_run(OPS_IN_SYSCALL, &in_syscall, 1, TIMES);
		ct_expect(op_always(&in_syscall, err), "%#llx, irqs on: %s",
			  (unsigned long long)addr[i], op_text(&in_syscall));
		if (err == 0)
			ct_expect(covers(&in_syscall, addr[i]), "%#llx: found %llx-%llx",
				  (unsigned long long)addr[i], in_syscall.start, in_syscall.end);
		ops_run(OPS_IN_INTERRUPT, &in_irq, 1, TIMES);
		if (fact_rt())
			ct_expect(in_irq.ok == 0, "%#llx, irqs off, RT: %s",
				  (unsigned long long)addr[i], op_text(&in_irq));
		else
			ct_expect(op_mostly(&in_irq, err), "%#llx, irqs off: %s",
				  (unsigned long long)addr[i], op_text(&in_irq));
	}
}

static void first_and_last_byte(void)
{
	uint64_t page = (uint64_t)lonely_page();
	const uint64_t addr[] = {page, page + PAGE - 1};

	expect_all(addr, 2, 0);
}

static void the_end_of_a_mapping(void)
{
	uint64_t page = (uint64_t)lonely_page();
	const uint64_t addr[] = {page + PAGE, page - 1};

	expect_all(addr, 2, -ENOENT);
}

static void address_zero(void)
{
	const uint64_t addr[] = {0};

	expect_all(addr, 1, -ENOENT);
}

static void the_vsyscall_page(void)
{
	const uint64_t addr[] = {0xffffffffff600000};

	expect_all(addr, 1, -ENOENT);
}

static void addresses_that_no_process_has(void)
{
	const uint64_t addr[] = {0xffffffff81000000, 0x8000000000000000, 0x0000800000000000, ~0ULL};

	expect_all(addr, 4, -ENOENT);
}

static uint64_t start_of(const char *name)
{
	FILE *f = fopen("/proc/self/maps", "re");
	char line[512];
	uint64_t start = 0;

	while (f && !start && fgets(line, sizeof(line), f)) {
		if (strstr(line, name))
			sscanf(line, "%lx", &start);
	}
	if (f)
		fclose(f);
	return start;
}

static void special_mappings(void)
{
	static const char *const names[] = {"[vdso]", "[vvar]", "[heap]", "[stack]"};
	uint64_t addr[5];
	size_t cnt = 0;

	(void)!sbrk(65536);
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		addr[cnt] = start_of(names[i]);
		if (addr[cnt])
			cnt++;
		else
			ct_note("this process has no %s", names[i]);
	}
	addr[cnt++] = (uint64_t)mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	expect_all(addr, cnt, 0);
}

static void below_a_stack(void)
{
	char *grows =
		mmap((void *)LONELY, PAGE, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_GROWSDOWN | MAP_FIXED_NOREPLACE, -1, 0);
	uint64_t addr;

	ct_require(grows == (void *)LONELY, "mmap: %s", strerror(errno));
	addr = (uint64_t)grows - 1;
	expect_all(&addr, 1, -ENOENT);
}

static void flags_are_refused(void)
{
	uint64_t here = (uint64_t)lonely_page();
	struct op ops[] = {
		{.kind = OP_FIND_VMA, .addr = here, .flags = 1},
		{.kind = OP_FIND_VMA, .addr = here},
		{.kind = OP_FIND_VMA, .addr = here, .flags = 1},
	};

	ops_run(OPS_IN_INTERRUPT, ops, 3, TIMES);
	ct_expect(op_always(&ops[0], -EINVAL), "first: %s", op_text(&ops[0]));
	ct_expect(op_always(&ops[2], -EINVAL), "while the lock is taken: %s", op_text(&ops[2]));
}

static void tasks_without_memory(void)
{
	struct op op = {.kind = OP_FIND_VMA, .addr = (uint64_t)lonely_page()};

	ops_run_in(PF_KTHREAD, &op, 1, 50);
	ct_expect(op.ok == 0 && op.called == 0, "idle tasks and kernel threads: %s", op_text(&op));
	ct_expect(op_always(&op, -ENOENT), "idle tasks and kernel threads: %s", op_text(&op));
}

static void two_in_an_interrupt(void)
{
	uint64_t here = (uint64_t)lonely_page();
	struct op ops[] = {{.kind = OP_FIND_VMA, .addr = here},
			   {.kind = OP_FIND_VMA, .addr = here}};

	ops_run(OPS_IN_INTERRUPT, ops, 2, TIMES);
	ct_expect(fact_rt() ? op_always(&ops[0], -EBUSY) : op_mostly(&ops[0], 0), "first: %s",
		  op_text(&ops[0]));
	ct_expect(op_always(&ops[1], -EBUSY), "second: %s", op_text(&ops[1]));
}

static void one_that_finds_nothing_takes_the_turn(void)
{
	struct op ops[] = {{.kind = OP_FIND_VMA, .addr = 0},
			   {.kind = OP_FIND_VMA, .addr = (uint64_t)lonely_page()}};

	ops_run(OPS_IN_INTERRUPT, ops, 2, TIMES);
	ct_expect(op_always(&ops[1], -EBUSY), "second: %s", op_text(&ops[1]));
}

static void many_with_interrupts_on(void)
{
	uint64_t here = (uint64_t)lonely_page();
	struct op ops[OPS_MAX];

	for (size_t i = 0; i < OPS_MAX; i++)
		ops[i] = (struct op){.kind = OP_FIND_VMA, .addr = here};
	ops_run(OPS_IN_SYSCALL, ops, OPS_MAX, TIMES);
	for (size_t i = 0; i < OPS_MAX; i++)
		ct_expect(op_always(&ops[i], 0), "number %zu: %s", i, op_text(&ops[i]));
}

static void build_ids_before_it(void)
{
	struct op ops[] = {{.kind = OP_BUILD_IDS},
			   {.kind = OP_FIND_VMA, .addr = (uint64_t)lonely_page()}};

	ops_run(OPS_IN_INTERRUPT, ops, 2, TIMES);
	ct_expect(op_always(&ops[1], -EBUSY), "behind a stack with build ids: %s",
		  op_text(&ops[1]));
}

static void build_ids_behind_it(void)
{
	struct op ops[] = {{.kind = OP_FIND_VMA, .addr = (uint64_t)lonely_page()},
			   {.kind = OP_BUILD_IDS}};

	ops_run(OPS_IN_INTERRUPT, ops, 2, TIMES);
	ct_expect(ops[1].by_id == 0, "%llu frames have a build id", ops[1].by_id);
	ct_expect(ops[1].by_ip > 0, "no frame has an address");
}

static void while_a_writer_has_the_lock(void)
{
	struct op op = {.kind = OP_FIND_VMA, .addr = (uint64_t)lonely_page()}, afterwards = op;

	ops_run(OPS_IN_MMAP, &op, 1, TIMES);
	ct_expect(op_always(&op, -EBUSY), "in mmap(): %s", op_text(&op));
	ops_run(OPS_IN_SYSCALL, &afterwards, 1, TIMES);
	ct_expect(op_always(&afterwards, 0), "afterwards: %s", op_text(&afterwards));
}

static void nested_with_interrupts_on(void)
{
	struct op op = {.kind = OP_FIND_NESTED, .addr = (uint64_t)lonely_page()};

	ops_run(OPS_IN_SYSCALL, &op, 1, TIMES);
	ct_expect(op_always(&op, 0), "outer: %s", op_text(&op));
	ct_expect(op.last_inner == 0 || op.last_inner == -EBUSY, "inner: %lld", op.last_inner);
}

/*
 * In a child: where the lock has leaked, the child hangs as soon as it unmaps the program's memory. What
 * it saw is in op (shared) by then. A sample that hits the kernel while it has the lock calls nothing.
 */
static void find_nested(struct op *op)
{
	int rounds = fact_rt() ? 1 : 20;
	void *p;

	for (int i = 0; i < rounds && !op->called; i++)
		ops_run(OPS_IN_INTERRUPT, op, 1, 10);
	p = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	_exit(p == MAP_FAILED);
}

/* Its status, or -1: it does not end. */
static int wait_for_nested(pid_t pid, const struct op *op)
{
	int status, ms = 60000;

	for (; ms > 0; ms -= 10) {
		if (waitpid(pid, &status, WNOHANG) == pid)
			return status;
		/* what is left to do takes no time, but for who hangs */
		if (ms > 20000 && __atomic_load_n(&op->called, __ATOMIC_ACQUIRE))
			ms = 20000;
		usleep(10000);
	}
	return -1;
}

static void nested_in_an_interrupt(void)
{
	bool is_fixed = fact_member("mmap_unlock_irq_work", "active") || fact_rt();
	struct op *op =
		mmap(NULL, sizeof(*op), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int status;
	pid_t pid;

	ct_require(op != MAP_FAILED, "mmap: %s", strerror(errno));
	*op = (struct op){.kind = OP_FIND_NESTED, .addr = (uint64_t)lonely_page()};
	pid = ct_fork();
	if (pid == 0)
		find_nested(op);
	ct_require(pid > 0, "fork: %s", strerror(errno));
	status = wait_for_nested(pid, op);
	if (fact_rt()) {
		ct_expect(op_always(op, -EBUSY), "outer: %s", op_text(op));
	} else {
		ct_require(op->called > 0, "never called back: %s", op_text(op));
		/* not earlier: without a call inside, nothing was seen of the bug */
		if (!is_fixed)
			ct_known_bug("\"bpf: Fix mmap_lock leak in irq_work path\" (6.1.191, "
				     "6.12.114)");
		ct_expect(op->last_inner == -EBUSY, "inner: %lld", op->last_inner);
	}
	ct_expect(status == 0, "after it the process cannot map memory any more (status %d)",
		  status);
}

/* In a child, of its parent, that is this process, which has the page as well. */
static void of_parent(enum ops_where where, void (*expect)(const struct op *op))
{
	struct op op = {.kind = OP_FIND_FOREIGN, .addr = (uint64_t)lonely_page()};
	pid_t pid = ct_fork();
	int status;

	ct_require(pid >= 0, "fork: %s", strerror(errno));
	if (pid == 0) {
		ops_run(where, &op, 1, TIMES);
		expect(&op);
		_exit(0);
	}
	waitpid(pid, &status, 0);
	ct_expect(status == 0, "status %d", status);
}

static void expect_pinned_or_found(const struct op *op)
{
	/* the fix that pins is in the same kernels as the other one but for a few: there busy is right, too */
	if (fact_member("mmap_unlock_irq_work", "active") || fact_rt() || op_always(op, -EBUSY)) {
		ct_expect(op_always(op, -EBUSY), "%s", op_text(op));
		return;
	}
	ct_expect(op->ok > 0 && !op->noent && !op->inval && !op->other, "%s", op_text(op));
	ct_expect(covers(op, op->addr), "found %llx-%llx", op->start, op->end);
}

static void of_another_task_in_an_interrupt(void)
{
	of_parent(OPS_IN_INTERRUPT, expect_pinned_or_found);
}

static void expect_found(const struct op *op)
{
	ct_expect(op->ok > 0 && op->ok + op->busy >= TIMES, "%s", op_text(op));
	ct_expect(covers(op, op->addr), "found %llx-%llx", op->start, op->end);
}

static void of_another_task_in_a_system_call(void)
{
	of_parent(OPS_IN_SYSCALL, expect_found);
}

/* Does the kernel keep the memory of another task meanwhile? */
static bool is_memory_pinned(void)
{
	struct op op = {.kind = OP_FIND_FOREIGN};

	if (fact_member("mmap_unlock_irq_work", "active"))
		return true; /* that fix came later */
	if (fact_rt())
		return false; /* nothing tells */
	ops_run(OPS_IN_INTERRUPT, &op, 1, TIMES);
	return op_always(&op, -EBUSY);
}

static unsigned long taints(void)
{
	FILE *f = fopen("/proc/sys/kernel/tainted", "re");
	unsigned long bits = 0;

	if (f && fscanf(f, "%lu", &bits) != 1)
		bits = 0;
	if (f)
		fclose(f);
	return bits;
}

/* Without KASAN a use of freed memory can go unseen. */
static void of_tasks_that_exit(void)
{
	struct op op = {.kind = OP_FIND_VMA, .addr = (uint64_t)lonely_page()};
	unsigned long before = taints();

	if (!is_memory_pinned())
		ct_skip("this kernel lacks \"bpf: Fix use-after-free on mm_struct in "
			"bpf_find_vma()\" (6.1.188, 6.12.110)");
	op_run_of_exiting(&op, 50);
	ct_expect(op.ok > 0, "none was found: %s", op_text(&op));
	ct_expect(!op.inval && !op.other, "%s", op_text(&op));
	ct_expect(taints() == before, "the kernel complained: taints %#lx, before %#lx", taints(),
		  before);
	ct_note("%s", op_text(&op));
}

static void the_turn_comes_again(void)
{
	struct op op = {.kind = OP_FIND_VMA, .addr = (uint64_t)lonely_page()};

	if (fact_rt())
		ct_skip("always busy in an interrupt on PREEMPT_RT");
	ops_run(OPS_IN_INTERRUPT, &op, 1, 5 * TIMES);
	ct_expect(op_mostly(&op, 0), "in %d samples of a process whose mappings do not change: %s",
		  5 * TIMES, op_text(&op));
}

static const struct ct_case cases[] = {
	CT_CASE("find_vma/", first_and_last_byte, "0 and the mapping around it", .numbers = "1"),
	CT_CASE("find_vma/", the_end_of_a_mapping,
		"-ENOENT for its end and the byte below its start", .numbers = "2"),
	CT_CASE("find_vma/", address_zero, "-ENOENT", .numbers = "3"),
	CT_CASE("find_vma/", the_vsyscall_page, "-ENOENT: it is no mapping of the process",
		.numbers = "4"),
	CT_CASE("find_vma/", addresses_that_no_process_has,
		"-ENOENT: kernel, non-canonical, the last byte", .numbers = "5"),
	CT_CASE("find_vma/", special_mappings, "0 for [vdso], [vvar], [heap], [stack], PROT_NONE",
		.numbers = "6"),
	CT_CASE("find_vma/", below_a_stack, "-ENOENT below what grows down", .numbers = "7"),
	CT_CASE("find_vma/", flags_are_refused, "-EINVAL, also when busy", .numbers = "8"),
	CT_CASE("find_vma/", tasks_without_memory, "-ENOENT for the idle task and kernel threads",
		.numbers = "9"),
	CT_CASE("find_vma/", two_in_an_interrupt, "the second -EBUSY; on PREEMPT_RT both",
		.numbers = "10"),
	CT_CASE("find_vma/", one_that_finds_nothing_takes_the_turn, "-EBUSY behind an -ENOENT",
		.numbers = "11"),
	CT_CASE("find_vma/", many_with_interrupts_on, "all answered", .numbers = "12"),
	CT_CASE("find_vma/", build_ids_before_it, "-EBUSY behind a stack with build ids",
		.numbers = "13"),
	CT_CASE("find_vma/", build_ids_behind_it, "frames have addresses instead of build ids",
		.numbers = "13"),
	CT_CASE("find_vma/", while_a_writer_has_the_lock, "-EBUSY in mmap(), 0 afterwards",
		.numbers = "14"),
	CT_CASE("find_vma/", nested_with_interrupts_on, "0, or -EBUSY inside", .numbers = "15"),
	CT_CASE("find_vma/", nested_in_an_interrupt,
		"-EBUSY inside, and the lock is free afterwards; on PREEMPT_RT outside, too",
		.is_dangerous = true, .numbers = "16"),
	CT_CASE("find_vma/", of_another_task_in_an_interrupt,
		"-EBUSY where its memory is pinned, else 0", .numbers = "17"),
	CT_CASE("find_vma/", of_another_task_in_a_system_call, "0", .numbers = "18"),
	CT_CASE("find_vma/", of_tasks_that_exit, "answers, and no complaint of the kernel",
		.numbers = "19"),
	CT_CASE("find_vma/", the_turn_comes_again, "0 in each sample", .numbers = "22"),
};

CT_GROUP(find_vma_cases, cases);
