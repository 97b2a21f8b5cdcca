"""A terminal in a running task: skep exec, shell and attach against real containers, and the WebSocket behind them.

Covers: src/api/exec.c, src/api/exec_session.c, src/api/task.c, src/cli/cmd_exec.c, src/sys/websocket.c
"""
import base64
import contextlib
import hashlib
import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
import unittest

import processes
import terminal
from waits import PATIENCE_S, until
import world
from world import job

WHY_NOT = world.can_run_containers()


class WebSocket:
    """A client of RFC 6455, by hand."""

    def __init__(self, port, path, headers=()):
        self.connection = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S)
        key = base64.b64encode(os.urandom(16)).decode()
        head = [f"GET {path} HTTP/1.1", "Host: localhost", "Upgrade: websocket", "Connection: Upgrade",
                "Sec-WebSocket-Version: 13", f"Sec-WebSocket-Key: {key}", "Sec-WebSocket-Protocol: other, skep.exec.v1", *headers]
        self.connection.sendall("\r\n".join(head + ["", ""]).encode())
        self.bytes = b""
        while b"\r\n\r\n" not in self.bytes:
            part = self.connection.recv(4096)
            if not part:
                break
            self.bytes += part
        self.head, _, self.bytes = self.bytes.partition(b"\r\n\r\n")
        self.status = int(self.head.split()[1])
        self.accept = base64.b64encode(hashlib.sha1((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode()).digest()).decode()

    def close(self):
        self.connection.close()

    def take(self, count):
        while len(self.bytes) < count:
            part = self.connection.recv(65536)
            if not part:
                raise EOFError
            self.bytes += part
        taken, self.bytes = self.bytes[:count], self.bytes[count:]
        return taken

    def frame(self):
        first, length = self.take(2)
        if length == 126:
            length, = struct.unpack("!H", self.take(2))
        elif length == 127:
            length, = struct.unpack("!Q", self.take(8))
        return first & 15, self.take(length)

    def message(self):
        """The next one: a dict, or (channel, bytes); ("close", code) at the end."""
        while True:
            kind, data = self.frame()
            if kind == 1:
                return json.loads(data)
            if kind == 2:
                return data[0], data[1:]
            if kind == 8:
                return "close", struct.unpack("!H", data[:2])[0]

    def send(self, kind, data):
        mask = os.urandom(4)
        length = bytes([128 | len(data)]) if len(data) < 126 else bytes([128 | 126]) + struct.pack("!H", len(data))
        self.connection.sendall(bytes([128 | kind]) + length + mask + bytes(b ^ mask[i % 4] for i, b in enumerate(data)))

    def type(self, text):
        self.send(2, b"\0" + text.encode())

    def until(self, words):
        """Output up to these words."""
        text = b""
        while words.encode() not in text:
            message = self.message()
            if isinstance(message, tuple) and message[0] in (1, 2):
                text += message[1]
            elif not isinstance(message, dict):
                raise AssertionError(f"{words!r} does not come, only {text!r}, then {message}")
        return text.decode()

    def end(self):
        while True:
            message = self.message()
            if isinstance(message, dict) and message["type"] == "end":
                return message


class Forwarder:
    """Between a client and the server, to be cut."""

    def __init__(self, port):
        self.target = port
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.pairs = []
        self.is_whole = threading.Event()
        self.is_whole.set()
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            self.is_whole.wait(PATIENCE_S)
            server = socket.create_connection(("127.0.0.1", self.target))
            self.pairs.append((client, server))
            for one, other in ((client, server), (server, client)):
                threading.Thread(target=self.carry, args=(one, other), daemon=True).start()

    def carry(self, one, other):
        with contextlib.suppress(OSError):
            while part := one.recv(65536):
                other.sendall(part)
        for end in (one, other):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def cut(self):
        """Who connects again waits until it is mended."""
        self.is_whole.clear()
        for pair in self.pairs:
            for end in pair:
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)
        self.pairs.clear()

    def mend(self):
        self.is_whole.set()

    def close(self):
        self.listener.close()
        self.cut()
        self.mend()


class Terminal(terminal.Terminal):
    """skep in a terminal of ours."""

    def __init__(self, environment, *words, **more):
        super().__init__(environment, world.SKEP, *words, **more)


