"""Programs that try to reach beyond their task, each a Python program that runs as root in a container.

Each prints "GOT what" for what it must not get, and "tried" at its end: one that could not try proves nothing. One that takes more and more
until the platform ends it says so at its begin. `got(call, …)` is there for all: it calls, and when nothing is raised, says so.
"""
import dataclasses
import os
import stat

import image

PRELUDE = '''
import ctypes, os, socket, stat, struct, sys, errno
libc = ctypes.CDLL(None, use_errno=True)

def got(what, call, *arguments):
    """What a call gave, or None when it failed as it should."""
    try:
        result = call(*arguments)
    except (OSError, ValueError):  # Python's own word for a limit that must not be raised
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


# a full disk may have no place for the line
LOGGED = '''
import glob, time
def logged(name):
    try:
        return "tried" in open(name).read()
    except FileNotFoundError:  # an old piece that has gone meanwhile
        return False
while not any(logged(name) for name in glob.glob("/skep/log/all.*")):
    time.sleep(0.01)
'''

# For 300 processes of Python, each of which copies some hundred pages of its parent by writing to them.
PROCESSES_MB = 1024

# So many of a kind that the kernel counts by user, some 1.5 KiB each, are more than any usual limit, and less than this memory. A machine whose
# limit is higher has them for others meanwhile.
USER_COUNTED_MOST = 120000
USER_COUNTED_MB = 512

# One of each that the kernel counts by user.
USER_COUNTED = """
import signal
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGRTMIN})
def take_instance(number):
    system_call("inotify_init1", 0)
def take_queue(number):
    system_call("mq_open", f"/skep-{os.getpid()}-{number}".encode(), os.O_CREAT | os.O_RDWR, 0o600, None)
def take_signal(number):
    system_call("sigqueue", os.getpid(), int(signal.SIGRTMIN), 0)
"""

# Of which each program must be able to have one while another job holds all that it can.
USER_NEEDS = PRELUDE + USER_COUNTED + """
for take in (take_instance, take_queue, take_signal):
    take(0)
libc.mq_unlink(f"/skep-{os.getpid()}-0".encode())
print("has all")
"""


@dataclasses.dataclass
class Attack:
    name: str
    text: str
    is_of_network: bool = False
    is_of_disk: bool = False
    is_of_users: bool = False
    # with which exit it is ended by the platform; None: it ends by itself
    code: int | None = None
    # of its task: a program that is to meet another limit must not meet this one first
    memory_mb: int = 128
    # how many times as long as usual it may take
    patience: int = 1
    # what image.py asks of a program
    kind: str = "py"


# Two tasks that talk to each other all the time, some twenty times a second: as fast as they can, they would take two processors. They end
# when each has had its say and the first one has read a line.
# INNER: a port of its own that is not published. HIDDEN: the name of an abstract socket.
NEIGHBOUR = '''
import os, socket, sys, threading, time
inner = int(os.environ["INNER"])
me = int(os.environ["PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX"])
address, port = os.environ["PAI_HOST_IP_worker_0"], int(os.environ["PAI_PORT_LIST_worker_0_talk"])
if me == 0:
    listener = socket.create_server(("", port))
    other, _ = listener.accept()
else:
    while True:
        try:
            other = socket.create_connection((address, port))
            break
        except ConnectionRefusedError:
            continue
stream = other.makefile("rw")
def serve(listener, words):
    while True:
        caller, _ = listener.accept()
        caller.sendall(words)
        caller.close()
if me == 0:
    hidden = socket.socket(socket.AF_UNIX)
    hidden.bind("\\0" + os.environ["HIDDEN"])
    hidden.listen()
    own = os.environ["PAI_CURRENT_CONTAINER_IP"], int(os.environ["PAI_PORT_LIST_worker_0_greet"])
    for listener, words in ((socket.create_server(own), b"neighbour\\n"), (socket.create_server(("", inner)), b"inner\\n")):
        threading.Thread(target=serve, args=(listener, words), daemon=True).start()
word = "the neighbour's " + "own word"
for path in ("/tmp/neighbour", "/dev/shm/neighbour", "/skep/private/neighbour", "/skep/run/neighbour"):
    with open(path, "w") as file:
        file.write(word)
    os.chmod(path, 0o666)
