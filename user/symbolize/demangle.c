/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "demangle.h"

#include "../util/utf8.h"

#include <libiberty/demangle.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OUTPUT_MAX_BYTES (64U << 10)

/*
 * Under its recursion limit libiberty refuses every C++ name above 1024 bytes, hostile or
 * not. Longer ones go without the limit, on a stack for the deepest nesting that so many
 * bytes can spell: 216 bytes of stack a byte at worst (measured), so here is plenty. Rust
 * names always keep the limit: their back references can go round in circles.
 */
#define LIMITED_MAX_BYTES 1024
#define LONG_MAX_BYTES	  (16U << 10)
#define LONG_STACK_BYTES  (LONG_MAX_BYTES * (2U << 10))
#define OPTIONS		  (DMGL_PARAMS | DMGL_ANSI)

#define STUB_SUFFIX "@plt"

/* The operand of a pack that prints as ten kilobytes has some thousand parts. */
#define PACK_STEPS_MAX (1U << 14)

struct output {
	char *text;
	size_t len, cap;
	jmp_buf too_much;
};

/*
 * libiberty's printers cannot be told to stop, so this leaves them by longjmp. They hold no
 * heap memory while they print but for a decoded punycode identifier, once a symbol.
 */
static void append(const char *s, size_t len, void *opaque)
{
	struct output *o = opaque;

	if (o->len + len >= OUTPUT_MAX_BYTES)
		longjmp(o->too_much, 1);
	if (o->len + len >= o->cap) {
		size_t cap = (o->len + len + 1) * 2;
		char *text = realloc(o->text, cap);

		if (!text)
			longjmp(o->too_much, 1);
		o->text = text;
		o->cap = cap;
	}
	if (len) /* an empty piece may come as NULL */
		memcpy(o->text + o->len, s, len);
	o->len += len;
	o->text[o->len] = '\0';
}

/* ---- packs ---- */

typedef struct demangle_component part;

/* How many parts of it are looked into for a pack: those that d_find_pack() of cp-demangle.c takes. */
static int inner_parts(const part *c, part *inner[2])
{
	switch (c->type) {
	case DEMANGLE_COMPONENT_TEMPLATE_PARAM:
	case DEMANGLE_COMPONENT_LAMBDA:
	case DEMANGLE_COMPONENT_NAME:
	case DEMANGLE_COMPONENT_TAGGED_NAME:
	case DEMANGLE_COMPONENT_OPERATOR:
	case DEMANGLE_COMPONENT_BUILTIN_TYPE:
	case DEMANGLE_COMPONENT_EXTENDED_BUILTIN_TYPE:
	case DEMANGLE_COMPONENT_FIXED_TYPE:
	case DEMANGLE_COMPONENT_SUB_STD:
	case DEMANGLE_COMPONENT_CHARACTER:
	case DEMANGLE_COMPONENT_FUNCTION_PARAM:
	case DEMANGLE_COMPONENT_UNNAMED_TYPE:
	case DEMANGLE_COMPONENT_DEFAULT_ARG:
	case DEMANGLE_COMPONENT_NUMBER:
		return 0;
	case DEMANGLE_COMPONENT_EXTENDED_OPERATOR:
		inner[0] = c->u.s_extended_operator.name;
		return 1;
	case DEMANGLE_COMPONENT_CTOR:
		inner[0] = c->u.s_ctor.name;
		return 1;
	case DEMANGLE_COMPONENT_DTOR:
		inner[0] = c->u.s_dtor.name;
		return 1;
	default:
		inner[0] = c->u.s_binary.left;
		inner[1] = c->u.s_binary.right;
		return 2;
	}
}

/* Looking for a pack in c as libiberty does. 0: it takes more than *steps. */
static int search_ends(const part *c, unsigned int *steps)
{
	part *inner[2];
	int cnt, ends = 1;

	if (!c || c->type == DEMANGLE_COMPONENT_PACK_EXPANSION)
		return 1;
	if (!*steps)
		return 0;
	--*steps;
	cnt = inner_parts(c, inner);
	for (int i = 0; i < cnt && ends; i++)
		ends = search_ends(inner[i], steps);
	return ends;
}

