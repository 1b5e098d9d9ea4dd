#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# vmaprof-selftest: its cases cover all that their README lists, and its reports have the forms they
# claim. The cases themselves run in VMs, and on this kernel when one runs it by hand.
# shellcheck source=selftests/e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh" || exit 1

SELFTEST=$E2E/../../build/vmaprof-selftest
README=$E2E/../conformance/README.md
[ -x "$SELFTEST" ] || fail "$SELFTEST has not been built"

# selftest ARGUMENT…: STATUS, OUT and ERR as after vp
selftest() {
	STATUS=0
	"$SELFTEST" "$@" >"$OUT" 2>"$ERR" || STATUS=$?
}

# Columns: numbers ("25, 26"), name, what is expected.
selftest --list
[ "$STATUS" = 0 ] || fail "--list: exit $STATUS"
cp "$OUT" "$TMPDIR/list"
grep -vE '^[0-9]+(, [0-9]+)* +[a-z_]+/[a-z_0-9]+ +[^ ]' "$TMPDIR/list" && fail "--list: cases without numbers"
grep -oE '[a-z_]+/[a-z_0-9]+ ' "$TMPDIR/list" | sort | uniq -d | grep . && fail "--list: one name, two cases"

grep -oE '^[0-9]+(, [0-9]+)*' "$TMPDIR/list" | tr -d ' ' | tr ',' '\n' | sort -nu >"$TMPDIR/covered"
sed -n 's/^\([0-9]\+\)\. .*/\1/p' "$README" | sort -nu >"$TMPDIR/listed"
seq 1 "$(wc -l <"$TMPDIR/listed")" | cmp -s - "$TMPDIR/listed" || fail "README: numbers are missing"
lacks=$(comm -23 <(sort "$TMPDIR/listed") <(sort "$TMPDIR/covered") | sort -n | tr '\n' ' ')
[ -z "$lacks" ] || fail "no case looks at ${lacks% }"
unknown=$(comm -13 <(sort "$TMPDIR/listed") <(sort "$TMPDIR/covered") | sort -n | tr '\n' ' ')
[ -z "$unknown" ] || fail "README does not list ${unknown% }"

# Forms of the report, by one case that passes on every kernel.
one=find_vma/address_zero
selftest --filter $one
{ [ "$STATUS" = 0 ] && grep -q "^pass  *$one " "$OUT" && grep -q '^1 passed, 0 failed, ' "$OUT"; } || fail "table: $(cat "$OUT")"
selftest --filter $one --json
{ [ "$(wc -l <"$OUT")" = 1 ] && grep -q "^{\"case\":\"$one\",\"numbers\":\"3\",\"result\":\"pass\",.*}$" "$OUT"; } ||
	fail "--json: $(cat "$OUT")"
selftest --filter $one --ktap --junit "$TMPDIR/junit"
{ grep -qx '1\.\.1' "$OUT" && grep -qx "ok 1 $one" "$OUT"; } || fail "--ktap: $(cat "$OUT")"
{ grep -q '<testcase classname="find_vma" name="address_zero" ' "$TMPDIR/junit" && grep -qx '</testsuite>' "$TMPDIR/junit"; } ||
	fail "--junit: $(cat "$TMPDIR/junit")"

# Figures, by two that every kernel has
selftest --bench --filter ring.reserve --filter ring.output --json
{ [ "$STATUS" = 0 ] && [ "$(wc -l <"$OUT")" = 2 ] &&
	[ "$(grep -cE '^\{"bench":"ring\.[a-z]+","vmas":null,"min_ns":[0-9.]+,"median_ns":[0-9.]+,"rounds":[0-9]+,"skipped":null}$' "$OUT")" = 2 ]; } ||
	fail "--bench --json: exit $STATUS: $(cat "$OUT" "$ERR")"
selftest --bench --filter no_such_figure
{ [ "$STATUS" = 2 ] && grep -q 'no figure has such a name' "$ERR"; } || fail "a figure that there is not: exit $STATUS"

# What cannot be written is no success
is_told() {
	{ [ "$STATUS" = 2 ] && [ "$(wc -l <"$ERR")" = 1 ] && grep -q ' could not be written' "$ERR"; } ||
		fail "$* to a full disk: exit $STATUS: $(cat "$ERR")"
}
for words in --list --help "--filter $one" "--filter $one --json" "--bench --json --filter ring.output"; do
	STATUS=0
	# shellcheck disable=SC2086  # words
	"$SELFTEST" $words >/dev/full 2>"$ERR" || STATUS=$?
	is_told "$words"
