#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Live tracking: a forced rung works or says why not, and doctor names the one that record takes.
# shellcheck source=selftests/e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh" || exit 1
need jq

# seen_by FILE: the rung that record -v named.
seen_by() {
	sed -n 's/^new mappings are seen by \([a-z]*\).*/\1/p' "$1"
}

# A library that is loaded while it is tracked: in both unwinding modes its frames have its
# file's names.
folded=$TMPDIR/late.folded
modes=inline
vp_ok doctor --json
cp "$OUT" "$TMPDIR/doctor.json"
has_feature() {
	jq -e --arg name "$1" '.features[] | select(.name == $name) | .present' \
		"$TMPDIR/doctor.json" >/dev/null
}
has_feature task_work && modes="inline deferred"

# assert_late_library MODE: of what dlhost did, spinning before it loads and then in the library, all but
# its start and end has these stacks. How much of its CPU time each got is not looked at: on a machine
# that stands still at times samples do not tell.
assert_late_library() {
	local total before
	assert_folded "$folded"
	total=$(folded_comm "$folded" dlhost)
	before=$(folded_exact "$folded" 'main;before_load')
	assert_between "$(percent "$before" "$total")" 20 80 "$1: main;before_load"
	assert_between "$(percent "$(folded_exact "$folded" 'main;run_plugin;plugin_run;plugin_a_spin')" \
		$((total - before)))" 80 100 "$1: plugin_a_spin, of what was not before"
}

for mode in $modes; do
	vp_ok record --track=sideband --unwind-mode "$mode" -v -F 499 -o "$folded" -- \
		"$WORKLOADS/dlhost" "$(longer 0.4)" 1 plugin_a
	[ "$(seen_by "$ERR")" = sideband ] || fail "record -v does not name the rung"
	assert_late_library "$mode"
done

# perf's file names it, too.
if command -v perf >/dev/null; then
	data=$TMPDIR/late.data
	vp_ok record --track=sideband -F 499 -o "$data" -- "$WORKLOADS/dlhost" "$(longer 0.3)" 1 plugin_a
	perf script --show-mmap-events -i "$data" >"$TMPDIR/script" 2>/dev/null
	grep -q "r-xp .*/plugin_a$" "$TMPDIR/script" || fail "no mapping of plugin_a in perf's file"
fi

# doctor and record agree.
named=$(jq -r '.features[] | select(.name == "live_tracking") | .detail' "$TMPDIR/doctor.json")
vp_ok record -v -o "$folded" -- "$WORKLOADS/short" 200
[ "by $(seen_by "$ERR")" = "$named" ] || fail "doctor: $named, record: $(seen_by "$ERR")"
vp_ok doctor
grep -q -E "^ *live_tracking +yes +$named$" "$OUT" || fail "doctor does not name the rung"

# What the kernel refuses is one line.
for rung in fentry kprobe; do
	vp record --track=$rung -v -o "$folded" -- "$WORKLOADS/short" 200
	if has_feature $rung; then
		[ "$STATUS" = 0 ] || fail "--track=$rung: exit $STATUS"
		[ "$(seen_by "$ERR")" = $rung ] || fail "--track=$rung took $(seen_by "$ERR")"
	else
		assert_error 1 "--track=$rung: .*refuses.*doctor"
	fi
done

# Without any, samples find it.
vp_ok record --track=off -v -F 499 -o "$folded" -- "$WORKLOADS/dlhost" "$(longer 0.4)" 1 plugin_a
assert_late_library "without tracking"
