"""Files of storages through the API and the command line of a real skepd: uploads, downloads, limits, cut connections.

Covers: src/api/file_task.c, src/api/files.c, src/api/download.c, src/api/upload.c, src/cli/cmd_storage.c
"""
import hashlib
import http.client
import json
import os
import signal
import socket
import struct
import unittest
import urllib.parse

import waits
import world

PART = 1 << 20
API = "/api/v2/storages/"
FILES, UPLOADS = API + ":storage/files", API + ":storage/uploads"


class Files(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.world = world.World()
        cls.place = cls.world.folder / "storages"
        for name in ("open", "home", "fixed"):
            (cls.place / name).mkdir(parents=True)
        with (cls.world.folder / "skepd.yaml").open("a") as config:
            config.write(f"""
api: {{uploadMaxMB: 64}}
storages:
  - {{name: open, directory: {cls.place}/open}}
  - {{name: home, directory: {cls.place}/home, share: false}}
  - {{name: fixed, directory: {cls.place}/fixed, readOnly: true}}
  - {{name: claim, claim: data}}
""")
        cls.world.__enter__()
        cls.world.json("POST", "/api/v2/groups", {"groupname": "lab", "extension": {"acls": {"storageConfigs": ["home"]}}})
        cls.world.add_user("ann")
        cls.world.json("PUT", "/api/v2/users/ann/group", {"groupname": "lab"})

    @classmethod
    def tearDownClass(cls):
        cls.world.__exit__()

    def setUp(self):
        for folder in (self.place / "open", self.place / "fixed"):
            for path in sorted(folder.rglob("*"), reverse=True):
                path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()

    def ask(self, method, path, body=None, status=200, token=True):
        found, answer = self.world.json(method, API + path, body, token)
        self.assertEqual(found, status, answer)
        return answer

    def names(self, folder="open"):
        return sorted(path.name for path in (self.place / folder).iterdir())

    def put(self, path, data, storage="open", status=201, **more):
        upload = self.ask("POST", f"{storage}/uploads", {"path": path, "size": len(data)} | more, 201)
        for at in range(0, len(data), PART):
            self.part(f"{storage}/uploads/{upload['id']}", at, data[at:at + PART])
        return self.ask("POST", f"{storage}/uploads/{upload['id']}", None, status)

    def part(self, upload, at, data, status=200):
        found, _, answer = self.world.ask("PUT", f"{API}{upload}?offset={at}", data, True, {"Content-Type": "application/octet-stream"})
        self.assertEqual(found, status, answer)
        return json.loads(answer)

    def get(self, path, storage="open", headers=(), token=True):
        return self.world.ask("GET", f"{API}{storage}/file?path={urllib.parse.quote(path)}", None, token, headers)

    # ---- what it is for ----

    def test_what_is_uploaded_comes_back(self):
        data = os.urandom(3 * PART + 17)
        self.ask("POST", "open/folders", {"path": "data"}, 201)
        self.assertEqual(self.put("data/model ü.bin", data), {"path": "data/model ü.bin", "size": len(data)})
        self.assertEqual((self.place / "open/data/model ü.bin").read_bytes(), data)
        status, headers, found = self.get("data/model ü.bin")
        self.assertEqual((status, found), (200, data))
        self.assertEqual(headers["Content-Disposition"], "attachment; filename*=UTF-8''model%20%C3%BC.bin")
        self.assertEqual(headers["X-Content-Type-Options"], "nosniff")
        self.assertEqual(headers["Content-Type"], "application/octet-stream")
        self.assertIn("sandbox", headers["Content-Security-Policy"])
        self.assertEqual(headers["X-Skep-Length"], str(len(data)))
        self.put("empty", b"")
        self.assertEqual(self.get("empty")[2], b"")

    def test_a_part_of_a_file(self):
        self.put("words", b"one two three")
        status, headers, found = self.get("words", headers={"Range": "bytes=4-6"})
        self.assertEqual((status, found, headers["Content-Range"]), (206, b"two", "bytes 4-6/13"))
        self.assertEqual(self.get("words", headers={"Range": "bytes=99-"})[0], 416)

    def test_list_in_pages(self):
        for name in ("b", "a", "c"):
            self.put(name, b"x")
        self.ask("POST", "open/folders", {"path": "d"}, 201)
        files = self.ask("GET", "open/files")["files"]
        self.assertEqual([(f["name"], f["kind"], f["size"]) for f in files], [("a", "file", 1), ("b", "file", 1), ("c", "file", 1), ("d", "folder", 0)])
        page = self.ask("GET", "open/files?limit=3&cursor=")
        self.assertEqual([f["name"] for f in page["data"]], ["a", "b", "c"])
        page = self.ask("GET", f"open/files?limit=3&cursor={page['cursor']}")
        self.assertEqual(([f["name"] for f in page["data"]], page["cursor"]), (["d"], None))

    def test_rename_and_remove(self):
        self.put("old", b"x")
        self.ask("PUT", "open/files", {"path": "old", "newPath": "new"})
        self.put("old", b"y")
        self.ask("PUT", "open/files", {"path": "old", "newPath": "new"}, 409)
        self.ask("DELETE", "open/files?path=old")
        self.ask("DELETE", "open/files?path=old", status=404)
        self.assertEqual(self.names(), ["new"])

    def test_a_link_for_a_browser_opens_one_file(self):
        self.put("words", b"one two")
        self.put("other", b"x")
        uri = self.ask("POST", "open/links", {"path": "words"})["uri"]
        self.assertEqual(self.world.ask("GET", uri, token=False)[2], b"one two")
        self.assertEqual(self.world.ask("GET", uri + "&path=other", token=False)[2], b"one two")
        other = uri.replace(b"words".hex(), b"other".hex())
        self.assertNotEqual(other, uri)
        self.assertEqual(self.world.ask("GET", other, token=False)[0], 401)

    def test_clients_that_go_leave_no_place_taken(self):
        (self.place / "open/large").mkdir()
        for i in range(20000):
            (self.place / f"open/large/{i}").touch()
        request = (f"GET {API}open/files?path=large HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {self.world.token()}\r\n\r\n").encode()

        def all_taken():
            """As many requests as a user may have wait for the storage; their connections."""
            connections = [socket.create_connection(("127.0.0.1", self.world.port)) for _ in range(4)]
            for connection in connections:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                connection.sendall(request)
            is_taken = self.world.ask("GET", API + "open/files?path=large")[0] == 429
            for connection in connections:
                connection.close()  # at once, with a reset
            return is_taken

        waits.until(all_taken, "all places are taken")
        # each of them is free again: 4 requests at once get an answer
        waits.until(lambda: self.all_answered(request), "all places are free")

    def all_answered(self, request):
        connections = [socket.create_connection(("127.0.0.1", self.world.port), timeout=60) for _ in range(4)]
        for connection in connections:
            connection.sendall(request)
        heads = [connection.recv(12) for connection in connections]
        for connection in connections:
            connection.close()
        return all(head == b"HTTP/1.1 200" for head in heads)

    # ---- who may ----

    def test_rights_are_those_of_mounting(self):
        ann = self.world.token("ann")
        self.ask("GET", "open/files", status=403, token=ann)
        self.ask("GET", "none/files", status=404, token=ann)
        self.assertEqual(self.ask("GET", "home/files", token=ann), {"files": []})
        self.put("mine", b"x", "home")
        self.assertEqual((self.place / "home/admin/mine").read_bytes(), b"x")
        self.assertEqual((self.place / "home/admin/mine").stat().st_mode & 0o7777, 0o666)
        self.assertEqual(self.ask("GET", "home/files", token=ann), {"files": []})
        self.ask("GET", "home/files?path=../admin", status=400, token=ann)
        self.assertEqual(self.world.json("GET", API + "home/files", token=False)[0], 401)

    def test_read_only_and_claims(self):
        (self.place / "fixed/words").write_text("one")
        self.assertEqual(self.get("words", "fixed")[2], b"one")
        self.ask("POST", "fixed/uploads", {"path": "new", "size": 1}, 403)
        self.ask("DELETE", "fixed/files?path=words", status=403)
        self.assertIn("claim of Kubernetes", self.ask("GET", "claim/files", status=400)["message"])

    def test_another_ones_upload_is_not_there(self):
        upload = self.ask("POST", "home/uploads", {"path": "x", "size": 1}, 201)["id"]
        ann = self.world.token("ann")
        for method in ("GET", "POST", "DELETE"):
            self.ask(method, f"home/uploads/{upload}", status=404, token=ann)
        self.ask("DELETE", f"home/uploads/{upload}")
        self.ask("GET", f"home/uploads/{upload}", status=404)

    def test_links_and_devices_are_not_opened(self):
        (self.place / "open/out").symlink_to("/etc")
        (self.place / "open/passwd").symlink_to("/etc/passwd")
        os.mkfifo(self.place / "open/fifo")
        for path in ("out/passwd", "passwd", "fifo"):
            self.assertEqual(self.get(path)[0], 400, path)
        self.ask("GET", "open/files?path=out", status=400)
        self.ask("POST", "open/uploads", {"path": "out/new", "size": 1}, 400)
        self.assertEqual({f["kind"] for f in self.ask("GET", "open/files")["files"]}, {"other"})

    # ---- limits ----

    def test_limits(self):
        self.ask("POST", "open/uploads", {"path": "x", "size": (64 << 20) + 1}, 413)
        self.ask("POST", "open/uploads", {"path": "x", "size": -1}, 400)
        self.ask("POST", "open/uploads", {"path": "x", "size": 1, "sizes": 2}, 400)
        uploads = [self.ask("POST", "open/uploads", {"path": f"x{i}", "size": 1}, 201)["id"] for i in range(8)]
        self.assertIn("8 uploads under way", self.ask("POST", "open/uploads", {"path": "more", "size": 1}, 429)["message"])
        for upload in uploads:
            self.ask("DELETE", f"open/uploads/{upload}")
        self.assertEqual(self.names(), [])

    def test_parts_in_their_order(self):
        upload = "open/uploads/" + self.ask("POST", "open/uploads", {"path": "x", "size": 4}, 201)["id"]
        self.part(upload, 1, b"bc", 409)
        self.assertEqual(self.part(upload, 0, b"ab")["received"], 2)
        self.part(upload, 0, b"ab", 409)
        self.part(upload, 2, b"cde", 400)
        self.ask("POST", upload, None, 409)
        self.assertEqual(self.ask("GET", upload)["received"], 2)
        self.assertEqual(self.names(), [])
        self.part(upload, 2, b"cd")
        self.ask("POST", upload, None, 201)
        self.assertEqual((self.place / "open/x").read_bytes(), b"abcd")
        self.ask("GET", upload, status=404)

    def test_nothing_is_replaced_unasked(self):
        self.put("x", b"old")
        self.ask("POST", "open/uploads", {"path": "x", "size": 1}, 409)
        self.put("x", b"new", replace=True)
        self.assertEqual((self.place / "open/x").read_bytes(), b"new")
        self.assertEqual(self.names(), ["x"])

    # ---- what breaks ----

    def test_a_part_that_is_cut_off_is_no_part(self):
        upload = "open/uploads/" + self.ask("POST", "open/uploads", {"path": "x", "size": PART}, 201)["id"]
        with socket.create_connection(("127.0.0.1", self.world.port)) as client:
            client.sendall(f"PUT {API}{upload}?offset=0 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {self.world.token()}\r\n"
                           f"Content-Length: {PART}\r\n\r\n".encode() + b"x" * 1000)
        self.assertEqual(self.ask("GET", upload)["received"], 0)
        self.ask("DELETE", upload)
        self.assertEqual(self.names(), [])

    def test_a_download_that_nobody_reads_holds_nobody_up(self):
        self.put("big", b"x" * (20 * PART))
        clients, status = [], 200
        while status == 200:  # a client that takes nothing for long is cut off: then another may come
            client = http.client.HTTPConnection("127.0.0.1", self.world.port, timeout=waits.PATIENCE_S)
            client.request("GET", f"{API}open/file?path=big", headers={"Authorization": f"Bearer {self.world.token()}"})
            reply = client.getresponse()
            status = reply.status
            clients += [client, reply]
            self.assertLess(len(clients), 100)
        self.assertGreater(len(clients), 2 * 8)
        self.assertIn("8 downloads", json.loads(reply.read())["message"])
        self.put("small", b"y")
        for client in clients:
            client.close()
        waits.until(lambda: self.get("small")[0] == 200, "the places of the downloads are free")

    def test_killed_in_the_midst(self):
        upload = "open/uploads/" + self.ask("POST", "open/uploads", {"path": "x", "size": 2 * PART}, 201)["id"]
        self.part(upload, 0, b"x" * PART)
        self.world.stop(signal.SIGKILL)
        self.assertEqual(self.names(), [])
        self.world.start()
        self.ask("GET", upload, status=404)
        self.assertEqual(self.names(), [])

    def test_changes_are_written_down(self):
        self.put("noted", b"x")
        self.ask("DELETE", "open/files?path=noted")
        # a record is stored after the answer
        waits.until(lambda: "DELETE " + FILES in self.records(), "the removal is written down")
        self.assertEqual(self.records()["DELETE " + FILES]["after"], {"path": "noted"})
        self.assertEqual(self.records()["POST " + UPLOADS + "/:upload"]["after"], {"path": "noted"})
        self.assertNotIn("PUT " + UPLOADS + "/:upload", self.records())

    def records(self):
        answer = self.world.json("GET", "/api/v2/audit?limit=1000&cursor=")[1]
        return {record["route"]: record for record in reversed(answer["data"]) if record["subjectKind"] == "storage"}

    # ---- the command line ----

    def skep(self, *words, code=0, **more):
        done = self.world.skep("storage", *words, **more)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stdout if code == 0 else done.stderr

    def test_command_line(self):
        one, two = self.world.folder / "one.bin", self.world.folder / "two.bin"
        one.write_bytes(os.urandom(2 * PART + 3))
        two.write_bytes(b"")
        self.assertIn("open", self.skep("ls"))
        self.skep("mkdir", "open/code")
        self.skep("put", one, two, "open/code/")
        self.assertIn("there already", self.skep("put", one, "open/code/one.bin", code=1))
        self.skep("put", two, "open/code/one.bin", "--replace")
        self.skep("put", one, "open/code/one.bin", "--replace")
        listed = self.skep("ls", "open/code")
        self.assertIn(str(2 * PART + 3), listed)
        back = self.world.folder / "back.bin"
        self.skep("get", "open/code/one.bin", back)
        self.assertEqual(hashlib.sha256(back.read_bytes()).digest(), hashlib.sha256(one.read_bytes()).digest())
        self.assertIn("--replace", self.skep("get", "open/code/one.bin", back, code=1))
        self.assertIn("no nothing", self.skep("get", "open/nothing", self.world.folder / "no", code=1))
        self.assertFalse((self.world.folder / "no").exists() or (self.world.folder / "no.part").exists())
        self.skep("mv", "open/code/two.bin", "open/two")
        self.assertEqual(self.skep("get", "open/two", "-"), "")
        self.assertIn("not empty", self.skep("rm", "open/code", code=1))
        self.skep("rm", "open/code/one.bin", "open/code", "open/two")
        self.assertEqual(self.names(), [])
        self.skep("put", one, two, "open/file", code=2)
        self.skep("ls", "open", code=4, user="ann")

    def test_folders_of_the_command_line(self):
        tree = self.world.folder / "tree"
        (tree / "src/deep").mkdir(parents=True)
        (tree / "empty").mkdir()
        (tree / "src/deep/a 模型").write_text("all of it")
        (tree / "link").symlink_to("/etc/hostname")
        os.mkfifo(tree / "src/pipe")
        self.assertIn("is not a file", self.skep("put", tree, "open/", code=1))
        done = self.world.skep("storage", "put", "-r", f"{tree}/", "open/")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("tree/link is a link or no plain file: left out", done.stderr)
        self.assertIn("tree/src/pipe is a link or no plain file: left out", done.stderr)
        self.assertEqual((self.place / "open/tree/src/deep/a 模型").read_text(), "all of it")
        self.assertEqual(sorted(os.listdir(self.place / "open/tree")), ["empty", "src"])
        self.assertIn("no name of its own", self.skep("put", "-r", "..", "open/", code=2))

        # what is there stays, what is missing comes, and the end tells it
        (tree / "src/new").write_text("later")
        self.assertIn("there already", self.skep("put", "-r", tree, "open/tree", code=1))
        self.assertEqual((self.place / "open/tree/src/new").read_text(), "later")
        self.skep("put", "-r", tree, "open/tree", "--replace")

        (self.place / "open/tree/src/out").symlink_to("/etc")
        back = self.world.folder / "tree-back"
        done = self.world.skep("storage", "get", "-r", "open/tree", back)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("tree/src/out is a link or no plain file: left out", done.stderr)
        self.assertEqual((back / "src/deep/a 模型").read_text(), "all of it")
        self.assertTrue((back / "empty").is_dir())
        self.assertFalse((back / "src/out").exists())
        self.assertIn("--replace", self.skep("get", "-r", "open/tree", back, code=1))
        self.skep("get", "-r", "open/tree", back, "--replace")
        self.assertIn("no nothing", self.skep("get", "-r", "open/nothing", self.world.folder / "gone", code=1))
        self.assertFalse((self.world.folder / "gone").exists())
        self.skep("get", "-r", "open/tree", "-", code=2)
        for folder in ("tree/src/deep/a 模型", "tree/src/new", "tree/src/out", "tree/src/deep", "tree/src", "tree/empty", "tree"):
            self.skep("rm", f"open/{folder}")
        self.assertEqual(self.names(), [])


class Off(unittest.TestCase):
    def test_turned_off(self):
        server = world.World()
        (server.folder / "s").mkdir()
        with (server.folder / "skepd.yaml").open("a") as config:
            config.write(f"\napi: {{files: false}}\nstorages:\n  - {{name: s, directory: {server.folder}/s}}\n")
        with server:
            status, answer = server.json("GET", API + "s/files")
            self.assertEqual((status, answer["code"]), (400, "FilesOffError"))
            self.assertEqual(server.json("POST", API + "s/uploads", {"path": "x", "size": 1})[0], 400)


if __name__ == "__main__":
    world.main()
