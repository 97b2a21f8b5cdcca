"""A request to each operation of docs/openapi.yaml that succeeds, and what it needs made before it: for soak.py.

What a request uses up (a job that is deleted, an upload that is ended) is made for it alone; what it only reads is made once.
"""
import collections
import hashlib
import json
import urllib.parse

from waits import PATIENCE_S, until
from world import job

STORM_S = 10  # for a job's state, of which others may take it
LEFT_MAX = 40  # of what one maker has made and nobody has removed
UPLOADS_KEPT, UPLOADS_BEGUN = 2, 5  # of one user; the server allows eight
USERS, GROUPS = "/api/v2/users/{}", "/api/v2/groups/{}"
RED = "red"  # a virtual cluster that only some may use
FILE = b"0123456789"
V1_JOB = {"image": "i", "taskRoles": [{"name": "worker", "taskNumber": 1, "cpuNumber": 1, "memoryMB": 128, "command": "x"}]}

NO_PROVIDER = "no provider of OpenID Connect is configured"
NEVER = {
    "GET /api/v2/authn/oidc/login": NO_PROVIDER,
    "GET /api/v2/authn/oidc/return": NO_PROVIDER,
    "POST /api/v2/authn/oidc/return": NO_PROVIDER,
    "POST /api/v2/authn/oidc/token": NO_PROVIDER,
    "POST /api/v2/authn/oidc/device": NO_PROVIDER,
    "GET /api/v2/authn/oidc/logout": NO_PROVIDER,
    "GET /api/v1/authn/oidc/login": NO_PROVIDER,
    "GET /api/v1/authn/oidc/return": NO_PROVIDER,
    "POST /api/v1/authn/oidc/return": NO_PROVIDER,
    "GET /api/v1/authn/oidc/logout": NO_PROVIDER,
    "GET /api/v2/jobs/{job}/ssh": "never offered",
    "PUT /api/v2/virtual-clusters/{vc}": "virtual clusters are changed in the configuration",
    "DELETE /api/v2/virtual-clusters/{vc}": "likewise",
    "PUT /api/v1/virtual-clusters/{vc}": "likewise",
    "DELETE /api/v1/virtual-clusters/{vc}": "likewise",
    "POST /api/v2/jobs/{job}/exec": "the fake engine starts no programs in tasks",
    "GET /api/v2/exec/{session}": "likewise: there is no session",
    "DELETE /api/v2/exec/{session}": "likewise",
    "POST /api/v2/exec/{session}/link": "likewise",
}
# With another policy than hived there is one virtual cluster, which everybody may use, and no state of HiveD.
NEVER_WITHOUT_HIVED = {
    "POST /api/v2/requests": "there is no virtual cluster to ask for",
    "GET /api/v2/requests/{request}": "likewise",
    "PUT /api/v2/requests/{request}/status": "likewise",
    "GET /v1/inspect/affinitygroups": "there are no cells",
    "GET /v1/inspect/affinitygroups/{group}": "likewise",
    "GET /v1/inspect/clusterstatus": "likewise",
    "GET /v1/inspect/clusterstatus/physicalcluster": "likewise",
    "GET /v1/inspect/clusterstatus/virtualclusters": "likewise",
    "GET /v1/inspect/clusterstatus/virtualclusters/{vc}": "likewise",
}
# While others try wrong passwords, or ask for accounts, these are refused by intention, for a time.
BRAKED = ("POST /api/v2/requests/account", "POST /api/v2/authn/basic/login", "POST /api/v1/authn/basic/login", "POST /api/v2/tokens",
          "POST /api/v1/token")


class NotMade(Exception):
    """What the request needs could not be made: in a storm others have taken it away."""


class Request:
    """What is sent; `parts` are those of the path."""

    def __init__(self, parts=None, body=None, query=None, kind="application/json", token=None, headers=()):
        self.parts, self.body, self.query, self.kind = parts or {}, body, query or {}, kind
        self.token, self.headers = token, headers

    def data(self):
        if self.body is None or isinstance(self.body, bytes):
            return self.body or b""
        return self.body.encode() if isinstance(self.body, str) else json.dumps(self.body).encode()

    def target(self, path):
        for name, value in self.parts.items():
            path = path.replace("{%s}" % name, urllib.parse.quote(str(value), safe="~:"))
        return path + ("?" + urllib.parse.urlencode(self.query) if self.query else "")


