#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# vmaprof show-rows: what it prints is what readelf -wF does, as text and as JSON.
# shellcheck source=selftests/e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh" || exit 1

need jq readelf

libc=/lib/x86_64-linux-gnu/libc.so.6
[ -e "$libc" ] || libc=$(realpath /proc/self/exe)

# Where both have a plain CFA (register+offset), it is the same at the same address.
vp_ok show-rows "$libc"
awk '$3 ~ /^r[a-z0-9]+\+[0-9]+$/ { print $2, $3, $NF }' "$OUT" >"$TMPDIR/ours"
readelf -wF "$libc" 2>/dev/null |
	awk '$1 ~ /^0[0-9a-f]+$/ && NF > 2 && $2 ~ /^r/ {
		sub(/^0+/, "", $1); print $1, $2, $NF }' >"$TMPDIR/theirs"
[ "$(wc -l <"$TMPDIR/ours")" -gt 1000 ] || fail "hardly any rows"
different=$(awk 'NR == FNR { cfa[$1] = $2; next } ($1 in cfa) && cfa[$1] != $2' \
	"$TMPDIR/ours" "$TMPDIR/theirs" | wc -l)
both=$(awk 'NR == FNR { cfa[$1] = $2; next } $1 in cfa' "$TMPDIR/ours" "$TMPDIR/theirs" | wc -l)
[ "$both" -gt 1000 ] || fail "only $both rows in common with readelf"
[ "$different" = 0 ] || fail "$different of $both rows differ from readelf's"

vp_ok show-rows --json "$libc"
jq -e -s 'length > 1000 and all(.[]; (.offset | startswith("0x")) and has("cfa"))' \
	"$OUT" >/dev/null || fail "not JSON as described"
[ "$(wc -l <"$OUT")" -gt 1000 ] || fail "not an object a line"

vp_ok show-rows '[vdso]'
grep -q '^# \[vdso\]: ' "$OUT" || fail "no header for the vdso"

# refused FILE: exit 1 and one line that names it
refused() {
	vp show-rows "$1"
	assert_error 1 "$2"
}
echo text >"$TMPDIR/text"
refused "$TMPDIR/text" 'no ELF file'
refused "$TMPDIR/missing" 'No such file'
refused "$TMPDIR" 'no regular file'
printf 'x' >"$TMPDIR/"$'esc\e[31m'
refused "$TMPDIR/"$'esc\e[31m' 'no ELF file'
if grep -q $'\e' "$ERR"; then
	fail "an escape sequence of a file name reached the terminal"
fi
for arguments in "" "a b" "--bogus a"; do
	# shellcheck disable=SC2086  # words
	vp show-rows $arguments
	[ "$STATUS" = 2 ] || fail "show-rows $arguments: exit $STATUS, not 2"
done
