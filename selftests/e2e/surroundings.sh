#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# What a shell or a user can do to the process itself: closed descriptors, signals, limits,
# names with escape sequences. No half file, no silent damage, no empty message.
# shellcheck source=selftests/e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh" || exit 1

mkdir "$TMPDIR/here" && cd "$TMPDIR/here" || exit 1
start chain
pid=$WL_PID

# no file of ours gets the number of a standard stream
"$VMAPROF" record -p "$pid" -F 199 --duration 0.3 -o a.folded <&- 2>&- || fail "closed streams"
grep -qv '^chain;' a.folded && fail "something else was written into the profile"
"$VMAPROF" record -p "$pid" -F 199 --duration 0.3 -o b.folded <&- >&- 2>&- || fail "all closed"
grep -q '^chain;.*main;outer;middle;inner ' b.folded || fail "all closed: no profile"
"$VMAPROF" maps -p "$pid" >&- 2>err && fail "maps to a closed standard output succeeds"
grep -q '^vmaprof: maps: standard output: ' err || fail "maps: $(cat err)"

# a closed terminal ends a recording, it does not lose it
"$VMAPROF" record -p "$pid" -F 199 -o hup.folded 2>err &
recorder=$!
wait_until 30 grep -q sampling err
wait_cpu "$pid" 200
kill -HUP "$recorder"
wait "$recorder" || fail "SIGHUP: exit $?"
grep -q '^chain;' hup.folded || fail "SIGHUP: no profile"

# limits
(ulimit -f 1; exec "$VMAPROF" record -q -p "$pid" -F 199 --duration 0.3 -o big.html) 2>err &&
	fail "a file above the limit succeeds"
grep -q '^vmaprof: record: .*ulimit -f' err || fail "file limit: $(cat err)"
for n in 8 12 16 20 24 30 40; do
	(ulimit -n "$n"; exec "$VMAPROF" record -q -p "$pid" --duration 0.2 -o n.html) 2>err && continue
	[ "$(wc -l <err)" = 1 ] || fail "ulimit -n $n: $(cat err)"
	grep -Eq '^vmaprof: record: .+: .+\(.+\)$' err || fail "ulimit -n $n: $(cat err)"
done
(ulimit -Sn 32; exec "$VMAPROF" record -q -p "$pid" -F 199 --duration 0.3 -o soft.folded) ||
	fail "a soft limit of descriptors that could be raised"

# a kernel without BTF
unshare -m sh -c 'mount -t tmpfs none /sys/kernel/btf && exec "$@"' sh \
	"$VMAPROF" record -q --duration 0.2 -o btf.html 2>err && fail "recorded without BTF"
grep -Eq '^vmaprof: record: the kernel has no BTF: .+ \(.*CONFIG_DEBUG_INFO_BTF=y\)$' err ||
	fail "no BTF: $(cat err)"

# names
evil=$'e\x1b[31m\x1b]0;x\a'
cp "$WORKLOADS/stripped_chain" "$evil"
start_as "./$evil" 20
"$VMAPROF" record -p "$WL_PID" -F 499 --duration 0.5 -o evil.folded 2>err || fail "evil name"
LC_ALL=C grep -q $'[\x01-\x09\x0b-\x1f\x7f]' err && fail "control characters in the summary: $(cat -v err)"

stop "$WL_PID"

# several processes, one of them without mappings to show
run "$VMAPROF" maps -p "$pid,2"
[ "$STATUS" = 1 ] || fail "maps -p with a kernel thread: exit $STATUS"

rm -f a.folded b.folded hup.folded soft.folded evil.folded n.html n.html.old err "$evil"
left=$(ls -A)
[ -z "$left" ] || fail "left behind: $left"
