#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# A debuginfod server that never answers: it is given up, and what can be named without it is.
# shellcheck source=selftests/e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh" || exit 1

need python3 gcc
folded=$TMPDIR/hung.folded

# It counts its connections and says nothing.
cat >"$TMPDIR/server.py" <<'EOF'
import socket, sys
s = socket.socket()
s.bind(("127.0.0.1", 0))
s.listen(64)
print("READY port=%d" % s.getsockname()[1], flush=True)
kept = []
while True:
    kept.append(s.accept())
    open(sys.argv[1], "a").write("asked\n")
EOF
start_as python3 "$TMPDIR/server.py" "$TMPDIR/asked"
port=${WL_READY##*port=}
export DEBUGINFOD_URLS=http://127.0.0.1:${port%% *} DEBUGINFOD_CACHE_PATH=$TMPDIR/cache

# Many programs whose symbols only that server could have.
echo 'int main(void) { for (;;) ; }' >"$TMPDIR/spin.c"
for ((i = 0; i < 12; i++)); do
	gcc -O1 -Wl,--build-id="0x$(printf '%040x' $((i + 1)))" -s -o "$TMPDIR/spin$i" "$TMPDIR/spin.c" || fail gcc
	nice -n 5 "$TMPDIR/spin$i" &
	e2e_pids+=($!)
done
start chain

vp record -a -F 299 --debuginfod --duration 1 -o "$folded"
if grep -q 'no libdebuginfod' "$ERR"; then skip "libdebuginfod is not installed"; fi
[ "$STATUS" = 0 ] || fail "exit $STATUS"
assert_chain "$folded" 'main;outer;middle;inner' chain 90
grep -q '^waiting up to 2 s for [0-9]* debug file' "$ERR" || fail "nothing is said of the wait"
grep -Eq '^--debuginfod: ([1-9][0-9]+) debug files asked for, 0 found, 0 not there, \1 not answered' "$ERR" ||
	fail "no summary of debug files"
asked=$(wc -l <"$TMPDIR/asked")
[ "$asked" -ge 1 ] || fail "the server was never asked"
[ "$asked" -le 8 ] || fail "a silent server was asked $asked times"

# Ctrl-C in the wait ends the wait only, and one more does not throw away what is being written.
said=$TMPDIR/interrupted.err
"$VMAPROF" record -a -F 299 --debuginfod --duration 1 -o "$folded" 2>"$said" &
pid=$!
until grep -qs '^waiting up to' "$said"; do
	[ -d /proc/$pid ] || fail "it ended without a wait"
	sleep 0.02
done
kill -INT $pid
kill -TERM $pid
wait $pid
STATUS=$?
[ "$STATUS" = 0 ] || fail "Ctrl-C in the wait: exit $STATUS"
assert_chain "$folded" 'main;outer;middle;inner' chain 90
