"""Small virtual machines under software emulation, with Debian's own kernel: what they are made of, and how they run.

Everything is built on the spot from this machine's programs and from Debian packages, which are fetched once into a
cache directory. What cannot be had here ends the test as skipped (exit 77).
"""
import contextlib
import fcntl
import glob
import os
import pathlib
import re
import select
import shutil
import subprocess
import sys
import time

BUSYBOX = "/bin/busybox"
# How to make it, and how to mount it.
FILE_SYSTEMS = {"ext4": (["mke2fs", "-q", "-F", "-t", "ext4", "-O", "project,quota", "-E", "quotatype=prjquota"], "prjquota"),
                "xfs": (["mkfs.xfs", "-q"], "pquota")}
# The first ones are needed by others that do not name them.
DISK_MODULES = ["crc32c_generic", "virtio_pci", "virtio_blk", "ext4", "quota_v2", "xfs", "overlay"]


def skip(why):
    print(f"skipped: {why}", file=sys.stderr)
    sys.exit(77)


def check_programs(*names):
    if os.uname().machine != "x86_64" or not shutil.which("qemu-system-x86_64"):
        skip("qemu-system-x86_64 is not installed")
    for name in ("cpio", "setpriv", *names):
        if not shutil.which(name):
            skip(f"{name} is not installed")


def cache_lock(cache):
    """Held until the program ends: two tests share one cache directory."""
    os.makedirs(cache, exist_ok=True)
    lock = open(os.path.join(cache, "lock"), "w")  # pylint: disable=consider-using-with
    fcntl.flock(lock, fcntl.LOCK_EX)
    return lock


def kernel_of(package_root):
    images = sorted(glob.glob(f"{package_root}/boot/vmlinuz-*cloud*"))
    if not images:
        return None
    image = images[-1]
    version = re.sub(r".*/vmlinuz-", "", image)
    modules = pathlib.Path(package_root, "lib/modules", version)
    return (image, modules) if modules.is_dir() else None


def kernel_fetch(cache):
    """Debian's cloud kernel, of /boot, or unpacked once into the cache: its file, and its folder of modules."""
    found = kernel_of("/") or kernel_of(cache)
    if found:
        return found
    if not shutil.which("apt-get"):
        skip("no cloud kernel in /boot, and no apt-get to fetch one")
    depends = subprocess.run(["apt-cache", "depends", "linux-image-cloud-amd64"], capture_output=True, text=True)
    name = re.search(r"Depends: (linux-image-\S*cloud-amd64)", depends.stdout)
    if not name:
        skip("apt knows no linux-image-cloud-amd64")
    fetched = subprocess.run(["apt-get", "download", "-q", name[1]], cwd=cache, capture_output=True)
    packages = glob.glob(f"{cache}/{name[1]}_*.deb")
    if fetched.returncode != 0 or not packages:
        skip("the cloud kernel cannot be fetched here")
    subprocess.run(["dpkg-deb", "-x", packages[0], cache], check=True)
    os.unlink(packages[0])
    return kernel_of(cache) or skip("the package holds no kernel")


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


def modules_add(root, modules, names):
    """These modules and all that they need, and in /modules/order their file names in the order in which they must be loaded."""
    order = []

    def add(name):
        if any(module_name(path) == name for path in order):
            return
        path = next((path for path in modules.rglob("*.ko*") if module_name(path) == name), None)
        if not path:
            return  # built in, or the test will say what is missing
        bytes_read = subprocess.run(["xz", "-dc", path], capture_output=True, check=True).stdout if path.suffix == ".xz" else path.read_bytes()
        needed = re.search(rb"\0depends=([^\0]*)\0", bytes_read)
        for other in needed[1].decode().split(",") if needed and needed[1] else []:
            add(other)
        target = pathlib.Path(root, "modules", path.name.removesuffix(".xz"))
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
ESCAPE = b"\x01"  # of qemu's console; behind it `b` is a break
KERNEL_LINE = re.compile(r"\s*\[ *\d+\.\d+\]")  # it goes on to complain in a machine where nothing else happens
# What the kernel is told by letters behind a break: say all, the processors' stacks, tasks that cannot be interrupted, memory, all tasks.
SYSRQ = b"8lwmt"

# In the machine: says what it does whenever a line comes in on its console, the argument.
REPORT = f"""
while read -r line; do
    echo "--- processes"
    ps -o pid,ppid,stat,args
    for task in /proc/[0-9]*/task/[0-9]*; do
        readlink $task/exe >/dev/null || continue
        echo "--- $task $(cat $task/comm), waits in $(cat $task/wchan)"
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

    def __init__(self, machine, silence_s):
        self.machine, self.silence_s, self.lines, self.rest = machine, silence_s, [], b""
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

    def run(self):
        if self.is_open(self.silence_s, lambda line: False) is False:
            return
        print(f"the machine has said nothing for {self.silence_s} s: {self.rest.decode(errors='replace')}", flush=True)
        self.tell(b"report\n")
        answer = self.is_open(self.report_s, lambda line: line == REPORT_END)
        for letter in SYSRQ if answer is None else b"":
            self.tell(ESCAPE + b"b" + bytes([letter]))
            self.is_open(self.report_s / 5, lambda line: False)
        if answer is not False:
            self.machine.kill()
        self.lines.append("the machine was ended")
        print(self.lines[-1], flush=True)


def boot(image, initrd, options, memory_mib, disks=(), silence_s=SILENCE_S):
    """Run it until it powers itself off; print its console as it comes, and return it. Its disks are files."""
    # One processor: two of them spend much of their time waiting for each other, and two machines keep two processors of the host busy.
    # The check of the timer counts its ticks during a loop, and finds none where the host is busy.
    command = ["setpriv", "--pdeathsig", "KILL",
               "qemu-system-x86_64", "-accel", "tcg", "-smp", "1", "-m", str(memory_mib), "-nographic", "-no-reboot",
               "-nic", "none", "-kernel", image, "-initrd", initrd,
               "-append", f"console=ttyS0 panic=-1 quiet sysrq_always_enabled no_timer_check mitigations=off {options}"]
    for disk in disks:
        command += ["-drive", f"file={disk},if=virtio,format=raw,cache=unsafe"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as machine:
        watch = Watch(machine, silence_s)
        watch.run()
    return "\n".join(watch.lines)
