/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The unwinder once more, as include/vp_rows.h describes it, on the memory of scenes. */
#ifndef SCENE_MODEL_H
#define SCENE_MODEL_H

#include "scene.h"

struct scene_chain {
	uint32_t cnt; /* frames, the leaf's included */
	uint16_t end; /* VP_END_* */
	uint64_t pc[VP_MAX_USER_FRAMES];
	uint16_t flags[VP_MAX_USER_FRAMES]; /* VP_FRAME_F_LEAF and _FP */
};

/* What a sample of scene `which` of cnt must be that interrupted its thread at pc. */
void scene_chain_of(const struct scene *scenes, uint32_t cnt, uint32_t which, uint64_t pc,
		    struct scene_chain *out);

#endif
