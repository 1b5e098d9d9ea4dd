# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Functions, lines and inlined calls of programs built in many ways, 10,000 addresses each, against
# llvm-symbolizer and others. What differs is explained in sym-differences. A test sources this behind
# lib.sh and gives compare_builds a table:
#
#     NAME | ORACLES | how to build prog in a directory that has the sources
#
# behind a + in the directory of the row before, from what that left. There a file `whole` is what nm
# is asked of instead of prog, `asked` what the oracles are, and `twin` has the same code: what
# llvm-symbolizer says of it counts as a witness.

COUNT=10000
# of eu-addr2line, which needs 2 ms an address
EU_COUNT=1000
cd "$TMPDIR" || exit 1
mkdir src
cd src || exit 1
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

cat >main.rs <<'END'
use std::collections::HashMap;
use std::fmt::Display;
trait Shape { fn area(&self) -> u64; }
struct Square(u64);
impl Shape for Square {
    #[inline(never)]
    fn area(&self) -> u64 { self.0 * self.0 }
}
fn join<T: Display>(v: &[T]) -> String {
    v.iter().map(|x| format!("<{}>", x)).collect::<Vec<_>>().join(",")
}
fn main() {
    let mut m: HashMap<String, u64> = HashMap::new();
    for (i, a) in std::env::args().enumerate() {
        *m.entry(a).or_insert(0) += Square(i as u64).area();
    }
    let mut v: Vec<u64> = m.values().cloned().collect();
    v.sort();
    println!("{} {:?}", join(&v), m);
}
END
cat >main.go <<'END'
package main

import (
	"fmt"
	"os"
	"sort"
	"strings"
)

type shape interface{ area() int }
type square struct{ side int }

func (s *square) area() int { return twice(s.side) * s.side }
func twice(n int) int       { return 2 * n }
func main() {
	m := map[string]int{}
	for i, a := range os.Args {
		var s shape = &square{i}
		m[strings.ToUpper(a)] += s.area()
	}
	keys := make([]string, 0)
	for k := range m {
		keys = append(keys, k)
	}
	sort.Slice(keys, func(i, j int) bool { return keys[i] < keys[j] })
	func() { fmt.Println(keys, m) }()
}
END
# code far from where it is in the file, and in two segments of its own
cat >apart.ld <<'END'
PHDRS { headers PT_LOAD FLAGS(4); one PT_LOAD FLAGS(5); two PT_LOAD FLAGS(5); data PT_LOAD FLAGS(6); }
SECTIONS
{
	. = 0x10000000;
	.rodata : { *(.rodata*) *(.eh_frame*) } :headers
	. = 0x20345000;
	.text : { *(.text .text.*_startup .text.startup*) } :one
	. = 0x77777000;
	.text.far : { *(.text.*) } :two
	. = 0x90000000;
	.data : { *(.data*) *(.bss*) } :data
}
END
cat >apart.c <<'END'
static volatile int sink;
static inline int twice(int n) { return 2 * n + sink; }
__attribute__((section(".text.far"), noinline)) int far_away(int n)
{
	for (int i = 0; i < n; i++)
		sink += twice(i) - twice(twice(n));
	return twice(n);
}
__attribute__((noinline)) int near(int n) { return far_away(n) + twice(n); }
void _start(void) { sink = near(7) + twice(sink); __builtin_trap(); }
END
cd ..

# cxx CC FLAG…: prog, of the three sources
cxx() {
	local cc=$1 cxx=g++
	shift
	[ "$cc" = gcc ] || cxx=clang++
	"$cc" "$@" -c c.c -o c.o && "$cxx" "$@" -c a.cc -o a.o && "$cxx" "$@" -c b.cc -o b.o &&
		"$cxx" "$@" a.o b.o c.o -o prog
}

# one ROW: builds and compares in the current directory
one() {
	local name oracles command oracle count
	IFS='|' read -r name oracles command <<<"${1#+}"
	name=${name// /}
	if ! eval "$command" >log 2>&1; then
		echo "$name: cannot build"
		cat log
		return 1
	fi
	local options=(--as "$name")
	[ ! -e whole ] || options+=(--symbols whole)
	[ ! -e asked ] || options+=(--asked asked)
	[ ! -e twin ] || options+=(--twin twin)
	for oracle in $oracles; do
		count=$COUNT
		[ "$oracle" != eu ] || count=$EU_COUNT
		python3 "$E2E/compare_sym.py" "$VMAPROF" prog $count "${options[@]}" \
			--oracle "$oracle" || return
	done
}

# group NUMBER ROW…: in a directory of its own, where `passed` is left if all of them do
group() {
	local row
	cp -r src "group$1" && cd "group$1" || return
	shift
	for row; do
		one "$row" || return
	done >said 2>&1
	touch passed
}

# As many at a time as there are CPUs. Of compare_builds: rows and number.
start_group() {
	[ ${#rows[@]} -gt 0 ] || return
	group "$number" "${rows[@]}" &
	rows=()
	number=$((number + 1))
	while [ "$(jobs -rp | wc -l)" -ge "$(nproc)" ]; do
		wait -n
	done
}

# compare_builds: the rows are read from standard input
compare_builds() {
	local row i number=0 failed=0 rows=()
	while read -r row; do
		case $row in
		+*) ;;
		*) start_group ;;
		esac
		rows+=("$row")
	done
	start_group
	wait
	for ((i = 0; i < number; i++)); do
		cat "group$i/said"
		[ -e "group$i/passed" ] || failed=$((failed + 1))
	done
	[ $failed -eq 0 ] || fail "$failed of $number directories, see above"
}
