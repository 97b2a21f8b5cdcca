"""An API server that misbehaves as real ones do: nodes, pods, secrets, slices and claims in memory, and faults that a test asks for.

It knows what the engine uses of the API: LIST by pages, WATCH from a version, POST, GET, DELETE and PUT of a status. Each fault is one of FAULTS, put in
front of the next request (or event) that it fits, once.
"""
import base64
import contextlib
import hashlib
import http.server
import json
import re
import socket
import socketserver
import sys
import threading
import urllib.parse

from metrics_server import API, listing
import waits

FAULTS = {
    "list-410": "the next list is answered 410",
    "continue-410": "the next page that is not the first is answered 410",
    "watch-410": "the next watch is answered 410",
    "list-cut": "the next list that is the begin of a watch breaks after its first object",
    "stream-410": "the next watch says 410 as an event, in a stream of status 200",
    "cut": "the next event is cut in its middle, and the stream with it",
    "twice": "the next event comes twice",
    "end": "the stream ends after the next event",
    "garbage": "a line that is no JSON comes before the next event",
    "429": "the next write is answered 429 with Retry-After: 1",
    "500": "the next write is answered 500",
    "403": "the next write is answered 403, as by a server that has not read the roles yet",
    "lost": "the next write is carried out, and its connection closed without an answer",
    "401": "the next request is answered 401",
    "list-500": "the next list is answered 500",
    "list-429": "the next list is answered 429 with Retry-After: 1",
    "list-401": "the next list is answered 401",
    "watch-500": "the next watch is answered 500",
    "watch-429": "the next watch is answered 429 with Retry-After: 1",
    "watch-401": "the next watch is answered 401",
    "quota": "the next claim is refused for a quota of its namespace",
    "denied": "the next pod is refused by the Pod Security of its namespace",
    "refused": "the next status of a claim is refused for good",
    "exec-500": "the next program in a pod is answered 500",
    "exec-fails": "the next program in a pod reads its input and ends with 1",
    "exec-cut": "the connection of the next program in a pod is closed when it has read its input, without a word of its end",
}


