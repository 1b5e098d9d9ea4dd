#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Code made at run time has the names that its JIT tells, in perf maps and jitdumps, wherever it runs.
# shellcheck source=selftests/e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh" || exit 1

folded=$TMPDIR/names.folded
cd "$TMPDIR" || exit 1

# remove_map: of the workload or command that was recorded last
remove_map() {
	rm -f "/tmp/perf-$WL_PID.map"
}

# record_command COMMAND…: sets WL_PID
record_command() {
	# shellcheck disable=SC2016 # that shell expands it
	vp_ok record -F 499 -o "$folded" -- bash -c 'echo $$ >pid; exec "$@"' - "$@"
	WL_PID=$(cat pid)
}

# assert_names WHAT COMM ROOT: both functions, by turns, and nothing else in the page
assert_names() {
	local first second whole
	assert_folded "$folded"
	whole=$(folded_comm "$folded" "$2")
	[ "$whole" -ge 20 ] || fail "$1: $whole samples of $2"
	first=$(folded_exact "$folded" "$3;made_first_[j]" "$2")
	second=$(folded_exact "$folded" "$3;made_second_[j]" "$2")
	assert_between "$(percent $((first + second)) "$whole")" 95 100 "$1: share of the two functions"
	assert_between "$(percent "$first" "$whole")" 20 80 "$1: share of the first"
}

# assert_nameless WHAT COMM
assert_nameless() {
	assert_folded "$folded"
	[ "$(folded_exact "$folded" 'main;run_made;[jit]_[j]' "$2")" -gt 0 ] || fail "$1: no [jit]"
	! grep -q made_ "$folded" || fail "$1: $(grep -m 1 made_ "$folded")"
}

# A process that runs, and one that has ended when its names are asked for last.
for mode in map memfd dump; do
	start jit_names "$mode"
	vp_ok record -p "$WL_PID" -F 499 --duration 0.4 -o "$folded"
	assert_names "$mode, of a process that runs" jit_names 'main;run_made'
	stop "$WL_PID"
	remove_map
	record_command "$WORKLOADS/jit_names" "$mode" 0.5
	remove_map
	assert_names "$mode, of a command" jit_names 'main;run_made'
done
rm -f "$TMPDIR"/jit-*.dump

# A file that is gone by then; what is told later; and nothing.
vp_ok record -F 499 -o "$folded" -- "$WORKLOADS/jit" spin 0.5 map
[ "$(folded_exact "$folded" 'main;run_jit_spin;jit_spin_[j]' jit)" -gt 0 ] || fail "a map that was removed"
start jit_names grow 2
vp_ok record -p "$WL_PID" -F 499 -o "$folded"
assert_names "told later" jit_names 'main;run_made'
remove_map
start jit_names none
vp_ok record -p "$WL_PID" -F 499 --duration 0.4 -o "$folded"
assert_nameless "told nothing" jit_names
grep -q '\[jit\] .*perf map' "$ERR" || fail "no hint at perf maps"

# What is not the process's own: older than it, another's, a link, a FIFO.
page=$(ready_value page)
text="${page#0x} 80 made_up"
map=/tmp/perf-$WL_PID.map
on_exit rm -f "$map"
echo "$text" >"$map"
vp_ok record -p "$WL_PID" -F 499 --duration 0.4 -o "$folded"
[ "$(folded_exact "$folded" 'main;run_made;made_up_[j]')" -gt 0 ] || fail "its own is not believed"
touch -d '1 hour ago' "$map"
vp_ok record -p "$WL_PID" -F 499 --duration 0.4 -o "$folded"
assert_nameless "older than its process" jit_names
touch "$map"
chown 12345 "$map"
vp_ok record -p "$WL_PID" -F 499 --duration 0.4 -o "$folded"
assert_nameless "another's file" jit_names
rm "$map"
echo "$text" >"$TMPDIR/elsewhere"
ln -s "$TMPDIR/elsewhere" "$map"
vp_ok record -p "$WL_PID" -F 499 --duration 0.4 -o "$folded"
assert_nameless "a link" jit_names
rm "$map"
mkfifo "$map"
vp_ok record -p "$WL_PID" -F 499 --duration 0.4 -o "$folded"
assert_nameless "a FIFO" jit_names
rm "$map"
stop "$WL_PID"

# A copy made by fork: its parent has told of the code. Also one of which only this is known: that it
# runs; and one whose parent is not recorded, but is there to be asked.
for mode in map dump; do
	record_command "$WORKLOADS/jit_names" "$mode" 0.5 fork
	remove_map
	assert_names "$mode, of a copy" jit_names 'main;run_made'
	start jit_names "$mode" 0 fork
	vp_ok record -p "$(ready_value pid)" -F 499 --duration 0.4 -o "$folded"
	assert_names "$mode, of a copy alone" jit_names 'main;run_made'
	vp_ok sym --json -p "$(ready_value pid)" "$(ready_value page)"
	jq -e '.frames[0].function == "made_first"' "$OUT" >/dev/null || fail "$mode, sym: $(cat "$OUT")"
	stop "$WL_PID"
	remove_map
done
rm -f "$TMPDIR"/jit-*.dump

# In a pid namespace and a chroot: by the number and in the place that the process knows. One here
# that is named so is another's.
if unshare -p -m true 2>/dev/null; then
	mkdir -p "$TMPDIR/root/bin" "$TMPDIR/root/tmp"
	cp "$WORKLOADS/jit_names" "$TMPDIR/root/bin/jailed_names"
	if [ ! -e /tmp/perf-1.map ]; then
		on_exit rm -f /tmp/perf-1.map
		echo "0 7fffffffffff made_wrong" >/tmp/perf-1.map
	fi
	for mode in map dump; do
		start_as unshare -p -f --kill-child chroot "$TMPDIR/root" /bin/jailed_names "$mode"
		[ "$(ready_value pid)" = 1 ] || fail "not in a namespace: $WL_READY"
		vp_ok record -p "$(pgrep -x -n jailed_names)" -F 499 --duration 0.4 -o "$folded"
		assert_names "$mode, in a pid namespace and a chroot" jailed_names 'main;run_made'
		stop "$WL_PID"
		rm -f "$TMPDIR"/root/tmp/* "$TMPDIR"/root/*.dump
	done
	rm -f /tmp/perf-1.map
fi

# A real one, both ways.
command -v node >/dev/null || exit 0
cat >"$TMPDIR/hot.js" <<'END'
function madeHot(n) { let s = 0; for (let i = 0; i < n; i++) s = (s * 31 + i) | 0; return s }
const end = process.cpuUsage().user + 1.5e6
let x = 0
while (process.cpuUsage().user < end) x += madeHot(3e6)
END
for option in --perf-basic-prof --perf-prof; do
	record_command node "$option" --no-logfile-per-isolate "$TMPDIR/hot.js"
	remove_map
	grep '^node;.*;[^;]*madeHot .*hot\.js[^;]*_\[j\]\(;[^;]*_\[k\]\)* [0-9]*$' "$folded" >"$TMPDIR/hot.folded"
	[ -s "$TMPDIR/hot.folded" ] || fail "node $option: no madeHot: $(folded_top "$folded" node)"
	assert_between "$(percent "$(folded_sum "$TMPDIR/hot.folded")" "$(folded_comm "$folded" node)")" 50 100 \
		"node $option: share of its hot function"
done
rm -f "$TMPDIR"/jit-*.dump
