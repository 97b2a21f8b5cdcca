#!/usr/bin/env python3
"""Run every job of a folder through the real skepd and skep, and compare with its `expected` file.

usage: examples.py SKEPD SKEP SOURCE-ROOT FOLDER [NAME…]        FOLDER: `examples`, or one of tests

Lines of `expected`:
    state STATE, code N, retries N
    log ROLE INDEX REGULAR-EXPRESSION      is in the task's log
    stop ROLE INDEX REGULAR-EXPRESSION     stop the job as soon as the log has it
    gone TEXT                              after the end no process of this machine has it in its command line; in it and in the job
                                           file, OWN-NUMBER stands for digits that no other run of this program has
SKEP_TEST_NETWORK: `private` gives each job a network of its own; `host`, the default, does not.
SKEP_TEST_USERS: mode of `engine.userNamespaces`: `auto`, the default, `required` or `off`.
Needs root and the Debian mirror (images/build) unless the images are there: SKEP_TEST_IMAGES names a folder to keep
them in. Exit 77 (skip) with a reason when the machine cannot do it.
"""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from readiness import Readiness  # noqa: E402
from task_ports import server_port, task_ports  # noqa: E402
from waits import PATIENCE_S  # noqa: E402

SKIP = 77
JOB_S = 3 * PATIENCE_S  # some start several tasks, which begin with large programs or wait for each other


class Client:
    """`skep` as a user of one server calls it."""

    def __init__(self, skep, environment):
        self.skep, self.environment = skep, environment

    def run(self, *arguments, stdin="", limit=PATIENCE_S):
        done = subprocess.run([self.skep, *arguments], input=stdin, text=True, capture_output=True,
                              env=self.environment, timeout=limit)
        return done.returncode, done.stdout, done.stderr


class Server(Client):
    """One skepd on a data directory of its own; ended by its own pid."""

    def __init__(self, skepd, skep, directory, images):
        self.directory = directory
        self.port = server_port()
        config = directory / "skepd.yaml"
        # four processors whatever the machine has: the examples' tasks take turns on fewer
        ports = "portFirst: %d, portLast: %d" % task_ports()
        network, users = os.environ.get("SKEP_TEST_NETWORK", "host"), os.environ.get("SKEP_TEST_USERS", "auto")
        config.write_text(f"scheduling: {{{ports}}}\nengine:\n  kind: local\n  network: {{mode: {network}}}\n"
                          f"  userNamespaces: {{mode: {users}}}\n  cpu: 4\n  images:\n    localRoots: [{images}]\n")
        super().__init__(skep, dict(os.environ, HOME=str(directory), SKEP_SERVER=f"http://127.0.0.1:{self.port}"))
        self.log = open(directory / "skepd.log", "wb")
        self.readiness = Readiness()
        self.process = subprocess.Popen(
            [skepd, "--config", config, "--data", directory / "data", "--listen", f"127.0.0.1:{self.port}",
             "--password-file", directory / "password"], stdout=self.log, stderr=self.log,
            env=self.readiness.environment)

    def wait_ready(self):
        if self.readiness.wait(self.process, PATIENCE_S):
            code, _, complaint = self.run("login", "-u", "admin", "--password-stdin",
                                          stdin=(self.directory / "password").read_text())
            if code == 0:
                return
            raise RuntimeError(f"no login: {complaint}\n{self.text()}")
        raise RuntimeError("skepd did not get ready: " + self.text())

    def end_jobs(self):
        """Nothing shall go on running, nor keep its ports, when the server has ended; what stood there."""
        _, names, _ = self.run("list", "-q")
        for name in names.split():
            if self.run("stop", name)[0] == 0:
                yield self.run("describe", "--attempts", name)[1] + self.run("logs", name)[1]
                self.run("wait", name)

    def text(self):
        return (self.directory / "skepd.log").read_text(errors="replace")

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(timeout=PATIENCE_S)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.log.close()
        self.readiness.close()


def own(path):
    """The text of a file of an example, with this run's own number."""
    return path.read_text().replace("OWN-NUMBER", f"{os.getpid():07}")


