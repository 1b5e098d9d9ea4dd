#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Programs without frame pointers whose chains are known: exact from _start to the leaf, in both
# modes, for every compiler, level, form of linking and kind of frame that there is a workload of.
# shellcheck source=selftests/e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh" || exit 1
# shellcheck source=selftests/e2e/lib_unwind.sh
source "$E2E/lib_unwind.sh" || exit 1

unwind_start "${unwind_static[@]}" "${unwind_moving[@]}"
for mode in $(unwind_modes); do
	folded=$TMPDIR/$mode.folded
	vp_ok record -a --unwind-mode "$mode" -F 499 --duration 5 -o "$folded"
	assert_folded "$folded"
	bad=$(unwind_bad "$folded")
	[ -z "$bad" ] || fail "$mode: $bad"
done
