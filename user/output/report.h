/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A finished, symbolized recording as the aggregate writers (folded, HTML, …) see it. Built
 * by user/model/; writers only read it.
 */
#ifndef VP_REPORT_H
#define VP_REPORT_H

#include "../model/meta.h"
#include "../util/err.h"

#include <stddef.h>
#include <stdint.h>

enum vp_label_kind {
	VP_LABEL_USER,	  /* code from a file or the vdso */
	VP_LABEL_KERNEL,  /* folded mark _[k] */
	VP_LABEL_JIT,	  /* anonymous executable memory; _[j] */
	VP_LABEL_INLINED, /* a call the compiler inlined; _[i] */
	VP_LABEL_UNKNOWN  /* an address that resolved to nothing executable */
};

/* A line of source that frames were at: of a caller the call, of the innermost the instruction. */
struct vp_line {
	const char *file; /* path as the compiler had it; raw bytes as text below */
	uint32_t line;	  /* 0: not known */
	uint64_t count;	  /* samples × frames */
};

/*
 * One frame as shown. Labels are unique: equal frames point to one label, whatever line of the
 * function they were at.
 */
struct vp_label {
	const char *text;   /* "main", "libc.so.6+0x1a2b", "[jit]", "[vdso]", "[unknown]"; raw
			     * bytes from the target: each writer escapes for its format */
	const char *module; /* basename of the file, "[kernel]", "[vdso]", "" */
	enum vp_label_kind kind;
	uint32_t id;		     /* dense: 0 … label_cnt - 1 */
	const struct vp_line *lines; /* the most frequent first */
	size_t line_cnt;	     /* 0: none is known */
};

/* A distinct stack of one thread. */
struct vp_stack {
	const char *comm; /* of the thread when sampled */
	uint32_t tgid;
	uint32_t tid;
	uint64_t count; /* samples */
	size_t frame_cnt;
	const struct vp_label *const *frames; /* outermost first; may be none */
};

struct vp_report {
	const struct vp_meta *meta;
	const struct vp_stack *stacks; /* any order */
	size_t stack_cnt;
	const struct vp_label *const *labels; /* by id */
	size_t label_cnt;
	uint64_t sample_cnt; /* sum of counts */
};

#endif
