# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What tests printed, read; and the table, the JUnit file and the coverage that are made of it."""
import json
import re
from xml.sax.saxutils import escape, quoteattr

# xfail: a known bug of the kernel, which is there as expected; xpass: it is not
FAILED = ("fail", "xpass")
SKIPPED = ("skip", "xfail")
TEXT_MAX = 32768
REASON_MAX = 300


class Case:
    def __init__(self, result, text="", seconds=0.0, notes=()):
        self.result = result
        self.text = text
        self.seconds = seconds
        self.notes = notes      # what it exercised: "unwind inline"


class Reader:
    """Takes a suite's lines and gives (name, Case) to found(), as soon as they are known."""

    def __init__(self, found):
        self.found = found
        self.text = []

    def keep(self, line):
        self.text.append(line)

    def case(self, name, result, text=None, seconds=0.0, notes=()):
        if text is None:
            text = "\n".join(self.text)[-TEXT_MAX:]
        self.text = []
        self.found(name, Case(result, text, seconds, notes))


class Conformance(Reader):
    """vmaprof-selftest --json: an object a line."""

    def hear(self, line):
        try:
            case = json.loads(line)
            text = case["text"].strip()
            if case["result"] != "pass":
                text = f"expected: {case['expected']}\n{text}" if case["result"] in FAILED else text
            if case["fix"]:
                what = "the known bug is not there any more; its fix:" if case["result"] == "xpass" else "known bug, fixed by"
                text = f"{what} {case['fix']}\n{text}"
            self.case(case["case"], case["result"], text, case["ms"] / 1000)
        except (ValueError, KeyError, TypeError, AttributeError):
            self.keep(line)


class Criterion(Reader):
    """--verbose: "[PASS] suite::test: (0.01s)", "[SKIP] suite::test: why", "[FAIL] suite::test: …"."""

    RESULT = re.compile(r"\[(PASS|SKIP|FAIL)\] (\w+)::(\w+):? ?(.*)")

    def hear(self, line):
        m = self.RESULT.match(line)
        if not m:
            if not line.startswith("[RUN ]"):
                self.keep(line)
            return
        result, suite, test, rest = m.groups()
        if result == "SKIP" and rest == "Test is disabled":
            return  # the filter left it out
        took = re.search(r"\((\d+\.\d+)s\)", rest)
        if result == "FAIL" and not took:
            self.keep(rest)
        self.case(f"{suite}/{test}", result.lower(), rest if result == "SKIP" else None,
                  float(took.group(1)) if took else 0.0)


class E2e(Reader):
    """selftests/run: "e2e: passed: NAME (3 s) [unwind inline]"; the output of what failed precedes it."""

    RESULT = re.compile(r"e2e: (passed|skipped|FAILED): (\w+)(?: \((\d+) s\)|: (.*)| (\(.*\)))?(.*?)(?: \[(.*)\])?$")

    def hear(self, line):
        m = self.RESULT.match(line)
        if not m:
            self.keep(line)
            return
        result, name, seconds, why, status, _, notes = m.groups()
        result = {"passed": "pass", "skipped": "skip", "FAILED": "fail"}[result]
        if status:
            self.keep(status)
        self.case(name, result, why if result == "skip" else None, float(seconds or 0),
                  tuple(notes.split(", ")) if notes else ())


READERS = {"conformance": Conformance, "bpf": Criterion, "e2e": E2e}


class Kernel:
    """What one kernel made of all cases."""

    def __init__(self, name):
        self.name = name
        self.cases = {}     # "bpf live/x": Case
        self.trouble = []   # of the kernel itself, or of the run
        self.without = []   # suites that have no test of the name that was asked for
        self.release = None

    def count(self, results):
        return sum(1 for c in self.cases.values() if c.result in results)

    def counts(self):
        """passed, failed, skipped"""
        return self.count(("pass",)), self.count(FAILED) + len(self.trouble), self.count(SKIPPED)


def sum_line(kernels):
    each = [k.counts() for k in kernels]
    return "{} passed, {} failed, {} skipped".format(*(sum(c[i] for c in each) for i in range(3)))


def reason(case):
    """In a line: what an e2e test says first, else the end of what there is."""
    lines = [re.sub(r"^\[----\] *", "", line).strip() for line in case.text.splitlines()]
    first = next((line for line in lines if line.startswith("FAIL: ")), None)
    return first[:REASON_MAX] if first else " / ".join(lines[-4:])[-REASON_MAX:]


def what_failed(kernels):
    """A line each: for who sees only the end of a long log."""
    lines = []
    for k in kernels:
        lines += [f"{k.name}: {case.result}: {name}: {reason(case)}"
                  for name, case in k.cases.items() if case.result in FAILED]
        lines += [f"{k.name}: {text}" for text in k.trouble]
    return lines


