"""Hostile jobs beside a neighbour's: does each fail in its aim, and does the neighbour run to its normal end?

    run.py [NAME…]     all attacks, or these; exit code 1 when one got what it must not get, 77 to skip

SKEP_TEST_RUNTIME: crun or runc instead of the first that works.
SKEP_TEST_NETWORK: host: without the attacks on the network; else private.
SKEP_TEST_DISK: off: without the attacks on the disk; project: project quotas must hold each task's disk; else each has a limited one.
SKEP_TEST_USERS: off: without the attacks on user ids; else each job has its own.
SKEP_TEST_USER_IMAGES: metadata: images have the ids of jobs by metadata layers.
SKEP_TEST_CPU: how many tasks run at once, 32 unless it says so.
SKEP_TEST_IMAGES: a folder that has the image `hostile` already; else it is made.

Covers: src/engine/local/network.c, src/engine/local/network_link.c, src/engine/local/network_rules.c,
src/engine/local/network_task.c, src/engine/local/task_ids.c, src/sys/netlink.c
"""
import ipaddress
import json
import os
import pathlib
import shlex
import shutil
import socket
import subprocess
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "corpus"))
import attacks  # noqa: E402
import image  # noqa: E402
import processes  # noqa: E402
import world  # noqa: E402
from task_ports import server_port  # noqa: E402

CONFIG = """
scheduling: {{killGraceSeconds: 2}}
engine:
  kind: local
  initPath: {init}
  {runtime}
  network: {{mode: {network}}}
  disk: {{quota: {quota}, taskMB: 128}}
  userNamespaces: {{mode: {users}, images: {user_images}}}
  images: {{localRoots: [{images}]}}
  cpu: {cpu}
  memoryMB: 8192
  pidsMax: 300
  logSegmentMB: 8
storages:
- {{name: shared, directory: {shared}, rootSquash: true}}
"""
IMAGES = os.environ.get("SKEP_TEST_IMAGES")
DISK = os.environ.get("SKEP_TEST_DISK", "required")
ATTENDED = ("ports", "user-limits")  # they wait until something has been tried beside them
LIMIT_S = processes.PATIENCE_S
REFUSED_S = 10  # for a call that nobody is to answer


