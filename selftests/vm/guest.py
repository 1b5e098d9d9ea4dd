# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Boots kernels in QEMU and says what becomes of them."""
import ctypes
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import time

import image
import initrd
from image import TOP, VM, CannotRun

QEMU = "qemu-system-x86_64"
CONSOLE_MAX_BYTES = 64 << 20
LINE_MAX_BYTES = 64 << 10
# The job is over; a kernel that cannot switch its machine off is not waited for any longer.
POWEROFF_S = 20

# What a kernel says when something in it is wrong.
COMPLAINTS = re.compile(
    rb"Kernel panic|BUG: |BUG \S+ \(|Oops[: ]|WARNING: (?!Unprivileged eBPF)|general protection fault|"
    rb"unable to handle|possible (?:recursive|circular|irq)|inconsistent lock state|bad unlock balance|"
    rb"suspicious RCU usage|KASAN|UBSAN|KCSAN|scheduling while atomic|still has locks held|"
    rb"lock held when returning|trying to register non-static key|turning off the locking correctness|"
    rb"kmemleak: \d+ new|hard LOCKUP|blocked for more than")

# Emulated on a busy machine a guest stands still at times; by KVM these are complaints, too.
STALLS = re.compile(rb"BUG: (?:soft|workqueue) lockup|hard LOCKUP")

TRACE_LINES = 40    # of the console, that are shown with the first complaint


