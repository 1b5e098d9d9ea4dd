# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
unwind_go_names.py BINARY FOLDED: prints FOLDED with names for the frames in a Go program, which are
"BINARY+0xOFFSET" for want of a symbol table, from its .gopclntab (Go 1.18 and later, see
debug/gosym/pclntab.go).
"""

import bisect
import os
import re
import struct
import subprocess
import sys

MAGICS = (0xfffffff0, 0xfffffff1)


def sections(binary):
    """{name: (address, file offset, size)}"""
    out = subprocess.run(["readelf", "-SW", binary], stdout=subprocess.PIPE, check=True).stdout.decode()
    rows = re.findall(r"\] (\S+)\s+\S+\s+([0-9a-f]{16}) ([0-9a-f]+) ([0-9a-f]+) ", out)
    return {name: tuple(int(x, 16) for x in rest) for name, *rest in rows}


def functions(binary):
    """sorted [(file offset, name)]"""
    found = sections(binary)
    _, table_at, table_size = found[".gopclntab"]
    text, text_at, _ = found[".text"]
    with open(binary, "rb") as f:
        f.seek(table_at)
        table = f.read(table_size)
    magic, = struct.unpack_from("<I", table)
    if magic not in MAGICS:
        raise ValueError("a .gopclntab of another kind: %x" % magic)
    count, _, start, names_at, _, _, _, table_at = struct.unpack_from("<8Q", table, 8)
    rows = []
    for i in range(count):
        entry, at = struct.unpack_from("<II", table, table_at + 8 * i)
        name_at, = struct.unpack_from("<i", table, table_at + at + 4)
        name = table[names_at + name_at:table.index(b"\0", names_at + name_at)]
        rows.append((start + entry - text + text_at, name.decode()))
    return sorted(rows)


def main():
    binary, folded = sys.argv[1:]
    rows = functions(binary)
    starts = [start for start, _ in rows]
    frame = re.compile(re.escape(os.path.basename(binary)) + r"\+0x([0-9a-f]+)")

    def name(match):
        # a return address may be the first byte of the next function
        at = bisect.bisect(starts, int(match[1], 16) - 1) - 1
        return rows[at][1].replace(";", ":") if at >= 0 else match[0]

    with open(folded, encoding="utf-8", errors="replace") as lines:
        for line in lines:
            print(frame.sub(name, line), end="")


main()
