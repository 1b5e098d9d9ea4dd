# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Boots kernels in QEMU, with what `make tests` built, and says what becomes of them."""
import gzip
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
VM = os.path.join(TOP, "build", "vm")
CONSOLE_MAX_BYTES = 64 << 20

# What a kernel says when something in it is wrong. Stalls are not among them: a guest that is
# emulated on a busy machine stands still at times.
COMPLAINTS = re.compile(
    rb"Kernel panic|BUG: |Oops[: ]|WARNING: |general protection fault|unable to handle|"
    rb"possible (?:recursive|circular|irq)|inconsistent lock state|bad unlock balance|"
    rb"suspicious RCU usage|KASAN|UBSAN|KCSAN|scheduling while atomic|"
    rb"still has locks held|lock held when returning|soft lockup|hard LOCKUP|blocked for more than")


class CannotRun(Exception):
    pass


def kernel_image(name):
    """A path, a build tree, or the name of one of Debian's."""
    if os.path.isdir(name):
        for image in ("arch/x86/boot/bzImage", "arch/x86_64/boot/bzImage"):
            if os.path.exists(os.path.join(name, image)):
                return os.path.join(name, image)
        raise CannotRun(f"{name}: no arch/x86/boot/bzImage in it (build the kernel first)")
    if "/" in name or os.path.exists(name):
        if not os.path.exists(name):
            raise CannotRun(f"{name}: no such file")
        return name
    got = subprocess.run([os.path.join(TOP, "selftests/vm/fetch"), name], stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE, text=True)
    if got.returncode:
        raise CannotRun(got.stderr.strip().splitlines()[-1])
    return got.stdout.strip()


def check_image(path):
    """QEMU boots anything at all; a file that is no kernel would be a guest that never starts."""
    with open(path, "rb") as f:
        head = f.read(0x210)
    if len(head) < 0x210 or head[0x202:0x206] != b"HdrS":
        raise CannotRun(f"{path}: not a bzImage, or cut off")
    setup_sects = head[0x1f1] or 4
    syssize = int.from_bytes(head[0x1f4:0x1f8], "little")
    if os.path.getsize(path) < (setup_sects + 1) * 512 + syssize * 16 - 15:
        raise CannotRun(f"{path}: cut off ({os.path.getsize(path)} bytes)")


def newest(paths):
    return max((os.path.getmtime(p) for p in paths if os.path.exists(p)), default=0)


def guest_files():
    """The packed file system, made anew if what is in it is newer."""
    out = os.path.join(VM, "guest.cpio.gz")
    build = os.path.join(TOP, "build")
    parts = [os.path.join(build, p) for p in ("vmaprof", "vmaprof-selftest", "selftests/bpf")]
    parts += [os.path.join(TOP, "selftests/vm", p) for p in ("pack", "init")]
    if not os.path.exists(parts[0]) or not os.path.exists(parts[2]):
        raise CannotRun("nothing to run: build it first (make tests)")
    os.makedirs(VM, exist_ok=True)
    if not os.path.exists(out) or os.path.getmtime(out) < newest(parts):
        subprocess.run([os.path.join(TOP, "selftests/vm/pack"), out], check=True)
    return out


def cpio_file(name, text):
    """One file as a cpio archive, which the kernel takes behind another one."""
    def entry(path, mode, data):
        fields = (0, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(path) + 1, 0)
        head = b"070701" + b"".join(b"%08x" % f for f in fields) + path.encode() + b"\0"
        head += b"\0" * (-len(head) % 4)
        return head + data + b"\0" * (-len(data) % 4)
    return gzip.compress(entry(name, 0o100755, text.encode()) + entry("TRAILER!!!", 0, b""))


