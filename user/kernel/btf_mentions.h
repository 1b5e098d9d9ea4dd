/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A quick look into the kernel's BTF. */
#ifndef VP_BTF_MENTIONS_H
#define VP_BTF_MENTIONS_H

#include <stdbool.h>

/*
 * Does a name in the running kernel's BTF begin with `name`? For a function that is as good as
 * looking it up, and takes 2 ms where parsing the BTF takes 20. False without BTF.
 */
bool vp_btf_mentions(const char *name);

#endif
