# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# What the end-to-end tests share; source it first of all:
#
#     # shellcheck source=selftests/e2e/lib.sh
#     source "$(dirname "${BASH_SOURCE[0]}")/lib.sh" || exit 1
#
# Variables it sets: E2E (this folder), VMAPROF, WORKLOADS, TMPDIR; after vp or run: STATUS, OUT and
# ERR (files); after start: WL_PID, WL_READY (the READY line) and WL_OUT (the workload's output).
set -u -o pipefail
# errors and sort orders that do not depend on who runs the tests
export LC_ALL=C.UTF-8

E2E=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
VMAPROF=$(realpath "${VMAPROF:-$E2E/../../build/vmaprof}")
WORKLOADS=$(realpath "${WORKLOADS:-$E2E/../../build/selftests/workloads}")
if [ -z "${TMPDIR:-}" ]; then
	TMPDIR=$(mktemp -d /tmp/vmaprof-e2e.XXXXXX)
	on_exit_made_tmpdir=1
fi
export TMPDIR
# what limits are multiplied by where all takes longer
PATIENCE=${VMAPROF_PATIENCE:-1}
OUT=$TMPDIR/out
ERR=$TMPDIR/err
STATUS=0
WL_PID=
WL_READY=
WL_OUT=

# ---- results ------------------------------------------------------------------------------------

# fail MESSAGE…: ends the test; shows what the last run of vmaprof said.
fail() {
	echo "FAIL: $*" >&2
	if [ -s "$ERR" ]; then
		echo "--- standard error of the last run (exit $STATUS):" >&2
		head -n 40 "$ERR" >&2
	fi
	exit 1
}

skip() {
	echo "SKIP: $*"
	exit 77
}

# need COMMAND…
need() {
	local tool
	for tool; do
		command -v "$tool" >/dev/null || skip "needs $tool"
	done
}

[ "$(id -u)" = 0 ] || skip "needs root"
[ -x "$VMAPROF" ] || fail "$VMAPROF has not been built"

# ---- cleaning up --------------------------------------------------------------------------------

e2e_pids=()
e2e_cleanups=()

# on_exit COMMAND ARGUMENT…: run when the test ends, the last one first.
on_exit() {
	e2e_cleanups+=("$(printf '%q ' "$@")")
}