@unittest.skipIf(WHY_NOT, WHY_NOT)
class Exec(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.world = world.World(local=True).__enter__()
        for user in ("ann", "bob"):
            cls.world.add_user(user)
        cls.run_job("box", "echo ready; sleep 3600", user="ann")

    @classmethod
    def tearDownClass(cls):
        cls.world.__exit__()

    @classmethod
    def run_job(cls, name, command, user="ann", instances=1):
        text = job(name, [command], image=cls.world.image, instances=instances)
        done = cls.world.skep("submit", cls.world.file(text, f"{name}.yaml"), user=user)
        assert done.returncode == 0, done.stderr
        with processes.follow(cls.world, "logs", "-f", f"{user}~{name}") as log:
            processes.until(log, "ready")
        with processes.follow(cls.world, "events", "-f", f"{user}~{name}") as story:
            processes.until(story, "Started")

    def skep(self, *words, user="ann", **more):
        return self.world.skep(*words, user=user, **more)

    def open(self, token="ann", job="ann~box", **body):
        return self.world.json("POST", f"/api/v2/jobs/{job}/exec", body, token=self.world.token(token))

    def socket(self, reply):
        return self.socket_at(reply["uri"])

    def socket_at(self, path, headers=()):
        socket = WebSocket(self.world.port, path, headers)
        self.addCleanup(socket.close)
        return socket

    def test_output_and_code(self):
        done = self.skep("exec", "box", "--", "sh", "-c", "echo out; echo err >&2; exit 7")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (7, "out\n", "err\n"))
        self.assertEqual(self.skep("exec", "box", "worker[0]", "--", "true").returncode, 0)
        self.assertEqual(self.skep("exec", "box", "worker:0", "--", "false").returncode, 1)
        done = self.skep("exec", "box", "--", "no-such-program")
        self.assertEqual(done.returncode, 127)
        self.assertIn("cannot run no-such-program", done.stderr)

    def test_silence_before_the_end(self):
        """Longer than the end of a connection may take: the end is told all the same."""
        done = self.skep("exec", "box", "--", "sh", "-c", "sleep 6; exit 7")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (7, "", ""))

    def test_input_is_carried_whole(self):
        """More than every buffer between, both ways; and its end."""
        text = "".join(f"line {i}\n" for i in range(200000))
        done = self.skep("exec", "box", "--", "cat", stdin=text)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(hashlib.sha1(done.stdout.encode()).hexdigest(), hashlib.sha1(text.encode()).hexdigest())

    def test_wrong_command_lines(self):
        self.assertEqual(self.skep("exec", "box", "true").returncode, 2)
        self.assertEqual(self.skep("exec", "box", "worker[x]", "--", "true").returncode, 2)
        done = self.skep("exec", "box", "worker[3]", "--", "true")
        self.assertEqual((done.returncode, done.stderr), (1, "skep: job box has no task worker-3\n"))
        self.assertEqual(self.skep("exec", "none", "--", "true").returncode, 1)

    def test_shell_resize_and_interrupt(self):
        terminal = Terminal(self.world.environment("ann"), "shell", "box", rows=30, columns=100)
        terminal.type("stty size; echo $TERM $PAI_TASK_INDEX.\r")
        terminal.until("30 100\r\nxterm 0.")
        terminal.size(55, 144)
        os.kill(terminal.process.pid, signal.SIGWINCH)
        terminal.type("while [ \"$(stty size)\" != '55 144' ]; do :; done; echo is $((50+5))\r")
        terminal.until("is 55")
        terminal.type("sh -c 'echo sl''eeps; exec sleep 1000'\r")  # begun: else the interrupt could reach the shell alone
        terminal.until("sleeps")
        terminal.type("\3")
        terminal.type("echo again $((40+2))\r")
        terminal.until("again 42")
        terminal.type("exit 9\r")
        self.assertEqual(terminal.wait(), 9)

    def test_cut_and_back(self):
        """The program goes on, and what it wrote meanwhile comes, nothing twice."""
        forwarder = Forwarder(self.world.port)
        environment = self.world.environment("ann") | {"SKEP_SERVER": f"http://127.0.0.1:{forwarder.port}",
                                                       "SKEP_TOKEN": self.world.token("ann")}
        terminal = Terminal(environment, "exec", "box", "--", "sh", "-c",
                            "stty -echo; echo begun; read x; echo n1; echo n2; while [ ! -e /tmp/cut ]; do sleep 0.1; done; "
                            "echo n3; echo n4; echo n5; touch /tmp/written; while [ ! -e /tmp/mended ]; do sleep 0.1; done; "
                            "echo n6; read y; echo \"$x $y\"")
        terminal.until("begun")
        terminal.type("first\r")
        terminal.until("n2")
        forwarder.cut()
        terminal.until("the connection is lost")
        meanwhile = "touch /tmp/cut; while [ ! -e /tmp/written ]; do sleep 0.1; done"
        self.assertEqual(self.skep("exec", "box", "--", "sh", "-c", meanwhile).returncode, 0)
        forwarder.mend()
        self.assertEqual(self.skep("exec", "box", "--", "touch", "/tmp/mended").returncode, 0)
        rest = terminal.until("n6")
        self.assertEqual([word for word in rest.split() if word.startswith("n") and word[1:].isdigit()], ["n3", "n4", "n5"])
        terminal.type("second\r")
        terminal.until("first second")
        self.assertEqual(terminal.wait(), 0)
        forwarder.close()

    def test_without_a_terminal_a_cut_ends_it(self):
        status, reply = self.open(command=["/bin/sh", "-c", "echo here; exec sleep 7654"], terminal=False)
        self.assertEqual(status, 201, reply)
        connection = self.socket(reply)
        connection.until("here")
        connection.close()
        with processes.follow(self.world, "events", "-f", "ann~box") as story:
            processes.until(story, "ended /bin/sh of ann from 127.0.0.1 after")  # no other test runs it by this name
        self.assertEqual(self.skep("exec", "box", "--", "sh", "-c", "ps | grep -v grep | grep -c 'sleep 7654'").stdout, "0\n")

    def test_attach_takes_over_and_replays(self):
        status, reply = self.open(command=["sh"], rows=20, columns=70)
        self.assertEqual(status, 201, reply)
        first = self.socket(reply)
        self.assertEqual(first.status, 101)
        self.assertIn(f"Sec-WebSocket-Accept: {first.accept}".encode(), first.head)
        self.assertIn(b"Sec-WebSocket-Protocol: skep.exec.v1", first.head)
        self.assertEqual(first.message(), {"type": "attached", "terminal": True, "from": 0, "seen": 0})
        first.type("stty size; yes 0123456789 | head -n 20000; echo do''ne\r")
        first.until("done")
        status, link = self.world.json("POST", f"/api/v2/exec/{reply['id']}/link", token=self.world.token("ann"))
        first = self.socket(link)
        again = first.message()
        self.assertEqual(again["seen"] - again["from"], 64 << 10, "all that is repeated has been sent before")
        self.assertGreater(again["from"], 100000)
        terminal = Terminal(self.world.environment("ann"), "attach", reply["id"])
        terminal.until("done")
        while (message := first.message())[0] != "close":
            pass
        self.assertEqual(message[1], 4001)
        terminal.type("exit 4\r")
        self.assertEqual(terminal.wait(), 4)
        self.assertEqual(self.skep("attach", reply["id"]).returncode, 1, "it has ended")

    def test_only_who_may(self):
        done = self.skep("exec", "ann~box", "--", "true", user="bob")
        self.assertEqual(done.returncode, 4, done.stderr)
        status, reply = self.open(token="bob", command=["true"])
        self.assertEqual((status, reply["code"], reply["right"]), (403, "ForbiddenUserError", "auth.enter-job"))
        self.assertEqual(self.skep("exec", "ann~box", "--", "true", user="admin").returncode, 0)
        status, reply = self.open(command=["cat"])
        path = reply["uri"].partition("?")[0]
        self.assertEqual(self.socket_at(path).status, 401, "no link, no token")
        bob = f"Authorization: Bearer {self.world.token('bob')}"
        self.assertEqual(self.socket_at(path, [bob]).status, 404, "somebody else's")
        self.assertEqual(self.socket_at(path + "x" + reply["uri"][len(path):]).status, 401, "of another path")
        for method, where in (("POST", path + "/link"), ("DELETE", path)):
            self.assertEqual(self.world.json(method, where, token=self.world.token("bob"))[0], 404)
        status, made = self.world.json("POST", "/api/v2/tokens/application", {"scope": "read"}, token=self.world.token("ann"))
        self.assertEqual(self.world.json("POST", "/api/v2/jobs/ann~box/exec", {}, token=made["token"])[0], 403)
        status, link = self.world.json("POST", path + "/link", token=self.world.token("ann"))
        again = self.socket(link)
        self.assertEqual(again.message()["type"], "attached")
        self.assertEqual(self.world.json("DELETE", path, token=self.world.token("ann"))[0], 200)
        self.assertEqual(again.end()["reason"], "stopped")

    def admin_set(self, name, is_admin):
        status, reply = self.world.json("PUT", "/api/v2/users", {"patch": True, "data": {"username": name, "admin": is_admin}})
        self.assertEqual(status, 201, reply)

    def test_it_ends_with_the_right(self):
        self.world.add_user("carol")
        self.admin_set("carol", True)
        status, reply = self.open(token="carol", command=["cat"])
        self.assertEqual(status, 201, reply)
        connection = self.socket(reply)
        self.assertEqual(connection.message()["type"], "attached")
        self.admin_set("carol", False)
        self.assertEqual(connection.end()["reason"], "notAllowed")

    def test_the_token_of_the_latest_connection_counts(self):
        made = [self.world.json("POST", "/api/v2/tokens/application", {"scope": "submit"}, token=self.world.token("ann"))
                for _ in range(2)]
        first, second = (reply["token"] for _, reply in made)
        status, reply = self.world.json("POST", "/api/v2/jobs/ann~box/exec", {"command": ["sh"]}, token=first)
        self.assertEqual(status, 201, reply)
        connection = self.socket_at("/api/v2/exec/" + reply["id"], [f"Authorization: Bearer {second}"])
        self.assertEqual(connection.message()["type"], "attached")
        self.assertEqual(self.world.json("DELETE", "/api/v2/tokens/" + first, token=self.world.token("ann"))[0], 200)
        connection.type("echo go''es on\r")
        connection.until("goes on")
        self.assertEqual(self.world.json("DELETE", "/api/v2/tokens/" + second, token=self.world.token("ann"))[0], 200)
        self.assertEqual(connection.end()["reason"], "notAllowed")

    def test_bad_requests(self):
        for body in ({"command": "ls"}, {"command": ["a"] * 1025}, {"command": [1]}, {"command": [""]}, {"rows": 0}, {"term": "a b"}, {"command": ["a\0b"]}):
            self.assertEqual(self.open(**body)[0], 400, body)
        self.assertEqual(self.open(command=["x" * 70000])[0], 413)
        status, reply = self.open(command=["cat"])
        token = self.world.token("ann")
        status, _, body = self.world.ask("GET", "/api/v2/exec/" + reply["id"], token=token)
        self.assertEqual(status, 400, body)
        # bytes that are no frames, and frames that are no messages: the session survives neither noise nor a giant
        connection = self.socket(reply)
        connection.message()
        connection.connection.sendall(b"\xff" * 100)
        with self.assertRaises((EOFError, ConnectionError)):
            while connection.message()[0] != "close":
                pass
            raise EOFError
        again = self.socket(self.world.json("POST", f"/api/v2/exec/{reply['id']}/link", token=token)[1])
        again.send(1, b"no JSON")
        again.send(1, b'{"type":"resize","rows":-1,"columns":"x"}')
        again.type("still\r")
        again.until("still")
        again.send(1, b'{"type":"end"}')
        self.assertEqual(again.end()["reason"], "stopped")

    def test_limits(self):
        replies = []
        while (answer := self.open(command=["cat"]))[0] == 201:
            replies.append(answer[1])
            self.assertLess(len(replies), 9)
            self.socket(answer[1])  # where nobody is it would end after a minute
        self.assertEqual((answer[0], answer[1]["code"]), (429, "BusyError"))
        self.assertIn("in this task already", answer[1]["message"])
        token = self.world.token("ann")
        for reply in replies:
            self.assertEqual(self.world.json("DELETE", f"/api/v2/exec/{reply['id']}", token=token)[0], 200)
        for reply in replies:
            until(lambda: self.world.json("POST", f"/api/v2/exec/{reply['id']}/link", token=token)[0] == 404, "the session has ended")
        self.assertEqual(self.open(command=["true"])[0], 201)

    def test_end_of_the_task(self):
        self.run_job("short", "mkfifo /tmp/go; echo ready; read go </tmp/go")
        terminal = Terminal(self.world.environment("ann"), "shell", "short")
        terminal.type("trap '' HUP TERM; echo tr''apped\r")
        terminal.until("trapped")
        # what ends the task stays, until it is ended with it
        done = self.skep("exec", "short", "--", "sh", "-c", "echo now >/tmp/go; exec cat /tmp/go")
        self.assertEqual(done.returncode, 125, done.stderr)
        self.assertIn("the task has ended, and the program with it", done.stderr)
        terminal.until("the task has ended, and the program with it")
        self.assertEqual(terminal.wait(), 125)
        self.assertEqual(self.skep("wait", "--quiet", "short").returncode, 0)
        done = self.skep("exec", "short", "--", "true")
        self.assertEqual((done.returncode, done.stderr), (1, "skep: task worker-0 does not run\n"))

    def test_story(self):
        self.run_job("told", "echo ready; sleep 600")
        self.assertEqual(self.skep("exec", "told", "--", "sh", "-c", "exit 3 # secret").returncode, 3)
        with processes.follow(self.world, "events", "-f", "ann~told") as story:
            text = processes.until(story, "with code 3")
        self.assertNotIn("secret", str(text))
        events = self.skep("events", "told").stdout
        self.assertIn("started sh of ann from 127.0.0.1", events)
        self.assertIn("with code 3", events)
        self.assertNotIn("secret", events)


