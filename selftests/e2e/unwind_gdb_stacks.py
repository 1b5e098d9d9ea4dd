# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Run by gdb: gdb -nx -batch -x unwind_gdb_stacks.py, with PIDS in the environment ("1 2 3").

Attaches to each process and prints a line for every thread: TID, then its frames from the
innermost to the outermost as OFFSET:NAME:FILE. The offset is that of the program counter in the
file, for callers that of the return address. Only frames that are on the stack: no inlined
functions, and no callers that gdb infers where a jump took the place of a call.
"""

import os

import gdb

NOT_ON_STACK = (gdb.INLINE_FRAME, gdb.TAILCALL_FRAME)


def mappings(pid):
    """[(start, end, file offset of the start, file)]"""
    rows = []
    with open("/proc/%s/maps" % pid, encoding="utf-8", errors="replace") as lines:
        for line in lines:
            span, _, pgoff, _, _, *name = line.split(None, 5)
            start, end = span.split("-")
            rows.append((int(start, 16), int(end, 16), int(pgoff, 16), name[0].strip() if name else ""))
    return rows


def place(pc, rows):
    """(offset, file); outside of files the address"""
    for start, end, pgoff, name in rows:
        if start <= pc < end and name:
            return pc - start + pgoff, name
    return pc, "[unknown]"


def frames(rows):
    frame = gdb.newest_frame()
    while frame is not None:
        if frame.type() not in NOT_ON_STACK:
            # names of C++ have blanks only in their parameters
            name = (frame.name() or "??").replace(" ", "")
            offset, file = place(frame.pc(), rows)
            yield "%x:%s:%s" % (offset, name.replace(":", "."), file)
        try:
            frame = frame.older()
        except gdb.error:
            return


def main():
    for setting in ("pagination off", "confirm off", "debuginfod enabled off",
                    "backtrace past-main on", "backtrace past-entry on", "backtrace limit unlimited"):
        try:
            gdb.execute("set " + setting)
        except gdb.error:
            pass # not every version has all of them
    for pid in os.environ["PIDS"].split():
        gdb.execute("attach " + pid, to_string=True)
        rows = mappings(pid)
        for thread in gdb.selected_inferior().threads():
            thread.switch()
            print("STACK %d %s" % (thread.ptid[1] or thread.ptid[0], " ".join(frames(rows))))
        gdb.execute("detach", to_string=True)


main()
