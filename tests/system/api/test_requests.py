"""Requests for virtual clusters and accounts, with a real skepd: over kill -9, by several at once, and by strangers.

Covers: src/api/request.c, src/api/sign_up.c, src/store/requests.c
"""
import json
import signal
import threading
import unittest

import world
from world import job

CELLS = """\
physicalCluster:
  cellTypes:
    NODE: {childCellType: FAKE, childCellNumber: 4, isNodeLevel: true}
  physicalCells: [{cellType: NODE, cellAddress: fake0}, {cellType: NODE, cellAddress: fake1}]
virtualClusters:
  default: {virtualCells: [{cellType: NODE, cellNumber: 1}]}
  red: {virtualCells: [{cellType: NODE, cellNumber: 1}]}
"""
ASKS = ("request", "account", "carol", "--email", "carol@example.org", "--password-stdin", "--reason", "a course")
PASSWORD = "carol-password"


class Requests(unittest.TestCase):
    def setUp(self):
        self.world = world.World(run_ms=100)
        self.config = self.world.folder / "skepd.yaml"
        cells = self.world.folder / "cells.yaml"
        cells.write_text(CELLS)
        self.config.write_text(self.config.read_text() + f"\nscheduling: {{policy: hived, cellsFile: {cells}}}\n")
        self.world.__enter__()
        self.addCleanup(self.world.__exit__)
        self.ok("user", "add", "--password-stdin", "alice", stdin="alice-password\n")
        self.world.login("alice", "alice-password")

    def ok(self, *words, **more):
        done = self.world.skep(*words, **more)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def restart(self):
        self.world.stop(signal.SIGKILL)
        self.world.start()

    def requests(self, *words, user="admin"):
        return json.loads(self.ok("request", "list", "-o", "json", *words, user=user))

    def submit(self, user):
        text = job("try", ["true"], gpu=1, extra="defaults: {virtualCluster: red}\n")
        return self.world.skep("submit", self.world.file(text), user=user)

    def test_a_virtual_cluster_is_asked_for_and_granted(self):
        refused = self.submit("alice")
        self.assertIn("not allowed to do operation in red", refused.stderr)
        self.assertIn("there is no virtual cluster blue", self.world.skep("request", "ask", "blue", user="alice").stderr)
        said = self.ok("request", "ask", "--reason", "a course", "red", user="alice")
        number = said.split()[-1]
        self.assertEqual(said, f"asked for the virtual cluster red: request {number}\n")
        self.assertEqual(self.ok("request", "ask", "red", user="alice"), said, "it is open already")
        self.restart()
        self.assertRegex(self.ok("request", "list"), rf"(?m)^{number} +alice +virtual cluster red +open .*a course")
        self.assertIn("Non-admin", self.world.skep("request", "accept", number, user="alice").stderr)
        self.ok("group", "add", "lab", "--vc", "red")
        self.assertEqual(self.ok("request", "accept", "--group", "lab", "--reason", "for a month", number), f"accepted {number}\n")
        self.restart()
        self.assertRegex(self.ok("request", "list", user="alice"), r"accepted by admin \(lab\) .* for a month")
        self.assertIn("it was accepted by admin at", self.world.skep("request", "refuse", "--reason", "x", number).stderr)
        done = self.submit("alice")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("alice may use red already", self.world.skep("request", "ask", "red", user="alice").stderr)
        record, = [one for one in json.loads(self.ok("audit", "--subject", number, "-o", "json"))
                   if one["outcome"] == "done" and one["after"].get("status") == "accepted"]
        self.assertEqual((record["before"]["groups"], record["after"]["groups"]), (["default"], ["default", "lab"]))

    def test_one_of_many_decides(self):
        number = self.ok("request", "ask", "red", user="alice").split()[-1]
        answers = []

        def decide(status):
            body = {"status": status, **({"reason": "no"} if status == "refused" else {})}
            answers.append((self.world.json("PUT", f"/api/v2/requests/{number}/status", body)[0], status))
        threads = [threading.Thread(target=decide, args=(status,)) for status in ("accepted", "refused") * 4]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        done = [status for code, status in answers if code == 200]
        self.assertEqual(len(done), 1, answers)
        self.assertEqual({code for code, _ in answers}, {200, 409}, answers)
        row, = self.requests()
        self.assertEqual(row["status"], done[0])
        granted = self.world.json("GET", "/api/v2/users/alice")[1]["ownVirtualCluster"]
        self.assertEqual(granted, ["red"] if done[0] == "accepted" else [])

    def test_refused_withdrawn_and_gone(self):
        first = self.ok("request", "ask", "red", user="alice").split()[-1]
        self.ok("request", "refuse", "--reason", "it is full", first)
        self.assertIn("it is full", self.ok("request", "list", user="alice"))
        second = self.ok("request", "ask", "red", user="alice").split()[-1]
        self.assertNotEqual(first, second)
        self.assertEqual(self.ok("request", "withdraw", second, user="alice"), f"withdrew {second}\n")
        self.ok("request", "withdraw", second, user="alice")
        self.assertEqual([one["status"] for one in self.requests(user="alice")], ["withdrawn", "refused"])
        self.ok("user", "remove", "alice")
        self.assertEqual(self.requests(), [])

    def test_the_name_of_a_removed_user(self):
        """Its folders in storages would become another one's: somebody has to say so."""
        self.world.stop()
        self.config.write_text(self.config.read_text() + "auth: {signUp: request}\nstorages: [{name: home, directory: /srv, share: false}]\n")
        self.world.start()
        self.ok("user", "remove", "alice")
        self.ok("request", "account", "alice", "--email", "new@example.org", "--password-stdin", user="carol", stdin=PASSWORD + "\n")
        self.restart()
        request = self.requests("--status", "open")[0]
        self.assertEqual((request["nameTaken"], request["nameUsedBefore"]), (False, True))
        self.assertIn("the name was used before", self.ok("request", "list"))
        status, refused = self.world.json("PUT", f"/api/v2/requests/{request['id']}/status", {"status": "accepted"})
        self.assertEqual((status, refused["code"]), (409, "UsedNameError"))
        self.assertIn("there was a user alice before", self.world.skep("request", "accept", request["id"]).stderr)
        self.ok("request", "accept", "--reuse-name", request["id"])
        self.world.login("alice", PASSWORD)
        # likewise of a user whom an administrator makes
        self.ok("user", "remove", "alice")
        status, refused = self.world.json("POST", "/api/v2/users", {"username": "alice", "password": PASSWORD})
        self.assertEqual((status, refused["code"]), (409, "UsedNameError"))
        self.ok("user", "add", "alice", "--no-password", "--reuse-name")
        denied = self.world.skep("login", "--username", "alice", "--password-stdin", user="carol", stdin=PASSWORD + "\n")
        self.assertIn("Password is incorrect", denied.stderr)

    def test_a_visitor_asks_for_an_account(self):
        self.assertIn("takes no requests for accounts", self.world.skep(*ASKS, user="carol", stdin=PASSWORD + "\n").stderr)
        self.assertEqual(self.world.json("GET", "/api/v2/authn/info", token=False)[1]["signUp"], "off")
        self.world.stop()
        self.config.write_text(self.config.read_text() + "auth: {signUp: request}\n")
        self.world.start()
        self.assertEqual(self.world.json("GET", "/api/v2/authn/info", token=False)[1]["signUp"], "request")
        self.assertEqual(self.ok(*ASKS, user="carol", stdin=PASSWORD + "\n"), "asked for the account carol\n")
        # of a name that is taken the reply is the same
        body = {"username": "alice", "password": "another-password", "email": "a@example.org"}
        taken = self.world.json("POST", "/api/v2/requests/account", body, token=False)
        free = self.world.json("POST", "/api/v2/requests/account", body | {"username": "dave"}, token=False)
        self.assertEqual(taken, free)
        self.assertEqual(free[0], 202)
        self.restart()
        denied = self.world.skep("login", "--username", "carol", "--password-stdin", user="carol", stdin=PASSWORD + "\n")
        self.assertIn("Password is incorrect", denied.stderr)
        self.assertEqual(self.world.json("GET", "/api/v2/users/carol")[0], 404)
        rows = {one["username"]: one for one in self.requests("--status", "open")}
        self.assertEqual({name: row["nameTaken"] for name, row in rows.items()}, {"carol": False, "alice": True, "dave": False})
        self.assertEqual(rows["carol"]["address"], "127.0.0.1")
        self.assertIn("exists", self.world.skep("request", "accept", rows["alice"]["id"]).stderr)
        self.ok("request", "refuse", "--reason", "the name is taken", rows["alice"]["id"])
        self.ok("request", "accept", rows["carol"]["id"])
        self.restart()
        self.world.login("carol", PASSWORD)
        self.assertEqual(self.world.json("GET", "/api/v2/users/carol")[1]["grouplist"], ["default"])
        # nothing of a password is left, nor in the audit log
        everything = b"".join(path.read_bytes() for path in (self.world.folder / "data").rglob("*") if path.is_file())
        self.assertNotIn(PASSWORD.encode(), everything)
        self.assertNotIn("argon2", self.ok("audit", "-o", "json"))
        # strangers are slowed down; the server has counted none since it was started, and nobody of this network waits
        self.ok("request", "refuse", "--reason", "we do not know you", rows["dave"]["id"])
        codes = [self.world.json("POST", "/api/v2/requests/account", body | {"username": f"e{i}"}, token=False)[0] for i in range(11)]
        self.assertEqual(codes, [202] * 10 + [429])
        refused = self.world.json("POST", "/api/v2/requests/account", body | {"username": "e11"}, token=False)[1]
        self.assertIn("from your network wait already", refused["message"])


if __name__ == "__main__":
    world.main()
