# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Debian's kernel source, a configuration of few options, and a bzImage of it."""
import fcntl
import os
import re
import shutil
import signal
import subprocess
import sys

from guest import VM, CannotRun

DIR = os.path.join(VM, "kconfig")
LOG = os.path.join(DIR, "build.log")
# what tinyconfig is made of
TINY = ("kernel/configs/tiny-base.config", "kernel/configs/tiny.config", "arch/x86/configs/tiny.config")
TOOLS = {"gcc": "gcc", "make": "make", "flex": "flex", "bison": "bison", "bc": "bc", "pahole": "dwarves",
         "xz": "xz-utils", "tar": "tar", "cpio": "cpio", "busybox": "busybox-static",
         "qemu-system-x86_64": "qemu-system-x86"}
OPTION = re.compile(r"(?:# )?(CONFIG_\w+)(?:=(\S+)| is not set)")


def say(text):
    print(text, flush=True)


def check_tools():
    missing = [package for tool, package in TOOLS.items() if not shutil.which(tool)]
    if not os.path.exists("/usr/include/libelf.h") and not os.path.exists("/usr/include/elfutils/libelf.h"):
        missing.append("libelf-dev")
    if missing:
        raise CannotRun("missing to build and boot a kernel: " + ", ".join(missing) +
                        " (apt-get install " + " ".join(missing) + ")")


def lock():
    """One run at a time: they share a tree. Held as long as the process lives."""
    os.makedirs(DIR, exist_ok=True)
    fd = os.open(os.path.join(DIR, "lock"), os.O_CREAT | os.O_RDWR | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise CannotRun(f"another run builds in {DIR}") from None


# ---- the source -----------------------------------------------------------------------------


def run(cmd, cwd=None):
    """Its output if it succeeded, else None."""
    got = subprocess.run(cmd, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return got.stdout if got.returncode == 0 else None


def download(package, into):
    cmd = ["apt-get", "-o", "APT::Sandbox::User=root", "download", package]
    if not shutil.which("apt-get"):
        raise CannotRun(f"{package}: no apt-get here (name a tree: KSRC=path)")
    # lists that are missing or too old: fetch them once
    if run(cmd, into) is None and (run(["apt-get", "update"]) is None or run(cmd, into) is None):
        raise CannotRun(f"{package} cannot be downloaded (is there a network, and such a package?)")
    return os.path.join(into, next(f for f in os.listdir(into) if f.endswith(".deb")))


def source(version):
    """Debian's source of a version, 6.12 or 6.1; unpacked beside and renamed: half a tree is none."""
    package = f"linux-source-{version}"
    tree = os.path.join(DIR, package)
    if os.path.isdir(tree):
        return tree
    new = tree + ".new"
    shutil.rmtree(new, ignore_errors=True)
    os.makedirs(new)
    say(f"kconfig: fetching {package} (150 MB)")
    deb = download(package, new)
    say(f"kconfig: unpacking {os.path.basename(deb)}")
    if run(["dpkg-deb", "-x", deb, new]) is None:
        raise CannotRun(f"{package} cannot be unpacked")
    os.unlink(deb)
    tar = os.path.join(new, "usr/src", package + ".tar.xz")
    if run(["nice", "tar", "-xf", tar, "-C", new]) is None:
        raise CannotRun(f"{tar} cannot be unpacked (is the disk full?)")
    os.rename(os.path.join(new, package), tree)
    shutil.rmtree(new)
    return tree


def check_source(tree):
    if not os.path.exists(os.path.join(tree, "Kbuild")):
        raise CannotRun(f"{tree}: no kernel source tree")


def version_of(tree):
    """(6, 12)"""
    with open(os.path.join(tree, "Makefile")) as f:
        words = dict(re.findall(r"^(VERSION|PATCHLEVEL) = (\d+)$", f.read(1000), re.M))
    return int(words["VERSION"]), int(words["PATCHLEVEL"])


def end_with_parent():
    import ctypes
    ctypes.CDLL(None).prctl(1, signal.SIGTERM)


# ---- configuration and build ----------------------------------------------------------------


def read_options(path):
    """CONFIG_X: value; what is off has the value "n"."""
    with open(path) as f:
        return {m[1]: m[2] or "n" for m in map(OPTION.match, f) if m}


class Build:
    """One object tree: each configuration is built over the one before it."""

    def __init__(self, tree, jobs):
        self.tree = tree
        self.obj = os.path.join(DIR, "obj-" + ".".join(map(str, version_of(tree))))
        self.make = ["nice", "-n", "10", "make", "-C", tree, "O=" + self.obj, "ARCH=x86", f"-j{jobs}",
                     "KBUILD_BUILD_TIMESTAMP=1970-01-01", "KBUILD_BUILD_USER=vmaprof", "KBUILD_BUILD_HOST=vmaprof"]
        self.env = dict(os.environ, CCACHE_DIR=os.path.join(DIR, "ccache"))
        if shutil.which("ccache"):
            self.make.append("CC=ccache gcc")
        os.makedirs(self.obj, exist_ok=True)

    def run_make(self, *args, env=None):
        with open(LOG, "w") as log:
            p = subprocess.run(self.make + list(args), stdout=log, stderr=subprocess.STDOUT,
                               stdin=subprocess.DEVNULL, env=dict(self.env, **(env or {})),
                               preexec_fn=end_with_parent)
        if p.returncode == 0:
            return
        with open(LOG) as log:
            lines = log.read().splitlines()
        wrong = [l for l in lines if re.search(r"error|undefined reference|\*\*\*|FAILED", l)] or lines
        print("\n".join(wrong[:20]), file=sys.stderr)
        raise CannotRun(f"the kernel does not build: see {LOG}")

    def configure(self, options):
        """tinyconfig with these on top ({CONFIG_X: "y" or "n"}); what came out of it."""
        base = {}
        for name in TINY:
            if os.path.exists(os.path.join(self.tree, name)):
                base.update(read_options(os.path.join(self.tree, name)))
        base.update(options)
        wanted = os.path.join(self.obj, "wanted.config")
        with open(wanted, "w") as f:
            f.writelines(f"# {o} is not set\n" if v == "n" else f"{o}={v}\n" for o, v in base.items())
        # as tinyconfig does it: what nobody names is off, where it can be
        self.run_make("allnoconfig", env={"KCONFIG_ALLCONFIG": wanted})
        return read_options(os.path.join(self.obj, ".config"))

    def image(self):
        self.run_make("bzImage")
        return os.path.join(self.obj, "arch/x86/boot/bzImage")
