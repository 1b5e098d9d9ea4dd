# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The initramfs of a guest: busybox, the conformance suite, vmaprof and the workloads, with the
libraries that they load; and for a kernel whose drivers are modules, those. Enough for a kernel that
can do little more than start a process."""
import gzip
import lzma
import os
import re
import shutil
import subprocess
import zlib

from image import TOP, VM, CannotRun, newest, own_name

BUILD = os.path.join(TOP, "build")
VMDIR = os.path.join(TOP, "selftests/vm")

# Modules that the first process loads, as far as this kernel has them as modules: for the disks, and
# file systems that tests mount. What these need comes along.
MODULES = ["virtio_pci", "virtio_blk", "ext4", "overlay", "loop"]


class Cpio:
    """An archive as the kernel takes it (newc), in memory."""

    def __init__(self):
        self.parts = []
        self.names = set()

    def entry(self, name, mode, data=b""):
        if name in self.names:
            return
        self.names.add(name)
        folder = os.path.dirname(name)
        if folder:
            self.entry(folder, 0o040755)
        fields = (len(self.names), mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name) + 1, 0)
        head = b"070701" + b"".join(b"%08x" % f for f in fields) + name.encode() + b"\0"
        self.parts += [head, b"\0" * (-len(head) % 4), data, b"\0" * (-len(data) % 4)]

    def file(self, name, data, mode=0o100755):
        self.entry(name.strip("/"), mode, data)

    def copy(self, path, name=None):
        with open(path, "rb") as f:
            self.file(name or path, f.read())

    def done(self):
        self.names.discard("TRAILER!!!")
        self.entry("TRAILER!!!", 0)
        return b"".join(self.parts)


def libraries_of(path):
    """What the dynamic linker would load; nothing for a static program or a script."""
    out = subprocess.run(["ldd", path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    return re.findall(r"(/\S+) \(0x", out.stdout)


def programs():
    """[(path here, path there)]"""
    found = [(os.path.join(BUILD, n), "vmaprof/build/" + n) for n in ("vmaprof", "vmaprof-selftest")]
    folder = os.path.join(BUILD, "selftests/workloads")
    names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    found += [(os.path.join(folder, n), "vmaprof/build/selftests/workloads/" + n) for n in names]
    return [(p, to) for p, to in found if os.path.isfile(p) and os.access(p, os.X_OK)]


def make_base():
    c = Cpio()
    busybox = shutil.which("busybox")
    if not busybox:
        raise CannotRun("no busybox (apt-get install busybox-static)")
    for folder in ("proc", "sys", "dev", "tmp", "root", "run", "mnt", "usr/bin", "usr/sbin", "sbin"):
        c.entry(folder, 0o040755)
    c.copy(busybox, "bin/busybox")
    for applet in subprocess.run([busybox, "--list"], stdout=subprocess.PIPE, text=True,
                                 check=True).stdout.split():
        c.entry("bin/" + applet, 0o120777, b"busybox")
    c.file("etc/passwd", b"root:x:0:0:root:/root:/bin/sh\n", 0o100644)
    c.file("etc/group", b"root:x:0:\n", 0o100644)
    for path in libraries_of(busybox):
        c.copy(path)
    for path, to in programs():
        c.copy(path, to)
        for library in libraries_of(path):
            c.copy(library)
    c.copy(os.path.join(VMDIR, "initrd-init"), "init")
    c.copy(os.path.join(VMDIR, "init"), "second-init")
    return c.done()


def base():
    """The part that is the same for all kernels, made anew if what is in it is newer; its path."""
    out = os.path.join(VM, "guest.cpio.gz")
    parts = [p for p, _ in programs()] + [os.path.join(VMDIR, n) for n in ("initrd.py", "init", "initrd-init")]
    if not os.path.exists(os.path.join(BUILD, "vmaprof-selftest")):
        raise CannotRun("nothing to run: build it first (make vm-tests)")
    os.makedirs(VM, exist_ok=True)
    if not os.path.exists(out) or os.path.getmtime(out) <= newest(parts):
        new = own_name(out)
        with gzip.open(new, "wb", compresslevel=1) as f:
            f.write(make_base())
        os.rename(new, out)
    return out


# ---- modules ------------------------------------------------------------------------------------

def module_folder(image, name):
    """Where a kernel's modules are: in its build tree, or beside a distribution's boot/."""
    if os.path.isdir(name):
        return name
    folder = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(image))), "lib/modules")
    release = os.path.basename(image).partition("vmlinuz-")[2]
    # /boot and /lib/modules may be those of several
    return os.path.join(folder, release) if release else folder


def module_name(file_name):
    m = re.fullmatch(r"(.+?)\.ko(\.xz|\.gz|\.zst)?", file_name)
    return m.group(1).replace("-", "_") if m else None


def read_module(path):
    try:
        with open(path, "rb") as f:
            data = f.read()
        if path.endswith(".xz"):
            return lzma.decompress(data)
        if path.endswith(".zst"):
            return subprocess.run(["zstd", "-qdc"], input=data, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                  check=True).stdout
        return gzip.decompress(data) if path.endswith(".gz") else data
    except FileNotFoundError:
        raise CannotRun(f"{path}: no zstd to unpack it (apt-get install zstd)") from None
    except (OSError, EOFError, lzma.LZMAError, zlib.error, subprocess.CalledProcessError):
        raise CannotRun(f"{path}: cannot be read, or is damaged") from None


def modules(folder):
    """[(name, content)] in the order in which they are to be loaded."""
    paths = {}
    for at, _, names in os.walk(folder):
        paths.update({module_name(n): os.path.join(at, n) for n in names if module_name(n)})
    found = {}

    def add(name):
        if name in found or name not in paths:
            return
        data = read_module(paths[name])
        m = re.search(rb"\0depends=([^\0]*)\0", data)
        # one that is only asked for by name at run time
        needed = (m.group(1).decode().split(",") if m else []) + (["crc32c_generic"] if name == "ext4" else [])
        for other in needed:
            add(other.replace("-", "_"))
        found[name] = data

    for name in MODULES:
        add(name)
    return list(found.items())


def initrd(out, image, name, job):
    """Writes one for this kernel and job. Archives may follow each other."""
    c = Cpio()
    c.file("job", job.encode())
    names = []
    for i, (module, data) in enumerate(modules(module_folder(image, name))):
        names.append(f"modules/{i:02}-{module}.ko")
        c.file(names[-1], data, 0o100644)
    with open(out, "wb") as f:
        with open(base(), "rb") as g:
            shutil.copyfileobj(g, f)
        f.write(b"\0" * (-f.tell() % 4))
        f.write(gzip.compress(c.done(), 1))
