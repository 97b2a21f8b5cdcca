#!/usr/bin/env python3
"""Backups of a skepd at work, restores, and losses that a start must tell: usage: backup.py SKEPD"""

import contextlib
import http.client
import sqlite3
import subprocess
import sys
import threading
import time

from faults import FAKE, ONE, running, start_fails
from skepd import Refused, job_file


class Load:
    """Clients that submit jobs one after the other; knows what was answered, and when."""

    def __init__(self, server, clients=4):
        self.server, self.lock, self.accepted, self.is_ending = server, threading.Lock(), [], False
        self.enough = threading.Condition(self.lock)
        self.threads = [threading.Thread(target=self.run, args=(number,)) for number in range(clients)]

    def run(self, client):
        number = 0
        while not self.is_ending:
            name = f"load{client}-{number}"
            number += 1
            try:
                self.server.submit(job_file(name, ONE))
            except (Refused, OSError, http.client.HTTPException):
                continue
            with self.enough:
                self.accepted.append(f"admin~{name}")
                self.enough.notify_all()

    def wait(self, more):
        """Until so many more have been accepted."""
        with self.enough:
            wanted = len(self.accepted) + more
            assert self.enough.wait_for(lambda: len(self.accepted) >= wanted, 60), "nothing is accepted any more"

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *error):
        self.is_ending = True
        for thread in self.threads:
            thread.join()


def skepd(server, *arguments):
    return subprocess.run([server.program, "--config", server.config_path, *arguments],
                          capture_output=True, text=True, timeout=120)


def rows(server, text):
    with contextlib.closing(sqlite3.connect(server.data / "skep.db")) as database:
        return database.execute(text).fetchall()


def a_backup_under_load_is_restored_whole(program):
    with running(program, FAKE) as server, contextlib.ExitStack() as stack:
        server.submit(job_file("first", ONE))
        server.wait_final(["admin~first"])
        reader = stack.enter_context(contextlib.closing(sqlite3.connect(server.data / "skep.db", isolation_level=None)))
        reader.execute("BEGIN")  # somebody's open shell
        reader.execute("SELECT count(*) FROM jobs").fetchall()
        with Load(server) as load:
            for number in range(3):
                load.wait(30)
                before = list(load.accepted)
                made = skepd(server, "--backup", server.directory / f"copy{number}")
                assert made.returncode == 0, made
            load.wait(30)
            assert skepd(server, "--backup", server.directory / "copy2").returncode == 4  # exists
            assert skepd(server, "--restore", server.directory / "copy2", "--replace").returncode == 4  # at work
            server.kill()
        reader.close()
        last = max(attempt for (attempt,) in rows(server, "SELECT attempt FROM task_attempts"))
        assert skepd(server, "--restore", server.directory / "copy2").returncode == 4
        done = skepd(server, "--restore", server.directory / "copy2", "--replace")
        assert done.returncode == 0, done
        server.start()
        states = server.wait_final(["admin~first", *before])
        assert {states[name] for name in ("admin~first", *before)} == {"SUCCEEDED"}, states
        for name in before:  # with its history
            job = server.job(name)
            task = job["taskRoles"]["worker"]["taskStatuses"][0]
            assert job["jobStatus"]["createdTime"] and task["containerExitCode"] == 0, job
        server.submit(job_file("after", ONE))
        server.wait_final(["admin~after"])
        assert server.stop() == 0
        ((job, attempt),) = rows(server, "SELECT t.job, t.attempt FROM task_attempts t JOIN jobs j ON j.id = t.job "
                                 "WHERE j.name = 'after'")
        assert job > 1000000 and attempt > max(last, 1000000000), (job, attempt, last)
        audit = skepd(server, "--audit")
        assert audit.returncode == 0, audit
        assert len(list(server.data.glob("replaced-*/skep.db"))) == 1


def a_lost_log_is_told_and_accepted_by_hand(program):
    with running(program, FAKE) as server:
        server.submit(job_file("kept", ONE))
        server.wait_final(["admin~kept"])
        assert server.stop() == 0  # into the database
        server.start()
        for number in range(5):
            server.submit(job_file(f"lost{number}", ONE))
        server.kill()
        log = server.data / "skep.db-wal"
        whole = log.read_bytes()
        log.write_bytes(whole[:len(whole) // 3] + b"\x5a" * 100 + whole[len(whole) // 3 + 100:])
        start_fails(server, 5, "lacks its last", "--accept-loss")
        check = skepd(server, "--check")
        assert check.returncode == 5 and "lacks its last" in check.stderr, check
        server.start(arguments=["--accept-loss"])
        assert server.job("admin~kept")["jobStatus"]["state"] == "SUCCEEDED"
        server.submit(job_file("after", ONE))
        server.wait_final(["admin~after"])
        assert server.stop() == 0
        assert rows(server, "SELECT min(id) > 1000000 FROM jobs WHERE name = 'after'") == [(1,)]
        server.start()  # and nothing is refused any more
        assert server.stop() == 0


def main():
    program = sys.argv[1]
    for test in (a_backup_under_load_is_restored_whole, a_lost_log_is_told_and_accepted_by_hand):
        if len(sys.argv) > 2 and test.__name__ not in sys.argv[2:]:
            continue
        begin = time.monotonic()
        test(program)
        print(f"{test.__name__}: {time.monotonic() - begin:.1f} s", flush=True)


if __name__ == "__main__":
    main()
