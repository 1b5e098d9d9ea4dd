#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Inline and deferred unwinding give identical stacks of the same workloads, with frame pointers and
# without, and auto is one of them.
# shellcheck source=selftests/e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh" || exit 1
# shellcheck source=selftests/e2e/lib_unwind.sh
source "$E2E/lib_unwind.sh" || exit 1

unwind_modes | grep -q deferred || skip "no deferred mode on this kernel"

with_fp=("chain chain" "recurse recurse 200" "jit jit call" "syscaller syscaller" "noreturn noreturn"
	"cpp_chain cpp_chain")
for entry in "${with_fp[@]}"; do
	read -r -a words <<<"$entry"
	start "${words[@]:1}"
	unwind_hold
	UNWIND_NAMES+=("${words[0]}")
done
start leader_exit
unwind_hold
UNWIND_NAMES+=(wl-survivor)
unwind_start "${unwind_static[@]}"
printf '%s\n' "${UNWIND_NAMES[@]}" >"$TMPDIR/names"

# the user stacks that make a fifth or more of each name's samples, kernel frames cut
for mode in inline deferred auto; do
	vp_ok record -a --unwind-mode "$mode" -F 499 --duration 4 -o "$TMPDIR/$mode.folded"
	assert_folded "$TMPDIR/$mode.folded"
	awk 'FILENAME == ARGV[1] { wanted[$0]; next }
	{
		count = $NF; sub(/ [0-9]+$/, "")
		while (match($0, /;[^;]*_\[k\]$/)) $0 = substr($0, 1, RSTART - 1)
		comm = $0; sub(/;.*/, "", comm)
		if (!(comm in wanted)) next
		all[comm] += count; stack[$0] += count; of[$0] = comm
	}
	END { for (s in stack) if (stack[s] > 0.2 * all[of[s]]) print s }' \
		"$TMPDIR/names" "$TMPDIR/$mode.folded" | sort >"$TMPDIR/$mode.stacks"
	cut -d';' -f1 "$TMPDIR/$mode.stacks" | sort -u >"$TMPDIR/seen"
	missing=$(sort "$TMPDIR/names" | comm -23 - "$TMPDIR/seen")
	[ -z "$missing" ] || fail "$mode: no stack that is frequent of ${missing//$'\n'/ }"
done
for mode in deferred auto; do
	diff "$TMPDIR/inline.stacks" "$TMPDIR/$mode.stacks" >"$TMPDIR/diff" ||
		fail "inline and $mode differ: $(cut -c1-300 "$TMPDIR/diff")"
done

for mode in inline deferred; do
	folded=$TMPDIR/$mode.folded
	assert_chain "$folded" 'main;outer;middle;inner' chain 95
	assert_chain "$folded" 'main;calls_noreturn;never_returns' noreturn 95
	assert_chain "$folded" 'main;read_zeros;enter_kernel' syscaller 95
	assert_chain "$folded" 'survivor_main;survivor_spin' wl-survivor 95
	# what goes on in the kernel is there in both
	kernel=$(grep -E 'enter_kernel;.*vfs_read_\[k\]' "$folded" | awk '{ n += $NF } END { print n + 0 }')
	assert_between "$(percent "$kernel" "$(folded_comm "$folded" syscaller)")" 75 100 "$mode: vfs_read"
done
kill -STOP "${e2e_pids[@]}"

for mode in inline deferred; do
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
