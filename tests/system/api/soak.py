"""Every operation of the API under mutated requests, from clients that break off: half a request, a reset while the answer is sent, or in the
midst of a long poll. A real skepd, the fake engine.

usage: soak.py [--seconds S] [--threads N] [--seed X] [--policy NAME]

First each operation is asked for once as it should be (soak_requests.py), and must succeed, but for those that cannot here: so every handler is
reached; no job ends by itself meanwhile. Then the server is started again, with jobs that end soon. Half of the requests are now such ones,
some with other words, kinds and sizes in their bodies and paths, and half are made by chance alone.

At the end the server must be as it was: it answers, holds no more descriptors, has not grown without bound, and ends with status 0. Built
with AddressSanitizer (meson setup -Db_sanitize=address,undefined) it also tells of every leak and of every wrong access; the last line says
whether it was. SKEPD names the program.
"""
import argparse
import collections
import contextlib
import hashlib
import json
import os
import pathlib
import random
import re
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import traceback
import urllib.parse

import yaml

import world
from soak_requests import BRAKED, STORM_S, Maker, NotMade, Request
from waits import PATIENCE_S
from world import job

METHODS = ("get", "put", "post", "delete")
ROOT = pathlib.Path(__file__).resolve().parents[3]
ANSWER_S = PATIENCE_S
RESET = struct.pack("ii", 1, 0)  # SO_LINGER: close() sends a reset
KEPT_JOBS = 200
PURGE_EACH = 200                 # requests of one thread
GROWTH_MIB = 192                 # beyond twice what it had when it was warm
DESCRIPTORS_SPARE = 16           # readers of the store and the like, that are kept for use again
WARM = 0.25                      # of the run
CELLS = """\
physicalCluster:
  cellTypes:
    NODE: {childCellType: FAKE, childCellNumber: 8, isNodeLevel: true}
  physicalCells: [{cellType: NODE, cellAddress: fake0}, {cellType: NODE, cellAddress: fake1},
                  {cellType: NODE, cellAddress: fake2}, {cellType: NODE, cellAddress: fake3}]
virtualClusters:
  default: {virtualCells: [{cellType: NODE, cellNumber: 3}]}
  red: {virtualCells: [{cellType: NODE, cellNumber: 1}]}
"""
CONFIG = """
scheduling: {{policy: {policy}{cells}}}
auth: {{signUp: request}}
api: {{webPorts: {{listen: "127.0.0.1:0", origin: "http://*.localhost:9187"}}}}
storages: [{{name: open, directory: {folder}/open}}]
engine:
  kind: fake
  fake: {{nodes: 4, cpu: 64, memoryMB: 262144, gpus: 8, runMilliseconds: {run_ms}, log: "a line\\nand another\\n"}}
"""
TOUR_RUN_MS, STORM_RUN_MS = 3600000, 1500
SELDOM = r"login|logout|token$|tokens$|\{token\}|password$|users$|account$|v1/user$"
SHOULD_BE = 0.5                  # of the requests are as they should be, or were before they were bent
TRIES_MIN = 30                   # of an operation as it should be: one of them succeeds, also in the storm
TEMPLATES_MAX = 50
VALUES = (None, True, -1, 1 << 63, 1e308, "", "a" * 5000, "\0", "\u001b[31m", "a/../b", [], {}, [[]], {"a": {"a": {}}}, [None] * 300)
JUNK = ("", "%00", "%", "%zz", "..", "%2e%2e%2f", "a" * 300, "%1b[31m", "'", "\"", "admin~", "~", "-1", "18446744073709551616", "%ff%fe", "*", "a/b")
DOCUMENTED = (503,)              # docs/openapi.yaml; 505 is another version of HTTP, told of by itself


