#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# kptr_restrict=2: the user's part is whole, and one hint says what is hidden.
# shellcheck source=selftests/e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh" || exit 1

setting=/proc/sys/kernel/kptr_restrict
before=$(cat "$setting")
on_exit eval "echo $before >$setting"
start syscaller
start chain
echo 2 >"$setting"
vp record -a -F 299 --duration 1 -o "$TMPDIR/hidden.folded"
cp "$ERR" "$TMPDIR/said"
vp record -p "$WL_PID" -F 299 --duration 0.5 -o "$TMPDIR/hidden.data"
echo "$before" >"$setting"

[ "$STATUS" = 0 ] || fail "perf.data: exit $STATUS"
ERR=$TMPDIR/said
folded=$TMPDIR/hidden.folded
assert_folded "$folded"
assert_chain "$folded" 'main;outer;middle;inner' chain 95
assert_chain "$folded" 'main;read_zeros;enter_kernel' syscaller 95
kernel=$(grep -E 'enter_kernel(;[^;]*_\[k\])+ ' "$folded" | awk '{ n += $NF } END { print n + 0 }')
assert_between "$(percent "$kernel" "$(folded_comm "$folded" syscaller)")" 85 100 \
	"share of hidden kernel frames, which are still frames"
grep -q 'vfs_read' "$folded" && fail "the kernel was not hidden"
[ "$(grep -c -i 'kptr_restrict' "$ERR")" = 1 ] || fail "not one hint about kptr_restrict"

# and with the setting back, names are back
vp_ok record -p "$(pgrep -x -n syscaller)" -F 299 --duration 0.5 -o "$folded"
[ "$before" != 0 ] || grep -q 'vfs_read' "$folded" || fail "no kernel names with kptr_restrict 0"
