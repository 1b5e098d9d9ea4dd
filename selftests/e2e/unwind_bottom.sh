#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# With all workloads and some of the distribution's programs at work, 99.5 % of the user stacks end
# where they must. Prints what ended the others.
# shellcheck source=selftests/e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh" || exit 1
# shellcheck source=selftests/e2e/lib_unwind.sh
source "$E2E/lib_unwind.sh" || exit 1

# not the one without any end: a function without unwind information and frame pointer
entries=()
for entry in "${unwind_static[@]}" "${unwind_moving[@]}"; do
	[[ $entry == *asm-bare* ]] || entries+=("$entry")
done
unwind_start "${entries[@]}"
unwind_start_programs
# as the others
renice -n 19 -p "${UNWIND_PIDS[@]}" >/dev/null

pids=$(IFS=, && echo "${UNWIND_PIDS[*]}")
for mode in $(unwind_modes); do
	vp_ok record -p "$pids" --unwind-mode "$mode" -F 499 --duration 6 -o "$TMPDIR/x.folded"
	ends=$(sed -n 's/^user stacks ended: *//p' "$ERR")
	samples=$(sed -n 's/^\([0-9]*\) samples in .*/\1/p' "$ERR")
	# stacks that ended in a file whose rows were being compiled at that time
	early=$(sed -n 's/^ *\([0-9]*\) *user frames in files whose unwind rows were not there yet.*/\1/p' "$ERR")
	bottom=$(sed -n 's/.*BOTTOM \([0-9.]*\) %.*/\1/p' <<<"$ends")
	[ -n "$bottom$samples" ] || fail "no line 'user stacks ended'"
	echo "$mode: $ends; of $samples samples ${early:-0} were too early"
	late=$(awk -v b="$bottom" -v n="$samples" -v e="${early:-0}" 'BEGIN { print b * n / (n - e) }')
	assert_between "$late" 99.5 101 "$mode: percent of stacks that end where they must: $ends"
	assert_between "${early:-0}" 0 $((samples * 8 / 100)) "$mode: stacks before the rows were there, of $samples"
done
