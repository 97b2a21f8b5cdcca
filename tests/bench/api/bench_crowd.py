#!/usr/bin/env python3
"""What a department costs the server: open streams, mixed reads, slow and oversized clients, all at the same time, over many users and groups.

usage: bench_crowd.py [--users 10000] [--groups 500] [--streams 1000] [--rate 10000] [--seconds 20] [--connections 40] [--callers 20]
                      [--singles 500] [--tasks 20000] [--slow 50]
(SKEPD, SKEP, SKEP_INIT, LOAD and PYTHONPATH as `meson compile bench-crowd` sets them)

Fake engine, real store, real HTTP, all on one machine: the clients take processors from the server, so what each of both took of them is printed
apart. First --singles reads of each kind over one connection; then all kinds in turn, --rate of them a second for --seconds, over --connections by
the tokens of --callers users (--rate 0: as many reads, as fast as they are answered). A latency counts from when its read was due. Of
the streams a tenth follows events; of the others a third follows
logs, the rest all changes: at the end a job is submitted, and each stream of changes must tell of it. Speed is a figure, no verdict; a reply
that is lost or wrong, a stream that is cut or hears nothing, and memory above --memory MiB make the run fail.
"""
import argparse
import concurrent.futures
import http.client
import json
import os
import pathlib
import resource
import selectors
import socket
import subprocess
import threading
import time

import world
from process_use import cpu_s

LAST = b"admin~last-of-all"
READS = (("list page of 20 jobs", "/api/v2/jobs?limit=20"), ("detail of a job", "/api/v2/jobs/admin~small-1"),
         ("detail of the large job, counts alone", "/api/v2/jobs/admin~large?tasks=count"), ("page of 50 of its tasks", "/api/v2/jobs/admin~large/tasks?limit=50&cursor="),
         ("page of 50 users", "/api/v2/users?limit=50&cursor="), ("one user", "/api/v2/users/user-77"), ("page of 50 groups", "/api/v2/groups?limit=50&cursor="),
         ("page of 20 nodes", "/api/v2/nodes?limit=20"), ("virtual clusters", "/api/v2/virtual-clusters"), ("who am I", "/api/v2/tokens/check"), ("events of a job", "/api/v2/jobs/admin~small-1/events"))
WHOLE = (("detail of the large job, all tasks", "/api/v2/jobs/admin~large"), ("its tasks that failed (none)", "/api/v2/jobs/admin~large/tasks?state=FAILED"),
         ("all users", "/api/v2/users"))



def memory(server, when):
    fields = dict(line.split(":", 1) for line in pathlib.Path(f"/proc/{server.process.pid}/status").read_text().splitlines())
    print(f"memory of skepd {when}: {int(fields['VmRSS'].split()[0]) // 1024} MiB, at most {int(fields['VmHWM'].split()[0]) // 1024} MiB, "
          f"{fields['Threads'].strip()} threads", flush=True)
    return int(fields["VmHWM"].split()[0]) // 1024


def make_callers(server, count):
    """Users who read, with a token each: admins, as some of the lists are for them alone."""
    tokens = []
    for i in range(count):
        status, said = server.json("POST", "/api/v2/users", {"username": f"caller-{i}", "password": "a-password-of-theirs", "email": "", "virtualCluster": [],
                                                             "admin": True})
        assert status == 201, said
        status, said = server.json("POST", "/api/v2/authn/basic/login", {"username": f"caller-{i}", "password": "a-password-of-theirs"}, token=False)
        assert status == 200, said
        tokens.append(said["token"])
    return tokens


def make_accounts(server, users, groups):
    """Each user in one of the groups; the hash is imported, so that no password is to be computed."""
    begin, token = time.monotonic(), server.token()

    def some(first):
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=120)
        for path, count, body in (("/api/v2/groups", groups, lambda i: {"groupname": f"group-{i}"}),
                                  ("/api/v2/users", users, lambda i: {"username": f"user-{i}", "passwordHash": "ab" * 64, "email": "", "virtualCluster": [],
                                                                      "grouplist": [f"group-{i % groups}"], "admin": False})):
            for i in range(first, count, 8):
                connection.request("POST", path, json.dumps(body(i)), {"Content-Type": "application/json", "Authorization": f"Bearer {token}"})
                reply = connection.getresponse()
                said = reply.read()
                if reply.status != 201:
                    raise SystemExit(f"{path}: {reply.status} {said[:200]!r}")
            if path == "/api/v2/groups":
                made.wait()
    made = threading.Barrier(8)
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(some, range(8)))
    print(f"{users} users in {groups} groups made in {time.monotonic() - begin:.1f} s", flush=True)