class Hostile(world.World):
    def __init__(self, cases):
        super().__init__(local=True)
        self.cases = cases
        self.shared = self.folder / "shared"
        self.images = pathlib.Path(IMAGES or self.images)
        self.inner = server_port()  # of the neighbour, in whatever network it is
        self.hidden = f"neighbour-{os.getpid()}"
        self.service = socket.create_server(("", 0))
        threading.Thread(target=self.serve, daemon=True).start()
        runtime = os.environ.get("SKEP_TEST_RUNTIME")
        runtime = f"runtime: {shutil.which(runtime)}" if runtime else ""
        (self.folder / "skepd.yaml").write_text(CONFIG.format(
            init=os.environ["SKEP_INIT"], images=self.images, runtime=runtime, network=os.environ.get("SKEP_TEST_NETWORK", "private"),
            quota="off" if DISK == "off" else "required", users=os.environ.get("SKEP_TEST_USERS", "required"), shared=self.shared,
            user_images=os.environ.get("SKEP_TEST_USER_IMAGES", "auto"), cpu=os.environ.get("SKEP_TEST_CPU", "32")))

    def serve(self):
        """A service of the machine, for itself."""
        while True:
            self.service.accept()[0].sendall(b"secret")

    def make_image(self):
        pass  # when the attacks are known

    def __enter__(self):
        self.shared.mkdir()
        for path, mode in ((self.folder, 0o755), (self.shared, 0o777)):
            path.chmod(mode)
        for name, mode in (("of-root", 0o644), ("secret", 0o600)):
            (self.shared / name).write_text("root's")
            (self.shared / name).chmod(mode)
        if not IMAGES:
            self.images.mkdir()
            self.images.chmod(0o755)
            attacks.image_make(self.images / "hostile", self.cases)
        return super().__enter__()

    def submit(self, name, command, instances=1, ports="", extras="", memory_mb=128):
        text = (f"protocolVersion: 2\nname: {name}\ntype: job\njobRetryCount: 0\nprerequisites:\n"
                f"  - {{name: image, type: dockerimage, uri: {json.dumps(f'dir:{self.images}/hostile')}}}\ntaskRoles:\n  worker:\n"
                f"    instances: {instances}\n    dockerImage: image\n"
                f"    completion: {{minFailedInstances: 1, minSucceededInstances: {instances}}}\n"
                f"    resourcePerInstance: {{cpu: 1, memoryMB: {memory_mb}, gpu: 0{ports}}}\n"
                f"    extraContainerOptions: {{shmMB: 16}}\n    commands:\n      - {json.dumps(command)}\n{extras}")
        done = self.skep("submit", self.file(text, f"{name}.yaml"))
        assert done.returncode == 0, done.stderr

    def logs(self, name, index=0):
        return self.skep("logs", "--role", "worker", "--index", index, name).stdout

    def neighbour_begin(self):
        self.submit("neighbour", f"INNER={self.inner} HIDDEN={self.hidden} python3 /corpus/neighbour.py", instances=2,
                    ports=", ports: {talk: 1, greet: 1}")
        with processes.follow(self, "logs", "--follow", "neighbour") as log:
            processes.until(log, "^talking$")

    def task_of(self, name):
        """Of its first task: the address for others, and its ports."""
        job = self.json("GET", f"/api/v2/jobs/admin~{name}")[1]
        task = job["taskRoles"]["worker"]["taskStatuses"][0]
        return task["containerIp"], {label: int(port) for label, port in task["containerPorts"].items()}

    def knowledge(self):
        """What an attacker may know: as variables in front of a command."""
        node, ports = self.task_of("neighbour")
        state = json.loads((self.container_of("neighbour") / "state").read_text())
        known = {"NODE": node, "SERVICE": self.service.getsockname()[1], "API": self.port, "VICTIM": state.get("address", node),
                 "TALK": ports["talk"], "GREET": ports["greet"], "INNER": self.inner, "HIDDEN": self.hidden}
        return " ".join(f"{name}={value}" for name, value in known.items())

    def container_of(self, name):
        for path in (self.folder / "data/engine/containers").iterdir():
            try:
                state = json.loads((path / "state").read_text())
            except FileNotFoundError:
                continue  # of a task that is being started, or was forgotten
            if state["job"] == f"admin~{name}" and state["index"] == 0:
                return path
        raise AssertionError(f"there is no container of {name}")

    def neighbour_end(self):
        """By its normal end: a file in the folder of its first task, which only the machine's root and the task can write."""
        bundle = processes.task_folder(self.folder, self.container_of("neighbour").name)
        pathlib.Path("/proc", (bundle / "init.pid").read_text(), "root/skep/run/over").touch()
        self.skep("wait", "--quiet", "--timeout", LIMIT_S, "neighbour", timeout=LIMIT_S + 30)


def judge(the, case):
    """What is wrong with the end of an attack, or None."""
    log = the.logs(case.name)
    status = the.json("GET", f"/api/v2/jobs/admin~{case.name}")[1]["jobStatus"]
    state = status["state"]
    if "GOT" in log:
        return log
    if "tried" not in log.splitlines():
        return f"did not try ({state}):\n{log}\n{the.skep('describe', '--attempts', case.name).stdout}"
    if case.code is not None and status["appExitCode"] != case.code:
        return f"ended with {status['appExitCode']} instead of {case.code}"
    return None


def call(address, port, words=("python3", "-c"), limit=LIMIT_S):
    """What is said at a port, by a program that `words` start, or its error when nothing comes within the limit."""
    program = f"import socket; print(socket.create_connection(({address!r}, {port}), {limit}).makefile().read(), end='')"
    done = subprocess.run([*words, program], capture_output=True, text=True, timeout=3 * LIMIT_S)
    return done.stdout or done.stderr[-200:]


class Elsewhere:
    """Another machine: a network namespace with a link to this one."""

    def __enter__(self):
        self.name = f"skep-else-{os.getpid()}"
        self.link = f"skepelse{os.getpid()}"
        network = ipaddress.ip_network("10.214.0.0/16")[os.getpid() % (1 << 14) * 4]
        self.address, other = str(network + 1), str(network + 2)
        run = lambda *words: subprocess.run(words, check=True)  # noqa: E731
        run("ip", "netns", "add", self.name)
        run("ip", "link", "add", self.link, "type", "veth", "peer", "name", "eth0", "netns", self.name)
        run("ip", "addr", "add", f"{self.address}/30", "dev", self.link)
        run("ip", "link", "set", self.link, "up")
        run("ip", "-n", self.name, "addr", "add", f"{other}/30", "dev", "eth0")
        run("ip", "-n", self.name, "link", "set", "eth0", "up")
        run("ip", "-n", self.name, "route", "add", "10.213.0.0/16", "via", self.address)
        return self

    def call(self, address, port, limit=LIMIT_S):
        return call(address, port, ("nsenter", f"--net=/run/netns/{self.name}", "python3", "-c"), limit)

    def __exit__(self, *_):
        subprocess.run(["ip", "netns", "del", self.name], check=True)


