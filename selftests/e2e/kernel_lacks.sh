#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# A kernel without what record needs, as far as that can be staged on one that has it: doctor and record
# say what Kconfig-min.md promises. `make check-kconfig` asks kernels that were built so.
# shellcheck source=selftests/e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh" || exit 1

document=$E2E/../../Kconfig-min.md
[ -e "$document" ] || skip "needs Kconfig-min.md"
# shellcheck disable=SC2016 # the ` are the document's
cell() { # OPTION COLUMN
	grep -F "| \`CONFIG_$1\`" "$document" | cut -d '|' -f "$2" | sed 's/^ *`//; s/` *$//'
}

# says OPTION COMMAND…: what the document's row of OPTION quotes, with COMMAND before vmaprof
says() {
	local name message
	name=$(cell "$1" 4)
	message=$(cell "$1" 5)
	[ -n "$name" ] || fail "Kconfig-min.md has no row for CONFIG_$1"
	[ -n "$message" ] || fail "Kconfig-min.md has no message for CONFIG_$1"
	run "${@:2}" "$VMAPROF" doctor
	[ "$STATUS" = 1 ] || fail "$1: doctor: exit $STATUS"
	[ "$(tail -n 1 "$OUT")" = "vmaprof record does not work here: missing $name." ] ||
		fail "$1: doctor: $(tail -n 1 "$OUT")"
	grep -q "CONFIG_$1" "$OUT" || fail "$1: doctor does not name the option"
	run "${@:2}" "$VMAPROF" record --duration 0.2 -o "$TMPDIR/none.html"
	[ "$STATUS" = 1 ] || fail "$1: record: exit $STATUS"
	[ "$(cat "$ERR")" = "vmaprof: record: $message" ] || fail "$1: record: another message than: $message"
	[ ! -e "$TMPDIR/none.html" ] || fail "$1: a file was left"
}

without_calls=$WORKLOADS/without_calls
"$without_calls" capget true 2>/dev/null || skip "no seccomp filters here"
says BPF_SYSCALL "$without_calls" bpf
says PERF_EVENTS "$without_calls" perf_event_open
says FUTEX "$without_calls" futex
says EPOLL "$without_calls" epoll_create1
says EVENTFD "$without_calls" eventfd2
says SIGNALFD "$without_calls" signalfd4
if unshare -m true 2>/dev/null; then
	# shellcheck disable=SC2016 # that shell expands it
	says PROC_FS unshare -m sh -c 'umount -l /proc && exec "$@"' sh
	# shellcheck disable=SC2016
	says SYSFS unshare -m sh -c 'mount -t tmpfs none /sys && exec "$@"' sh
	# shellcheck disable=SC2016
	says DEBUG_INFO_BTF unshare -m sh -c 'mount -t tmpfs none /sys/kernel/btf && exec "$@"' sh
fi

# A kernel without users (CONFIG_MULTIUSER) lacks a call, but nothing else.
run "$without_calls" capget "$VMAPROF" doctor
[ "$STATUS" = 0 ] || fail "without capget: doctor: exit $STATUS"
run "$without_calls" capget "$VMAPROF" record -F 199 -o "$TMPDIR/some.folded" -- "$WORKLOADS/chain" 0.5
[ "$STATUS" = 0 ] || fail "without capget: record: exit $STATUS"