class Guest:
    """One boot. Its lines arrive through on_line(); complaints of the kernel are in .complaints."""

    def __init__(self, args, on_line):
        self.args = args
        self.on_line = on_line
        self.complaints = []
        self.status = None      # of the job
        self.kernel = None
        self.dir = tempfile.mkdtemp(prefix="vmaprof-vm.")
        self.qemu = None

    def command(self, image, initrd):
        args = self.args
        accel = "kvm" if args.kvm else "tcg,thread=multi"
        cmd = ["qemu-system-x86_64", "-accel", accel, "-cpu", "host" if args.kvm else "max",
               "-smp", str(args.cpus), "-m", str(args.memory), "-kernel", image, "-initrd", initrd,
               "-append", f"console=ttyS0 panic=-1 oops=panic vmaprof.sacrificial {args.append}".strip(),
               "-no-reboot", "-nic", "none", "-display", "none", "-monitor", "none",
               "-serial", f"file:{self.console}", "-serial", f"file:{self.results}"]
        if args.gdb:
            cmd += ["-S", "-gdb", "tcp:127.0.0.1:1234"]
        return cmd

    def start(self, image, job):
        check_image(image)
        if not shutil.which("qemu-system-x86_64"):
            raise CannotRun("no qemu-system-x86_64 (apt-get install qemu-system-x86)")
        initrd = os.path.join(self.dir, "initrd")
        with open(initrd, "wb") as f:
            with open(guest_files(), "rb") as g:
                shutil.copyfileobj(g, f)
            f.write(cpio_file("job", job))
        self.console = os.path.join(self.dir, "console")
        self.results = os.path.join(self.dir, "results")
        self.qemu = subprocess.Popen(self.command(image, initrd), stdin=subprocess.DEVNULL,
                                     stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                     preexec_fn=die_with_parent)
        if self.args.gdb:
            print("waiting for gdb: gdb vmlinux -ex 'target remote :1234'", file=sys.stderr)

    def take_lines(self, path, state):
        """Whole lines that are new in a file."""
        try:
            with open(path, "rb") as f:
                f.seek(state["at"])
                data = f.read(1 << 20)
        except FileNotFoundError:
            return []
        state["at"] += len(data)
        lines = (state["rest"] + data).split(b"\n")
        state["rest"] = lines.pop()[-4096:]
        return [l.rstrip(b"\r") for l in lines]

    def hear_console(self, line):
        if COMPLAINTS.search(line):
            self.complaints.append(line.decode("utf-8", "replace").strip())
        if self.args.verbose:
            print("console: " + line.decode("utf-8", "replace"), flush=True)

    def hear_result(self, line):
        line = line.decode("utf-8", "replace")
        if line.startswith("@@ booted "):
            self.kernel = line.split()[2]
        elif line.startswith("@@ exit "):
            self.status = int(line.split()[2])
        else:
            self.on_line(line)

    def run(self):
        """Until it ends by itself, or must be ended: then why, else None."""
        console, results = {"at": 0, "rest": b""}, {"at": 0, "rest": b""}
        began = heard = time.monotonic()
        why = None
        while True:
            ended = self.qemu.poll() is not None
            new = self.take_lines(self.console, console)
            for line in new:
                self.hear_console(line)
            got = self.take_lines(self.results, results)
            for line in got:
                self.hear_result(line)
            now = time.monotonic()
            if new or got:
                heard = now
            elif ended:
                break
            else:
                time.sleep(0.1)
            if not ended:
                why = self.overstayed(now - began, now - heard, console["at"])
                if why:
                    self.kill()
                    break
        return why or self.end_reason()

    def overstayed(self, total, silent, console_bytes):
        if self.args.gdb:
            return None
        if total > self.args.timeout:
            return f"stopped after {self.args.timeout} s"
        if silent > self.args.silence:
            return f"hangs: nothing was heard for {self.args.silence} s"
        if console_bytes > CONSOLE_MAX_BYTES:
            return "stopped: the console is full of messages"
        return None

    def end_reason(self):
        if self.status is not None:
            return None
        said = self.qemu.stderr.read().decode("utf-8", "replace").strip()
        if said:
            return said.splitlines()[-1]
        return "it ended before its tests did" if self.kernel else "the kernel did not get to its first process"

    def last_of_console(self, cnt=15):
        try:
            with open(self.console, "rb") as f:
                return f.read()[-65536:].decode("utf-8", "replace").splitlines()[-cnt:]
        except OSError:
            return []

    def kill(self):
        if self.qemu and self.qemu.poll() is None:
            self.qemu.kill()
            self.qemu.wait()

    def close(self):
        self.kill()
        shutil.rmtree(self.dir, ignore_errors=True)


def die_with_parent():
    import ctypes
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


def add_options(p):
    """What all that boot guests take."""
    p.add_argument("--append", default="", metavar="ARGS", help="more of the kernel's command line")
    p.add_argument("--gdb", action="store_true", help="start halted, with a gdb stub on port 1234")
    p.add_argument("--kvm", action="store_true", help="by KVM instead of emulation")
    p.add_argument("--cpus", type=int, default=2)
    p.add_argument("--memory", default="2G")
    p.add_argument("--timeout", type=int, default=900, metavar="S", help="in all (default 900)")
    p.add_argument("--silence", type=int, default=120, metavar="S", help="without a word (default 120)")
    p.add_argument("-v", "--verbose", action="store_true", help="the kernel's console, too")
