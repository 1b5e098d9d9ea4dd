#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# vmaprof find: verdict, range, file and offset of addresses, against /proc/PID/maps.
# shellcheck source=selftests/e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh" || exit 1

need python3

find_ok() {
	python3 "$E2E/compare_find.py" "$VMAPROF" "$@" || fail "answers about $WL_READY differ"
}

mkdir "$TMPDIR/zoo"
start zoo "$TMPDIR/zoo"
find_ok "$WL_PID" 10000
start manyvmas 1000 exec
find_ok "$WL_PID" 10000
start onevma
find_ok "$WL_PID" 100
start leader_exit
find_ok "$WL_PID" 500
stop "$WL_PID"

# Addresses as arguments, as text: one line each, in the order asked.
start chain
base=$(awk '/r-xp .*\/chain$/ { sub(/-.*/, ""); print; exit }' "/proc/$WL_PID/maps")
vp_ok find -p "$WL_PID" 0 "0x$base" 0xffffffffff600000
[ "$(wc -l <"$OUT")" = 3 ] || fail "not three lines: $(cat "$OUT")"
sed -n 1p "$OUT" | grep -q 'NO_VMA' || fail "address 0: $(cat "$OUT")"
sed -n 2p "$OUT" | grep -q 'FILE.*/chain' || fail "start of text: $(cat "$OUT")"
special=NO_VMA # vsyscall=none
! grep -q '\[vsyscall\]' "/proc/$WL_PID/maps" || special=SPECIAL
sed -n 3p "$OUT" | grep -q "$special" || fail "vsyscall, $special: $(cat "$OUT")"
vp_ok find -p "$WL_PID" --json "0x$base"
grep -q '"verdict": *"FILE"' "$OUT" || fail "$(cat "$OUT")"

# Standard input: blank lines are none of its addresses; nonsense is an error that names it.
printf '0x%s\n\n0x%s\n' "$base" "$base" | "$VMAPROF" find -p "$WL_PID" - >"$OUT" 2>"$ERR" ||
	fail "with a blank line: exit $?"
[ "$(wc -l <"$OUT")" = 2 ] || fail "not two lines: $(cat "$OUT")"
printf 'zebra\n' | "$VMAPROF" find -p "$WL_PID" - >"$OUT" 2>"$ERR"
STATUS=$?
assert_error 1 2 zebra
vp find -p "$WL_PID" zebra
assert_error 2 zebra
vp find -p "$WL_PID" 0x10000000000000000
assert_error 2 0x10000000000000000
vp find 0x1000
assert_error 2 '-p'
vp find -p "$WL_PID"
assert_error 2 'addr'

# A process that maps and unmaps all the time, and loses its CPU to others while it has the lock: its
# stable text is found whenever it can be asked.
for ((i = 0; i < 2 * $(nproc); i++)); do start chain; done
start churn 0 2
renice -n 10 "$WL_PID" >/dev/null
base=$(awk '/r-xp .*\/churn$/ { sub(/-.*/, ""); print; exit }' "/proc/$WL_PID/maps")
for ((i = 0; i < 500; i++)); do echo "0x$base"; done |
	"$VMAPROF" find -p "$WL_PID" --json - >"$OUT" 2>"$ERR" || fail "churn: exit $?"
grep -q -v -E '"verdict": *"(FILE|BUSY)"' "$OUT" && fail "$(sort "$OUT" | uniq -c)"
grep -q '"verdict": *"FILE"' "$OUT" || fail "never found: $(sort "$OUT" | uniq -c)"
