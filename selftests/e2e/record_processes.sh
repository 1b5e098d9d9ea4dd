#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Threads, forks, execs, deleted and memory-only executables, a dead leader, odd names.
# shellcheck source=selftests/e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh" || exit 1

start threads
start forker 2
start leader_exit
start deleted "$TMPDIR"
start memfd_exec
start setname 'a;b c 1'
folded=$TMPDIR/processes.folded
vp_ok record -a -F 499 --duration 5 -o "$folded"
assert_folded "$folded"

for name in alpha beta gamma; do
	assert_chain "$folded" "${name}_main;${name}_spin" "wl-$name" 97
done
assert_chain "$folded" 'main;fork_children;child_main;child_spin' forker 97
assert_chain "$folded" 'survivor_main;survivor_spin' wl-survivor 97
comm=$(grep -o -m 1 '^deleted-[0-9]*' "$folded")
assert_chain "$folded" 'main;deleted_spin' "${comm:-deleted}" 97
comm=$(grep -m 1 'memfd_spin' "$folded" | sed 's/;.*//')
assert_chain "$folded" 'main;memfd_spin' "${comm:-memfd}" 97
grep -q '(deleted)' "$folded" && fail "a name ends in (deleted)"

# a ';' in a thread's name does not make a frame
line=$(grep -m 1 ';main;named_spin ' "$folded") || fail "nothing of setname"
case ${line%%;*} in
a?b' c 1') ;;
*) fail "the name became '${line%%;*}'" ;;
esac
