# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
compare_maps.py VMAPROF PID… | all

Compares `vmaprof maps`, as text and as JSON, all mappings and the executable ones, with
/proc/PID/maps. A process that changed between two snapshots around the comparison is tried
again. Exit 1 and a list of what differs, or one line about what was equal.
"""

import json
import subprocess
import sys

import procmaps

TRIES = 12
# or one that hides its memory even from root
GONE = (FileNotFoundError, ProcessLookupError, PermissionError)


def run(vmaprof, *args):
    done = subprocess.run([vmaprof, "maps", *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          stdin=subprocess.DEVNULL, timeout=100, check=False)
    return done.returncode, done.stdout, done.stderr


def parse_text(out):
    """{tgid: (comm, [row, …])}"""
    found, rows = {}, None
    for line in out.split(b"\n"):
        if line.startswith(b"# "):
            tgid, _, name = line[2:].partition(b" ")
            if int(tgid) in found:
                raise ValueError("TGID %s is there twice" % tgid.decode())
            rows = []
            found[int(tgid)] = (name, rows)
        elif line:
            if rows is None:
                raise ValueError("a row before the first comment: %r" % line)
            rows.append(line)
    return found


def parse_json(out):
    """{tgid: [object, …]}; raises ValueError on anything that is not JSON Lines in UTF-8."""
    found = {}
    for line in out.decode("utf-8").split("\n"):
        if line:
            row = json.loads(line)
            found.setdefault(row["tgid"], []).append(row)
    return found


def text_difference(want, got):
    want = [row.line for row in want]
    if want == got:
        return None
    missing = [line for line in want if line not in set(got)]
    extra = [line for line in got if line not in set(want)]
    if not missing and not extra:
        return "order or repetition: %d rows, want %d" % (len(got), len(want))
    return "%d rows, want %d; missing %r; extra %r" % (len(got), len(want), missing[:3], extra[:3])


def json_row_difference(pid, want, got):
    expect = {"tgid": pid, "start": "0x%x" % want.start, "end": "0x%x" % want.end,
              "pgoff": want.pgoff, "prot": want.prot, "dev": want.dev, "ino": want.ino}
    for key, value in expect.items():
        if got.get(key) != value:
            return "%s is %r, want %r in %r" % (key, got.get(key), value, got)
    if got.get("kind") not in want.verdicts():
        return "kind is %r, want %r in %r" % (got.get("kind"), want.verdicts(), got)
    if (got.get("name"), got.get("deleted")) not in want.names():
        return "name, deleted are %r, want one of %r" % (
            (got.get("name"), got.get("deleted")), want.names())
    if not isinstance(got.get("tid"), int) or not isinstance(got.get("ino_generation"), int):
        return "tid or ino_generation is no number in %r" % got
    return None


def json_difference(pid, want, got):
    if len(want) != len(got):
        return "%d rows, want %d" % (len(got), len(want))
    for one, other in zip(want, got):
        difference = json_row_difference(pid, one, other)
        if difference:
            return difference
    return None


def differences(pid, want, text, text_exec, objects, objects_exec):
    executable = [row for row in want if row.executable]
    found = {
        "text": text_difference(want, text),
        "text, executable": text_difference(executable, text_exec),
        "JSON": json_difference(pid, want, objects),
        "JSON, executable": json_difference(pid, executable, objects_exec),
    }
    return ["%d: %s: %s" % (pid, view, what) for view, what in found.items() if what]


def one_process(vmaprof, pid):
    """None: could not be compared; else a list of differences."""
    for _ in range(TRIES):
        try:
            name = procmaps.comm(pid)
            before = procmaps.read_rows(pid)
            views = [run(vmaprof, "-p", str(pid), *more) for more in
                     (["--all-maps"], [], ["--all-maps", "--json"], ["--json"])]
            after = procmaps.read_rows(pid)
        except GONE:
            return None
        if [row.line for row in before] != [row.line for row in after]:
            continue
        if not before:
            return None
        for code, _, err in views:
            if code:
                return ["%d: exit %d: %s" % (pid, code, err.decode(errors="replace"))]
        text, text_exec = parse_text(views[0][1]), parse_text(views[1][1])
        for found in (text, text_exec):
            if list(found) != [pid]:
                return ["%d: rows of %s" % (pid, list(found))]
        if text[pid][0] != name.replace(b"\n", b"\\n") and b"\n" not in name:
            return ["%d: comment says %r, comm is %r" % (pid, text[pid][0], name)]
        return differences(pid, before, text[pid][1], text_exec[pid][1],
                           parse_json(views[2][1]).get(pid, []),
                           parse_json(views[3][1]).get(pid, []))
    return None


def whole_machine(vmaprof):
    """One call for all; who changed meanwhile is compared alone."""
    def snapshot():
        rows = {}
        for pid in procmaps.processes():
            try:
                rows[pid] = procmaps.read_rows(pid)
            except GONE:
                pass
        return {pid: lines for pid, lines in rows.items() if lines}

    before = snapshot()
    views = [run(vmaprof, *more) for more in
             (["--all-maps"], [], ["--all-maps", "--json"], ["--json"])]
    after = snapshot()
    for code, _, err in views:
        if code:
            return 0, ["exit %d: %s" % (code, err.decode(errors="replace"))], []
    text, text_exec = parse_text(views[0][1]), parse_text(views[1][1])
    objects, objects_exec = parse_json(views[2][1]), parse_json(views[3][1])

    compared, wrong, changing = 0, [], []
    for pid in sorted(set(before) & set(after)):
        same = [row.line for row in before[pid]] == [row.line for row in after[pid]]
        found = pid in text and differences(
            pid, before[pid], text[pid][1], text_exec.get(pid, (b"", []))[1],
            objects.get(pid, []), objects_exec.get(pid, []))
        if not same or found:
            found = one_process(vmaprof, pid)
        elif found is False:
            found = ["%d: no rows at all" % pid]
        if found is None:
            changing.append(pid)
            continue
        compared += 1
        wrong += found
    for pid in sorted(set(text) - set(before) - set(after)):
        try:
            if procmaps.live_tid(pid) and not procmaps.read_rows(pid):
                wrong.append("%d: rows of a process without memory" % pid)
        except GONE:
            pass
    return compared, wrong, changing


def main():
    vmaprof, targets = sys.argv[1], sys.argv[2:]
    if targets == ["all"]:
        compared, wrong, changing = whole_machine(vmaprof)
    else:
        compared, wrong, changing = 0, [], []
        for pid in map(int, targets):
            found = one_process(vmaprof, pid)
            if found is None:
                changing.append(pid)
            else:
                compared += 1
                wrong += found
    for line in wrong[:20]:
        print(line[:2000])
    print("%d processes equal or not, %d lines of differences, not comparable: %s" %
          (compared, len(wrong), changing or "none"))
    # a test that compared little says nothing
    return 1 if wrong or not compared or len(changing) > compared // 4 else 0


if __name__ == "__main__":
    sys.exit(main())
