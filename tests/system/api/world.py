"""A real skepd on a free port, and `skep` as a user would call it. Used by the system tests of api and cli.

Environment: SKEPD, SKEP and SKEP_INIT name the programs (meson sets them). Every server that is started is ended by its own process id.
"""
import http.client
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import unittest

import ending
import waits
from readiness import Readiness
from task_ports import published, server_port, task_ports
from waits import PATIENCE_S

SKEPD = os.environ["SKEPD"]
SKEP = os.environ["SKEP"]
EXPLAIN_S = 20  # for each thing that is asked

FAKE = """
engine:
  kind: fake
  fake: {{nodes: 4, cpu: 8, memoryMB: 32768, gpus: 4, runMilliseconds: {run_ms}}}
"""

LOCAL = """
engine:
  kind: local
  initPath: {init}
  images: {{localRoots: [{images}]}}
  logSegmentMB: 1
  devices: {{simulatedGpus: 2, simulatedGpuType: SIM}}
  cpu: 8
  memoryMB: 4096
"""


def can_run_containers():
    """Why not, or None."""
    if os.geteuid() != 0:
        return "containers need root"
    for program in ("conmon", "busybox"):
        if not shutil.which(program):
            return f"{program} is not installed"
    if not (shutil.which("crun") or shutil.which("runc")):
        return "neither crun nor runc is installed"
    return None


WALLS = {"network": "SKEP_TEST_NETWORK", "userNamespaces": "SKEP_TEST_USERS"}


def with_walls(config):
    """The configuration of a local engine, with the walls that the environment names: SKEP_TEST_NETWORK (host, private) and
    SKEP_TEST_USERS (auto, required, off)."""
    for section, name in WALLS.items():
        mode = os.environ.get(name)
        if mode and f"{section}:" not in config:
            wall = f"{section}: {{mode: {mode}}}"
            config = config.replace("\n  kind: local\n", f"\n  kind: local\n  {wall}\n").replace("{kind: local, ", f"{{kind: local, {wall}, ")
    return config


