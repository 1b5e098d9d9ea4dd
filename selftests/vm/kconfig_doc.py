# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The lists of Kconfig-min.md, as selftests/vm/kconfig reads and writes them."""
import os
import re

from guest import TOP, CannotRun

DOCUMENT = os.path.join(TOP, "Kconfig-min.md")
RESULT = "## Last result"


class Row:
    """
    | `CONFIG_A`, `CONFIG_B` (before 6.10) | why | `feature` | `what record says` |

    Both options are needed, of kernels before 6.10; without one of them doctor says that the
    feature is missing and record gives the message. Without a message: nothing can run without it.
    """

    def __init__(self, line):
        cells = [c.strip() for c in line.strip().strip("|").split("|")]
        if len(cells) != 4:
            raise CannotRun(f"Kconfig-min.md: not four columns: {line.strip()}")
        before = re.search(r"\(before (\d+)\.(\d+)\)", cells[0])
        self.options = re.findall(r"`(CONFIG_\w+)`", cells[0])
        self.before = before and (int(before[1]), int(before[2]))
        self.feature = cells[2].strip("`")
        self.message = cells[3].strip("`")

    def counts_for(self, version):
        return not self.before or version < self.before


def required():
    """The rows of the section "Required"."""
    with open(DOCUMENT) as f:
        text = f.read()
    section = re.search(r"^## Required$(.*?)^## ", text, re.M | re.S)
    rows = [Row(l) for l in (section[1] if section else "").splitlines() if l.startswith("| `CONFIG_")]
    if not rows:
        raise CannotRun("Kconfig-min.md has no list of required options")
    return rows


def write_result(lines):
    """Puts them into the section "Last result", which is the last one."""
    with open(DOCUMENT) as f:
        text = f.read()
    head = text.split(RESULT)[0]
    with open(DOCUMENT + ".new", "w") as f:
        f.write(head + RESULT + "\n\n" + "\n".join(lines) + "\n")
    os.rename(DOCUMENT + ".new", DOCUMENT)
