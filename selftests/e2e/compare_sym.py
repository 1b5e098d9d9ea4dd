#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""usage: compare_sym.py VMAPROF FILE COUNT [--oracle llvm|eu] [--symbols FILE] [--lines-only]

COUNT addresses, uniform by byte over the functions of FILE (or of --symbols FILE, if FILE is
stripped): `vmaprof sym` against llvm-symbolizer or eu-addr2line -i, frame by frame: function, file,
line and how many there are. The outermost function may be any of nm's names for the address:
aliases have no order that all agree on. Prints the differences; exit 1 if there are any.
"""
import argparse
import bisect
import json
import os
import random
import subprocess
import sys


def run(argv, text=""):
    done = subprocess.run(argv, input=text, capture_output=True, text=True, errors="replace")
    if done.returncode:
        sys.exit(f"{argv}: exit {done.returncode}: {done.stderr}")
    return done.stdout


class Symbols:
    def __init__(self, path):
        self.at, self.names = [], {}
        for line in run(["nm", "-S", "--defined-only", path]).splitlines():
            word = line.split()
            if len(word) == 4 and word[2] in "tTwWi":
                start, size = int(word[0], 16), int(word[1], 16)
                self.names.setdefault(start, set()).add((size, word[3].split("@")[0]))
        self.at = sorted(self.names)
        self.max_size = max(size for all in self.names.values() for size, _ in all)

    def random(self, count):
        spans = [(start, max(size for size, _ in self.names[start])) for start in self.at]
        sums, total = [], 0
        for _, size in spans:
            total += size
            sums.append(total)
        for _ in range(count):
            byte = random.randrange(total)
            i = bisect.bisect_right(sums, byte)
            yield spans[i][0] + byte - (sums[i] - spans[i][1])

    def around(self, addr):
        names, i = set(), bisect.bisect_right(self.at, addr) - 1
        while i >= 0 and self.at[i] + self.max_size > addr:
            names |= {name for size, name in self.names[self.at[i]] if addr < self.at[i] + size}
            i -= 1
        return names


def path(text):
    return None if text in (None, "??", "") else os.path.normpath(text)


def line_of(text):
    number = text.split(" ")[0]  # "(discriminator 1)"
    return int(number) if number.isdigit() else 0


def ours(vmaprof, file, addrs):
    out = run([vmaprof, "sym", "--json", "--no-demangle", "-e", file], addrs)
    for row in map(json.loads, out.splitlines()):
        yield [(f["function"], path(f["file"]), f["line"] or 0) for f in row["frames"]]


def pairs(text, column):
    lines = text.split("\n")
    frames = []
    for name, place in zip(lines[0::2], lines[1::2]):
        parts = place.rsplit(":", 2 if column else 1)
        frames.append((None if name == "??" else name, path(parts[0]), line_of(parts[1])))
    # Where there is no line llvm-symbolizer takes the file of the symbol, which has no directory.
    frames = [(name, file if line or "/" in (file or "") else None, line)
              for name, file, line in frames]
    return frames if frames != [(None, None, 0)] else []


def llvm(file, addrs):
    out = run(["llvm-symbolizer", "--no-demangle", "-e", file], addrs)
    for block in out.strip("\n").split("\n\n"):
        yield pairs(block.strip("\n"), True)


def elfutils(file, addrs):
    out = run(["eu-addr2line", "-i", "-f", "-a", "-e", file], addrs)
    block = []
    for line in out.splitlines() + ["0x"]:
        if line.startswith("0x"):
            if block:
                yield pairs("\n".join(name.split(" inlined at ")[0] for name in block), True)
            block = []
        else:
            block.append(line)


def differ(got, want, names, lines_only):
    if not want and len(got) == 1 and got[0][0] in names:
        return None  # a name of the symbol table's, which the oracle did not look into
    if len(got) != len(want):
        return "depth"
    if [f[1:] for f in got] != [f[1:] for f in want]:
        return "place"
    if lines_only or got == want:
        return None
    if [f[0] for f in got[:-1]] != [f[0] for f in want[:-1]]:
        return "inlined function"
    return None if got[-1][0] in names else "function"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("vmaprof")
    parser.add_argument("file")
    parser.add_argument("count", type=int)
    parser.add_argument("--oracle", default="llvm")
    parser.add_argument("--symbols")
    parser.add_argument("--lines-only", action="store_true")
    parser.add_argument("--allow", type=int, default=0, help="differences that are no failure")
    args = parser.parse_args()
    random.seed(1)
    symbols = Symbols(args.symbols or args.file)
    addrs = list(symbols.random(args.count))
    text = "".join(f"0x{addr:x}\n" for addr in addrs)
    oracle = llvm if args.oracle == "llvm" else elfutils
    answers = list(ours(args.vmaprof, args.file, text)), list(oracle(args.file, text))
    if not len(answers[0]) == len(answers[1]) == len(addrs):
        sys.exit(f"{args.file}: {len(answers[0])} and {len(answers[1])} answers of {len(addrs)}")
    found = {}
    for addr, got, want in zip(addrs, *answers):
        what = differ(got, want, symbols.around(addr), args.lines_only)
        if what:
            found.setdefault(what, []).append((addr, got, want))
    total = sum(map(len, found.values()))
    deep = sum(len(got) > 1 for got in answers[0])
    placed = sum(bool(got and got[0][2]) for got in answers[0])
    print(f"{os.path.basename(args.file)}: {len(addrs)} addresses, {deep} with inlined calls, "
          f"{placed} with a line, {total} differ {({k: len(v) for k, v in found.items()}) or ''}")
    for what, cases in found.items():
        for addr, got, want in cases[:3]:
            print(f"  {what} at 0x{addr:x}\n    vmaprof {got}\n    {args.oracle:7} {want}")
    sys.exit(total > args.allow)


main()
