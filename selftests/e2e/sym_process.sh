#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# vmaprof sym -p: what no file says. Code made at run time, the vdso, [vsyscall], stubs, the kernel, BPF.
# shellcheck source=selftests/e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh" || exit 1

need jq gcc clang lli perf objdump nm

cd "$TMPDIR" || exit 1

# sym PID ADDR…: to $OUT, a line each: MODULE FUNCTION+OFFSET FILE:LINE SOURCE REASON
sym() {
	local pid=$1
	shift
	vp_ok sym --json -p "$pid" "$@"
	jq -r '"\(.module) \(.frames[-1].function // "none")+\(.frames[-1].offset // 0) " +
		"\(.frames[-1].file // "none"):\(.frames[-1].line // 0) " +
		"\(.frames[-1].source // "none") \(.reason // "named")"' "$OUT" >answers || fail "$(cat "$OUT")"
}

# answer N: the nth of them
answer() {
	sed -n "$1p" answers
}

# assert_answer N REGEX
assert_answer() {
	[[ $(answer "$1") =~ ^$2$ ]] || fail "answer $1: $(answer "$1"), not $2"
}

# plus ADDR N
plus() {
	printf '0x%x' $(($1 + $2))
}

# ---- code made at run time ----

nothing='code made at run time, which no perf map or jitdump names'
for mode in map dump memfd; do
	start jit_names "$mode"
	page=$(ready_value page)
	on_exit rm -f "/tmp/perf-$WL_PID.map"
	sym "$WL_PID" "$page" "$(plus "$page" 5)" "$(plus "$page" 0x108)" "$(plus "$page" 0x200)"
	module='\[jit\]' source=perf_map at=none:0 at5=none:0
	[ $mode != memfd ] || module=/memfd:jit-names
	[ $mode != dump ] || source=jitdump at=/made/first.src:7 at5=/made/first.src:8
	assert_answer 1 "$module made_first\+0 $at $source named"
	assert_answer 2 "$module made_first\+5 $at5 $source named"
	assert_answer 3 "$module made_second\+8 none:0 $source named"
	assert_answer 4 "$module none\+0 none:0 none $nothing"
	stop "$WL_PID"
done
start jit_names none
sym "$WL_PID" "$(ready_value page)"
assert_answer 1 "\[jit\] none\+0 none:0 none $nothing"
vp_ok sym -p "$WL_PID" "$(ready_value page)"
grep -q -x "0x[0-9a-f]*: ?? at ??:? (\[jit\]: $nothing)" "$OUT" || fail "$(cat "$OUT")"

# What is told while it is asked: each answer knows of what was told before its question.
map=/tmp/perf-$WL_PID.map
on_exit rm -f "$map"
coproc SYM { "$VMAPROF" sym -p "$WL_PID"; }
# shellcheck disable=SC2153  # the shell's
sym_in=${SYM[1]} sym_out=${SYM[0]} sym_pid=$SYM_PID
for name in first second third; do
	echo "$(ready_value page | sed s/0x//) 80 made_$name" >>"$map"
	ready_value page >&"$sym_in"
	read -r -t 20 line <&"$sym_out" || fail "no answer"
	[[ $line == "0x"*": made_$name at "* ]] || fail "$line, not made_$name"
done
exec {sym_in}>&-
wait "$sym_pid"
stop "$WL_PID"

# A real JIT that tells of lines: LLVM's. An inlined call is told by its lines alone.
cat >jitted.c <<'END_C'
#include <stdio.h>
static inline __attribute__((always_inline)) int step(int s, int i)
{
	return s * 31 + i;
}
__attribute__((noinline)) int made_hot(int n)
{
	int s = 0;
	for (int i = 0; i < n; i++)
		s = step(s, i);
	return s;
}
int main(void)
{
	volatile int x = 0;
	puts("READY lli");
	fflush(stdout);
	for (;;)
		x += made_hot(1000 + (x & 7));
}
END_C
clang -g -O1 -emit-llvm -c jitted.c -o jitted.bc || fail "cannot build"
mkdir dumps
start_as env JITDUMPDIR="$TMPDIR/dumps" lli --jit-kind=mcjit jitted.bc
if [ -n "$(find dumps -name '*.dump')" ]; then
	vp_ok record -p "$WL_PID" -F 499 --duration 0.5 -o hot.folded
	! grep -q 'no unwind rows for .*\.dump' "$ERR" || fail "rows of a jitdump: $(cat "$ERR")"
	assert_chain hot.folded made_hot_[j] "$(cut -d';' -f1 hot.folded | sort | uniq -c | sort -rn |
		awk 'NR == 1 { print $2 }')" 80
	# where it spins, as perf's records tell
	vp_ok record -p "$WL_PID" -F 499 --duration 0.5 -o hot.data
	perf script -i hot.data -F ip 2>/dev/null | awk 'NF == 1 && !/^ *ffff/ { print $1 }' |
		sort -u >ips
	"$VMAPROF" sym --json -p "$WL_PID" - <ips >lines.json || fail "sym: exit $?"
	jq -r 'select(.frames != []) | .frames[0] | select(.function == "made_hot") |
		"\(.file):\(.line) \(.source)"' lines.json | sort -u >lines
	grep -q -x "$TMPDIR/jitted.c:4 jitdump" lines || fail "not in the inlined call: $(cat lines)"
	! grep -v -x "$TMPDIR/jitted.c:\(4\|9\|10\|11\) jitdump" lines || fail "other lines"
