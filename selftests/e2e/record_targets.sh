#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# What is recorded: -p, -t, -G, -a; and how a recording ends: --duration, SIGINT, SIGTERM.
# shellcheck source=selftests/e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh" || exit 1

folded=$TMPDIR/targets.folded

comms() {
	cut -d';' -f1 "$folded" | sort -u | tr '\n' ' '
}

start chain
chain=$WL_PID
start setname other
other=$WL_PID
start threads
threads=$WL_PID
beta=$(ready_value beta)

vp_ok record -p "$chain" -F 299 --duration 1 -o "$folded"
[ "$(comms)" = "chain " ] || fail "-p: samples of $(comms)"
assert_chain "$folded" 'main;outer;middle;inner' chain 97

vp_ok record -p "$chain,$other" -F 299 --duration 1 -o "$folded"
[ "$(comms)" = "chain other " ] || fail "-p A,B: samples of $(comms)"

vp_ok record -p "$threads" -F 299 --duration 1 -o "$folded"
[ "$(comms)" = "wl-alpha wl-beta wl-gamma " ] || fail "-p of threads: samples of $(comms)"

vp_ok record -t "$beta" -F 299 --duration 1 -o "$folded"
[ "$(comms)" = "wl-beta " ] || fail "-t: samples of $(comms)"
assert_chain "$folded" 'beta_main;beta_spin' wl-beta 97

# A cgroup, by its path in the hierarchy and in the file system; a child cgroup is part of it.
cgroup_root=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)
if [ -n "$cgroup_root" ] && [ -w "$cgroup_root/cgroup.procs" ]; then
	rmdir "$cgroup_root"/vmaprof-e2e-*/* "$cgroup_root"/vmaprof-e2e-* 2>/dev/null
	group=vmaprof-e2e-$$
	mkdir -p "$cgroup_root/$group/inner" || fail "mkdir $cgroup_root/$group/inner"
	on_exit rmdir "$cgroup_root/$group/inner" "$cgroup_root/$group"
	echo "$chain" >"$cgroup_root/$group/cgroup.procs"
	echo "$other" >"$cgroup_root/$group/inner/cgroup.procs"
	for name in "$group" "$cgroup_root/$group"; do
		vp_ok record -G "$name" -F 299 --duration 1 -o "$folded"
		[ "$(comms)" = "chain other " ] || fail "-G $name: samples of $(comms)"
		assert_chain "$folded" 'main;outer;middle;inner' chain 97
	done
	vp_ok record -G "$group/inner" -F 299 --duration 1 -o "$folded"
	[ "$(comms)" = "other " ] || fail "-G $group/inner: samples of $(comms)"
	vp record -G vmaprof-e2e-none -F 299 --duration 1 -o "$folded"
	assert_error 1 'vmaprof-e2e-none'
else
	echo "note: no writable cgroup v2, -G is not tested"
fi

# Everything is the default.
vp_ok record -F 299 --duration 1 -o "$folded"
for comm in chain other wl-alpha; do
	[ "$(folded_comm "$folded" $comm)" -gt 0 ] || fail "without a target: no samples of $comm"
done

# --duration is kept to
begin=$(date +%s%N)
vp_ok record -p "$chain" -F 99 --duration 0.5 -o "$folded"
took=$((($(date +%s%N) - begin) / 1000000))
assert_between $took 500 15000 "ms that --duration 0.5 took"

# The targets end: so does the recording, early, with what there is.
start chain 1
begin=$SECONDS
vp_ok record -p "$WL_PID" -F 299 --duration 30 -o "$folded"
[ $((SECONDS - begin)) -lt 15 ] || fail "went on for $((SECONDS - begin)) s after its only target"
assert_chain "$folded" 'main;outer;middle;inner' chain 90

# Ctrl-C, SIGTERM and SIGHUP finish and write.
for signal in INT TERM HUP; do
	rm -f "$folded"
	start_vp record -p "$chain" -F 299 -o "$folded"
	wait_recording 1000 "$chain"
	kill -"$signal" "$VP_PID"
	wait_vp
	[ "$STATUS" = 0 ] || fail "SIG$signal: exit $STATUS, not 0"
	assert_folded "$folded"
	assert_chain "$folded" 'main;outer;middle;inner' chain 97
done

# Ctrl-C ends the command, too; it is in the terminal's foreground group then.
rm -f "$folded"
start_vp record -F 299 -o "$folded" -- "$WORKLOADS/chain"
wait_until 20 grep -q '^READY' "$OUT"
command=$(sed -n 's/^READY pid=\([0-9]*\).*/\1/p' "$OUT")
wait_cpu "$command" 500
kill -INT "$VP_PID"
wait_vp
[ "$STATUS" = 0 ] || fail "SIGINT with a command: exit $STATUS, not 0"
assert_chain "$folded" 'main;outer;middle;inner' chain 90
wait_until 5 test ! -d "/proc/$command"

# A second one aborts: then there is the file or there is none, but nothing half.
mkdir "$TMPDIR/abort"
start_vp record -p "$chain" -F 299 -o "$TMPDIR/abort/x.folded"
wait_recording 300 "$chain"
kill -INT "$VP_PID"
kill -INT "$VP_PID"
wait_vp
[ "$(ls -A "$TMPDIR/abort")" = "" ] || [ "$(ls -A "$TMPDIR/abort")" = x.folded ] ||
	fail "after two SIGINTs: $(ls -A "$TMPDIR/abort")"
