// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "try_load.h"

#include "case.h"

#include <stdio.h>
#include <string.h>

int try_load(struct bpf_object *obj, const char *name, const char **log)
{
	static char text[1 << 20];
	struct bpf_program *prog = bpf_object__find_program_by_name(obj, name);
	int err;

	ct_require(prog != NULL, "no program %s", name);
	/* that it is refused is what a case wants to see */
	libbpf_set_print(NULL);
	text[0] = '\0';
	bpf_program__set_autoload(prog, true);
	bpf_program__set_log_buf(prog, text, sizeof(text));
	err = bpf_object__load(obj);
	bpf_object__close(obj);
	*log = text;
	return err;
}

const char *reason_of(const char *log)
{
	static char text[512];
	const char *line = log, *reason = "", *end;

	for (; *line; line = *end ? end + 1 : end) {
		end = line + strcspn(line, "\n");
		if (!strncmp(line, "processed ", 10))
			break;
		if (end > line)
			reason = line;
	}
	snprintf(text, sizeof(text), "%.*s", (int)strcspn(reason, "\n"), reason);
	return text;
}
