"""Small virtual machines: User-mode Linux, which is Linux built as a program that runs others under ptrace, from Debian's package
user-mode-linux. What they are made of, and how they run.

They have one processor, and neither processor sets nor nftables' address translation. Their programs run at nearly the
speed of this machine's, with which they share the architecture. The environment names a library without which some
processors have too many registers for them: SKEP_UML_REGISTERS (uml_registers.c).

Everything is built on the spot from this machine's programs and from Debian packages, which are fetched once into a
cache directory. What cannot be had here ends the test as skipped (exit 77).
"""
import contextlib
import fcntl
import os
import pathlib
import re
import select
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time

BUSYBOX = "/bin/busybox"
# How to make it, and how to mount it.
FILE_SYSTEMS = {"ext4": (["mke2fs", "-q", "-F", "-t", "ext4", "-O", "project,quota", "-E", "quotatype=prjquota"], "prjquota"),
                "xfs": (["mkfs.xfs", "-q"], "pquota")}
KERNEL = "/usr/bin/linux.uml"
MODULES = pathlib.Path("/usr/lib/uml/modules")  # a folder of its own for each release
# They are asked for by name when a file system with quotas is mounted, which needs a program that these machines lack.
DISK_MODULES = ["quota_v2", "overlay"]


def skip(why):
    print(f"skipped: {why}", file=sys.stderr)
    sys.exit(77)


def check_programs(*names):
    for name in (KERNEL, "cpio", "setpriv", "unshare", *names):
        if not shutil.which(name):
            skip(f"{name} is not installed")


def cache_lock(cache):
    """Held until the program ends: two tests share one cache directory."""
    os.makedirs(cache, exist_ok=True)
    lock = open(os.path.join(cache, "lock"), "w")  # pylint: disable=consider-using-with
    fcntl.flock(lock, fcntl.LOCK_EX)
    return lock


def packages_fetch(cache, name, packages):
    """A tar file with these Debian packages and all they depend on, unpacked but not configured."""
    path = os.path.join(cache, f"{name}.tar")
    if not os.path.exists(path):
        made = subprocess.run(["mmdebstrap", "--quiet", "--mode=root", "--variant=extract", "--format=tar",
                               f"--include={','.join(packages)}", "bookworm", f"{path}~"], capture_output=True)
        if made.returncode != 0:
            skip(f"{', '.join(packages)} cannot be fetched here: {made.stderr.decode(errors='replace')[-300:]}")
        os.rename(f"{path}~", path)
    return path


def libraries_of(program):
    listed = subprocess.run(["ldd", program], capture_output=True, text=True)
    return re.findall(r"(/\S+\.so\S*)", listed.stdout)


def file_add(root, source):
    target = pathlib.Path(root, source.lstrip("/"))
    if target.exists():
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(os.path.realpath(source), target)


def program_add(root, program):
    file_add(root, program)
    for library in libraries_of(program):
        file_add(root, library)


def busybox_add(root):
    """busybox, and its applets where nothing else has the name. The engine has `rm` do what that of busybox cannot."""
    program_add(root, "/bin/rm")
    file_add(root, BUSYBOX)
    listed = subprocess.run([BUSYBOX, "--list"], capture_output=True, text=True, check=True)
    for applet in listed.stdout.split():
        path = pathlib.Path(root, "bin", applet)
        if not any(os.path.lexists(f"{root}/{folder}/{applet}") for folder in ("bin", "usr/bin", "sbin", "usr/sbin")):
            path.symlink_to("/bin/busybox")


def modules_add(root, names):
    """These modules and all that they need, and in /modules/order their file names in the order in which they must be loaded."""
    order = []

    def add(name):
        if any(module_name(path) == name for path in order):
            return
        path = next((path for path in MODULES.rglob("*.ko") if module_name(path) == name), None)
        if not path:
            return  # built in, or the test will say what is missing
        bytes_read = path.read_bytes()
        needed = re.search(rb"\0depends=([^\0]*)\0", bytes_read)
        for other in needed[1].decode().split(",") if needed and needed[1] else []:
            add(other)
        target = pathlib.Path(root, "modules", path.name)
        target.parent.mkdir(exist_ok=True)
        target.write_bytes(bytes_read)
        order.append(target)

    for name in names:
        add(name)
    pathlib.Path(root, "modules/order").write_text("".join(f"{path.name}\n" for path in order))


def module_name(path):
    return path.name.split(".")[0].replace("-", "_")


def disk_make(path, mib, kind, folder=None):
    """A disk with a file system that has project quotas; of ext4 with what is in a folder."""
    with open(path, "wb") as file:
        file.truncate(mib << 20)
    subprocess.run([*FILE_SYSTEMS[kind][0], *(["-d", folder] if folder else []), path], check=True)


def initrd_make(root, path):
    names = subprocess.run(["find", ".", "-print0"], cwd=root, capture_output=True, check=True).stdout
    with open(path, "wb") as out:
        subprocess.run(["cpio", "--null", "-o", "-H", "newc", "--quiet"], cwd=root, input=names, stdout=out, check=True)