/* Of all packs in c together. A part is visited once: d_counting, 0 at first, says that it was. */
static int searches_end(part *c, unsigned int *steps)
{
	part *inner[2];
	int cnt, ends = 1;

	if (!c || c->d_counting)
		return 1;
	c->d_counting = 1;
	if (c->type == DEMANGLE_COMPONENT_PACK_EXPANSION)
		ends = search_ends(c->u.s_binary.left, steps);
	cnt = inner_parts(c, inner);
	for (int i = 0; i < cnt && ends; i++)
		ends = searches_end(inner[i], steps);
	return ends;
}

/*
 * What a pack ("Dp", "sp") expands is searched by libiberty along each way that leads to a part of
 * it, before anything is printed: back references to what has back references make that 2^n.
 */
static int packs_end(const char *name, int cxx_options)
{
	const char *encoding = strstr(name, "_Z");
	unsigned int steps = PACK_STEPS_MAX;
	void *parts = NULL;
	part *root;
	int ends;

	if (!encoding || !(strstr(encoding, "Dp") || strstr(encoding, "sp")))
		return 1;
	root = cplus_demangle_v3_components(encoding, cxx_options, &parts);
	ends = !root || searches_end(root, &steps);
	if (root)
		free(parts);
	return ends;
}

/* ---- printing ---- */

/*
 * Rust first: its legacy scheme is a valid C++ name with a hash as the last component, and
 * libiberty recognizes the hash.
 */
static int print(const char *name, int cxx_options, struct output *o)
{
	if (setjmp(o->too_much))
		return 0;
	if (rust_demangle_callback(name, OPTIONS, append, o))
		return 1;
	o->len = 0; /* it may fail midway */
	return packs_end(name, cxx_options) &&
	       cplus_demangle_v3_callback(name, cxx_options, append, o);
}

static char *run(const char *name, int cxx_options)
{
	struct output o = {0};

	if (print(name, cxx_options, &o) && o.len)
		return o.text;
	free(o.text);
	return NULL;
}

struct long_job {
	const char *name;
	char *text;
};

static void *long_thread(void *arg)
{
	struct long_job *job = arg;

	job->text = run(job->name, OPTIONS | DMGL_NO_RECURSE_LIMIT);
	return NULL;
}

static char *run_long(const char *name)
{
	struct long_job job = {.name = name};
	pthread_attr_t attr;
	pthread_t thread;

	if (pthread_attr_init(&attr))
		return NULL;
	int err = pthread_attr_setstacksize(&attr, LONG_STACK_BYTES);
	if (!err)
		err = pthread_create(&thread, &attr, long_thread, &job);
	if (!err)
		pthread_join(thread, NULL);
	pthread_attr_destroy(&attr);
	return job.text;
}

/* _Z, _R, and _GLOBAL__ of static constructors; anything else is C and most names are. */
static int looks_mangled(const char *name)
{
	return name[0] == '_' && (name[1] == 'Z' || name[1] == 'R' || name[1] == 'G');
}

static char *demangle_whole(const char *name, size_t len)
{
	if (len <= LIMITED_MAX_BYTES)
		return run(name, OPTIONS);
	return len <= LONG_MAX_BYTES ? run_long(name) : NULL;
}

/* name without its "@plt", which libiberty would refuse, and with it again. */
static char *demangle_stub(const char *name, size_t len)
{
	char *function = strndup(name, len),
	     *text = function ? demangle_whole(function, len) : NULL;
	char *stub = NULL;

	if (text && asprintf(&stub, "%s%s", text, STUB_SUFFIX) < 0)
		stub = NULL;
	free(text);
	free(function);
	return stub;
}

char *demangle(const char *name)
{
	const size_t suffix = strlen(STUB_SUFFIX);

	if (!looks_mangled(name))
		return NULL;

	size_t len = strlen(name);
	if (len > suffix && !strcmp(name + len - suffix, STUB_SUFFIX))
		return demangle_stub(name, len - suffix);
	return demangle_whole(name, len);
}

char *readable_name(char *raw, bool demangled)
{
	char *text = demangled && raw ? demangle(raw) : NULL;

	if (text)
		free(raw);
	else
		text = raw;
	if (text)
		vp_utf8_cut(text, READABLE_NAME_MAX_BYTES);
	return text;
}
