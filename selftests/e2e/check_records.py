# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
check_records.py FILE.data

Of the user frames of all samples, 99 % or more lie in a mapping whose record precedes the sample
(the rest: what a wrong frame pointer led to, and a mapping's very first sample); and no mapping
of a process is announced twice in one of its lives. Reads perf's dump, in the order of time.
Exit 1 and what is wrong.
"""

import re
import subprocess
import sys

MMAP = re.compile(r"PERF_RECORD_MMAP2 (-?\d+)/-?\d+: \[0x?([0-9a-f]+)\(0x?([0-9a-f]+)\) @ (\S+) "
                  r"(\S+) (\d+) (\d+)\]: (\S+) (.*)")
FORK = re.compile(r"PERF_RECORD_FORK\((\d+):\d+\):\((\d+):\d+\)")
EXEC = re.compile(r"PERF_RECORD_COMM exec: .*:(\d+)/\d+")
SAMPLE = re.compile(r"PERF_RECORD_SAMPLE\(IP, 0x[0-9a-f]+\): (\d+)/\d+:")
FRAME = re.compile(r"^\.+ +\d+: ([0-9a-f]{16})$")
KERNEL = 1 << 63


class Lives:
    """What is mapped in each process, as far as it was announced."""

    def __init__(self):
        self.maps = {}
        self.records = 0
        self.repeated = []

    def mmap(self, match):
        pid, start, size = int(match[1]), int(match[2], 16), int(match[3], 16)
        key = (start, size, match[4], match[6], match[9])
        mine = self.maps.setdefault(pid, [])
        # announced again after another one took its place is no repetition
        over = [old for old in mine if old[0] < start + size and start < old[0] + old[1]]
        if over and over[-1] == key:
            self.repeated.append(match[0])
        mine.append(key)
        self.records += 1

    def begin(self, pid):
        self.maps[pid] = []

    def covers(self, pid, address):
        return any(start <= address < start + size for start, size, *_ in self.maps.get(pid, []))


def main():
    dump = subprocess.run(["perf", "script", "-D", "-i", sys.argv[1]], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, check=True).stdout.decode("utf-8", "replace")
    lives, frames, uncovered, pid = Lives(), 0, {}, None
    for line in dump.split("\n"):
        frame = FRAME.match(line)
        if frame:
            address = int(frame[1], 16)
            # addresses below the first page are no code: the frame pointer was something else
            if pid is None or address >= KERNEL or address < 4096:
                continue
            frames += 1
            # a return address may be the first byte after the mapping
            if not lives.covers(pid, address) and not lives.covers(pid, address - 1):
                uncovered.setdefault(pid, []).append("0x%x" % address)
            continue
        mmap, fork, execve, sample = (pattern.search(line) for pattern in (MMAP, FORK, EXEC, SAMPLE))
        if mmap:
            lives.mmap(mmap)
        elif fork and fork[1] != fork[2]:
            lives.begin(int(fork[1]))
        elif execve:
            lives.begin(int(execve[1]))
        elif sample:
            pid = int(sample[1])
        elif "PERF_RECORD_" in line:
            pid = None
    for line in lives.repeated[:6]:
        print("announced twice: %s" % line)
    for process, addresses in list(uncovered.items())[:6]:
        print("not announced before the sample, in %d: %s" % (process, addresses[:4]))
    missing = sum(map(len, uncovered.values()))
    print("%d user frames, %d not announced; %d mapping records, %d of them repeated" %
          (frames, missing, lives.records, len(lives.repeated)))
    return 1 if missing * 100 > frames or lives.repeated or not frames or not lives.records else 0


if __name__ == "__main__":
    sys.exit(main())