class FaultyServer(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True
    page = 2  # objects, whatever the client's limit is
    has_streamed_lists = False  # which are the begin of a watch

    def __init__(self, tls=None):
        super().__init__(("127.0.0.1", 0), Handler)
        self.tls = tls  # an SSLContext; None: plain HTTP
        self.connections, self.idle = set(), set()  # those of the latter wait for a request
        self.changed = threading.Condition()
        self.version = 100
        self.objects = {"nodes": {}, "pods": {}, "secrets": {}, "resourceslices": {}, "resourceclaims": {}}
        self.hold = None  # (method, kind): the next such write is carried out and not answered until this is None; `held` says that it was
        self.held = False
        self.fails = None  # (method, kind, object): True: such a write is answered 500, as where a webhook is away
        self.is_ready = True  # what /readyz says
        self.closes = False  # each answer is the last of its connection, as when a server balances its clients (GOAWAY)
        self.forbids = None  # (method, kind): such writes, or ("GET", "portforward"), are answered 403 until this is None
        self.listens = {}  # {port of a task: the address of what the test has there}
        self.keeps_pods = False  # as when their kubelet is silent: a pod that is deleted stays until the test removes it
        self.forced = []  # pods that were to go at once while they ran
        self.year = 2026  # of its own clock and those of its kubelets, which need not be right
        self.history = []  # (version, kind, type, object)
        self.snapshots = []  # (version, objects): all pages of a list are of one
        self.faults, self.requests = [], []
        self.knows_users = True  # hostUsers; else the field is dropped, as by a server whose gate is off
        self.runs_programs = False  # in pods: 404 otherwise
        self.programs = []  # (pod, words, input) of each that has read its input
        self.programs_left = None  # so many more are begun, the others are answered 500; None: all
        self.answered = []  # the writes among them whose answer has been sent
        self.metrics_asked = []
        self.metrics = None  # what nodes use, as metrics-server says it; None: nobody serves that
        self.token = None  # what must be presented
        self.is_stopping = False
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f"{'https' if self.tls else 'http'}://127.0.0.1:{self.server_address[1]}"

    def get_request(self):
        connection, address = super().get_request()
        if self.tls:  # the handshake is made by the connection's thread, with its first read
            connection = self.tls.wrap_socket(connection, server_side=True, do_handshake_on_connect=False)
        with self.changed:
            self.connections.add(connection)
        return connection, address

    def shutdown_request(self, request):
        with self.changed:
            self.connections.discard(request)
            self.idle.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request, client_address):
        """A client that goes away, or trusts nobody here, is what the tests are about."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)

    def cut_all(self):
        """As a server that begins anew: each connection must be made again."""
        with self.changed:
            connections = list(self.connections)
        for connection in connections:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def cut_idle(self):
        """As a server or a balancer does after a while."""
        with self.changed:
            connections = list(self.idle)
        for connection in connections:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def stop(self):
        with self.changed:
            self.is_stopping = True
            self.changed.notify_all()
        self.shutdown()
        self.server_close()

    def fault(self, *names):
        with self.changed:
            for name in names:
                assert name in FAULTS
                self.faults.append(name)

    def hit(self, name):
        """Under the lock: is it asked for? Then not any more."""
        if name in self.faults:
            self.faults.remove(name)
            self.changed.notify_all()
            return True
        return False

    def wait(self, is_so, what, limit=waits.PATIENCE_S):
        with self.changed:
            assert self.changed.wait_for(lambda: is_so(self), limit), f"{what}; requests: {self.requests[-10:]}"

    def put(self, kind, item, event=None):
        with self.changed:
            self.version += 1
            name = item["metadata"]["name"]
            known = self.objects[kind].get(name)
            item["metadata"]["uid"] = known["metadata"]["uid"] if known else f"uid-{self.version}"
            item["metadata"]["resourceVersion"] = str(self.version)
            item["metadata"].setdefault("creationTimestamp", f"{self.year}-01-01T00:00:00Z")
            self.objects[kind][name] = item
            self.history.append((self.version, kind, event or ("MODIFIED" if known else "ADDED"), json.loads(json.dumps(item))))
            self.changed.notify_all()
            return item

    def remove(self, kind, name):
        with self.changed:
            item = json.loads(json.dumps(self.objects[kind].pop(name)))  # snapshots have the old one
            self.version += 1
            item["metadata"]["resourceVersion"] = str(self.version)
            self.history.append((self.version, kind, "DELETED", item))
            self.changed.notify_all()

    def forget_history(self):
        """As after an etcd compaction: watches of the past expire."""
        with self.changed:
            self.history.clear()

    def node(self, name, is_ready=True, address="10.0.0.1", gpus=0):
        offered = {"nvidia.com/gpu": str(gpus)} if gpus else {}
        self.put("nodes", {"kind": "Node", "metadata": {"name": name}, "spec": {}, "status": {
            "allocatable": {"cpu": "8", "memory": "8Gi"} | offered, "addresses": [{"type": "InternalIP", "address": address}],
            "conditions": [{"type": "Ready", "status": "True" if is_ready else "Unknown", "reason": "x", "message": "stopped"}]}})

    def slice(self, node, devices, name=None, generation=1, count=1, driver="gpu.nvidia.com"):
        """Devices by their names, or as a ResourceSlice has them."""
        self.put("resourceslices", {"kind": "ResourceSlice", "metadata": {"name": name or node}, "spec": {
            "driver": driver, "nodeName": node, "pool": {"name": node, "generation": generation, "resourceSliceCount": count},
            "devices": [{"name": device} if isinstance(device, str) else device for device in devices]}})

    def unprepared(self, name):
        """A kubelet waits for the pod's claim."""
        with self.changed:
            pod = json.loads(json.dumps(self.objects["pods"][name]))
        pod["status"] = {"phase": "Pending", "conditions": [{"type": "PodReadyToStartContainers", "status": "False"}], "containerStatuses": [
            {"name": "task", "state": {"waiting": {"reason": "ContainerCreating"}}}]}
        self.put("pods", pod)

    def init_waits(self, name, reason, message):
        """The container that brings skep-init does not start."""
        with self.changed:
            pod = json.loads(json.dumps(self.objects["pods"][name]))
        pod["status"] = {"phase": "Pending", "initContainerStatuses": [{"name": "skep", "state": {"waiting": {"reason": reason, "message": message}}}],
                         "containerStatuses": [{"name": "task", "state": {"waiting": {"reason": "PodInitializing"}}}]}
        self.put("pods", pod)

    def status(self, name, phase, state=None, address=None):
        with self.changed:
            pod = json.loads(json.dumps(self.objects["pods"][name]))
        known = address or pod.get("status", {}).get("podIP")
        pod["status"] = {"phase": phase} | ({"containerStatuses": [{"name": "task", "state": state}]} if state else {}) | ({"podIP": known} if known else {})
        self.put("pods", pod)

    def run(self, name, address=None):
        self.status(name, "Running", {"running": {"startedAt": f"{self.year}-01-01T00:00:00Z"}}, address)

    def end(self, name, code=0):
        times = {"startedAt": f"{self.year}-01-01T00:00:00Z", "finishedAt": f"{self.year}-01-01T00:00:01Z"}
        self.status(name, "Failed" if code else "Succeeded", {"terminated": {"exitCode": code} | times})


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # else the body of an answer comes 40 ms behind its head

    def log_message(self, *_):
        pass

    def date_time_string(self, timestamp=None):
        return f"Thu, 01 Jan {self.server.year} 00:00:00 GMT"

    def handle_one_request(self):
        with self.server.changed:
            self.server.idle.add(self.connection)
        super().handle_one_request()

    def parse_request(self):
        with self.server.changed:
            self.server.idle.discard(self.connection)
        return super().parse_request()

    def answer(self, status, body, headers=()):
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        if self.server.closes:
            self.send_header("Connection", "close")
            self.close_connection = True
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def fail(self, status, headers=()):
        message = 'forbidden: User "skep" cannot do this' if status == 403 else f"fault {status}"
        self.answer(status, {"kind": "Status", "code": status, "message": message}, headers)

    def prepare(self):
        """Kind, name and query of the request; None: it has been answered."""
        url = urllib.parse.urlsplit(self.path)
        self.query = dict(urllib.parse.parse_qsl(url.query))
        found = re.fullmatch(r"(?:/api/v1|/apis/resource.k8s.io/v1)/(?:namespaces/([^/]+)/)?"
                             r"(nodes|pods|secrets|resourceslices|resourceclaims)(?:/([^/]+))?(?:/status)?", url.path)
        length = int(self.headers.get("Content-Length") or 0)
        self.body = json.loads(self.rfile.read(length)) if length else None
        if url.path == f"{API}/nodes":
            self.tell_metrics()
            return None
        if url.path == "/readyz":
            self.answer(200, "ok") if self.server.is_ready else self.fail(500)
            return None
        with self.server.changed:
            self.server.requests.append(f"{self.command} {self.path}")
            self.server.changed.notify_all()
            token = self.server.token
            is_refused = self.server.hit("401") or (token and self.headers.get("Authorization") != f"Bearer {token}")
        if is_refused or not found:
            self.fail(401 if is_refused else 404)
            return None
        return found[2], found[3]

    def frame(self, payload, opcode=2):
        """To the client."""
        length = bytes([len(payload)]) if len(payload) < 126 else bytes([126]) + len(payload).to_bytes(2, "big")
        self.wfile.write(bytes([0x80 | opcode]) + length + payload)
        self.wfile.flush()

    def upgrade(self, protocol):
        """The answer to a client that asks for a WebSocket."""
        key = base64.b64encode(hashlib.sha1(f"{self.headers['Sec-WebSocket-Key']}258EAFA5-E914-47DA-95CA-C5AB0DC85B11".encode()).digest()).decode()
        self.send_response(101)
        for name, value in (("Upgrade", "websocket"), ("Connection", "Upgrade"), ("Sec-WebSocket-Accept", key), ("Sec-WebSocket-Protocol", protocol)):
            self.send_header(name, value)
        self.end_headers()
        self.close_connection = True

    def message(self):
        """Of the client, whose frames are masked; None: it has closed."""
        head = self.rfile.read(2)
        if len(head) < 2 or head[0] & 15 == 8:
            return None
        length = head[1] & 127
        if length > 125:
            length = int.from_bytes(self.rfile.read(2 if length == 126 else 8), "big")
        mask = self.rfile.read(4)
        return bytes(byte ^ mask[i % 4] for i, byte in enumerate(self.rfile.read(length)))

    def program(self, pod, words):
        """Programs in pods, which read their input to the line that is "."."""
        server = self.server
        with server.changed:
            server.requests.append(f"{self.command} {self.path}")
            server.changed.notify_all()
            is_refused = not server.runs_programs or pod not in server.objects["pods"]
            fails = not is_refused and (server.hit("exec-500") or server.programs_left == 0)
            if server.programs_left and not is_refused and not fails:
                server.programs_left -= 1
        if is_refused or fails:
            self.fail(404 if is_refused else 500)
            return
        self.upgrade("v5.channel.k8s.io")
        text = b""
        while text != b".\n" and not text.endswith(b"\n.\n"):
            message = self.message()
            if message is None:
                return
            text += message[1:] if message[:1] == b"\0" else b""
        with server.changed:
            server.programs.append((pod, words, text.decode()))
            fault = next((f for f in ("exec-fails", "exec-cut") if server.hit(f)), None)
            server.changed.notify_all()
        if fault == "exec-cut":
            return
        if fault:
            self.frame(b"\2it cannot be written\n")
            self.frame(b'\3{"status":"Failure","details":{"causes":[{"reason":"ExitCode","message":"1"}]}}')
        else:
            self.frame(b'\3{"status":"Success"}')
        self.frame(b"\3\xe8", 8)

    def carry(self, task):
        """What the task sends; then the connection is closed."""
        with contextlib.suppress(OSError):
            while part := task.recv(32 << 10):
                self.frame(b"\0" + part)
            self.frame(b"\3\xe8", 8)

    def forward(self, pod, port):
        """A connection to a port of a pod, which is one of this machine."""
        server = self.server
        with server.changed:
            server.requests.append(f"{self.command} {self.path}")
            server.changed.notify_all()
            is_stranger = server.token and self.headers.get("Authorization") != f"Bearer {server.token}"
            is_forbidden, is_there = server.forbids == ("GET", "portforward"), pod in server.objects["pods"]
            address = server.listens.get(port)
        if is_stranger or is_forbidden or not is_there:
            self.fail(401 if is_stranger else 403 if is_forbidden else 404)
            return
        self.upgrade(self.headers["Sec-WebSocket-Protocol"])
        for channel in b"\0", b"\1":
            self.frame(channel + port.to_bytes(2, "little"))
        if not address:
            self.frame(f"\1error forwarding port {port} to pod {pod}, uid : dial tcp4 127.0.0.1:{port}: connect: connection refused".encode())
            self.frame(b"\3\xe8", 8)
            return
        with socket.create_connection(address) as task:
            carrier = threading.Thread(target=self.carry, args=(task,))
            carrier.start()
            while (message := self.message()) is not None:
                task.sendall(message[1:])
            task.shutdown(socket.SHUT_RDWR)
            carrier.join()

    def tell_metrics(self):
        """As a server behind this one: its requests and its faults are not among those of the API server."""
        with self.server.changed:
            self.server.metrics_asked.append(self.path)
            items = self.server.metrics
        self.fail(404) if items is None else self.answer(200, listing(items()))

    def do_GET(self):
        url = urllib.parse.urlsplit(self.path)
        wanted = re.fullmatch(r"/api/v1/namespaces/[^/]+/pods/([^/]+)/exec", url.path)
        if wanted:
            self.program(wanted[1], [value for name, value in urllib.parse.parse_qsl(url.query) if name == "command"])
            return
        wanted = re.fullmatch(r"/api/v1/namespaces/[^/]+/pods/([^/]+)/portforward", url.path)
        if wanted:
            self.forward(wanted[1], int(urllib.parse.parse_qs(url.query)["ports"][0]))
            return
        target = self.prepare()
        if not target:
            return
        kind, name = target
        if name:
            with self.server.changed:
                item = self.server.objects[kind].get(name)
            self.answer(200, item) if item else self.fail(404)
        elif fault := self.follow_fault():
            self.fail(int(fault[-3:]), [("Retry-After", "1")] if fault.endswith("429") else ())
        elif self.query.get("sendInitialEvents") and not self.server.has_streamed_lists:
            self.fail(422)
        elif self.query.get("watch"):
            self.watch(kind)
        else:
            self.list(kind)

    def follow_fault(self):
        """Of a list or a watch; a list that is the begin of a watch is a list."""
        what = "watch" if "resourceVersion" in self.query else "list"
        with self.server.changed:
            return next((f for f in (f"{what}-500", f"{what}-429", f"{what}-401") if self.server.hit(f)), None)

    def list(self, kind):
        server = self.server
        with server.changed:
            is_first = "continue" not in self.query
            if (is_first and server.hit("list-410")) or (not is_first and server.hit("continue-410")):
                expired = True
            else:
                expired = False
            if is_first:
                server.snapshots.append((server.version, [server.objects[kind][name] for name in sorted(server.objects[kind])]))
            number, start = map(int, self.query.get("continue", f"{len(server.snapshots) - 1}/0").split("/"))
            version, objects = server.snapshots[number]
            more = f"{number}/{start + server.page}" if start + server.page < len(objects) else ""
            body = {"kind": "List", "metadata": {"resourceVersion": str(version), "continue": more},
                    "items": objects[start:start + server.page]}
        self.fail(410) if expired else self.answer(200, body)

    def line(self, event, item):
        self.wfile.write(json.dumps({"type": event, "object": item}).encode() + b"\n")
        self.wfile.flush()

    def watch(self, kind):
        server, begins_with_list = self.server, "resourceVersion" not in self.query
        with server.changed:
            at = server.version if begins_with_list else int(self.query["resourceVersion"])
            objects = list(server.objects[kind].values()) if begins_with_list else []
            is_cut = begins_with_list and server.hit("list-cut")
            is_old = server.hit("watch-410")
            is_expired = server.hit("stream-410") or (not server.history and at < server.version)
        if is_old:
            self.fail(410)
            return
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        for item in objects[:1] if is_cut else objects:
            self.line("ADDED", item)
        if is_cut:
            return
        if begins_with_list:
            self.line("BOOKMARK", {"metadata": {"resourceVersion": str(at), "annotations": {"k8s.io/initial-events-end": "true"}}})
        if is_expired:
            self.line("ERROR", {"kind": "Status", "code": 410, "reason": "Expired"})
            return
        while True:
            with server.changed:
                server.changed.wait_for(lambda: server.is_stopping or any(v > at and k == kind for v, k, *_ in server.history)
                                        or not server.history and server.version > at)
                if server.is_stopping:
                    return
                events = [entry for entry in server.history if entry[0] > at and entry[1] == kind]
                if not events:  # what is asked for has been compacted
                    return
                version, _, event, item = events[0]
                fault = next((f for f in ("cut", "twice", "end", "garbage") if server.hit(f)), None)
            if fault == "cut":
                self.wfile.write(json.dumps({"type": event, "object": item}).encode()[:60])
                return
            if fault == "garbage":
                self.wfile.write(b"<html>bad gateway</html>\n")
                return
            for _ in range(2 if fault == "twice" else 1):
                self.line(event, item)
            at = version
            if fault == "end":
                return

    def write_fault(self, kind):
        """True: it has been answered."""
        with self.server.changed:
            fault = next((f for f in ("429", "500", "403") if self.server.hit(f)), None)
            if self.server.forbids == (self.command, kind):
                fault = "403"
            if self.server.fails and self.server.fails(self.command, kind, self.body):
                fault = "500"
        if fault:
            self.fail(int(fault), [("Retry-After", "1")] if fault == "429" else ())
        return fault

    def done(self, status, body, kind=None):
        server = self.server
        with server.changed:
            is_lost = server.hit("lost")
            if kind and server.hold == (self.command, kind):
                is_lost = server.held = True
                server.changed.notify_all()
                server.changed.wait_for(lambda: server.is_stopping or not server.hold)
        if is_lost:
            self.close_connection = True
            return
        self.answer(status, body)
        with server.changed:
            server.answered.append(f"{self.command} {self.path}")
            server.changed.notify_all()

    def do_POST(self):
        target = self.prepare()
        if not target or self.write_fault(target[0]):
            return
        kind, name = target[0], self.body["metadata"]["name"]
        if kind == "pods" and not self.server.knows_users:
            self.body["spec"].pop("hostUsers", None)
        with self.server.changed:
            is_there = name in self.server.objects[kind]
        if is_there:
            self.fail(409)
        elif kind == "resourceclaims" and self.is_hit("quota"):
            self.answer(403, {"kind": "Status", "code": 403, "message": f"{name} is forbidden: exceeded quota: gpus"})
        elif kind == "pods" and self.is_hit("denied"):
            self.answer(403, {"kind": "Status", "code": 403, "reason": "Forbidden", "message": f'{name} is forbidden: violates PodSecurity "baseline:latest"'})
        else:
            self.done(201, self.server.put(kind, self.body | ({"status": {"phase": "Pending"}} if kind == "pods" else {})), kind)

    def is_hit(self, fault):
        with self.server.changed:
            return self.server.hit(fault)

    def do_PUT(self):
        """Of a status: the version must be the newest."""
        target = self.prepare()
        if not target or self.write_fault(target[0]):
            return
        kind, name = target
        with self.server.changed:
            item = json.loads(json.dumps(self.server.objects[kind].get(name)))
        if not item:
            self.fail(404)
        elif self.is_hit("refused"):
            self.fail(422)
        elif self.body["metadata"]["resourceVersion"] != item["metadata"]["resourceVersion"]:
            self.fail(409)
        else:
            self.done(200, self.server.put(kind, item | {"status": self.body["status"]}), kind)

    def do_DELETE(self):
        target = self.prepare()
        if not target or self.write_fault(target[0]):
            return
        kind, name = target
        with self.server.changed:
            item = self.server.objects[kind].get(name)
        wanted = ((self.body or {}).get("preconditions") or {}).get("uid")
        if kind == "pods" and item and item.get("status", {}).get("phase") == "Running" and self.body.get("gracePeriodSeconds") == 0:
            with self.server.changed:
                self.server.forced.append(name)
        if not item:
            self.fail(404)
        elif wanted and wanted != item["metadata"]["uid"]:
            self.fail(409)
        elif kind == "pods" and self.server.keeps_pods:
            item = json.loads(json.dumps(item))
            item["metadata"]["deletionTimestamp"] = f"{self.server.year}-01-01T00:00:00Z"
            self.done(200, self.server.put(kind, item))
        else:
            self.server.remove(kind, name)
            self.done(200, {"kind": "Status"})
