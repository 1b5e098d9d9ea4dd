/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Files, lines and inlined calls of kernel addresses, where the running kernel's debug information
 * is installed: found by the build id that the kernel tells of itself, so that of another build is
 * never taken. What it is, in the host's root:
 *
 *   build id     /sys/kernel/notes              /sys/module/NAME/notes/.note.gnu.build-id
 *   debug file   /usr/lib/debug/.build-id/…     /usr/lib/debug/boot/vmlinux-RELEASE
 *                /usr/lib/debug/lib/modules/RELEASE/vmlinux    /lib/modules/RELEASE/build/vmlinux
 *                … and PATH.ko.debug, PATH.ko   /lib/modules/RELEASE/PATH.ko, as modules.dep has PATH
 *
 * A kernel is not where it was linked to be: its _text in kallsyms and that in the file tell how far.
 * A module is linked when it is loaded: /sys/module/NAME/sections/.text tells where.
 */
#ifndef VP_KERNEL_DEBUG_H
#define VP_KERNEL_DEBUG_H

#include "debug_file.h"
#include "dwarf_info.h"
#include "symbolizer.h"

struct kernel_debug;

struct kernel_debug_opts {
	const char *host_root;	     /* NULL: "/"; copied */
	const char *release;	     /* NULL: the running kernel's; copied */
	struct vp_symbolizer *names; /* knows where the kernel's text is; borrowed */
	struct debug_finder *finder; /* of the same root; borrowed */
	bool demangle;
};

/* Nothing is opened before it is asked for. 0 or -ENOMEM. */
int kernel_debug_new(struct kernel_debug **out, const struct kernel_debug_opts *opts);
void kernel_debug_free(struct kernel_debug *k); /* NULL is fine */

/*
 * The frames of a kernel address, innermost first; valid until the next call. sym: its symbol, as
 * vp_symbolizer_kernel tells it. 0: there is no debug information of it. The caller subtracts 1
 * from a return address. Not thread-safe.
 */
size_t kernel_debug_find(struct kernel_debug *k, uint64_t addr, const struct vp_symbol *sym,
			 const struct dwarf_frame **frames);

/*
 * The build id of "[kernel]" or a module ("[name]"), in hexadecimal; NULL: not told. Good until
 * kernel_debug_free.
 */
const char *kernel_debug_build_id(struct kernel_debug *k, const char *module);

#endif
