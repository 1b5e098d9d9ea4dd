#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# vmaprof doctor: text, JSON and exit codes, with and without privileges.
set -u

vmaprof=${VMAPROF:-build/vmaprof}
tmp=${TMPDIR:-/tmp}

fail() {
	echo "FAIL: $*"
	exit 1
}

skip() {
	echo "SKIP: $*"
	exit 77
}

[ "$(id -u)" = 0 ] || skip "needs root"
for tool in jq setpriv; do
	command -v $tool >/dev/null || skip "needs $tool"
done

# With privileges.
"$vmaprof" doctor --json >"$tmp/root.json" || fail "doctor --json as root: exit $?"
jq -es 'length == 1' "$tmp/root.json" >/dev/null || fail "not one JSON object"
jq -e --arg kernel "$(uname -r)" '
	.kernel == $kernel and .ok == true and (.privileges.missing | type) == "array" and
	(.privileges.held | index("CAP_BPF") and index("CAP_PERFMON")) and
	(.features | length > 15) and
	([.features[] | select(
		(.name | type == "string" and length > 0) and (.present | type == "boolean") and
		(.without | type == "string") and (.hint | type == "string"))] | length) ==
		(.features | length) and
	([.features[].name] | unique | length) == (.features | length)' \
	"$tmp/root.json" >/dev/null || fail "JSON: $(cat "$tmp/root.json")"
for name in btf bpf_find_vma bpf_loop iter_task_vma ringbuf; do
	jq -e --arg name $name '.features[] | select(.name == $name) | .present' \
		"$tmp/root.json" >/dev/null || fail "$name is not present"
done

"$vmaprof" doctor >"$tmp/root.txt" 2>"$tmp/root.err" || fail "doctor as root: exit $?"
[ -s "$tmp/root.err" ] && fail "stderr: $(cat "$tmp/root.err")"
grep -q '^vmaprof record works here' "$tmp/root.txt" || fail "no verdict: $(cat "$tmp/root.txt")"
grep -q $'\e' "$tmp/root.txt" && fail "colours in a file"
[ "$(wc -L <"$tmp/root.txt")" -le 100 ] || fail "lines longer than 100 columns"

# A missing feature says what is lost and how to get it.
jq -r '.features[] | select(.present | not) | .without' "$tmp/root.json" >"$tmp/lost"
while read -r lost; do
	grep -qF -- "$lost" "$tmp/root.txt" || fail "text does not say: $lost"
done <"$tmp/lost"

# Without privileges. A copy, as nobody may be unable to enter the build directory.
dir=$(mktemp -d /tmp/vmaprof-doctor.XXXXXX) || fail "mktemp"
trap 'rm -rf "$dir"' EXIT
chmod 755 "$dir"
cp "$vmaprof" "$dir/vmaprof"

as_nobody() {
	(cd / && setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all \
		--bounding-set=-all "$dir/vmaprof" "$@")
}

as_nobody doctor >"$tmp/nobody.txt" 2>"$tmp/nobody.err"
[ $? = 1 ] || fail "without capabilities: exit is not 1"
[ -s "$tmp/nobody.err" ] && fail "stderr: $(cat "$tmp/nobody.err")"
grep -q 'does not work here: missing CAP_BPF, CAP_PERFMON' "$tmp/nobody.txt" ||
	fail "does not name what is missing: $(cat "$tmp/nobody.txt")"
grep -q "sudo setcap cap_bpf,cap_perfmon[a-z_,]*+ep $dir/vmaprof" "$tmp/nobody.txt" ||
	fail "does not name the command: $(cat "$tmp/nobody.txt")"

as_nobody doctor --json >"$tmp/nobody.json"
[ $? = 1 ] || fail "--json without capabilities: exit is not 1"
jq -e '.ok == false and .privileges.held == [] and
	(.privileges.missing | index("CAP_BPF") != null and index("CAP_PERFMON") != null)' \
	"$tmp/nobody.json" >/dev/null || fail "JSON: $(cat "$tmp/nobody.json")"

# What setcap is told to grant is enough, unless perf_event_paranoid (which is not ours to lower)
# asks for CAP_SYS_ADMIN. File capabilities need a file system that has them.
command_line=$(grep -o 'setcap cap_[^ ]* ' "$tmp/nobody.txt")
caps=${command_line#setcap }
if [ "$(cat /proc/sys/kernel/perf_event_paranoid)" -le 2 ] && command -v setcap >/dev/null &&
	setcap "${caps% }" "$dir/vmaprof" 2>/dev/null &&
	setpriv --reuid=65534 --regid=65534 --clear-groups "$dir/vmaprof" doctor --help >/dev/null 2>&1; then
	(cd / && setpriv --reuid=65534 --regid=65534 --clear-groups "$dir/vmaprof" doctor) \
		>"$tmp/setcap.txt" || fail "with file capabilities: $(cat "$tmp/setcap.txt")"
fi

# Usage.
"$vmaprof" doctor --help | grep -q '^Usage: vmaprof doctor' || fail "--help"
for bad in --bogus -x extra --json=1; do
	"$vmaprof" doctor "$bad" >"$tmp/bad.out" 2>"$tmp/bad.err"
	[ $? = 2 ] || fail "$bad: exit is not 2"
	grep -q '^vmaprof: doctor: ' "$tmp/bad.err" || fail "$bad: $(cat "$tmp/bad.err")"
	[ -s "$tmp/bad.out" ] && fail "$bad wrote to standard output"
done

exit 0
