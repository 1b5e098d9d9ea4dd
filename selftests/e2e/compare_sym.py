#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""usage: compare_sym.py VMAPROF FILE COUNT [--oracle llvm|eu|gnu|nm] [--as NAME] …

COUNT addresses, uniform by byte over the functions of FILE (or of --symbols FILE, if FILE is
stripped), or each byte if there are fewer: `vmaprof sym` against llvm-symbolizer, eu-addr2line -i or
addr2line -i, frame by frame: function, file, line and how many there are. The outermost function
may be any of nm's names for the address: aliases have no order that all agree on.

Differences are looked for in sym-differences, as those of the fixture NAME (the file's name, if none
is given). Where that says who else is to agree with vmaprof, he is asked for each address. Prints
what differs, why and who is right; exit 1 if there is one without an explanation.
"""
import argparse
import bisect
import fnmatch
import json
import os
import random
import re
import subprocess
import sys


def run(argv, text=""):
    done = subprocess.run(argv, input=text, capture_output=True, text=True, errors="replace")
    if done.returncode:
        sys.exit(f"{argv}: exit {done.returncode}: {done.stderr}")
    return done.stdout


def linked(path):
    for line in run(["nm", "-S", "--defined-only", path]).splitlines():
        word = line.split()
        if len(word) == 4 and word[2] in "tTwWi":
            yield word[0], word[1], word[3]


def unlinked(path):
    """Sections' addresses are all the same: what is in .text, or the only section of code."""
    symbols = []
    for line in run(["objdump", "-t", path]).splitlines():
        place, _, symbol = line.partition("\t")
        section = place.split(" ")[-1]
        if section.startswith(".text") and int(symbol.split()[0], 16):
            symbols.append((section, place.split()[0], symbol.split()[0], symbol.split()[-1]))
    sections = {symbol[0] for symbol in symbols}
    wanted = ".text" if ".text" in sections else min(sections)
    return [symbol[1:] for symbol in symbols if symbol[0] == wanted]


def is_linked(path):
    with open(path, "rb") as file:
        return file.read(18)[16] != 1  # ET_REL


class Symbols:
    def __init__(self, path):
        self.at, self.names = [], {}
        for start, size, name in (linked if is_linked(path) else unlinked)(path):
            self.names.setdefault(int(start, 16), set()).add((int(size, 16), name.split("@")[0]))
        self.at = sorted(self.names)
        self.max_size = max(size for all in self.names.values() for size, _ in all)

    def random(self, count):
        spans = [(start, max(size for size, _ in self.names[start])) for start in self.at]
        sums, total = [], 0
        for _, size in spans:
            total += size
            sums.append(total)
        for byte in random.sample(range(total), min(count, total)):
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


def addr2line(tool, file, addrs):
    out = run([tool, "-i", "-f", "-a", "-e", file], addrs)
    block = []
    for line in out.splitlines() + ["0x"]:
        if line.startswith("0x"):
            if block:
                yield pairs("\n".join(name.split(" inlined at ")[0] for name in block),
                            tool == "eu-addr2line")
            block = []
        else:
            block.append(line)


ORACLES = {
    "llvm": llvm,
    "eu": lambda file, addrs: addr2line("eu-addr2line", file, addrs),
    "gnu": lambda file, addrs: addr2line("addr2line", file, addrs),
    "nm": lambda file, addrs: [[] for _ in addrs.splitlines()],  # its names alone, see differ
}


def differ(got, want, names):
    if not want and len(got) == 1 and got[0][0] in names:
        return None  # a name of the symbol table's, which the oracle did not look into
    if len(got) != len(want):
        return "depth"
    if [f[1:] for f in got] != [f[1:] for f in want]:
        return "place"
    if got == want:
        return None
    if [f[0] for f in got[:-1]] != [f[0] for f in want[:-1]]:
        return "inlined function"
    return None if got[-1][0] in names else "function"


