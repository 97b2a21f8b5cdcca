"""Processes of containers, seen from the machine."""
import contextlib
import glob
import os
import pathlib
import re
import subprocess
import threading

from waits import PATIENCE_S

SKEP = os.environ["SKEP"]


def find(word):
    """The one process on this machine whose command line ends with that word."""
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if path.read_bytes().split(b"\0")[-2:-1] == [word.encode()]:
                return int(path.parent.name)
        except OSError:
            pass
    raise AssertionError(f"there is no process {word}")


def task_folder(server, attempt="*"):
    """The folder in the run directory of a task of the server that has the folder `server`: of that attempt, or of any."""
    for path in map(pathlib.Path, glob.glob(f"/run/skep/*/tasks/{attempt}/config.json")):
        with contextlib.suppress(FileNotFoundError):  # another server's task, which has ended meanwhile
            if str(server) in path.read_text():
                return path.parent
    raise AssertionError(f"there is no task {attempt} of the server of {server} in /run/skep")


def parent(pid):
    return int(pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


MONITORS = ("conmon\n", "containerd-shim\n")  # the kernel keeps fifteen letters of a name


def monitor(pid):
    """The first process of the container that `pid` is in, and the conmon or containerd's shim above it."""
    while True:
        above = parent(pid)
        assert above > 1, "it is in no container"
        if pathlib.Path(f"/proc/{above}/comm").read_text() in MONITORS:
            return pid, above
        pid = above


def follow(world, *words):
    """A `skep` that goes on, about the job that its last word names: a context manager that ends it."""
    process = subprocess.Popen([SKEP, *words], env=world.environment(), stdout=subprocess.PIPE, text=True)
    process.explain = lambda: world.explain(words[-1])
    return process


def until(process, pattern, count=1):
    """What a followed `skep` says up to its line number `count` that matches; PATIENCE_S at most."""
    lines = []
    is_late = threading.Event()
    limit = threading.Timer(PATIENCE_S, lambda: (is_late.set(), process.terminate()))
    limit.start()
    try:
        for line in process.stdout:
            lines.append(line)
            count -= bool(re.search(pattern, line))
            if not count:
                process.terminate()
                return "".join(lines)
    finally:
        limit.cancel()
    missing = f"it said no {pattern} within {PATIENCE_S} s" if is_late.is_set() else f"it ended without {pattern}"
    raise AssertionError(f"{missing}:\n{''.join(lines)}\n{process.explain()}")