done
selftest --filter $one --junit /dev/full
is_told --junit

# What no case can do without
lacks() {
	local text=$1 status=0
	shift
	"$@" "$SELFTEST" --filter $one >"$OUT" 2>"$ERR" || status=$?
	{ [ "$status" = 2 ] && [ "$(wc -l <"$ERR")" = 1 ] && [ ! -s "$OUT" ] && grep -q -- "$text" "$ERR"; } ||
		fail "'$*': exit $status: $(cat "$OUT" "$ERR")"
}
if command -v setpriv >/dev/null; then
	lacks CAP_SYS_ADMIN setpriv --bounding-set -sys_admin --inh-caps -sys_admin
	lacks CAP_SYS_ADMIN setpriv --bounding-set -all --inh-caps -all
	# … and what is enough: what asks for more says so and is skipped
	setpriv --bounding-set -all,+sys_admin --inh-caps -all,+sys_admin "$SELFTEST" --filter 'd_path/*' >"$OUT" 2>&1 ||
		fail "with CAP_SYS_ADMIN alone: $(cat "$OUT")"
	grep -q '^skip .*CAP_SYS_CHROOT' "$OUT" || fail "with CAP_SYS_ADMIN alone no case lacks anything: $(cat "$OUT")"
fi
if unshare -m true 2>/dev/null; then
	# shellcheck disable=SC2016  # the inner shell's
	lacks '/sys is not mounted' unshare -m sh -c 'umount -l /sys && exec "$@"' sh
fi

# Killed: a case's processes go with it, here one that spins until it is told to end
below() {
	local child children=()
	[ -e "/proc/$1/task/$1/children" ] || return 0
	read -ra children <"/proc/$1/task/$1/children" || :
	for child in "${children[@]}"; do
		echo "$child"
		below "$child"
	done
}
# shellcheck disable=SC2317  # wait_until calls them
has_grandchild() {
	[ "$(below "$1" | wc -l)" -ge 2 ]
}
# shellcheck disable=SC2317
are_gone() {
	local pid
	for pid in "$@"; do
		[ ! -e "/proc/$pid" ] || return 1
	done
}
"$SELFTEST" --filter task_vma_read/killed_during_a_read >"$OUT" 2>&1 &
suite=$!
wait_until 20 has_grandchild $suite
mapfile -t pids < <(below $suite)
kill -KILL $suite
wait $suite || :
wait_until 20 are_gone "${pids[@]}"

# Stopped: the report has an end, and so has the case
"$SELFTEST" --filter $one --filter task_vma_read/killed_during_a_read --junit "$TMPDIR/junit" >"$OUT" 2>&1 &
suite=$!
wait_until 20 has_grandchild $suite
mapfile -t pids < <(below $suite)
kill -TERM $suite
STATUS=0
wait $suite || STATUS=$?
{ [ "$STATUS" = 143 ] && grep -qx '</testsuite>' "$TMPDIR/junit"; } || fail "stopped: exit $STATUS: $(cat "$OUT" "$TMPDIR/junit")"
wait_until 20 are_gone "${pids[@]}"

# Wrong words
selftest --filter no_such_case
{ [ "$STATUS" = 2 ] && grep -q 'no case matches' "$ERR"; } || fail "a filter that matches nothing: exit $STATUS"
selftest $one
{ [ "$STATUS" = 2 ] && grep -q -- "--filter '$one'" "$ERR"; } || fail "a case as argument: exit $STATUS"
for words in '--bench --list' '--ktap --json' '--bench --ktap' '--bench --junit x' '--list --json' '--list --junit x' "$(printf -- '--filter x%.0s ' {1..65})"; do
	# shellcheck disable=SC2086  # words
	selftest $words
	{ [ "$STATUS" = 2 ] && [ "$(wc -l <"$ERR")" = 1 ] && [ ! -s "$OUT" ]; } || fail "$words: exit $STATUS: $(cat "$OUT" "$ERR")"
done
selftest --filter $one --junit /no/such/directory
{ [ "$STATUS" = 2 ] && grep -q '/no/such/directory: ' "$ERR"; } || fail "--junit that cannot be written: exit $STATUS"
exit 0
