"""Streams over HTTP end with the token by which they were opened, or with the right, at once.

Covers: src/api/stream_guard.c, src/api/http_watch.c
"""
import http.client
import json
import time
import unittest

import world

LIFE_S = 60  # the shortest that a token may have
AT_ONCE_S = 60  # a loaded machine is slow; nothing would end such a stream within minutes otherwise


class StreamsEnd(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.world = world.World(run_ms=600000).__enter__()
        cls.expiring = None

    @classmethod
    def tearDownClass(cls):
        cls.world.__exit__()

    def login(self, name):
        """Once more: another token."""
        status, reply = self.world.json("POST", "/api/v2/authn/basic/login", {"username": name, "password": f"{name}-password"}, token=False)
        self.assertEqual(status, 200, reply)
        return reply["token"]

    def follow(self, token, path="/api/v2/changes"):
        """A stream that has told its first line."""
        connection = http.client.HTTPConnection("127.0.0.1", self.world.port, timeout=AT_ONCE_S)
        headers = {"Authorization": "Bearer " + token} if token else {}
        connection.request("GET", path, headers=headers)
        reply = connection.getresponse()
        self.addCleanup(connection.close)
        self.assertEqual(reply.status, 200)
        if path.endswith("changes"):
            self.assertIn(b"start", reply.readline())
        return reply

    def ends(self, stream):
        """It is cut, not ended: the client must not take it for whole."""
        with self.assertRaises((http.client.IncompleteRead, ConnectionError)):
            while stream.read(1 << 16):
                pass

    def goes_on(self, stream, name):
        """What happens next is told."""
        done = self.world.skep("submit", self.world.file(world.job(name, ["x"])))
        self.assertEqual(done.returncode, 0, done.stderr)
        line = b"?"
        while line and name.encode() not in line:
            line = stream.readline()
        self.assertTrue(line, "the stream has ended")

    def test_ends(self):
        other = self.follow(self.world.add_user("other"))
        token = self.world.add_user("logout")
        stream, second = self.follow(token), self.follow(self.login("logout"))
        self.assertEqual(self.world.json("DELETE", "/api/v2/authn/basic/logout", token=token)[0], 200)
        self.ends(stream)
        self.goes_on(second, "another-token")

        stream = self.follow(self.world.add_user("idle"))
        self.assertEqual(self.world.skep("user", "deactivate", "idle").returncode, 0)
        self.ends(stream)

        stream = self.follow(self.world.add_user("gone"))
        self.assertEqual(self.world.skep("user", "remove", "gone").returncode, 0)
        self.ends(stream)

        stream = self.follow(self.world.add_user("changed"))
        status, reply = self.world.json("PUT", "/api/v2/users", {"patch": True, "data": {"username": "changed", "password": "another-one"}})
        self.assertEqual(status, 201, reply)
        self.ends(stream)
        self.goes_on(other, "another-user")

    def test_an_admin_is_none_any_more(self):
        self.assertEqual(self.world.skep("submit", self.world.file(world.job("led", ["x"]))).returncode, 0)
        token = self.world.add_user("chief")
        is_admin = lambda is_one: {"patch": True, "data": {"username": "chief", "admin": is_one}}  # noqa: E731
        self.assertEqual(self.world.json("PUT", "/api/v2/users", is_admin(True))[0], 201)
        log, changes = self.follow(token, "/api/v2/jobs/admin~led/logs?follow=true"), self.follow(token)
        self.assertEqual(self.world.json("PUT", "/api/v2/users", is_admin(False))[0], 201)
        self.ends(log)
        self.goes_on(changes, "what-everybody-may-see")

    def test_an_expiring_token(self):
        token, begun = self.world.add_user("short"), time.monotonic()
        status, reply = self.world.json("POST", "/api/v2/tokens/application", {"expiration": LIFE_S}, token=token)
        self.assertEqual(status, 200, reply)
        stream = self.follow(reply["token"])
        # the stream says every 15 s that it lives: the wait is for its lines, and for its end
        self.ends(stream)
        lived = time.monotonic() - begun
        self.assertTrue(LIFE_S - 2 < lived < LIFE_S + AT_ONCE_S, f"{lived} s")  # the token knows whole seconds
        self.assertEqual(self.world.ask("GET", "/api/v2/jobs", token=reply["token"])[0], 401)

    def test_a_link(self):
        done = self.world.skep("submit", "--quiet", self.world.file(world.job("linked", ["x"])))
        self.assertEqual(done.returncode, 0, done.stderr)
        status, reply = self.world.json("POST", "/api/v2/tokens/application", {"scope": "admin"})
        token = reply["token"]
        path = "/api/v2/jobs/admin~linked/attempts/0/taskRoles/worker/taskIndex/0/attempts/0/logs"
        status, _, data = self.world.ask("GET", path, token=token)
        self.assertEqual(status, 200, data)
        link = json.loads(data)["locations"][0]["uri"]
        stream = self.follow(None, link + "&follow=true")
        self.assertEqual(self.world.json("DELETE", "/api/v2/tokens/" + token)[0], 200)
        self.ends(stream)
        self.assertEqual(self.world.ask("GET", link, token=False)[0], 401)


if __name__ == "__main__":
    world.main()
