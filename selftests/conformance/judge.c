// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "judge.h"

#include "case.h"
#include "try_load.h"

#include <errno.h>
#include <string.h>

int judge(judge_elf elf, const char *program, const char **log)
{
	struct bpf_program *p;
	struct bpf_object *obj;
	size_t size;
	const void *bytes = elf(&size);

	obj = bpf_object__open_mem(bytes, size, NULL);
	ct_require(obj != NULL, "open: %s", strerror(errno));
	bpf_object__for_each_program(p, obj)
		bpf_program__set_autoload(p, false);
	return try_load(obj, program, log);
}

void expect_loads(judge_elf elf, const char *program)
{
	const char *log;
	int err = judge(elf, program, &log);

	ct_expect(!err, "%s is refused: %s: %s", program, strerror(-err), reason_of(log));
}

void expect_refused(judge_elf elf, const char *program, const char *const *texts)
{
	const char *log, *reason;
	bool says_it = false;
	int err = judge(elf, program, &log);

	ct_expect(err, "%s loads", program);
	if (!err)
		return;
	reason = reason_of(log);
	for (; *texts; texts++)
		says_it |= strstr(reason, *texts) != NULL;
	ct_expect(says_it, "%s is refused for another reason: %s: %s", program, strerror(-err),
		  reason);
}
