/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The vdso that the kernel mapped into this process: an ELF file that is on no disk. */
#ifndef VP_VDSO_IMAGE_H
#define VP_VDSO_IMAGE_H

#include <stddef.h>

/* Start of the image and its size; NULL: there is none. Valid as long as the process. */
const void *vdso_image(size_t *size);

#endif