class Streams:
    """Connections whose replies go on; a thread reads them until they are told to end."""

    def __init__(self, server, count):
        self.server, self.selector, self.heard, self.cut, self.bytes = server, selectors.DefaultSelector(), 0, 0, 0
        events = count // 10
        logs = (count - events) // 3
        targets = ["/api/v2/jobs/admin~small-%d/logs?follow=true" % (i % 20) for i in range(logs)]
        targets += ["/api/v2/jobs/admin~small-%d/events?follow=true" % (i % 20) for i in range(events)]
        targets += ["/api/v2/changes"] * (count - logs - events)
        self.changes, token = count - logs - events, server.token()
        for target in targets:
            one = socket.create_connection(("127.0.0.1", server.port))
            one.sendall(f"GET {target} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n\r\n".encode())
            if not one.recv(65536).startswith(b"HTTP/1.1 200"):
                raise SystemExit(f"a stream was refused: {target}")
            one.setblocking(False)
            self.selector.register(one, selectors.EVENT_READ, {"tail": b"", "is_changes": target.endswith("changes"), "has_heard": False})
        self.ending, self.end_of, self.all_heard = threading.Event(), threading.Thread(target=self.run), threading.Event()
        self.end_of.start()

    def run(self):
        while not self.ending.is_set():
            for key, _ in self.selector.select(0.2):
                got = key.fileobj.recv(1 << 18)
                if not got:
                    self.cut += 1
                    self.selector.unregister(key.fileobj)
                    continue
                self.bytes += len(got)
                text = key.data["tail"] + got
                if key.data["is_changes"] and not key.data["has_heard"] and LAST in text:
                    key.data["has_heard"] = True
                    self.heard += 1
                    if self.heard == self.changes:
                        self.all_heard.set()
                key.data["tail"] = text[-len(LAST):]

    def wait_heard(self, seconds):
        self.all_heard.wait(seconds)

    def end(self):
        self.ending.set()
        self.end_of.join()
        for key in list(self.selector.get_map().values()):
            key.fileobj.close()


