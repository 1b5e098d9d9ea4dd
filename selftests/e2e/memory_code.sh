#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Code in shared memory, memfds and the like: one verdict in maps, find and samples, and a library
# that is only in memory has its symbols.
# shellcheck source=selftests/e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh" || exit 1

need python3 perf
folded=$TMPDIR/memory.folded

# record_and_check CHAIN: the stacks of the workload; no picture says "(deleted)"
record_and_check() {
	vp_ok record -p "$WL_PID" -F 299 --duration 0.7 -o "$folded"
	assert_folded "$folded"
	assert_chain "$folded" "$1" memory_code 90
	! grep -q 'deleted' "$folded" || fail "$(grep deleted "$folded")"
}

# kind_of ADDRESS: the verdict of maps
kind_of() {
	vp_ok maps -p "$WL_PID" --json
	grep "\"start\":\"$1\"" "$OUT" | sed 's/.*"kind":"\([A-Z_]*\)".*/\1/'
}

for entry in shared:ANON_EXEC zero:ANON_EXEC sysv:ANON_EXEC memfd:FILE; do
	kind=${entry%:*} verdict=${entry#*:}
	start memory_code "$kind"
	code=$(ready_value code)
	python3 "$E2E/compare_maps.py" "$VMAPROF" "$WL_PID" || fail "maps of $WL_READY"
	python3 "$E2E/compare_find.py" "$VMAPROF" "$WL_PID" 100 || fail "find in $WL_READY"
	[ "$(kind_of "$code")" = "$verdict" ] || fail "$kind is $(kind_of "$code")"
	vp_ok find -p "$WL_PID" --json "$code"
	grep -q "\"verdict\":\"$verdict\"" "$OUT" || fail "find $kind: $(cat "$OUT")"
	record_and_check 'main;run_code;[jit]_[j]'
	stop "$WL_PID"
done

start memory_code library
record_and_check 'main;run_library;plugin_run;plugin_a_spin'
vp_ok record -p "$WL_PID" -F 99 --duration 0.3 -o "$TMPDIR/memory.html"
! grep -a -q '(deleted)' "$TMPDIR/memory.html" || fail "(deleted) in the picture"

# The page of old: the caller is in the stack, and perf knows where it is. In deferred mode it is over
# when the stack is taken.
if ! "$WORKLOADS/memory_code" vsyscall 0.01 | grep -q READY; then
	echo "note: no [vsyscall] here"
	exit 0
fi
start memory_code vsyscall
vp_ok record -p "$WL_PID" --unwind-mode inline -F 299 --duration 1 -o "$folded"
[ "$(folded_exact "$folded" 'main;spin_in_vsyscall;run_vsyscall;[vsyscall]')" -gt 10 ] ||
	fail "no [vsyscall]: $(folded_top "$folded" memory_code)"
[ "$(folded_count "$folded" 'spin_in_vsyscall;[vsyscall]')" = 0 ] || fail "a [vsyscall] without its caller"
vp_ok record -p "$WL_PID" --unwind-mode inline -F 299 --duration 1 -o "$TMPDIR/memory.data"
perf script -i "$TMPDIR/memory.data" -F ip,sym,dso 2>/dev/null >"$TMPDIR/script"
grep -q ' 400 .*(\[vsyscall\])' "$TMPDIR/script" || fail "$(sort "$TMPDIR/script" | uniq -c)"
