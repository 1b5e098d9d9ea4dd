#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Exact chains of C and C++ programs, however they were linked.
# shellcheck source=selftests/e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh" || exit 1

programs=(chain nopie_chain static_chain noseparate_chain highbase_chain stripped_chain noreturn
	cpp_chain)
for program in "${programs[@]}"; do
	start "$program"
done
folded=$TMPDIR/chains.folded
vp_ok record -a -F 499 --duration 4 -o "$folded"
assert_folded "$folded"

for program in chain nopie_chain static_chain noseparate_chain highbase_chain; do
	assert_chain "$folded" 'main;outer;middle;inner' "${program:0:15}" 97
done
# the return address of a call at a function's end is in the next function
assert_chain "$folded" 'main;calls_noreturn;never_returns' noreturn 97
[ "$(folded_count "$folded" innocent_neighbour)" = 0 ] || fail "innocent_neighbour was never called"

# without symbols: the module and an offset in it, four frames of it
grep -E '^stripped_chain;.*(;stripped_chain\+0x[0-9a-f]+){4} ' "$folded" >/dev/null ||
	fail "stripped: $(grep '^stripped_chain' "$folded")"

# demangled; parameters may be there or not
sed -E 's/\((int|unsigned long|char|const|\*|&|,| |orbit::Sink)*\)(;| [0-9]+$)/\2/g;
	s/operator\(\)\([^;]*\)/operator()/; s/(;)void \(anonymous/\1(anonymous/' "$folded" >"$TMPDIR/cpp.folded"
assert_chain "$TMPDIR/cpp.folded" \
	'main;orbit::Mission::launch;orbit::Engine<double>::ignite;(anonymous namespace)::burn<int, 7>;orbit::Sink::operator()' \
	cpp_chain 97

# eight programs that never sleep on these CPUs: nothing much is missing
cpus=$(getconf _NPROCESSORS_ONLN)
total=$(folded_sum "$folded")
assert_between "$total" $((499 * 4 * (cpus < 8 ? cpus : 8) * 80 / 100)) $((499 * 4 * cpus * 115 / 100)) \
	"samples of 4 s at 499 Hz on $cpus CPUs"
