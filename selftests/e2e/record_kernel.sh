#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Kernel frames: above the exact user chain, and there also when user frames fail.
# shellcheck source=selftests/e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh" || exit 1

folded=$TMPDIR/kernel.folded
seconds=$(longer 1.5)
vp_ok record -F 499 -o "$folded" -- "$WORKLOADS/syscaller" "$seconds"
assert_folded "$folded"
total=$(folded_comm "$folded" syscaller)
assert_count_matches "$total" "$(awk -v s="$seconds" 'BEGIN { print s * 1000 }')" 499
assert_chain "$folded" 'main;read_zeros;enter_kernel' syscaller 95
kernel=$(grep -E 'main;read_zeros;enter_kernel(;[^;]*_\[k\])+ ' "$folded" | awk '{ n += $NF } END { print n + 0 }')
assert_between "$(percent "$kernel" "$total")" 85 100 "share with kernel frames above the chain"
reads=$(grep -E 'enter_kernel;.*;(ksys_read|vfs_read|read_zero|clear_user[^;]*|rep_stos[^;]*)_\[k\]' "$folded" |
	awk '{ n += $NF } END { print n + 0 }')
assert_between "$(percent "$reads" "$total")" 80 100 "share in the read"

# Kernel threads have kernel frames and nothing else.
start syscaller
vp_ok record -a -F 499 --duration 1 -o "$folded"
bad=$(grep -E '^(kworker|ksoftirqd|rcu_|migration|kthreadd)[^;]*;' "$folded" |
	grep -v -E '^[^;]+(;[^;]*(_\[k\]|_\[k\] [0-9]+))+( [0-9]+)?$' | head -n 3)
[ -z "$bad" ] || fail "a kernel thread with user frames: $bad"
