#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Counts and shares: 3:1 is 75 % within 3, samples are CPU time times frequency, for any frequency.
# shellcheck source=selftests/e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh" || exit 1

folded=$TMPDIR/shares.folded
vp_ok record -F 997 -o "$folded" -- "$WORKLOADS/shares" 3
assert_folded "$folded"
total=$(folded_comm "$folded" shares)
assert_count_matches "$total" 3000 997
inside=$(folded_count "$folded" 'main;alternate' shares)
assert_between "$(percent "$inside" "$total")" 97 100 "share of main;alternate"
three=$(folded_exact "$folded" three_quarters shares)
one=$(folded_exact "$folded" one_quarter shares)
assert_between "$(percent "$three" $((three + one)))" 72 78 "share of three_quarters"
# a leaf that is entered and left all the time still mostly has its caller
assert_chain "$folded" 'main;alternate;three_quarters' shares 68

for hz in 49 199 4999; do
	vp_ok record -F $hz -o "$TMPDIR/hz.folded" -- "$WORKLOADS/chain" 1.5
	assert_count_matches "$(folded_comm "$TMPDIR/hz.folded" chain)" 1500 $hz
done

# 99 Hz is the default
vp_ok record -o "$TMPDIR/hz.folded" -- "$WORKLOADS/chain" 2
assert_count_matches "$(folded_comm "$TMPDIR/hz.folded" chain)" 2000 99
