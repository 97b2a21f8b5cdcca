"""Real jobs that have storages mounted, those that may not, and storages that come and go: storages.py SKEPD

Covers: src/server/storage_list.c
"""
import http.client
import json
import pathlib
import signal
import sys
import tempfile
import unittest

import skepd as server
import waits

SKEPD = sys.argv.pop(1) if __name__ == "__main__" else ""


class Storages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="skepd-test-")
        cls.places = {name: pathlib.Path(cls.folder.name, name) for name in ("corpus", "homes", "open")}
        for place in cls.places.values():
            place.mkdir()
        (cls.places["corpus"] / "words").write_text("one two\n")
        cls.config = {
            "engine": {"kind": "local", "cpu": 8, "memoryMB": 4096, "images": {"localRoots": [cls.folder.name]}},
            "storages": [
                {"name": "corpus", "directory": str(cls.places["corpus"]), "readOnly": True},
                {"name": "home", "directory": str(cls.places["homes"]), "share": False},
                {"name": "open", "directory": str(cls.places["open"])},
            ],
        }
        cls.skepd = server.Skepd(SKEPD, cls.config, cls.folder.name)
        cls.image = server.busybox_image(cls.skepd.directory)
        cls.skepd.start()
        cls.skepd.login()
        cls.put("POST", "groups", {"groupname": "lab", "extension": {"acls": {"storageConfigs": ["home", "corpus"]}}})
        cls.put("POST", "users", {"username": "ann", "password": "a-password"})
        cls.put("PUT", "users/ann/group", {"groupname": "lab"})
        cls.ann = cls.put("POST", "tokens", {"username": "ann", "password": "a-password"})["token"]

    @classmethod
    def tearDownClass(cls):
        cls.skepd.stop()
        cls.skepd.remove()
        cls.folder.cleanup()

    @classmethod
    def put(cls, method, what, body):
        return cls.skepd.call(method, f"/api/v2/{what}", json.dumps(body))

    def submit(self, name, command, storages, token=None):
        text = server.job_file(name, {"main": (1, command, {})}, self.image, {"extras": {"storages": storages}})
        return self.skepd.call("POST", "/api/v2/jobs", text, token=token or self.ann, kind="text/yaml")

    def run_job(self, name, command, storages):
        self.submit(name, command, storages)
        state = self.skepd.wait_final([f"ann~{name}"])[f"ann~{name}"]
        self.assertEqual(state, "SUCCEEDED", self.skepd.job(f"ann~{name}"))

    def test_what_is_written_stays(self):
        self.run_job("write", "cat /mnt/corpus/words > /work/copy; ! touch /mnt/corpus/new",
                     [{"name": "corpus"}, {"name": "home", "mountPath": "/work"}])
        self.assertEqual((self.places["homes"] / "ann/copy").read_text(), "one two\n")
        self.assertFalse((self.places["corpus"] / "new").exists())

    def test_an_empty_list_means_the_defaults(self):
        self.run_job("defaults", "echo here > /mnt/home/default; test ! -e /mnt/corpus", [])
        self.assertEqual((self.places["homes"] / "ann/default").read_text(), "here\n")

    def test_who_has_no_default_is_told(self):
        self.put("POST", "users", {"username": "bob", "password": "a-password"})
        token = self.put("POST", "tokens", {"username": "bob", "password": "a-password"})["token"]
        answer = self.submit("nothing", "true", [], token)
        self.assertRegex(answer["warnings"], r"job:\d+:1: warning: extras.storages: you have no default storage: nothing is mounted")
        self.put("POST", "groups", {"groupname": "old", "extension": {"acls": {"storageConfigs": ["gone"]}}})
        self.put("PUT", "users/bob/group", {"groupname": "old"})
        self.assertIn("your default storage gone is not there", self.submit("gone", "true", [], token)["warnings"])
        self.skepd.wait_final(["bob~nothing", "bob~gone"])  # a server that ends leaves what runs to the next one

    def test_files_go_from_and_to_tasks(self):
        """What is uploaded a task reads, also one that is not root; what it writes comes back."""
        data = b"epochs: 3\n"
        for storage in ("home",):
            upload = self.send("POST", f"{storage}/uploads", json.dumps({"path": "run.yaml", "size": len(data)}))["id"]
            self.send("PUT", f"{storage}/uploads/{upload}?offset=0", data, "application/octet-stream")
            self.send("POST", f"{storage}/uploads/{upload}", "")
        self.send("POST", "home/folders", json.dumps({"path": "made"}))
        self.run_job("files", "cat /mnt/home/run.yaml > /mnt/home/made/copy; echo more >> /mnt/home/run.yaml; "
                     "mkfifo /mnt/home/fifo; ln -s /etc/shadow /mnt/home/shadow; chmod 4755 /mnt/home/made/copy",
                     [{"name": "home"}])
        self.assertEqual(self.fetch("home/file?path=made/copy"), "epochs: 3\n")
        self.assertEqual(self.fetch("home/file?path=run.yaml"), "epochs: 3\nmore\n")
        for path in ("fifo", "shadow"):
            with self.assertRaises(server.Refused) as refused:
                self.fetch(f"home/file?path={path}")
            self.assertEqual(refused.exception.status, 400)

    def send(self, method, what, body, kind="application/json"):
        return self.skepd.call(method, f"/api/v2/storages/{what}", body, token=self.ann, kind=kind)

    def fetch(self, what):
        connection = http.client.HTTPConnection("127.0.0.1", self.skepd.port, timeout=60)
        connection.request("GET", f"/api/v2/storages/{what}", headers={"Authorization": f"Bearer {self.ann}"})
        reply = connection.getresponse()
        text = reply.read().decode()
        connection.close()
        if reply.status != 200:
            raise server.Refused(reply.status, text)
        return text

    def offer(self, storages, wanted):
        """Reloads with these storages, until those of the names are offered."""
        self.skepd.write_config({**self.config, "storages": storages})
        self.skepd.process.send_signal(signal.SIGHUP)
        return waits.until(lambda: self.offered() == wanted, "the storages are offered")

    def offered(self):
        return sorted(one["name"] for one in self.skepd.call("GET", "/api/v2/storage/health")["storages"])

    def health(self, name):
        storages = self.skepd.call("GET", "/api/v2/storage/health")["storages"]
        return next(one for one in storages if one["name"] == name)

    def test_a_reload_makes_and_withdraws(self):
        """What runs keeps what it has; the next one has what is offered then."""
        before = self.config["storages"]
        self.addCleanup(self.offer, before, sorted(one["name"] for one in before))
        self.submit("keeps", "touch /mnt/home/begun; while ! test -e /mnt/home/go; do sleep 0.2; done; echo kept > /mnt/home/kept",
                    [{"name": "home"}])
        waits.until(lambda: (self.places["homes"] / "ann/begun").exists(), "the task runs")
        waits.until(lambda: self.health("home")["health"]["state"] == "well", "the folder was looked at")
        waits.until(lambda: self.health("home")["jobs"] == 1, "the server knows that the task runs")
        self.assertGreater(self.health("home")["health"]["totalBytes"], 0)

        new = self.places["open"] / "new"
        self.offer([{"name": "new", "directory": str(new)}], ["new"])
        waits.until(lambda: self.health("new")["health"]["state"] == "absent", "it is not there")
        self.assertEqual(self.health("new")["health"]["message"], f"{new} cannot be opened: No such file or directory")
        with self.assertRaises(server.Refused) as refused:
            self.fetch("home/file?path=begun")
        self.assertIn("NoStorageError", refused.exception.body)
        with self.assertRaises(server.Refused) as refused:
            self.submit("late", "true", [{"name": "home"}])
        self.assertEqual(refused.exception.status, 404)
        (self.places["homes"] / "ann/go").touch()
        self.assertEqual(self.skepd.wait_final(["ann~keeps"])["ann~keeps"], "SUCCEEDED")
        self.assertEqual((self.places["homes"] / "ann/kept").read_text(), "kept\n")

        new.mkdir()
        (new / "words").write_text("three\n")
        waits.until(lambda: self.health("new")["health"]["state"] == "well", "it is there")
        self.put("POST", "groups", {"groupname": "news", "extension": {"acls": {"storageConfigs": ["new"]}}})
        self.put("PUT", "users/ann/group", {"groupname": "news"})
        self.assertEqual(self.fetch("new/file?path=words"), "three\n")
        self.run_job("new", "grep three /mnt/new/words", [{"name": "new"}])

    def test_refused(self):
        for name, status, code in (("open", 403, "ForbiddenUserError"), ("none", 404, "NoStorageError")):
            with self.assertRaises(server.Refused) as refused:
                self.submit("refused", "true", [{"name": name}])
            self.assertEqual(refused.exception.status, status)
            self.assertIn(code, refused.exception.body)
            self.assertIn("line ", refused.exception.body)


if __name__ == "__main__":
    unittest.main()
