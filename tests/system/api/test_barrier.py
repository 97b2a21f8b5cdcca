"""Tasks that wait for each other: held requests with real containers, a server that is killed meanwhile, tasks that never come.

Covers: src/api/http_door.c
"""
import contextlib
import datetime
import hashlib
import http.server
import io
import json
import os
import re
import signal
import subprocess
import tarfile
import threading
import unittest

import waits
import world

WHY_NOT = world.can_run_containers()
HELD_S = 60  # after which skep-init asks anew (src/init/barrier.c)


class Registry(http.server.ThreadingHTTPServer):
    """One image, `late`, of which nothing is told before `open`: so its task comes when the test says. `gone` is not there."""

    def __init__(self, root):
        super().__init__(("127.0.0.1", 0), Handler)
        layer = io.BytesIO()
        with tarfile.open(fileobj=layer, mode="w") as tar:
            tar.add(root, arcname=".")
        self.blobs = {}
        layer_digest = self.put(layer.getvalue())
        config = {"architecture": "amd64", "os": "linux", "config": {}, "rootfs": {"type": "layers", "diff_ids": [layer_digest]}}
        config_digest = self.put(json.dumps(config).encode())
        kind = "application/vnd.oci.image"
        self.manifest = json.dumps({
            "schemaVersion": 2, "mediaType": f"{kind}.manifest.v1+json",
            "config": {"mediaType": f"{kind}.config.v1+json", "digest": config_digest, "size": len(self.blobs[config_digest])},
            "layers": [{"mediaType": f"{kind}.layer.v1.tar", "digest": layer_digest, "size": len(self.blobs[layer_digest])}],
        }).encode()
        self.open = threading.Event()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def put(self, data):
        digest = "sha256:" + hashlib.sha256(data).hexdigest()
        self.blobs[digest] = data
        return digest


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        path = self.path.rstrip("/")
        if path == "/v2":
            return self.give(b"{}", "application/json")
        self.server.open.wait()
        if path.startswith("/v2/late/manifests/"):
            return self.give(self.server.manifest, "application/vnd.oci.image.manifest.v1+json")
        blob = self.server.blobs.get(path.removeprefix("/v2/late/blobs/"))
        return self.give(blob, "application/octet-stream") if blob else self.send_error(404)

    do_HEAD = do_GET

    def give(self, data, kind):
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.send_header("Docker-Content-Digest", "sha256:" + hashlib.sha256(data).hexdigest())
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(data)

    def log_message(self, *_):
        pass


JOB = """
protocolVersion: 2
name: {name}
type: job
prerequisites:
  - {{name: here, type: dockerimage, uri: "{here}"}}
  - {{name: other, type: dockerimage, uri: "{other}"}}
taskRoles:
  early:
    instances: 2
    dockerImage: here
    completion: {{minFailedInstances: -1, minSucceededInstances: -1}}  # it ends with the last of all
    resourcePerInstance: {{cpu: 1, memoryMB: 64, gpu: 0}}
    commands: ["echo begun"]
  late:
    instances: 1
    dockerImage: other
    completion: {{minFailedInstances: -1, minSucceededInstances: -1}}  # it ends with the last of all
    resourcePerInstance: {{cpu: 1, memoryMB: 64, gpu: 0}}
    commands: ["echo begun"]
extras: {{startBarrier: true, startBarrierTimeout: 30}}
"""
V1 = """
{{ "jobName": "{name}", "image": "{here}",   // early PAI's jobs always waited for each other
  "taskRoles": [{{"name": "worker", "taskNumber": 3, "cpuNumber": 1, "memoryMB": 100, "command": "echo begun"}}] }}
"""


