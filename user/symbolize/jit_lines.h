/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which source lines a piece of code was made from, as its JIT tells: a line counts from its offset on
 * up to the next one's. They are gathered, then packed to be kept behind the code's name.
 */
#ifndef VP_JIT_LINES_H
#define VP_JIT_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* All zero is empty. */
struct jit_lines {
	struct jit_line *line;
	size_t cnt, cap;
	char *files;
	size_t file_bytes, file_cap;
	uint32_t last_file; /* of files */
};

/* Packed lines of one piece of code take no more. */
#define JIT_LINES_MAX_BYTES (1U << 20)

/*
 * file need not end with a NUL; len 0: the file of the line before. 0; -EINVAL: no file, or no room
 * for more; -ENOMEM.
 */
int jit_lines_add(struct jit_lines *l, uint32_t offset, uint32_t line, const char *file,
		  size_t len);
void jit_lines_clear(struct jit_lines *l);
void jit_lines_free(struct jit_lines *l);

/* The lowest and the highest offset; there must be lines. */
void jit_lines_span(const struct jit_lines *l, uint32_t *low, uint32_t *high);

/* All offsets become smaller by that, and must be that large. */
void jit_lines_shift(struct jit_lines *l, uint32_t by);

/* l may be NULL: none. `to` has room for so many bytes, without alignment. */
size_t jit_lines_packed_bytes(const struct jit_lines *l);
void jit_lines_pack(const struct jit_lines *l, char *to);

/* Of packed ones: how many bytes they take, and the line at an offset: *file is in `packed`. */
size_t jit_lines_bytes_at(const char *packed);
bool jit_lines_find(const char *packed, uint64_t offset, const char **file, uint32_t *line);

#endif