class Known:
    """The rows of sym-differences that are about a fixture and an oracle."""

    def __init__(self, fixture, oracle):
        self.rows = []
        path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "sym-differences")
        with open(path, encoding="utf-8") as file:
            rows = [line.rstrip("\n").split("\t") for line in file if line[0] not in "#\n"]
        for names, tool, kinds, most, right, witness, reason in rows:
            if tool == oracle and any(fnmatch.fnmatch(fixture, name) for name in names.split()):
                self.rows.append({"kinds": kinds.split(","), "most": int(most), "right": right,
                                  "witness": witness, "reason": reason, "cases": []})

    def explain(self, kind, case, witnesses):
        """The first row whose witness agrees at the address: is there one?"""
        for row in self.rows:
            if kind in row["kinds"] and len(row["cases"]) < row["most"] and (
                    row["witness"] == "-" or witnesses(row["witness"], case)):
                row["cases"].append(case)
                return True
        return False


def in_go_s_table(name):
    return re.sub(r"\[.*\]", "[...]", name.removesuffix(".abi0"))


class Witnesses:
    """What the other tools say, of all addresses that differ, when one is first asked."""

    def __init__(self, file, twin, cases, symbols):
        self.file, self.twin, self.said = file, twin, {}
        self.cases, self.symbols = cases, symbols

    def __call__(self, tool, case):
        addr, got, _ = case
        if tool == "go":
            return got[-1][0] in map(in_go_s_table, self.symbols.around(addr))
        if tool not in self.said:
            text = "".join(f"0x{case[0]:x}\n" for case in self.cases)
            answers = llvm(self.twin, text) if tool == "twin" else ORACLES[tool](self.file, text)
            self.said[tool] = dict(zip((case[0] for case in self.cases), answers))
        return differ(got, self.said[tool][addr], self.symbols.around(addr)) is None


def report(found, known):
    for row in known.rows:
        if row["cases"]:
            agrees = "" if row["witness"] == "-" else f" (so says {row['witness']}, too)"
            print(f"  {len(row['cases'])}: {row['reason']}; right: {row['right']}{agrees}")
    for kind, cases in found.items():
        for addr, got, want in cases[:2]:
            print(f"  NOT EXPLAINED: {kind} at 0x{addr:x}\n    vmaprof {got}\n    oracle  {want}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("vmaprof")
    parser.add_argument("file")
    parser.add_argument("count", type=int)
    parser.add_argument("--oracle", default="llvm", choices=ORACLES)
    parser.add_argument("--symbols", help="nm's and the functions to be asked for, if not FILE's")
    parser.add_argument("--asked", help="what the oracle is given, if it cannot read FILE")
    parser.add_argument("--twin", help="the same code as FILE, other debug information")
    parser.add_argument("--as", dest="fixture")
    args = parser.parse_args()
    random.seed(1)
    symbols = Symbols(args.symbols or args.file)
    addrs = list(symbols.random(args.count))
    text = "".join(f"0x{addr:x}\n" for addr in addrs)
    asked, fixture = args.asked or args.file, args.fixture or os.path.basename(args.file)
    answers = list(ours(args.vmaprof, args.file, text)), list(ORACLES[args.oracle](asked, text))
    if not len(answers[0]) == len(answers[1]) == len(addrs):
        sys.exit(f"{fixture}: {len(answers[0])} and {len(answers[1])} answers of {len(addrs)}")
    cases = [(differ(got, want, symbols.around(addr)), (addr, got, want))
             for addr, got, want in zip(addrs, *answers)]
    cases = [(kind, case) for kind, case in cases if kind]
    known = Known(fixture, args.oracle)
    witnesses = Witnesses(asked, args.twin, [case for _, case in cases], symbols)
    found = {}
    for kind, case in cases:
        if not known.explain(kind, case, witnesses):
            found.setdefault(kind, []).append(case)
    deep = sum(len(got) > 1 for got in answers[0])
    placed = sum(bool(got and got[0][2]) for got in answers[0])
    print(f"{fixture}: {len(addrs)} addresses, {deep} with inlined calls, {placed} with a line, "
          f"{len(cases)} differ from {args.oracle}"
          f"{', not explained: ' + str({k: len(v) for k, v in found.items()}) if found else ''}")
    report(found, known)
    sys.exit(bool(found))


main()
