#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Frequencies that cannot be, outputs that cannot be written: one clear line, nothing left behind.
# shellcheck source=selftests/e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh" || exit 1

start chain
mkdir "$TMPDIR/o"
cd "$TMPDIR/o" || fail "cd"

record() {
	vp record -p "$WL_PID" -F 199 --duration 0.5 "$@"
}

limit=$(cat /proc/sys/kernel/perf_event_max_sample_rate)
vp record -p "$WL_PID" -F $((limit + 1)) --duration 0.5 -o x.folded
assert_error 1 2 "$limit|perf_event_max_sample_rate"
assert_no_files .
vp record -p "$WL_PID" -F 4294967296 --duration 0.5 -o x.folded
assert_error 1 2 '4294967296|perf_event_max_sample_rate'
assert_no_files .
vp record -p "$WL_PID" -F 0 --duration 0.5 -o x.folded
assert_error 1 2 '0'
assert_no_files .

# Nowhere to write: said at once, not after the recording.
begin=$SECONDS
vp record -p "$WL_PID" --duration 20 -o nowhere/x.folded
assert_error 1 'nowhere/x.folded'
vp record -p "$WL_PID" --duration 20 -o /proc/x.folded
assert_error 1 '/proc/x.folded'
mkdir dir.folded
vp record -p "$WL_PID" --duration 20 -o dir.folded
assert_error 1 'dir.folded'
rmdir dir.folded
[ $((SECONDS - begin)) -lt 15 ] || fail "recorded before it noticed"
assert_no_files .

# A full device, a full file system; the older file stays what it was.
ln -s /dev/full full.folded
record -o full.folded
[ "$STATUS" = 0 ] || assert_error 1 'full.folded'
rm -f full.folded*
"$VMAPROF" record -p "$WL_PID" -F 199 --duration 0.5 -o - >/dev/full 2>"$ERR"
STATUS=$?
assert_error 1 'space|output'
small=$TMPDIR/small
mkdir "$small"
if mount -t tmpfs -o size=16k tmpfs "$small"; then
	on_exit umount "$small"
	for name in x.html x.data; do
		echo older >"$small/$name"
		head -c 65536 /dev/zero >"$small/fill" 2>/dev/null
		record -o "$small/$name"
		assert_error 1 "$name|space"
		[ "$(cat "$small/$name")" = older ] || fail "the older $name is gone"
		rm "$small/fill" "$small/$name"
		assert_no_files "$small"
	done
	mount -o remount,ro "$small"
	record -o "$small/x.folded"
	assert_error 1 'x.folded'
	mount -o remount,rw "$small"
fi

# A reader that goes away.
"$VMAPROF" record -p "$WL_PID" -F 199 --duration 0.5 -o - 2>"$ERR" | true
STATUS=${PIPESTATUS[0]}
[ "$STATUS" = 0 ] || [ "$STATUS" = 141 ] || assert_error 1 'output|pipe'
# shellcheck disable=SC2094 # closed output
"$VMAPROF" maps -p "$WL_PID" >/dev/full 2>"$ERR"
STATUS=$?
assert_error 1 'space|output'
"$VMAPROF" find -p "$WL_PID" 0 >/dev/full 2>"$ERR"
STATUS=$?
assert_error 1 'space|output'
assert_no_files .
