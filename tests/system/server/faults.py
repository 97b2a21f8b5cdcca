#!/usr/bin/env python3
"""What skepd does when things go wrong around it: usage: faults.py SKEPD

A full disk, a second process, damaged and foreign databases, an open key, wrong configurations,
reloads, and ends by SIGTERM with requests under way.

Covers: src/server/main.c
"""

import contextlib
import http.client
import os
import pathlib
import re
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time

from skepd import Refused, Skepd, busybox_image, can_run_containers, job_file
from ending import END_S  # behind skepd, which makes it known where this is
from waits import PATIENCE_S, ended, file_says, until

FAKE = {"engine": {"kind": "fake", "fake": {"nodes": 1, "cpu": 64, "runMilliseconds": 100}}}
LOG = "/api/v2/jobs/admin~runs/attempts/0/taskRoles/worker/taskIndex/{}/attempts/0/logs/stdout"
ONE = {"worker": (1, "true", {"minFailedInstances": 1, "minSucceededInstances": 1})}


@contextlib.contextmanager
def running(program, config=None, directory=None):
    server = Skepd(program, config or FAKE, directory)
    server.start()
    server.login()
    try:
        yield server
    except BaseException:
        print(server.tail())
        raise
    finally:
        if server.process.poll() is None:
            server.kill()
        server.remove()


def start_fails(server, status, *words):
    """A start that must end with `status` and say all of `words`."""
    before = (server.directory / "log").stat().st_size
    server.start(wait=False)
    assert server.process.wait(PATIENCE_S) == status, f"{server.process.returncode}\n{server.tail()}"
    said = (server.directory / "log").read_text()[before:]
    for word in words:
        assert word in said, f"{word!r} is not in: {said}"


def second_process_is_refused(program):
    with running(program) as server:
        other = subprocess.run([program, "--config", server.config_path, "--listen", "127.0.0.1:0"],
                               capture_output=True, text=True, timeout=PATIENCE_S)
        assert other.returncode == 4, other
        assert "in use by another skepd" in other.stderr and str(server.process.pid) in other.stderr, other
        server.submit(job_file("after", ONE))
        assert server.wait_final(["admin~after"])["admin~after"] == "SUCCEEDED"


def fill(server):
    """Take all room of the data's file system, at one instant for skepd: what it gives up when it notices stays its own."""
    server.process.send_signal(signal.SIGSTOP)
    try:
        assert os.WIFSTOPPED(os.waitpid(server.process.pid, os.WUNTRACED)[1]), "skepd has ended"
        with open(server.data / "filler", "wb") as file:
            size = 1 << 20
            while size >= 512:
                try:
                    os.write(file.fileno(), b"\0" * size)
                except OSError:
                    size //= 2
    finally:
        server.process.send_signal(signal.SIGCONT)


def full_disk_refuses_writes_and_hurts_no_job(program):
    if os.geteuid() != 0:
        print("  skipped: needs root to mount a small file system")
        return
    with tempfile.TemporaryDirectory(prefix="skepd-full-") as directory:
        data = pathlib.Path(directory) / "data"
        data.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m", "skepd-test", data], check=True)
        try:
            # the disk is full before the container ends, unless the machine is very slow
            config = {"log": {"level": "debug"},
                      "engine": {"kind": "fake", "fake": {"nodes": 1, "cpu": 64, "runMilliseconds": 15000}}}
            with running(program, config, directory) as server:
                full_disk(server, data, lambda: None)
                assert server.stop() == 0
        finally:
            subprocess.run(["umount", "-l", data], check=True)


def full_disk_hurts_no_container(program):
    if not can_run_containers():
        print("  skipped: needs root and the container tools")
        return
    with tempfile.TemporaryDirectory(prefix="skepd-full-") as directory:
        data = pathlib.Path(directory) / "data"
        data.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=48m", "skepd-test", data], check=True)
        image = busybox_image(directory)
        # waits to be told by a pipe to go on
        commands = {"runs": "mkfifo /tmp/go; echo ready; read go </tmp/go; echo whole"}

        def make(name):
            role = (2, commands.get(name, "echo whole"), {"minFailedInstances": 1, "minSucceededInstances": 2})
            return job_file(name, {"worker": role}, image)

        config = {"engine": {"kind": "local", "diskReserveMB": 1, "images": {"localRoots": [directory]}}}
        try:
            with running(program, config, directory) as server:
                full_disk(server, data, lambda: containers_end(data), make, "ready")
                log = server.call("GET", LOG.format(0))
                assert log in ("ready\nwhole\n", "ready\n"), log  # a log on a full disk may be cut, the task is not
                assert server.stop() == 0
        finally:
            subprocess.run(["umount", "-l", data], check=True)


