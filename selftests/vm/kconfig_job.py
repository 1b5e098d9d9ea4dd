# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What selftests/vm/kconfig does in each of its guests, and what to make of what it prints."""
import re

WORKLOAD = "c.gcc.O2.pie"   # without frame pointers; its READY line says which stack to expect
SAMPLES_MIN = 20            # of its innermost function, in two emulated seconds
WHOLE_MIN_PERCENT = 90      # of these, with the stack that it says

# Sections of output, each with the exit status of its command. What runs for -a was there before the
# recording, so that the iterator must have told its mappings.
JOB = f"""
w=build/selftests/workloads/{WORKLOAD}
section() {{ echo "@ $1"; shift; "$@" 2>&1; echo "@ status $?"; }}
record() {{ build/vmaprof record -F 199 -o /tmp/p.folded "$@" && cat /tmp/p.folded; }}
section doctor build/vmaprof doctor
section json build/vmaprof doctor --json
section command record --duration 2 -- $w
section inline record --duration 2 --unwind-mode inline -- $w
section deferred record --duration 2 --unwind-mode deferred -- $w
$w & sleep 1
section all record -a --duration 2
# a kernel without ACPI cannot power off; QEMU ends at a reset, too
echo "@@ exit 0"
reboot -f
"""
RECORDINGS = ("command", "inline", "all")
NO_DEFERRED = "this kernel cannot run BPF in a task's context"


class Findings:
    """Hears the guest's lines."""

    def __init__(self):
        self.sections = {}   # name: lines
        self.status = {}     # name: of its command
        self.now = None

    def hear(self, line):
        word = line.split(" ", 2)
        if word[0] == "@" and word[1] == "status":
            self.status[self.now] = int(word[2])
        elif word[0] == "@":
            self.now = word[1]
            self.sections[self.now] = []
        elif self.now:
            self.sections[self.now].append(line)

    def text(self):
        return "".join(f"@ {n}\n" + "\n".join(lines) + f"\n@ status {self.status.get(n)}\n"
                       for n, lines in self.sections.items())

    def has(self, name, text):
        return any(text in line for line in self.sections.get(name, ()))

    def said(self, name):
        """record's own error, without its name; else its end."""
        lines = self.sections.get(name, [])
        own = [l for l in lines if l.startswith("vmaprof: record: ")]
        return own[-1][len("vmaprof: record: "):] if own else f"exit {self.status.get(name)}: " + " / ".join(lines[-3:])

    # ---- a kernel on which all must work ----------------------------------------------------

    def chain(self):
        """The functions that the workload says it is in."""
        for line in self.sections.get("command", []) + self.sections.get("all", []):
            m = re.search(r"chain=(\S+)", line)
            if m:
                return m[1]
        return None

    def bad_profile(self, name):
        """None, or what is wrong with a recording: the workload's stacks must be whole."""
        if self.status.get(name) != 0:
            return f"record ({name}): {self.said(name)}"
        stacks = [l.rsplit(" ", 1) for l in self.sections[name] if l.startswith(WORKLOAD[:15] + ";")]
        leaf = self.chain().split(";")[-1] if self.chain() else "?"
        inner = [(stack + ";", int(n)) for stack, n in stacks if f";{leaf};" in stack + ";" and n.isdigit()]
        count = sum(n for _, n in inner)
        whole = sum(n for stack, n in inner if f";{self.chain()};" in stack)
        if count < SAMPLES_MIN:
            return f"record ({name}): {count} samples of {leaf}() in {WORKLOAD}, not {SAMPLES_MIN}"
        if whole * 100 < count * WHOLE_MIN_PERCENT:
            return f"record ({name}): {whole} of {count} stacks have {self.chain()}"
        return None

    def bad_deferred(self):
        """Where the kernel has it it works, elsewhere the message says why not."""
        if self.has("json", '"name":"task_work","present":true'):
            return self.bad_profile("deferred")
        if self.status.get("deferred") == 0 or NO_DEFERRED not in self.said("deferred"):
            return f"record (deferred): on a kernel that has no such mode: {self.said('deferred')}"
        return None

    def wrong(self):
        """None if doctor and record work, else what does not."""
        if self.status.get("doctor") != 0:
            return "doctor: " + " / ".join(self.sections.get("doctor", ["nothing"])[-1:])
        for name in RECORDINGS:
            bad = self.bad_profile(name)
            if bad:
                return bad
        return self.bad_deferred()

    # ---- a kernel that lacks something --------------------------------------------------------

    def unnamed(self, option, feature, message):
        """None if doctor and record name it as Kconfig-min.md says, else what they say."""
        verdict = f"vmaprof record does not work here: missing {feature}."
        if self.status.get("doctor") != 1 or verdict not in self.sections["doctor"]:
            return f"doctor says: {self.sections.get('doctor', ['nothing'])[-1:]}, not: {verdict}"
        if not self.has("doctor", option):
            return f"doctor does not mention {option}"
        for name in RECORDINGS:
            if self.status.get(name) != 1 or self.said(name) != message:
                return f"record ({name}) says: {self.said(name)}, not: {message}"
        return None
