# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What a guest is made of: an initramfs that each kernel can start from, and two disks for tests
that need more than busybox.

The tools take 0.9 GB, which an initramfs would unpack into memory at each boot; of a disk only what is
used is read. So they are an ext4 image, which is made once (from the packages that are installed here:
their lists of files say what belongs to a program, also what it loads at run time), and what `make
tests` built is a small second one. Both are written to by guests, through QEMU's
snapshots: nothing is laid over them, because files on an overlay do not have the numbers that
tests compare.
"""
import hashlib
import os
import re
import shutil
import stat
import subprocess
import tempfile

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
VM = os.path.join(TOP, "build", "vm")

# What tests call, beyond what each Debian has. No browser, no rustc and go: their tests look at
# files, not at the kernel, and take long enough where nothing is emulated.
PACKAGES = """libcriterion3 libbpf1 libdw1 clang llvm libbpf-dev gcc g++ jq linux-perf gdb python3 elfutils
    strace util-linux libcap2-bin coreutils procps btrfs-progs openssl perl ripgrep fzf nodejs luajit
    xz-utils busybox-static dwz mount""".split()
LEFT_OUT = re.compile(r"/usr/share/(doc|man|info|locale|i18n|lintian|icons|applications|bug|zoneinfo)/|"
                      r"/usr/lib/python3/dist-packages/|/usr/lib/gcc/.*/(lto1|lto-wrapper|go1|f951)$|"
                      r"/usr/lib/x86_64-linux-gnu/gconv/|/usr/share/nodejs/.*\.map$")


class CannotRun(Exception):
    pass


def own_name(path):
    """A name beside a file for making it anew; what a runner that was killed left so is removed."""
    return os.path.join(os.path.dirname(path), f"run.{os.getpid()}.{os.path.basename(path)}")


# ---- packages -----------------------------------------------------------------------------------

def installed():
    """{package: (is essential, names it depends on)} and {virtual package: a real one}."""
    try:
        out = subprocess.run(
            ["dpkg-query", "-W", "-f", "${Package}\t${db:Status-Status}\t${Essential}\t"
             "${Pre-Depends}, ${Depends}\t${Provides}\n"], stdout=subprocess.PIPE, text=True,
            check=True).stdout
    except FileNotFoundError:
        raise CannotRun("no dpkg here: only a Debian's packages can be put into a guest "
                        "(the conformance suite needs none of them)") from None
    packages, provides = {}, {}
    for line in out.splitlines():
        name, status, essential, depends, provided = line.split("\t")
        if status != "installed":
            continue
        packages[name] = essential == "yes", re.split(r"\s*,\s*", depends)
        for other in re.findall(r"[a-z0-9][a-z0-9+.-]+(?= *(?:\(|,|$))", provided):
            provides[other] = name
    return packages, provides


def with_dependencies(names):
    packages, provides = installed()
    missing = [n for n in names if n not in packages]
    if missing:
        raise CannotRun(f"not installed: {' '.join(missing)} (run .ci/deps test vm)")
    wanted, found = list(names) + [n for n, p in packages.items() if p[0]], set()
    while wanted:
        name = wanted.pop()
        if name in found:
            continue
        found.add(name)
        for choice in packages[name][1]:
            alternatives = [re.split(r"[ :(]", a.strip())[0] for a in choice.split("|")]
            alternatives = [provides.get(a, a) for a in alternatives]
            wanted += [a for a in alternatives if a in packages][:1]
    return sorted(found)


def files_of(packages):
    out = subprocess.run(["dpkg-query", "-L"] + packages, stdout=subprocess.PIPE, text=True,
                         check=True).stdout
    return sorted({p for p in out.splitlines() if p.startswith("/") and not LEFT_OUT.search(p)})


# ---- trees --------------------------------------------------------------------------------------

def place_of(path):
    """Where a file is really: /bin/sh is in /usr/bin."""
    return os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))


def copy_into(root, path, to=None):
    """One file, link or folder; what is not there is left out."""
    to = root + (to or path)
    try:
        mode = os.lstat(path).st_mode
    except OSError:
        return
    if stat.S_ISDIR(mode):
        os.makedirs(to, exist_ok=True)
        return
    os.makedirs(os.path.dirname(to), exist_ok=True)
    if os.path.lexists(to):
        return
    if stat.S_ISREG(mode) or stat.S_ISLNK(mode):
        shutil.copy2(path, to, follow_symlinks=False)


def make_ext4(tree, out, extra_mb):
    size = int(subprocess.run(["du", "-sm", tree], stdout=subprocess.PIPE, text=True,
                              check=True).stdout.split()[0])
    new = own_name(out)
    try:
        # no journal: what is written is thrown away
        subprocess.run(["mke2fs", "-q", "-F", "-t", "ext4", "-O", "^has_journal", "-m", "0", "-N", "200000",
                        "-E", "root_owner=0:0", "-d", tree, new,
                        f"{size * 11 // 10 + extra_mb}M"], check=True, stdout=subprocess.DEVNULL,
                       env=dict(os.environ, PATH=os.environ.get("PATH", "") + ":/usr/sbin:/sbin"))
    except FileNotFoundError:
        raise CannotRun("no mke2fs (apt-get install e2fsprogs)") from None
    os.rename(new, out)


def make_tools(tree):
    for path in ("/dev", "/proc", "/sys", "/run", "/tmp", "/root", "/vmaprof", "/var/tmp", "/etc"):
        os.makedirs(tree + path, exist_ok=True)
    os.chmod(tree + "/tmp", 0o1777)
    os.chmod(tree + "/var/tmp", 0o1777)
    for link in ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"):
        if os.path.islink(link):
            os.makedirs(tree + place_of(os.readlink(link) if os.readlink(link).startswith("/")
                                        else "/" + os.readlink(link)), exist_ok=True)
            copy_into(tree, link)
    for path in files_of(with_dependencies(PACKAGES)):
        copy_into(tree, place_of(path))
    # what packages make when they are installed: names of commands, the linker's list, users
    for folder in ("/etc/alternatives", "/usr/bin", "/usr/sbin", "/etc/ld.so.conf.d"):
        for name in os.listdir(folder):
            path = os.path.join(folder, name)
            if folder.startswith("/usr") and not (
                    os.path.islink(path) and os.readlink(path).startswith("/etc/alternatives/")):
                continue
            copy_into(tree, path)
    for name in ("passwd", "group", "nsswitch.conf", "ld.so.conf", "ld.so.cache"):
        copy_into(tree, "/etc/" + name)
    with open(tree + "/etc/hosts", "w", encoding="ascii") as f:
        f.write("127.0.0.1 localhost guest\n")


def tools_image():
    """The disk with programs; made again when packages have changed."""
    out = os.path.join(VM, "tools.ext4")
    packages = with_dependencies(PACKAGES)
    versions = subprocess.run(["dpkg-query", "-W"] + packages, stdout=subprocess.PIPE, text=True,
                              check=True).stdout
    with open(__file__, "rb") as f:
        key = hashlib.sha256(versions.encode() + f.read()).hexdigest()
    key_file = out + ".key"
    if os.path.exists(out) and os.path.exists(key_file):
        with open(key_file, encoding="ascii") as f:
            if f.read() == key:
                return out
    os.makedirs(VM, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=VM, prefix=f"run.{os.getpid()}.") as tree:
        make_tools(tree)
        make_ext4(tree, out, 1024)
    with open(key_file, "w", encoding="ascii") as f:
        f.write(key)
    return out


# ---- what was built -----------------------------------------------------------------------------

BUILT = ["vmaprof", "vmaprof-selftest", "selftests/bpf", "selftests/compare-rows", "selftests/workloads",
         "selftests/e2e", "selftests/prog", "kern"]
SOURCES = ["selftests", "kern", "include", "vmlinux", "user", "Makefile"]


def newest(paths):
    found = 0
    for path in paths:
        for folder, _, names in os.walk(path):
            found = max([found] + [os.lstat(os.path.join(folder, n)).st_mtime for n in names])
        if os.path.exists(path):
            found = max(found, os.path.getmtime(path))
    return found


def tests_image():
    """The disk with what `make tests` built and the sources that tests read."""
    out = os.path.join(VM, "tests.ext4")
    build = os.path.join(TOP, "build")
    for name in ("vmaprof", "selftests/bpf"):
        if not os.path.exists(os.path.join(build, name)):
            raise CannotRun("nothing to run: build it first (make tests)")
    parts = [(os.path.join(build, n), "build/" + n) for n in BUILT]
    parts += [(os.path.join(TOP, n), n) for n in SOURCES]
    if os.path.exists(out) and os.path.getmtime(out) > newest([p for p, _ in parts]):
        return out
    os.makedirs(VM, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=VM, prefix=f"run.{os.getpid()}.") as tree:
        for path, name in parts:
            to = os.path.join(tree, name)
            os.makedirs(os.path.dirname(to), exist_ok=True)
            if os.path.isdir(path):
                shutil.copytree(path, to, symlinks=True, ignore=shutil.ignore_patterns("*.o.tmp", "__pycache__"))
            elif os.path.exists(path):
                shutil.copy2(path, to)
        make_ext4(tree, out, 256)
    return out