class World:
    """One server with its own directory; a context manager."""

    def __init__(self, run_ms=300, local=False):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="skep-system-"))
        self.process = None
        self.port = server_port()
        self.local = local
        self.images = self.folder / "images"
        self.image = f"dir:{self.images}/busybox"
        text = LOCAL.format(init=os.environ["SKEP_INIT"], images=self.images) if local else FAKE.format(run_ms=run_ms)
        (self.folder / "skepd.yaml").write_text(text)
        if local:
            self.make_image()

    def make_image(self):
        """An image of nothing but busybox."""
        root = self.images / "busybox"
        (root / "bin").mkdir(parents=True)
        for name in ("etc", "tmp", "root"):
            (root / name).mkdir()
        shutil.copy(shutil.which("busybox"), root / "bin/busybox")
        subprocess.run(["chroot", str(root), "/bin/busybox", "--install", "-s", "/bin"], check=True)
        (root / "etc/passwd").write_text("root:x:0:0::/root:/bin/sh\n")
        for path in (self.folder, self.images, root):
            path.chmod(0o755)

    def __enter__(self):
        self.start()
        self.admin_password = (self.folder / "password").read_text().strip()
        self.login("admin", self.admin_password)
        return self

    def __exit__(self, *_):
        if self.local and self.process:
            self.end_jobs()
        status = self.stop()
        log = (self.folder / "skepd.log").read_text(errors="replace")
        shutil.rmtree(self.folder, ignore_errors=True)
        assert status in (0, None), f"skepd ended with {status}:\n{log[-4000:]}"
        left = published(*task_ports()) if self.local else []
        assert not left, f"the ports {left} are still published: of tasks that the test has left, or of containers held\n{log[-4000:]}"

    # ---- the server ----

    def configure(self):
        """The ports of its tasks, and the walls between them, unless the test chose them."""
        if not self.local:
            return
        config = self.folder / "skepd.yaml"
        text = with_walls(config.read_text())
        config.write_text(text)
        if "portFirst" not in text:
            ports = "scheduling: {portFirst: %d, portLast: %d" % task_ports()
            has_section = "scheduling: {" in text
            config.write_text(text.replace("scheduling: {", f"{ports}, ") if has_section else f"{text}{ports}}}\n")

    def start(self, listen=None):
        self.configure()
        log = open(self.folder / "skepd.log", "ab")
        at = log.tell()
        readiness = Readiness()
        self.process = subprocess.Popen(
            [SKEPD, "--config", self.folder / "skepd.yaml", "--data", self.folder / "data", "--listen",
             listen or f"127.0.0.1:{self.port}", "--password-file", self.folder / "password"],
            stderr=log, stdout=log, stdin=subprocess.DEVNULL, env=readiness.environment)
        log.close()
        try:
            is_ready = readiness.wait(self.process, PATIENCE_S)
        finally:
            readiness.close()
        found = re.search(r"is ready, port (\d+)", (self.folder / "skepd.log").read_text()[at:])
        if is_ready and found:
            self.port = int(found[1])
            return
        raise AssertionError(f"skepd did not start ({self.process.poll()}):\n" + (self.folder / "skepd.log").read_text())

    def stop(self, how=signal.SIGTERM):
        """Ends the server; its exit status."""
        if not self.process:
            return None
        process, self.process = self.process, None
        return ending.end(process, self.folder / "skepd.log", how)

    def end_jobs(self):
        """All of them; and those that have failed go, with what is held of them for debugging."""
        names = self.names_of("WAITING,RUNNING,STOPPING")
        if names:
            self.skep("stop", *names)
            self.skep("wait", "--quiet", "--timeout", PATIENCE_S, *names, timeout=2 * PATIENCE_S)
        failed = self.names_of("FAILED")
        if failed:
            self.skep("delete", *failed)
        # a job has ended before its last container's remains are gone: a server that ends now would leave them to the next one
        waits.until(lambda: not published(*task_ports()), "the ports of all tasks are withdrawn")

    def names_of(self, states):
        return self.skep("list", "--quiet", "--limit", "10000", "--state", states).stdout.split()

    # ---- the command line ----

    def environment(self, user="admin"):
        environment = {k: v for k, v in os.environ.items() if not k.startswith("SKEP_") and k not in ("NO_COLOR",)}
        environment |= {"XDG_CONFIG_HOME": str(self.folder / f"config-{user}"), "TERM": "xterm", "LC_ALL": "C.UTF-8",
                        "SKEP_SERVER": f"http://127.0.0.1:{self.port}"}
        return environment

    def skep(self, *words, user="admin", stdin=None, timeout=PATIENCE_S, **environment):
        return subprocess.run([SKEP, *map(str, words)], env=self.environment(user) | environment, input=stdin,
                              capture_output=True, text=True, timeout=timeout)

    def explain(self, job):
        """For a test that fails: what the server knows of a job and of its cluster, and the end of its log."""
        said = []
        for words in (("describe", job), ("events", job), ("logs", job), ("list", "--state", "WAITING,RUNNING,STOPPING"), ("nodes",)):
            try:
                done = self.skep(*words, timeout=EXPLAIN_S)
                said.append(f"$ skep {' '.join(words)}\n{done.stdout}{done.stderr}")
            except subprocess.TimeoutExpired:
                said.append(f"$ skep {' '.join(words)}\nno answer within {EXPLAIN_S} s\n")
        log = (self.folder / "skepd.log").read_text(errors="replace")
        return "\n".join([*said, f"the end of {self.folder}/skepd.log:", log[-4000:]])

    def login(self, user, password):
        done = self.skep("login", "--username", user, "--password-stdin", user=user, stdin=password + "\n")
        assert done.returncode == 0, done.stderr

    def add_user(self, name):
        """An account, made as OpenPAI's clients do, whose password is NAME-password; logged in, and its token."""
        status, reply = self.json("POST", "/api/v2/users", {"username": name, "password": f"{name}-password"})
        assert status == 201, reply
        self.login(name, f"{name}-password")
        return self.token(name)

    def file(self, text, name="job.yaml"):
        path = self.folder / name
        path.write_text(text)
        return path

    # ---- HTTP ----

    def token(self, user="admin"):
        text = (self.folder / f"config-{user}" / "skep/settings").read_text()
        return re.search(r"token: (\S+)", text)[1]

    def ask(self, method, path, body=None, token=True, headers=()):
        """Status, headers, body."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        given = dict(headers)
        if token:
            given["Authorization"] = "Bearer " + (self.token() if token is True else token)
        connection.request(method, path, body, given)
        reply = connection.getresponse()
        data = reply.read()
        connection.close()
        return reply.status, reply.headers, data

    def json(self, method, path, body=None, token=True):
        status, _, data = self.ask(method, path, json.dumps(body) if body is not None else None, token,
                                   {"Content-Type": "application/json"})
        return status, json.loads(data) if data else None

    def raw(self, data, timeout=PATIENCE_S):
        """Send bytes, read until the server closes."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=timeout) as connection:
            try:
                connection.sendall(data)
            except OSError:
                pass  # cut off while sending: what came back tells
            reply = b""
            try:
                while True:
                    part = connection.recv(65536)
                    if not part:
                        return reply
                    reply += part
            except (TimeoutError, ConnectionResetError):
                return reply


def job(name, commands, instances=1, image="debian:12", extra="", gpu=0):
    """A job file of one role."""
    lines = "".join(f"      - {json.dumps(line)}\n" for line in commands)
    return (f"protocolVersion: 2\nname: {name}\ntype: job\n{extra}prerequisites:\n"
            f"  - {{name: image, type: dockerimage, uri: {json.dumps(image)}}}\ntaskRoles:\n  worker:\n"
            f"    instances: {instances}\n    dockerImage: image\n"
            f"    resourcePerInstance: {{cpu: 1, memoryMB: 64, gpu: {gpu}}}\n    commands:\n{lines}")


def main():
    unittest.main(verbosity=2, argv=[sys.argv[0]])
