#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Languages with a run time of their own. Node: from _start through C++, what the JIT has made, and C++
# again. Go: every goroutine starts at runtime.goexit, what runs on a stack of the system's at
# one of the functions that change to it.
# shellcheck source=selftests/e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh" || exit 1
# shellcheck source=selftests/e2e/lib_unwind.sh
source "$E2E/lib_unwind.sh" || exit 1

need node fzf python3 readelf

cat >"$TMPDIR/hot.js" <<'EOJ'
'use strict';
const crypto = require('crypto');
const data = Buffer.alloc(1 << 20, 7);
function innerSpin(n) { let t = 0; for (let i = 0; i < n; i++) t = (t * 31 + i) % 1000003; return t; }
function innerHash() { return crypto.createHash('sha512').update(data).digest()[0]; }
function outer(n) { return [3, 1, 2].map((x) => innerSpin(n + x))[0] + innerHash(); }
const end = Date.now() + 2000;
let sum = 0;
while (Date.now() < end) sum += outer(300000);
EOJ
seq 4000000 >"$TMPDIR/numbers"

# matching REGEX: percent of the samples in $folded whose stack, without its COMM, matches
matching() {
	awk -v regex="$1" '{
		count = $NF; sub(/ [0-9]+$/, ""); sub(/^[^;]*;/, "")
		all += count
		if ($0 ~ regex) n += count
	} END { printf "%.1f\n", 100 * n / (all ? all : 1) }' "$folded"
}

# the ten most frequent
outermost() {
	awk -F';' '{ count[$2] += $NF ~ / / ? substr($NF, match($NF, / [0-9]+$/)) : 0 }
		END { for (f in count) print count[f], f }' "$folded" | sort -rn | head
}

for mode in $(unwind_modes); do
	vp_ok record --unwind-mode "$mode" -F 499 -o "$TMPDIR/all.folded" -- node "$TMPDIR/hot.js"
	assert_folded "$TMPDIR/all.folded"
	folded=$TMPDIR/node.folded
	# its main thread
	grep '^node;' "$TMPDIR/all.folded" >"$folded"
	[ "$(folded_sum "$folded")" -ge 500 ] || fail "node: $(folded_sum "$folded") samples"
	root='^_start;__libc_start_main[^;]*;(__libc_start_call_main|libc[^;]*);'
	assert_between "$(matching "$root|^_start;_dl_|^_dl_")" 97 100 "$mode: node's stacks that start at _start"
	assert_between "$(matching "$root.*;\\[jit\\][^;]*(;\\[jit\\][^;]*|;[^;]*_\\[k\\])*\$")" 35 95 \
		"$mode: node's stacks that start in C++ and end in code of the JIT"
	assert_between "$(matching "$root.*;\\[jit\\].*;[^;]*([sS][hH][aA]512|libcrypto)[^;]*")" 5 60 \
		"$mode: node's stacks from the JIT into C++"

	vp_ok record --unwind-mode "$mode" -F 997 -o "$TMPDIR/go.folded" -- \
		bash -c "exec fzf -f 1234567 <'$TMPDIR/numbers'"
	python3 "$E2E/unwind_go_names.py" "$(command -v fzf)" "$TMPDIR/go.folded" >"$TMPDIR/named.folded" ||
		fail "the names of fzf's functions"
	folded=$TMPDIR/fzf.folded
	grep '^fzf;' "$TMPDIR/named.folded" >"$folded"
	[ "$(folded_sum "$folded")" -ge 300 ] || fail "fzf: $(folded_sum "$folded") samples"
	system='runtime\.(systemstack|mstart|mcall|morestack|rt0_go|sigtramp|asmcgocall)(\.abi0)?'
	libc='_start|_dl_[^;]*|(__)?clone3?|(ld-linux|libc\.so)[^;]*'
	assert_between "$(matching "^(runtime\\.goexit(\\.abi0)?|$system)(;|\$)|^($libc);")" 98 100 \
		"$mode: Go's stacks with a right outermost function; they have: $(outermost)"
	assert_between "$(matching '^runtime\.goexit(\.abi0)?;github\.com/junegunn/fzf/src\.[^;]*;')" 50 100 \
		"$mode: stacks of fzf's goroutines"
done
