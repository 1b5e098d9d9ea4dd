#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Nothing that records opens /proc/*/maps or asks it, counted by a BPF program.
# shellcheck source=selftests/e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh" || exit 1

need clang gcc
cc_flags=(-I"$E2E" -Wall)
clang -target bpf -g -O2 "${cc_flags[@]}" -I/usr/include/"$(gcc -print-multiarch)" \
	-c "$E2E/open_counter.bpf.c" -o "$TMPDIR/open_counter.bpf.o" || fail "clang"
gcc -O1 "${cc_flags[@]}" "$E2E/open_counter.c" -o "$TMPDIR/open_counter" -lbpf -lelf -lz || fail "gcc"

# count COMMAND…: sets OPENS and QUERIES of it and its children
count() {
	"$TMPDIR/open_counter" "$TMPDIR/open_counter.bpf.o" "$TMPDIR/counts" "$@" \
		>"$OUT" 2>"$ERR" </dev/null
	STATUS=$?
	read -r OPENS QUERIES TOTAL <"$TMPDIR/counts" || fail "the counter failed: $(cat "$ERR")"
}

# assert_none WHAT
assert_none() {
	[ "$OPENS $QUERIES" = "0 0" ] ||
		fail "$1: $OPENS opens of maps, $QUERIES queries, of $TOTAL opens"
}

# The counter counts, by any path, and in children.
count cat /proc/self/maps
[ "$OPENS" = 1 ] || fail "cat /proc/self/maps: counted $OPENS, not 1"
count sh -c 'cat /proc/$$/smaps /proc/self/task/$$/maps >/dev/null; cd /proc/self && cat maps; true'
[ "$OPENS" = 3 ] || fail "three opens: counted $OPENS"
count python3 -c 'import os
d = os.open("/proc/self", os.O_RDONLY | os.O_DIRECTORY)
os.open("maps", os.O_RDONLY, dir_fd=d)'
[ "$OPENS" = 1 ] || fail "relative to a directory: counted $OPENS, not 1"
count cat /proc/self/status "$0"
[ "$OPENS" = 0 ] || fail "cat of other files: counted $OPENS of $TOTAL"
[ "$TOTAL" -gt 1 ] || fail "counted $TOTAL opens in all"

# Everything that makes a profiler want to look there: unknown code, new processes, libraries.
start churn
start jit both
start leader_exit
start deleted "$TMPDIR"
# shellcheck disable=SC2016 # that shell expands it
start_as sh -c 'echo READY pid=$$; while :; do "$0" 10; done' "$WORKLOADS/short"
for output in x.folded x.html x.data; do
	count "$VMAPROF" record -a -F 499 --duration 1 -o "$TMPDIR/$output"
	[ "$STATUS" = 0 ] || fail "record to $output: exit $STATUS"
	[ "$TOTAL" -gt 0 ] || fail "the counter saw no open at all"
	assert_none "record to $output"
done
assert_folded "$TMPDIR/x.folded"
assert_chain "$TMPDIR/x.folded" 'survivor_main;survivor_spin' wl-survivor 95

# The commands that show what is mapped and where do not read it there either.
for command in "maps -p $WL_PID --all-maps" "find -p $WL_PID 0x1000" "maps --all-maps --json"; do
	# shellcheck disable=SC2086 # words
	count "$VMAPROF" $command
	assert_none "$command"
done
count "$VMAPROF" record -F 499 -o "$TMPDIR/x.folded" -- "$WORKLOADS/dlhost" 0.2 1
assert_none "record -- dlhost"
count "$VMAPROF" record -a --inlines -F 499 --duration 1 -o "$TMPDIR/x.folded"
[ "$STATUS" = 0 ] || fail "record --inlines: exit $STATUS"
assert_none "record --inlines"
