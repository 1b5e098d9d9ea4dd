/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A quick look into the kernel's BTF. */
#ifndef VP_BTF_MENTIONS_H
#define VP_BTF_MENTIONS_H

enum vp_btf_mention {
	VP_BTF_NOT,	  /* or there is no BTF */
	VP_BTF_BEGINNING, /* names begin with it */
	VP_BTF_WHOLE,
};

/*
 * Is there such a name in the running kernel's BTF? For a function that is as good as looking it up,
 * and takes 2 ms where parsing the BTF takes 20.
 */
enum vp_btf_mention vp_btf_mentions(const char *name);

#endif
