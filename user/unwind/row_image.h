/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Rows as the kernel holds them: include/vp_rows.h. The rest of the interface is in rows.h. */
#ifndef VP_ROW_IMAGE_H
#define VP_ROW_IMAGE_H

#include "rows.h"

#include <stdbool.h>

/* Do rows with these keys fit into blocks that a root and directories can hold? */
bool row_image_fits(const uint32_t *key, size_t cnt);

#endif
