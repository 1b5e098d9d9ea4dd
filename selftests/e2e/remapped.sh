#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Text that its program has moved to anonymous memory keeps its file: names, unwinding, perf, a mark.
# shellcheck source=selftests/e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh" || exit 1

chain=';main;remapped_root;remapped_leaf(;[^;]*_\[k\])* [0-9]+$'
for mode in inline deferred; do
	folded=$TMPDIR/$mode.folded
	[ "$mode" = inline ] || "$VMAPROF" doctor | grep -q '^ *task_work *yes' || continue
	vp_ok record --unwind-mode "$mode" -F 499 -o "$folded" -- "$WORKLOADS/remap_text" 1
	assert_folded "$folded"
	grep -q 'moved to anonymous memory' "$ERR" || fail "$mode: the summary does not say so"
	n=$(grep -E -- "$chain" "$folded" | awk '{ n += $NF } END { print n + 0 }')
	assert_between "$(percent "$n" "$(folded_comm "$folded" remap_text)")" 90 100 \
		"$mode: share of the chain"
done

vp_ok record -F 499 -o "$TMPDIR/out.html" -- "$WORKLOADS/remap_text" 1
grep -q 'remap_text (remapped)' "$TMPDIR/out.html" || fail "not marked in the picture"

vp_ok record -F 499 -o "$TMPDIR/out.data" -- "$WORKLOADS/remap_text" 1
n=$(perf script -i "$TMPDIR/out.data" -F ip,sym,dso 2>/dev/null |
	grep -c 'remapped_leaf.*/remap_text)')
[ "$n" -gt 100 ] || fail "perf names the leaf in $n samples"
