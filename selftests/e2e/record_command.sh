#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# A command and what it starts: execs, forks, short lives, a library loaded late.
# shellcheck source=selftests/e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh" || exit 1

# Before and after an exec, each with its own symbols. Without address space randomization the
# two programs lie at the same addresses.
folded=$TMPDIR/exec.folded
for wrap in '' 'setarch -R'; do
	# shellcheck disable=SC2086 # no or two words
	vp_ok record -F 499 -o "$folded" -- $wrap "$WORKLOADS/execer" 0.5
	assert_folded "$folded"
	assert_chain "$folded" 'main;before_exec' execer 90
	assert_chain "$folded" 'main;outer;middle;inner' chain 90
	# neither has anything of the other
	assert_between "$(folded_count "$folded" before_exec chain)" 0 0 "old code under the new name"
	assert_between "$(folded_count "$folded" inner execer)" 0 0 "new code under the old name"
	assert_count_matches "$(folded_exact "$folded" 'main;before_exec')" 500 499
	assert_count_matches "$(folded_exact "$folded" 'main;outer;middle;inner')" 500 499
done

# Children that fork without exec.
vp_ok record -F 499 -o "$folded" -- "$WORKLOADS/forker" 2 0.5
assert_chain "$folded" 'main;fork_children;child_main;child_spin' forker 90
assert_count_matches "$(folded_count "$folded" child_spin)" 1000 499

# Ten processes of 30 ms each, up to a timer tick more: all of them from their first instructions on.
vp_ok record -F 999 -o "$folded" -- "$WORKLOADS/short" --spawn 10 30
assert_between "$(folded_exact "$folded" 'main;short_spin')" 240 430 "samples of 300 ms at 999 Hz"

# One that lives as long itself, and nothing else in the profile.
vp_ok record -F 999 -o "$folded" -- "$WORKLOADS/short" 30
assert_between "$(folded_exact "$folded" 'main;short_spin')" 22 45 "samples of 30 ms at 999 Hz"
others=$(cut -d';' -f1 "$folded" | sort -u)
[ "$others" = short ] || fail "not only the command: $others"

# A library that is loaded while it runs.
vp_ok record -F 499 -o "$folded" -- "$WORKLOADS/dlhost" 0.4 1 plugin_a
total=$(folded_comm "$folded" dlhost)
for chain in 'main;before_load' 'main;run_plugin;plugin_run;plugin_a_spin'; do
	assert_between "$(percent "$(folded_exact "$folded" "$chain")" "$total")" 43 57 "$chain"
done
