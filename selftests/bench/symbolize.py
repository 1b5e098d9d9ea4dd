#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""usage: symbolize.py VMAPROF DIRECTORY

10,000 random PCs, with lines and inlined calls, by vmaprof sym, llvm-symbolizer, eu-addr2line and
addr2line: CPU seconds, peak and private memory, and whether the answers are those of
llvm-symbolizer. The programs, several hundred MB of DWARF by gcc and by clang (which has no
.debug_aranges), are made once and stay in DIRECTORY: one large unit of C++ is compiled and copied
40 times with another name for its namespace. VMLINUX_DEBUG= names a vmlinux with DWARF to be asked,
too. Prints rows as bench.h describes.
"""
import bisect
import json
import os
import random
import shutil
import subprocess
import sys
import threading

COUNT, UNITS, ROUNDS = 10000, 40, 3
# eu-addr2line needs up to 50 ms an address: it is asked for fewer, and its time is scaled
EU_COUNT = 100
UNIT = """
#include <algorithm>
#include <functional>
#include <map>
#include <regex>
#include <sstream>
#include <string>
#include <unordered_map>
#include <vector>
namespace unit000 {
template <int V> struct K {
	int a;
	std::string s;
	bool operator<(const K &o) const { return s < o.s || a < o.a; }
};
template <int V, int N> struct T {
	static int f(std::map<K<V>, std::vector<std::string>> &m, int x)
	{
		K<V> k{x, std::to_string(x + N)};
		m[k].push_back(k.s + "x");
		std::sort(m[k].begin(), m[k].end());
		std::unordered_map<std::string, std::function<int(int)>> u;
		u[k.s] = [&](int q) { return q + N + (int)m.size(); };
		std::ostringstream o;
		for (auto &p : m)
			o << p.first.s << p.second.size();
		std::regex r(o.str());
		std::smatch sm;
		std::string t = k.s;
		return std::regex_match(t, sm, r) + u[k.s](x) + T<V, N - 1>::f(m, x + 1);
	}
};
template <int V> struct T<V, 0> {
	static int f(std::map<K<V>, std::vector<std::string>> &m, int x) { return m.size() + x; }
};
template <int V> int go(int x)
{
	std::map<K<V>, std::vector<std::string>> m;
	return T<V, 60>::f(m, x);
}
int run(int x) { return go<1>(x) + go<2>(x) + go<3>(x) + go<4>(x); }
}
int run_unit000(int x) { return unit000::run(x); }
"""


def row(ident, figure, value="", unit="", relation="", target="", verdict="", note=""):
    if relation:
        verdict = "met" if value <= target else "MISSED"
    print("row", ident, figure, value, unit, relation, target, verdict, note, sep="\t", flush=True)


def make_program(compiler, directory):
    program = os.path.join(directory, f"big-{compiler}")
    if os.path.exists(program):
        return program
    made = os.path.join(directory, f"made-{compiler}")
    os.makedirs(made, exist_ok=True)
    unit, first = os.path.join(made, "unit.cc"), os.path.join(made, "unit.o")
    with open(unit, "w", encoding="ascii") as file:
        file.write(UNIT)
    subprocess.run([compiler, "-O2", "-g", "-c", unit, "-o", first], check=True)
    with open(first, "rb") as file:
        code = file.read()
    objects = []
    for i in range(UNITS):
        # as long as the old name, so nothing moves
        objects.append(os.path.join(made, f"unit{i:03}.o"))
        with open(objects[-1], "wb") as file:
            file.write(code.replace(b"unit000", b"unit%03d" % i))
    calls = [f"run_unit{i:03}" for i in range(UNITS)]
    main = os.path.join(made, "main.cc")
    with open(main, "w", encoding="ascii") as file:
        file.write("".join(f"int {call}(int);\n" for call in calls))
        file.write(f"int main(int n, char **) {{ return {' + '.join(c + '(n)' for c in calls)}; }}\n")
    subprocess.run([compiler, "-O2", "-g", main, *objects, "-o", program + ".new"], check=True)
    os.rename(program + ".new", program)
    shutil.rmtree(made)
    return program


def random_pcs(program):
    spans, sums, total = [], [], 0
    out = subprocess.run(["nm", "-S", "--defined-only", program], capture_output=True, text=True,
                         check=True).stdout
    for line in out.splitlines():
        word = line.split()
        if len(word) == 4 and word[2] in "tTwWi":
            spans.append(int(word[0], 16))
            total += int(word[1], 16)
            sums.append(total)
    random.seed(1)
    for _ in range(COUNT):
        byte = random.randrange(total)
        i = bisect.bisect_right(sums, byte)
        before = sums[i - 1] if i else 0
        yield spans[i] + byte - before


def debug_bytes(program):
    out = subprocess.run(["readelf", "-SW", program], capture_output=True, text=True, check=True)
    lines = (line.split("]", 1)[-1].split() for line in out.stdout.splitlines())
    return sum(int(w[4], 16) for w in lines if len(w) > 4 and w[0].startswith(".debug_"))


class Measured:
    """CPU seconds, peak and private (anonymous) memory in MB, and what it said."""

    def __init__(self, argv, text):
        with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL) as child:
            self.private, self.peak, self.pid = 0, 0, child.pid
            done = threading.Event()
            watcher = threading.Thread(target=self.watch, args=(done,))
            watcher.start()
            feeder = threading.Thread(target=self.feed, args=(child.stdin, text))
            feeder.start()
            self.out = child.stdout.read()
            feeder.join()
            done.set()
            watcher.join()
            _, status, usage = os.wait4(child.pid, 0)
            child.returncode = os.waitstatus_to_exitcode(status)
            # eu-addr2line exits with 1 if it knows nothing of one of the addresses
            if child.returncode not in (0, 1) or not self.out:
                sys.exit(f"{argv[0]}: exit {child.returncode}")
        self.cpu = usage.ru_utime + usage.ru_stime

    @staticmethod
    def feed(pipe, text):
        with pipe:
            pipe.write(text.encode())

    def watch(self, done):
        while not done.wait(0.01):
            try:
                with open(f"/proc/{self.pid}/status", encoding="ascii") as file:
                    kb = dict(line.split()[:2] for line in file if line.endswith("kB\n"))
            except OSError:
                return
            # not ru_maxrss, which begins with this program's own
            self.peak = max(self.peak, int(kb.get("VmHWM:", 0)) / 1024)
            self.private = max(self.private, int(kb.get("RssAnon:", 0)) / 1024)


def places(ours, llvm):
    """How many addresses have the same chain: depth, files and lines, inlined functions."""
    same = 0
    blocks = llvm.decode(errors="replace").strip("\n").split("\n\n")
    for line, block in zip(ours.decode().splitlines(), blocks):
        frames = [(f["function"], f["file"] or "??", f["line"] or 0)
                  for f in json.loads(line)["frames"]] or [("??", "??", 0)]
        words = block.strip("\n").split("\n")
        want = [(name, *place.rsplit(":", 2)[:2]) for name, place in zip(words[::2], words[1::2])]
        want = [(name, file, int(number)) for name, file, number in want]
        same += ([f[1:] for f in frames] == [w[1:] for w in want] and
                 [f[0] for f in frames[:-1]] == [w[0] for w in want[:-1]])
    return same


def median(values):
    return sorted(values)[len(values) // 2]


def compare(vmaprof, name, program):
    pcs = [f"0x{pc:x}\n" for pc in random_pcs(program)]
    text = "".join(pcs)
    tools = {
        "vmaprof": [vmaprof, "sym", "--json", "--no-demangle", "-e", program],
        "llvm": ["llvm-symbolizer", "--no-demangle", "-e", program],
    }
    runs = {tool: [] for tool in tools}
    for _ in range(ROUNDS):
        for tool, argv in tools.items():
            runs[tool].append(Measured(argv, text))
    cpu = {tool: median([m.cpu for m in all]) for tool, all in runs.items()}
    peak = {tool: median([m.peak for m in all]) for tool, all in runs.items()}
    private = {tool: median([m.private for m in all]) for tool, all in runs.items()}
    ident = f"symbolize.{name}"
    row(f"{ident}.dwarf", f"{name}: debug sections", debug_bytes(program) / 1e6, "MB")
    row(f"{ident}.cpu", "… 10,000 PCs by vmaprof sym: CPU", cpu["vmaprof"], "s")
    row(f"{ident}.cpu.llvm", "… llvm-symbolizer", cpu["llvm"], "s")
    row(f"{ident}.cpu.ratio", "… vmaprof / llvm-symbolizer", cpu["vmaprof"] / cpu["llvm"], "",
        "<=", 0.5)
    row(f"{ident}.peak", "… vmaprof sym: peak memory", peak["vmaprof"], "MB")
    row(f"{ident}.private", "… of it private", private["vmaprof"], "MB")
    row(f"{ident}.peak.llvm", "… llvm-symbolizer: peak memory", peak["llvm"], "MB")
    row(f"{ident}.private.llvm", "… of it private", private["llvm"], "MB")
    row(f"{ident}.peak.ratio", "… vmaprof / llvm-symbolizer", peak["vmaprof"] / peak["llvm"], "",
        "<=", 0.1)
    differ = COUNT - places(runs["vmaprof"][0].out, runs["llvm"][0].out)
    row(f"{ident}.differ", "… chains that are not llvm-symbolizer's", differ, "", "<=", 0)
    gnu = Measured(["addr2line", "-i", "-f", "-a", "-e", program], text)
    row(f"{ident}.cpu.gnu", "… addr2line -i -f: CPU", gnu.cpu, "s")
    row(f"{ident}.peak.gnu", "… addr2line -i -f: peak memory", gnu.peak, "MB")
    eu = Measured(["eu-addr2line", "-i", "-f", "-a", "-e", program], "".join(pcs[:EU_COUNT]))
    row(f"{ident}.cpu.eu", f"… eu-addr2line -i -f: CPU, scaled up from {EU_COUNT} PCs",
        eu.cpu * COUNT / EU_COUNT, "s")
    row(f"{ident}.peak.eu", f"… eu-addr2line -i -f: peak memory, {EU_COUNT} PCs", eu.peak, "MB")


def main():
    vmaprof, directory = sys.argv[1:]
    os.makedirs(directory, exist_ok=True)
    programs = {}
    print("group\tNames, lines and inlined calls of 10,000 random PCs", flush=True)
    for compiler in "g++", "clang++":
        if shutil.which(compiler):
            programs[compiler] = make_program(compiler, directory)
    if os.environ.get("VMLINUX_DEBUG"):
        programs["vmlinux"] = os.environ["VMLINUX_DEBUG"]
    else:
        row("symbolize.vmlinux", "vmlinux", verdict="skipped", note="VMLINUX_DEBUG= names none")
    for name, program in programs.items():
        compare(vmaprof, name, program)


main()
