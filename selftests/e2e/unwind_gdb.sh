#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# gdb's backtrace of a process whose stack does not change is what vmaprof samples in it: every
# return address from the leaf's to the one in _start.
# shellcheck source=selftests/e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh" || exit 1
# shellcheck source=selftests/e2e/lib_unwind.sh
source "$E2E/lib_unwind.sh" || exit 1

need gdb perf python3

unwind_start "${unwind_static[@]}"
for mode in $(unwind_modes); do
	vp_ok record -a --unwind-mode "$mode" -F 499 --duration 3 -o "$TMPDIR/$mode.data"
	script_of "$TMPDIR/$mode.data" >"$TMPDIR/$mode.script"
done
# gdb shares the CPUs with nobody then
kill -STOP "${UNWIND_PIDS[@]}"
half=$((${#UNWIND_PIDS[@]} / 2))
# stacks_of NAME PID…
stacks_of() {
	PIDS="${*:2}" timeout 120 gdb -nx -batch -x "$E2E/unwind_gdb_stacks.py" \
		>"$TMPDIR/gdb.$1" 2>"$TMPDIR/gdb.err.$1"
}
stacks_of 1 "${UNWIND_PIDS[@]:0:half}" &
first=$!
stacks_of 2 "${UNWIND_PIDS[@]:half}" || fail "gdb: $(tail -n 5 "$TMPDIR/gdb.err.2")"
wait "$first" || fail "gdb: $(tail -n 5 "$TMPDIR/gdb.err.1")"
cat "$TMPDIR/gdb.1" "$TMPDIR/gdb.2" >"$TMPDIR/gdb"
stacks=$(grep -c '^STACK ' "$TMPDIR/gdb")
[ "$stacks" -ge ${#UNWIND_PIDS[@]} ] ||
	fail "gdb: $stacks stacks of ${#UNWIND_PIDS[@]} processes: $(tail -n 5 "$TMPDIR/gdb.err.2")"
for mode in $(unwind_modes); do
	echo "$mode:"
	python3 "$E2E/unwind_compare.py" gdb "$TMPDIR/$mode.script" "$TMPDIR/gdb" ||
		fail "vmaprof ($mode) and gdb differ"
done
