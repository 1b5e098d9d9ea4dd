#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# vmaprof maps of 1,000 and 128,000 mappings: complete and fast.
# shellcheck source=selftests/e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh" || exit 1

need python3

limit=/proc/sys/vm/max_map_count
before=$(cat "$limit")
if [ "$before" -lt 200000 ]; then
	on_exit eval "echo $before >$limit"
	echo 200000 >"$limit"
fi

for kind in anon exec file; do
	start manyvmas 1000 "$kind"
	[ "$(ready_value vmas)" = 1000 ] || fail "the workload has $WL_READY"
	python3 "$E2E/compare_maps.py" "$VMAPROF" "$WL_PID" || fail "1,000 mappings ($kind) differ"
	stop "$WL_PID"
done

start manyvmas 128000 exec
[ "$(ready_value vmas)" = 128000 ] || fail "the workload has $WL_READY"
started=$SECONDS
vp_ok maps -p "$WL_PID" --all-maps
[ $((SECONDS - started)) -le 10 ] || fail "128,000 mappings took $((SECONDS - started)) s"
tail -n +2 "$OUT" | cmp - "/proc/$WL_PID/maps" || fail "128,000 mappings differ"
vp_ok maps -p "$WL_PID" --json
[ "$(grep -c '"kind": *"ANON_EXEC"' "$OUT")" -ge 60000 ] || fail "executable ones are missing"

# Recording it does not take long to start, and loses nothing.
stop "$WL_PID"
start manyvmas 128000 exec
started=$SECONDS
start chain
vp_ok record -p "$WL_PID" -F 199 --duration 1 -o "$TMPDIR/many.folded"
[ $((SECONDS - started)) -le 15 ] || fail "recording beside it took $((SECONDS - started)) s"
assert_chain "$TMPDIR/many.folded" 'main;outer;middle;inner' chain 95
