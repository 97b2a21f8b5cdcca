"""Hostile and broken HTTP against a real server: an answer or a cut connection, never a crash."""
import contextlib
import http.client
import itertools
import json
import os
import random
import re
import socket
import threading
import time
import unittest

import waits
import world
from world import job

REQUEST_S = 90  # after which a request that never becomes whole is cut off (src/api/http.h)
HEAD = b"Host: x\r\nConnection: close\r\n"


def status(reply):
    return int(reply.split()[1]) if reply.startswith(b"HTTP/1.") else 0


class Http(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.world = world.World().__enter__()

    @classmethod
    def tearDownClass(cls):
        cls.world.__exit__()

    def tearDown(self):
        self.assertIsNone(self.world.process.poll(), "skepd has ended")
        self.assertEqual(status(self.world.raw(b"GET /healthz HTTP/1.1\r\n" + HEAD + b"\r\n")), 200)

    def test_broken_requests(self):
        for data in (b"\r\n\r\n", b"\0\0\0\0\r\n\r\n", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n",
                     b"GET /healthz HTTP/1.1\r\nHost x\r\n\r\n", b"GET /a%00b HTTP/1.1\r\n" + HEAD + b"\r\n",
                     b"GET /%e0%80 HTTP/1.1\r\n" + HEAD + b"\r\n", b"GET /%zz HTTP/1.1\r\n" + HEAD + b"\r\n",
                     b"GET /a\0b HTTP/1.1\r\n" + HEAD + b"\r\n", b"FOO /healthz HTTP/1.1\r\n" + HEAD + b"\r\n",
                     b"POST /api/v2/jobs HTTP/1.1\r\n" + HEAD + b"Content-Length: -1\r\n\r\n",
                     b"POST /api/v2/jobs HTTP/1.1\r\n" + HEAD + b"Content-Length: 99999999999999999999\r\n\r\n",
                     b"GET /" + b"a/" * 5000 + b" HTTP/1.1\r\n" + HEAD + b"\r\n",
                     b"GET /?" + b"a&" * 3000 + b" HTTP/1.1\r\n" + HEAD + b"\r\n",
                     b"GET / HTTP/1.1\r\n" + HEAD + b"X: " + b"a" * 200000 + b"\r\n\r\n",
                     b"GET / HTTP/1.1\r\n" + HEAD + b"".join(b"X%d: y\r\n" % i for i in range(5000)) + b"\r\n"):
            code = status(self.world.raw(data, 5))
            self.assertTrue(code in (0, 505) or 400 <= code < 500, f"{data[:60]} got {code}")

    def test_requests_that_can_be_read_in_two_ways(self):
        login = b"POST /api/v2/authn/basic/login HTTP/1.1\r\n"
        for data in (login + HEAD + b"Content-Length: 2\r\nContent-Length: 40\r\n\r\n{}",
                     login + HEAD + b"Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}",
                     login + HEAD + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
                     b"GET /healthz HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"):
            reply = self.world.raw(data + b"GET /livez HTTP/1.1\r\n" + HEAD + b"\r\n")
            self.assertEqual(status(reply), 400, data)
            self.assertEqual(reply.count(b"HTTP/1.1 "), 1, "what follows may not be taken for a request")
            self.assertIn(b'"code":"InvalidParametersError"', reply)

    def test_names_that_mean_to_escape(self):
        for path in ("admin~a%2f..%2f..", "..%2f..%2fetc%2fpasswd", "a%0d%0aX-Evil:%201", "%ff%fe", "~", "admin~admin~a"):
            code, headers, body = self.world.ask("GET", f"/api/v2/jobs/{path}")
            self.assertEqual((code, headers["X-Evil"]), (404, None), path)
            self.assertEqual(json.loads(body)["code"], "NoJobError")
        self.assertEqual(self.world.ask("GET", "/api/v2/jobs/a%00b")[0], 400)
        code, _, body = self.world.ask("POST", "/api/v2/authn/basic/login", "&".join(["a=b"] * 1000), token=False,
                                       headers={"Content-Type": "application/x-www-form-urlencoded"})
        self.assertEqual(code, 400)
        self.assertTrue(json.loads(body)["message"])

    def test_guesses_lock_nobody_out(self):
        login = "/api/v2/authn/basic/login"
        code = 400
        for _ in range(30):
            code, headers, body = self.world.ask("POST", login, json.dumps({"username": "admin", "password": "guessed"}), token=False)
            if code != 400:
                break
        self.assertEqual(code, 429)
        self.assertGreaterEqual(int(headers["Retry-After"]), 1)
        self.assertEqual(json.loads(body)["code"], "BusyError")
        # from the same address: the command line shows the token that it has
        self.world.login("admin", self.world.admin_password)

    def test_a_body_without_end(self):
        with socket.create_connection(("127.0.0.1", self.world.port)) as connection:
            connection.sendall(b"POST /api/v2/authn/basic/login HTTP/1.1\r\n" + HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
            with self.assertRaises(OSError):
                for _ in range(1000):
                    connection.sendall(b"10000\r\n" + b"x" * 65536 + b"\r\n")

    def test_idle_connections_make_room(self):
        idle = []
        try:
            for _ in range(4200):
                connection = socket.socket()
                connection.settimeout(10)
                idle.append(connection)
                connection.connect(("127.0.0.1", self.world.port))
        except OSError as error:
            if len(idle) < 3200:
                self.skipTest(f"only {len(idle)} connections: {error}")
        began = time.monotonic()
        self.assertEqual(self.world.ask("GET", "/healthz", token=False)[0], 200)
        self.assertLess(time.monotonic() - began, REQUEST_S / 2)
        for connection in idle:
            connection.close()

    def test_bad_chunks(self):
        login = b"POST /api/v2/authn/basic/login HTTP/1.1\r\n" + HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
        for body in (b"zz\r\nabc\r\n0\r\n\r\n", b"-1\r\nabc\r\n", b"ffffffffffffffffff\r\nabc\r\n", b"3\r\nabcdef\r\n0\r\n\r\n",
                     b"3;" + b"x" * 100000 + b"\r\nabc\r\n0\r\n\r\n", b"2\r\n{}\r\n0\r\n\r\n"):
            # 500 is the library's word for a chunk's head that is larger than its buffer
            code = status(self.world.raw(login + body, 5))
            self.assertTrue(code in (0, 500) or 400 <= code < 500, f"{body[:40]} got {code}")

    def test_errors_have_code_and_place(self):
        for method, path, body, code, name in (
                ("GET", "/api/v2/none", None, 404, "NoApiError"), ("GET", "/api/v2/jobs/a~b", None, 404, "NoJobError"),
                ("GET", "/api/v2/jobs?limit=x", None, 400, "InvalidParametersError"),
                ("POST", "/api/v2/jobs", "a: [", 400, "InvalidProtocolError"),
                ("POST", "/api/v2/jobs", "x" * (1 << 20 | 1), 413, "TooBigError"),
                ("POST", "/api/v2/jobs", "x" * (8 << 20), 413, "TooBigError"),
                ("POST", "/api/v2/nowhere", "x" * (1 << 19), 404, "NoApiError"),
                ("PUT", "/api/v2/nodes/none/pardon", None, 404, "NoNodeError"),
                ("PUT", "/api/v2/nodes/none/cordon", None, 404, "NoNodeError"),
                ("PUT", "/api/v2/nodes/none/drain", '{"reason": "so"}', 404, "NoNodeError"),
                ("PUT", "/api/v2/nodes/none/uncordon", None, 404, "NoNodeError")):
            got, _, data = self.world.ask(method, path, body, headers={"Content-Type": "text/plain"})
            self.assertEqual(got, code, data)
            self.assertIn(name.encode(), data)
        got, _, data = self.world.ask("POST", "/api/v2/jobs", "protocolVersion: 2\nnme: x\n")
        self.assertEqual(got, 400)
        self.assertIn(b'"line":2,"column":1', data)
        self.assertEqual(self.world.ask("GET", "/api/v2/jobs", token=None)[0], 401)

    def test_random_bytes(self):
        seed = int(os.environ.get("SEED", time.time_ns() & 0xffffffff))
        print("SEED", seed)
        chance = random.Random(seed)
        seeds = [b"GET /api/v2/jobs?keyword=a HTTP/1.1\r\n" + HEAD + b"Authorization: Bearer x.y.z\r\n\r\n",
                 b"POST /api/v1/token HTTP/1.1\r\n" + HEAD + b"Content-Type: application/json\r\nContent-Length: 30\r\n\r\n"
                 b'{"username":"a","password":""}',
                 b"GET /rest-server/api/v1/user/a/jobs/b%7ec/config HTTP/1.1\r\n" + HEAD + b"\r\n"]
        for _ in range(300):
            data = bytearray(chance.choice(seeds))
            for _ in range(chance.randrange(1, 8)):
                at = chance.randrange(len(data))
                data[at:at + chance.randrange(3)] = bytes(chance.randrange(256) for _ in range(chance.randrange(3)))
            code = status(self.world.raw(bytes(data) + b"\r\n\r\n", 0.3))
            # another version of HTTP is the one thing for which the standard wants a 5xx
            is_other = not data.split(b"\r\n")[0].endswith((b" HTTP/1.1", b" HTTP/1.0"))
            self.assertTrue(code < 500 or code == 505 and is_other, (code, bytes(data)))

    def test_another_version_of_http(self):
        self.assertEqual(status(self.world.raw(b"GET /healthz HTTP/8.1\r\n" + HEAD + b"\r\n")), 505)

    def test_slow_clients_do_not_hold_others_up(self):
        slow = []
        for _ in range(200):
            connection = socket.create_connection(("127.0.0.1", self.world.port))
            connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: ")
            slow.append(connection)
        began = time.monotonic()
        self.assertEqual(self.world.ask("GET", "/healthz")[0], 200)
        self.assertLess(time.monotonic() - began, REQUEST_S / 2)
        for connection in slow:
            connection.close()

    def bytes_held(self):
        return int(re.search(r"^skep_http_held_bytes (\d+)$", self.world.ask("GET", "/metrics", token=False)[2].decode(), re.M)[1])

    def test_replies_that_nobody_reads_are_bounded(self):
        large, path = {"large": "x" * 1000000}, "/api/v2/groups"
        for number in range(40):  # two such lists are more than one user may have on the way
            self.assertEqual(self.world.json("POST", path, {"groupname": f"large-{number}", "extension": large})[0], 201)
        token = self.world.add_user("reader")
        connection = socket.socket()
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.connect(("127.0.0.1", self.world.port))
        connection.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n\r\n".encode())
        waits.until(lambda: self.bytes_held() > 40000000, "the reply that nobody reads is counted")
        code, headers, body = self.world.ask("GET", path, token=token)
        self.assertEqual((code, json.loads(body)["code"], headers["Retry-After"]), (429, "BusyError", "1"))
        self.assertEqual(self.world.ask("GET", f"{path}?limit=1", token=token)[0], 200)
        self.assertEqual(self.world.ask("GET", path)[0], 200)  # an admin
        connection.close()
        waits.until(lambda: self.bytes_held() == 0, "the reply ends with its connection")
        code, _, body = self.world.ask("GET", path, token=token)
        self.assertEqual(code, 200)
        self.assertGreater(len(body), 40000000)

    def test_bodies_that_never_come_whole_are_bounded(self):
        token, large, slow = self.world.add_user("sender"), b"x" * 1000000, []
        head = f"POST /api/v2/jobs HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\nContent-Length: {len(large)}\r\n\r\n"

        def begin():
            connection = socket.create_connection(("127.0.0.1", self.world.port))
            connection.sendall(head.encode() + b"job")
            return connection

        def are_held():  # one that is silent for long, or not whole after longer, is closed: another takes its place
            for number, connection in enumerate(slow):
                try:
                    connection.sendall(b"s")
                except OSError:
                    connection.close()
                    slow[number] = begin()
            return self.bytes_held() == len(slow) * len(large)

        slow += [begin() for _ in range(67)]  # what one user may have on the way
        waits.until(are_held, "each counts as what it has announced")
        code, headers, body = self.world.ask("POST", "/api/v2/jobs", large, token=token)
        self.assertEqual((code, json.loads(body)["code"], headers["Retry-After"]), (429, "BusyError", "1"))
        self.assertEqual(self.world.ask("POST", "/api/v2/jobs", large)[0], 400)  # an admin
        for connection in slow:
            connection.close()
        waits.until(lambda: self.bytes_held() == 0, "a body ends with its connection")
        self.assertEqual(self.world.ask("POST", "/api/v2/jobs", large, token=token)[0], 400)

    def test_many_at_once(self):
        failures = []

        def submit(number):
            code, _, data = self.world.ask("POST", "/api/v2/jobs", job(f"many-{number}", ["true"]))
            if code != 202:
                failures.append((code, data))

        threads = [threading.Thread(target=submit, args=[i]) for i in range(100)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])
        _, reply = self.world.json("GET", "/api/v2/jobs?withTotalCount=true&keyword=many-")
        self.assertEqual(reply["totalCount"], 100)

    def test_deletions_and_starts_of_one_job_cost_nobody_else(self):
        for number in range(10):
            name = f"torn-{number}"
            self.assertEqual(self.world.ask("POST", "/api/v2/jobs", job(name, ["true"]))[0], 202)
            path = f"/api/v2/jobs/admin~{name}"
            stop = b'{"value": "STOP"}'
            self.assertIn(self.world.ask("PUT", f"{path}/executionType", stop)[0], (202, 409))  # or it has ended by itself
            self.world.skep("wait", "--quiet", name)
            codes = {"delete": [], "start": [], "submit": []}

            def ask(kind, *request):
                codes[kind].append(self.world.ask(*request)[0])

            threads = [threading.Thread(target=ask, args=("delete", "DELETE", path))]
            threads += [threading.Thread(target=ask, args=("start", "PUT", f"{path}/executionType", b'{"value": "START"}'))
                        for _ in range(4)]
            threads += [threading.Thread(target=ask, args=("submit", "POST", "/api/v2/jobs", job(f"by-{number}-{i}", ["true"])))
                        for i in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual(codes["submit"], [202] * 8)
            self.assertLessEqual(set(codes["delete"] + codes["start"]), {200, 202, 404, 409})
        metrics = self.world.ask("GET", "/metrics")[2].decode()
        self.assertIn("\nskep_store_commit_failures_total 0\n", metrics)

    def test_streams_end_with_the_server(self):
        """A client that follows a job sees a cut connection, not an end, when the server goes."""
        with world.World(run_ms=3600000) as other:
            self.assertEqual(other.skep("submit", other.file(job("long", ["sleep 1000"]))).returncode, 0)
            connection = socket.create_connection(("127.0.0.1", other.port), timeout=30)
            connection.sendall(b"GET /api/v2/jobs/long/events?follow=true HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer "
                               + other.token().encode() + b"\r\n\r\n")
            reply = b""
            while b"Started" not in reply:
                reply += connection.recv(65536)
            self.assertEqual(other.stop(), 0)
            try:
                while part := connection.recv(65536):
                    reply += part
            except ConnectionResetError:
                pass
            connection.close()
            self.assertFalse(reply.endswith(b"0\r\n\r\n"))

    def test_who_guesses_makes_no_administrator_wait_after_a_restart(self):
        def login(password, address):
            connection = http.client.HTTPConnection("127.0.0.1", other.port, timeout=waits.PATIENCE_S)
            connection.request("POST", "/api/v2/authn/basic/login", json.dumps({"username": "admin", "password": password}),
                               {"Content-Type": "application/json", "X-Forwarded-For": address})
            with contextlib.closing(connection):
                return connection.getresponse().status
        other = world.World()
        with (other.folder / "skepd.yaml").open("a") as file:
            file.write("api: {proxies: [127.0.0.1]}\n")  # all addresses of this machine are one
        with other:
            self.assertEqual(login(other.admin_password, "10.0.0.1"), 200)
            self.assertEqual(other.stop(), 0)
            other.start()
            self.assertEqual(login("a-guess", "10.0.0.2"), 400)
            strangers = (f"10.0.1.{number}" for number in itertools.count(1))  # one who logs in is none any more

            def are_braked():  # on a slow machine a try may come when the pause is over, and the next pause is longer
                return [login("a-guess", "10.0.0.2"), login(other.admin_password, next(strangers))] == [429, 429]

            waits.until(are_braked, "guesses and strangers are slowed down")
            self.assertEqual(login(other.admin_password, "10.0.0.1"), 200)


if __name__ == "__main__":
    world.main()
