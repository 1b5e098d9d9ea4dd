// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What the verifier accepts and refuses around bpf_find_vma, and which types of programs may call it. */
#include "case.h"
#include "try_load.h"

#include "types.skel.h"
#include "verifier.skel.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static int try_program(const char *name, const char **log)
{
	struct verifier_bpf *s = verifier_bpf__open();

	ct_require(s != NULL, "open: %s", strerror(errno));
	return try_load(s->obj, name, log);
}

static void expect_loads(const char *name)
{
	const char *log;
	int err = try_program(name, &log);

	ct_expect(!err, "%s is refused: %s: %s", name, strerror(-err), reason_of(log));
}

/* One of the texts that '|' separates is in the line. */
static bool has_one_of(const char *line, const char *texts)
{
	char text[64];

	for (; *texts; texts += *texts == '|') {
		size_t len = strcspn(texts, "|");

		snprintf(text, sizeof(text), "%.*s", (int)len, texts);
		if (strstr(line, text))
			return true;
		texts += len;
	}
	return false;
}

/* reason: what stands in the last line of its log; kernels' texts that differ are separated by '|'. */
static void expect_refused(const char *name, const char *reason)
{
	const char *log;
	int err = try_program(name, &log);

	ct_require(err, "%s loads", name);
	ct_expect(has_one_of(reason_of(log), reason),
		  "%s is refused for another reason than '%s': %s: %s", name, reason,
		  strerror(-err), reason_of(log));
}

/* A case and its program have one name. */
#define LOADS(prog)                                                                                \
	static void prog(void)                                                                     \
	{                                                                                          \
		expect_loads(#prog);                                                               \
	}

#define REFUSED(prog, reason)                                                                      \
	static void prog(void)                                                                     \
	{                                                                                          \
		expect_refused(#prog, reason);                                                     \
	}

REFUSED(callback_writes_to_the_mapping, "only read is supported")
REFUSED(callback_writes_to_the_task, "only read is supported")
REFUSED(callback_returns_two, "At callback return")
REFUSED(callback_returns_minus_one, "At callback return")
REFUSED(callback_asks_for_a_path, "bpf_d_path#147")
REFUSED(callback_copies_from_user, "bpf_copy_from_user#148|might sleep")
REFUSED(context_in_a_map, "expected=fp")
REFUSED(task_that_is_a_number, "R1 type=")
REFUSED(no_task, "R1 type=")
LOADS(callback_returns_one)
LOADS(callback_reads_the_file)
LOADS(callback_sends_a_record)
LOADS(callback_loops)
LOADS(callback_reads_user_memory)
LOADS(callback_finds_another)
LOADS(no_context)
LOADS(the_parent)
LOADS(path_in_an_iterator)

/* ---- types of programs ------------------------------------------------------------------------ */

/* prefix: "has_" or "can_", see prog/types.bpf.c. */
static int try_type(const char *prefix, const char *type, const char **log)
{
	struct types_bpf *s = types_bpf__open();
	char name[64];

	ct_require(s != NULL, "open: %s", strerror(errno));
	snprintf(name, sizeof(name), "%s%s", prefix, type);
	return try_load(s->obj, name, log);
}

/* Types that are not in this kernel, or not for us, say nothing. How many there are. */
static size_t expect_types(const char *const *types, size_t cnt, bool may_call)
{
	size_t there = 0;

	for (size_t i = 0; i < cnt; i++) {
		const char *log;
		int err = try_type("has_", types[i], &log);

		if (err) {
			ct_note("%s: cannot be tried here (%s)", types[i], strerror(-err));
			continue;
		}
		there++;
		err = try_type("can_", types[i], &log);
		if (may_call)
			ct_expect(!err, "%s is refused: %s: %s", types[i], strerror(-err),
				  reason_of(log));
		else
			ct_expect(err && strstr(reason_of(log), "bpf_find_vma#180"), "%s: %s: %s",
				  types[i], err ? strerror(-err) : "loads", reason_of(log));
	}
	return there;
}

static void types_of_tracing(void)
{
	static const char *const types[] = {
		"perf_event", "kprobe", "kretprobe", "uprobe", "uprobe_s", "tracepoint", "raw_tp",
		"tp_btf",     "fentry", "fexit",     "lsm",    "iter",	   "iter_s",	 "syscall"};
	size_t there = expect_types(types, sizeof(types) / sizeof(*types), true);

	ct_require(there >= 6, "only %zu types can be tried", there);
}

static void types_of_the_network(void)
{
	static const char *const types[] = {
		"socket",     "xdp",	 "tc",	   "cgroup_skb", "cgroup_sock", "cgroup_addr",
		"cgroup_dev", "sockops", "sk_skb", "sk_msg",	 "sk_lookup",	"flow_dissector",
		"lwt_in"};
	const char *log;
	bool may_call = !try_type("", "socket_sends_signal", &log);
	size_t there = expect_types(types, sizeof(types) / sizeof(*types), may_call);

	ct_require(there >= 3, "only %zu types can be tried", there);
	ct_note("all types have the helpers of tracing: %s", may_call ? "yes" : "no");
}

static const struct ct_case cases[] = {
#define REFUSED_CASE(name) CT_CASE("verifier/", name, "refused", .numbers = "20")
#define LOADS_CASE(name)   CT_CASE("verifier/", name, "loads", .numbers = "20")
	REFUSED_CASE(callback_writes_to_the_mapping),
	REFUSED_CASE(callback_writes_to_the_task),
	REFUSED_CASE(callback_returns_two),
	REFUSED_CASE(callback_returns_minus_one),
	REFUSED_CASE(callback_asks_for_a_path),
	REFUSED_CASE(callback_copies_from_user),
	REFUSED_CASE(context_in_a_map),
	REFUSED_CASE(task_that_is_a_number),
	REFUSED_CASE(no_task),
	LOADS_CASE(callback_returns_one),
	LOADS_CASE(callback_reads_the_file),
	LOADS_CASE(callback_sends_a_record),
	LOADS_CASE(callback_loops),
	LOADS_CASE(callback_reads_user_memory),
	LOADS_CASE(callback_finds_another),
	LOADS_CASE(no_context),
	LOADS_CASE(the_parent),
	LOADS_CASE(path_in_an_iterator),
	CT_CASE("verifier/", types_of_tracing, "they may call it", .numbers = "21"),
	CT_CASE("verifier/", types_of_the_network, "they may call it since 6.16, not before",
		.numbers = "21"),
};

CT_GROUP(verifier_cases, cases);
