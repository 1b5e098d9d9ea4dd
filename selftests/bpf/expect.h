/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What must be true of a recording, whatever was recorded. Each failure fails the test. */
#ifndef EXPECT_H
#define EXPECT_H

#include "procmaps.h"
#include "recorder.h"

/* The name that the records give a file, or "". */
const char *name_of_file(const struct record_log *l, uint32_t file_id);

/* All frames of all samples of a process that did not change its mappings. */
void expect_all_as_maps(const struct record_log *l, const struct procmaps *m, uint32_t tgid);

/* Frames were announced, at_least so many; also, no such record was lost. */
void expect_all_announced(const struct recorder *r, size_t at_least);

/* Records are of tgid and its children alone, samples (if tid is not 0) of that thread. */
void expect_only(const struct record_log *l, uint32_t tgid, uint32_t tid);

/* Every sample that the kernel counted is in the log once, and what became of it is counted. */
void expect_accounts(const struct recorder *r);

/* Where in the log the first record of a kind stands that concerns tgid; log.cnt: nowhere. */
size_t first_of(const struct record_log *l, uint16_t kind, uint32_t tgid);

/* Samples of tgid that were taken in spin_leaf below exactly cnt frames, which ended so. */
size_t count_spinning(const struct record_log *l, uint32_t tgid, size_t cnt, uint16_t end);

#endif