@unittest.skipIf(WHY_NOT, WHY_NOT)
class Barrier(unittest.TestCase):
    def setUp(self):
        self.world = world.World(local=True)
        config = self.world.folder / "skepd.yaml"
        text = re.sub(r"  devices: .*\n", "", config.read_text())  # processors alone
        config.write_text(text.replace("images: {", "images: {pullStallSeconds: 1800, "))  # what the registry keeps back is waited for
        self.world.__enter__()
        self.registry = Registry(self.world.images / "busybox")

    def tearDown(self):
        self.registry.open.set()
        self.world.__exit__()
        self.registry.shutdown()
        self.registry.server_close()

    def submit(self, name, other, text=JOB):
        uri = f"127.0.0.1:{self.registry.server_address[1]}/{other}:1"
        done = self.world.skep("submit", self.world.file(text.format(name=name, here=self.world.image, other=uri)))
        self.assertEqual(done.returncode, 0, done.stderr)

    def held(self):
        return float(re.search(r"^skep_barrier_requests_held (\S+)$", self.world.ask("GET", "/metrics")[2].decode(), re.M)[1])

    def until_held(self, count):
        waits.until(lambda: self.held() == count, lambda: f"{self.held()} requests are held, not {count}")

    def log(self, name, role, index, stream="stdout"):
        done = self.world.skep("logs", name, "--role", role, "--index", index, "--stream", stream)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def passed(self, name, role, index):
        """When the task says that it passed the barrier."""
        found = re.search(r"^(\S+) skep-init: start barrier passed$", self.log(name, role, index, "runtime"), re.M)
        self.assertTrue(found, (role, index))
        return datetime.datetime.fromisoformat(found[1].replace("Z", "+00:00"))

    def test_nobody_begins_before_the_last_has_come(self):
        self.submit("together", "late")
        self.until_held(2)
        self.assertEqual(self.log("together", "early", 0), "")
        # killed and started again: who waits asks the new server
        self.world.stop(signal.SIGKILL)
        self.world.start()
        self.until_held(2)
        self.assertEqual(self.log("together", "early", 1), "")
        self.registry.open.set()
        self.assertEqual(self.world.skep("wait", "-q", "together").returncode, 0, self.world.skep("events", "together").stdout)
        tasks = ("late", 0), ("early", 0), ("early", 1)
        for role, index in tasks:
            self.assertEqual(self.log("together", role, index), "begun\n")
        last, *early = [self.passed("together", role, index) for role, index in tasks]
        self.assertLess((max(early) - last).total_seconds(), HELD_S / 2, "who waits is told, and does not only ask again")
        self.assertEqual(self.held(), 0)

    def test_a_task_that_never_comes(self):
        self.submit("alone", "gone")
        self.until_held(2)
        self.registry.open.set()  # to be told that there is no such image
        self.world.skep("wait", "-q", "alone")
        job = self.world.json("GET", "/api/v2/jobs/admin~alone")[1]
        for task in job["taskRoles"]["early"]["taskStatuses"]:
            self.assertEqual(task["containerExitCode"], 252, task)
            self.assertEqual(task["containerExitSpec"]["phrase"], "FrameworkBarrierPermanentFailed")
            self.assertIn("start barrier: late-0 has ended with code", self.log("alone", "early", task["taskIndex"], "runtime"))
        self.assertEqual(self.log("alone", "early", 0), "")

    def test_a_stopped_job_lets_go(self):
        self.submit("stopped", "late")
        self.until_held(2)
        self.world.skep("stop", "stopped")
        self.registry.open.set()
        self.assertEqual(self.world.skep("wait", "-q", "stopped").returncode, 130)
        self.assertEqual(self.held(), 0)
        self.assertEqual(self.log("stopped", "early", 0), "")

    def test_tasks_of_early_jobs_wait_for_each_other(self):
        self.submit("early-pai", "", text=V1)
        self.assertEqual(self.world.skep("wait", "-q", "early-pai").returncode, 0)
        for index in range(3):
            self.assertIn("start barrier passed", self.log("early-pai", "worker", index, "runtime"))

    def test_only_the_task_has_its_token(self):
        self.submit("secret", "late")
        self.until_held(2)
        job = self.world.json("GET", "/api/v2/jobs/admin~secret")[1]
        path = "/api/internal/attempts/1/barriers/start"
        self.assertEqual(self.world.ask("POST", path)[0], 401, "an admin is no task")
        self.assertEqual(self.world.ask("POST", path, token=False)[0], 401)
        self.assertNotIn("barriers", json.dumps(job))
        # not on the disk; and nobody but root reads what is in memory
        search = ["grep", "-rlas", "/skep/door/api:/api/internal/attempts/1/barriers/"]
        self.assertEqual(subprocess.run([*search, self.world.folder], capture_output=True, text=True).stdout, "")
        holders = subprocess.run([*search, "/run/skep"], capture_output=True, text=True).stdout.split()
        modes = set()
        for path in holders:
            with contextlib.suppress(FileNotFoundError):  # of another server's task, which has ended
                modes.add(os.stat(path).st_mode & 0o777)
        self.assertEqual(modes, {0o400})


if __name__ == "__main__":
    world.main()