def init_pid(config):
    """The first process of the container that is made by this file."""
    return int((config.parent / "init.pid").read_text())


def containers_end(data):
    """All containers of this data directory that wait are told to go on, and end with their first processes."""
    pids = []
    for config in pathlib.Path("/run/skep").glob("*/tasks/*/config.json"):
        with contextlib.suppress(OSError):  # of one that ends, another server's mostly
            if str(data) in config.read_text() and pathlib.Path(f"/proc/{init_pid(config)}/root/tmp/go").is_fifo():
                pids.append(init_pid(config))
    assert len(pids) == 2, f"these containers run: {pids}"
    for pid in pids:
        with open(f"/proc/{pid}/root/tmp/go", "w") as pipe:
            pipe.write("on\n")
    assert not ended(pids, PATIENCE_S), "a container did not end"


def full_disk(server, data, await_end, make=lambda name: job_file(name, ONE), first_line=None):
    server.submit(make("runs"))
    # those without containers end by themselves, on a slow machine before anybody has seen them run
    until(lambda: all(task["taskState"] in ("RUNNING", "SUCCEEDED")
                      for task in server.job("admin~runs")["taskRoles"]["worker"]["taskStatuses"]), server.tail)
    for index in range(2 if first_line else 0):
        with server.stream(LOG.format(index) + "?follow=true") as log:
            assert log.readline().decode() == first_line + "\n"
    fill(server)
    refused = 0
    for number in range(50):
        try:
            server.submit(make(f"during{number}"))
        except Refused as error:
            assert error.status == 503 and "disk" in error.body and "full" in error.body, error
            refused += 1
            break
    assert refused, "a full disk took everything"
    # the log has space of its own
    assert "the disk is full" in (server.data / "log/skepd.log").read_text(), "what happened on the full disk is not in the log"
    taken = {job["name"] for job in server.jobs()}
    assert f"during{number}" not in taken, "refused and taken"
    try:
        server.call("GET", "/readyz?verbose", token=None)
        raise AssertionError("ready with a full disk")
    except Refused as error:
        assert "full" in error.body, error
    assert server.call("GET", "/livez", token=None)
    assert server.job("admin~runs")["jobStatus"]["state"] in (("RUNNING",) if first_line else ("RUNNING", "SUCCEEDED"))
    await_end()  # its containers end on the full disk, for whose ends there is a reserve
    assert server.wait_final(["admin~runs"])["admin~runs"] == "SUCCEEDED"
    os.unlink(data / "filler")
    server.wait_ready()
    server.submit(make(f"during{number}"))
    server.wait_final([f"admin~{name}" for name in taken] + [f"admin~during{number}"])


def full_disk_lets_jobs_be_stopped(program):
    """On a full disk jobs are stopped and removed, and the server starts again, however it ended."""
    if os.geteuid() != 0:
        print("  skipped: needs root to mount a small file system")
        return
    with tempfile.TemporaryDirectory(prefix="skepd-full-") as directory:
        data = pathlib.Path(directory) / "data"
        data.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m", "skepd-test", data], check=True)
        config = {"engine": {"kind": "fake", "fake": {"nodes": 1, "cpu": 64, "runMilliseconds": 600000}}}
        try:
            with running(program, config, directory) as server:
                jobs_are_stopped_on_a_full_disk(server, data)
                assert server.stop() == 0
        finally:
            subprocess.run(["umount", "-l", data], check=True)


def submit_until_refused(server, name):
    for number in range(50):
        try:
            server.submit(job_file(f"{name}{number}", ONE))
        except Refused as error:
            assert error.status == 503 and "full" in error.body, error
            return
    raise AssertionError("a full disk took everything")


def jobs_are_stopped_on_a_full_disk(server, data):
    for number in range(4):
        server.submit(job_file(f"runs{number}", ONE))
    assert (data / "reserve").exists()
    fill(server)
    submit_until_refused(server, "fills")
    assert not (data / "reserve").exists()
    server.act("admin~runs0", "STOP")
    server.wait_final(["admin~runs0"])
    server.call("DELETE", "/api/v2/jobs/admin~runs0")
    assert server.stop() == 0
    server.start()
    submit_until_refused(server, "again")
    server.act("admin~runs1", "STOP")
    server.kill()
    server.start()
    server.wait_final(["admin~runs1"])
    server.act("admin~runs2", "STOP")
    server.wait_final(["admin~runs2"])
    os.unlink(data / "filler")
    server.wait_ready()
    assert (data / "reserve").exists()
    server.submit(job_file("after", ONE))


