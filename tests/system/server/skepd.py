"""A skepd of our own for a test: its directory, its process, its API."""

import contextlib
import http.client
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import ending  # noqa: E402
import waits  # noqa: E402
from readiness import Readiness  # noqa: E402
from task_ports import server_port, task_ports  # noqa: E402
from waits import PATIENCE_S  # noqa: E402


class Refused(Exception):
    """An answer that is not 2xx."""

    def __init__(self, status, body):
        super().__init__(f"{status}: {body}")
        self.status = status
        self.body = body


class Skepd:
    def __init__(self, program, config, directory=None):
        self.program = program
        self.directory = pathlib.Path(directory or tempfile.mkdtemp(prefix="skepd-test-"))
        self.is_own_directory = directory is None
        self.port = server_port()
        self.data = self.directory / "data"
        self.config_path = self.directory / "skepd.yaml"
        self.write_config(config)
        self.log = open(self.directory / "log", "ab")
        self.process = None
        self.token = None
        self.readiness = None
        self.environment = {}  # beside the test's own

    def write_config(self, config):
        config = {"dataDirectory": str(self.data)} | config
        if config.get("engine", {}).get("kind") != "fake":
            first, last = task_ports()
            config["scheduling"] = {"portFirst": first, "portLast": last} | config.get("scheduling", {})
        config["api"] = {"listen": f"127.0.0.1:{self.port}"} | config.get("api", {})
        beside = self.config_path.with_suffix(".new")
        beside.write_text(json.dumps(config))  # JSON is YAML
        beside.replace(self.config_path)  # whole at any instant: a server that is being started may read it

    def start(self, wait=True, arguments=()):
        if self.readiness:
            self.readiness.close()
        self.readiness = Readiness()
        self.process = subprocess.Popen(
            [self.program, "--config", self.config_path, "--password-file", self.directory / "password",
             *arguments],
            stdout=self.log, stderr=self.log, stdin=subprocess.DEVNULL,
            env=self.readiness.environment | self.environment)
        if wait:
            self.wait_started()

    def wait_started(self, limit=PATIENCE_S):
        """Until it says so (once a start), or has ended."""
        if self.readiness.wait(self.process, limit):
            return
        if self.process.poll() is not None:
            raise AssertionError(f"skepd ended with {self.process.returncode}:\n{self.tail()}")
        raise AssertionError(f"skepd was not ready within {limit} s:\n{self.tail()}")

    def wait_ready(self, limit=PATIENCE_S):
        """Until its own checks say so: after a fault that came while it ran, or just after it started."""
        def is_ready():
            assert self.process.poll() is None, f"skepd ended with {self.process.returncode}:\n{self.tail()}"
            try:
                self.call("GET", "/readyz", token=None)
                return True
            except (OSError, http.client.HTTPException, Refused):
                return False

        waits.until(is_ready, lambda: f"skepd was not ready within {limit} s:\n{self.tail()}", limit)

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self):
        if self.process and self.process.poll() is None:
            ending.end(self.process, self.directory / "log")
        return self.process.returncode if self.process else None

    def tail(self, lines=30):
        self.log.flush()
        text = (self.directory / "log").read_text(errors="replace")
        return "\n".join(text.splitlines()[-lines:])

    def login(self):
        password = (self.directory / "password").read_text().strip()
        body = json.dumps({"username": "admin", "password": password})
        answer = self.call("POST", "/api/v2/authn/basic/login", body, token=None)
        self.token = answer["token"]

    def call(self, method, path, body=None, token="own", kind=None, limit=PATIENCE_S):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=limit)
        headers = {}
        if token == "own":
            token = self.token
        if token:
            headers["Authorization"] = f"Bearer {token}"
        if body is not None:
            headers["Content-Type"] = kind or "application/json"
        try:
            connection.request(method, path, body, headers)
            reply = connection.getresponse()
            data = reply.read()
        finally:
            connection.close()
        if reply.status // 100 != 2:
            raise Refused(reply.status, data.decode(errors="replace"))
        if "json" in (reply.getheader("Content-Type") or ""):
            return json.loads(data)
        return data.decode(errors="replace")

    @contextlib.contextmanager
    def stream(self, path, limit=PATIENCE_S):
        """A reply that goes on: to be read as a file."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=limit)
        try:
            connection.request("GET", path, headers={"Authorization": f"Bearer {self.token}"})
            reply = connection.getresponse()
            assert reply.status == 200, reply.read()
            yield reply
        finally:
            connection.close()

    def submit(self, text):
        return self.call("POST", "/api/v2/jobs", text, kind="text/yaml")

    def act(self, name, value):
        return self.call("PUT", f"/api/v2/jobs/{name}/executionType", json.dumps({"value": value}))

    def jobs(self):
        return self.call("GET", "/api/v2/jobs?limit=50000")

    def job(self, name):
        return self.call("GET", f"/api/v2/jobs/{name}")

    def wait_final(self, names, limit=PATIENCE_S):
        """Until these jobs are final, which the ends of their stories tell; how they and all others stand then."""
        for name in names:
            with self.stream(f"/api/v2/jobs/{name}/events?follow=true", limit) as story:
                story.read()
        states = {f'{job["username"]}~{job["name"]}': job["state"] for job in self.jobs()}
        left = [(name, states.get(name)) for name in names if states.get(name) not in ("SUCCEEDED", "FAILED", "STOPPED")]
        assert not left, f"not final: {left[:10]}\n{self.tail()}"
        return states

    def remove(self):
        self.log.close()
        if self.readiness:
            self.readiness.close()
        if self.is_own_directory:
            shutil.rmtree(self.directory, ignore_errors=True)


def job_file(name, roles, image="debian:12", extra=None):
    """A job of protocol 2; roles: {name: (instances, command, completion)}."""
    job = {
        "protocolVersion": 2, "name": name, "type": "job",
        "prerequisites": [{"protocolVersion": 2, "name": "image", "type": "dockerimage", "uri": image}],
        "taskRoles": {},
    } | (extra or {})
    for role, (instances, command, completion) in roles.items():
        job["taskRoles"][role] = {
            "instances": instances, "completion": completion, "dockerImage": "image",
            "resourcePerInstance": {"cpu": 1, "memoryMB": 32, "gpu": 0}, "commands": [command],
        }
    return json.dumps(job)


def busybox_image(directory):
    """An image with nothing but busybox, made on the spot; its reference, and its folder."""
    layout, bundle = f"{directory}/layout", f"{directory}/bundle"
    run = lambda *command: subprocess.run(command, check=True, stdout=subprocess.DEVNULL,
                                          stderr=subprocess.DEVNULL)
    run("umoci", "init", "--layout", layout)
    run("umoci", "new", "--image", f"{layout}:busybox")
    run("umoci", "unpack", "--image", f"{layout}:busybox", bundle)
    root = pathlib.Path(bundle) / "rootfs"
    for folder in ("bin", "tmp", "etc", "root"):
        (root / folder).mkdir(exist_ok=True)
    busybox = shutil.which("busybox")
    shutil.copy(busybox, root / "bin/busybox")
    for applet in subprocess.run([busybox, "--list"], capture_output=True, text=True).stdout.split():
        if applet != "busybox":
            (root / "bin" / applet).symlink_to("busybox")
    run("umoci", "repack", "--image", f"{layout}:busybox", bundle)
    run("umoci", "config", "--image", f"{layout}:busybox", "--config.env", "PATH=/bin")
    shutil.rmtree(bundle)
    return f"oci:{layout}:busybox"


def can_run_containers():
    return os.geteuid() == 0 and all(map(shutil.which, ("conmon", "umoci", "skopeo", "busybox"))) \
        and (shutil.which("crun") or shutil.which("runc"))