def network_check(the):
    """Published ports are reached from this machine and from another one, others are not; what is wrong."""
    node, ports = the.task_of("neighbour")
    own = json.loads((the.container_of("neighbour") / "state").read_text())["address"]
    with Elsewhere() as elsewhere:
        answers = {"at the node's address": call(node, ports["greet"]), "at the loopback": call("127.0.0.1", ports["greet"]),
                   "from another machine": elsewhere.call(elsewhere.address, ports["greet"])}
        wrong = [f"{place}: {answer}" for place, answer in answers.items() if answer != "neighbour\n"]
        for address, port in ((elsewhere.address, the.inner), (own, the.inner), (own, ports["greet"]), (elsewhere.address, the.port)):
            answer = elsewhere.call(address, port, REFUSED_S)
            if "Error" not in answer:
                wrong.append(f"from another machine {address}:{port} {answer}")
    return wrong


# What a task could do whose root directory is the machine's: it runs as root of the task, and has all capabilities there.
ESCAPED = attacks.PRELUDE + """
folder, shared, server = sys.argv[1:]
for path in (folder + "/data", folder + "/data/engine/containers", shared + "/secret", "/etc/shadow"):
    got("to read " + path, os.listdir if os.path.isdir(path) else lambda path: open(path).read(), path)
for path in (shared + "/of-root", "/etc/passwd", "/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger", "/dev/kmsg",
             f"/proc/{server}/mem", f"/proc/{server}/environ", f"/proc/{server}/oom_score_adj"):
    got("to write " + path, os.open, path, os.O_WRONLY)
for path in ("/etc/escaped", "/root/escaped", folder + "/escaped"):
    got("to make " + path, os.open, path, os.O_WRONLY | os.O_CREAT)
for path in (shared + "/of-root", "/etc/passwd", "/bin/sh"):
    got("to own " + path, os.chown, path, 0, 0)
    got("to chmod " + path, os.chmod, path, 0o6755)
got("to end the server", os.kill, int(server), 0)
got("to trace the server", system_call, "ptrace", 16, int(server), None, None)
got("a mount", system_call, "mount", b"none", b"/mnt", b"tmpfs", 0, None)
got("the server's root", os.chroot, f"/proc/{server}/root/root")
got("the machine's clock", system_call, "settimeofday", struct.pack("qq", 0, 0), None)
got("the machine's name", system_call, "sethostname", b"escaped", 7)
for name in ("mnt", "net", "pid"):
    got("the machine's namespace " + name, lambda: system_call("setns", os.open(f"/proc/{server}/ns/{name}", os.O_RDONLY), 0))
got("modules", system_call, "syscall", 175 if os.uname().machine == "x86_64" else 105, None, 0, b"")
got("a device", os.mknod, "/tmp/skep-escaped", stat.S_IFBLK | 0o666, os.makedev(7, 0))
got("raw packets", socket.socket, socket.AF_PACKET, socket.SOCK_RAW, 3)
print("tried", flush=True)
"""


def escape_check(the):
    """Root of the neighbour's task, in the machine's file system: what it gets that it must not get."""
    bundle = processes.task_folder(the.folder, the.container_of("neighbour").name)
    done = subprocess.run(["nsenter", "--user", "--target", (bundle / "init.pid").read_text(), image.PYTHON, "-c", ESCAPED, the.folder, the.shared,
                           str(the.process.pid)], capture_output=True, text=True, timeout=LIMIT_S)
    lines = done.stdout.splitlines()
    return [f"escaped: {line}" for line in lines if "GOT" in line] + ([] if "tried" in lines else [f"escaped: {done.stderr}"])


def storage_check(the):
    """What the attack on the storage has left there is not root's."""
    return [f"storage: {path} is of {path.stat().st_uid}" for path in the.shared.iterdir()
            if path.name not in ("of-root", "secret") and 0 in (path.stat().st_uid, path.stat().st_gid)]


