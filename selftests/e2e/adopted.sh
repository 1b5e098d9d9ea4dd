#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# A process whose parent is gone is given another one: that one's mappings are not its own.
# shellcheck source=selftests/e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh" || exit 1
need perf

cp "$WORKLOADS/adopted" "$TMPDIR/daem" || fail "cp"
cp "$WORKLOADS/adopted" "$TMPDIR/app" || fail "cp"
# once where the child has its parent's table for long: without live tracking and the tree
for options in "" "--unwind-mode inline --track=off --no-mm-walk"; do
	data=$TMPDIR/x.data
	# shellcheck disable=SC2086  # several words
	vp_ok record $options -F 499 -o "$data" -- \
		"$WORKLOADS/adopted" init "$TMPDIR/daem" "$TMPDIR/app" 2
	perf script -i "$data" -F comm,pid 2>/dev/null | awk '{ print $1, $2 }' | sort -u >"$TMPDIR/who"
	child=$(perf script -i "$data" -F comm,pid 2>/dev/null | awk '$1 == "daem" { n[$2]++ }
		END { for (p in n) if (n[p] > best) { best = n[p]; pid = p } print pid }')
	[ -n "$child" ] || fail "no samples of the daemon: $(cat "$TMPDIR/who")"
	perf script -i "$data" --show-mmap-events 2>/dev/null |
		grep -E "PERF_RECORD_MMAP2 $child/" >"$TMPDIR/maps"
	grep -q "/daem\$" "$TMPDIR/maps" || fail "the daemon's own program is not among its mappings"
	! grep "/app\$" "$TMPDIR/maps" || fail "the daemon has mappings of its new parent ($options)"
done