def kernel_image(name):
    """A path, a build tree, or the name of one of Debian's."""
    if not name:
        raise CannotRun("no kernel: its name is empty")
    if os.path.isdir(name):
        for image_name in ("arch/x86/boot/bzImage", "arch/x86_64/boot/bzImage"):
            if os.path.exists(os.path.join(name, image_name)):
                return os.path.join(name, image_name)
        raise CannotRun(f"{name}: no arch/x86/boot/bzImage in it (build the kernel first)")
    if "/" in name or os.path.exists(name):
        if not os.path.exists(name):
            raise CannotRun(f"{name}: no such file")
        return name
    got = subprocess.run([os.path.join(TOP, "selftests/vm/fetch"), name], stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
    if got.returncode:
        raise CannotRun((got.stderr.strip().splitlines() or [f"{name}: cannot be fetched"])[-1])
    return got.stdout.strip()


def check_image(path):
    """QEMU boots anything at all; a file that is no kernel would be a guest that never starts."""
    try:
        # a FIFO would be waited for
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise CannotRun(f"{path}: not a file")
        with open(path, "rb") as f:
            head = f.read(0x210)
    except OSError as e:
        raise CannotRun(f"{path}: {e.strerror}") from None
    if len(head) < 0x210 or head[0x202:0x206] != b"HdrS":
        raise CannotRun(f"{path}: not a bzImage, or cut off")
    setup_sects = head[0x1f1] or 4
    syssize = int.from_bytes(head[0x1f4:0x1f8], "little")
    if os.path.getsize(path) < (setup_sects + 1) * 512 + syssize * 16 - 15:
        raise CannotRun(f"{path}: cut off ({os.path.getsize(path)} bytes)")


def remove_leftovers():
    """Of runners that were killed."""
    for name in os.listdir(VM) if os.path.isdir(VM) else []:
        m = re.match(r"run\.(\d+)\.", name)
        if not m or os.path.exists("/proc/" + m.group(1)):
            continue
        path = os.path.join(VM, name)
        if os.path.isdir(path):
            shutil.rmtree(path, ignore_errors=True)
        else:
            os.unlink(path)


class Lines:
    """What is new in a file that grows, by lines."""

    def __init__(self, path):
        self.path = path
        self.at = 0
        self.rest = b""

    def take(self):
        try:
            with open(self.path, "rb") as f:
                f.seek(self.at)
                data = f.read(1 << 20)
        except FileNotFoundError:
            return []
        self.at += len(data)
        lines = (self.rest + data).split(b"\n")
        self.rest = lines.pop()
        if len(self.rest) > LINE_MAX_BYTES:
            lines.append(self.rest)
            self.rest = b""
        return [line.rstrip(b"\r") for line in lines]


class Guest:
    """One boot. Its lines arrive through on_line(); complaints of the kernel are in .complaints."""

    nth = 0

    def __init__(self, args, on_line, name="guest"):
        self.args = args
        self.on_line = on_line
        self.name = name
        self.complaints = []
        self.trace = []         # the console from the first of them on
        self.status = None      # of the job
        self.kernel = None      # what uname says, once it has booted
        self.why = None         # it was not what ended
        self.is_refused = False # QEMU could not even start
        self.is_kvm = False
        self.qemu = None
        self.dir = None
        self.errors = None
        self.cpu_s = 0.0        # that QEMU has used: on a busy machine the better measure

    # ---- start ----

    def command(self, kernel, accel, disks, sacrificial):
        args = self.args
        # max, but without what makes the kernel copy by `rep movsb`: emulated, that is a loop over bytes
        cpu = "host" if accel == "kvm" else "max,-erms,-fsrm"
        # Emulated in threads of their own, a CPU can meet the breakpoint of a patch of the kernel's text
        # that is over: "Oops: int3", one boot in a hundred. Taking turns costs little on few CPUs.
        accel = "kvm" if accel == "kvm" else "tcg,thread=single"
        append = ["console=ttyS0", "panic=-1", "oops=panic", args.append]
        # "quiet" would keep complaints from the console
        append += ["loglevel=7"] + ["nokaslr"] * bool(args.gdb)
        append += ["vmaprof.disks"] * bool(disks) + ["vmaprof.sacrificial"] * sacrificial
        cmd = [QEMU, "-accel", accel, "-cpu", cpu,
               "-smp", str(args.cpus), "-m", str(args.memory), "-kernel", kernel,
               "-initrd", os.path.join(self.dir, "initrd"), "-append", " ".join(append),
               "-no-reboot", "-nic", "none", "-display", "none", "-monitor", "none", "-no-user-config",
               "-serial", f"file:{self.console.path}", "-serial", f"file:{self.results.path}"]
        for disk in disks:
            # what a guest writes goes to a file without a name, and away with QEMU
            cmd += ["-drive", f"file={disk},if=virtio,format=raw,snapshot=on,cache=unsafe"]
        if args.gdb:
            cmd += ["-S", "-gdb", "tcp:127.0.0.1:1234"]
        return cmd

    def start(self, name, job, disks=(), sacrificial=False):
        """name: a kernel as kernel_image() takes it; job: a shell's script."""
        kernel = kernel_image(name)
        check_image(kernel)
        if not shutil.which(QEMU):
            raise CannotRun(f"no {QEMU} (apt-get install qemu-system-x86)")
        os.makedirs(VM, exist_ok=True)
        remove_leftovers()
        Guest.nth += 1
        self.dir = os.path.join(VM, f"run.{os.getpid()}.{Guest.nth}")
        os.makedirs(self.dir)
        self.console = Lines(os.path.join(self.dir, "console"))
        self.results = Lines(os.path.join(self.dir, "results"))
        initrd.initrd(os.path.join(self.dir, "initrd"), kernel, name, job)
        env = dict(os.environ, TMPDIR=self.dir)     # of the disks' snapshots
        self.errors = open(os.path.join(self.dir, "errors"), "w+b")
        accel = accelerator(self.args, name)
        self.is_kvm = accel == "kvm"
        self.qemu = subprocess.Popen(self.command(kernel, accel, disks, sacrificial),
                                     stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                     stderr=self.errors, env=env, preexec_fn=die_with(os.getpid()))
        self.began = self.heard = time.monotonic()
        self.ended = None
        if self.args.gdb:
            # the kernel is not unpacked yet: a breakpoint in memory would be overwritten
            print("waiting for gdb: gdb vmlinux -ex 'target remote :1234' -ex 'hbreak start_kernel' -ex continue",
                  file=sys.stderr)

    # ---- while it runs ----

    def hear_console(self, line):
        text = line.decode("utf-8", "replace").strip()
        if COMPLAINTS.search(line) and (self.is_kvm or not STALLS.search(line)):
            self.complaints.append(text)
        if self.complaints and len(self.trace) < TRACE_LINES:
            self.trace.append(text)
        if self.args.verbose:
            print("console: " + text, flush=True)

    def hear_result(self, line):
        line = line.decode("utf-8", "replace")
        if line.startswith("@@ booted "):
            self.kernel = line.split()[2]
        elif line.startswith("@@ cannot "):
            self.why = line[len("@@ cannot "):]
        else:
            # what the job said last may not have ended its line
            m = re.search(r"@@ exit (\d+)$", line)
            if m:
                self.status = int(m.group(1))
                self.ended = time.monotonic()
                line = line[:m.start()]
            if line or not m:
                self.on_line(line)

    def note_cpu(self):
        try:
            with open(f"/proc/{self.qemu.pid}/stat", encoding="ascii", errors="replace") as f:
                words = f.read().rpartition(")")[2].split()
            self.cpu_s = (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")
        except (OSError, IndexError):
            pass

    def step(self):
        """Hears what is new; False: it is over, and all was heard."""
        self.note_cpu()
        ended = self.qemu.poll() is not None
        new = self.console.take()
        for line in new:
            self.hear_console(line)
        got = self.results.take()
        for line in got:
            self.hear_result(line)
        now = time.monotonic()
        if new or got:
            self.heard = now
        elif ended:
            self.why = self.why or self.end_reason()
            return False
        if not ended:
            why = self.overstayed(now)
            if why or (self.ended and now - self.ended > POWEROFF_S):
                self.why = self.why or why
                self.kill()
                return False
        return True

    def run(self):
        """Until it ends by itself, or must be ended: then why, else None."""
        while self.step():
            time.sleep(0.05)
        return self.why

    def overstayed(self, now):
        if self.args.gdb or self.status is not None:
            return None
        if now - self.began > self.args.timeout:
            return f"stopped after {self.args.timeout} s"
        if now - self.heard > self.args.silence:
            return f"hangs: nothing was heard for {self.args.silence} s"
        if self.console.at > CONSOLE_MAX_BYTES:
            return "stopped: the console is full of messages"
        return None

    # ---- afterwards ----

    def end_reason(self):
        if self.status is not None:
            return None
        self.errors.seek(0)
        said = self.errors.read(65536).decode("utf-8", "replace").strip()
        if said:
            self.is_refused = not self.console.at
            # an option that is refused is explained at length
            return said.splitlines()[0].removeprefix(QEMU + ": ")
        return "it ended before its tests did" if self.kernel else "the kernel did not get to its first process"

    def last_of_console(self, cnt=15, size=65536):
        try:
            with open(self.console.path, "rb") as f:
                f.seek(max(0, os.path.getsize(self.console.path) - size))
                return f.read().decode("utf-8", "replace").splitlines()[-cnt:]
        except (OSError, AttributeError):
            return []

    def kill(self):
        if self.qemu and self.qemu.poll() is None:
            self.qemu.kill()
            self.qemu.wait()

    def close(self):
        self.kill()
        if self.errors:
            self.errors.close()
        if self.dir:
            shutil.rmtree(self.dir, ignore_errors=True)


def die_with(parent):
    """A runner that is killed takes QEMU with it."""
    libc = ctypes.CDLL(None)

    def set_up():
        libc.prctl(1, signal.SIGKILL)   # PR_SET_PDEATHSIG
        if os.getppid() != parent:
            os._exit(1)
    return set_up


# ---- how it is emulated -------------------------------------------------------------------------

def accelerator(args, name):
    """kvm or tcg. That there is a /dev/kvm does not say that a kernel boots by it: one is booted."""
    if args.accel == "auto":
        args.accel = "kvm" if not args.gdb and os.access("/dev/kvm", os.R_OK | os.W_OK) and boots_by_kvm(args, name) \
            else "tcg"
    return args.accel


def boots_by_kvm(args, name):
    trial = type(args)(**vars(args))
    trial.accel, trial.timeout, trial.silence, trial.verbose = "kvm", 60, 30, False
    g = Guest(trial, lambda line: None)
    try:
        g.start(name, "true")
        return g.run() is None and g.status == 0
    finally:
        g.close()


def positive(text):
    if int(text) < 1:
        raise ValueError
    return int(text)


def add_options(p):
    """What all that boot guests take."""
    p.add_argument("--append", default="", metavar="ARGS", help="more of the kernel's command line")
    p.add_argument("--gdb", action="store_true", help="start halted, with a gdb stub on port 1234")
    p.add_argument("--accel", choices=("auto", "kvm", "tcg"), default="auto",
                   help="KVM, or emulation (default: KVM if this kernel boots by it)")
    p.add_argument("--cpus", type=positive, default=2, metavar="N")
    p.add_argument("--memory", default="2G")
    p.add_argument("--timeout", type=positive, default=1500, metavar="S", help="for one boot (default 1500)")
    p.add_argument("--silence", type=positive, default=240, metavar="S", help="without a word (default 240)")
    p.add_argument("-v", "--verbose", action="store_true", help="the kernel's console, too")


def disks():
    return [image.tools_image(), image.tests_image()]
