#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Mapping records in perf.data: each precedes the samples that need it, and none is there twice.
# shellcheck source=selftests/e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh" || exit 1

need perf python3
data=$TMPDIR/x.data

# record WHAT ARGUMENT…
record() {
	local what=$1
	shift
	vp_ok record -F 499 -o "$data" "$@"
	python3 "$E2E/check_records.py" "$data" || fail "$what"
}

# what existed before
start threads
threads=$WL_PID
start recurse 100
record "processes that existed" -p "$threads,$WL_PID" --duration 1
stop "$threads" "$WL_PID"

# what came while it ran: an exec, a fork, short lives, a library, a page of code
record "a command" -- "$WORKLOADS/chain" 0.5
record "an exec" -- "$WORKLOADS/execer" 0.3
record "forks" -- "$WORKLOADS/forker" 2 0.3
record "short lives" -- "$WORKLOADS/short" --spawn 5 30
record "a library" -- "$WORKLOADS/dlhost" 0.3 1 plugin_a
record "code made at run time" -- "$WORKLOADS/jit" both 0.5
