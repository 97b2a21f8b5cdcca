"""Web ports of tasks: a real task that serves HTTP and a WebSocket, reached by the relay.

Covers: src/api/relay.c, src/api/relay_head.c, src/api/relay_stream.c, src/api/web_port.c, src/api/web_ports.c, src/cli/cmd_open.c,
src/engine/local/connect.c
"""
import base64
import hashlib
import http.client
import json
import os
import pathlib
import socket
import sys
import unittest
import urllib.parse

import processes
import world
from task_ports import server_port
from world import job

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "corpus"))
import image  # noqa: E402

WHY_NOT = world.can_run_containers() or image.why_not()
PATIENCE_S = 60

# What the task runs: pages, an echo of bodies and of WebSockets' bytes, and what it was asked.
SERVER = r'''
import base64, hashlib, http.server, json, os, socketserver
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        if self.headers.get("Upgrade", "") == "websocket":
            key = self.headers["Sec-WebSocket-Key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
            self.send_response(101)
            self.send_header("Upgrade", "websocket")
            self.send_header("Connection", "Upgrade")
            self.send_header("Sec-WebSocket-Accept", base64.b64encode(hashlib.sha1(key.encode()).digest()).decode())
            self.end_headers()
            while part := self.connection.recv(65536):
                self.connection.sendall(part)
            self.close_connection = True
            return
        self.answer(json.dumps({"path": self.path, "headers": self.headers.items()}).encode())
    def do_POST(self):
        self.answer(self.rfile.read(int(self.headers["Content-Length"])))
    def answer(self, body):
        self.send_response(200)
        self.send_header("Set-Cookie", "program=1")
        self.send_header("Set-Cookie", "wide=1; Domain=localhost")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
port = int(os.environ["PAI_CURRENT_CONTAINER_PORT"])
server = socketserver.ThreadingTCPServer(("127.0.0.1", port), Handler)  # http.server's own would ask a name server first
print("ready", flush=True)
server.serve_forever()
'''


