#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Programs of all kinds, without frame pointers: vmaprof and perf's --call-graph dwarf, which look at
# the same processes at the same time, find the same chains. The rule is in unwind_compare.py.
# shellcheck source=selftests/e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh" || exit 1
# shellcheck source=selftests/e2e/lib_unwind.sh
source "$E2E/lib_unwind.sh" || exit 1

need perf python3

for workload in nofp_calls nofp_lazy "nofp_except throw"; do
	# shellcheck disable=SC2086  # two words
	start $workload
	UNWIND_PIDS+=("$WL_PID")
done
unwind_start_programs

pids=$(IFS=, && echo "${UNWIND_PIDS[*]}")
for mode in $(unwind_modes); do
	kill -CONT "${UNWIND_PIDS[@]}"
	perf record -q -B -N -e cpu-clock:u -F 397 --call-graph dwarf,65528 -p "$pids" \
		-o "$TMPDIR/perf.data" -- sleep 6 >"$TMPDIR/perf.out" 2>&1 &
	perf_pid=$!
	vp_ok record -p "$pids" --call-graph dwarf --unwind-mode "$mode" -F 499 --duration 6 \
		-o "$TMPDIR/x.data"
	wait "$perf_pid" || fail "perf record: $(cat "$TMPDIR/perf.out")"
	# who reads what was recorded has the CPUs to himself
	kill -STOP "${UNWIND_PIDS[@]}"
	script_of "$TMPDIR/x.data" >"$TMPDIR/ours"
	script_of "$TMPDIR/perf.data" >"$TMPDIR/theirs"
	echo "$mode:"
	python3 "$E2E/unwind_compare.py" perf "$TMPDIR/ours" "$TMPDIR/theirs" ||
		fail "vmaprof ($mode) and perf differ"
done
