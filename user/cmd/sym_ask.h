/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The answers of `vmaprof sym`: all that is known of addresses, from all sources. */
#ifndef VP_SYM_ASK_H
#define VP_SYM_ASK_H

#include "../util/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Addresses that can be asked for at once. */
#define VP_SYM_ASK_MAX (1U << 20)

struct vp_sym;

/* All pointers are good until vp_sym_close. */
struct vp_sym_frame {
	const char *function; /* NULL: only file and line are known */
	const char *file;     /* NULL: not known */
	const char *source;   /* "dwarf", "symtab", … */
	uint64_t offset;      /* in the function, bytes */
	uint32_t line;
	bool inlined; /* into the next frame */
};

struct vp_sym_answer {
	uint64_t addr;
	const char *module;		   /* path or "[name]"; NULL: none */
	const char *build_id;		   /* hexadecimal; NULL: none */
	const struct vp_sym_frame *frames; /* innermost first; good until the next question */
	size_t frame_cnt;
	const char *reason; /* why there is none; NULL if there is one */
};

/*
 * Link-time addresses of a file, or run-time ones of a process; names as a person or as a linker
 * reads them. 0 or negative errno with e filled.
 */
int vp_sym_open_file(struct vp_sym **out, const char *path, bool demangle, struct vp_err *e);
int vp_sym_open_process(struct vp_sym **out, pid_t pid, bool demangle, struct vp_err *e);
void vp_sym_close(struct vp_sym *s); /* NULL is fine */

/*
 * Answers in the order of addrs, at most VP_SYM_ASK_MAX; *out is good until the next question.
 * 0 or negative errno with e filled.
 */
int vp_sym_ask(struct vp_sym *s, const uint64_t *addrs, size_t cnt,
	       const struct vp_sym_answer **out, struct vp_err *e);

#endif
