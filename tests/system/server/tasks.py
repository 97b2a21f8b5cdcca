"""What tasks and their readers must not take from the machine, on a whole server: tasks.py SKEPD"""
import contextlib
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import unittest

import skepd as server
import waits

SKEPD = sys.argv.pop(1) if __name__ == "__main__" else ""
FOLLOWERS = 500
SECRET = f"correct-horse-battery-staple-{os.getpid()}"  # others look for theirs at the same time


def inotify_instances(pid):
    count = 0
    for entry in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):  # closed meanwhile
            count += "inotify" in os.readlink(entry)
    return count


def places_of(text, *folders):
    """The files below these folders that hold the text."""
    found = subprocess.run(["grep", "-rlF", text, *map(str, folders)], capture_output=True, text=True, check=False)
    return found.stdout.split()


class Tasks(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="skepd-test-")
        config = {"engine": {"kind": "local", "cpu": 8, "memoryMB": 4096, "images": {"localRoots": [cls.folder.name]}}}
        cls.skepd = server.Skepd(SKEPD, config, cls.folder.name)
        cls.image = server.busybox_image(cls.skepd.directory)
        cls.skepd.start()
        cls.skepd.login()

    @classmethod
    def tearDownClass(cls):
        cls.skepd.stop()
        cls.skepd.remove()
        cls.folder.cleanup()

    def begin(self, name, instances, command, **extra):
        self.skepd.submit(server.job_file(name, {"main": (instances, command, {})}, self.image, extra))
        waits.until(lambda: self.skepd.job(f"admin~{name}")["jobStatus"]["state"] == "RUNNING", f"{name} runs")

    def end(self, name):
        self.skepd.act(f"admin~{name}", "STOP")
        self.skepd.wait_final([f"admin~{name}"])

    def follow(self, job, index):
        """A connection that follows, with what has come so far."""
        reader = socket.create_connection(("127.0.0.1", self.skepd.port), timeout=60)
        reader.sendall(f"GET /api/v2/jobs/{job}/logs?follow=true&stream=stdout&index={index} HTTP/1.1\r\n"
                       f"Host: here\r\nAuthorization: Bearer {self.skepd.token}\r\n\r\n".encode())
        return reader

    def read_until(self, reader, words):
        text = b""
        while words not in text:
            part = reader.recv(65536)
            self.assertTrue(part, text)
            text += part

    def test_followers_share_one_instance(self):
        self.begin("crowd", 4, "echo first; while [ ! -e /skep/run/go ]; do sleep 0.1; done; echo second; sleep 1000")
        before = inotify_instances(self.skepd.process.pid)
        readers = [self.follow("admin~crowd", at % 4) for at in range(FOLLOWERS)]
        for reader in readers:
            self.read_until(reader, b"first")
        self.assertLessEqual(inotify_instances(self.skepd.process.pid), before)
        self.assertLessEqual(before, 2)
        for run in (self.skepd.data / "engine/containers").glob("*/run"):
            (run / "go").touch()
        for reader in readers:
            self.read_until(reader, b"second")
            reader.close()
        self.end("crowd")

    def test_secret_is_nowhere_on_disk(self):
        self.begin("secretive", 1, "test -n '<% $secrets.word %>' && echo ready && sleep 1000", secrets={"word": SECRET})
        with self.skepd.stream("/api/v2/jobs/admin~secretive/logs?follow=true") as log:
            self.assertIn(b"ready", log.readline())
        self.assertEqual(places_of(SECRET, self.skepd.data), [])
        self.skepd.stop()
        self.skepd.start()
        self.assertEqual(places_of(SECRET, self.skepd.data), [])
        in_memory = places_of(SECRET, "/run/skep")
        self.assertEqual([path for path in in_memory if not path.endswith("/skep/task")], [])
        self.end("secretive")
        self.assertEqual(places_of(SECRET, self.skepd.data, "/run/skep", self.skepd.directory / "log"), [])


if __name__ == "__main__":
    if not server.can_run_containers():
        print("skipped: containers cannot be run here")
        sys.exit(77)
    unittest.main(verbosity=2)