def table(kernels):
    """[(line, whether it says more than that all is well)]"""
    cases = sorted({c for k in kernels for c in k.cases})
    width = max([len(c) for c in cases] + [4])
    columns = [max(len(k.name), 5) for k in kernels]
    rows = [("case".ljust(width) + "".join(f"  {k.name:>{w}}" for k, w in zip(kernels, columns)), True)]
    for c in cases:
        got = [k.cases[c].result if c in k.cases else "-" for k in kernels]
        rows.append((c.ljust(width) + "".join(f"  {r:>{w}}" for r, w in zip(got, columns)),
                     any(r in FAILED for r in got) or len(set(got)) > 1))
    return rows


# XML 1.0 has no way to write them
NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd]")


def junit_case(name, case):
    suite, _, test = name.rpartition("/")
    head = f"    <testcase classname={quoteattr(suite or name)} name={quoteattr(test)} time=\"{case.seconds:.3f}\""
    text = NOT_XML.sub("?", case.text)
    if case.result in FAILED:
        first = (text.strip().splitlines() or [case.result])[0]
        return f"{head}><failure message={quoteattr(first)}>{escape(text)}</failure></testcase>\n"
    if case.result in SKIPPED:
        return f"{head}><skipped message={quoteattr(text)}/></testcase>\n"
    return head + "/>\n"


def write_junit(path, kernels):
    with open(path, "w", encoding="utf-8") as f:
        f.write('<?xml version="1.0" encoding="UTF-8"?>\n<testsuites>\n')
        for k in kernels:
            passed, failed, skipped = k.counts()
            f.write(f"  <testsuite name={quoteattr(k.name)} tests=\"{passed + failed + skipped}\" "
                    f"failures=\"{failed}\" skipped=\"{skipped}\">\n")
            for name in sorted(k.cases):
                f.write(junit_case(name.replace(" ", "/", 1), k.cases[name]))
            for i, text in enumerate(k.trouble):
                f.write(junit_case(f"kernel/trouble_{i + 1}", Case("fail", text)))
            f.write("  </testsuite>\n")
        f.write("</testsuites>\n")


# ---- what was exercised where -------------------------------------------------------------------

THINGS = ["unwind inline", "unwind deferred", "track fentry", "track kprobe", "track sideband",
          "track samples", "ask find_vma alone", "ask find_vma and tree"]

# of vmaprof's own bpf tests, by the start of their names; the first that fits
BPF_TESTS = [("live_fentry/", "track fentry"), ("live_kprobe/", "track kprobe"),
             ("live_sideband/", "track sideband"), ("sampler/", "unwind inline"), ("unwind/", "unwind inline"),
             ("unwind_random/", "unwind inline"), ("unwind_rules/", "unwind inline"),
             ("mm_walk/without_it", "ask find_vma alone"), ("mm_walk/all_unknown", "ask find_vma and tree")]


def exercised(name, case):
    """What a test did, by what it said, or by what it is."""
    suite, _, test = name.partition(" ")
    if suite != "bpf":
        return case.notes
    of = test.split("/")[0]
    if of.startswith("deferred") or of.endswith("_deferred"):
        return ("unwind deferred",)
    return [thing for start, thing in BPF_TESTS if test.startswith(start)][:1]


def evidence(kernel, thing):
    """How many tests that passed did it there."""
    return sum(1 for name, c in kernel.cases.items() if c.result == "pass" and thing in exercised(name, c))


def coverage(kernels):
    """Lines; the last ones say what no kernel has exercised."""
    width = max(len(t) for t in THINGS)
    columns = [max(len(k.name), 5) for k in kernels]
    lines = ["tests that passed and did it".ljust(width) + "".join(f"  {k.name:>{w}}" for k, w in zip(kernels, columns))]
    width = max(width, len("tests that passed and did it"))
    nowhere = []
    for thing in THINGS:
        cnt = [evidence(k, thing) for k in kernels]
        lines.append(thing.ljust(width) + "".join(f"  {n or '-':>{w}}" for n, w in zip(cnt, columns)))
        if not any(cnt):
            nowhere.append(thing)
    return lines + [f"nowhere: {t}" for t in nowhere]


def read_host(path):
    """What `selftests/run` has left of the last `make check` on this machine, or None."""
    try:
        with open(path, encoding="utf-8", errors="replace") as f:
            lines = f.read().splitlines()
    except FileNotFoundError:
        return None
    host = Kernel("here")
    e2e = E2e(lambda name, case: host.cases.__setitem__("e2e " + name, case))
    for line in lines:
        m = re.match(r"(ok|not ok) - (\w+)::(\w+)(.*# SKIP)?", line)
        if m:
            result = "skip" if m.group(4) else "pass" if m.group(1) == "ok" else "fail"
            host.cases[f"bpf {m.group(2)}/{m.group(3)}"] = Case(result)
        elif line.startswith("kernel "):
            host.release = line.split()[1]
        else:
            e2e.hear(line)
    return host
