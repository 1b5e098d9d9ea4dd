/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The data block of the HTML report. */
#ifndef VP_HTML_DATA_H
#define VP_HTML_DATA_H

#include "report.h"

#include <stdio.h>

/*
 * Writes one JSON object that is safe inside <script>:
 *
 *	{"samples":12,"event":"cpu-clock","freq":99,
 *	 "modules":["[kernel]","libc.so.6"],
 *	 "names":["main","read"], "module_of":[1,1], "kinds":"00",  by label; VP_LABEL_* digits
 *	 "files":["/src/a.c"], "lines":{"0":[12,0,7,10,0,8,2]},     only where lines are known
 *	 "comms":["nginx"], "threads":[0,42,42],                    comm, tgid, tid each
 *	 "stacks":[0,7,0,2,0,1, 0,5,1,0]}
 *
 * The lines of a label: its frames with a line (times samples), then file, line (0: not known)
 * and frames of some lines, the most frequent first.
 * A stack is: thread, samples, kept, added, then `added` labels. Its frames, outermost first,
 * are the first `kept` of the stack before it and the added ones; stacks are sorted by frames, so
 * read in order they are the preorder walk of a trie. Returns 0 or -ENOMEM.
 */
int vp_html_data(FILE *f, const struct vp_report *r);

#endif
