#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Code made at run time, with frame pointers: the chain goes through it.
# shellcheck source=selftests/e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh" || exit 1

folded=$TMPDIR/jit.folded
jit='\[jit\](_\[j\])?'

vp_ok record -F 499 -o "$folded" -- "$WORKLOADS/jit" both 2
assert_folded "$folded"
total=$(folded_comm "$folded" jit)
count() {
	grep -E -- "$1" "$folded" | awk '{ n += $NF } END { print n + 0 }'
}
spin=$(count ";main;run_jit_spin;$jit(;[^;]*_\[k\])* [0-9]+$")
call=$(count ";main;run_jit_call;$jit;called_from_jit(;[^;]*_\[k\])* [0-9]+$")
assert_between "$(percent $((spin + call)) "$total")" 95 100 "share of the two chains"
assert_between "$(percent "$spin" "$total")" 20 80 "share of the loop in the page"

# Executable memory that comes and goes all the time: what is steady is seen, and it is cheap.
start churn 0 2
start_vp record -p "$WL_PID" -F 499 --duration 3 -o "$folded"
wait_recording 3000 "$WL_PID"
own_ms=$(cpu_ms "$VP_PID")
wait_vp
[ "$STATUS" = 0 ] || fail "exit $STATUS"
assert_folded "$folded"
[ "$(folded_count "$folded" 'churner;steady_spin')" -gt 0 ] || fail "no steady_spin"
bad=$(percent "$(count ';\[unknown\] [0-9]+$')" "$(folded_sum "$folded")")
assert_between "$bad" 0 5 "share of unknown leaves"
assert_between "$own_ms" 0 1500 "own CPU time in ms beside the churn"
