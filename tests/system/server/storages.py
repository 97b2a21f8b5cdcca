"""Real jobs that have storages mounted, and those that may not: storages.py SKEPD"""
import json
import pathlib
import sys
import tempfile
import unittest

import skepd as server

SKEPD = sys.argv.pop(1) if __name__ == "__main__" else ""


class Storages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="skepd-test-")
        cls.places = {name: pathlib.Path(cls.folder.name, name) for name in ("corpus", "homes", "open")}
        for place in cls.places.values():
            place.mkdir()
        (cls.places["corpus"] / "words").write_text("one two\n")
        config = {
            "engine": {"kind": "local", "cpu": 8, "memoryMB": 4096, "images": {"localRoots": [cls.folder.name]}},
            "storages": [
                {"name": "corpus", "directory": str(cls.places["corpus"]), "readOnly": True},
                {"name": "home", "directory": str(cls.places["homes"]), "share": False},
                {"name": "open", "directory": str(cls.places["open"])},
            ],
        }
        cls.skepd = server.Skepd(SKEPD, config, cls.folder.name)
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

    def test_refused(self):
        for name, status, code in (("open", 403, "ForbiddenUserError"), ("none", 404, "NoStorageError")):
            with self.assertRaises(server.Refused) as refused:
                self.submit("refused", "true", [{"name": name}])
            self.assertEqual(refused.exception.status, status)
            self.assertIn(code, refused.exception.body)
            self.assertIn("line ", refused.exception.body)


if __name__ == "__main__":
    unittest.main()