fi
stop "$WL_PID"

# ---- the kernel's own pages in a process ----

start chain
vdso=0x$(awk '/\[vdso\]$/ { sub(/-.*/, ""); print }' "/proc/$WL_PID/maps")
dd if="/proc/$WL_PID/mem" of=vdso.so bs=4096 skip=$((vdso / 4096)) count=2 status=none || fail "no vdso"
read -r value name < <(nm -D vdso.so | awk '$2 == "T" { print "0x" $1, $3; exit }')
sym "$WL_PID" "$(plus "$vdso" "$value")" 0xffffffffff600000
assert_answer 1 "\[vdso\] ${name%%@*}\+0 none:0 vdso named"
! grep -q '\[vsyscall\]' "/proc/$WL_PID/maps" ||
	assert_answer 2 "\[vsyscall\] none\+0 none:0 none the kernel's own page in the process"

# 32-bit programs have another vdso.
cat >short.c <<'END_C'
void _start(void)
{
	static const char ready[] = "READY 32\n";
	int n;
	asm volatile("int $0x80" : "=a"(n) : "0"(4), "b"(1), "c"(ready), "d"(9) : "memory");
	for (;;)
		asm volatile("int $0x80" : "=a"(n) : "0"(29) : "memory"); /* pause */
}
END_C
if gcc -m32 -O1 -nostdlib -static -fno-pie -no-pie short.c -o short 2>/dev/null && start_as ./short; then
	vdso=0x$(awk '/\[vdso\]$/ { sub(/-.*/, ""); print }' "/proc/$WL_PID/maps")
	if [ "$vdso" != 0x ]; then
		sym "$WL_PID" "$(plus "$vdso" 0x820)"
		assert_answer 1 "\[vdso\] none\+0 none:0 none the vdso of 32-bit programs,.*"
	fi
	stop "$WL_PID"
fi

# ---- stubs ----

cat >stub.c <<'END_C'
#include <stdio.h>
#include <unistd.h>
int main(void)
{
	puts("READY stub");
	fflush(stdout);
	for (;;)
		pause();
}
END_C
gcc -O1 -no-pie -Wl,-z,lazy stub.c -o stub || fail "cannot build"
start_as ./stub
at=0x$(objdump -d stub | sed -n 's/^0*\([0-9a-f]*\) <fflush@plt>:$/\1/p')
[ "$at" != 0x ] || fail "no stub: $(objdump -d stub | grep @plt)"
sym "$WL_PID" "$at" "$(plus "$at" 4)"
assert_answer 1 "$TMPDIR/stub fflush@plt\+0 none:0 plt named"
assert_answer 2 "$TMPDIR/stub fflush@plt\+4 none:0 plt named"
stop "$WL_PID"

# ---- the kernel ----

start chain
pid=$WL_PID
read -r text name < <(awk '$2 == "T" && $3 == "vfs_read" { print "0x" $1, $3 }' /proc/kallsyms)
if [ -n "$text" ] && [ "$text" != 0x0000000000000000 ]; then
	sym "$pid" "$text" "$(plus "$text" 3)"
	assert_answer 1 "\[kernel\] $name\+0 .*:[0-9]+ (kallsyms|dwarf) named"
	assert_answer 2 "\[kernel\] $name\+3 .*:[0-9]+ (kallsyms|dwarf) named"
	[ ! -r /sys/kernel/notes ] || jq -e '.build_id | test("^[0-9a-f]{40}$")' "$OUT" >/dev/null ||
		fail "no build id: $(cat "$OUT")"
fi

# BPF programs: those of a recording.
start_vp record -a -o "$TMPDIR/x.folded"
wait_until 30 grep -q sampling "$ERR"
program=$(awk '$3 ~ /^bpf_prog_/ && $4 == "[bpf]" && $1 !~ /^0*$/ { print "0x" $1, $3; exit }' /proc/kallsyms)
if [ -n "$program" ]; then
	sym "$pid" "${program% *}"
	assert_answer 1 "\[bpf\] ${program#* }\+0 none:0 kallsyms named"
fi
kill -INT "$VP_PID"
wait_vp

# Addresses that are hidden, and one where nothing is.
setting=/proc/sys/kernel/kptr_restrict
before=$(cat "$setting")
on_exit eval "echo $before >$setting"
echo 2 >"$setting"
vp sym --json -p "$pid" "${text:-0xffffffff81000000}"
echo "$before" >"$setting"
[ "$STATUS" = 0 ] || fail "hidden: exit $STATUS"
jq -e '.module == "[kernel]" and .frames == [] and (.reason | test("kptr_restrict"))' "$OUT" >/dev/null ||
	fail "hidden: $(cat "$OUT")"
sym "$pid" 0x10
assert_answer 1 'null none\+0 none:0 none nothing is mapped there'
