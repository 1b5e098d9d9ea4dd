/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A look at BPF instructions without loading them: what callbacks of bpf_find_vma call. Calling
 * bpf_find_vma or taking a build-id stack there leaks the target's mmap_lock on many kernels.
 */
#ifndef INSN_SCAN_H
#define INSN_SCAN_H

#include <linux/bpf.h>
#include <stddef.h>

/*
 * All functions of an object in one array, as the kernel would get them: calls among them and
 * addresses of callbacks (BPF_PSEUDO_FUNC) are relative to the instruction.
 */
struct insn_text {
	struct bpf_insn *insn;
	size_t cnt;
	size_t *start; /* of each function, ascending */
	size_t start_cnt;
};

struct insn_scan {
	size_t find_cnt;     /* calls of bpf_find_vma */
	size_t callback_cnt; /* distinct callbacks that they are given */
	size_t unknown_cnt;  /* calls for which no callback was found: nothing is proved then */
	size_t bad_cnt;	     /* forbidden calls reachable from callbacks */
	size_t mixed_cnt;    /* programs that ask and take build-id stacks, wherever */
	char text[256];	     /* the first of them */
};

void insn_scan(const struct insn_text *t, struct insn_scan *out);

/* From a relocatable BPF object. 0, or -1 if it cannot be read. Free with insn_text_free. */
int insn_text_read(const char *path, struct insn_text *t);
void insn_text_free(struct insn_text *t);

#endif
