#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# perf.data: Debian's perf reads it with the symbols, chains and counts that our own output has.
# shellcheck source=selftests/e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh" || exit 1

need perf readelf
data=$TMPDIR/x.data
perf_folded=$TMPDIR/perf.folded

# samples_in_summary: what the summary of the last run says
samples_in_summary() {
	grep -o -i -E '[0-9][0-9,]* samples' "$ERR" | tail -n 1 | tr -d -c '0-9'
}

# perf_reads: perf script and report accept the file without complaint; folds it
perf_reads() {
	perf script -i "$data" -F comm,ip,sym,dso >"$TMPDIR/script" 2>"$TMPDIR/perf.err" ||
		fail "perf script: $(cat "$TMPDIR/perf.err")"
	[ -s "$TMPDIR/perf.err" ] && fail "perf script complains: $(cat "$TMPDIR/perf.err")"
	awk -f "$E2E/fold_perf.awk" "$TMPDIR/script" >"$perf_folded"
	assert_folded "$perf_folded"
	perf report -i "$data" --stdio --no-children -g none >"$TMPDIR/report" 2>"$TMPDIR/perf.err" ||
		fail "perf report: $(cat "$TMPDIR/perf.err")"
	[ -s "$TMPDIR/perf.err" ] && fail "perf report complains: $(cat "$TMPDIR/perf.err")"
	return 0
}

build_id() {
	readelf -n "$1" 2>/dev/null | sed -n 's/.*Build ID: //p'
}

# A command: count, chain, comm, build ids.
vp_ok record -F 499 -o "$data" -- "$WORKLOADS/chain" 1.5
perf_reads
samples=$(folded_sum "$perf_folded")
assert_count_matches "$samples" 1500 499
said=$(samples_in_summary)
[ "$said" = "$samples" ] || fail "the summary says ${said:-nothing of samples}, perf reads $samples"
assert_chain "$perf_folded" 'main;outer;middle;inner' chain 95
grep -q -E '(9[0-9]|100)\.[0-9]+% .*chain .*inner' "$TMPDIR/report" || fail "report: $(grep % "$TMPDIR/report")"
perf buildid-list -i "$data" >"$TMPDIR/ids" 2>&1 || fail "perf buildid-list: $(cat "$TMPDIR/ids")"
grep -q "^$(build_id "$WORKLOADS/chain") $WORKLOADS/chain$" "$TMPDIR/ids" ||
	fail "buildid-list: $(cat "$TMPDIR/ids"), not $(build_id "$WORKLOADS/chain")"
perf report -i "$data" --header-only >"$TMPDIR/header" 2>&1 || fail "header: $(cat "$TMPDIR/header")"
for word in "hostname : $(hostname)" "os release : $(uname -r)" vmaprof; do
	grep -q "$word" "$TMPDIR/header" || fail "header lacks '$word': $(cat "$TMPDIR/header")"
done

# Shares are those of the folded output: 3:1.
vp_ok record -F 997 -o "$data" -- "$WORKLOADS/shares" 2
perf_reads
three=$(folded_exact "$perf_folded" three_quarters shares)
one=$(folded_exact "$perf_folded" one_quarter shares)
assert_between "$(percent "$three" $((three + one)))" 71 79 "share of three_quarters"

# Kernel frames have names and come after the user's.
vp_ok record -F 499 -o "$data" -- "$WORKLOADS/syscaller" 1
perf_reads
assert_chain "$perf_folded" 'main;read_zeros;enter_kernel' syscaller 90
reads=$(grep -c -E 'enter_kernel;.*vfs_read_\[k\]' "$perf_folded")
assert_between "$(percent "$reads" "$(folded_sum "$perf_folded")")" 80 100 "share in vfs_read"

# Mappings that come while it runs, an exec, forks.
vp_ok record -F 499 -o "$data" -- "$WORKLOADS/dlhost" 0.3 1 plugin_a
perf_reads
total=$(folded_comm "$perf_folded" dlhost)
assert_between "$(percent "$(folded_exact "$perf_folded" \
	'main;run_plugin;plugin_run;plugin_a_spin')" "$total")" 42 58 "plugin_a"
vp_ok record -F 499 -o "$data" -- setarch -R "$WORKLOADS/execer" 0.5
perf_reads
assert_chain "$perf_folded" 'main;before_exec' execer 90
assert_chain "$perf_folded" 'main;outer;middle;inner' chain 90
vp_ok record -F 499 -o "$data" -- "$WORKLOADS/forker" 2 0.3
perf_reads
assert_chain "$perf_folded" 'main;fork_children;child_main;child_spin' forker 90

# What existed before, on the whole machine.
start threads
start cpp_chain
start recurse 600
vp_ok record -a -F 299 --duration 3 -o "$data"
perf_reads
samples=$(folded_sum "$perf_folded")
said=$(samples_in_summary)
[ "$said" = "$samples" ] || fail "the summary says ${said:-nothing of samples}, perf reads $samples"
assert_chain "$perf_folded" 'beta_main;beta_spin' wl-beta 95
assert_chain "$perf_folded" \
	'main;orbit::Mission::launch;orbit::Engine<double>::ignite;(anonymous namespace)::burn<int, 7>;orbit::Sink::operator()' \
	cpp_chain 95
# perf itself shows 127 frames unless told otherwise
perf script -i "$data" --max-stack 1100 -F comm,ip,sym,dso --comm recurse 2>/dev/null |
	awk -f "$E2E/fold_perf.awk" >"$perf_folded"
frames=$(awk '{ n = gsub(/;recurse/, ""); if (n > max) max = n } END { print max + 0 }' "$perf_folded")
[ "$frames" = 600 ] || fail "$frames frames of recurse in perf.data, not 600"
