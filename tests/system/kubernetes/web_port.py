"""A browser at a web port of a task, as far as it matters."""

import base64
import contextlib
import http.client
import json
import os
import socket
import urllib.parse

import waits
from waits import PATIENCE_S

# What a task of the role main serves on loopback alone, at its port `web`; at `idle` nobody listens.
SERVE = ("mkdir /tmp/w; echo word >/tmp/w/word; head -c 8388608 /dev/zero >/tmp/w/large; "
         "exec httpd -f -p 127.0.0.1:$PAI_PORT_LIST_main_0_web -h /tmp/w")
PORTS = {"resourcePerInstance": {"cpu": 1, "memoryMB": 64, "gpu": 0, "ports": {"web": 1, "idle": 1}}}


class WebPort:
    """`relay`: the number of skepd's own port for them; `which`: what names the task's port."""

    def __init__(self, skepd, relay, job, **which):
        self.relay = relay
        uri = urllib.parse.urlsplit(skepd.call("POST", f"/api/v2/jobs/{job}/webPorts", json.dumps(which))["uri"])
        self.host, self.cookie = uri.netloc, ""
        status, headers, body = self.ask(f"{uri.path}?{uri.query}")
        assert status == 303, (status, body)
        self.cookie = headers["Set-Cookie"].partition(";")[0]

    def ask(self, target, method="GET", body=None):
        """Status, headers, body. Every name below localhost is this machine."""
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", self.relay, timeout=PATIENCE_S)) as connection:
            connection.request(method, target, body, {"Host": self.host, "Cookie": self.cookie})
            reply = connection.getresponse()
            return reply.status, reply.headers, reply.read()

    def websocket(self):
        """A connection that the task has answered 101."""
        connection = socket.create_connection(("127.0.0.1", self.relay), timeout=PATIENCE_S)
        head = ["GET /ws HTTP/1.1", f"Host: {self.host}", "Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13",
                f"Sec-WebSocket-Key: {base64.b64encode(os.urandom(16)).decode()}", f"Origin: http://{self.host}", f"Cookie: {self.cookie}"]
        connection.sendall("\r\n".join([*head, "", ""]).encode())
        heard = b""
        while not heard.endswith(b"\r\n\r\n"):
            part = connection.recv(1)
            assert part, heard
            heard += part
        assert heard.startswith(b"HTTP/1.1 101 "), heard
        return connection


def assert_served(test, skepd, relay, job, trouble):
    """By a task that runs SERVE with PORTS."""
    browser, idle = (WebPort(skepd, relay, job, label=label) for label in ("web", "idle"))

    def body(target):
        """Once it is served: the task may not listen yet, and on a busy machine its pod may not be reached in time."""
        answers = []
        waits.until(lambda: answers.append(browser.ask(target)) or answers[-1][0] == 200,
                    lambda: f"{answers[-1][0]}: {answers[-1][2][:200]}\n{trouble()}", PATIENCE_S)
        return answers[-1][2]

    test.assertEqual(body("/word"), b"word\n")
    for _ in range(2):
        large = body("/large")
        test.assertEqual((len(large), large.strip(b"\0")), (8 << 20, b""), trouble())
    waits.until(lambda: b"Nothing answers at this port of the task" in idle.ask("/word")[2], trouble, PATIENCE_S)
    test.assertEqual(idle.ask("/word")[0], 502, trouble())
    test.assertEqual(body("/word"), b"word\n")
