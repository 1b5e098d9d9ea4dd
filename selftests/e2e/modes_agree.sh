#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Inline and deferred unwinding give identical stacks of the same workloads.
# shellcheck source=selftests/e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh" || exit 1

vp_ok doctor --json
grep -q '"name": *"task_work[^}]*"present": *true' "$OUT" || skip "no deferred mode on this kernel"

vp record --unwind-mode deferred -F 99 -o "$TMPDIR/x.folded" -- "$WORKLOADS/chain" 0.2
[ "$STATUS" != 2 ] || ! grep -q 'cannot do that' "$ERR" || skip "this version has no deferred mode"

start chain
start recurse 200
start jit call
start syscaller
start noreturn
start cpp_chain
start leader_exit

# stacks MODE: the user stacks that make 97 % of each thread name's samples, kernel frames cut
for mode in inline deferred auto; do
	vp_ok record -a --unwind-mode $mode -F 499 --duration 4 -o "$TMPDIR/$mode.folded"
	assert_folded "$TMPDIR/$mode.folded"
	awk '{
		count = $NF; sub(/ [0-9]+$/, "")
		while (match($0, /;[^;]*_\[k\]$/)) $0 = substr($0, 1, RSTART - 1)
		comm = $0; sub(/;.*/, "", comm)
		if (comm !~ /^(chain|recurse|jit|syscaller|noreturn|cpp_chain|wl-survivor)$/) next
		all[comm] += count; stack[$0] += count; of[$0] = comm
	}
	END { for (s in stack) if (stack[s] > 0.2 * all[of[s]]) print s }' "$TMPDIR/$mode.folded" |
		sort >"$TMPDIR/$mode.stacks"
done
[ "$(wc -l <"$TMPDIR/inline.stacks")" -ge 7 ] || fail "too few stacks: $(cut -c1-150 "$TMPDIR/inline.stacks")"
for mode in deferred auto; do
	diff "$TMPDIR/inline.stacks" "$TMPDIR/$mode.stacks" >"$TMPDIR/diff" ||
		fail "inline and $mode differ: $(cut -c1-300 "$TMPDIR/diff")"
done
for mode in inline deferred; do
	folded=$TMPDIR/$mode.folded
	assert_chain "$folded" 'main;outer;middle;inner' chain 97
	assert_chain "$folded" 'main;calls_noreturn;never_returns' noreturn 97
	assert_chain "$folded" 'main;read_zeros;enter_kernel' syscaller 95
	assert_chain "$folded" 'survivor_main;survivor_spin' wl-survivor 97
	# what goes on in the kernel is there in both
	kernel=$(grep -E 'enter_kernel;.*vfs_read_\[k\]' "$folded" | awk '{ n += $NF } END { print n + 0 }')
	assert_between "$(percent "$kernel" "$(folded_comm "$folded" syscaller)")" 80 100 "$mode: vfs_read"
	# late libraries and an exec
	vp_ok record --unwind-mode $mode -F 499 -o "$folded" -- "$WORKLOADS/dlhost" 0.3 1
	for chain in 'main;before_load' 'main;run_plugin;plugin_run;plugin_a_spin' \
		'main;run_plugin;plugin_run;plugin_b_spin'; do
		assert_between "$(percent "$(folded_exact "$folded" "$chain")" \
			"$(folded_comm "$folded" dlhost)")" 26 41 "$mode: $chain"
	done
	vp_ok record --unwind-mode $mode -F 499 -o "$folded" -- setarch -R "$WORKLOADS/execer" 0.4
	assert_count_matches "$(folded_exact "$folded" 'main;before_exec' execer)" 400 499
	assert_count_matches "$(folded_exact "$folded" 'main;outer;middle;inner' chain)" 400 499
done
