// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "try_load.h"

#include "case.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <string.h>

const struct load_answer *try_load(const void *(*elf_bytes)(size_t *size), const char *program)
{
	static struct load_answer answer;
	struct bpf_program *p, *chosen = NULL;
	struct bpf_object *obj;
	size_t size;
	const void *elf = elf_bytes(&size);

	answer = (struct load_answer){0};
	libbpf_set_print(NULL);
	obj = bpf_object__open_mem(elf, size, NULL);
	ct_require(obj != NULL, "the object does not open: %s", strerror(errno));
	bpf_object__for_each_program(p, obj) {
		bool is_it = !strcmp(bpf_program__name(p), program);

		bpf_program__set_autoload(p, is_it);
		if (is_it)
			chosen = p;
	}
	ct_require(chosen != NULL, "no program '%s'", program);
	bpf_program__set_log_buf(chosen, answer.log, sizeof(answer.log));
	answer.err = bpf_object__load(obj);
	if (!answer.err)
		answer.log[0] = '\0';
	bpf_object__close(obj);
	return &answer;
}

/* The end of a log says what was wrong; a line of statistics follows it. */
static const char *end_of(const char *log)
{
	size_t len = strlen(log);

	return len > 300 ? log + len - 300 : log;
}

void expect_loads(const void *(*elf_bytes)(size_t *size), const char *program)
{
	const struct load_answer *a = try_load(elf_bytes, program);

	ct_expect(a->err == 0, "%s: does not load (%d): …%s", program, a->err, end_of(a->log));
}

void expect_refused(const void *(*elf_bytes)(size_t *size), const char *program,
		    const char *const *texts)
{
	const struct load_answer *a = try_load(elf_bytes, program);
	bool says_it = false;

	for (; *texts; texts++)
		says_it |= strstr(a->log, *texts) != NULL;
	ct_expect(a->err != 0, "%s: loads", program);
	if (a->err)
		ct_expect(says_it, "%s: refused for another reason (%d): …%s", program, a->err,
			  end_of(a->log));
}
