# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
unwind_compare.py gdb SCRIPT GDB: compares stacks of vmaprof with gdb's
unwind_compare.py perf SCRIPT PERF: compares stacks of vmaprof with perf's

SCRIPT and PERF are what `perf script -F comm,pid,tid,ip,sym,dso` prints, GDB is the output of
unwind_gdb_stacks.py; all print addresses as offsets in files. Two stacks are the same if the
function (or, without a symbol, the file) of the innermost frame and all return addresses are, up
to the outermost frame.
Exit 1 and a list of what differs, or a line about what was equal.
"""

import collections
import re
import sys

HEADER = re.compile(r"(\S.*?)\s+(-?\d+)/(-?\d+)\s*$")
FRAME = re.compile(r"\s+([0-9a-f]+) (.*) \((.*)\)$")
KERNEL = 1 << 63

# before what is known of a file has been compiled, stacks end early: of the samples of one
# thread or process
INCOMPLETE = 0.08
INCOMPLETE_MIN = 5
# see compare_perf
CHANCE = 1e-5
CUT_MIN = 10

Frame = collections.namedtuple("Frame", "pc name module")


def read_script(path):
    """[("COMM (TGID)", tid, [Frame, …], [kernel's frame, …])]: innermost first"""
    samples = []
    with open(path, encoding="utf-8", errors="replace") as lines:
        for line in lines:
            header = HEADER.match(line)
            if header:
                samples.append(("%s (%s)" % (header[1], header[2]), int(header[3]), [], []))
                continue
            frame = FRAME.match(line)
            if frame and samples:
                pc = int(frame[1], 16)
                samples[-1][2 if pc < KERNEL else 3].append(Frame(pc, plain(frame[2]), frame[3]))
    return samples


def plain(name):
    """a function's name without an offset, a version, parameters, and how its parts are called"""
    name = re.sub(r"\+0x[0-9a-f]+$", "", name)
    name = re.sub(r"@@?(GLIBC|GLIBCXX|CXXABI|GCC|OPENSSL)_.*$", "", name)
    return re.sub(r"( \[clone .*|\.cold.*|\(.*)$", "", name).replace(" ", "")


def callers(frames, shift=0):
    return tuple((f.module, f.pc + shift) for f in frames[1:])


def show(frames):
    shown = ["%s+%x %s" % (f.module, f.pc, f.name) for f in frames]
    if len(shown) > 24:
        shown[12:-12] = ["…"]
    return "\n        ".join(shown)


def compare_gdb(script, gdb_output):
    """
    All samples of a thread have gdb's stack; up to INCOMPLETE of them may lack outer frames. Where
    there is no information gdb goes on with what it makes of the words on the stack, and calls
    it "??": our stack may end there. A thread that did not get back to user mode before the end of a
    recording has no user stack in its last samples, if those are taken on the way back.
    """
    samples = collections.defaultdict(list)
    names = {}
    for name, tid, frames, kernel in read_script(script):
        samples[tid].append((frames, kernel))
        names[tid] = name
    bad, threads = [], 0
    with open(gdb_output, encoding="utf-8", errors="replace") as lines:
        stacks = [line.split()[1:] for line in lines if line.startswith("STACK ")]
    for tid, *words in stacks:
        tid = int(tid)
        if tid not in samples:
            continue # a thread that waits
        threads += 1
        while samples[tid] and not samples[tid][-1][0] and samples[tid][-1][1]:
            samples[tid].pop()
        if not samples[tid]:
            bad.append("%s: no sample has a user stack" % names[tid])
            continue
        theirs = gdb_frames(words)
        known = len(theirs)
        while known > 1 and theirs[known - 1].name == "??":
            known -= 1
        incomplete = 0
        wrong = []
        for ours, _ in samples[tid]:
            if not ours or callers(ours) != callers(theirs[:len(ours)]) or \
                    ours[0].name not in ("[unknown]", theirs[0].name):
                wrong.append(ours)
            elif len(ours) < known:
                incomplete += 1
        total = len(samples[tid])
        if wrong:
            bad.append("%s: %d of %d samples are wrong:\n        %s\n    gdb:\n        %s" % (
                names[tid], len(wrong), total, show(wrong[-1]), show(theirs)))
        elif incomplete > max(INCOMPLETE * total, INCOMPLETE_MIN):
            bad.append("%s: %d of %d samples lack outer frames of\n        %s" % (
                names[tid], incomplete, total, show(theirs)))
    if not threads:
        bad.append("nothing to compare: %d stacks of gdb, samples of %d threads" % (
            len(stacks), len(samples)))
    return bad, "%d threads: stacks are as gdb has them" % threads


def gdb_frames(words):
    frames = []
    for word in words:
        offset, name, module = word.split(":", 2)
        frames.append(Frame(int(offset, 16), plain(name.replace(".", ":")), module))
    return frames


def chains(samples, perf):
    """{process: Counter of chains}: what identifies the innermost frame, and the return addresses"""
    found = collections.defaultdict(collections.Counter)
    for name, _, frames, kernel in samples:
        if not frames or kernel:
            continue
        leaf = frames[0].module if frames[0].name == "[unknown]" else frames[0].name
        # perf has subtracted 1 from what its unwinder says of callers
        found[name][(leaf, *callers(frames, perf))] += 1
    return found


def compare_perf(script, perf_script):
    """
    Compared are samples in user mode. A chain that one side has so often that the other side can
    hardly have missed it (the chance is below CHANCE if both see it equally often) is one that
    both have. Else one of the two lacks outer frames, that is, its chain is the inner part of
    one of the other side:
    - perf's, because it copies 65,528 bytes of stack and ends where a frame is not among them, or
      because its unwinder gives up: in OpenSSL's SHA-512 for AVX2, where gdb goes on as vmaprof
      does. Where they end is printed. One of ours counts as cut by perf if it is more than a
      few times that perf ends there.
    - ours, but not more than INCOMPLETE of them.
    """
    names = {}
    ours_samples, perf_samples = read_script(script), read_script(perf_script)
    for shift, samples in ((0, ours_samples), (1, perf_samples)):
        for _, _, frames, _ in samples:
            for f in frames[1:]:
                if names.get((f.module, f.pc + shift), "[unknown]") == "[unknown]":
                    names[f.module, f.pc + shift] = f.name
    ours, theirs = chains(ours_samples, 0), chains(perf_samples, 1)
    bad, good = [], []
    for process in sorted(theirs):
        a, b = ours[process], theirs[process]
        wrong = []
        a_equal, a_inner, _ = compare_sides(process, "vmaprof", a, b, names, wrong)
        b_equal, b_inner, b_ends = compare_sides(process, "perf", b, a, names, wrong)
        a_all, b_all = max(sum(a.values()), 1), sum(b.values())
        line = "%s: " % process
        line += "vmaprof: %d samples, %.1f %% as perf's, %.1f %% inner parts; " % (
            a_all, 100 * a_equal / a_all, 100 * a_inner / a_all)
        line += "perf: %d, %.1f %%, %.1f %%" % (b_all, 100 * b_equal / b_all, 100 * b_inner / b_all)
        line += "".join(", %d end in %s" % (n, names.get(frame, frame)) for frame, n in b_ends.most_common(3))
        good.append(line)
        if a_inner > max(INCOMPLETE * a_all, INCOMPLETE_MIN):
            wrong.append("%s: too many of vmaprof's lack outer frames" % process)
        if min(a_all, b_all) < 50:
            wrong.append("%s: too few samples" % process)
        if wrong:
            bad += wrong + [line]
    if not theirs:
        bad.append("perf has no samples")
    return bad, "\n".join(good)


def compare_sides(process, who, mine, others, names, wrong):
    """(samples with a chain of the others, with an inner part of one, Counter of where these end)"""
    inner_parts = {chain[:i] for chain in others for i in range(1, len(chain))}
    cut = {chain for chain, count in others.items() if who == "vmaprof" and count >= CUT_MIN}
    total = sum(mine.values())
    share = total / (total + sum(others.values()))
    equal = inner = 0
    ends = collections.Counter()
    for chain, count in mine.items():
        if chain in others:
            equal += count
        elif chain in inner_parts:
            inner += count
            ends[chain[-1]] += count
        elif share ** count < CHANCE and not any(chain[:i] in cut for i in range(1, len(chain))):
            wrong.append(difference(process, who, count, mine, chain, others, names))
    return equal, inner, ends


def named(chain, names):
    return ["        " + (f if isinstance(f, str) else "%s+%x %s" % (*f, names.get(f, "?")))
            for f in chain[:30]]


def difference(process, who, count, mine, chain, others, names):
    """the chain, and the one of the other side that has most of its inner frames"""
    def common(other):
        n = 0
        while n < min(len(chain), len(other)) and chain[n] == other[n]:
            n += 1
        return n

    nearest = max(others, key=lambda o: (common(o), others[o]), default=())
    shown = ["%s: %d of %d samples of %s only:" % (process, count, sum(mine.values()), who)]
    shown += named(chain, names)
    shown.append("    nearest of the other (%d frames equal):" % common(nearest))
    shown += named(nearest, names)
    return "\n".join(shown)


def main():
    if sys.argv[1] == "gdb":
        bad, good = compare_gdb(sys.argv[2], sys.argv[3])
    else:
        bad, good = compare_perf(sys.argv[2], sys.argv[3])
    print("\n".join(bad) if bad else good)
    return bool(bad)


sys.exit(main())