class Nuisance:
    """Slow clients that never end their request, and others that send more than is allowed."""

    def __init__(self, server, slow):
        self.server, self.slow, self.closed, self.refused, self.cut = server, slow, 0, 0, 0
        self.ending = threading.Event()
        self.threads = [threading.Thread(target=self.drip), threading.Thread(target=self.flood)]
        for thread in self.threads:
            thread.start()

    def begun(self):
        one = socket.create_connection(("127.0.0.1", self.server.port))
        one.sendall(b"GET /api/v2/jobs HTTP/1.1\r\nHost: x\r\nX-Slow: ")
        return one

    def drip(self):
        """Who is closed comes again."""
        clients = [self.begun() for _ in range(self.slow)]
        while not self.ending.wait(0.5):
            for i, client in enumerate(clients):
                try:
                    client.sendall(b"a")
                except OSError:
                    self.closed += 1
                    client.close()
                    clients[i] = self.begun()
        for client in clients:
            client.close()

    def flood(self):
        token, body = self.server.token(), b"x" * (1 << 21)
        while not self.ending.is_set():
            with socket.create_connection(("127.0.0.1", self.server.port)) as one:
                try:
                    one.sendall(f"POST /api/v2/jobs HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
                    self.refused += one.recv(4096).startswith(b"HTTP/1.1 413")
                except OSError:
                    self.cut += 1

    def end(self):
        self.ending.set()
        for thread in self.threads:
            thread.join()


def load(server, target, count, connections, rate=0, tokens=None):
    words = [os.environ["LOAD"], server.port, "|".join(tokens or [server.token()]), connections, count, rate, "GET", target]
    return subprocess.Popen([str(word) for word in words], stdout=subprocess.PIPE, text=True)


def told(name, result, also=""):
    print(f"{name:40} p50 {result['p50_ms']:8.2f}  p99 {result['p99_ms']:8.2f}  max {result['max_ms']:8.1f} ms{also}"
          + (f"  BAD {result['bad']}" if result.get("bad") else ""), flush=True)


def single(server, name, target, reads):
    """One kind alone, over one connection: what a read costs the server."""
    before = cpu_s(server.process)
    result = json.loads(load(server, target, reads, 1).communicate()[0])
    told(name, result, f"  {result['kib']:8.1f} KiB  {result['per_second']:>7.0f}/s  server {(cpu_s(server.process) - before) * 1e6 / reads:6.0f} us, "
                       f"client {result['cpu_s'] * 1e6 / reads:6.0f} us a read")


def mixed(server, given, tokens):
    """All kinds in turn. How many replies were none, or no good."""
    reads = (given.rate or 10000) * given.seconds
    before, load_before = cpu_s(server.process), os.getloadavg()[0]
    result = json.loads(load(server, "|".join(target for _, target in READS), reads, given.connections, given.rate, tokens).communicate()[0])
    used = cpu_s(server.process) - before
    for (name, _), one in zip(READS, result["targets"]):
        told(name, one)
    told("all of them", result)
    print(f"mixed reads: {reads} in {result['seconds']:.1f} s, {result['per_second']:.0f} a second, {result['bad']} bad; the server took {used:.1f} s of "
          f"processors, {used * 1e6 / reads:.0f} us a read (streams and nuisances included), so {reads / used:.0f} reads a second of one; the client "
          f"took {result['cpu_s']:.1f} s, {result['cpu_s'] * 1e6 / reads:.0f} us a read; load of the machine {load_before:.1f} before, "
          f"{os.getloadavg()[0]:.1f} after, {os.cpu_count()} processors", flush=True)
    return result["bad"]


def large_job(tasks):
    """Two roles: one has 10,000 tasks at most."""
    text = world.job("large", ["true"], instances=tasks - tasks // 2)
    role = text[text.index("  worker:"):]
    return text + role.replace("worker:", "helper:").replace(f"instances: {tasks - tasks // 2}", f"instances: {tasks // 2}")


def running(server):
    roles = json.loads(server.ask("GET", "/api/v2/jobs/admin~large?tasks=count")[2])["taskRoles"].values()
    return sum(role["taskRoleStatus"]["taskCounts"].get("RUNNING", 0) for role in roles)


def wait_running(server, tasks):
    """Each change is told by the stream; how far the job is, is asked then."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=300)
    connection.request("GET", "/api/v2/changes", headers={"Authorization": f"Bearer {server.token()}"})
    stream = connection.getresponse()
    while running(server) < tasks and stream.readline():
        pass
    connection.close()


def main():
    options = argparse.ArgumentParser()
    for name, usual, what in (("users", 10000, "accounts"), ("groups", 500, "of them"), ("streams", 1000, "open at the same time"),
                              ("rate", 10000, "mixed reads a second; 0: as fast as they are answered"), ("seconds", 20, "of them"),
                              ("connections", 40, "of who reads"), ("callers", 20, "who read, with a token each"),
                              ("singles", 500, "reads of each kind alone"), ("tasks", 20000, "of the large job"), ("slow", 50, "clients that send slowly"),
                              ("memory", 1024, "MiB that the server may have at most")):
        options.add_argument(f"--{name}", type=int, default=usual, help=f"{what} ({usual})")
    given = options.parse_args()
    if min(given.users, given.groups, given.singles, given.tasks) < 100 or not 0 < given.streams <= 1000 or not 0 < given.callers <= 200:
        options.error("at least 100 users, groups, singles and tasks; 1 to 1000 streams, 1 to 200 callers")
    if given.rate < 0 or min(given.seconds, given.connections) < 1:
        options.error("at least a second and a connection")
    resource.setrlimit(resource.RLIMIT_NOFILE, (8192, max(8192, resource.getrlimit(resource.RLIMIT_NOFILE)[1])))
    server = world.World(run_ms=3600000)
    config = server.folder / "skepd.yaml"
    config.write_text(config.read_text().replace("nodes: 4, cpu: 8, memoryMB: 32768", "nodes: 400, cpu: 256, memoryMB: 4194304"))
    with server:
        memory(server, "at first")
        make_accounts(server, given.users, given.groups)
        tokens = make_callers(server, given.callers)
        for i in range(20):
            assert server.skep("submit", server.file(world.job(f"small-{i}", ["true"]))).returncode == 0
        done = server.skep("submit", server.file(large_job(given.tasks)))
        assert done.returncode == 0, done.stderr
        wait_running(server, given.tasks)
        memory(server, "with these, and a job of %d tasks" % given.tasks)
        print("alone, one connection:")
        for name, target in READS:
            single(server, name, target, given.singles)
        for name, target in WHOLE:
            single(server, name, target, 20)
        streams = Streams(server, given.streams)
        memory(server, f"with {given.streams} streams")
        nuisance = Nuisance(server, given.slow)
        print(f"with {given.streams} streams, {given.slow} slow clients, and one that sends bodies of 2 MiB:")
        try:
            bad = mixed(server, given, tokens)
            memory(server, "after them")
            assert server.skep("submit", server.file(world.job(LAST.decode().split("~")[1], ["true"]))).returncode == 0
            streams.wait_heard(60)
        finally:
            nuisance.end()
            streams.end()
        print(f"streams: {streams.heard} of {streams.changes} heard of the last job, {streams.cut} of {given.streams} were cut, {streams.bytes >> 20} MiB came")
        print(f"slow clients: closed {nuisance.closed} times; bodies that are too long: {nuisance.refused} answered with 413, {nuisance.cut} cut")
        most = memory(server, "at the end")
    lost = [what for what, is_so in ((f"{bad} replies were bad", bad), ("a stream of changes did not hear of the last job", streams.heard < streams.changes),
                                     ("streams were cut", streams.cut), (f"memory: {most} MiB", most > given.memory)) if is_so]
    if lost:
        raise SystemExit("bench_crowd: " + "; ".join(lost))


if __name__ == "__main__":
    main()
