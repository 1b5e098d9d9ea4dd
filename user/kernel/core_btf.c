/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "core_btf.h"

#include <bpf/btf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define SLOTS 4096 /* of names; there are a few hundred */

/* A file system that may be a module, and whose inodes kern/core_fixes.bpf.h asks. */
#define MODULE	      "btrfs"
#define MODULE_PREFIX "btrfs_"

struct cut {
	struct btf *vmlinux;
	struct btf *from; /* vmlinux and, behind it, the module's types if it is loaded */
	struct btf *to;
	uint32_t *copy; /* by id in `from`: the id in `to`, 0 not copied yet */
	int pointer;	/* the one pointer type of `to`: what it points to never matters */
	struct {
		const char *name;
		size_t len;
	} names[SLOTS];
	size_t name_cnt;
};

/* "inode___pre_v66" is a flavour of "inode". */
static size_t essential_len(const char *name)
{
	const char *flavour = strstr(name, "___");

	return flavour ? (size_t)(flavour - name) : strlen(name);
}

static uint32_t hash(const char *name, size_t len)
{
	uint32_t h = 2166136261U;

	for (size_t i = 0; i < len; i++)
		h = (h ^ (uint8_t)name[i]) * 16777619U;
	return h ^ h >> 15;
}

static size_t slot_of(const struct cut *c, const char *name, size_t len)
{
	size_t i = hash(name, len) % SLOTS;

	while (c->names[i].name &&
	       (c->names[i].len != len || memcmp(c->names[i].name, name, len) != 0))
		i = (i + 1) % SLOTS;
	return i;
}

static bool is_named_root(const struct btf_type *t)
{
	return t->name_off && (btf_is_composite(t) || btf_is_any_enum(t) || btf_is_typedef(t));
}

static int add_names(struct cut *c, const struct btf *btf)
{
	for (uint32_t id = 1; id < btf__type_cnt(btf); id++) {
		const struct btf_type *t = btf__type_by_id(btf, id);
		const char *name;
		size_t len, i;

		if (!is_named_root(t))
			continue;
		name = btf__name_by_offset(btf, t->name_off);
		len = essential_len(name);
		i = slot_of(c, name, len);
		if (c->names[i].name)
			continue;
		if (++c->name_cnt > SLOTS / 2)
			return -E2BIG;
		c->names[i].name = name;
		c->names[i].len = len;
	}
	return 0;
}

static int copy_type(struct cut *c, uint32_t id);

static int copy_members(struct cut *c, const struct btf_type *t)
{
	const struct btf_member *m = btf_members(t);
	int err = 0;

	for (int i = 0; i < btf_vlen(t) && err >= 0; i++)
		err = copy_type(c, m[i].type);
	return err;
}

static int copy_inner(struct cut *c, const struct btf_type *t)
{
	int err = 0;

	if (btf_is_composite(t))
		return copy_members(c, t);
	if (btf_is_array(t)) {
		err = copy_type(c, btf_array(t)->type);
		return err < 0 ? err : copy_type(c, btf_array(t)->index_type);
	}
	if (btf_is_mod(t) || btf_is_typedef(t))
		err = copy_type(c, t->type);
	return err;
}

/* A copied type still has the ids of `from`. */
static void fix_ids(const struct cut *c, int id)
{
	struct btf_type *t = (struct btf_type *)btf__type_by_id(c->to, (uint32_t)id);

	if (btf_is_composite(t)) {
		for (int i = 0; i < btf_vlen(t); i++)
			btf_members(t)[i].type = c->copy[btf_members(t)[i].type];
	} else if (btf_is_array(t)) {
		btf_array(t)->type = c->copy[btf_array(t)->type];
		btf_array(t)->index_type = c->copy[btf_array(t)->index_type];
	} else if (btf_is_mod(t) || btf_is_typedef(t)) {
		t->type = c->copy[t->type];
	}
}