def damaged_databases_are_told(program):
    with running(program) as server:
        for number in range(20):
            server.submit(job_file(f"job{number}", ONE))
        server.wait_final([f"admin~job{number}" for number in range(20)])
        assert server.stop() == 0
        check = [program, "--config", server.config_path, "--check"]
        assert subprocess.run(check, capture_output=True).returncode == 0
        nowhere = server.data / "nowhere"  # before the first start
        done = subprocess.run([*check, "--data", nowhere], capture_output=True, text=True)
        assert done.returncode == 0 and "no database yet" in done.stderr and not nowhere.exists(), done
        path = server.data / "skep.db"
        whole = path.read_bytes()

        path.write_bytes(b"this is no database" + whole[19:])
        start_fails(server, 5, "damaged or not a database", "skep.db")
        middle = len(whole) // 2 // 4096 * 4096
        path.write_bytes(whole[:middle] + b"\x5a" * (3 * 4096) + whole[middle + 3 * 4096:])
        done = subprocess.run(check, capture_output=True, text=True)
        assert done.returncode == 5 and "damaged" in done.stderr, done
        path.write_bytes(whole)
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as database:
            database.execute("PRAGMA user_version = 1000")
        start_fails(server, 5, "newer skepd", "1000")
        path.write_bytes(whole)
        os.chmod(server.data / "key", 0o644)
        start_fails(server, 1, "can be read by others")
        os.chmod(server.data / "key", 0o600)
        server.start()
        assert len(server.jobs()) == 20


def configurations_are_checked_and_reloaded(program):
    with running(program, FAKE | {"log": {"level": "info"}}) as server:
        server.write_config(FAKE | {"log": {"level": "debug"}, "scheduling": {"portFirsd": 1}})
        server.process.send_signal(signal.SIGHUP)
        wait_for_line(server, "did you mean portFirst?")
        wait_for_line(server, "the configuration stays as it was")
        server.write_config(FAKE | {"log": {"level": "debug"}, "api": {"threads": 3}})
        server.process.send_signal(signal.SIGHUP)
        wait_for_line(server, "takes effect only after a restart: api.threads")
        server.submit(job_file("after", ONE))
        server.wait_final(["admin~after"])
        wait_for_line(server, '"level":"debug"')
        assert server.stop() == 0
        server.write_config({"engine": {"kind": "fake", "fake": {"nodes": 0}}})
        start_fails(server, 3, "engine.fake.nodes", "skepd.yaml:1:")
        unknown = subprocess.run([program, "--nonsense"], capture_output=True, text=True)
        assert unknown.returncode == 2 and "usage:" in unknown.stderr, unknown


def wait_for_line(server, words):
    file_says(server.directory / "log", re.escape(words))


def end_answers_what_was_taken(program):
    with running(program) as server:
        accepted, is_taken = [], threading.Condition()

        def submit(name):
            try:
                server.submit(job_file(name, ONE))
                with is_taken:
                    accepted.append(f"admin~{name}")
                    is_taken.notify_all()
            except (Refused, OSError, http.client.HTTPException):
                pass

        threads = [threading.Thread(target=submit, args=(f"job{i}",)) for i in range(60)]
        for number, thread in enumerate(threads):
            thread.start()
            if number == 30:
                with is_taken:
                    assert is_taken.wait_for(lambda: accepted, PATIENCE_S), server.tail()
                server.process.send_signal(signal.SIGTERM)
        for thread in threads:
            thread.join()
        assert server.process.wait(END_S) == 0
        server.start()
        server.wait_final(accepted)


def main():
    program = sys.argv[1]
    tests = (second_process_is_refused, full_disk_refuses_writes_and_hurts_no_job,
             full_disk_hurts_no_container, full_disk_lets_jobs_be_stopped,
             damaged_databases_are_told, configurations_are_checked_and_reloaded,
             end_answers_what_was_taken)
    for test in tests:
        if len(sys.argv) > 2 and test.__name__ not in sys.argv[2:]:
            continue
        begin = time.monotonic()
        test(program)
        print(f"{test.__name__}: {time.monotonic() - begin:.1f} s", flush=True)


if __name__ == "__main__":
    main()
