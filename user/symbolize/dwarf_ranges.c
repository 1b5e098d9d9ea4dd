/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Ranges of code: of a pair of addresses, .debug_ranges and .debug_rnglists. */
#include "dwarf_object.h"

#include <dwarf.h>
#include <errno.h>

struct ranges {
	const struct dwarf_unit *u;
	const struct dwarf_unit *whole; /* with addresses of code: u or its skeleton */
	uint64_t base;
	uint32_t *budget;
	int (*fn)(void *ctx, uint64_t lo, uint64_t hi);
	void *ctx;
};

/* A linker marks what it dropped by addresses where no code is: 0, 1, the largest. */
static int give(struct ranges *r, uint64_t lo, uint64_t hi)
{
	const struct dwarf_object *o = r->whole->obj;

	if (!*r->budget)
		return -ENOEXEC;
	--*r->budget;
	if (lo >= hi || lo < o->exec_lo || hi > o->exec_hi)
		return 0;
	return r->fn(r->ctx, lo, hi);
}

static int each_old(struct ranges *r, uint64_t at)
{
	const unsigned int size = r->u->params.addr_size;
	const uint64_t largest = size == 8 ? UINT64_MAX : UINT32_MAX;
	struct dwarf_object *o = r->whole->obj;
	int err = 0;

	while (!err) {
		struct dwarf_cursor *c = dwarf_object_at(o, DWARF_RANGES, at);
		uint64_t lo = dwarf_uint(c, size), hi = dwarf_uint(c, size);

		if (c->bad)
			return -ENOEXEC;
		if (!lo && !hi)
			break;
		at += 2 * (uint64_t)size;
		if (lo == largest)
			r->base = hi;
		else
			err = give(r, r->base + lo, r->base + hi);
	}
	return err;
}

/* One entry of a list, DWARF 5, 2.17.3. 1: the last one. */
static int give_entry(struct ranges *r, struct dwarf_cursor *c)
{
	const unsigned int size = r->u->params.addr_size;
	const uint8_t kind = dwarf_u8(c);
	uint64_t a = 0, b = 0;
	bool is_base = false;
	int err = 0;

	switch (kind) {
	case DW_RLE_end_of_list:
		return c->bad ? -ENOEXEC : 1;
	case DW_RLE_base_addressx:
	case DW_RLE_startx_endx:
	case DW_RLE_startx_length:
		a = dwarf_uleb(c);
		b = kind == DW_RLE_base_addressx ? 0 : dwarf_uleb(c);
		err = dwarf_unit_addr(r->u, (struct dwarf_value){DWARF_ADDRX, a}, &a);
		if (!err && kind == DW_RLE_startx_endx)
			err = dwarf_unit_addr(r->u, (struct dwarf_value){DWARF_ADDRX, b}, &b);
		else
			b += a;
		is_base = kind == DW_RLE_base_addressx;
		break;
	case DW_RLE_offset_pair:
		a = r->base + dwarf_uleb(c);
		b = r->base + dwarf_uleb(c);
		break;
	case DW_RLE_base_address:
		a = dwarf_uint(c, size);
		is_base = true;
		break;
	case DW_RLE_start_end:
		a = dwarf_uint(c, size);
		b = dwarf_uint(c, size);
		break;
	case DW_RLE_start_length:
		a = dwarf_uint(c, size);
		b = a + dwarf_uleb(c);
		break;
	default:
		return -ENOEXEC;
	}
	if (err || c->bad)
		return -ENOEXEC;
	if (is_base) {
		r->base = a;
		return 0;
	}
	return give(r, a, b);
}

static int each_new(struct ranges *r, uint64_t at)
{
	struct dwarf_cursor *c = dwarf_object_at(r->u->obj, DWARF_RNGLISTS, at);
	int ret = 0;

	while (!ret)
		ret = give_entry(r, c);
	return ret == 1 ? 0 : ret;
}

/* Where a list is by its number. */
static int list_offset(const struct dwarf_unit *u, uint64_t index, uint64_t *at)
{
	struct dwarf_cursor *c;

	if (index > UINT32_MAX)
		return -ENOEXEC;
	c = dwarf_object_at(u->obj, DWARF_RNGLISTS,
			    u->root.rnglists_base + index * u->params.off_size);
	*at = u->root.rnglists_base + dwarf_uint(c, u->params.off_size);
	return c->bad ? -ENOEXEC : 0;
}

static int each_listed(struct ranges *r, struct dwarf_value list)
{
	uint64_t at = list.v;

	if (r->u->params.version < 5)
		return each_old(r, r->u->skeleton ? at + r->whole->root.ranges_base : at);
	if (list.kind == DWARF_RNGLISTX && list_offset(r->u, list.v, &at))
		return -ENOEXEC;
	return each_new(r, at);
}

int dwarf_unit_each_range(const struct dwarf_unit *u, struct dwarf_value low,
			  struct dwarf_value high, struct dwarf_value ranges, uint32_t *budget,
			  int (*fn)(void *ctx, uint64_t lo, uint64_t hi), void *ctx)
{
	struct ranges r = {.u = u, .budget = budget, .fn = fn, .ctx = ctx};
	uint64_t lo, hi;

	r.whole = u->skeleton ? u->skeleton : u;
	r.base = r.whole->root.low_pc;
	if (ranges.kind == DWARF_SEC_OFFSET || ranges.kind == DWARF_CONST ||
	    ranges.kind == DWARF_RNGLISTX)
		return each_listed(&r, ranges);
	if (low.kind == DWARF_NONE || high.kind == DWARF_NONE)
		return 0;
	if (dwarf_unit_addr(u, low, &lo))
		return -ENOEXEC;
	if (high.kind != DWARF_ADDR && high.kind != DWARF_ADDRX)
		hi = lo + high.v;
	else if (dwarf_unit_addr(u, high, &hi))
		return -ENOEXEC;
	return give(&r, lo, hi);
}
