/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Targets that spin on a stack which is known, frame by frame. */
#ifndef SPINNER_H
#define SPINNER_H

#include "target.h"

#include <stddef.h>

#define PAGE 4096UL

/* gcc leaves out the frame pointer of a leaf that does not touch the stack. */
#define KEEP_FRAME()  volatile int frame_ __attribute__((unused)) = 0
/* Behind a call: it is no tail call. */
#define NOT_THE_END() __asm__ volatile("" ::: "memory")

/*
 * Calls fn with its frame as the outermost one: a frame pointer of 0 above it, as at the
 * start of a process. The call returns to FILE, so the stack is fn's frames and one more.
 */
void call_outermost(void (*fn)(void));

/* spin_leaf loops until `enough`; spin_root calls spin_middle, which calls it. */
extern volatile bool enough;
void spin_leaf(void);
void spin_root(void);

/* spin_leaf below spin_depth + 2 frames. */
extern int spin_depth;
void spin_at_depth(void);

#define FUNCTION_MAX 128 /* what the tests' functions are aligned to (Makefile) */

/* Is pc in fn, which is no longer than FUNCTION_MAX? */
bool is_in(uint64_t pc, void (*fn)(void));

struct vp_frame;
/* Frames of spin_root, spin_middle, spin_leaf and call_outermost. */
bool is_spin_root_chain(const struct vp_frame *f, size_t cnt);

/* A target_body: spins in the stack of the function arg, as "vp spinner". Tells 0 before. */
void spin(void *arg);
/* A child that does. */
void start_spinning(struct target *t, void (*fn)(void));

/* Machine code with a frame that loops for ever, and one that returns after a millisecond or so. */
extern const uint8_t endless_code[8];
#define ENDLESS_CODE_LOOP 4 /* before that it sets up its frame */
extern const uint8_t short_code[15];

/*
 * Machine code with a frame that spins, calls the next of a list and spins again; a list ends with
 * NULL.
 */
typedef void link_fn(void **list, long spins);
extern const uint8_t chain_code[36];

/* In a target: an unlinked file with code at the start of each page; its descriptor. */
int code_file(size_t pages, const uint8_t *code, size_t size);

#endif
