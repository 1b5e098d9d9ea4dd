#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# vmaprof maps of every kind of mapping and of processes in odd states equals /proc/PID/maps.
# shellcheck source=selftests/e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh" || exit 1

need python3

# Three huge pages, if the machine has none to spare.
hugepages=/proc/sys/vm/nr_hugepages
before=$(cat "$hugepages")
on_exit eval "echo $before >$hugepages"
echo $((before + 4)) >"$hugepages"

compare() {
	python3 "$E2E/compare_maps.py" "$VMAPROF" "$@" || fail "maps of $WL_READY differ"
}

mkdir "$TMPDIR/zoo"
start zoo "$TMPDIR/zoo"
zoo=$WL_PID
echo "zoo lacks: $(ready_value missing)"
compare "$zoo"

# names as JSON: what /proc escapes, JSON has in full
vp_ok maps -p "$zoo" --all-maps --json
python3 - "$OUT" "$TMPDIR/zoo" <<'PY' || fail "JSON names"
import json, sys
rows = [json.loads(line) for line in open(sys.argv[1], encoding="utf-8")]
names = {row["name"] for row in rows}
for name in ("two\nlines\n", " a name with  spaces ", "žluťoučký 馬 🐎", "still here (deleted)",
             "back\\slash \\012 \"quoted\" \ttab \x01 ctrl"):
    assert sys.argv[2] + "/" + name in names, name
gone = [row for row in rows if row["name"].startswith(sys.argv[2] + "/gone")]
assert gone and all(row["deleted"] for row in gone), gone
here = [row for row in rows if row["name"].endswith("still here (deleted)")]
assert here and not any(row["deleted"] for row in here), here
assert max(len(name.encode()) for name in names) >= 4085, "path near PATH_MAX"
assert max(row["pgoff"] for row in rows) >= 8 << 40, "offsets above 4 GiB"
PY

start onevma
compare "$WL_PID"
start threads
compare "$WL_PID"
start deleted "$TMPDIR"
compare "$WL_PID"
start memfd_exec
compare "$WL_PID"
start setname 'a;b c
# 1 d'
compare "$WL_PID"

# The leader thread is gone: one copy, under the process's number.
start leader_exit
compare "$WL_PID"
vp_ok maps -p "$WL_PID"
[ "$(grep -c '^# ' "$OUT")" = 1 ] || fail "not one process: $(grep '^# ' "$OUT")"
grep -q 'leader_exit$' "$OUT" || fail "no mapping of the executable"

# Several processes in one call.
vp_ok maps -p "$zoo,$WL_PID" --all-maps
[ "$(grep -a -c '^# ' "$OUT")" = 2 ] || fail "not two processes: $(grep -a '^# ' "$OUT")"
