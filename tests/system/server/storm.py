#!/usr/bin/env python3
"""All faults at the same time: jobs are submitted, stopped, started and removed while everything around them fails.

usage: storm.py SKEPD CLOCK_SHIFT --engine fake|local [--minutes N] [--seed S] [--only FAULT,FAULT…]

Faults: skepd is killed and ended; the disk is full for a while; the wall clock jumps (of skepd alone: CLOCK_SHIFT is
clock_shift.c, preloaded); the configuration is read again, right or wrong; backups are made and put in place of the
database; readers keep their snapshots open; first processes and monitors of containers are killed.

Afterwards every accepted job is there, but for those that a restored backup does not know (their number is printed); it
has reached a final state by itself, unless it runs for ever; no removed job is back; no attempt has started twice, no
port and no GPU was given twice at any moment, as the tasks say themselves and as the store said in every snapshot; no
container is left over, and the event log agrees with the rows. Prints its seed, then what it did.
"""

import argparse
import collections
import contextlib
import http.client
import json
import mmap
import os
import pathlib
import random
import shutil
import signal
import sqlite3
import struct
import subprocess
import sys
import tempfile
import threading
import time

from faults import fill
from skepd import Refused, Skepd, busybox_image, can_run_containers, job_file
from storm_ledger import TELL, Ledger, Snapshot
from waits import PATIENCE_S, emptied, file_says, until

SKIP = 77
UNDER_WAY = 30
FINAL_S = 600  # for all that is under way at the end, and is retried
ROOM = 256 << 10  # bytes: with more a start must succeed
HOUR, DAY = 3600, 86400
FINAL = ("SUCCEEDED", "FAILED", "STOPPED")
JUMPS = (0, 0, 5, -5, 90, -90, HOUR, -HOUR, 3 * DAY, 400 * DAY, -30 * DAY)