# The longest pause between two lines is some 20 s on an idle host, and ten times that on a busy one.
SILENCE_S = 300
REPORT_END = "--- end of the report"
KERNEL_LINE = re.compile(r"\s*\[ *\d+\.\d+\]")  # it goes on to complain in a machine where nothing else happens
# What the kernel is told by letters: say all, the processors' stacks, tasks that cannot be interrupted, memory, all tasks.
SYSRQ = "8lwmt"

# In the machine: says what it does whenever a line comes in on its console, the argument.
REPORT = f"""
while read -r line; do
    echo "--- processes"
    ps -o pid,ppid,stat,args
    for task in /proc/[0-9]*/task/[0-9]*; do
        readlink $task/exe >/dev/null || continue
        echo "--- $task $(cat $task/comm)"
        cat $task/stack
    done
    echo "--- control groups of tasks"
    find /sys/fs/cgroup -path '*/skep/*' '(' -name '*.events' -o -name cgroup.procs ')' -exec grep . {{}} +
    echo "--- the kernel's log"
    dmesg | tail -n 60
    echo "{REPORT_END}"
done <$1 >$1 2>&1
"""


def report_add(root):
    """Must be started there: sh /report.sh /dev/console &."""
    pathlib.Path(root, "report.sh").write_text(REPORT)


class Watch:
    """The console of a machine. One that says nothing for long is asked what it does, then the kernel is, then it is ended."""

    def __init__(self, machine, folder, silence_s):
        self.machine, self.folder, self.silence_s, self.lines, self.rest = machine, folder, silence_s, [], b""
        self.report_s = silence_s // 3

    def is_open(self, seconds, is_over):
        """Read until `is_over` says so of a line (True), the machine ends (False), or it says nothing for so long (None)."""
        end = time.monotonic() + seconds
        while select.select([self.machine.stdout], [], [], max(0, end - time.monotonic()))[0]:
            got = os.read(self.machine.stdout.fileno(), 65536)
            if not got:
                return False
            *lines, self.rest = (self.rest + got).split(b"\n")
            for line in lines:
                self.lines.append(line.decode(errors="replace").rstrip("\r"))
                print(self.lines[-1], flush=True)
                if not KERNEL_LINE.match(self.lines[-1]):
                    end = time.monotonic() + seconds
            if any(is_over(line) for line in self.lines[len(self.lines) - len(lines):]):
                return True
        return None

    def tell(self, words):
        with contextlib.suppress(BrokenPipeError):  # it has just ended: reading says so
            self.machine.stdin.write(words)
            self.machine.stdin.flush()

    def kernel_tell(self, words):
        """By the socket that it listens on: linux/arch/um/drivers/mconsole.h has the form."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as asker, contextlib.suppress(OSError):  # it has just ended
            asker.sendto(struct.pack("=III512s", 0xcafebabe, 2, len(words), words.encode()), f"{self.folder}/{MACHINE}/mconsole")

    def run(self):
        if self.is_open(self.silence_s, lambda line: False) is False:
            return
        print(f"the machine has said nothing for {self.silence_s} s: {self.rest.decode(errors='replace')}", flush=True)
        self.tell(b"report\n")
        answer = self.is_open(self.report_s, lambda line: line == REPORT_END)
        for letter in SYSRQ if answer is None else "":
            self.kernel_tell(f"sysrq {letter}")
            self.is_open(self.report_s / 5, lambda line: False)
        if answer is not False:
            self.machine.kill()
        self.lines.append("the machine was ended")
        print(self.lines[-1], flush=True)


MACHINE = "machine"  # of its folder in the one for sockets


def boot(initrd, options, memory_mib, disks=(), silence_s=SILENCE_S):
    """Run it until it powers itself off; print its console as it comes, and return it. Its disks are files: /dev/ubda, /dev/ubdb, …"""
    with tempfile.TemporaryDirectory(prefix="skep-vm-") as folder:
        # Each of its programs is a process here: they are in a namespace that ends with it. It must not be the first one
        # there, which no signal of its own ends: a kernel that panics would try to for ever.
        command = ["setpriv", "--pdeathsig", "KILL", "unshare", "--pid", "--fork", "--kill-child=KILL",
                   "sh", "-c", '"$@"; exit', "sh", "env", f"LD_PRELOAD={os.environ['SKEP_UML_REGISTERS']}", KERNEL, f"mem={memory_mib}M", f"initrd={initrd}", f"uml_dir={folder}", f"umid={MACHINE}",
                   "con=null", "con0=fd:0,fd:1", "ssl=null", "quiet", "printk.time=1", "sysrq_always_enabled", *options.split(),
                   *(f"ubd{number}={disk}" for number, disk in enumerate(disks))]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as machine:
            watch = Watch(machine, folder, silence_s)
            watch.run()
    return "\n".join(watch.lines)
