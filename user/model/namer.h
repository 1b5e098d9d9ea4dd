/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the frames of a recording are called. They are collected first, each distinct one once, and
 * then named all at once, file after file: few files are open, and few tables in use, at a time.
 */
#ifndef VP_NAMER_H
#define VP_NAMER_H

#include "../output/report.h"
#include "../symbolize/kernel_debug.h"
#include "recording.h"

/* One of the shown frames that a frame has become. */
struct vp_shown {
	uint32_t label;
	uint32_t file; /* number in strings; VP_INDEX_NONE: not known */
	uint32_t line; /* 0: not known */
};

/* A distinct frame. */
struct vp_named {
	struct vp_at at;
	uint32_t proc;	     /* only where the frame means nothing without its process */
	uint32_t first, cnt; /* of shown: the function, then the calls inlined there */
	uint32_t module;     /* in strings: whom to blame when nameless */
	enum vp_sym_reason reason;
	bool nameless;
	uint64_t count; /* samples × frames; the caller's */
};

struct vp_label_key {
	uint32_t text; /* numbers in strings */
	uint32_t module;
	uint32_t kind;
};

/* All zero but the first five is empty. */
struct vp_namer {
	struct vp_recording *r;
	struct vp_symbolizer *s;
	bool inlines;		     /* also lines; else a frame is shown as one, and without */
	struct kernel_debug *kernel; /* borrowed; NULL: names only of the kernel */
	uint64_t max_debug_bytes;    /* that names and lines of debug information may take */
	struct vp_strings strings;
	struct vp_label_key *label;
	struct vp_named *named;
	struct vp_shown *shown;
	struct vp_index label_index, named_index;
	size_t label_cnt, label_cap, named_cnt, named_cap, shown_cnt, shown_cap;
	uint64_t debug_bytes;
	bool debug_cut;	       /* there was more than that: what came then is names only */
	size_t debug_cnt;      /* files whose debug information was used, if inlines */
	size_t debug_gone_cnt; /* … and could not be, though it was there when they were loaded */
};

/* Number of the frame in named, where it is put if it is new; VP_INDEX_NONE: out of memory. */
uint32_t vp_namer_add(struct vp_namer *n, const struct vp_at *at, uint32_t proc);

/* Names all that was added. 0 or -ENOMEM. */
int vp_namer_run(struct vp_namer *n);

void vp_namer_free(struct vp_namer *n);

#endif