/* Its id in `to`, or negative errno. Ends: without pointers, types contain no cycle. */
static int copy_type(struct cut *c, uint32_t id)
{
	const struct btf_type *t = btf__type_by_id(c->from, id);
	int new;

	if (id == 0 || c->copy[id])
		return 0;
	if (btf_is_ptr(t)) {
		c->copy[id] = (uint32_t)c->pointer;
		return 0;
	}
	new = copy_inner(c, t);
	if (new < 0)
		return new;
	/* A typedef of a function type and the like: nobody relocates against it. */
	if (btf_is_func_proto(t) || btf_is_fwd(t))
		return 0;
	new = btf__add_type(c->to, c->from, t);
	if (new < 0)
		return new;
	c->copy[id] = (uint32_t) new;
	fix_ids(c, new);
	return 0;
}

/* A module may have variants of vmlinux's types, and of two of a name libbpf takes neither. */
static bool is_foreign(const struct cut *c, uint32_t id, const char *name)
{
	return id >= btf__type_cnt(c->vmlinux) &&
	       strncmp(name, MODULE_PREFIX, strlen(MODULE_PREFIX)) != 0;
}

static int copy_wanted(struct cut *c)
{
	uint32_t cnt = btf__type_cnt(c->from);
	int err = 0;

	for (uint32_t id = 1; id < cnt && !err; id++) {
		const struct btf_type *t = btf__type_by_id(c->from, id);
		const char *name;

		if (!is_named_root(t))
			continue;
		name = btf__name_by_offset(c->from, t->name_off);
		if (!is_foreign(c, id, name) && c->names[slot_of(c, name, strlen(name))].name)
			err = copy_type(c, id);
	}
	return err;
}

/* The types that the objects name, and what they contain. 0 or negative errno. */
static int cut_types(struct cut *c, struct bpf_object *const *objs, size_t cnt)
{
	int err = 0;

	c->copy = calloc(btf__type_cnt(c->from), sizeof(*c->copy));
	c->to = btf__new_empty();
	if (!c->copy || !c->to)
		return -ENOMEM;
	for (size_t i = 0; i < cnt && !err; i++)
		err = add_names(c, bpf_object__btf(objs[i]));
	if (err)
		return err;
	c->pointer = btf__add_ptr(c->to, 0);
	return c->pointer < 0 ? c->pointer : copy_wanted(c);
}

static int write_out(const struct vp_core_btf *b, const struct btf *btf)
{
	uint32_t size;
	const char *data = btf__raw_data(btf, &size);

	if (!data)
		return -ENOMEM;
	while (size > 0) {
		ssize_t n = write(b->fd, data, size);

		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		data += n;
		size -= (uint32_t)n;
	}
	return 0;
}

void vp_core_btf_open(struct vp_core_btf *b)
{
	b->path[0] = '\0';
	b->fd = memfd_create("vmaprof-btf", MFD_CLOEXEC);
	if (b->fd >= 0)
		snprintf(b->path, sizeof(b->path), "/proc/self/fd/%d", b->fd);
}

void vp_core_btf_close(struct vp_core_btf *b)
{
	if (b->fd >= 0)
		close(b->fd);
	b->fd = -1;
	b->path[0] = '\0';
}

struct bpf_object_open_opts vp_core_btf_opts(const struct vp_core_btf *b)
{
	return (struct bpf_object_open_opts){
		.sz = sizeof(struct bpf_object_open_opts),
		.btf_custom_path = b->path[0] ? b->path : NULL,
	};
}

/* Without the module, or if its types cannot be read, vmlinux's alone. */
static int load_types(struct cut *c)
{
	struct btf *module;

	c->vmlinux = btf__load_vmlinux_btf();
	if (!c->vmlinux)
		return -errno;
	module = btf__load_module_btf(MODULE, c->vmlinux);
	c->from = module ? module : c->vmlinux;
	return 0;
}

static void free_types(struct cut *c)
{
	btf__free(c->to);
	if (c->from != c->vmlinux)
		btf__free(c->from);
	btf__free(c->vmlinux);
	free(c->copy);
	free(c);
}

int vp_core_btf_fill(struct vp_core_btf *b, struct bpf_object *const *objs, size_t cnt)
{
	struct cut *c;
	int err;

	if (b->fd < 0)
		return 0;
	c = calloc(1, sizeof(*c));
	if (!c)
		return -ENOMEM;
	err = load_types(c);
	if (!err)
		err = write_out(b, cut_types(c, objs, cnt) ? c->vmlinux : c->to);
	free_types(c);
	return err;
}
