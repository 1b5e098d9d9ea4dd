/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "symbolized.h"

#define FILE_ID 1

static struct vp_symbolizer *load(const char *path, const char *host_root, int demangle)
{
	const struct vp_symbolizer_opts opts = {
		.demangle = demangle, .host_root = host_root ? host_root : "/nonexistent"};
	struct vp_symbolizer *s;

	if (vp_symbolizer_new(&s, &opts))
		return NULL;
	if (!vp_symbolizer_load_path(s, FILE_ID, path))
		return s;
	vp_symbolizer_free(s);
	return NULL;
}

struct vp_symbolizer *symbolized(const char *path, const char *host_root)
{
	return load(path, host_root, 1);
}

struct vp_symbolizer *symbolized_raw(const char *path, const char *host_root)
{
	return load(path, host_root, 0);
}

static const char *find(struct vp_symbolizer *s, uint64_t vaddr, struct vp_symbol *out)
{
	uint64_t offset;

	*out = (struct vp_symbol){0};
	if (vp_symbolizer_offset_of(s, FILE_ID, vaddr, &offset))
		return "(in no segment)";
	return vp_symbolizer_file(s, FILE_ID, offset, out) ? vp_sym_reason_text(out->reason)
							   : out->name;
}

const char *symbolized_name(struct vp_symbolizer *s, uint64_t vaddr)
{
	struct vp_symbol sym;

	return find(s, vaddr, &sym);
}

const char *symbolized_source(struct vp_symbolizer *s, uint64_t vaddr)
{
	struct vp_symbol sym;

	find(s, vaddr, &sym);
	return vp_sym_source_text(sym.source);
}
