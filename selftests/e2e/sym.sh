#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# vmaprof sym: the command line, a live process, and files against llvm-symbolizer and eu-addr2line.
# shellcheck source=selftests/e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh" || exit 1

need python3 jq gcc g++ clang llvm-symbolizer llvm-dwp eu-addr2line nm

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

# Builds of a C++ program, each asked for addresses all over it.
cat >a.cc <<'END'
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>
static volatile int sink;
struct Base { virtual ~Base() {} virtual int f(int) = 0; };
struct A : Base {
	std::string s;
	A(int n) : s(n, 'x') {}
	int f(int x) override { return x + s.size(); }
};
static inline int twice(int x) { return x * 2 + sink; }
static inline int quad(int x) { return twice(twice(x)) + twice(sink); }
__attribute__((noinline)) static int checked(int x)
{
	if (x > 1000) {
		std::fprintf(stderr, "bad %d\n", quad(x));
		std::abort();
	}
	return quad(x);
}
template <class T> __attribute__((noinline)) T apply(std::vector<T> &v, T t)
{
	std::sort(v.begin(), v.end());
	for (auto &x : v)
		t += x;
	return t;
}
int more(int);
int main(int c, char **v)
{
	std::map<std::string, int> m;
	std::vector<int> w;
	for (int i = 0; i < c; i++) {
		m[v[i]] = i;
		w.push_back(quad(i));
	}
	auto l = [&](int q) { return checked(q) + (int)m.size(); };
	try {
		A a(c);
		Base *b = &a;
		sink = b->f(l(c)) + apply(w, 3);
		if (sink == 77)
			throw std::runtime_error("x");
	} catch (std::exception &e) {
		std::puts(e.what());
	}
	return more(sink);
}
END
cat >b.cc <<'END'
#include <algorithm>
#include <string>
#include <vector>
extern "C" int plain(int);
struct L { int g(int); };
static inline int half(int x) { return x / 2; }
int L::g(int x)
{
	struct In {
		static __attribute__((noinline)) int deep(int y) { return half(y) + 1; }
	};
	return In::deep(x) + half(x);
}
int more(int x)
{
	std::vector<std::string> v(x & 7, "a");
	std::sort(v.begin(), v.end());
	L l;
	return l.g(x) + v.size() + plain(x);
}
END
cat >c.c <<'END'
static inline int third(int x) { return x / 3; }
int plain(int x) { return x > 3 ? third(x) + third(third(x)) : third(x); }
END

# compare COUNT FILE OPTION…
compare() {
	local count=$1 file=$2
	shift 2
	python3 "$E2E/compare_sym.py" "$VMAPROF" "$file" "$count" "$@" || fail "$file differs"
}

# build_all NAME CC FLAG…: a program of the three
build_all() {
	local name=$1 cc=$2 cxx=g++
	shift 2
	[ "$cc" = gcc ] || cxx=clang++
	"$cc" "$@" -c c.c -o c.o || fail "cannot build c.o of $name"
	"$cxx" "$@" a.cc b.cc c.o -o "$name" || fail "cannot build $name"
}
for cc in gcc clang; do
	for level in 0 1 2 3; do
		build_all "$cc.O$level" $cc -gdwarf-5 "-O$level"
		compare 1000 "$cc.O$level"
	done
	build_all "$cc.dwarf4" $cc -gdwarf-4 -O2
	compare 1000 "$cc.dwarf4"
	for version in 4 5; do
		build_all "$cc.split$version" $cc "-gdwarf-$version" -gsplit-dwarf -O2
		# llvm-symbolizer 14 takes the first list of ranges of a split unit for none
		compare 1000 "$cc.split$version" --allow 20
	done
done
llvm-dwp -e clang.split5 -o clang.split5.dwp || fail "no package"
rm -f ./*.dwo
compare 1000 clang.split5
build_all gcc.lto gcc -g -O2 -flto
build_all gcc.sections gcc -g -O2 -ffunction-sections -Wl,--gc-sections
build_all gcc.zlib gcc -g -O2 -gz=zlib
build_all gcc.nopie gcc -g3 -O2 -no-pie
build_all clang.tables clang -gline-tables-only -O2
for program in gcc.lto gcc.sections gcc.zlib gcc.nopie clang.tables; do
	compare 1000 "$program"
done
# what the program lacks is in its debug file
objcopy --only-keep-debug gcc.O2 gcc.debug || fail "objcopy"
strip gcc.O2 -o gcc.stripped || fail "strip"
objcopy --add-gnu-debuglink=gcc.debug gcc.stripped || fail "objcopy"
compare 1000 gcc.stripped --symbols gcc.O2
# Where eu-addr2line 0.188 differs, llvm-symbolizer and addr2line are with us: it leaves out the
# caller of a call inlined in pieces, or takes another's line, and gives _start the unit before it.
compare 1000 gcc.O2 --oracle eu --allow 30
compare 1000 gcc.dwarf4 --oracle eu --allow 30

# What dwz put into a file for two programs is found there: no answer changes.
if command -v dwz >/dev/null; then
	cp gcc.O2 dwz.a || fail "cp"
	cp gcc.O3 dwz.b || fail "cp"
	dwz -m dwz.common dwz.a dwz.b || fail "dwz"
	objdump -d --no-show-raw-insn dwz.a | sed -n 's/^ *\([0-9a-f]*\):\t.*/\1/p' >dwz.in
	for program in gcc.O2 dwz.a; do
		"$VMAPROF" sym --json -e $program <dwz.in | jq -c .frames >$program.frames
	done
	[ -s dwz.a.frames ] || fail "no answers"
	cmp gcc.O2.frames dwz.a.frames || fail "dwz"
fi

# This program itself.
compare 10000 "$VMAPROF"
