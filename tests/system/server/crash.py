#!/usr/bin/env python3
"""Kill skepd with SIGKILL at random points, hundreds of times, while jobs start, run, fail, stop.

usage: crash.py SKEPD --engine fake|local [--store sqlite|postgres] [--kills N] [--seed S]

With --store postgres the database is a PostgreSQL of our own, which is restarted meanwhile as well: ended in order, or as by
a crash, under a skepd that is at work.

Checked while it goes on: no task has two attempts running at the same time. Checked at the end: no
accepted job is lost, every job reaches a final state, an accepted stop has ended its job, no
container is left over, no port was given to two attempts at the same time. Prints its seed.
"""

import argparse
import collections
import contextlib
import http.client
import os
import pathlib
import random
import signal
import sqlite3
import struct
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "common"))
from postgres import Postgres, programs as postgres_programs  # noqa: E402
from skepd import Refused, Skepd, busybox_image, can_run_containers, job_file  # noqa: E402
from waits import PATIENCE_S, emptied, ended  # noqa: E402

SKIP = 77


class Load(threading.Thread):
    """Submits and stops jobs for as long as it may; remembers what was accepted."""

    def __init__(self, server, image, seed):
        super().__init__(daemon=True)
        self.server, self.image, self.random = server, image, random.Random(seed)
        self.accepted, self.stopped, self.number = [], set(), 0
        self.is_over = threading.Event()
        self.is_up = threading.Event()  # a server listens, as far as is known
        self.wrong = None

    def make(self, name):
        roll = self.random.random()
        tasks = self.random.randint(1, 3)
        done = {"minFailedInstances": 1, "minSucceededInstances": tasks}
        extra = {"jobRetryCount": self.random.randint(0, 2)}
        if roll < 0.5:
            command = f"sleep {self.random.choice(['0', '0.1', '0.3'])}"
        elif roll < 0.7:
            command = "sleep 0.1; exit 3"
        elif roll < 0.8:
            command = "sleep 1000"  # until it is stopped
        else:
            command = "echo out; echo err >&2; sleep 0.2"
        roles = {"worker": (tasks, command, done)}
        if self.random.random() < 0.2:
            roles["server"] = (1, "sleep 1000", {"minFailedInstances": 1, "minSucceededInstances": -1})
        if self.random.random() < 0.3:
            extra["extras"] = {"gangAllocation": False}
        return job_file(name, roles, self.image, extra)

    def run(self):
        try:
            while not self.is_over.is_set():
                self.one()
        except Exception as wrong:  # told by the main thread
            self.wrong = wrong

    def one(self):
        try:
            if self.accepted and self.random.random() < 0.3:
                name = self.random.choice(self.accepted[-20:])
                self.server.act(name, "STOP")
                self.stopped.add(name)
            else:
                self.number += 1
                name = f"job{self.number}"
                self.server.submit(self.make(name))
                self.accepted.append(f"admin~{name}")
            self.is_over.wait(self.random.random() * 0.08)  # the load itself: about 25 requests a second
        except Refused as refused:
            # ended already, or ending, or (an answer lost before) there: all honest
            if refused.status not in (409, 503, 429):
                raise AssertionError(f"{name}: {refused}") from refused
        except (OSError, http.client.HTTPException):
            self.is_up.wait(1)  # it was killed meanwhile


class Watch(threading.Thread):
    """Looks at the machine's processes: which attempts of which tasks run."""

    def __init__(self, data):
        super().__init__(daemon=True)
        self.data, self.twice, self.looks = str(data), [], 0
        self.is_over = threading.Event()

    def environments(self):
        for path in pathlib.Path("/proc").glob("[0-9]*/environ"):
            try:
                fields = dict(f.split("=", 1) for f in path.read_bytes().decode(errors="replace").split("\0")
                              if "=" in f)
            except OSError:
                continue
            if "SKEP_ATTEMPT_ID" in fields and fields.get("CRASH_TEST") == self.data:
                yield fields | {"pid": int(path.parent.name)}

    def clean(self):
        """After a failure: end what the test has started."""
        for fields in self.environments():
            with contextlib.suppress(OSError):
                os.kill(fields["pid"], signal.SIGKILL)

    def live(self):
        found = collections.defaultdict(set)
        for fields in self.environments():
            found[fields["SKEP_JOB_ID"], fields["PAI_CURRENT_TASK_ROLE_NAME"],
                  fields["PAI_TASK_INDEX"]].add(fields["SKEP_ATTEMPT_ID"])
        return found

    def run(self):
        while not self.is_over.wait(0.05):
            self.looks += 1
            for task, attempts in self.live().items():
                # a process that ends while we look may still be seen: look again
                if len(attempts) > 1 and len(self.live().get(task, ())) > 1:
                    self.twice.append((task, attempts))


