#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# How many user stacks of `record -a` are whole while the workloads of the unwinding tests and some of
# the distribution's programs run, and why the others are not. Prints rows as bench.h describes.
here=$(dirname "${BASH_SOURCE[0]}")
# shellcheck source=selftests/e2e/lib.sh
source "$here/../e2e/lib.sh" || exit 1
# shellcheck source=selftests/e2e/lib_unwind.sh
source "$E2E/lib_unwind.sh" || exit 1

target=99.5

# row ID FIGURE VALUE UNIT [RELATION TARGET VERDICT [NOTE]]
row() {
	printf 'row\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n' "$1" "$2" "$3" "$4" "${5:-}" "${6:-}" "${7:-}" "${8:-}"
}

printf 'group\tUser stacks of record -a that are whole (workloads, openssl, python, perl, ripgrep, node)\n'
# one has neither unwind information nor a frame pointer: its stack has no end to find
entries=()
for entry in "${unwind_static[@]}" "${unwind_moving[@]}"; do
	[[ $entry == *asm-bare* ]] || entries+=("$entry")
done
unwind_start "${entries[@]}" >&2
unwind_start_programs >&2
unwind_program node -e '
function fibonacci(n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }
for (;;) { fibonacci(24); JSON.parse(JSON.stringify([...Array(2000).keys()])); [3, 1, 2].sort(); }
' >&2
renice -n 19 -p "${UNWIND_PIDS[@]}" >/dev/null
for mode in $(unwind_modes); do
	vp_ok record -a --unwind-mode "$mode" -F 499 --duration 10 -o "$TMPDIR/x.folded"
	read -r -a ends < <(sed -n 's/^user stacks ended: *//p' "$ERR")
	for ((i = 0; i + 1 < ${#ends[@]}; i += 3)); do
		reason=${ends[i]} value=${ends[i + 1]}
		if [ "$reason" = BOTTOM ]; then
			verdict=$(awk -v v="$value" -v t=$target 'BEGIN { print (v >= t ? "met" : "MISSED") }')
			row "bottom.$mode" "$mode: end BOTTOM" "$value" % '>=' $target "$verdict"
		else
			row "bottom.$mode.$reason" "$mode: $reason" "$value" %
		fi
	done
done
