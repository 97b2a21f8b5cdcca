"""Programs that try to reach beyond their task, each a Python program that runs as root in a container.

Each prints "GOT what" for what it must not get, and "tried" at its end: one that could not try proves nothing. `got(call, …)` is there for
all: it calls, and when nothing is raised, says so.
"""
import dataclasses

PRELUDE = '''
import ctypes, os, socket, stat, struct, sys, errno
libc = ctypes.CDLL(None, use_errno=True)

def got(what, call, *arguments):
    """What a call gave, or None when it failed as it should."""
    try:
        result = call(*arguments)
    except OSError:
        return None
    print("GOT", what, flush=True)
    return result

def system_call(name, *arguments):
    """A call of the C library, raising as those of Python do."""
    result = getattr(libc, name)(*arguments)
    if result < 0:
        raise OSError(ctypes.get_errno(), name)
    return result
'''


@dataclasses.dataclass
class Attack:
    name: str
    text: str
    # what image.py asks of a program
    kind: str = "py"


ATTACKS = []


def attack(name, text):
    ATTACKS.append(Attack(name, PRELUDE + text + '\nprint("tried", flush=True)\n'))


# ---- capabilities ----
attack("raw-sockets", """
got("all packets", socket.socket, socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
got("packets without addresses", socket.socket, socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(3))
for protocol in (1, 6, 17, 255):
    got(f"raw packets of protocol {protocol}", socket.socket, socket.AF_INET, socket.SOCK_RAW, protocol)
    got(f"raw packets of protocol {protocol} by IPv6", socket.socket, socket.AF_INET6, socket.SOCK_RAW, protocol)
""")

attack("device-nodes", """
for number, name in ((os.makedev(1, 1), "memory"), (os.makedev(1, 2), "kernel memory"), (os.makedev(1, 11), "the kernel's log"),
                     (os.makedev(10, 200), "a tunnel"), (os.makedev(10, 229), "fuse"), (os.makedev(10, 232), "virtual machines")):
    got(f"a node for {name}", os.mknod, f"/tmp/{name}", stat.S_IFCHR | 0o666, number)
for major in (7, 8, 253, 254, 259):
    got(f"a node for disk {major}", os.mknod, f"/dev/disk{major}", stat.S_IFBLK | 0o666, os.makedev(major, 0))
for path in ("/dev/mem", "/dev/kmsg", "/dev/fuse", "/dev/kvm", "/dev/net/tun", "/dev/loop-control", "/dev/mapper/control", "/dev/nvidia0"):
    got(path, os.open, path, os.O_RDWR)
""")

attack("set-user-id", """
import shutil, subprocess
shutil.copy(os.path.realpath(sys.executable), "/tmp/python")
os.chown("/tmp/python", 0, 0)
os.chmod("/tmp/python", 0o6755)
assert os.stat("/tmp/python").st_mode & stat.S_ISUID
ask = "import os; print(os.geteuid(), os.getegid())"
run = subprocess.run(["/tmp/python", "-c", ask], user=1000, group=1000, extra_groups=[], capture_output=True, text=True)
assert run.returncode == 0, run.stderr
if run.stdout.split() != ["1000", "1000"]:
    print("GOT the user", run.stdout, flush=True)
""")

attack("capabilities", """
held = {line.split(":")[0]: int(line.split()[1], 16) for line in open("/proc/self/status") if line.startswith("Cap")}
forbidden = {"DAC_READ_SEARCH": 2, "LINUX_IMMUTABLE": 9, "NET_ADMIN": 12, "NET_RAW": 13, "IPC_LOCK": 14, "SYS_MODULE": 16, "SYS_RAWIO": 17,
             "SYS_PTRACE": 19, "SYS_ADMIN": 21, "SYS_BOOT": 22, "SYS_NICE": 23, "SYS_RESOURCE": 24, "SYS_TIME": 25, "MKNOD": 27,
             "SYSLOG": 34, "BPF": 39, "PERFMON": 38}
for name, bit in forbidden.items():
    for kind, bits in held.items():
        if bits >> bit & 1:
            print("GOT", kind, name, flush=True)
no_new_privileges = [line for line in open("/proc/self/status") if line.startswith("NoNewPrivs")]
if no_new_privileges[0].split()[1] != "1":
    print("GOT new privileges", flush=True)
""")

