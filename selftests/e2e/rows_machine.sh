#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The unwind rows of every program and library on this machine equal libdw's answers, row by row.
# shellcheck source=selftests/e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh" || exit 1

compare=$E2E/../../build/selftests/compare-rows
[ -x "$compare" ] || fail "$compare has not been built"

# The same order every time, but not by name: if time runs out, some of all kinds have been read.
find /usr/lib/x86_64-linux-gnu /usr/bin /usr/sbin /usr/lib /usr/libexec \
	"$WORKLOADS" "$VMAPROF" -type f -size +1k 2>/dev/null | sort -u |
	shuf --random-source=<(yes) >"$TMPDIR/files"
"$compare" -t 60 <"$TMPDIR/files" >"$OUT" 2>"$ERR" || fail "rows differ: $(cat "$OUT")"
cat "$OUT"
[ "$(awk '/ rows, at most/ { print $1 }' "$OUT")" -gt 100000 ] || fail "hardly any rows"
