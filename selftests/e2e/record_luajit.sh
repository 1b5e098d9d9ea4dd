#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# LuaJIT as it is installed: its interpreter is unwound, its traces are seen, and named where
# user/symbolize/perfmap.lua tells of them. Traces have no frame pointer and no unwind rows: stacks end there.
# shellcheck source=selftests/e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh" || exit 1

need luajit jq

folded=$TMPDIR/lua.folded
cd "$TMPDIR" || exit 1

cat >hot.lua <<'END_LUA'
local function made_hot(n)
	local s = 0
	for i = 1, n do
		s = s + i * 3
	end
	return s
end
print("READY")
io.stdout:flush()
local stop, x = os.clock() + tonumber(arg[1]), 0
while os.clock() < stop do x = x + made_hot(200000) end
END_LUA

# record_lua OPTION…: of luajit
record_lua() {
	vp_ok record -F 499 -o "$folded" -- luajit "$@" hot.lua 1
	assert_folded "$folded"
	grep -q '[, ]0 lost' "$ERR" || fail "lost samples: $(cat "$ERR")"
	whole=$(folded_comm "$folded" luajit)
	[ "$whole" -ge 50 ] || fail "$whole samples"
}

# share REGEX: of the samples of luajit whose user stack ends so
share() {
	percent "$(grep -E -- "^luajit.*$1(;[^;]*_\[k\])* [0-9]+$" "$folded" |
		awk '{ n += $NF } END { print n + 0 }')" "$whole"
}

# The interpreter says in .eh_frame how it is unwound; the package is stripped of its names.
record_lua -joff
assert_between "$(share ';main;.*;lua_pcall;(lj_|luajit\+0x)[^;]*')" 80 100 "interpreter below lua_pcall"

# Traces of which nothing is told.
record_lua -jon
assert_between "$(share ';\[jit\]_\[j\]')" 80 100 "share of [jit]"
grep -q '\[jit\] .*perf map' "$ERR" || fail "no hint at perf maps"

# … and those that are told of, each by the place where it starts.
export LUA_PATH="$E2E/../../user/symbolize/?.lua;;"
record_lua -lperfmap
assert_between "$(share ';TRACE_[0-9]+::hot\.lua:3_\[j\]')" 80 100 "share of the loop's trace"
! grep -q ';\[jit\]_\[j\];' "$folded" || fail "nameless: $(grep -m 1 ';\[jit\]_\[j\];' "$folded")"

# The same of a process that runs.
luajit -lperfmap hot.lua 20 >ready &
pid=$!
e2e_pids+=("$pid")
on_exit rm -f "/tmp/perf-$pid.map"
wait_until 20 grep -q READY ready
wait_until 20 grep -q 'hot\.lua:3' "/tmp/perf-$pid.map"
read -r addr _ name < <(grep 'hot\.lua:3' "/tmp/perf-$pid.map")
vp_ok sym --json -p "$pid" "$addr"
jq -e --arg name "$name" '.module == "[jit]" and .frames[0].function == $name and
	.frames[0].source == "perf_map"' "$OUT" >/dev/null || fail "sym: $(cat "$OUT")"