@unittest.skipIf(WHY_NOT, WHY_NOT)
class WebPorts(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.world = world.World(local=True)
        cls.addClassCleanup(cls.world.__exit__)
        image.make(cls.world.images / "python", [])
        cls.port = server_port()
        config = cls.world.folder / "skepd.yaml"
        config.write_text(config.read_text() + f"api: {{webPorts: {{listen: '127.0.0.1:{cls.port}'}}}}\n")
        cls.world.__enter__()
        for user in ("ann", "bob"):
            cls.world.add_user(user)
        cls.serve("box")

    @classmethod
    def serve(cls, name):
        program = f"echo {base64.b64encode(SERVER.encode()).decode()} > /tmp/server; exec python3 -c \"import base64; exec(base64.b64decode(open('/tmp/server').read()))\""
        text = job(name, [program], image=f"dir:{cls.world.images}/python")
        done = cls.world.skep("submit", cls.world.file(text, f"{name}.yaml"), user="ann")
        assert done.returncode == 0, done.stderr
        with processes.follow(cls.world, "logs", "-f", f"ann~{name}") as log:
            processes.until(log, "ready")
        with processes.follow(cls.world, "events", "-f", f"ann~{name}") as story:
            processes.until(story, "Started")

    # ---- a browser, as far as it matters ----

    def way_in(self, job="ann~box", user="ann", **body):
        status, reply = self.world.json("POST", f"/api/v2/jobs/{job}/webPorts", {"label": "http"} | body, token=self.world.token(user))
        self.assertEqual(status, 201, reply)
        return urllib.parse.urlsplit(reply["uri"])

    def ask(self, host, target, method="GET", body=None, **headers):
        """Status, headers, body. Every name below localhost is this machine."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        self.addCleanup(connection.close)
        connection.request(method, target, body, {"Host": host} | {name.replace("_", "-"): value for name, value in headers.items()})
        reply = connection.getresponse()
        return reply.status, reply.headers, reply.read()

    def enter(self, **way):
        """Host and cookie of a session."""
        uri = self.way_in(**way)
        status, headers, _ = self.ask(uri.netloc, f"{uri.path}?{uri.query}")
        self.assertEqual(status, 303)
        return uri.netloc, headers["Set-Cookie"].partition(";")[0]

    # ---- tests ----

    def test_pages(self):
        host, cookie = self.enter()
        status, headers, body = self.ask(host, "/a/../b?c=d", Cookie=f"{cookie}; mine=1", Authorization="Bearer x", X_Skep_User="root")
        self.assertEqual(status, 200)
        asked = json.loads(body)
        told = {name.lower(): value for name, value in asked["headers"]}
        self.assertEqual(asked["path"], "/a/../b?c=d")
        self.assertEqual((told["host"], told["x-skep-user"], told["cookie"]), (host, "ann", "mine=1"))
        self.assertNotIn("authorization", told)
        self.assertEqual(headers.get_all("Set-Cookie"), ["program=1"])

    def test_a_body_of_more_than_a_request_of_the_api_may_have(self):
        host, cookie = self.enter()
        body = os.urandom(8 << 20)
        status, _, back = self.ask(host, "/", "POST", body, Cookie=cookie)
        self.assertEqual((status, hashlib.sha1(back).hexdigest()), (200, hashlib.sha1(body).hexdigest()))

    def test_a_websocket(self):
        host, cookie = self.enter()
        key = base64.b64encode(os.urandom(16)).decode()
        head = [f"GET /ws HTTP/1.1", f"Host: {host}", "Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13",
                f"Sec-WebSocket-Key: {key}", f"Origin: http://{host}", f"Cookie: {cookie}"]
        with socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE_S) as connection:
            connection.sendall("\r\n".join([*head, "", ""]).encode())
            heard = b""
            while b"\r\n\r\n" not in heard:
                heard += connection.recv(4096)
            self.assertTrue(heard.startswith(b"HTTP/1.1 101 "), heard)
            accept = base64.b64encode(hashlib.sha1((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode()).digest())
            self.assertIn(accept, heard)
            for part in (b"a few bytes", os.urandom(100000)):
                connection.sendall(part)
                back = b""
                while len(back) < len(part):
                    back += connection.recv(65536)
                self.assertEqual(back, part)

    def test_who_may(self):
        for user, job, expected in (("bob", "ann~box", 403), ("ann", "ann~none", 404), ("admin", "ann~box", 201)):
            status, reply = self.world.json("POST", f"/api/v2/jobs/{job}/webPorts", {"label": "http"}, token=self.world.token(user))
            self.assertEqual(status, expected, reply)
        host, _ = self.enter()
        self.assertEqual(self.ask(host, "/")[0], 401)
        self.assertEqual(self.ask(host, "/", Authorization=f"Bearer {self.world.token('ann')}")[0], 401)
        self.assertEqual(self.ask(f"127.0.0.1:{self.port}", "/")[0], 421)

    def test_the_api_is_not_there(self):
        """Nor takes it a session of a port."""
        host, cookie = self.enter()
        self.assertIn(b"/api/v2/jobs", self.ask(host, "/api/v2/jobs", Cookie=cookie)[2])  # the task's own answer
        status, _, _ = self.world.ask("GET", "/api/v2/jobs", token=False, headers={"Cookie": cookie, "Host": host})
        self.assertEqual(status, 401)

    def test_nobody_listens(self):
        host, cookie = self.enter(label="ssh")
        status, _, body = self.ask(host, "/", Cookie=cookie)
        self.assertEqual(status, 502, body)

    def test_the_task_ends(self):
        self.serve("short")
        host, cookie = self.enter(job="ann~short")
        self.assertEqual(self.ask(host, "/", Cookie=cookie)[0], 200)
        self.world.skep("stop", "short", user="ann")
        self.world.skep("wait", "--quiet", "--timeout", PATIENCE_S, "short", user="ann")
        self.assertEqual(self.ask(host, "/", Cookie=cookie)[0], 502)
        status, reply = self.world.json("POST", "/api/v2/jobs/ann~short/webPorts", {"label": "http"}, token=self.world.token("ann"))
        self.assertEqual((status, reply["code"]), (409, "ConflictJobError"))

    def test_a_user_is_deactivated(self):
        """A token that goes takes the sessions along that came by it."""
        token = self.world.token("bob")
        self.addCleanup(self.world.login, "bob", "bob-password")
        text = job("bobs", ["echo ready; sleep 3600"], image=self.world.image)
        self.world.skep("submit", self.world.file(text, "bobs.yaml"), user="bob")
        self.addCleanup(self.world.skep, "wait", "--quiet", "--timeout", PATIENCE_S, "bob~bobs")  # there is room for two tasks
        self.addCleanup(self.world.skep, "stop", "bob~bobs")
        with processes.follow(self.world, "events", "-f", "bob~bobs") as story:
            processes.until(story, "Started")
        host, cookie = self.enter(job="bob~bobs", user="bob")
        self.assertEqual(self.ask(host, "/", Cookie=cookie)[0], 502)  # nobody listens, but bob may
        self.assertEqual(self.world.ask("DELETE", "/api/v2/authn/basic/logout", token=token)[0], 200)
        self.assertEqual(self.ask(host, "/", Cookie=cookie)[0], 401)

    def test_command_line(self):
        done = self.world.skep("open", "--print", "--path", "/lab?x=1", "box", "worker[0]", user="ann")
        self.assertEqual(done.returncode, 0, done.stderr)
        uri = urllib.parse.urlsplit(done.stdout.strip())
        status, headers, _ = self.ask(uri.netloc, f"{uri.path}?{uri.query}")
        self.assertEqual((status, headers["Location"]), (303, "/lab?x=1"))
        done = self.world.skep("open", "--print", "--port", "none", "box", user="ann")
        self.assertEqual((done.returncode, done.stderr), (1, "skep: task worker-0 has no port none\n"))

    def test_audit_and_story(self):
        self.enter(user="admin")
        records = self.world.json("GET", "/api/v2/audit?limit=50")[1]
        self.assertIn("worker-0:", json.dumps(records))
        with processes.follow(self.world, "events", "-f", "ann~box") as story:
            processes.until(story, "admin came to port")


if __name__ == "__main__":
    world.main()
