#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Two libraries at the same addresses, one after the other: each sample has the right one's names.
# shellcheck source=selftests/e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh" || exit 1

folded=$TMPDIR/reuse.folded
vp_ok record -F 499 -o "$folded" -- "$WORKLOADS/dlhost" 0.4 2
grep -q '^SAME yes' "$OUT" || skip "the loader chose different addresses"
total=$(folded_comm "$folded" dlhost)
for x in a b; do
	assert_between "$(percent "$(folded_exact "$folded" \
		"main;run_plugin;plugin_run;plugin_${x}_spin")" "$total")" 33 47 "plugin_$x"
done
