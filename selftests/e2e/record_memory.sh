#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# A recording whose symbols do not fit in --symbol-memory: tables make room for each other, and no
# name is lost.
# shellcheck source=selftests/e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh" || exit 1
need gcc awk

# program NAME: main calls spin_NAME; with 30,000 more functions, whose names take a third of it
program() {
	cat >"$TMPDIR/$1.c" <<END
#include <time.h>
__attribute__((noinline)) void spin_$1(void) { while (clock() < 0.3 * CLOCKS_PER_SEC); }
int main(void) { spin_$1(); return 0; }
END
	awk 'BEGIN { for (i = 0; i < 30000; i++)
		printf ".type f%d,@function\nf%d: ret\n.size f%d, 1\n", i, i, i }' >"$TMPDIR/$1.s"
	echo '.section .note.GNU-stack' >>"$TMPDIR/$1.s"
	gcc -O1 -fno-omit-frame-pointer -o "$TMPDIR/$1" "$TMPDIR/$1.c" "$TMPDIR/$1.s" || fail "gcc"
}

for name in one two three; do
	program $name
done

# record LIMIT
record() {
	# shellcheck disable=SC2016  # the inner shell's
	vp_ok record -v -F 499 --symbol-memory "$1" -o "$TMPDIR/x.folded" -- \
		bash -c '"$0/one"; "$0/two"; "$0/three"' "$TMPDIR"
	assert_folded "$TMPDIR/x.folded"
	grep -q -E '^symbolized [0-9]+ functions of [0-9]+ files in [0-9]+ ms' "$ERR" ||
		fail "--symbol-memory $1: not a word about symbols: $(cat "$ERR")"
	! grep -q 'for want of memory' "$ERR" || fail "--symbol-memory $1: $(cat "$ERR")"
	for name in one two three; do
		assert_between "$(folded_count "$TMPDIR/x.folded" "spin_$name" $name)" 90 300 \
			"--symbol-memory $1: samples in spin_$name"
	done
}

record 256M
! grep -q 'made room' "$ERR" || fail "tables were evicted without need: $(cat "$ERR")"
record 1M
grep -q '[0-9]  symbol tables made room for others' "$ERR" || fail "1M held it all: $(cat "$ERR")"
grep -q '[0-9]  … of which were read again' "$ERR" || fail "none was read again: $(cat "$ERR")"
