#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""usage: births.py PLAN [show] <STACKS

What births.sh recorded against what it knows. PLAN: lines "bN PROGRAM LIBRARY"; STACKS:
`perf script -F comm,pid,time,ip,sym,dso`. Prints a line of counts, named as in KINDS, of all
samples and then of the first sample of each process; with "show", all that is not right, too.

A sample is right if its stack is exactly main -> birth_work -> plugin_run -> plugin_…_spin in the
process's own program and library, or is on the way there or back, every frame in one of its files,
from _start on. "cut": its frames are right, but the outermost are missing. "wrong": a frame in
another file, or in none. "nostack": no user frame though the process was neither on its way in
nor out of the kernel for ever. "new": of those that are not right, those in processes with a
library that was new.
"""
import re
import sys

KINDS = ["samples", "right", "cut", "wrong", "nostack", "excused", "new"]
KERNEL = "[kernel]"
CHAIN = re.compile(r"plugin_\w+_spin plugin_run birth_work main")
# a process without a user side: being exec'd or ending
NO_USER_SIDE = re.compile(r"exec|exit|fork|load_elf|schedule_tail|bprm|mmput")
FRAME = re.compile(r"^\s+([0-9a-f]+) (.*) \((.*)\)$")
SYSTEM = re.compile(r"/(ld-linux[^/]*|libc\.so\.6|libc-[^/]*)$")


def read_plan(path):
    plan = {}
    with open(path, encoding="utf-8") as f:
        for line in f:
            comm, program, library = line.split()
            plan[comm] = (program, library)
    return plan


def samples(lines):
    """(comm, frames): frames innermost first, (symbol, file); the kernel's file is KERNEL."""
    head, frames = None, []
    for line in lines:
        m = FRAME.match(line)
        if m:
            in_kernel = int(m.group(1), 16) >> 63
            frames.append((m.group(2).split("+")[0], KERNEL if in_kernel else m.group(3)))
        elif line.strip():
            head, frames = line.split()[0], []
        elif head:
            yield head, frames
            head = None
    if head:
        yield head, frames


def is_right_file(symbol, file, program, library):
    if symbol in ("main", "birth_work"):
        return file == program
    if symbol.startswith("plugin_"):
        return file == library
    return file in (program, library, "[vdso]") or bool(SYSTEM.search(file))


def kind_of(frames, program, library):
    user = [f for f in frames if f[1] != KERNEL]
    if not user:
        kernel = " ".join(symbol for symbol, _ in frames)
        return "excused" if NO_USER_SIDE.search(kernel) else "nostack"
    if not all(is_right_file(s, f, program, library) for s, f in user):
        return "wrong"
    symbols = " ".join(symbol for symbol, _ in user)
    if "plugin_run" in symbols and not CHAIN.search(symbols):
        return "cut"
    return "right" if user[-1][0] in ("_start", "_dl_start_user") else "cut"


def main():
    plan = read_plan(sys.argv[1])
    every, first, seen = dict.fromkeys(KINDS, 0), dict.fromkeys(KINDS, 0), set()
    show = len(sys.argv) > 2
    for comm, frames in samples(sys.stdin):
        if comm not in plan:
            continue
        kind = kind_of(frames, *plan[comm])
        if show and kind not in ("right", "excused"):
            print(kind, comm, plan[comm], frames, file=sys.stderr)
        for counts in [every] if comm in seen else [every, first]:
            counts[kind] += 1
            # what had no user side has nothing to be right or wrong
            counts["samples"] += kind != "excused"
            counts["new"] += kind not in ("right", "excused") and "/new" in plan[comm][1]
        if kind != "excused":
            seen.add(comm)
    print(*(every[k] for k in KINDS))
    print(*(first[k] for k in KINDS))


main()
