#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Where unwinding cannot go on it says why, and what it has found until then is right.
# shellcheck source=selftests/e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh" || exit 1
# shellcheck source=selftests/e2e/lib_unwind.sh
source "$E2E/lib_unwind.sh" || exit 1

folded=$TMPDIR/x.folded

# ended REASON LOW HIGH: percent of the last recording's user stacks
ended() {
	local percent
	percent=$(sed -n "s/^user stacks ended:.* $1 \([0-9.]*\) %.*/\1/p" "$ERR")
	assert_between "${percent:-0}" "$2" "$3" "$mode: percent of stacks that ended $1"
}

# share REGEX: percent of samples whose stack, without the kernel's frames, is that
share() {
	awk -v regex="^($1)\$" '{
		count = $NF; sub(/ [0-9]+$/, ""); sub(/^[^;]*;/, "")
		while (match($0, /(^|;)[^;]*_\[k\]$/)) $0 = substr($0, 1, RSTART - 1)
		all += count
		if ($0 ~ regex) n += count
	} END { printf "%.1f\n", 100 * n / (all ? all : 1) }' "$folded"
}

for mode in $(unwind_modes); do
	# no information and no frame pointer
	vp_ok record --unwind-mode "$mode" -F 499 -o "$folded" -- "$WORKLOADS/nofp_asm" bare 0.5
	ended NO_ROW 90 100
	assert_between "$(share 'neither;leaf')" 90 100 "$mode: neither"

	# information that a row cannot express: the CFA's register was moved to another one
	vp_ok record --unwind-mode "$mode" -F 499 -o "$folded" -- "$WORKLOADS/nofp_asm" moved 0.5
	ended NO_ROW 90 100
	assert_between "$(share 'calls_moved;saved_in_register')" 90 100 "$mode: moved"

	# more frames than are kept: the inner ones are
	vp_ok record --unwind-mode "$mode" -F 199 -o "$folded" -- "$WORKLOADS/nofp_recurse" 3000 0.5
	ended DEPTH 85 100
	assert_between "$(share 'recurse(;recurse)*;bottom_spin')" 85 100 "$mode: recursion"
	frames=$(awk '{ n = gsub(/;recurse/, ""); if (n > max) max = n } END { print max + 0 }' "$folded")
	assert_between "$frames" 1000 2999 "$mode: frames kept of 3000"

	# frames farther apart than perf copies of a stack
	vp_ok record --unwind-mode "$mode" -F 499 -o "$folded" -- "$WORKLOADS/nofp_huge" 0.5
	ended BOTTOM 90 100
	assert_between "$(share '_start;.*;main;frame_3m;frame_700k;frame_40k;leaf')" 90 100 "$mode: huge"
done