class Soak:
    def __init__(self, options):
        self.options = options
        self.document = yaml.safe_load((ROOT / "docs/openapi.yaml").read_text())
        self.operations = [(method, path, self.parameters(item, item[method]))
                           for path, item in self.document["paths"].items() for method in METHODS if method in item]
        # a password takes long to check, and a token that is revoked spoils what others do with it
        self.weights = [0.1 if re.search(SELDOM, path) else 1 for _, path, _ in self.operations]
        self.world = world.World()
        (self.world.folder / "open").mkdir()
        (self.world.folder / "cells.yaml").write_text(CELLS)
        self.configure(TOUR_RUN_MS)
        self.lock = threading.Lock()
        self.tokens = []
        self.jobs = collections.deque(["admin~none"], KEPT_JOBS)
        self.job_number = 0
        self.answers = collections.Counter()     # (method, path, status)
        self.tried, self.fine = collections.Counter(), collections.Counter()  # operation, of requests as they should be in the storm
        self.not_made = collections.Counter()
        self.styles = collections.Counter()
        self.wrong = []
        self.ends = 0

    def configure(self, run_ms):
        folder = self.world.folder
        cells = f", cellsFile: {folder}/cells.yaml" if self.options.policy == "hived" else ""
        (folder / "skepd.yaml").write_text(CONFIG.format(policy=self.options.policy, cells=cells, folder=folder, run_ms=run_ms))

    def maker(self, name, limit_s=STORM_S):
        return Maker(self.world, lambda: self.tokens[0], name, self.barrier_token, self.options.policy == "hived", limit_s)

    def parameters(self, item, operation):
        found = []
        for parameter in item.get("parameters", []) + operation.get("parameters", []):
            if "$ref" in parameter:
                parameter = self.document["components"]["parameters"][parameter["$ref"].rpartition("/")[2]]
            found.append(parameter)
        return found

    # ---- what is sent ----

    def value(self, chance, name, parameter):
        """Of a path's part or of a query: mostly one that means something."""
        if chance.random() < 0.1:
            return chance.choice(JUNK)
        schema = parameter.get("schema", {})
        if "enum" in schema and chance.random() < 0.9:
            return str(chance.choice(schema["enum"]))
        known = {"job": self.job_name(chance, "{job}"), "attempt": str(chance.choice((0, 0, 0, 1, 7))), "role": "worker",
                 "index": str(chance.choice((0, 0, 1, 5))), "taskAttempt": "0", "stream": chance.choice(("all", "stdout", "stderr", "all.log")),
                 "token": self.token(chance), "vc": chance.choice(("default", "other")), "group": "a/b", "node": chance.choice(("node0", "fake-0")),
                 "user": "admin", "username": "admin", "barrier": chance.choice(("start", "ssh")), "limit": str(chance.randrange(50)),
                 "offset": "1", "order": "jobName,ASC", "follow": "true", "tail": "10", "after": "0"}
        if name in known:
            return known[name]
        kind = schema.get("type")
        return "true" if kind == "boolean" else str(chance.randrange(20)) if kind in ("integer", "number") else "a"

    def job_name(self, chance, path):
        with self.lock:
            name = chance.choice(self.jobs)
        return name.partition("~")[2] if "/v1/" in path else name

    def token(self, chance):
        with self.lock:
            return chance.choice(self.tokens)

    def target(self, chance, path, parameters):
        def part(match):
            name = match[1]
            if name == "job":
                return self.job_name(chance, path) if chance.random() < 0.9 else chance.choice(JUNK)
            if name == "attempt" and "barriers" in path:
                return str(chance.randrange(1, 3 * self.job_number + 2))
            return self.value(chance, name, {})
        target = re.sub(r"\{(\w+)\}", part, path)
        queries = [parameter for parameter in parameters if parameter["in"] == "query" and chance.random() < 0.4]
        pairs = [f"{q['name']}={urllib.parse.quote(self.value(chance, q['name'], q), safe='%')}" for q in queries]
        if chance.random() < 0.05:
            pairs += [chance.choice(("", "&&&", "=", "a=" + "b" * 3000, "&".join(["x=y"] * 100)))]
        if chance.random() < 0.05:
            target = "/rest-server" + target
        return target + ("?" + "&".join(pairs) if pairs else "")

    def new_job(self, chance):
        with self.lock:
            self.job_number += 1
            name = f"soak-{self.job_number}"
        text = job(name, ["true"], instances=chance.choice((1, 1, 2, 4)), extra=chance.choice(("", "secrets: {a: hush}\n")),
                   gpu=chance.choice((0, 0, 1)))
        return name, text

    def body(self, chance, method, path):
        """The bytes, their type, and what a success would have made."""
        made = None
        if method in ("get",) or chance.random() < 0.03:
            return b"", "", None
        if re.search(r"/jobs(/\{job\})?$", path) and method in ("post", "put"):
            made, text = self.new_job(chance)
            data, kind = text.encode(), "text/yaml"
        else:
            given = {"username": "admin", "value": chance.choice(("STOP", "START", "a-tag", "\u001b[31m")), "password": "x",
                     "instances": chance.randrange(6), "vcStatus": "running", "expiration": 3600}
            if path.endswith("login") or path.endswith("token") or path.endswith("tokens"):
                given = {"username": chance.choice(("admin", "nobody")), "password": chance.choice(("wrong", self.world.admin_password)),
                         "expiration": 600}
            data, kind = json.dumps(given).encode(), "application/json"
            if chance.random() < 0.2:
                data, kind = urllib.parse.urlencode(given).encode(), "application/x-www-form-urlencoded"
        if chance.random() < 0.25:
            data, made = self.mutate(chance, data), None
        return data, kind, made

    def mutate(self, chance, data):
        data = bytearray(data)
        for _ in range(chance.randrange(1, 6)):
            at = chance.randrange(len(data) + 1)
            match chance.randrange(5):
                case 0: data[at:at] = bytes([chance.randrange(256)])
                case 1: del data[at:at + chance.randrange(1, 20)]
                case 2: data[at:at] = data[:chance.randrange(1, 200)]
                case 3: data[at:at + 1] = chance.choice((b"\0", b"\x1b[2J", b"\xff", b"{{", b"&a *a", b"'", b"999999999999999999999"))
                case 4: data[at:] = b""
        if chance.random() < 0.01:
            data = data + b"#" * chance.choice((1 << 20, 3 << 20))
        return bytes(data)

    def bent(self, chance, value):
        """A part of it is another value, is left out, is there twice, or has a name that nobody knows."""
        if isinstance(value, dict) and value and chance.random() < 0.9:
            value, name = dict(value), chance.choice(list(value))
            match chance.randrange(4):
                case 0: del value[name]
                case 1: value[chance.choice(("unknown", "", name.upper(), "a" * 300))] = value[name]
                case _: value[name] = self.bent(chance, value[name])
            return value
        if isinstance(value, list) and value and chance.random() < 0.5:
            return value * 2 if chance.random() < 0.5 else [self.bent(chance, value[0])]
        return chance.choice(VALUES)

    def bend(self, chance, asked):
        """One thing of a request that was as it should be."""
        luck = chance.random()
        if isinstance(asked.body, dict) and luck < 0.5:
            asked.body = self.bent(chance, asked.body)
        elif asked.body is not None and luck < 0.8:
            asked.body = self.mutate(chance, asked.data())
        elif asked.query and luck < 0.9:
            asked.query = asked.query | {chance.choice(list(asked.query)): chance.choice(JUNK)}
        elif asked.parts:
            asked.parts = asked.parts | {chance.choice(list(asked.parts)): chance.choice(JUNK)}

    def barrier_token_at(self, target):
        found = re.search(r"attempts/(\d+)/", target)
        return self.barrier_token(int(found[1]) if found and int(found[1]) < 1 << 63 else 0)

    def barrier_token(self, number):
        """As the server gives it to the task (docs/rfc/0009)."""
        return hashlib.blake2b(b"", digest_size=32, key=self.master_key, salt=number.to_bytes(8, "little") + bytes(8),
                               person=b"skepbarr" + bytes(8)).hexdigest()

    def by_chance(self, chance, method, path, parameters):
        """The request, and the name of the job that it makes."""
        target = self.target(chance, path, parameters)
        data, kind, made = self.body(chance, method, path)
        token = self.barrier_token_at(target) if "barriers" in path else self.token(chance)
        return target, Request(body=data, kind=kind, token=token), made

    def request(self, chance, method, target, asked):
        """Its head and body; whether an answer comes at once; whether anything was changed here."""
        data, headers, is_bent = asked.data(), [("Host", "x"), ("Connection", "close"), *asked.headers], False
        luck = chance.random()
        if luck < 0.95:
            headers.append(("Authorization", "Bearer " + (asked.token or self.token(chance))))
        elif luck < 0.98:
            mutated = self.mutate(chance, self.token(chance).encode()).decode("latin1")
            headers.append(("Authorization", chance.choice(("Bearer", "Basic !!", "Bearer " + mutated, "Digest a"))))
        is_bent |= luck >= 0.95
        if data and asked.kind:
            headers.append(("Content-Type", asked.kind))
        is_whole = chance.random() < 0.95
        if not is_whole:
            headers.append((chance.choice(("Accept", "X-Any", "Expect", "Transfer-Encoding", "Content-Length", "Host")),
                            chance.choice(("100-continue", "chunked", "text/html", "a" * 5000, "0"))))
        if chance.random() < 0.1 and data:
            headers.append(("Transfer-Encoding", "chunked"))
            cut = chance.randrange(len(data))
            data = b"".join(b"%x\r\n%s\r\n" % (len(p), p) for p in (data[:cut], data[cut:]) if p) + b"0\r\n\r\n"
        elif data or method != "get":
            headers.append(("Content-Length", str(len(data))))
        word = method.upper() if chance.random() < 0.97 else chance.choice(("HEAD", "OPTIONS", "PATCH", "GETT"))
        head = f"{word} {target} HTTP/1.1\r\n" + "".join(f"{name}: {value}\r\n" for name, value in headers) + "\r\n"
        head = head.encode("latin1", "replace")
        if chance.random() < 0.02:
            head, is_whole = self.mutate(chance, head), False
        is_long = "barriers" in target or "follow" in target or "/changes" in target or word != method.upper()
        return head, data, is_whole and not is_long, is_bent or not is_whole or word != method.upper()

    # ---- how it is sent ----

    def exchange(self, chance, connection, head, data, is_sure):
        """What came back, or None when the client has broken off. `is_sure`: an answer comes at once."""
        whole = head + data
        style = chance.choices(("read", "half", "half-reset", "reset", "reset-answer", "poll", "pieces", "twice"),
                               (55, 6, 6, 10, 10, 5, 4, 4))[0]
        self.styles[style] += 1
        if style.startswith("half"):
            connection.sendall(whole[:chance.randrange(len(whole) + 1)])
        elif style == "pieces":
            for _ in range(3):
                cut = chance.randrange(len(whole)) if whole else 0
                connection.sendall(whole[:cut])
                whole = whole[cut:]
            connection.sendall(whole)
        else:
            connection.sendall(whole * (2 if style == "twice" else 1))
        connection.settimeout(ANSWER_S if is_sure else chance.random() * 0.3)
        if style == "reset-answer":
            connection.recv(chance.choice((1, 100, 4096)))
        elif style == "poll":
            connection.settimeout(chance.random() * 0.5)
            try:
                while connection.recv(65536):
                    pass
            except TimeoutError:
                pass
        elif style in ("read", "pieces", "twice"):
            reply = b""
            while len(reply) < 1 << 20:
                part = connection.recv(65536)
                reply += part
                if not part:
                    break
                if b"chunked" in reply[:400] and chance.random() < 0.5:
                    break  # a stream may have no end
            return reply
        if style in ("half-reset", "reset", "reset-answer", "poll"):
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        return None

    def one(self, chance, maker):
        method, path, parameters = chance.choices(self.operations, self.weights)[0]
        asked, made, is_bent = None, None, True
        if chance.random() < SHOULD_BE:
            try:
                asked = maker.request(method, path)
            except NotMade:
                self.not_made[method, path] += 1
                return
        if asked:
            is_bent = chance.random() < 0.5
            if is_bent:
                self.bend(chance, asked)
            target = asked.target(path)
        else:
            target, asked, made = self.by_chance(chance, method, path, parameters)
        head, data, is_sure, is_changed = self.request(chance, method, target, asked)
        status = self.send(chance, head, data, is_sure)
        if not status:
            return
        self.answers[method, path, status] += 1
        if not is_bent and not is_changed:
            self.tried[method, path] += 1
            self.fine[method, path] += status < 400
        if status == 202 and made:
            with self.lock:
                self.jobs.append(f"admin~{made}")
        if status == 401 and b"Bearer " + self.tokens[0].encode() in head:
            self.renew()

    def send(self, chance, head, data, is_sure):
        """The answer's status, or None."""
        with socket.create_connection(("127.0.0.1", self.world.port), timeout=ANSWER_S) as connection:
            try:
                reply = self.exchange(chance, connection, head, data, is_sure)
            except TimeoutError:
                reply = None
                if is_sure:
                    self.wrong.append(f"no answer within {ANSWER_S} s to {head[:300]!r} {data[:200]!r}")
            except OSError:
                reply = None  # cut off while sending, as the server may
        found = re.match(rb"HTTP/1\.1 (\d+) ", reply or b"")
        if not found:
            return None
        status = int(found[1])
        if status >= 500 and status not in DOCUMENTED and status != 505:
            self.wrong.append(f"{status} for {head[:200]!r} {data[:200]!r}: {reply[-300:]!r}")
        return status

    def tour(self):
        """Each operation once as it should be, while nothing else happens: no job ends by itself."""
        maker, wrong = self.maker("tour", PATIENCE_S), []
        for method, path, _ in self.operations:
            asked = maker.request(method, path)
            if not asked:
                continue
            data = asked.data()
            kind = f"Content-Type: {asked.kind}\r\n" if data else ""
            head = (f"{method.upper()} {asked.target(path)} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {len(data)}\r\n{kind}"
                    f"Authorization: Bearer {asked.token or self.tokens[0]}\r\n\r\n")
            with socket.create_connection(("127.0.0.1", self.world.port), timeout=ANSWER_S) as connection:
                connection.sendall(head.encode() + data)
                reply = connection.recv(65536)
            status = int(re.match(rb"HTTP/1\.1 (\d+) ", reply)[1])
            if status >= 400:
                wrong.append(f"{status} to {method.upper()} {asked.target(path)} {data[:200]!r}: {reply[-300:]!r}")
        assert not wrong, "did not succeed:\n" + "\n".join(wrong)
        named = {f"{method.upper()} {path}" for method, path, _ in self.operations}
        assert not (set(maker.table) | set(maker.never)) - named, "soak_requests.py has operations that docs/openapi.yaml has not"
        print(f"{len(self.operations)} operations: {len(self.operations) - len(maker.never)} succeed, {len(maker.never)} cannot here")

    def renew(self):
        """The token of all was revoked by a request: log in anew, as a user would."""
        with self.lock:
            status, reply = self.world.json("POST", "/api/v2/authn/basic/login", {"username": "admin", "password": self.world.admin_password},
                                            token=self.tokens[0])
            if status == 200:
                self.tokens[:] = [reply["token"]]

    def purge(self):
        """A user may have so many tokens and templates; those that requests have made are removed."""
        with self.lock:
            kept = self.tokens[0]
        status, reply = self.world.json("GET", "/api/v2/tokens", token=kept)
        for token in reply["tokens"] if status == 200 else []:
            if token != kept:
                self.world.ask("DELETE", "/api/v2/tokens/" + token, token=kept)
        status, reply = self.world.json("GET", "/marketplace/api/items?limit=500&fields=id", token=kept)
        for item in reply[TEMPLATES_MAX:] if status == 200 else []:
            self.world.ask("DELETE", "/marketplace/api/items/" + item["id"], token=kept)

    def drive(self, number):
        chance = random.Random(f"{self.options.seed}-{number}")
        maker = self.maker(str(number))
        done = 0
        while time.monotonic() < self.ends and not self.wrong:
            try:
                self.one(chance, maker)
                done += 1
                if number == 0 and done % PURGE_EACH == 0:
                    self.purge()
            except Exception:  # a defect of this program must not end a thread in silence
                self.wrong.append(traceback.format_exc())

    # ---- what is left ----

    def memory_mib(self):
        status = pathlib.Path(f"/proc/{self.world.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) >> 10

    def descriptors(self):
        """How many of each kind: sockets, files by their folder. An upload under way has its own, and may stay for hours: it is left out."""
        found = collections.Counter()
        for link in pathlib.Path(f"/proc/{self.world.process.pid}/fd").iterdir():
            with contextlib.suppress(FileNotFoundError):  # closed meanwhile
                name = os.readlink(link)
                if not name.startswith(f"{self.world.folder}/open"):
                    found[re.sub(r"\[\d+\]$|/[^/]*$", "", name)] += 1
        return found

    def quiet(self):
        """All connections of before have been closed by the server."""
        ends = time.monotonic() + PATIENCE_S
        while time.monotonic() < ends:
            _, _, text = self.world.ask("GET", "/metrics", token=False)
            found = re.search(rb"^skep_http_connections(?:\{[^}]*\})? (\d+)", text, re.M)
            if found and int(found[1]) <= 1:
                return
        raise AssertionError("connections are left")

    def run(self):
        options = self.options
        is_sanitized = b"__asan_init" in pathlib.Path(world.SKEPD).read_bytes()
        with self.world:
            self.master_key = bytes.fromhex(next(self.world.folder.glob("data/**/*key*")).read_text().strip())
            self.tokens = [self.world.token()]
            self.tour()
            assert self.world.stop() == 0, (self.world.folder / "skepd.log").read_text(errors="replace")[-4000:]
            self.configure(STORM_RUN_MS)
            self.world.start()
            before = self.descriptors()
            began = time.monotonic()
            self.ends = began + options.seconds
            threads = [threading.Thread(target=self.drive, args=(number,)) for number in range(options.threads)]
            for thread in threads:
                thread.start()
            warm = None
            for step in range(1, 21):
                for thread in threads:
                    thread.join(max(0, began + options.seconds * step / 20 - time.monotonic()))
                if self.world.process.poll() is not None:
                    break
                memory = self.memory_mib()
                print(f"{time.monotonic() - began:6.0f} s  {sum(self.answers.values()):8} answers  {memory:5} MiB  {self.descriptors().total():4} fds",
                      flush=True)
                warm = memory if step / 20 <= WARM or warm is None else warm
            for thread in threads:
                thread.join()
            self.report()
            assert self.world.process.poll() is None, "skepd has ended"
            assert not self.wrong, "\n".join(self.wrong)
            self.quiet()
            assert self.world.ask("GET", "/readyz", token=False)[0] == 200
            after = self.descriptors()
            assert after.total() <= before.total() + DESCRIPTORS_SPARE, f"before {dict(before)}, after {dict(after)}"
            assert self.memory_mib() <= 2 * warm + GROWTH_MIB, f"{warm} MiB when warm, {self.memory_mib()} MiB at the end"
        print("leaks and wrong accesses would have been told of" if is_sanitized else "skepd is built without AddressSanitizer: leaks went unseen")

    def report(self):
        by_status = collections.Counter()
        for (_, _, status), count in self.answers.items():
            by_status[status] += count
        print("answers:", dict(sorted(by_status.items())), "\nstyles:", dict(self.styles))
        assert by_status[401] < sum(by_status.values()) / 2, "most requests were refused: nothing was tried"
        tried, fine = sum(self.tried.values()), sum(self.fine.values())
        print(f"{tried} requests were as they should be, of {len(self.tried)} operations; {fine} succeeded, of {len(+self.fine)}; "
              f"for {sum(self.not_made.values())} what they need could not be made")
        never = [f"{method.upper()} {path}" for (method, path), count in self.tried.items() if count >= TRIES_MIN and not self.fine[method, path]]
        never = [operation for operation in never if operation not in BRAKED]
        assert not never, f"as it should be {TRIES_MIN} times and more, and never with success: {', '.join(never)}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--seed", default=str(random.randrange(1 << 32)))
    parser.add_argument("--policy", default="hived")
    options = parser.parse_args()
    print(f"seed {options.seed}, {options.seconds:.0f} s, {options.threads} threads, {options.policy}", flush=True)
    os.environ.setdefault("ASAN_OPTIONS", "quarantine_size_mb=16:detect_leaks=1")
    os.environ.setdefault("UBSAN_OPTIONS", "halt_on_error=1:print_stacktrace=1")
    Soak(options).run()


if __name__ == "__main__":
    main()
