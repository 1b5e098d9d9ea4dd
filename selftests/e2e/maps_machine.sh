#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# vmaprof maps of every process on this machine equals /proc/PID/maps.
# shellcheck source=selftests/e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh" || exit 1

need python3

# something of ours that runs and something that sleeps, besides what the machine has
start threads
start churn
stop "$WL_PID" # what changes all the time cannot be compared
start zombie

python3 "$E2E/compare_maps.py" "$VMAPROF" all || fail "maps differ"
