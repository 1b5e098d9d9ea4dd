# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
compare_find.py VMAPROF PID COUNT

Asks `vmaprof find` about COUNT addresses of a process that does not change, boundaries and
corner cases first, then random ones, and compares the answers with /proc/PID/maps.
"""

import json
import random
import subprocess
import sys
import time

import procmaps

PAGE = 4096
CORNERS = [0, 1, PAGE, 0x7ffffffff000, 0x7fffffffffff, 0x800000000000, 1 << 62, 1 << 63,
           0xffff888000000000, 0xffffffff81000000, 0xffffffffff5fffff, 0xffffffffff600000,
           0xffffffffff600abc, 0xffffffffff601000, (1 << 64) - 1]


def addresses(rows, count):
    rng = random.Random(1)
    found = list(CORNERS)
    for row in rows:
        found += [row.start, row.end - 1, max(row.start - 1, 0), row.end & (1 << 64) - 1,
                  rng.randrange(row.start, row.end)]
    rng.shuffle(found)
    found = found[:count]
    while len(found) < count:
        row = rng.choice(rows)
        found.append(rng.choice([rng.randrange(row.start, row.end), rng.randrange(1 << 47)]))
    return found


def covering(rows, address):
    for row in rows:
        if row.start <= address < row.end:
            return row
    return None


def difference(rows, address, got):
    if int(got["addr"], 16) != address:
        return "answers %s, want 0x%x" % (got["addr"], address)
    row = covering(rows, address)
    if row is None:
        return None if got["verdict"] == "NO_VMA" else "want NO_VMA"
    if got["verdict"] not in row.verdicts():
        return "want %s for %r" % (row.verdicts(), row.line)
    if (int(got["start"], 16), int(got["end"], 16)) != (row.start, row.end):
        return "want the range of %r" % row.line
    if row.ino and (got["dev"], got["ino"]) != (row.dev, row.ino):
        return "want the file of %r" % row.line
    if row.ino and got["offset"] != address - row.start + row.pgoff:
        return "want offset %d" % (address - row.start + row.pgoff)
    if got["name"] not in {name for name, _ in row.names()}:
        return "want a name of %r" % row.names()
    return None


def main():
    vmaprof, pid, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    rows = procmaps.read_rows(pid)
    asked = addresses(rows, count)
    begin = time.monotonic()
    done = subprocess.run([vmaprof, "find", "-p", str(pid), "--json", "-"],
                          input="".join("0x%x\n" % a for a in asked).encode(),
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60, check=False)
    took = time.monotonic() - begin
    if done.returncode or done.stderr:
        print("exit %d: %s" % (done.returncode, done.stderr.decode(errors="replace")))
        return 1
    if [row.line for row in procmaps.read_rows(pid)] != [row.line for row in rows]:
        print("the process changed")
        return 1
    answers = [json.loads(line) for line in done.stdout.decode("utf-8").split("\n") if line]
    if len(answers) != len(asked):
        print("%d answers to %d addresses" % (len(answers), len(asked)))
        return 1
    wrong = 0
    verdicts = {}
    for address, got in zip(asked, answers):
        verdicts[got["verdict"]] = verdicts.get(got["verdict"], 0) + 1
        what = difference(rows, address, got)
        if what:
            wrong += 1
            if wrong <= 10:
                print("0x%x: %s: %s" % (address, what, json.dumps(got)[:500]))
    print("%d addresses in %.2f s, %d wrong: %s" % (len(asked), took, wrong, verdicts))
    return 1 if wrong or took > 20 else 0


if __name__ == "__main__":
    sys.exit(main())
