#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# record --inlines: chains and lines as vmaprof sym, llvm-symbolizer and perf have them, of the
# very file that was sampled, wherever its debug information is; without it, names only.
# shellcheck source=selftests/e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh" || exit 1

need gcc g++ jq perf objdump objcopy strip llvm-symbolizer unshare
cd "$TMPDIR" || exit 1

# nest ROUNDS [FILE]: half way, FILE takes its place; "-": it is deleted.
cat >nest.c <<'END'
#include <stdio.h>
#include <stdlib.h>
static volatile unsigned sink;
static inline unsigned c(unsigned n)
{
	for (unsigned i = 0; i < 2000; i++)
		n = n * 1103515245 + sink;
	return n;
}
static inline unsigned b(unsigned n)
{
	return c(n) + 1;
}
__attribute__((noinline)) unsigned a(unsigned n)
{
	n = b(n);
	sink = n;
	return n + 3;
}
static inline unsigned through(unsigned n)
{
	return a(n) * 3;
}
int main(int argc, char **argv)
{
	unsigned n = 1, rounds = atoi(argv[1]);

	for (unsigned i = 0; i < rounds; i++) {
		n += through(n);
		if (i != rounds / 2 || argc < 3)
			continue;
		if (argv[2][0] == '-' ? remove(argv[0]) : rename(argv[2], argv[0]))
			return 1;
	}
	return n == 7;
}
END
cat >sum.cc <<'END'
#include <vector>
static volatile double sink;
template <class T> struct Sum {
	T value{};
	void add(T x) { value += scale(x); }
	static T scale(T x) { return x * T(0.5) + T(sink); }
};
__attribute__((noinline)) void fill(Sum<double> &s, const std::vector<double> &v)
{
	for (double x : v)
		s.add(x);
}
int main()
{
	std::vector<double> v(1000, 0.25);
	Sum<double> s;

	for (int i = 0; i < 300000; i++)
		fill(s, v);
	return s.value == 7;
}
END
gcc -O2 -g -fpie -pie nest.c -o nest || fail "cannot build"
gcc -O2 -g -fpie -pie -Db=other_b -Dc=other_c nest.c -o other || fail "cannot build"
g++ -O2 -g -fpie -pie sum.cc -o sum || fail "cannot build"
rounds=200000
whole='main;through_[i];a;b_[i];c_[i]'

# record OUTPUT OPTION…
record() {
	local output=$1
	shift
	vp_ok record -F 499 -o "$output" "$@"
}

# no_inlines FILE: no frame of the program is an inlined one
no_inlines() {
	assert_folded "$1"
	assert_chain "$1" 'main;a' nest 90
}

# Inlined into main, and two deep into a; one program of C++; names only is the default.
record x.folded --inlines -- ./nest $rounds
assert_folded x.folded
assert_chain x.folded "$whole" nest 90
grep -q -E '^inlined calls: .* by debug information of [0-9]+ file' "$ERR" || fail "says nothing of inlined calls"
grep -q -E '% +c +\(nest, inlined\)$' "$ERR" || fail "c is not among the hottest"
record names.folded -- ./nest $rounds
no_inlines names.folded
grep -q -F '_[i]' names.folded && fail "inlined calls that were not asked for"
record sum.folded --inlines -- ./sum
assert_folded sum.folded

# chains FILE FUNCTION: of each instruction, as folded, by vmaprof sym and by llvm-symbolizer
chains() {
	objdump -d --no-show-raw-insn "--disassemble=$2" "$1" |
		sed -n 's/^ *\([0-9a-f]*\):\t.*/0x\1/p' >addresses
	[ -s addresses ] || fail "no instructions of $2"
	"$VMAPROF" sym --json -e "$1" <addresses |
		jq -r '[.frames[] | .function + (if .inlined then "_[i]" else "" end)] | reverse | join(";")' |
		sort -u >sym.chains
	llvm-symbolizer -e "$1" <addresses | awk -v RS= -F'\n' '{
		line = $(NF - 1)
		for (i = NF - 3; i > 0; i -= 2)
			line = line ";" $i "_[i]"
		print line
	}' | sort -u >llvm.chains
	cmp -s sym.chains llvm.chains || fail "$1: sym and llvm-symbolizer: $(diff sym.chains llvm.chains)"
}

# recorded FILE PATTERN: chains that begin where PATTERN does, below main, without the kernel's part
recorded() {
	grep ';main;' "$1" | sed -E 's/ [0-9]+$//; s/(;[^;]*_\[k\])+$//' | grep -o "$2" | sort -u
}

chains nest a
[ "$(grep -c . sym.chains)" = 3 ] || fail "not three chains: $(cat sym.chains)"
recorded x.folded '\ba\(;.*\|$\)' | comm -23 - sym.chains >unknown
[ ! -s unknown ] || fail "recorded, but not known to sym: $(cat unknown)"
mangled=$(nm sum | awk '$3 ~ /fill/ { print $3 }')
chains sum "$mangled"
grep -q -F ';Sum<double>::add(double)_[i];Sum<double>::scale(double)_[i]' sym.chains || fail "$(cat sym.chains)"
recorded sum.folded 'fill(.*' >got
comm -23 got sym.chains >unknown
[ ! -s unknown ] || fail "recorded, but not known to sym: $(cat unknown)"
grep -q -F '_[i]' got || fail "no inlined call of sum: $(cat got)"