def children(pid):
    return [int(word) for word in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


class Clock:
    """The wall clock of skepd."""

    def __init__(self, path):
        with open(path, "wb+") as file:
            file.write(struct.pack("q", 0))
            file.flush()
            self.memory = mmap.mmap(file.fileno(), 8)
        self.shift_s, self.far_until = 0, 0

    def jump(self, seconds):
        is_leaving = self.is_far() and abs(seconds) < DAY
        if is_leaving:  # it is far for as long as anybody may find it so
            self.put(seconds)
            self.far_until = time.monotonic()
        self.shift_s = seconds
        if not is_leaving:
            self.put(seconds)

    def put(self, seconds):
        self.memory[:] = struct.pack("q", seconds * 10**9)

    def is_far(self):
        """So that tokens are out of date."""
        return abs(self.shift_s) >= DAY

    def was_far(self, since):
        return self.is_far() or self.far_until >= since


class Books:
    """What was accepted, in order: (what, name). A restore takes back what the backup does not know."""

    def __init__(self):
        self.lock, self.entries = threading.Lock(), []
        self.doubtful = set()  # removed or not: the answer was lost, or a backup was being made
        self.forgotten = 0
        self.total = 0

    def add(self, what, name):
        with self.lock:
            self.entries.append((what, name))
            self.total += what == "submit"

    def doubt(self, name):
        with self.lock:
            self.doubtful.add(name)

    def removed(self, name):
        with self.lock:
            self.doubtful.discard(name)
            self.entries.append(("delete", name))

    def position(self):
        with self.lock:
            return len(self.entries)

    def restored(self, position, names):
        """The entries behind the position are only those that the store still knows of."""
        with self.lock:
            behind = self.entries[position:]
            del self.entries[position:]
            for what, name in behind:
                if what == "delete":
                    self.doubtful.add(name)
                elif name in names:
                    self.entries.append((what, name))
                else:
                    self.forgotten += 1

    def state(self):
        """(names that must be there, names that must not)"""
        there, gone = set(), set()
        for what, name in self.entries:
            (there if what == "submit" else gone).add(name)
        return there - gone - self.doubtful, gone - self.doubtful


class Client(threading.Thread):
    """Somebody who works with the server for as long as the storm lasts."""

    def __init__(self, number, storm):
        super().__init__(daemon=True)
        self.number, self.storm, self.server, self.books = number, storm, storm.server, storm.books
        self.random = random.Random(f"{storm.seed} {number}")
        self.made, self.names = 0, collections.deque(maxlen=30)
        self.gate = threading.Lock()  # held while a request is under way
        self.counts = collections.Counter()
        self.is_over, self.wrong = threading.Event(), None

    def run(self):
        while not self.is_over.wait(self.random.random() * 2 * self.storm.pause_s):
            begin = time.monotonic()
            try:
                with self.gate:
                    self.one()
            except Refused as refused:
                # ended already, ending, there by a request whose answer was lost, or taken by a restore
                honest = refused.status in (404, 409, 429, 503) or \
                    (refused.status == 401 and self.storm.clock.was_far(begin))
                if not honest:
                    self.wrong = refused
                    return
                self.counts[refused.status] += 1
            except (OSError, http.client.HTTPException):
                self.storm.is_up.wait(1)
            except Exception as wrong:  # told by the main thread
                self.wrong = wrong
                return

    def one(self):
        roll, name = self.random.random(), self.random.choice(self.names or (None,))
        if name and roll < 0.2:
            self.server.act(name, "STOP")
            self.counts["stop"] += 1
        elif name and roll < 0.25:
            self.server.act(name, "START")
            self.counts["start"] += 1
        elif name and roll < 0.32:
            self.books.doubt(name)  # until the answer is there, nobody knows
            self.server.call("DELETE", f"/api/v2/jobs/{name}")
            self.books.removed(name)
            self.counts["delete"] += 1
        elif roll < 0.45 or len(self.storm.under_way) > UNDER_WAY:
            self.look()
        else:
            self.made += 1
            text, name = self.storm.make(self.random, f"{self.number}-{self.made}")
            self.server.submit(text)
            self.books.add("submit", name)
            self.names.append(name)

    def look(self):
        """At all jobs; there are never many more under way than the machine gets done."""
        self.storm.under_way = [name for name, state in self.storm.states().items() if state not in FINAL]
        for name in self.storm.under_way[UNDER_WAY:]:
            self.server.act(name, "STOP")


class Storm:
    def __init__(self, options, scratch):
        self.seed, self.engine = options.seed, options.engine
        self.is_local = options.engine == "local"
        self.random = random.Random(options.seed)
        self.scratch, self.data = scratch, scratch / "server/data"
        self.clock, self.books = Clock(scratch / "clock"), Books()
        self.is_up, self.faults = threading.Event(), collections.Counter()
        self.ledger = Ledger() if self.is_local else None
        self.image = busybox_image(scratch) if self.is_local else "debian:12"
        self.pause_s = 0.15 if self.is_local else 0.03
        self.readers, self.backup, self.under_way = [], None, []
        self.bundle_folder = None
        self.starts = 0
        self.server = Skepd(options.skepd, self.config(), scratch / "server")
        self.server.environment = {"LD_PRELOAD": str(options.clock_shift), "SKEP_TEST_CLOCK": str(scratch / "clock"),
                                   "ASAN_OPTIONS": "verify_asan_link_order=0:" + os.environ.get("ASAN_OPTIONS", "")}
        self.clients = [Client(number, self) for number in range(3)]

    def config(self):
        engine = {"kind": "fake", "fake": {"nodes": 3, "cpu": 16, "gpus": 4, "runMilliseconds": 150}}
        if self.is_local:
            engine = {"kind": "local", "cpu": 400, "memoryMB": 16384, "diskReserveMB": 1,
                      "devices": {"simulatedGpus": 4, "simulatedGpuType": "SIM"},
                      "images": {"localRoots": [str(self.scratch)]}}
        return {"engine": engine, "log": {"level": "info"},
                "scheduling": {"killGraceSeconds": 1, "backoffMinSeconds": 1, "backoffMaxSeconds": 2,
                               "retryPauseMaxSeconds": 2, "finishedKeepSeconds": 0}}

    # what is submitted

    def make(self, chance, number):
        roll, tasks = chance.random(), chance.randint(1, 3)
        name, command = f"job{number}", "sleep 0.2"
        if roll < 0.15:
            name, command = f"ever{number}", "sleep 1000"
        elif roll < 0.35:
            command = "sleep 0.1; exit 3"
        elif roll < 0.6:
            command = "echo out; echo err >&2; sleep " + chance.choice(("0", "0.1", "1"))
        if self.is_local:
            command = TELL.format(port=self.ledger.port) + command
        elif name.startswith("ever"):
            command = "sleep 1000"
        done = {"minFailedInstances": 1, "minSucceededInstances": tasks}
        extra = {"jobRetryCount": chance.randint(0, 2), "extras": {"gangAllocation": chance.random() < 0.7}}
        job = json.loads(job_file(name, {"worker": (tasks, command, done)}, self.image, extra))
        job["taskRoles"]["worker"]["resourcePerInstance"]["gpu"] = int(chance.random() < 0.3)
        return json.dumps(job), f"admin~{name}"

    # faults

    def start(self):
        is_awaited = self.random.random() < 0.85 or self.has_filler()
        try:
            self.server.start(wait=is_awaited)
        except AssertionError as error:
            # the reserve lasts for some hundred commits, for fewer when somebody keeps a snapshot: nothing is left
            if not self.has_filler() or self.room() > ROOM:
                raise AssertionError(f"{error}\n{self.room()} bytes are free: {self.sizes()}") from error
            self.faults["starts refused without any room"] += 1
            os.unlink(self.data / "filler")
            self.server.start()
        if is_awaited:
            self.is_up.set()

    def room(self):
        found = os.statvfs(self.data)
        return found.f_bavail * found.f_bsize

    def sizes(self):
        """What takes the room, the largest first."""
        sizes = {str(path.relative_to(self.data)): path.lstat().st_blocks * 512 for path in self.data.glob("*")}
        for path in self.data.glob("engine/**/*"):
            with contextlib.suppress(OSError):  # of a container that ends
                sizes["engine"] = sizes.get("engine", 0) + path.lstat().st_blocks * 512
        return ", ".join(f"{name} {size >> 10} KiB" for name, size in sorted(sizes.items(), key=lambda item: -item[1])[:8])

    def has_filler(self):
        return (self.data / "filler").exists()

    def kill(self):
        self.is_up.clear()
        self.server.kill()
        self.start()

    def come_up(self):
        """A start that was not awaited is."""
        if not self.is_up.is_set():
            self.server.wait_started()
            self.is_up.set()

    def end(self):
        self.come_up()
        self.is_up.clear()
        assert self.server.stop() == 0, self.server.tail()
        self.start()

    def reload(self):
        config = self.config()
        config["log"]["level"] = self.random.choice(("info", "debug"))
        config["scheduling"]["killGraceSeconds"] = self.random.choice((1, 2))
        config["scheduling"]["order"] = self.random.choice(("priority", "smallest", "fifo"))
        is_wrong = self.random.random() < 0.2 and self.is_up.is_set()  # a server that starts would end
        if is_wrong:
            config["scheduling"]["portFirsd"] = 1
        self.server.write_config(config)
        if self.is_up.is_set():
            log = self.server.directory / "log"
            since = log.stat().st_size
            self.server.process.send_signal(signal.SIGHUP)
            file_says(log, "stays as it was" if is_wrong else "read again", since, process=self.server.process)
        if is_wrong:
            self.faults["wrong configurations"] += 1
            self.server.write_config(self.config())

    def jump(self):
        self.clock.jump(self.random.choice(JUMPS))

    def disk(self):
        if self.has_filler():
            os.unlink(self.data / "filler")
            return
        self.come_up()  # only a start that is awaited may be refused for want of room
        fill(self.server)

    def read(self):
        if len(self.readers) > 2 or (self.readers and self.random.random() < 0.4):
            self.readers.pop(0).close()
        else:
            with contextlib.suppress(sqlite3.OperationalError):  # without room for its index there is no reader
                self.readers.append(Snapshot(self.data / "skep.db", self.random.random() < 0.5))

    def skepd(self, *arguments):
        return subprocess.run([self.server.program, "--config", self.server.config_path, *arguments], text=True,
                              capture_output=True, timeout=PATIENCE_S, env=os.environ | self.server.environment)

    def back_up(self):
        position, path = self.books.position(), self.scratch / "backup.new"
        done = self.skepd("--backup", path)
        if self.has_filler() and done.returncode != 0:
            return  # the reading side of a log needs room, too
        assert done.returncode == 0, done
        path.rename(self.scratch / "backup")
        self.backup = position

    def restore(self):
        """While nobody asks: afterwards is known what was forgotten."""
        if self.backup is None:
            return self.back_up()
        with contextlib.ExitStack() as gates:
            self.is_up.clear()
            self.server.kill()
            for client in self.clients:
                gates.enter_context(client.gate)
            if self.has_filler():
                os.unlink(self.data / "filler")
            while self.readers:
                self.readers.pop().close()
            self.starts += self.starts_stored(f"attempt > {self.last_attempt()}")
            done = self.skepd("--restore", self.scratch / "backup", "--replace")
            assert done.returncode == 0, done
            for folder in self.data.glob("replaced-*"):
                shutil.rmtree(folder)
            self.server.start()
            self.is_up.set()
            if not self.clock.is_far():
                self.books.restored(self.backup, set(self.states()))
            else:
                self.books.restored(self.backup, self.names_stored())
        return None

    def strike(self):
        """Kill a monitor or a first process of a container of this server."""
        victims = list(self.monitors())
        if not victims:
            return
        monitor = self.random.choice(victims)
        pid = monitor
        if self.random.random() < 0.5:
            with contextlib.suppress(OSError, IndexError):
                pid = children(monitor)[0]
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)
            self.faults["monitors killed" if pid == monitor else "first processes killed"] += 1

    def bundles(self):
        """Where the engine keeps what its containers are started by; None before the first one."""
        for config in [] if self.bundle_folder else pathlib.Path("/run/skep").glob("*/tasks/*/config.json"):
            with contextlib.suppress(OSError):
                if str(self.data) in config.read_text():
                    self.bundle_folder = config.parents[1]
                    break
        return self.bundle_folder

    def monitors(self):
        """They have nothing of skepd's environment: their command lines name the bundles."""
        bundles = self.bundles()
        for path in pathlib.Path("/proc").glob("[0-9]*/comm") if bundles else []:
            with contextlib.suppress(OSError):
                if path.read_text() == "conmon\n" and bytes(bundles) + b"/" in (path.parent / "cmdline").read_bytes():
                    yield int(path.parent.name)

    # what is known

    def rows(self, text):
        uri = f"file:{self.data}/skep.db?mode=ro"
        with contextlib.closing(sqlite3.connect(uri, uri=True, timeout=30)) as database:
            return database.execute(text).fetchall()

    def names_stored(self):
        return {f"{user}~{name}" for user, name in self.rows("SELECT owner, name FROM jobs")}

    def starts_stored(self, where):
        one = f"SELECT attempt FROM {{}} WHERE attempt_launched_ms <> 0 AND {where}"
        return self.rows(f"SELECT count(*) FROM ({one.format('tasks')} UNION {one.format('task_attempts')})")[0][0]

    def last_attempt(self):
        with contextlib.closing(sqlite3.connect(self.scratch / "backup")) as database:
            return database.execute("SELECT value FROM counters WHERE name = 'attempt'").fetchone()[0]

    def states(self):
        return {f'{job["username"]}~{job["name"]}': job["state"] for job in self.server.jobs()}

    # the whole

    def run(self, seconds, only):
        actions = {"kills": (self.kill, 30), "ends": (self.end, 3), "reloads": (self.reload, 10),
                   "jumps": (self.jump, 10), "disks filled or freed": (self.disk, 10), "snapshots opened or closed": (self.read, 15),
                   "backups": (self.back_up, 3), "restores": (self.restore, 3)}
        if self.is_local:
            actions["strikes"] = (self.strike, 25)
        names = [name for name in actions if not only or name.split()[0] in only]
        weights = [actions[name][1] for name in names]
        for client in self.clients:
            client.start()
        if self.is_local:  # strikes must have somebody to hit
            until(lambda: any(True for _ in self.monitors()), lambda: f"no monitor is found\n{self.server.tail()}")
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.rest()
            name = self.random.choices(names, weights)[0]
            if self.has_filler() and self.random.random() < 0.2:
                name = "disks filled or freed"
            elif self.clock.is_far() and self.random.random() < 0.2:
                name = "jumps"
            actions[name][0]()
            self.faults[name] += 1
            if name == "kills" and self.has_filler():
                self.faults["kills on a full disk"] += 1
            self.check_clients()

    def rest(self):
        """How far the work has come when the next fault strikes is chance."""
        time.sleep(self.random.random() * self.random.choice((0.05, 0.3, 1.0)) * (2 if self.is_local else 1))

    def check_clients(self):
        for client in self.clients:
            if client.wrong:
                raise AssertionError(f"a client: {client.wrong!r}") from client.wrong
        if self.ledger:
            assert not self.ledger.wrong, self.ledger.wrong

    def calm(self):
        """The faults end, and the clients; the clock stays where it is, if tokens are still good there."""
        self.server.write_config(self.config())
        if self.has_filler():
            os.unlink(self.data / "filler")
        if self.clock.is_far():
            self.clock.jump(0)
        self.come_up()
        for client in self.clients:
            client.is_over.set()
        for client in self.clients:
            client.join()
        while self.readers:
            self.readers.pop().close()
        self.check_clients()
        self.server.wait_ready()

    def check_jobs(self):
        there, gone = self.books.state()
        states = self.states()
        lost, back = there - set(states), gone & set(states)
        assert not lost, f"{len(lost)} accepted jobs are lost: {sorted(lost)[:10]}"
        assert not back, f"{len(back)} removed jobs are back: {sorted(back)[:10]}"

        def under_way():
            left = {name: state for name, state in self.states().items() if state not in FINAL}
            for name in left:
                if name.startswith("admin~ever"):
                    with contextlib.suppress(Refused):
                        self.server.act(name, "STOP")
            return left

        until(lambda: not under_way(), lambda: f"not final: {under_way()}\n{self.server.tail()}", FINAL_S)

        def nodes():
            return self.rows("SELECT is_healthy, is_cordoned, is_lost, name FROM nodes")

        # the engine looks at its disk every two seconds
        until(lambda: all(node[:3] == (1, 0, 0) for node in nodes()), lambda: f"{nodes()}\n{self.server.tail()}")
        return collections.Counter(self.states().values())

    def check_logs(self):
        """Whatever the clock said meanwhile: the logs of what ended in these minutes are not old."""
        ended = self.rows("SELECT attempt FROM task_attempts WHERE is_success = 1 ORDER BY attempt DESC LIMIT 500")
        gone = [attempt for (attempt,) in ended if not (self.data / f"engine/logs/{attempt}").is_dir()]
        assert not gone, f"the logs of {len(gone)} of {len(ended)} attempts are gone: {gone[:10]}"

    def check(self):
        counts = self.check_jobs()
        if self.ledger:
            until(lambda: not self.ledger.live, lambda: f"go on: {self.ledger.live.values()}")
            left = emptied(self.data / "engine/containers", PATIENCE_S)
            assert not left, f"containers left over: {left}"
            assert not list(self.monitors()), "monitors left over"
            self.check_logs()
        until(lambda: self.read() or self.readers, "no snapshot can be opened")
        self.readers.pop().close()
        assert self.server.stop() == 0, self.server.tail()
        assert self.rows("PRAGMA integrity_check") == [("ok",)]
        told = self.rows("SELECT count(*) FROM task_attempts WHERE exit_code = 96")[0][0]
        assert told == 0, f"{told} attempts could not tell of themselves"
        self.starts += self.starts_stored("1")
        audit = self.skepd("--audit")
        assert audit.returncode == 0, audit.stderr
        print(audit.stderr.strip().splitlines()[-1])
        return counts

    def tell(self):
        requests = sum((client.counts for client in self.clients), collections.Counter())
        print("faults:", ", ".join(f"{count} {name}" for name, count in self.faults.items()))
        print("requests:", ", ".join(f"{count} x {what}" for what, count in requests.items()))
        starts = sum(self.ledger.starts.values()) if self.ledger else self.starts
        print(f"{self.books.total} jobs accepted, {self.books.forgotten} of them forgotten by restores; {starts} starts")

    def clear(self):
        """Whatever happened: nothing that was started here stays."""
        for client in self.clients:
            client.is_over.set()
        self.is_up.set()
        if self.server.process and self.server.process.poll() is None:
            self.server.kill()
        for pid in list(self.monitors()) if self.is_local else []:
            with contextlib.suppress(OSError):
                for process in [*children(pid), pid]:
                    os.kill(process, signal.SIGKILL)
        if self.ledger and self.ledger.is_alive():
            self.ledger.close()
        self.server.remove()


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("skepd")
    parser.add_argument("clock_shift", type=pathlib.Path)
    parser.add_argument("--engine", choices=("fake", "local"), required=True)
    parser.add_argument("--minutes", type=float, default=0.3)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    parser.add_argument("--only", type=lambda text: text.split(","), help="first words of faults: kills,restores")
    return parser.parse_args()


@contextlib.contextmanager
def small_disk(directory, megabytes):
    (directory / "server/data").mkdir(parents=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "skepd-test", directory / "server/data"], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", directory / "server/data"], check=True)


def main():
    options = arguments()
    if os.geteuid() != 0 or (options.engine == "local" and not can_run_containers()):
        print("skipped: needs root, to mount a small file system, and the container tools")
        return SKIP
    print(f"seed {options.seed}", flush=True)
    begin = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="skepd-storm-") as directory, small_disk(pathlib.Path(directory), 512):
        storm = Storm(options, pathlib.Path(directory))
        try:
            if storm.ledger:
                storm.ledger.start()
            storm.server.start()
            storm.is_up.set()
            storm.server.login()
            storm.run(options.minutes * 60, options.only)
            storm.calm()
            counts = storm.check()
        except BaseException:
            storm.tell()
            print(storm.server.tail(60))
            raise
        finally:
            storm.clear()
        storm.tell()
        print(f"{time.monotonic() - begin:.0f} s: nothing was lost, doubled or left over; jobs: {dict(counts)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
