#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Targets that cannot be recorded: gone, kernel threads, zombies; and what ends meanwhile.
# shellcheck source=selftests/e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh" || exit 1

mkdir "$TMPDIR/o"
cd "$TMPDIR/o" || fail "cd"

# each COMMAND…: record, maps and find fail with one line that matches
each() {
	local pid=$1 regex=$2
	vp record -p "$pid" -F 99 --duration 0.3 -o x.folded
	assert_error 1 "$regex"
	assert_no_files .
	vp maps -p "$pid"
	assert_error 1 "$regex"
	vp find -p "$pid" 0x1000
	assert_error 1 "$regex"
}

# A number that no process has, and one that cannot be.
sleep 0 &
gone=$!
wait "$gone"
each "$gone" "$gone"
each 2147483647 '2147483647'

start zombie
each "$(ready_value zombie)" "$(ready_value zombie)"

# A kernel thread: it has no mappings; recording one that sleeps yields no samples, and that is
# an error that says so.
kthread=$(pgrep -x kthreadd)
[ -z "$kthread" ] || each "$kthread" "$kthread|samples"

vp record -t "$gone" --duration 0.3 -o x.folded
assert_error 1 "$gone"
assert_no_files .

# One of several is gone: an error before anything is sampled, or a remark and the rest recorded.
start chain
chain=$WL_PID
vp record -p "$chain,$gone" -F 299 --duration 1 -o x.folded
if [ "$STATUS" = 0 ]; then
	assert_chain x.folded 'main;outer;middle;inner' chain 95
	grep -q "$gone" "$ERR" || fail "does not mention $gone"
	rm x.folded
else
	assert_error 1 "$gone"
	assert_no_files .
fi

# A process that sleeps: no samples is a failure that says why, and leaves no file.
start zombie
vp record -p "$WL_PID" -F 99 --duration 0.5 -o x.folded
assert_error 1 'sample'
assert_no_files .

# One that exits during the run, with another that goes on: all data kept, and nothing stops.
start chain 0.6
ends=$WL_PID
start setname other
begin=$(date +%s%N)
vp_ok record -p "$ends,$WL_PID" -F 499 --duration 2 -o x.folded
[ $((($(date +%s%N) - begin) / 1000000)) -ge 2000 ] || fail "stopped with the first target"
assert_chain x.folded 'main;outer;middle;inner' chain 90
assert_chain x.folded 'main;named_spin' other 90
rm x.folded

# A process that is killed while its mappings are walked and its stacks are taken.
for _ in 1 2 3; do
	start manyvmas 30000 exec
	victim=$WL_PID
	start_vp record -a -F 999 --duration 1 -o x.folded
	stop "$victim"
	wait_vp
	[ "$STATUS" = 0 ] || fail "a process killed at the start: exit $STATUS"
done
rm -f x.folded*

# Commands: not there, not executable, without permission, failing, crashing.
vp record -o x.folded -- ./does-not-exist
assert_error 1 2 127 'does-not-exist'
assert_no_files .
vp record -o x.folded -- does-not-exist-anywhere
assert_error 1 2 127 'does-not-exist-anywhere'
assert_no_files .
vp record -o x.folded -- /etc/passwd
assert_error 1 2 126 '/etc/passwd'
assert_no_files .
vp record -o x.folded -- /
assert_error 1 2 126 '/'
assert_no_files .
vp record -F 499 -o x.folded -- "$WORKLOADS/crash" 0.5
[ -s x.folded ] || fail "the data of a command that crashed is gone"
assert_chain x.folded 'main;crash_spin' crash 90
grep -q -i -E 'segv|signal 11|segmentation' "$ERR" || fail "the crash is not mentioned"
rm x.folded
vp record -F 499 -o x.folded -- sh -c "$WORKLOADS/chain 0.3; exit 7"
assert_chain x.folded 'main;outer;middle;inner' chain 90
[ "$STATUS" = 0 ] || [ "$STATUS" = 7 ] || fail "exit $STATUS for a command that failed with 7"
rm x.folded
vp record -F 99 -o x.folded -- true
[ "$STATUS" = 0 ] || assert_error 1 'sample'
