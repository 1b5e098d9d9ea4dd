#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Processes that are born and dead within a few sample periods, most with one sample: it is whole.
# shellcheck source=selftests/e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh" || exit 1

modes="inline"
"$VMAPROF" doctor --json | grep -q '"name":"task_work","present":true' && modes="inline deferred"
folded=$TMPDIR/brief.folded
for mode in $modes; do
	vp_ok record -F 299 --unwind-mode "$mode" -o "$folded" -- "$WORKLOADS/short" --spawn 120 1
	assert_folded "$folded"
	spinning=$(grep -a short_spin "$folded" >"$TMPDIR/spinning" && folded_sum "$TMPDIR/spinning")
	assert_between "${spinning:-0}" 40 1500 "$mode: samples of 120 brief processes"
	grep -a '^short;_start;__libc_start[^[]*;main;short_spin[; ]' "$TMPDIR/spinning" >"$TMPDIR/whole"
	assert_between "$(percent "$(folded_sum "$TMPDIR/whole")" "$spinning")" 98 100 \
		"$mode: whole stacks ($(grep -a -v -F -x -f "$TMPDIR/whole" "$TMPDIR/spinning" | head -n 3))"
done