@unittest.skipIf(WHY_NOT, WHY_NOT)
class Restart(unittest.TestCase):
    def test_server_ends(self):
        """Over TLS; the client is told, and nothing of the session is left in the task."""
        with_tls = world.World(local=True)
        self.addCleanup(shutil.rmtree, with_tls.folder, ignore_errors=True)
        self.addCleanup(with_tls.stop, signal.SIGKILL)  # where it still runs
        config = with_tls.folder / "skepd.yaml"
        config.write_text(config.read_text() + 'api: {tls: {mode: "on"}}\n')
        with_tls.start()
        with_tls.admin_password = (with_tls.folder / "password").read_text().strip()
        socket_url = f"unix:{with_tls.folder}/data/socket/api"
        environment = with_tls.environment() | {"SKEP_SERVER": socket_url}
        text = job("box", ["echo ready; sleep 3600"], image=with_tls.image)
        done = with_tls.skep("submit", with_tls.file(text), SKEP_SERVER=socket_url)
        self.assertEqual(done.returncode, 0, done.stderr)
        for word, pattern in ("logs", "^ready$"), ("events", "Started"):
            with subprocess.Popen([world.SKEP, word, "-f", "box"], env=environment, stdout=subprocess.PIPE, text=True) as story:
                story.explain = lambda: (with_tls.folder / "skepd.log").read_text()
                processes.until(story, pattern)
        fingerprint = next(word for word in (with_tls.folder / "skepd.log").read_text().replace('"', " ").split()
                           if word.startswith("sha256//"))
        url = f"https://127.0.0.1:{with_tls.port}"
        done = with_tls.skep("login", "--username", "admin", "--password-stdin", "--fingerprint", fingerprint, url,
                             stdin=with_tls.admin_password + "\n")
        self.assertEqual(done.returncode, 0, done.stderr)
        done = with_tls.skep("exec", "box", "--", "cat", SKEP_SERVER=url, stdin="by TLS\n")
        self.assertEqual((done.returncode, done.stdout), (0, "by TLS\n"), done.stderr)
        done = with_tls.skep("exec", "box", "--", "echo", "by the socket", SKEP_SERVER=socket_url)
        self.assertEqual((done.returncode, done.stdout), (0, "by the socket\n"), done.stderr)
        terminal = Terminal(with_tls.environment() | {"SKEP_SERVER": url}, "exec", "box", "--", "sh", "-c",
                            "trap '' HUP TERM; echo th''ere; sleep 8765")
        terminal.until("there")
        self.assertEqual(with_tls.stop(), 0)
        terminal.until("the server is ending")
        self.assertEqual(terminal.wait(), 125)
        with_tls.start(f"127.0.0.1:{with_tls.port}")
        done = with_tls.skep("exec", "box", "--", "sh", "-c", "ps | grep -v grep | grep -c 'sleep 8765'", SKEP_SERVER=url)
        self.assertEqual(done.stdout, "0\n", done.stderr)
        terminal = Terminal(with_tls.environment() | {"SKEP_SERVER": url}, "exec", "box", "--", "sh", "-c", "echo th''ere; sleep 8766")
        terminal.until("there")
        with_tls.stop(signal.SIGKILL)  # the kernel closes what skep-init watches
        terminal.until("the connection is lost")
        with_tls.start(f"127.0.0.1:{with_tls.port}")
        self.assertEqual(terminal.wait(), 125)
        # nobody tells when skep-init, which saw that, has ended the program
        until_gone = "while ps | grep -v grep | grep -q 'sleep 8766'; do sleep 0.1; done"
        done = with_tls.skep("exec", "box", "--", "sh", "-c", until_gone, SKEP_SERVER=url)
        self.assertEqual(done.returncode, 0, done.stderr)
        with_tls.skep("stop", "box", SKEP_SERVER=url)
        with_tls.skep("wait", "--quiet", "box", SKEP_SERVER=url)
        self.assertEqual(with_tls.stop(), 0)


if __name__ == "__main__":
    unittest.main(verbosity=2, argv=[sys.argv[0]])
