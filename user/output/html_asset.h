/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The files of flamegraph/ as NUL-terminated strings in the binary. */
#ifndef VP_HTML_ASSET_H
#define VP_HTML_ASSET_H

extern const char vp_asset_page[];  /* page.html: has {{marks}} that html.c fills in */
extern const char vp_asset_style[]; /* style.css */
extern const char vp_asset_model[]; /* model.js: data and arithmetic, no DOM */
extern const char vp_asset_draw[];  /* draw.js: the canvas */
extern const char vp_asset_ui[];    /* ui.js: everything else */

#endif