def check(server, example):
    """Submit, wait, compare: a list of what is wrong."""
    wrong, job = [], next(path for path in sorted(example.iterdir()) if path.name in ("job.yaml", "job.json"))
    code, out, err = server.run("submit", "--quiet", "-", stdin=own(job))
    if code != 0:
        return [f"submit ended with {code}: {err.strip()}"]
    name = out.strip()
    for role, index, pattern in directives(example, "stop"):
        wrong += stop_when(server, name, role, index, pattern)
    server.run("wait", name, limit=JOB_S)
    code, out, err = server.run("describe", "--output", "json", name)
    if code != 0:
        return [f"describe ended with {code}: {err.strip()}"]
    status = json.loads(out)["jobStatus"]
    for line in own(example / "expected").splitlines():
        key, _, rest = line.partition(" ")
        if key == "state" and status["state"] != rest:
            wrong.append(f"state is {status['state']}, wanted {rest}: {status.get('appExitTriggerMessage')}")
        elif key == "code" and status["appExitCode"] != int(rest):
            wrong.append(f"code is {status['appExitCode']}, wanted {rest}")
        elif key == "retries" and status["retries"] != int(rest):
            wrong.append(f"retries are {status['retries']}, wanted {rest}")
        elif key == "log":
            role, index, pattern = rest.split(" ", 2)
            _, text, _ = server.run("logs", "--role", role, "--index", index, name)
            if not re.search(pattern, text, re.MULTILINE):
                wrong.append(f"log of {role}-{index} does not have {pattern}:\n{text}")
        elif key == "gone" and (left := list(processes_with(rest))):
            wrong.append(f"processes {' '.join(left)} with \"{rest}\" are left")
    return wrong


def directives(example, key):
    for line in (example / "expected").read_text().splitlines():
        word, _, rest = line.partition(" ")
        if word == key:
            yield rest.split(" ", 2)


def stop_when(server, name, role, index, pattern):
    """Follow the log until it has the pattern, then stop the job."""
    follower = subprocess.Popen([server.skep, "logs", "--follow", "--role", role, "--index", index, name], text=True,
                                stdout=subprocess.PIPE, env=server.environment)
    timer = threading.Timer(JOB_S, follower.kill)
    timer.start()
    found = any(re.search(pattern, line) for line in follower.stdout)
    timer.cancel()
    follower.kill()
    follower.wait()
    code, _, err = server.run("stop", name)
    return ([] if found else [f"log of {role}-{index} never had {pattern}"]) + ([] if code == 0 else [f"stop: {err}"])


def processes_with(text):
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if text.encode() in path.read_bytes() and int(path.parent.name) != os.getpid():
                yield path.parent.name
        except OSError:
            continue


def images_build(root, images, names):
    done = subprocess.run([root / "images/build", "--directory", images, *names], stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        print("skip: images/build failed (no Debian mirror within reach?)")
        sys.exit(SKIP)


def main():
    skepd, skep, root = (pathlib.Path(argument).resolve() for argument in sys.argv[1:4])
    if os.getuid() != 0:
        print("skip: containers and images need root")
        sys.exit(SKIP)
    if not shutil.which("mmdebstrap"):
        print("skip: mmdebstrap is not installed (tools/install-deps)")
        sys.exit(SKIP)
    examples = sorted(path.parent for path in root.glob(sys.argv[4] + "/*/expected")
                      if not sys.argv[5:] or path.parent.name in sys.argv[5:])
    needed = sorted({word for example in examples for job in example.glob("job.*")
                     for word in re.findall(r"skep/([a-z]+)", job.read_text()) if (root / "images" / word).is_dir()})
    failed = 0
    with tempfile.TemporaryDirectory(prefix="skep-examples-") as folder:
        directory = pathlib.Path(folder)
        images = pathlib.Path(os.environ.get("SKEP_TEST_IMAGES", directory / "images"))
        images_build(root, images, needed)
        server = Server(skepd, skep, directory, images)
        try:
            server.wait_ready()
            for example in examples:
                begun = time.monotonic()
                try:
                    wrong = check(server, example)
                except subprocess.TimeoutExpired as late:
                    wrong = [str(late), *server.end_jobs()]
                print(f"{'FAIL' if wrong else 'ok'} {example.name} ({time.monotonic() - begun:.1f} s)")
                for line in wrong:
                    print("    " + line.replace("\n", "\n    "))
                failed += bool(wrong)
            if server.process.poll() is not None:
                print("FAIL skepd ended by itself: " + server.text())
                failed += 1
        finally:
            server.stop()
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