e2e_clean_up() {
	local i group
	[ ${#e2e_exercised[@]} -eq 0 ] || printf 'exercised: %s\n' "${!e2e_exercised[@]}"
	{
		[ ${#e2e_pids[@]} -eq 0 ] || kill -KILL "${e2e_pids[@]}"
		wait
	} 2>/dev/null
	# their children die with them, but not at once
	group=$(ps -o pgid= -p $$)
	for ((i = 0; i < 50; i++)); do
		pgrep -g "${group// /}" -P 1 >/dev/null || break
		sleep 0.02
	done
	for ((i = ${#e2e_cleanups[@]} - 1; i >= 0; i--)); do
		eval "${e2e_cleanups[i]}"
	done
	[ -z "${on_exit_made_tmpdir:-}" ] || rm -rf "$TMPDIR"
}
trap e2e_clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# ---- running ------------------------------------------------------------------------------------

declare -A e2e_exercised=()

# note_exercised: what the last run of vmaprof did by its own words; it worked.
note_exercised() {
	local thing
	[ "$STATUS" = 0 ] || return 0
	while read -r thing; do
		e2e_exercised[$thing]=1
	done < <(sed -n -E '
		s/^vmaprof: sampling .*, unwinding by .* \((inline|deferred)\).*/unwind \1/p
		/^new mappings are seen by /{
			h
			s/.* seen by (the )?([a-z]*).*/track \2/p
			g
			s/.*asked of bpf_find_vma alone$/ask find_vma alone/p
			s/.*asked of bpf_find_vma and of .*/ask find_vma and tree/p
		}' "$ERR")
}

# run COMMAND…: output to $OUT and $ERR, exit status to STATUS; 124 if it takes a minute.
run() {
	timeout $((60 * PATIENCE)) "$@" >"$OUT" 2>"$ERR" </dev/null
	STATUS=$?
	note_exercised
}

# vp ARGUMENT…: vmaprof.
vp() {
	run "$VMAPROF" "$@"
}

# vp_ok ARGUMENT…: vmaprof, which must succeed.
vp_ok() {
	vp "$@"
	[ "$STATUS" = 0 ] || fail "vmaprof $*: exit $STATUS, not 0"
}

# longer SECONDS: for how long a workload has to work where its start takes longer, too
longer() {
	awk -v s="$1" -v times="$PATIENCE" 'BEGIN { print s * (times > 2 ? times / 2 : 1) }'
}

e2e_started=0

# start_as COMMAND ARGUMENT…: starts something that prints a READY line and waits for that. It is
# nice, so that ten of them do not make vmaprof's own start and end take ten times as long.
start_as() {
	local deadline=$((SECONDS + 20 * PATIENCE))
	e2e_started=$((e2e_started + 1))
	WL_OUT=$TMPDIR/workload-$e2e_started.out
	: >"$WL_OUT"
	nice -n 5 "$@" >"$WL_OUT" 2>&1 </dev/null &
	WL_PID=$!
	e2e_pids+=("$WL_PID")
	until grep -q -a '^READY ' "$WL_OUT"; do
		[ -d "/proc/$WL_PID" ] || fail "$*: ended: $(cat "$WL_OUT")"
		[ $SECONDS -lt $deadline ] || fail "$*: not ready: $(cat "$WL_OUT")"
		sleep 0.02
	done
	WL_READY=$(grep -a -m 1 '^READY ' "$WL_OUT")
}

# start NAME ARGUMENT…: starts a workload and waits until it is set up.
start() {
	local name=$1
	shift
	[ -x "$WORKLOADS/$name" ] || fail "workload $name has not been built"
	start_as "$WORKLOADS/$name" "$@"
}

# ready_value KEY: what the READY line says of it ("READY pid=1 KEY=VALUE").
ready_value() {
	local word
	for word in $WL_READY; do
		[ "${word%%=*}" != "$1" ] || echo "${word#*=}"
	done
}

# stop PID…: kills and reaps them.
stop() {
	# together, so that the shell reports nothing
	{
		kill -KILL "$@"
		wait "$@"
	} 2>/dev/null
}

# start_vp ARGUMENT…: vmaprof in the background, as VP_PID, with a terminal's SIGINT handling (the
# shell makes its background jobs ignore SIGINT); output as for vp.
start_vp() {
	: >"$ERR"
	env --default-signal=INT "$VMAPROF" "$@" >"$OUT" 2>"$ERR" </dev/null &
	VP_PID=$!
	e2e_pids+=("$VP_PID")
}

# wait_vp: for the end of start_vp's; at most a minute.
wait_vp() {
	local deadline=$((SECONDS + 60 * PATIENCE))
	while [ -d "/proc/$VP_PID" ] && ! grep -q '^State:.Z' "/proc/$VP_PID/status" 2>/dev/null; do
		[ $SECONDS -lt $deadline ] || fail "vmaprof does not end"
		sleep 0.02
	done
	wait "$VP_PID"
	STATUS=$?
	note_exercised
}

# wait_until SECONDS COMMAND…: until it succeeds; fails the test after that time.
wait_until() {
	local deadline=$((SECONDS + $1 * PATIENCE))
	shift
	until "$@"; do
		[ $SECONDS -lt $deadline ] || fail "still not: $*"
		sleep 0.02
	done
}

# cpu_ms PID: its CPU time; 0 when it is gone.
cpu_ms() {
	awk -v hz="$(getconf CLK_TCK)" '
		{ sub(/.*\) /, ""); print int(($12 + $13) * 1000 / hz) }' "/proc/$1/stat" 2>/dev/null ||
		echo 0
}

# cpu_ms_is_past PID MS
cpu_ms_is_past() {
	[ "$(cpu_ms "$1")" -ge "$2" ]
}

# wait_cpu PID MS: until it has used that much more CPU time.
wait_cpu() {
	wait_until 30 cpu_ms_is_past "$1" $(($(cpu_ms "$1") + $2))
}

# wait_recording MS PID…: until vmaprof of start_vp is sampling: it has said what it samples, and
# then the processes have used that much CPU time.
wait_recording() {
	local ms=$1 pid
	shift
	wait_until 30 test -s "$ERR"
	for pid; do
		wait_cpu "$pid" "$ms"
	done
}

# ---- assertions ---------------------------------------------------------------------------------

# assert_between VALUE LOW HIGH WHAT
assert_between() {
	awk -v v="$1" -v low="$2" -v high="$3" 'BEGIN { exit !(v >= low && v <= high) }' ||
		fail "$4: $1, not in $2 … $3"
}

# assert_error STATUS… REGEX: the last run failed with one of these exit codes and one line of the
# form "vmaprof: WHAT: WHY (HOW TO FIX)" that matches; a signal or a hang is no answer. The line
# that says what is sampled may precede it.
assert_error() {
	local allowed=" ${*:1:$#-1} " regex=${!#}
	[[ $allowed == *" $STATUS "* ]] || fail "exit $STATUS, not one of$allowed"
	grep -a '^vmaprof: ' "$ERR" | grep -v -a '^vmaprof: sampling ' >"$TMPDIR/errors"
	[ "$(wc -l <"$TMPDIR/errors")" = 1 ] || fail "$(wc -l <"$TMPDIR/errors") error lines, not one"
	grep -q -a -E -i -e "$regex" "$TMPDIR/errors" || fail "the error does not say: $regex"
	grep -q -a -E '^vmaprof: .+: .+ \(.+\)$' "$TMPDIR/errors" || [ "$STATUS" != 1 ] ||
		fail "not in the form 'vmaprof: WHAT: WHY (HOW TO FIX)'"
}

# assert_no_files DIRECTORY: nothing was left there.
assert_no_files() {
	local left
	left=$(ls -A "$1")
	[ -z "$left" ] || fail "left behind in $1: $left"
}

# ---- folded stacks: "comm;root;…;leaf COUNT" ------------------------------------------------------

# folded_sum FILE: all samples.
folded_sum() {
	awk '{ sum += $NF } END { print sum + 0 }' "$1"
}

# folded_count FILE CHAIN [COMM]: samples with the frames of CHAIN (joined by ';') one right after
# the other somewhere in the stack.
folded_count() {
	awk -v chain=";$2;" -v comm="${3:-}" '
		{ count = $NF; sub(/ [0-9]+$/, ""); name = $0; sub(/;.*/, "", name) }
		comm != "" && name != comm { next }
		index(substr($0, length(name) + 1) ";", chain) { sum += count }
		END { print sum + 0 }' "$1"
}

# folded_exact FILE CHAIN [COMM]: samples whose user stack ends with CHAIN: frames of the kernel,
# as of an interrupt, may follow.
folded_exact() {
	awk -v chain=";$2" -v comm="${3:-}" '
		{ count = $NF; sub(/ [0-9]+$/, ""); name = $0; sub(/;.*/, "", name) }
		comm != "" && name != comm { next }
		{
			stack = substr($0, length(name) + 1)
			while (match(stack, /;[^;]*_\[k\]$/))
				stack = substr(stack, 1, RSTART - 1)
			if (substr(stack, length(stack) - length(chain) + 1) == chain)
				sum += count
		}
		END { print sum + 0 }' "$1"
}

# folded_comm FILE COMM: samples of threads of that name.
folded_comm() {
	awk -v comm="$2" '
		{ count = $NF; sub(/ [0-9]+$/, ""); sub(/;.*/, "") }
		$0 == comm { sum += count }
		END { print sum + 0 }' "$1"
}

# folded_top FILE COMM: its five most frequent stacks, long ones cut, to show in a message.
folded_top() {
	awk -v comm="$2" '
		index($0, comm ";") == 1 {
			line = $0
			if (length(line) > 400)
				line = substr(line, 1, 150) " ... " substr(line, length(line) - 250)
			print $NF, line
		}' "$1" | sort -rn | head -n 5 | cut -d' ' -f2-
}

# percent PART WHOLE
percent() {
	awk -v part="$1" -v whole="$2" 'BEGIN { printf "%.1f\n", whole ? 100 * part / whole : 0 }'
}

# assert_folded FILE: every line is of the format, and there are some.
assert_folded() {
	[ -s "$1" ] || fail "$1 is empty or missing"
	local bad
	bad=$(grep -n -v -a -E '^[^;]+(;[^;]+)* [1-9][0-9]*$' "$1" | head -n 3)
	[ -z "$bad" ] || fail "not folded: $bad"
}

# assert_chain FILE CHAIN COMM MIN_PERCENT: that much of what COMM did, or more, has a user stack
# that ends with CHAIN.
assert_chain() {
	local got whole
	whole=$(folded_comm "$1" "$3")
	[ "$whole" -gt 0 ] || fail "no samples of $3: $(cut -d';' -f1 "$1" | sort | uniq -c | head)"
	got=$(percent "$(folded_exact "$1" "$2" "$3")" "$whole")
	awk -v v="$got" -v min="$4" 'BEGIN { exit !(v >= min) }' ||
		fail "$2: $got % of $whole samples of $3, not $4 % or more: $(folded_top "$1" "$3")"
}

# assert_count_matches SAMPLES CPU_MS HZ: sampling missed or invented little. On a machine where
# others want the CPUs, each switch costs a part of a period: perf, too, then counts up to a fifth less.
assert_count_matches() {
	local expected=$(($2 * $3 / 1000))
	assert_between "$1" $((expected * 72 / 100 - 5)) $((expected * 115 / 100 + 5)) \
		"samples for $2 ms of CPU time at $3 Hz"
}