print(word)
print("talking", flush=True)
rounds = 0
while True:
    is_over = me == 0 and os.path.exists("/skep/run/over")
    if me == 0:
        time.sleep(0.05)
        stream.write("over\\n" if is_over else f"{rounds}\\n")
        stream.flush()
    if is_over or (line := stream.readline()) == "over\\n":
        break
    assert line == f"{rounds}\\n", line
    if me == 1:
        stream.write(line)
        stream.flush()
    rounds += 1
print("rounds", rounds, flush=True)
'''


ATTACKS = []


def image_make(root, cases):
    """An image of these attacks and of the neighbour's program, which brings device nodes along."""
    image.make(root, [*cases, Attack("neighbour", NEIGHBOUR)])
    (root / "corpus/nodes").mkdir()
    nodes = {"memory": (stat.S_IFCHR, 1, 1), "log": (stat.S_IFCHR, 1, 11), "tunnel": (stat.S_IFCHR, 10, 200), "fuse": (stat.S_IFCHR, 10, 229),
             "kvm": (stat.S_IFCHR, 10, 232), "loop-control": (stat.S_IFCHR, 10, 237), "terminal": (stat.S_IFCHR, 4, 64),
             "loop": (stat.S_IFBLK, 7, 0), "disk": (stat.S_IFBLK, 8, 0), "virtual-disk": (stat.S_IFBLK, 254, 0)}
    for name, (kind, major, minor) in nodes.items():
        os.mknod(root / "corpus/nodes" / name, kind | 0o666, os.makedev(major, minor))


def attack(name, text, **more):
    tried = 'print("tried", flush=True)\n'
    ATTACKS.append(Attack(name, PRELUDE + (tried + LOGGED + text if "code" in more else text + "\n" + tried), **more))


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
for name in os.listdir("/corpus/nodes"):
    for flags in (os.O_RDONLY, os.O_WRONLY, os.O_RDWR):
        got(f"the node {name} that the image brings along", os.open, "/corpus/nodes/" + name, flags | os.O_NONBLOCK)
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

# ---- user ids: /mnt/shared is a storage of the machine's root, writable for all, in which root of a task is not root
attack("user-ids", """
for name in ("uid_map", "gid_map"):
    inside, outside, count = map(int, open("/proc/self/" + name).read().split())
    if outside < 65536 or count > 65536:
        print("GOT the machine's ids", inside, outside, count, flush=True)
    got("to change " + name, lambda: os.write(os.open("/proc/self/" + name, os.O_WRONLY), b"0 0 1"))
got("an id beyond", os.setuid, 65536)
for uid in (0, 1, 1000, 65534):
    if os.fork() == 0:
        os.setresuid(uid, uid, uid)
        got(f"another's processes as {uid}", os.kill, 1 if uid else 4194304, 0)
        os._exit(0)
    os.wait()
""", is_of_users=True)

attack("storage", """
import shutil
path = "/mnt/shared/of-root"
got("to write a file of root's", os.open, path, os.O_WRONLY)
got("to cut it", os.truncate, path, 0)
got("to chmod it", os.chmod, path, 0o666)
got("to own it", os.chown, path, 0, 0)
got("to date it", os.utime, path, (0, 0))
got("to read what only root may", os.open, "/mnt/shared/secret", os.O_RDONLY)
got("a device", os.mknod, "/mnt/shared/memory", stat.S_IFCHR | 0o666, os.makedev(1, 1))
shutil.copy(os.path.realpath(sys.executable), "/mnt/shared/root-shell")
os.chmod("/mnt/shared/root-shell", 0o6755)
for uid in range(0, 65536, 4095):
    try:
        os.chown("/mnt/shared/root-shell", uid, uid)
        os.chmod("/mnt/shared/root-shell", 0o6755)
    except OSError:
        pass
os.chown("/mnt/shared/root-shell", 0, 0)
os.chmod("/mnt/shared/root-shell", 0o6755)
""", is_of_users=True)

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
    try:
        if os.path.exists(f"/proc/{pid}/root/lib/systemd") or "skepd" in open(f"/proc/{pid}/comm").read():
            print("GOT the machine's process", pid, flush=True)
    except (FileNotFoundError, ProcessLookupError):  # before its file was opened, or before that was read
        continue  # one of the task's own that has ended meanwhile
for name in ("mnt", "pid", "ipc", "net", "uts", "user", "cgroup"):
    descriptor = os.open(f"/proc/1/ns/{name}", os.O_RDONLY)
    got("to enter " + name, system_call, "setns", descriptor, 0)
for flag, name in ((0x20000, "mount"), (0x10000000, "user"), (0x20000000, "pid"), (0x40000000, "network"), (0x8000000, "IPC")):
    got(f"a {name} namespace", system_call, "unshare", flag)
got("a mount", system_call, "mount", b"none", b"/tmp", b"tmpfs", 0, None)
for pid in ("1", "self"):
    got("to write the program of process " + pid, os.open, f"/proc/{pid}/exe", os.O_WRONLY)
    for descriptor in os.listdir(f"/proc/{pid}/fd"):
        path = f"/proc/{pid}/fd/{descriptor}"
        if os.path.isdir(path) and not (os.path.exists(os.readlink(path)) and os.path.samefile(path, os.readlink(path))):
            print("GOT a folder of the machine's that was left open:", os.readlink(path), flush=True)
for control in ("cgroup.procs", "cgroup.kill", "cgroup.freeze", "cgroup.subtree_control", "memory.max", "pids.max", "memory.limit_in_bytes"):
    for folder in ("/sys/fs/cgroup", "/sys/fs/cgroup/memory", "/sys/fs/cgroup/pids"):
        got(f"the control {folder}/{control}", os.open, f"{folder}/{control}", os.O_WRONLY)
# without control groups in sight, crun puts a small file system in memory there
if os.path.exists("/sys/fs/cgroup/cgroup.procs"):
    got("a control group of its own", os.mkdir, "/sys/fs/cgroup/escaped")
got("a root of the host", system_call, "pivot_root" if hasattr(libc, "pivot_root") else "umount2", b"/", 0)
""")

attack("trace", """
ATTACH, SEIZE = 16, 0x4206
def read_memory(pid):
    part = ctypes.create_string_buffer(16)
    vector = (ctypes.c_void_p * 2)(ctypes.addressof(part), 16)
    remote = (ctypes.c_void_p * 2)(0x400000, 16)
    return system_call("process_vm_readv", pid, vector, 1, remote, 1, 0)
# every number that a process of this machine may have: one that is not ours must not be there
mine = {int(name) for name in os.listdir("/proc") if name.isdigit()}
for pid in range(1, 65536):
    if pid not in mine:
        for request in (ATTACH, SEIZE):
            got(f"to trace {pid}", system_call, "ptrace", request, pid, None, None)
        got(f"the memory of {pid}", read_memory, pid)
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        continue
    except PermissionError:
        print("GOT a process of others in sight", pid, flush=True)
    if pid not in mine and pid not in {int(name) for name in os.listdir("/proc") if name.isdigit()}:
        print("GOT a hidden process", pid, flush=True)
""", patience=3)

attack("keys", """
SYS_add_key, SYS_request_key, SYS_keyctl = (248, 249, 250) if os.uname().machine == "x86_64" else (217, 218, 219)
got("a key", system_call, "syscall", SYS_add_key, b"user", b"stolen", b"x", 1, -4)
got("a key of others", system_call, "syscall", SYS_request_key, b"user", b"stolen", None, -4)
got("a keyring", system_call, "syscall", SYS_keyctl, 0, -5, 1)
SYS_bpf, SYS_perf = (321, 298) if os.uname().machine == "x86_64" else (280, 241)
got("bpf", system_call, "syscall", SYS_bpf, 0, None, 0)
got("perf events", system_call, "syscall", SYS_perf, None, 0, 0, 0, 0)
""")

# Whatever can be read, in every place that there is: nothing of it may be the neighbour's. The word is put together, so that no
# program has it in its text.
attack("files", """
import mmap
word = b"the neighbour's " + b"own word"
skipped = ("/proc/sys", "/proc/bus", "/sys/kernel", "/usr", "/proc/kmsg", "/proc/kcore", "/dev/pts")
own = f"/proc/{os.getpid()}/"
for folder, folders, names in os.walk("/"):
    folders[:] = [name for name in folders if not os.path.join(folder, name).startswith(skipped) and name not in ("task", "map_files")]
    for name in names:
        path = os.path.join(folder, name)
        if path.startswith((own, "/proc/self/", "/proc/thread-self/")) or path.startswith("/sys") and folder.count("/") > 5:
            continue
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
            found = os.read(descriptor, 1 << 20)
            os.close(descriptor)
        except OSError:
            continue
        if word in found:
            print("GOT the neighbour's word in", path, flush=True)
    if "neighbour" in folder and "/proc" not in folder:
        print("GOT the neighbour's folder", folder, flush=True)
for shared in range(1 << 10):
    got(f"the shared memory {shared}", system_call, "shmat", shared, None, 0o10000)
got("the neighbour's shared memory", os.open, "/dev/shm/neighbour", os.O_RDONLY)
""", patience=3)

# ---- what is shared: memory, processes, disk ----
attack("memory", """
parts = []
while True:
    parts.append(b"x" * (4 << 20))
""", code=-1200)

# what the kernel keeps for it counts as well
attack("memory-of-kernel", """
parts = []
while True:
    pair = socket.socketpair()
    parts += pair
    # both ways: with few open files its memory must be full before these are
    for one in pair:
        one.setblocking(False)
        try:
            while True:
                one.send(b"x" * 65536)
        except BlockingIOError:
            pass
""", code=-1200)

# What is in file systems in memory counts as the task's, whether they have a size of their own or not.
attack("memory-file-systems", """
total = 0
for line in open("/proc/self/mountinfo"):
    fields = line.split()
    at, kind = fields[4], fields[fields.index("-") + 1]
    if kind != "tmpfs" or not os.path.isdir(at):
        continue
    try:
        with open(at + "/filler", "wb", buffering=0) as file:
            while total < 160 << 20:
                total += file.write(bytes(1 << 16))
    except OSError:
        pass
if total > 128 << 20:
    print("GOT", total, "bytes in memory", flush=True)
parts = []
while True:
    parts.append(b"x" * (1 << 20))
""", code=-1200)

attack("folders-of-the-platform", """
for place in ("/skep", "/skep/door", "/run/skep", "/skep/../skep"):
    got("a file in " + place, os.open, place + "/mine", os.O_WRONLY | os.O_CREAT)
""")

# What the kernel counts by user, not by control group. Who holds all of it until it is stopped harms no other job that has user ids of its
# own; programs of the same user else, but not the platform, which goes on to start jobs.
attack("user-limits", USER_COUNTED + f"""
MOST = {USER_COUNTED_MOST}""" + """
for take in (take_instance, take_queue, take_signal):
    try:
        for number in range(MOST):
            take(number)
    except OSError as error:
        print(take.__name__, number, error, flush=True)
import resource
for name in ("RLIMIT_NPROC", "RLIMIT_NOFILE", "RLIMIT_MSGQUEUE", "RLIMIT_SIGPENDING"):
    soft, hard = resource.getrlimit(getattr(resource, name))
    if hard != resource.RLIM_INFINITY:
        got("a higher " + name, resource.setrlimit, getattr(resource, name), (hard + 1, hard + 1))
got("a better priority", os.nice, -1)
got("the processor for itself", os.sched_setscheduler, 0, os.SCHED_FIFO, os.sched_param(1))
with open("/proc/self/oom_score_adj", "r+") as file:
    before = int(file.read())
def protect():
    with open("/proc/self/oom_score_adj", "w") as file:
        file.write(str(before - 1))
got("protection from the end of memory", protect)
print("tried", flush=True)
import signal
signal.pause()
""", memory_mb=USER_COUNTED_MB)

attack("processes", """
import signal, time
limit, children = 300, []
try:
    while len(children) <= limit:
        child = os.fork()
        if child == 0:
            signal.pause()
        children.append(child)
except BlockingIOError:
    pass
if len(children) >= limit:
    print("GOT processes without end", flush=True)
for child in children:
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
""", memory_mb=PROCESSES_MB)

attack("fork-bomb", """
import time
def bomb():
    while True:
        try:
            os.fork()
        except OSError:
            pass
if os.fork() == 0:
    bomb()
while len([name for name in os.listdir("/proc") if name.isdigit()]) < 280:
    time.sleep(0.01)
# they are left behind: nothing of them may stay when this ends
""", memory_mb=PROCESSES_MB)

attack("log", """
os.makedirs("/skep/log/a/b", exist_ok=True)
file = open("/skep/log/a/b/c", "wb")
while True:
    file.write(bytes(1 << 20))
""", code=236)

attack("log-at-once", """
file = os.open("/skep/log/stdout.999999999999999", os.O_WRONLY | os.O_CREAT)
os.posix_fallocate(file, 0, 200 << 20)
while True:
    import time
    time.sleep(1)
""", code=236)

attack("log-inodes", """
import itertools
for number in itertools.count():
    os.close(os.open(f"/skep/log/{number}", os.O_WRONLY | os.O_CREAT))
""", code=236)

# only where a task's disk has a limit
for place in ("/tmp", "/skep/run", "/skep/log", "/run", "/var/tmp"):
    attack("disk" + place.replace("/", "-"), f"""
os.makedirs({place!r}, exist_ok=True)
with open({place!r} + "/x", "wb", buffering=0) as file:
    while True:
        file.write(bytes(1 << 20))
""", code=236, is_of_disk=True)

attack("disk-at-once", """
with open("/tmp/x", "wb") as file:
    size = 1 << 40
    while size >= 4096:
        try:
            os.posix_fallocate(file.fileno(), file.seek(0, 2), size)
        except OSError:
            size //= 2
if os.stat("/tmp/x").st_blocks * 512 > 128 << 20:
    print("GOT", os.stat("/tmp/x").st_blocks * 512, "bytes of the disk", flush=True)
sys.exit(1)
""", code=236, is_of_disk=True)

attack("disk-inodes", """
import itertools
for number in itertools.count():
    os.close(os.open(f"/tmp/{number}", os.O_WRONLY | os.O_CREAT))
""", code=236, is_of_disk=True)

attack("disk-hosts", """
with open("/etc/hosts", "ab", buffering=0) as file:
    while True:
        file.write(bytes(1 << 20))
""", code=236, is_of_disk=True, is_of_network=True)

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


# Where the API is reached, in the machine's network, it says nothing of others without a token. Anybody may read the metrics, which
# name no job.
attack("api", """
def ask(path, headers=""):
    try:
        with socket.create_connection(("127.0.0.1", int(os.environ["API"])), 10) as api:
            api.sendall(f"GET {path} HTTP/1.1\\r\\nHost: 127.0.0.1\\r\\n{headers}Connection: close\\r\\n\\r\\n".encode())
            return b"".join(iter(lambda: api.recv(65536), b"")).decode()
    except OSError:
        return ""
paths = ("jobs", "jobs/admin~neighbour", "jobs/admin~neighbour/config", "jobs/admin~neighbour/tasks", "jobs/admin~neighbour/events",
         "users", "users/admin", "nodes", "virtual-clusters", "storages", "tokens", "cluster/sku-types", "../../etc/shadow")
for path in paths:
    for headers in ("", "Authorization: Bearer " + "0" * 64 + "\\r\\n", "Authorization: Basic YWRtaW46YWRtaW4=\\r\\n",
                    "Cookie: user=admin; token=0\\r\\n"):
        answer = ask("/api/v2/" + path, headers)
        if " 200 " in answer.partition("\\n")[0]:
            print("GOT", path, answer, flush=True)
if "neighbour" in ask("/metrics"):
    print("GOT the neighbour's name", flush=True)
""")

# ---- the network: only where a job has one of its own. NODE, SERVICE and API are the machine's address, the port of a service of its own
# at all addresses, and the API's; VICTIM is the neighbour's address, TALK and GREET ports of its that are published, INNER one that is not.
attack("loopback", """
service, api = int(os.environ["SERVICE"]), int(os.environ["API"])
gateway = "10.213.0.1"
for host in ("127.0.0.1", "127.0.0.2", gateway, os.environ["NODE"], "0.0.0.0"):
    for port in (service, api, 22):
        got(f"{host}:{port}", socket.create_connection, (host, port), 3)
        datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        datagrams.settimeout(0.2)
        datagrams.connect((host, port))
        got(f"an answer of {host}:{port}", lambda: (datagrams.send(b"?"), datagrams.recv(10)))
for line in open("/proc/net/tcp").readlines()[1:]:
    if int(line.split()[1].split(":")[1], 16) in (service, api):
        print("GOT the machine's connections", line, flush=True)
with open("/proc/net/dev") as links:
    if sorted(line.split(":")[0].strip() for line in links if ":" in line) not in (["eth0", "lo"], ["lo", "eth0"]):
        print("GOT links of the machine", open("/proc/net/dev").read(), flush=True)
""", is_of_network=True)

attack("others", """
victim = os.environ["VICTIM"]
for port in (int(os.environ["TALK"]), int(os.environ["GREET"]), int(os.environ["INNER"])):
    got(f"{victim}:{port}", socket.create_connection, (victim, port), 3)
got("the neighbour's inner port by the machine", socket.create_connection, (os.environ["NODE"], int(os.environ["INNER"])), 3)
IP_FREEBIND, IP_TRANSPARENT = 15, 19
forger = socket.socket()
got("to answer for anybody", forger.setsockopt, socket.IPPROTO_IP, IP_TRANSPARENT, 1)
forger.setsockopt(socket.IPPROTO_IP, IP_FREEBIND, 1)
forger.settimeout(3)
def forge():
    forger.bind((victim, 0))
    forger.connect((os.environ["NODE"], int(os.environ["GREET"])))
got("a connection in the neighbour's name", forge)
SIOCSIFADDR, SIOCSIFFLAGS = 0x8916, 0x8914
import fcntl
request = struct.pack("16sHHI8s", b"eth0", socket.AF_INET, 0, struct.unpack("I", socket.inet_aton(victim))[0], b"")
got("the neighbour's address", fcntl.ioctl, socket.socket(), SIOCSIFADDR, request)
""", is_of_network=True)

attack("abstract-sockets", """
caller = socket.socket(socket.AF_UNIX)
got("the neighbour's abstract socket", caller.connect, "\\0" + os.environ["HIDDEN"])
for line in open("/proc/net/unix"):
    if "neighbour" in line or "dbus" in line or "skep-test" in line:
        print("GOT sight of", line, flush=True)
""", is_of_network=True)

attack("door", """
def ask(line, authorization=""):
    with socket.socket(socket.AF_UNIX) as door:
        door.connect("/skep/door/api")
        door.sendall(f"{line} HTTP/1.1\\r\\nHost: x\\r\\n{authorization}Content-Length: 0\\r\\nConnection: close\\r\\n\\r\\n".encode())
        return b"".join(iter(lambda: door.recv(65536), b"")).split(b"\\r\\n")[0].decode()
for path in ("/api/v2/jobs", "/api/v2/info", "/metrics", "/healthz", "//api/internal/attempts/1/barriers/start", "/API/internal/",
             "/api/internal/../v2/jobs", "/api/internal/%2e%2e/v2/jobs", "/rest-server/api/internal/attempts/1/barriers/start"):
    answer = ask("GET " + path)
    if " 200 " in answer:
        print("GOT", path, answer, flush=True)
for attempt in range(1, 30):
    for token in ("", "Authorization: Bearer " + "0" * 64 + "\\r\\n"):
        for barrier in ("start", "ssh"):
            answer = ask(f"POST /api/internal/attempts/{attempt}/barriers/{barrier}", token)
            if " 401 " not in answer and " 403 " not in answer and " 404 " not in answer:
                print("GOT the barrier of", attempt, answer, flush=True)
for name in ("api", "other"):
    got("to replace the door", os.rename, "/skep/door/api", "/skep/door/" + name + "~")
got("a socket at the door", socket.socket(socket.AF_UNIX).bind, "/skep/door/mine")
""", is_of_network=True)

# It waits at the neighbour's ports until it is told to end at its own: whoever calls the neighbour meanwhile must not come here.
attack("ports", """
import select
thieves = [socket.create_server(("", int(os.environ[name]))) for name in ("TALK", "GREET", "INNER")]
own = socket.create_server(("", int(os.environ["PAI_PORT_LIST_worker_0_own"])))
print("listening", flush=True)
while True:
    ready = select.select([own, *thieves], [], [])[0]
    if any(thief in ready for thief in thieves):
        print("GOT a connection of the neighbour's", flush=True)
        break
    own.accept()[0].sendall(b"ended\\n")
    break
""", is_of_network=True)