def ports_of(blob):
    at = 0
    while at < len(blob):
        length, = struct.unpack_from("<I", blob, at)
        at += 4 + length
        first, count = struct.unpack_from("<II", blob, at)
        at += 8
        yield from range(first, first + count)


class Sqlite:
    """The rows of a server that has ended."""

    def __init__(self, server):
        self.uri = f"file:{server.data}/skep.db?mode=ro"

    def rows(self, query):
        with contextlib.closing(sqlite3.connect(self.uri, uri=True)) as database:
            return database.execute(query).fetchall()

    def check(self):
        assert self.rows("PRAGMA integrity_check") == [("ok",)]


class OnPostgres:
    """The same of a server on PostgreSQL; psql gives texts."""

    def __init__(self, postgres):
        self.postgres = postgres

    @staticmethod
    def value(text):
        if text.startswith("\\x"):
            return bytes.fromhex(text[2:])
        return int(text) if text.lstrip("-").isdigit() else text

    def rows(self, query):
        return [tuple(self.value(field) for field in row) for row in self.postgres.rows(query)]

    def check(self):
        pass  # skepd --check is asked in any case


def refuses_copies(server):
    """What PostgreSQL has its own means for."""
    for word in ("--backup", "--restore"):
        done = subprocess.run([server.program, "--config", server.config_path, word, server.directory / "copy"],
                              capture_output=True, text=True, timeout=PATIENCE_S)
        assert done.returncode == 1 and "docs/operator/postgresql.md" in done.stderr, done.stderr
        assert not (server.directory / "copy").exists()


def check_ports(rows):
    """Intervals in which attempts ran with a port, by node and port: none may overlap another. (An attempt is
    created when it begins to wait for its place; it runs, and its ports are in use, from its launch on.)"""
    held = collections.defaultdict(list)
    rows = rows(
        "SELECT attempt, node, ports, attempt_launched_ms, attempt_completed_ms FROM tasks "
        "WHERE attempt_launched_ms <> 0 "
        "UNION SELECT attempt, node, ports, attempt_launched_ms, attempt_completed_ms FROM task_attempts "
        "WHERE attempt_launched_ms <> 0")
    count = 0
    for attempt, node, ports, begin, end in rows:
        for port in ports_of(ports):
            held[node, port].append((begin, end or 1 << 62, attempt))
            count += 1
    for place, intervals in held.items():
        intervals.sort()
        for (begin, end, one), (other_begin, _, other) in zip(intervals, intervals[1:]):
            if one != other and other_begin < end:
                raise AssertionError(f"port {place}: attempts {one} and {other} at the same time")
    return count


