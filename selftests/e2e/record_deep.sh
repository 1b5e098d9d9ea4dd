#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Deep recursion: 600 frames are exact; where a stack was cut, the summary says so.
# shellcheck source=selftests/e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh" || exit 1

folded=$TMPDIR/deep.folded

# recursions FILE: how many frames of recurse the stacks that reach bottom_spin have, by frequency
recursions() {
	awk '/;bottom_spin/ {
		count = $NF; n = gsub(/;recurse/, ""); seen[n] += count }
		END { for (n in seen) print seen[n], n }' "$1" | sort -rn
}

vp_ok record -F 199 -o "$folded" -- "$WORKLOADS/recurse" 600 1
assert_folded "$folded"
read -r samples frames < <(recursions "$folded")
[ "$frames" = 600 ] || fail "$frames frames of recurse, not 600: $(recursions "$folded")"
[ "$(percent "$samples" "$(folded_sum "$folded")" | cut -d. -f1)" -ge 95 ] ||
	fail "not in nearly all samples: $(recursions "$folded")"
# from main to the leaf, without a gap
[ "$(folded_count "$folded" 'main;recurse')" -ge "$samples" ] || fail "main is missing"
[ "$(folded_count "$folded" 'recurse;bottom_spin')" -ge "$samples" ] || fail "bottom_spin is missing"
grep -q -i 'depth' "$ERR" && fail "the summary speaks of a depth limit"

# Exactly the number that the issue asks for.
vp_ok record -F 199 -o "$folded" -- "$WORKLOADS/recurse" 512 0.5
read -r samples frames < <(recursions "$folded")
[ "$frames" = 512 ] || fail "$frames frames of recurse, not 512"

# More than can be kept: the leaf's side is kept, and the summary names the reason.
vp_ok record -F 199 -o "$folded" -- "$WORKLOADS/recurse" 5000 0.5
read -r samples frames < <(recursions "$folded")
assert_between "$frames" 512 4999 "frames kept of 5000"
grep -q -i 'depth' "$ERR" || fail "the summary does not say that stacks were cut"
