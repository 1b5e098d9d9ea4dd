#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Damaged ELF files, mapped and running: no crash, no stall, and the others' symbols are there.
# shellcheck source=selftests/e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh" || exit 1

mkdir "$TMPDIR/m"
for seed in 1 2; do
	start mangled "$TMPDIR/m" 0 $seed
	mangled=$WL_PID
	start chain
	for name in m.folded m.html m.data; do
		begin=$SECONDS
		vp_ok record -a -F 499 --duration 1 -o "$TMPDIR/$name"
		[ $((SECONDS - begin)) -le 12 ] || fail "seed $seed, $name: took $((SECONDS - begin)) s"
	done
	folded=$TMPDIR/m.folded
	assert_folded "$folded"
	assert_chain "$folded" 'main;outer;middle;inner' chain 95
	# the intact copy and those whose damage is elsewhere have their names; all keep the chain
	[ "$(folded_exact "$folded" 'main;run_copies;hostile_spin' mangled)" -gt 0 ] ||
		fail "seed $seed: not even the intact copy has its name: $(grep ^mangled "$folded")"
	assert_between "$(percent "$(folded_count "$folded" 'main;run_copies' mangled)" \
		"$(folded_comm "$folded" mangled)")" 95 100 "seed $seed: share of main;run_copies"
	if LC_ALL=C grep -q -a $'[\x01-\x08\x0b-\x1f]' "$folded"; then
		fail "seed $seed: control characters in folded"
	fi
	stop "$mangled" "$WL_PID"
done

# A file that is cut while it is in use: its size is not what it was when it was opened.
start mangled "$TMPDIR/m"
cut=$TMPDIR/m/mangled-intact
start_vp record -p "$WL_PID" -F 499 --duration 1 -o "$TMPDIR/m.folded"
truncate -s $(($(stat -c %s "$cut") - 4096)) "$cut"
wait_vp
[ "$STATUS" = 0 ] || fail "a file cut in use: exit $STATUS"
