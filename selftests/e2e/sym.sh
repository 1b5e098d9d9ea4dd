#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# vmaprof sym: the command line, a live process, and this program against llvm-symbolizer.
# shellcheck source=selftests/e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh" || exit 1

need python3 jq gcc llvm-symbolizer nm

cd "$TMPDIR" || exit 1
cat >one.c <<'END'
static inline int twice(int n) { asm volatile(".globl inner\ninner: nop"); return 2 * n; }
__attribute__((noinline)) int entry(int n)
{
	asm volatile("nop");
	return twice(n) + 1;
}
int main(int argc, char **argv) { return entry(argc); }
END
gcc -O2 -g one.c -o one || fail "cannot build"
entry=0x$(nm one | awk '$3 == "entry" { print $1 }')
inner=0x$(nm one | awk '$3 == "inner" { print $1 }')

# Text as addr2line -a -f -i -p has it, one answer an address, in their order.
vp_ok sym -e one "$entry" "$inner" 0
sed 's/ (.*: .*//' "$OUT" >text
printf '%s\n' "$entry: entry at $TMPDIR/one.c:4" "$inner: twice at $TMPDIR/one.c:1" \
	" (inlined by) entry at $TMPDIR/one.c:5" "0x0000000000000000: ?? at ??:?" | cmp -s - text ||
	fail "$(cat "$OUT")"

# JSON: every key, null where there is nothing.
vp_ok sym --json -e one "$entry" 0
jq -es 'length == 2' "$OUT" >/dev/null || fail "not two objects: $(cat "$OUT")"
jq -es --arg addr "0x$(printf %x "$entry")" --arg dir "$TMPDIR" '.[0] |
	.addr == $addr and .module == $dir + "/one" and (.build_id | test("^[0-9a-f]{40}$")) and
	.reason == null and (.frames | length > 0) and
	(.frames[-1] | .function == "entry" and .file == $dir + "/one.c" and .inlined == false and
	 .source == "dwarf" and .offset == 0 and (.line | type) == "number")' "$OUT" >/dev/null ||
	fail "$(cat "$OUT")"
jq -es '.[1] | .frames == [] and (.reason | length > 0) and has("module") and has("build_id")' \
	"$OUT" >/dev/null || fail "$(cat "$OUT")"

# Standard input: the same answers, blank lines are none, and each comes before the next question.
printf '%s\n\n  %s\n' "$entry" 0 | "$VMAPROF" sym --json -e one >input.json || fail "from input"
cmp -s "$OUT" input.json || fail "input differs: $(diff "$OUT" input.json)"
coproc SYM { "$VMAPROF" sym -e one; }
for ((i = 0; i < 3; i++)); do
	echo "$inner" >&"${SYM[1]}"
	read -r -t 20 line <&"${SYM[0]}" || fail "no answer to question $i"
	[[ $line == "0x"*" at $TMPDIR/one.c:"* ]] || fail "answer $i: $line"
	read -r -t 20 _ <&"${SYM[0]}" || fail "no second line of answer $i"
done
# shellcheck disable=SC2153  # the shell's
sym_in=${SYM[1]} sym_pid=$SYM_PID
exec {sym_in}>&-
wait "$sym_pid"

# Errors: one line and the exit code.
printf 'zebra\n' | "$VMAPROF" sym -e one >"$OUT" 2>"$ERR"
STATUS=$?
assert_error 2 zebra
printf '%s\nzebra\n' "$entry" | "$VMAPROF" sym -e one >text 2>"$ERR"
grep -q ': entry at ' text || fail "no answer to what came before a wrong word: $(cat text "$ERR")"
vp sym -e one zebra
assert_error 2 zebra
vp sym 0x1000
assert_error 2 '-e'
vp sym -e one -p 1 0x1000
assert_error 2 'not both'
vp sym -e "$TMPDIR/none" 0x1000
assert_error 1 none
vp sym -e one.c 0x1000
assert_error 1 ELF
mkfifo fifo
vp sym -e fifo 0x1000
assert_error 1 fifo
vp sym -p 999999999 0x1000
assert_error 1 999999999

# A live process: as its file says, also when that is deleted, and the kernel's addresses.
cp "$WORKLOADS/chain" ./chain-copy
built=$WORKLOADS WORKLOADS=$TMPDIR
start chain-copy
WORKLOADS=$built
pid=$WL_PID
base=$(awk '/r-xp .*chain-copy$/ { sub(/-.*/, ""); print; exit }' "/proc/$pid/maps")
offset=$(awk '/r-xp .*chain-copy$/ { print $3; exit }' "/proc/$pid/maps")
addrs=$(nm ./chain-copy | awk '$2 == "T" || $2 == "t" { print $1, $3 }' | grep -v ' _')
load=$(readelf -lW ./chain-copy | awk '$1 == "LOAD" && /R E/ { print $2, $3; exit }')
read -r load_offset load_vaddr <<<"$load"
while read -r addr name; do
	live=$((0x$base - 0x$offset + 0x$addr - load_vaddr + load_offset))
	printf '0x%x\n' $live >>live.in
	echo "0x$addr" >>file.in
	echo "$name" >>names
done <<<"$addrs"
rm chain-copy
"$VMAPROF" sym --json -p "$pid" - <live.in >live.json || fail "-p: exit $?"
"$VMAPROF" sym --json -e "$WORKLOADS/chain" <file.in >file.json || fail "-e: exit $?"
jq -c '[.frames[] | .function, .file, .line]' live.json >live.frames
jq -c '[.frames[] | .function, .file, .line]' file.json >file.frames
cmp -s live.frames file.frames || fail "of the process: $(diff live.frames file.frames)"
jq -r '.frames[-1].function' live.json | cmp -s - names || fail "$(jq -c . live.json)"
jq -es 'all(.module | endswith("/chain-copy"))' live.json >/dev/null || fail "$(cat live.json)"
vdso=$(awk '/\[vdso\]$/ { sub(/-.*/, ""); print }' "/proc/$pid/maps")
getcpu=$(python3 -c 'print("%x" % (int("'"$vdso"'", 16) + 0x10))')
vp_ok sym --json -p "$pid" "$getcpu" 0
jq -es '.[0].module == "[vdso]" and .[1].reason != null' "$OUT" >/dev/null || fail "$(cat "$OUT")"
text=$(awk '$3 == "_text" { print $1; exit }' /proc/kallsyms)
if [ -n "$text" ] && [ "$text" != 0000000000000000 ]; then
	vp_ok sym --json -p "$pid" "$text"
	jq -e '.module == "[kernel]" and .frames[0].source == "kallsyms"' "$OUT" >/dev/null ||
		fail "$(cat "$OUT")"
fi

# This program itself; sym_*.sh have others.
python3 "$E2E/compare_sym.py" "$VMAPROF" "$VMAPROF" 10000 || fail "it differs on itself"