# ---- the kernel's settings, other processes, other namespaces ----
attack("proc", """
for path in ("/proc/sys/kernel/core_pattern", "/proc/sys/kernel/modprobe", "/proc/sys/vm/drop_caches", "/proc/sysrq-trigger",
             "/proc/sys/fs/binfmt_misc/register", "/proc/irq/default_smp_affinity", "/sys/kernel/uevent_helper", "/sys/power/state",
             "/sys/fs/cgroup/release_agent", "/sys/fs/cgroup/memory/release_agent", "/sys/fs/cgroup/cgroup.procs"):
    got("to write " + path, os.open, path, os.O_WRONLY)
for path in ("/proc/kcore", "/proc/keys", "/proc/timer_list", "/proc/sched_debug"):
    descriptor = os.open(path, os.O_RDONLY) if os.path.exists(path) else -1
    if descriptor >= 0 and os.read(descriptor, 1):
        print("GOT to read", path, flush=True)
for pid in [name for name in os.listdir("/proc") if name.isdigit()]:
    if os.path.exists(f"/proc/{pid}/root/lib/systemd") or "skepd" in open(f"/proc/{pid}/comm").read():
        print("GOT the machine's process", pid, flush=True)
for name in ("mnt", "pid", "ipc", "net", "uts", "user", "cgroup"):
    descriptor = os.open(f"/proc/1/ns/{name}", os.O_RDONLY)
    got("to enter " + name, system_call, "setns", descriptor, 0)
for flag, name in ((0x20000, "mount"), (0x10000000, "user"), (0x20000000, "pid"), (0x40000000, "network"), (0x8000000, "IPC")):
    got(f"a {name} namespace", system_call, "unshare", flag)
got("a mount", system_call, "mount", b"none", b"/tmp", b"tmpfs", 0, None)
got("a root of the host", system_call, "pivot_root" if hasattr(libc, "pivot_root") else "umount2", b"/", 0)
""")

attack("trace", """
ATTACH, SEIZE = 16, 0x4206
# every number that a process of this machine may have: one that is not ours must not be there
mine = {int(name) for name in os.listdir("/proc") if name.isdigit()}
for pid in range(1, 65536):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        continue
    except PermissionError:
        print("GOT a process of others in sight", pid, flush=True)
    if pid not in mine and pid not in {int(name) for name in os.listdir("/proc") if name.isdigit()}:
        print("GOT a hidden process", pid, flush=True)
""")

attack("keys", """
SYS_add_key, SYS_request_key, SYS_keyctl = (248, 249, 250) if os.uname().machine == "x86_64" else (217, 218, 219)
got("a key", system_call, "syscall", SYS_add_key, b"user", b"stolen", b"x", 1, -4)
got("a key of others", system_call, "syscall", SYS_request_key, b"user", b"stolen", None, -4)
got("a keyring", system_call, "syscall", SYS_keyctl, 0, -5, 1)
SYS_bpf, SYS_perf = (321, 298) if os.uname().machine == "x86_64" else (280, 241)
got("bpf", system_call, "syscall", SYS_bpf, 0, None, 0)
got("perf events", system_call, "syscall", SYS_perf, None, 0, 0, 0, 0)
""")

# ---- names that the server reads ----
attack("links", """
# what the server reads from us when we end must be ours: links lead to what only root of the machine reads
for name in ("exit", "started", "reason", "exit.new", "environment"):
    path = "/skep/run/" + name
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass
    os.symlink("/etc/shadow" if name != "reason" else "/root/stolen", path)
for name in os.listdir("/skep/log"):
    if name.startswith("runtime"):
        os.symlink("/etc/shadow", "/skep/log/" + name.split(".")[0] + ".999999999999999")
got("a hard link to what is not ours", os.link, "/skep/task", "/skep/run/task")
got("to write the task's file", os.open, "/skep/task", os.O_WRONLY)
got("to write skep-init", os.open, "/skep/init", os.O_WRONLY)
os.unlink("/skep/run/exit")
os.unlink("/skep/run/started")
""")
