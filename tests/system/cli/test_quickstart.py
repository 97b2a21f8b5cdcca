"""The README's first command, without the training: from the sources to a job's output, again, and the end."""
import os
import pathlib
import shutil
import socket
import subprocess
import tempfile
import unittest
import urllib.request

import world
from task_ports import server_port

SOURCES = pathlib.Path(__file__).resolve().parents[3]
WHY_NOT = world.can_run_containers()


@unittest.skipIf(WHY_NOT, WHY_NOT)
class QuickStart(unittest.TestCase):
    def setUp(self):
        self.home = pathlib.Path(tempfile.mkdtemp(prefix="quickstart-test-"))
        self.addCleanup(shutil.rmtree, self.home)
        self.data = self.home / "data"
        self.address = f"127.0.0.1:{server_port()}"
        self.addCleanup(self.type, "--stop")

    def type(self, *words):
        environment = {name: value for name, value in os.environ.items() if not name.startswith("SKEP")}
        return subprocess.run([SOURCES / "tools/quickstart", *words, "--data", self.data], env=environment | {"HOME": str(self.home)},
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)

    def ok(self, *words):
        done = self.type(*words)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def test_from_the_sources_to_a_result(self):
        first = self.ok("--no-train", "--listen", self.address)
        self.assertIn("skepd runs, process ", first)
        self.assertIn("\nHello from main-0 of job admin~hello-", first)
        self.assertIn(f"http://{self.address} ", first)
        self.assertIn(f"tools/quickstart --stop --data {self.data}\n", first)
        with urllib.request.urlopen(f"http://{self.address}/readyz") as answer:
            self.assertEqual(answer.status, 200)
        again = self.ok("--no-train", "--listen", self.address)
        self.assertIn("skepd runs already, process ", again)
        self.assertIn("\nHello from main-0 of job admin~hello-", again)
        self.assertIn("quickstart: stopped (skepd, process ", self.ok("--stop"))
        self.assertIn(f"no skepd of {self.data} runs", self.ok("--stop"))
        with self.assertRaises(OSError):
            urllib.request.urlopen(f"http://{self.address}/readyz")

    def test_another_server_has_the_address(self):
        with socket.create_server(("127.0.0.1", 0)) as other:
            done = self.type("--no-train", "--listen", f"127.0.0.1:{other.getsockname()[1]}")
        self.assertEqual(done.returncode, 1)
        self.assertIn("skepd did not start", done.stderr)
        self.assertIn("ddress already in use", done.stderr)

    def test_words_that_it_does_not_know(self):
        self.assertIn("usage: tools/quickstart", self.ok("--help"))
        done = self.type("--fast")
        self.assertEqual(done.returncode, 2)
        self.assertIn("usage: tools/quickstart", done.stderr)


if __name__ == "__main__":
    unittest.main()
