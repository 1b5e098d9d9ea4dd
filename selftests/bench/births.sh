#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Fifty new processes a second, each with a library that it loads and 20 to 60 ms to live: how many
# of their samples in `record -a` have the whole stack, every frame in the right file. Three
# programs, four libraries, half of them without frame pointers; every tenth process has a copy
# that nobody has seen before. Names come from perf script, by the mappings in the recording.
# Prints rows as bench.h describes.
here=$(dirname "${BASH_SOURCE[0]}")
# shellcheck source=selftests/e2e/lib.sh
source "$here/../e2e/lib.sh" || exit 1
# shellcheck source=selftests/e2e/lib_unwind.sh
source "$E2E/lib_unwind.sh" || exit 1

target=98
per_second=50
seconds=10

# row ID FIGURE VALUE UNIT [RELATION TARGET VERDICT [NOTE]]
row() {
	printf 'row\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n' "$1" "$2" "$3" "$4" "${5:-}" "${6:-}" "${7:-}" "${8:-}"
}

make_files() {
	local i
	mkdir "$TMPDIR/files" || fail "mkdir"
	for i in 1 2 3; do
		cp "$WORKLOADS/birth" "$TMPDIR/files/program$i" || fail "cp"
	done
	for i in 1 3; do
		cp "$WORKLOADS/plugin_a" "$TMPDIR/files/library$i" || fail "cp"
		cp "$WORKLOADS/plugin_nofp" "$TMPDIR/files/library$((i + 1))" || fail "cp"
	done
}

# record MODE: counts of all samples to $TMPDIR/all, of first ones to $TMPDIR/first.
record() {
	rm -rf "$TMPDIR/files"
	make_files
	start_vp record -a --unwind-mode "$1" --duration $((seconds + 2)) -o "$TMPDIR/x.data"
	wait_until 30 grep -q ' sampling ' "$ERR"
	"$WORKLOADS/births" "$TMPDIR/files" $per_second $seconds >"$TMPDIR/plan" || fail "births"
	wait_vp
	[ "$STATUS" = 0 ] || fail "record: exit $STATUS"
	perf script -i "$TMPDIR/x.data" -F comm,pid,time,ip,sym,dso >"$TMPDIR/stacks" 2>"$TMPDIR/perf.err" ||
		fail "perf script: $(cat "$TMPDIR/perf.err")"
	"$here/births.py" "$TMPDIR/plan" <"$TMPDIR/stacks" >"$TMPDIR/counts" || fail "births.py"
	head -n 1 "$TMPDIR/counts" >"$TMPDIR/all"
	tail -n 1 "$TMPDIR/counts" >"$TMPDIR/first"
}

# report MODE
report() {
	local mode=$1 samples right cut wrong nostack excused new first first_right value verdict
	read -r samples right cut wrong nostack excused new <"$TMPDIR/all"
	read -r first first_right _ <"$TMPDIR/first"
	[ "$samples" -gt 0 ] || fail "no samples of them"
	value=$(percent "$right" "$samples")
	verdict=$(awk -v v="$value" -v t=$target 'BEGIN { print (v >= t ? "met" : "MISSED") }')
	row "births.$mode" "$mode: stacks that are right" "$value" % '>=' $target "$verdict"
	row "births.$mode.first" "… of the first sample of each process" "$(percent "$first_right" "$first")" %
	row "births.$mode.cut" "… right, but the outermost frames are missing" "$(percent "$cut" "$samples")" %
	row "births.$mode.wrong" "… with a frame in no or another file" "$(percent "$wrong" "$samples")" %
	row "births.$mode.nostack" "… without a user stack" "$(percent "$nostack" "$samples")" %
	row "births.$mode.new" "… not right, in processes with a new file" "$(percent "$new" "$samples")" %
	row "births.$mode.samples" "… samples" "$samples" ""
	row "births.$mode.excused" "… others in exec or exit, without a user side" "$excused" ""
}

printf 'group\t%d new processes a second, each with a library loaded\n' $per_second
if ! command -v perf >/dev/null || ! command -v python3 >/dev/null; then
	row births "stacks that are right" "" "" "" "" skipped "needs perf and python3"
	exit 0
fi
for mode in $(unwind_modes); do
	record "$mode"
	report "$mode"
done
