/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The cut of the kernel's BTF against the whole. */
#include "kernel/core_btf.h"
#include "sampler.skel.h"

#include <bpf/btf.h>
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <string.h>

static struct btf *whole, *cut;
static struct vp_core_btf core;
static struct sampler *skel;

static void cut_for_the_sampler(void)
{
	skel = sampler__open();
	cr_assert(skel != NULL);
	vp_core_btf_open(&core);
	cr_assert(ge(int, core.fd, 0));
	cr_assert(zero(int, vp_core_btf_fill(&core, &skel->obj, 1)));
	whole = btf__load_vmlinux_btf();
	cut = btf__parse_raw(core.path);
	cr_assert(whole != NULL);
	cr_assert(cut != NULL);
}

static void forget(void)
{
	btf__free(whole);
	btf__free(cut);
	vp_core_btf_close(&core);
	sampler__destroy(skel);
}

TestSuite(core_btf, .init = cut_for_the_sampler, .fini = forget);

static const struct btf_type *find_struct(const struct btf *btf, const char *name)
{
	int id = btf__find_by_name_kind(btf, name, BTF_KIND_STRUCT);

	return id < 0 ? NULL : btf__type_by_id(btf, (__u32)id);
}

/* Names, offsets and kinds of all members; pointers may have lost what they point to. */
static void expect_same_members(const char *name)
{
	const struct btf_type *a = find_struct(whole, name), *b = find_struct(cut, name);

	cr_assert(a != NULL && b != NULL, "%s", name);
	cr_assert(eq(int, btf_vlen(a), btf_vlen(b)), "%s", name);
	cr_expect(eq(u32, a->size, b->size), "%s", name);
	for (int i = 0; i < btf_vlen(a); i++) {
		const struct btf_member *ma = &btf_members(a)[i], *mb = &btf_members(b)[i];

		cr_expect(eq(str, (char *)btf__name_by_offset(whole, ma->name_off),
			     (char *)btf__name_by_offset(cut, mb->name_off)));
		cr_expect(eq(u32, ma->offset, mb->offset));
		cr_expect(eq(u32, btf_kind(btf__type_by_id(whole, ma->type)),
			     btf_kind(btf__type_by_id(cut, mb->type))));
	}
}

Test(core_btf, what_objects_read_is_as_in_the_kernel)
{
	static const char *const names[] = {"task_struct", "mm_struct", "vm_area_struct", "inode",
					    "file",	   "dentry",	"mount"};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		expect_same_members(names[i]);
}

Test(core_btf, a_file_systems_own_inodes_are_known_if_it_is_there)
{
	struct btf *module = NULL;

	if (!find_struct(whole, "btrfs_inode"))
		module = btf__load_module_btf("btrfs", whole);
	if (module) {
		btf__free(module);
		cr_expect(find_struct(cut, "btrfs_inode") != NULL);
		cr_expect(find_struct(cut, "btrfs_root") != NULL);
	} else if (find_struct(whole, "btrfs_inode")) {
		expect_same_members("btrfs_inode");
		expect_same_members("btrfs_root");
	} else {
		cr_expect(find_struct(cut, "btrfs_inode") == NULL);
	}
}

Test(core_btf, it_is_small)
{
	cr_expect(lt(u32, btf__type_cnt(cut) * 20, btf__type_cnt(whole)));
}

Test(core_btf, what_the_kernel_does_not_have_is_not_made_up)
{
	cr_expect(find_struct(cut, "inode___pre_v66") == NULL);
	cr_expect(find_struct(cut, "vp_sample_buf") == NULL);
}
