#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Without privileges: each missing capability is named, with the command that grants it.
# shellcheck source=selftests/e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh" || exit 1

need setpriv
# a copy, as nobody may be unable to enter the build directory
dir=$(mktemp -d /tmp/vmaprof-unprivileged.XXXXXX) || fail "mktemp"
on_exit rm -rf "$dir"
chmod 777 "$dir"
cp "$VMAPROF" "$dir/vmaprof"
cp "$WORKLOADS/chain" "$dir/chain"
cd "$dir" || fail "cd"

as=(setpriv --inh-caps=-all --bounding-set=-all)
for user in root nobody; do
	[ $user = root ] || as+=(--reuid=65534 --regid=65534 --clear-groups)
	run "${as[@]}" ./vmaprof record -a --duration 0.5 -o "$dir/x.folded"
	assert_error 1 'CAP_(BPF|PERFMON|SYS_ADMIN)'
	run "${as[@]}" ./vmaprof record -F 99 -o "$dir/x.folded" -- ./chain 0.2
	assert_error 1 'CAP_(BPF|PERFMON|SYS_ADMIN)'
	grep -q READY "$OUT" && fail "the command was started all the same"
	run "${as[@]}" ./vmaprof maps -p $$
	assert_error 1 'CAP_(BPF|PERFMON|SYS_ADMIN)'
	run "${as[@]}" ./vmaprof find -p $$ 0x1000
	assert_error 1 'CAP_(BPF|PERFMON|SYS_ADMIN)'
	[ "$(echo *)" = "chain vmaprof" ] || fail "files left: $(echo *)"

	# what needs no privilege works
	run "${as[@]}" ./vmaprof --version
	[ "$STATUS" = 0 ] || fail "--version: exit $STATUS"
	run "${as[@]}" ./vmaprof record --help
	[ "$STATUS" = 0 ] || fail "record --help: exit $STATUS"
done

# One that is missing is named alone, and how to get it.
run setpriv --bounding-set=-bpf,-sys_admin ./vmaprof record -a --duration 0.5 -o "$dir/x.folded"
assert_error 1 'CAP_BPF'
grep -q 'setcap\|sudo' "$ERR" || fail "no command that grants it"

# As it tells: the named file capabilities are enough for somebody else's recording of himself.
caps=$(grep -o 'cap_[a-z_,]*+ep' "$ERR" | head -n 1)
if [ -n "$caps" ] && command -v setcap >/dev/null && setcap "$caps" ./vmaprof 2>/dev/null; then
	run setpriv --reuid=65534 --regid=65534 --clear-groups ./vmaprof record -F 299 \
		-o "$dir/x.folded" -- ./chain "$(longer 0.5)"
	if [ "$STATUS" = 0 ]; then
		assert_chain x.folded 'main;outer;middle;inner' chain 90
	elif [ "$(cat /proc/sys/kernel/perf_event_paranoid)" -gt 2 ]; then
		# Debian's own: then no capability but the one is enough
		assert_error 1 'perf_event_paranoid is .*sysctl'
	else
		fail "after setcap $caps: exit $STATUS"
	fi
fi