def check(server, load, watch, database):
    # those that run for ever; also those whose acceptance was not heard of any more
    names = {f'{job["username"]}~{job["name"]}' for job in server.jobs()}
    for name in names:
        try:
            server.act(name, "STOP")
            load.stopped.add(name)
        except Refused:
            pass
    lost = [name for name in load.accepted if name not in names]
    assert not lost, f"lost: {lost}"
    states = server.wait_final(names)
    for name in load.stopped:
        assert states[name] != "RUNNING", name
    if watch:
        ended([fields["pid"] for fields in watch.environments()], PATIENCE_S)
        assert not watch.live(), f"left over: {dict(watch.live())}"
        left = emptied(server.data / "engine/containers", PATIENCE_S)
        assert not left, f"containers left over: {left}"
        assert not watch.twice, f"ran twice at the same time: {watch.twice}"
    assert server.stop() == 0, server.tail()
    database.check()
    ports = check_ports(database.rows)
    apart = database.rows("SELECT count(*) FROM attempt_ends e LEFT JOIN task_attempts t USING (attempt) WHERE t.attempt IS NULL")
    assert apart == [(0,)], "something is kept of ends that no attempt has"
    looked = subprocess.run([server.program, "--config", server.config_path, "--check"], capture_output=True, text=True,
                            timeout=PATIENCE_S)
    assert looked.returncode == 0, looked.stderr
    audit = subprocess.run([server.program, "--config", server.config_path, "--audit"], capture_output=True, text=True,
                           timeout=PATIENCE_S)
    assert audit.returncode == 0, audit.stderr
    print(audit.stderr.strip())
    counts = collections.Counter(states.values())
    print(f"{len(load.accepted)} jobs accepted: {dict(counts)}; {len(load.stopped)} stops accepted; "
          f"{ports} ports given; {watch.looks if watch else 0} looks at the machine")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("skepd")
    parser.add_argument("--engine", choices=("fake", "local"), required=True)
    parser.add_argument("--store", choices=("sqlite", "postgres"), default="sqlite")
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    options = parser.parse_args()
    if options.engine == "local" and not can_run_containers():
        print("skipped: needs root and the container tools")
        return SKIP
    if options.store == "postgres" and not postgres_programs():
        print("skipped: PostgreSQL is not installed (tools/install-deps --test)")
        return SKIP
    print(f"seed {options.seed}", flush=True)
    chance = random.Random(options.seed)

    scratch = tempfile.TemporaryDirectory(prefix="skepd-crash-")
    engine = {"kind": options.engine, "fake": {"nodes": 3, "cpu": 8, "runMilliseconds": 100},
              "cpu": 400, "memoryMB": 16384, "images": {"localRoots": [scratch.name]}}
    image = "debian:12"
    if options.engine == "local":
        del engine["fake"]
        image = busybox_image(scratch.name)
    config = {"engine": engine, "scheduling": {"killGraceSeconds": 1}}
    postgres = Postgres() if options.store == "postgres" else None
    if postgres:
        config["database"] = postgres.address()
    server = Skepd(options.skepd, config)
    database = OnPostgres(postgres) if postgres else Sqlite(server)
    server.start()
    server.login()
    is_awaited, restarts = True, 0
    load = Load(server, image, options.seed)
    watch = None
    if options.engine == "local":
        load.make = with_mark(load.make, server.data)
        watch = Watch(server.data)
        watch.start()
    load.start()
    try:
        for _ in range(options.kills):
            time.sleep(chance.random() * chance.choice((0.02, 0.2, 0.6)))  # the instant is the test's chance
            load.is_up.clear()
            if postgres and is_awaited and chance.random() < 0.3:
                postgres.stop(chance.choice((signal.SIGINT, signal.SIGQUIT)))
                postgres.start()
                restarts += 1
                if chance.random() < 0.7:  # skepd finds its way back by itself
                    server.wait_ready()
                    load.is_up.set()
                    continue
            server.kill()
            # sometimes it is killed again before it is ready
            is_awaited = chance.random() < 0.8
            server.start(wait=is_awaited)
            if is_awaited:
                load.is_up.set()
        if not is_awaited:
            server.wait_started()
        load.is_up.set()
        load.is_over.set()
        load.join()
        assert load.wrong is None, load.wrong
        check(server, load, watch, database)
        if postgres:
            refuses_copies(server)
            print(f"PostgreSQL was restarted {restarts} times")
    except BaseException:
        print(server.tail())
        if watch:
            watch.clean()
        raise
    finally:
        load.is_over.set()
        load.is_up.set()
        if watch:
            watch.is_over.set()
        if server.process.poll() is None:
            server.kill()
        if postgres:
            postgres.remove()
    server.remove()
    scratch.cleanup()
    return 0


def with_mark(make, data):
    """Every command carries the test's own mark in its environment."""
    return lambda name: make(name).replace('"commands": ["', f'"commands": ["export CRASH_TEST={data}; ')


if __name__ == "__main__":
    sys.exit(main())
