# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What /proc/PID/maps says, as `vmaprof maps` and `vmaprof find` must say it."""

import os
import re

ROW = re.compile(rb"([0-9a-f]+)-([0-9a-f]+) (\S{4}) ([0-9a-f]+) ([0-9a-f]+):([0-9a-f]+) (\d+) (.*)", re.S)

# memory that the kernel backs with a file of its own, which no directory has
KERNEL_FILES = (b"/dev/zero", b"/anon_hugepage", b"/SYSV", b"/[aio]")


class Row:
    """One line of /proc/PID/maps."""

    def __init__(self, line):
        match = ROW.fullmatch(line)
        if not match:
            raise ValueError("not a row of maps: %r" % line)
        self.line = line
        self.start, self.end = int(match[1], 16), int(match[2], 16)
        self.prot = match[3].decode()
        self.pgoff = int(match[4], 16)
        self.dev = "%d:%d" % (int(match[5], 16), int(match[6], 16))
        self.ino = int(match[7])
        self.name = self._name(line, match.start(8))

    @staticmethod
    def _name(line, after_inode):
        # padded to column 72 and one space more; without a name the line ends after the inode
        return line[max(73, after_inode + 1):]

    @property
    def executable(self):
        return self.prot[2] == "x"

    def verdicts(self):
        """The verdicts (kinds) that are right for an address in it."""
        if not self.executable:
            return {"NOT_EXEC"}
        if self.name == b"[vdso]":
            return {"VDSO"}
        if self.name in (b"[vsyscall]", b"[uprobes]"):
            return {"SPECIAL"}
        if self.name.startswith(KERNEL_FILES):
            return {"FILE", "ANON_EXEC"}
        if self.name == b"" or self.name.startswith(b"[") and not self.ino:
            return {"ANON_EXEC"}
        return {"FILE"}

    def names(self):
        """
        (name, deleted) as JSON may say them. Both a file's own name may end in " (deleted)"
        and hold "\\012": maps shows that as it shows a newline.
        """
        answers = set()
        for raw in {self.name, self.name.replace(rb"\012", b"\n")}:
            text = raw.decode("utf-8", "replace") if raw else "//anon"
            answers.add((text, False))
            if text.endswith(" (deleted)"):
                answers |= {(text[: -len(" (deleted)")], True), (text, True)}
        return answers


def live_tid(pid):
    """A thread that still has the process's memory: the leader may be gone."""
    def state(tid):
        with open("/proc/%d/task/%d/stat" % (pid, tid), "rb") as stat:
            return stat.read().rpartition(b") ")[2][:1]

    tids = sorted(int(tid) for tid in os.listdir("/proc/%d/task" % pid))
    for tid in [pid] + tids:
        try:
            if state(tid) not in b"ZX":
                return tid
        except (FileNotFoundError, ProcessLookupError):
            pass
    raise ProcessLookupError(pid)


def has_our_root(task):
    return (os.readlink(task + "/root") == "/" and
            os.readlink(task + "/ns/mnt") == os.readlink("/proc/self/ns/mnt"))


def read_from_its_root(task):
    """The kernel writes paths from the reader's root: read by a child that is where the task is."""
    ours, its_end = os.pipe()
    child = os.fork()
    if not child:
        status = 1
        try:
            with open(task + "/maps", "rb") as maps, open(its_end, "wb") as out:
                os.chroot(task + "/root")
                out.write(maps.read())
            status = 0
        finally:
            os._exit(status)
    os.close(its_end)
    with open(ours, "rb") as pipe:
        text = pipe.read()
    if os.waitpid(child, 0)[1]:
        raise ProcessLookupError(task)
    return text


def read_rows(pid):
    """
    All rows as the process itself sees them; [] for a kernel thread or zombie; raises when the
    process is gone.
    """
    task = "/proc/%d/task/%d" % (pid, live_tid(pid))
    if has_our_root(task):
        with open(task + "/maps", "rb") as maps:
            text = maps.read()
    else:
        text = read_from_its_root(task)
    return [Row(line) for line in text.split(b"\n") if line]


def comm(pid):
    with open("/proc/%d/comm" % pid, "rb") as f:
        return f.read()[:-1]


def processes():
    return sorted(int(entry) for entry in os.listdir("/proc") if entry.isdigit())