class Maker:
    """Makes requests, one after the other: of one thread. `name` keeps its objects from those of others. `limit_s`: for a job's state."""

    def __init__(self, world, token, name, barrier_token, is_hived, limit_s):
        self.world, self.admin, self.name, self.barrier_token = world, token, name, barrier_token
        self.number, self.limit_s = 0, limit_s
        self.kept = {}
        self.left = collections.deque()
        self.uploads, self.begun, self.uploader = collections.deque(), 0, None
        self.table = self.of_jobs() | self.of_people() | self.of_files() | self.of_templates() | self.of_tokens() | self.of_clusters()
        self.never = NEVER if is_hived else NEVER | NEVER_WITHOUT_HIVED

    def request(self, method, path):
        """None: it cannot succeed."""
        key = f"{method.upper()} {path}"
        if key in self.never:
            return None
        made = self.table.get(key)
        if made:
            return made()
        assert method == "get", f"soak_requests.py has no request for {key}"
        return Request(self.parts(path))

    # ---- what requests need ----

    def ask(self, method, path, body=None, token=None, fine=(200, 201, 202)):
        status, reply = self.world.json(method, path, body, token or self.admin())
        if status not in fine:
            raise NotMade(f"{status} to {method} {path} {str(body)[:200]}: {str(reply)[:300]}")
        return reply

    def next(self, kind):
        self.number += 1
        return f"{kind}-{self.name}-{self.number}"

    def next_left(self, kind, path):
        """A name for what a run of hours must not pile up: it is removed when so many others have come after it."""
        name = self.next(kind)
        self.leave(path.format(name))
        return name

    def leave(self, path):
        self.left.append(path)
        if len(self.left) > LEFT_MAX:
            oldest = self.left.popleft()
            kept = [name[0] if isinstance(name, tuple) else name for name in self.kept.values()]
            if oldest.rpartition("/")[2] not in kept:
                self.world.json("DELETE", oldest, token=self.admin())

    def once(self, kind, make, path):
        """One that is there for good, unless somebody has removed it."""
        name = self.kept.get(kind)
        if not name or self.world.json("GET", path.format(name), token=self.admin())[0] != 200:
            name = self.kept[kind] = make()
        return name

    def job(self, state=None):
        """A new one, perhaps in this state; USER~NAME."""
        name = self.next("job")
        text = job(name, ["true"], extra="secrets: {a: hush}\nextras: {gangAllocation: false}\n").replace("gpu: 0}", "gpu: 0, ports: {web: 1}}")
        status, _, reply = self.world.ask("POST", "/api/v2/jobs", text, self.admin(), {"Content-Type": "text/yaml"})
        if status != 202:
            raise NotMade(f"{status} to a job: {reply[:300]}")
        full = "admin~" + name
        if state == "STOPPED":
            self.ask("PUT", f"/api/v2/jobs/{full}/executionType", {"value": "STOP"})
        if state:
            ends = {state} | ({"SUCCEEDED", "FAILED"} if state == "STOPPED" else set())
            try:
                until(lambda: self.ask("GET", f"/api/v2/jobs/{full}")["jobStatus"]["state"] in ends, f"{full}: {state}", self.limit_s)
            except AssertionError as late:
                raise NotMade(str(late)) from late
        return full

    def kept_job(self):
        return self.once("job", lambda: self.job("RUNNING"), "/api/v2/jobs/{}")

    def user(self, **more):
        name = self.next_left("user", USERS)
        self.ask("POST", "/api/v2/users", {"username": name, "passwordHash": "", "email": "a@example.org"} | more)
        return name

    def kept_user(self):
        return self.once("user", self.user, "/api/v2/users/{}")

    def group(self):
        name = self.next_left("group", GROUPS)
        self.ask("POST", "/api/v2/groups", {"groupname": name, "extension": {"acls": {"storageConfigs": ["open"]}}})
        return name

    def kept_group(self):
        return self.once("group", self.group, "/api/v2/groups/{}")

    def person(self):
        """The name of a user who may use the storage, and has logged in; their token. They come from OpenPAI: no hash is made of the password."""
        name = self.next_left("person", USERS)
        salt = hashlib.md5(name.encode()).hexdigest().encode()
        digits = hashlib.pbkdf2_hmac("sha512", b"a-password", salt, 10000, 64).hex()
        self.ask("POST", "/api/v2/users", {"username": name, "passwordHash": digits, "grouplist": [self.kept_group()]})
        reply = self.ask("POST", "/api/v2/authn/basic/login", {"username": name, "password": "a-password"})
        return name, reply["token"]

    def kept_person(self):
        found = self.kept.get("person")  # its name and token
        if not found or self.world.json("GET", "/api/v2/tokens/check", token=found[1])[0] != 200:
            found = self.kept["person"] = self.person()
        return found

    def template(self):
        found = self.ask("POST", "/marketplace/api/items", self.template_body(self.next("template")))["id"]
        self.leave("/marketplace/api/items/" + found)
        return found

    def template_body(self, name):
        return {"name": name, "type": "job", "summary": "s", "description": "d", "protocol": job("a", ["true"]), "isPublic": True,
                "tags": ["a"], "categories": ["b"]}

    def kept_template(self):
        return self.once("template", self.template, "/marketplace/api/items/{}")

    def upload(self, is_whole=False):
        """The id of one of self.uploader's."""
        self.uploader_choose()
        path = self.next("upload")
        found = self.ask("POST", "/api/v2/storages/open/uploads", {"path": path, "size": len(FILE)}, self.uploader)["id"]
        self.uploads.append(found)
        if is_whole:
            self.ask_part(found)
        return found

    def uploader_choose(self):
        """One may have so many uploads. Those of which no id is known, begun by requests that are sent, are what another user is for."""
        while len(self.uploads) >= UPLOADS_KEPT:
            self.world.json("DELETE", f"/api/v2/storages/open/uploads/{self.uploads.popleft()}", token=self.uploader)
        if self.begun >= UPLOADS_BEGUN:
            self.kept.pop("person", None)  # there is none where the last one could not be made
        token = self.kept_person()[1]
        if token != self.uploader:
            self.uploads.clear()
            self.uploader, self.begun = token, 0

    def ask_part(self, upload):
        status, _, reply = self.world.ask("PUT", f"/api/v2/storages/open/uploads/{upload}?offset=0", FILE, self.uploader,
                                          {"Content-Type": "application/octet-stream"})
        if status != 200:
            raise NotMade(f"{status} to a part: {reply[:300]}")

    def file(self):
        path = self.next_left("file", "/api/v2/storages/open/files?path={}")
        (self.world.folder / "open" / path).write_bytes(FILE)
        return path

    def open_request(self):
        """Its id: a user asks for what only some may use."""
        name, token = self.kept_person()
        return self.ask("POST", "/api/v2/requests", {"virtualCluster": RED, "reason": "a course"}, token)["id"]

    def parts(self, path):
        """Of a path that is only read."""
        found = {}
        values = {"job": lambda: self.job_of(path), "user": self.kept_user, "group": self.kept_group, "item": self.kept_template,
                  "node": lambda: "fake0", "vc": lambda: "default", "storage": lambda: "open", "attempt": lambda: 0, "role": lambda: "worker",
                  "index": lambda: 0, "taskAttempt": lambda: 0, "stream": lambda: "all", "version": lambda: 1, "namespace": lambda: "default"}
        for name, value in values.items():
            if "{%s}" % name in path:
                found[name] = value()
        if "{user}" in path and "/jobs" in path:
            found["user"] = "admin"
        return found

    def job_of(self, path, name=None):
        """As that API names it: early PAI's paths have a user before it, or the caller's own."""
        name = name or self.kept_job()
        return name.partition("~")[2] if "/user/{user}/jobs" in path else name

    # ---- the requests ----

    def of_jobs(self):
        v1, v1_user = "/api/v1/jobs", "/api/v1/user/{user}/jobs"
        text = "text/yaml"

        def new(path=None):
            name = self.next("new")
            parts = {"job": self.job_of(path, "admin~" + name), "user": "admin"} if path else {"user": "admin"}
            return Request(parts, job(name, ["true"]), kind=text)

        def on(path, body, state=None):
            return Request({"job": self.job_of(path, self.job(state)), "user": "admin", "role": "worker"}, body)
        table = {
            "POST /api/v2/jobs": new,
            "PUT /api/v2/jobs/{job}": lambda: new("/api/v2/jobs/{job}"),
            f"POST {v1}": new,
            f"POST {v1_user}": new,
            f"PUT {v1}/{{job}}": lambda: new(v1),
            f"PUT {v1_user}/{{job}}": lambda: new(v1_user),
            "POST /api/v2/bulk/jobs": lambda: Request({}, {"action": "addTag", "tag": "a", "jobs": [self.kept_job()]}),
            "PUT /api/v2/jobs/{job}/release": lambda: on("", None),
            "PUT /api/v2/jobs/{job}/taskRoles/{role}/instances": lambda: on("", {"instances": 2}),
            "PUT /api/v2/jobs/{job}/tag": lambda: Request({"job": self.kept_job()}, {"value": "a-tag"}),
            "DELETE /api/v2/jobs/{job}/tag": self.untag,
            "POST /api/v2/jobs/{job}/webPorts": lambda: on("", {"label": "web"}, "RUNNING"),
            "GET /api/v2/jobs/{job}/logs/search": lambda: Request({"job": self.kept_job()}, query={"q": "line"}),
            "GET /api/internal/tail-logs/{log}": lambda: Request({"log": f"{self.kept_job()}:0:worker:0:0:all"}),
            "POST /api/internal/attempts/{attempt}/barriers/{barrier}": self.barrier,
            "GET /v1/inspect/affinitygroups/{group}": self.gang,
            "GET /api/v1/kubernetes/api/v1/namespaces/{namespace}/pods/{pod}": self.pod,
        }
        for path in ("/api/v2/jobs", v1, v1_user):
            table[f"DELETE {path}/{{job}}"] = lambda path=path: on(path, None, "STOPPED")
            table[f"PUT {path}/{{job}}/executionType"] = lambda path=path: on(path, {"value": "STOP"})
        for path in (f"GET {v1}/{{job}}/ssh", f"GET {v1_user}/{{job}}/ssh", f"GET {v1}/{{job}}/ssh/key"):
            table[path] = lambda path=path: Request({"job": self.job_of(path, self.v1_job()), "user": "admin"})
        return table

    def untag(self):
        name = self.job()
        self.ask("PUT", f"/api/v2/jobs/{name}/tag", {"value": "a-tag"})
        return Request({"job": name}, {"value": "a-tag"})

    def v1_job(self):
        name = self.next("early")
        self.ask("POST", "/api/v1/jobs", {"jobName": name} | V1_JOB)
        return "admin~" + name

    def gang(self):
        self.job("RUNNING")
        gangs = self.ask("GET", "/v1/inspect/affinitygroups")["items"]
        if not gangs:
            raise NotMade("no gang has a place")
        return Request({"group": gangs[0]["metadata"]["name"]})

    def pod(self):
        self.job("RUNNING")
        pods = self.ask("GET", "/api/v1/kubernetes/api/v1/pods")["items"]
        if not pods:
            raise NotMade("no task runs")
        return Request({"namespace": "default", "pod": pods[0]["metadata"]["name"]})

    def barrier(self):
        """A try's number is in the name of its container."""
        name = self.job("RUNNING")
        detail = self.ask("GET", f"/api/v2/jobs/{name}")
        number = int(detail["taskRoles"]["worker"]["taskStatuses"][0]["containerId"].rpartition("-")[2])
        return Request({"attempt": number, "barrier": "start"}, query={"report": "true"}, token=self.barrier_token(number))

    def of_people(self):
        def of(make, body, kind="user"):
            return lambda: Request({kind: make()}, body)

        def with_name(key, **more):
            return lambda: Request({}, {key: self.next_left("made", USERS if key == "username" else GROUPS)} | more)

        def joined(path_body):
            name, group = self.user(), self.kept_group()
            if path_body == "remove":
                self.ask("PUT", f"/api/v2/users/{name}/group", {"groupname": group})
            return Request({"user": name}, {"groupname": group})
        user, group = self.kept_user, self.kept_group
        return {
            "POST /api/v2/users": with_name("username", password="a-password", email="a@example.org", grouplist=[], extension={"a": 1}),
            "PUT /api/v2/users": lambda: Request({}, {"patch": True, "data": {"username": user(), "email": "b@example.org", "active": True,
                                                                            "extension": {"b": [1]}}}),
            "PUT /api/v2/users/me": lambda: Request({}, {"patch": True, "data": {"username": "admin", "extension": {"b": [1]}}}),
            "DELETE /api/v2/users/{user}": of(self.user, None),
            "PUT /api/v2/users/{user}/extension": of(user, {"extension": {"a": {"b": "c"}}}),
            "PUT /api/v2/users/{user}/email": of(user, {"email": "c@example.org"}),
            "PUT /api/v2/users/{user}/password": of(self.user, {"newPassword": "another-password"}),
            "PUT /api/v2/users/{user}/virtualcluster": of(user, {"virtualCluster": ["default"]}),
            "PUT /api/v2/users/{user}/admin": of(user, {"admin": False}),
            "PUT /api/v2/users/{user}/grouplist": lambda: Request({"user": self.user()}, {"grouplist": [group()]}),
            "PUT /api/v2/users/{user}/group": lambda: joined("add"),
            "DELETE /api/v2/users/{user}/group": lambda: joined("remove"),
            "PUT /api/v2/users/{user}/quota": of(user, {"liveJobs": 5, "gpus": None}),
            "POST /api/v2/groups": with_name("groupname", description="d", externalName="e", extension={"acls": {"admin": False}}),
            "PUT /api/v2/groups": lambda: Request({}, {"patch": True, "data": {"groupname": group(), "description": "d"}}),
            "DELETE /api/v2/groups/{group}": of(self.group, None, "group"),
            "PUT /api/v2/groups/{group}/description": of(group, {"description": "d"}, "group"),
            "PUT /api/v2/groups/{group}/externalname": of(group, {"externalName": "e"}, "group"),
            "PUT /api/v2/groups/{group}/extension": of(group, {"extension": {"a": 1}}, "group"),
            "PUT /api/v2/groups/{group}/extension/{key}": lambda: Request({"group": group(), "key": "b"}, {"data": {"c": [None]}}),
            "PUT /api/v2/groups/{group}/quota": of(group, {"storedJobs": 5, "streams": None}, "group"),
            "POST /api/v2/requests": lambda: Request({}, {"virtualCluster": RED, "reason": "r"}, token=self.kept_person()[1]),
            "POST /api/v2/requests/account": with_name("username", password="a-password", email="a@example.org", reason="r"),
            "GET /api/v2/requests/{request}": lambda: Request({"request": self.open_request()}),
            "PUT /api/v2/requests/{request}/status": lambda: Request({"request": self.open_request()}, {"status": "refused", "reason": "r"}),
            "PUT /api/v1/user": with_name("username", password="a-password", admin=False, modify=False),
            "DELETE /api/v1/user": lambda: Request({}, {"username": self.user()}),
            "PUT /api/v1/user/{user}/virtualClusters": of(user, {"virtualClusters": "default"}),
            "PUT /api/v1/user/{user}/githubPAT": of(user, {"githubPAT": "a-word"}),
        }

    def of_files(self):
        at = "/api/v2/storages/{storage}"

        def upload(body=None, query=None, is_whole=False, kind="application/octet-stream"):
            found = self.upload(is_whole)
            return Request({"storage": "open", "upload": found}, body, query, kind, token=self.uploader)

        def here(body=None, **query):
            return Request({"storage": "open"}, body, query)
        return {
            f"PUT {at}/files": lambda: here({"path": self.file(), "newPath": self.next("moved")}),
            f"DELETE {at}/files": lambda: here(path=self.file()),
            f"POST {at}/folders": lambda: here({"path": self.next("folder")}),
            f"GET {at}/file": lambda: here(path=self.file()),
            f"POST {at}/links": lambda: here({"path": self.file()}),
            f"GET {at}/links/{{file}}": self.linked,
            f"POST {at}/uploads": self.new_upload,
            f"GET {at}/uploads/{{upload}}": upload,
            f"PUT {at}/uploads/{{upload}}": lambda: upload(FILE, {"offset": 0}),
            f"POST {at}/uploads/{{upload}}": lambda: upload(is_whole=True),
            f"DELETE {at}/uploads/{{upload}}": upload,
            "GET /api/v2/changes": lambda: Request(),
        }

    def new_upload(self):
        self.uploader_choose()
        self.begun += 1
        return Request({"storage": "open"}, {"path": self.next("upload"), "size": 1, "replace": True}, token=self.uploader)

    def linked(self):
        uri = self.ask("POST", "/api/v2/storages/open/links", {"path": self.file()})["uri"]
        place, _, query = uri.partition("?")
        return Request({"storage": "open", "file": urllib.parse.unquote(place.rpartition("/")[2])}, query=dict(urllib.parse.parse_qsl(query)))

    def of_templates(self):
        at = "/marketplace/api/items"

        def item(body=None, make=self.kept_template, **parts):
            return lambda: Request({"item": make()} | parts, body)

        def starred():
            found = self.kept_template()
            self.ask("PUT", f"{at}/{found}/star")
            return Request({"item": found})

        def changed():
            found = self.template()
            self.ask("PUT", f"{at}/{found}", {"summary": "another"})
            return Request({"item": found, "version": 1}, {})
        return {
            f"POST {at}": lambda: Request({}, self.template_body(self.next("template"))),
            f"PUT {at}/{{item}}": item({"summary": "t", "tags": ["c", "d"]}),
            f"DELETE {at}/{{item}}": item(make=self.template),
            f"PUT {at}/{{item}}/status": item({"status": "approved"}),
            f"PUT {at}/{{item}}/official": item({"official": True}),
            f"POST {at}/{{item}}/versions/{{version}}/restore": changed,
            f"POST {at}/{{item}}/use": item(),
            f"PUT {at}/{{item}}/star": item(),
            f"DELETE {at}/{{item}}/star": starred,
        }

    def of_tokens(self):
        def login():
            return Request({}, {"username": "admin", "password": self.world.admin_password, "expiration": 600})

        def application():
            found = self.ask("POST", "/api/v2/tokens/application", {"scope": "read", "expiration": 600})["token"]
            return Request({"token": found})

        def logout():
            return Request(token=self.ask("POST", "/api/v2/authn/basic/login", login().body)["token"])
        table = {"GET /api/v2/tokens/check": Request, "GET /api/v1/token/check": Request}
        for path in ("/api/v2/authn/basic/login", "/api/v1/authn/basic/login", "/api/v2/tokens", "/api/v1/token"):
            table[f"POST {path}"] = login
        for path in ("/api/v2/tokens", "/api/v1/token"):
            table[f"POST {path}/application"] = lambda: Request({}, {"scope": "read", "expiration": 600})
            table[f"DELETE {path}/{{token}}"] = application
        for version in ("v1", "v2"):
            table[f"DELETE /api/{version}/authn/basic/logout"] = logout
        return table

    def of_clusters(self):
        table = {f"PUT /api/{version}/virtual-clusters/{{vc}}/status": lambda: Request({"vc": "default"}, {"vcStatus": "running"})
                 for version in ("v1", "v2")}
        for what, body in (("pardon", None), ("cordon", {"reason": "r"}), ("drain", {"reason": "r"}), ("uncordon", None)):
            table[f"PUT /api/v2/nodes/{{node}}/{what}"] = lambda body=body: Request({"node": "fake3"}, body)
        return table
