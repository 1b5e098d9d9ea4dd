#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The command line: help, version, and usage errors, which exit 2 with one clear line.
# shellcheck source=selftests/e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh" || exit 1

# No arguments: help of one screen with four examples.
vp
[ "$STATUS" = 0 ] || [ "$STATUS" = 2 ] || fail "no arguments: exit $STATUS"
cat "$OUT" "$ERR" >"$TMPDIR/help"
[ "$(grep -c -E '^ +vmaprof (record|maps|find|sym|doctor)' "$TMPDIR/help")" -ge 4 ] || fail "fewer than four examples"
[ "$(wc -l <"$TMPDIR/help")" -le 40 ] || fail "more than one screen"

vp_ok --help
[ ! -s "$ERR" ] || fail "--help on standard error"
for command in record maps find doctor; do
	grep -q "$command" "$OUT" || fail "--help does not name $command"
	cp "$OUT" "$TMPDIR/top"
	vp_ok "$command" --help
	grep -q "$command" "$OUT" || fail "$command --help does not name itself"
	[ "$(wc -l <"$OUT")" -le 60 ] || fail "$command --help is longer than a screen"
	cp "$TMPDIR/top" "$OUT"
done
vp_ok record --help
for option in -a -p -t -G -F --duration -o --unwind-mode --track --symbol-memory --inlines --debuginfod --all-maps -q -v; do
	grep -q -w -e "$option" "$OUT" || fail "record --help lacks $option"
done
vp_ok --version
grep -q -E '^vmaprof [0-9a-z]' "$OUT" || fail "--version: $(cat "$OUT")"

# usage ARGUMENT…: a usage error: exit 2, one line that starts with vmaprof:, nothing on stdout
usage() {
	local regex=$1
	shift
	vp "$@"
	[ "$STATUS" = 2 ] || fail "vmaprof $*: exit $STATUS, not 2"
	assert_error 2 "$regex"
	[ ! -s "$OUT" ] || fail "vmaprof $*: wrote to standard output"
}

cd "$TMPDIR" || fail "cd"
usage bogus bogus
usage bogus --bogus
for command in record maps find doctor; do
	usage bogus "$command" --bogus
done
usage '-F' record -F
usage 'abc' record -F abc
usage '-1' record -F -1
usage '99x' record -F 99x
usage 'abc' record --duration abc
usage '-3' record --duration -3
usage 'abc' record -p abc
usage 'PID' record -p 1,,2
usage '0' record -p 0
usage '-5' record -p -5
usage '99999999999' record -p 99999999999
usage 'abc' record -t abc
usage 'bogus' record --unwind-mode bogus
usage 'bogus' record --call-graph bogus
usage 'bogus' record --track bogus
usage '12Q' record --symbol-memory 12Q
usage '10K' record --symbol-memory 10K
usage '' record --duration 0.2 --
usage '' record -a -p 1
usage '' record -p $$ -- true
usage '' record -p $$ -t $$
usage 'extra' maps extra
usage 'abc' maps -p abc
usage '' find
[ ! -e vmaprof.html ] || fail "a usage error left a file"
