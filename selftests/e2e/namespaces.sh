#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Processes in other mount and pid namespaces, on an overlay, and vmaprof itself in a pid namespace.
# shellcheck source=selftests/e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh" || exit 1

need unshare python3 nsenter
folded=$TMPDIR/ns.folded
unshare -m true 2>/dev/null || skip "cannot make namespaces here"

compare() {
	python3 "$E2E/compare_maps.py" "$VMAPROF" "$1" || fail "maps of $2 differ"
	vp_ok record -p "$1" -F 299 --duration 1 -o "$folded"
	assert_folded "$folded"
	assert_chain "$folded" 'main;outer;middle;inner' "${3:-chain}" 95
}

# inside NAME: the workload that runs as a child of start_as's command, by its name
inside() {
	pgrep -x -n "$1"
}

# A file that exists only in another mount namespace.
mkdir "$TMPDIR/private"
# shellcheck disable=SC2016 # that shell expands it
start_as unshare -m --propagation private sh -c \
	'mount -t tmpfs tmpfs "$1" && cp "$2" "$1/hidden_chain" && exec "$1/hidden_chain"' \
	sh "$TMPDIR/private" "$WORKLOADS/chain"
[ ! -e "$TMPDIR/private/hidden_chain" ] || fail "the file can be seen here"
compare "$WL_PID" "another mount namespace" hidden_chain
# with another file of that name here
cp /bin/true "$TMPDIR/private/hidden_chain"
compare "$WL_PID" "a name that is another file here" hidden_chain
stop "$WL_PID"

# A process that ends soon after its recording has begun: the file is gone with its namespace.
# shellcheck disable=SC2016 # that shell expands it
start_as unshare -m -p -f --kill-child --propagation private sh -c \
	'mount -t tmpfs tmpfs "$1" && cp "$2" "$1/brief_chain" && exec "$1/brief_chain"' \
	sh "$TMPDIR/private" "$WORKLOADS/chain"
cp /bin/true "$TMPDIR/private/brief_chain"
(
	until grep -q '^vmaprof: sampling' "$ERR"; do sleep 0.02; done
	sleep 0.6
	kill -KILL "$WL_PID"
) &
vp_ok record -a -F 299 --duration 2 -o "$folded"
assert_chain "$folded" 'main;outer;middle;inner' brief_chain 80
if grep -q 'replaced' "$ERR"; then fail "a file that was not replaced: $(cat "$ERR")"; fi

# An overlay, as containers have: the name is the overlay's.
mkdir "$TMPDIR/lower" "$TMPDIR/upper" "$TMPDIR/work" "$TMPDIR/merged"
cp "$WORKLOADS/chain" "$TMPDIR/lower/overlay_chain"
backing=$TMPDIR
# an overlay's upper layer cannot be on every file system
if ! unshare -m mount -t overlay overlay -o "lowerdir=$backing/lower,upperdir=$backing/upper,workdir=$backing/work" \
	"$TMPDIR/merged" 2>"$TMPDIR/overlay.err"; then
	echo "note: no overlay here: $(cat "$TMPDIR/overlay.err")"
else
	# shellcheck disable=SC2016 # that shell expands it
	start_as unshare -m --propagation private sh -c \
		'mount -t overlay overlay -o "lowerdir=$1/lower,upperdir=$1/upper,workdir=$1/work" "$1/merged" &&
		exec "$1/merged/overlay_chain"' sh "$TMPDIR"
	compare "$WL_PID" "an overlay" overlay_chain
	vp_ok find -p "$WL_PID" --json "0x$(awk '/r-xp .*overlay_chain/ { sub(/-.*/, ""); print }' "/proc/$WL_PID/maps")"
	grep -q "\"$TMPDIR/merged/overlay_chain\"" "$OUT" || fail "find names a layer: $(cat "$OUT")"
	stop "$WL_PID"
fi

# chroot: names are what the process itself sees.
mkdir -p "$TMPDIR/root/bin"
cp "$WORKLOADS/static_chain" "$TMPDIR/root/bin/jailed_chain"
start_as chroot "$TMPDIR/root" /bin/jailed_chain
compare "$WL_PID" "a chroot" jailed_chain
stop "$WL_PID"

# A process in a pid namespace, from outside: by the number it has here.
cp "$WORKLOADS/chain" "$TMPDIR/nspid_chain"
start_as unshare -p -f --kill-child --mount-proc "$TMPDIR/nspid_chain"
[ "$(ready_value pid)" = 1 ] || fail "not in a namespace: $WL_READY"
inner=$(inside nspid_chain)
compare "$inner" "another pid namespace" nspid_chain

# From inside: by the number it has there, and -a is all of the namespace's processes.
ns=(nsenter --target "$inner" --pid --mount)
run "${ns[@]}" "$VMAPROF" record -p 1 -F 299 --duration 1 -o "$folded"
[ "$STATUS" = 0 ] || fail "inside a pid namespace: exit $STATUS"
assert_chain "$folded" 'main;outer;middle;inner' nspid_chain 95
run "${ns[@]}" "$VMAPROF" maps -p 1
[ "$STATUS" = 0 ] || fail "maps inside a pid namespace: exit $STATUS"
grep -q '^# 1 nspid_chain' "$OUT" || fail "comment: $(head -n 1 "$OUT")"
grep -q '/nspid_chain$' "$OUT" || fail "maps: $(cat "$OUT")"
run "${ns[@]}" "$VMAPROF" record -F 299 -o "$folded" -- "$WORKLOADS/chain" "$(longer 0.5)"
[ "$STATUS" = 0 ] || fail "a command inside a pid namespace: exit $STATUS"
assert_chain "$folded" 'main;outer;middle;inner' chain 90
# a number that is a process outside but none inside
run "${ns[@]}" "$VMAPROF" record -p "$inner" -F 299 --duration 0.3 -o "$folded"
assert_error 1 "$inner"