# HTML: one frame for each function, with its lines.
record x.html --inlines -- ./nest $rounds
sed -n '/<script type="application\/json" id="data">/,/<\/script>/p' x.html | sed '1d;$d' >data.json
sed -i 's/<\/script>.*//' data.json
jq -e --arg file "$TMPDIR/nest.c" '. as $r |
	[range(.names | length) | select($r.kinds[.:. + 1] == "3" and $r.names[.] == "c")] as $c |
	[range(.names | length) | select($r.kinds[.:. + 1] == "0" and $r.names[.] == "a")] as $a |
	($c | length) == 1 and ($a | length) == 1 and
	($r.lines[$c[0] | tostring] | ($r.files[.[1]] == $file) and (.[2] == 7 or .[2] == 6) and .[3] <= .[0]) and
	($r.lines[$a[0] | tostring] | .[2] == 16)' data.json >/dev/null || fail "$(head -c 3000 data.json)"

# perf unwinds its own recording with the same chain. Of ours it shows the same lines: what the
# addresses in a .data file are inlined in it does not look up.
perf=(perf --buildid-dir "$TMPDIR/cache")
"${perf[@]}" record -q -e cpu-clock -F 499 --call-graph dwarf,1024 -o perf.data ./nest $rounds 2>perf.err ||
	fail "perf record: $(cat perf.err)"
"${perf[@]}" script -i perf.data -F comm,ip,sym,dso 2>perf.err | awk -f "$E2E/fold_perf.awk" >perf.folded
assert_chain perf.folded "$whole" nest 90
record x.data --inlines -- ./nest $rounds
grep -q 'inlined calls are in .html and .folded' "$ERR" || fail "does not say what .data cannot hold"
grep -q -E '% +c +\(nest, inlined\)$' "$ERR" || fail "c is not among the hottest of x.data"
"${perf[@]}" script -i x.data -F ip,sym,srcline 2>perf.err |
	awk '$2 == "a" || $2 == "main" { ip = $1; getline; print "0x" ip, $1 }' | sort -u >perf.lines
[ "$(wc -l <perf.lines)" -gt 2 ] || fail "perf shows no lines of x.data: $(cat perf.err)"
cut -d' ' -f1 perf.lines | "$VMAPROF" sym --json -e nest |
	jq -r '.frames[0] | (.file | sub(".*/"; "")) + ":" + (.line | tostring)' >sym.lines
cut -d' ' -f2 perf.lines | cmp -s - sym.lines || fail "lines differ: $(paste perf.lines sym.lines)"

# Debug information in a file of its own.
cp nest whole
objcopy --only-keep-debug whole nest.debug || fail "objcopy"
strip whole -o nest || fail "strip"
objcopy --add-gnu-debuglink=nest.debug nest || fail "objcopy"
record x.folded --inlines -- ./nest $rounds
assert_chain x.folded "$whole" nest 90

# No debug information: as without --inlines.
rm nest.debug
strip -g whole -o nest || fail "strip"
record x.folded --inlines -- ./nest $rounds
no_inlines x.folded

# Replaced or deleted while it is recorded: what the process has, whole. Symbols have been read
# before, or else the file is still there for who has it mapped.
cp whole nest
cp other other.new
record x.folded --inlines -- ./nest $rounds other.new
[ ! -e other.new ] || fail "was not replaced"
assert_folded x.folded
grep other x.folded && fail "names of the other file"
assert_chain x.folded "$whole" nest 90
cp whole nest
record x.folded --inlines -- ./nest $rounds -
[ ! -e nest ] || fail "was not deleted"
assert_folded x.folded
assert_chain x.folded "$whole" nest 90
! grep -q 'could not be opened any more' "$ERR" || fail "lost debug information"

# Replaced before: the file that the process has.
cp whole nest
start_as sh -c 'echo READY pid=$$; exec ./nest 2000000000'
until [ "$(readlink "/proc/$WL_PID/exe")" = "$TMPDIR/nest" ]; do
	[ -d "/proc/$WL_PID" ] || fail "nest ended: $(cat "$WL_OUT")"
	sleep 0.02
done
cp other other.new
mv other.new nest
record x.folded --inlines -p "$WL_PID" --duration 0.5
assert_chain x.folded "$whole" nest 90
stop "$WL_PID"

# Of another root, with its debug file, and gone with its process before the report is made.
gcc -O2 -g -static nest.c -o whole || fail "cannot build"
mkdir -p root/bin
objcopy --only-keep-debug whole root/bin/nest.debug || fail "objcopy"
strip whole -o root/bin/nest || fail "strip"
objcopy --add-gnu-debuglink=root/bin/nest.debug root/bin/nest || fail "objcopy"
record x.folded --inlines -- unshare -m -p -f chroot "$TMPDIR/root" /bin/nest $rounds
assert_folded x.folded
assert_chain x.folded "$whole" nest 90