def ports_end(the):
    """Calls the neighbour while another task waits at its ports, then tells that one to end."""
    with processes.follow(the, "logs", "--follow", "ports") as log:
        processes.until(log, "^listening$")
    node, ports = the.task_of("neighbour")
    answer = call(node, ports["greet"])
    node, ports = the.task_of("ports")
    ended = call(node, ports["own"])
    return [] if (answer, ended) == ("neighbour\n", "ended\n") else [f"ports: {answer} {ended}"]


def users_are_apart():
    """Does the kernel count for each job by itself? With runc it needs CAP_SYS_RESOURCE."""
    capabilities = int(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("CapEff:")), 16)
    return os.environ.get("SKEP_TEST_RUNTIME") != "runc" or bool(capabilities & 1 << 24)


def limits_end(the, has_users):
    """While another task holds all that the kernel counts by user, a new job starts and ends, and has, as the machine's root, what it needs of
    that when jobs have user ids of their own; then that one is stopped."""
    has_users = has_users and users_are_apart()
    with processes.follow(the, "logs", "--follow", "user-limits") as log:
        processes.until(log, "^tried$")
    the.submit("newcomer", f"python3 -c {shlex.quote(attacks.USER_NEEDS)}" if has_users else "echo here")
    the.skep("wait", "--quiet", "--timeout", LIMIT_S, "newcomer", timeout=LIMIT_S + 30)
    state = the.json("GET", "/api/v2/jobs/admin~newcomer")[1]["jobStatus"]["state"]
    wrong = [] if state == "SUCCEEDED" else [f"user-limits: a new job ended as {state}: "
                                                  f"{the.skep('describe', '--attempts', 'newcomer').stdout}"]
    if has_users:
        done = subprocess.run([image.PYTHON, "-c", attacks.USER_NEEDS], capture_output=True, text=True, timeout=LIMIT_S)
        wrong += [] if done.stdout == "has all\n" else [f"user-limits: the machine's root: {done.stderr}"]
    the.skep("stop", "user-limits")
    return wrong


def main(names):
    is_private = os.environ.get("SKEP_TEST_NETWORK", "private") == "private"
    has_users = os.environ.get("SKEP_TEST_USERS", "required") == "required"
    is_limited = DISK != "off"
    cases = [case for case in attacks.ATTACKS if (not names or case.name in names) and (is_private or not case.is_of_network) and
             (is_limited or not case.is_of_disk) and (has_users or not case.is_of_users)]
    wrong = []
    with Hostile(cases) as the:
        the.neighbour_begin()
        if DISK == "project" and list(pathlib.Path("/sys/block").glob("loop*/loop")):
            wrong.append("a task's disk is an image")
        known = the.knowledge()
        print("the neighbour runs", flush=True)
        for case in sorted(cases, key=lambda case: case.name not in ATTENDED):
            the.submit(case.name, f"{known} python3 /corpus/{case.name}.py", ports=", ports: {own: 1}" if case.name == "ports" else "",
                       extras="extras: {storages: [{name: shared}]}\n" if case.name == "storage" else "", memory_mb=case.memory_mb)
            print("begun", case.name, flush=True)
        if has_users:
            wrong += escape_check(the)
            print("after escape_check", flush=True)
        if is_private:
            wrong += network_check(the)
            print("after network_check", flush=True)
        if any(case.name == "ports" for case in cases):
            wrong += ports_end(the)
            print("after ports_end", flush=True)
        if any(case.name == "user-limits" for case in cases):
            wrong += limits_end(the, has_users)
            print("after limits_end", flush=True)
        for case in cases:
            limit = case.patience * LIMIT_S
            the.skep("wait", "--quiet", "--timeout", limit, case.name, timeout=limit + 30)
            problem = judge(the, case)
            print("ok  " if problem is None else "FAIL", case.name, problem or "", flush=True)
            wrong += [case.name] if problem else []
        wrong += storage_check(the)
        the.neighbour_end()
        job = the.json("GET", "/api/v2/jobs/admin~neighbour")[1]
        print("neighbour:", job["jobStatus"]["state"], [the.logs("neighbour", index).split("\n")[-2:] for index in (0, 1)])
        if job["jobStatus"]["state"] != "SUCCEEDED" or job["jobStatus"]["retries"] != 0:
            wrong.append("neighbour")
    for line in wrong:
        print("WRONG", line)
    return 1 if wrong else 0


if __name__ == "__main__":
    reason = world.can_run_containers() or (None if IMAGES else image.why_not())
    if reason:
        print("skip:", reason)
        sys.exit(77)
    sys.exit(main(sys.argv[1:]))
