/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Paths are relative to the repository's root, where the build runs. The compiler does not
 * report .incbin files as dependencies: the Makefile names them.
 */
#include "html_asset.h"

#define ASSET(symbol, file)                                                                        \
	__asm__(".pushsection .rodata\n"                                                           \
		".global " symbol "\n"                                                             \
		".type " symbol ", %object\n" symbol ":\n"                                         \
		".incbin \"user/output/flamegraph/" file "\"\n"                                    \
		".byte 0\n"                                                                        \
		".size " symbol ", . - " symbol "\n"                                               \
		".popsection\n")

ASSET("vp_asset_page", "page.html");
ASSET("vp_asset_style", "style.css");
ASSET("vp_asset_model", "model.js");
ASSET("vp_asset_draw", "draw.js");
ASSET("vp_asset_ui", "ui.js");
