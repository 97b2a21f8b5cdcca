"""Web ports of tasks that are pods, by an API server that the test plays: test_ports.py SKEPD SKEP

What a node and its runtime do of it is in test_nodes.py and test_network.py.
Covers: src/engine/kubernetes/forward.c, src/engine/kubernetes/kubernetes.c, src/api/relay_entry.c
"""
import base64
import hashlib
import http.server
import json
import os
import sys
import threading

import skepd as server
from task_ports import server_port
import test_faults
import unittest
import waits
from web_port import WebPort

if __name__ == "__main__":
    test_faults.SKEPD, test_faults.SKEP = sys.argv.pop(1), sys.argv.pop(1)


class Program(http.server.BaseHTTPRequestHandler):
    """What a task serves: its path, an echo of bodies, and one of the bytes of WebSockets."""
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        if self.headers.get("Upgrade") != "websocket":
            self.answer(json.dumps({"path": self.path, "user": self.headers["X-Skep-User"]}).encode())
            return
        key = f"{self.headers['Sec-WebSocket-Key']}258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
        self.send_response(101)
        self.send_header("Upgrade", "websocket")
        self.send_header("Connection", "Upgrade")
        self.send_header("Sec-WebSocket-Accept", base64.b64encode(hashlib.sha1(key.encode()).digest()).decode())
        self.end_headers()
        while part := self.connection.recv(65536):
            self.connection.sendall(part)
        self.close_connection = True

    def do_POST(self):
        self.answer(self.rfile.read(int(self.headers["Content-Length"])))

    def answer(self, body):
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class Ports(test_faults.Base):
    @classmethod
    def setUpClass(cls):
        cls.relay = server_port()
        cls.MORE = {"api": {"webPorts": {"listen": f"127.0.0.1:{cls.relay}"}}}

    def submit(self, name, instances=1, gpus=0):
        job = json.loads(server.job_file(name, {"main": (instances, "true", {})}, "task:1"))
        job["taskRoles"]["main"]["resourcePerInstance"]["ports"] = {"web": 1}
        self.skepd.submit(json.dumps(job))
        return f"admin~{name}"

    def serve(self, job):
        """The job's task listens from now on."""
        program = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Program)
        self.addCleanup(program.server_close)
        self.addCleanup(program.shutdown)
        threading.Thread(target=program.serve_forever, daemon=True).start()
        (port,) = (int(each) for each in self.skepd.job(job)["taskRoles"]["main"]["taskStatuses"][0]["containerPorts"]["web"].split(","))
        with self.api.changed:
            self.api.listens[port] = program.server_address
        return port

    def open(self, job):
        return WebPort(self.skepd, self.relay, job, role="main", index=0, label="web")

    def asked(self):
        with self.api.changed:
            return [request for request in self.api.requests if "/portforward?" in request]

    def test_pages_bodies_and_websockets(self):
        job, pod = self.running()
        port = self.serve(job)
        browser = self.open(job)
        status, _, body = browser.ask("/a?b=c")
        self.assertEqual((status, json.loads(body)), (200, {"path": "/a?b=c", "user": "admin"}))
        self.assertEqual(self.asked(), [f"GET /api/v1/namespaces/default/pods/{pod}/portforward?ports={port}"])
        body = os.urandom(1 << 20)
        status, _, back = browser.ask("/", "POST", body)
        self.assertEqual((status, hashlib.sha1(back).digest()), (200, hashlib.sha1(body).digest()))
        with browser.websocket() as one, browser.websocket() as other:
            for number, connection in enumerate((one, other, one)):
                connection.sendall(b"word %d" % number)
                self.assertEqual(connection.recv(100), b"word %d" % number)
            self.api.end(pod)  # skepd ends with one that is open, which Base's clean-up asks for
            self.finish(job)
        self.assertEqual(browser.ask("/")[0], 502)  # it does not run any more
        self.assertEqual(len(self.asked()), 4)

    def test_nobody_listens(self):
        job, _ = self.running()
        browser = self.open(job)
        status, _, body = browser.ask("/")
        self.assertEqual(status, 502)
        self.assertIn(b"Nothing answers at this port of the task", body)
        self.assertEqual(len(self.asked()), 1)
        self.assertNotIn("cannot be reached", self.skepd.tail())
        self.serve(job)
        self.assertEqual(browser.ask("/")[0], 200)

    def test_a_right_that_is_missing(self):
        job, _ = self.running()
        self.serve(job)
        browser = self.open(job)
        with self.api.changed:
            self.api.forbids = ("GET", "portforward")
        for _ in range(3):
            self.assertEqual(browser.ask("/")[0], 502)
        waits.until(lambda: "cannot be reached" in self.skepd.tail(), self.skepd.tail)
        self.assertEqual(self.skepd.tail().count('cannot be reached: forbidden: User \\"skep\\" cannot do this'), 1, self.skepd.tail())
        with self.api.changed:
            self.api.forbids = None
        self.assertEqual(browser.ask("/")[0], 200)

    def test_a_token_that_was_renewed(self):
        job, _ = self.running()
        self.serve(job)
        browser = self.open(job)
        self.assertEqual(browser.ask("/")[0], 200)
        self.present("two")
        self.assertEqual(browser.ask("/")[0], 200)

    def test_skepd_ends_with_one_that_is_open(self):
        job, _ = self.running()
        self.serve(job)
        with self.open(job).websocket() as connection:
            connection.sendall(b"word")
            self.assertEqual(connection.recv(100), b"word")
            self.assertEqual(self.skepd.stop(), 0, self.skepd.tail())
            self.assertEqual(connection.recv(100), b"")


if __name__ == "__main__":
    unittest.main()
