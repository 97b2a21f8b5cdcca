"""A Kubernetes of our own for a test: the API server that build-components made, and its etcd or Debian's, on loopback."""

import contextlib
import ctypes
import http.client
import json
import pathlib
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading

import yaml

HERE = pathlib.Path(__file__).resolve().parent
DEPLOY = HERE.parents[2] / "deploy/kubernetes"
sys.path.insert(0, str(HERE.parent))
sys.path.insert(0, str(HERE.parent / "server"))
import waits  # noqa: E402
from task_ports import server_port  # noqa: E402

SKIPPED = 77
PASSING = (500, 503, 504)  # what an API server answers that is busy


def need(*components):
    """The folder of the components. Without them the test is skipped, and says how they come to be."""
    build = HERE / "build-components"
    missing = subprocess.run([build, "--missing", *components], check=True, capture_output=True, text=True).stdout.split()
    folder = pathlib.Path(subprocess.run([build, "--print"], check=True, capture_output=True, text=True).stdout.strip())
    if not shutil.which("etcd") and not (folder / "etcd").exists():
        missing.append("etcd (Debian's etcd-server, or build-components etcd)")
    if missing:
        print(f"skipped: not here: {', '.join(missing)}; {build} {' '.join(components)} makes what can be made")
        sys.exit(SKIPPED)
    return folder


def end_with_parent():
    """For the child of a fork: it is killed when the test ends, however that ends."""
    PR_SET_PDEATHSIG = 1
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class Refused(Exception):
    def __init__(self, status, body):
        super().__init__(f"{status}: {body}")
        self.status = status


class Cluster:
    """etcd and the API server; `admin` may everything, skepd's service account what its roles say."""

    NAMESPACE = "skep-jobs"

    def __init__(self, address="127.0.0.1"):
        self.components = need("kube-apiserver")
        self.address = address
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="kube-test-"))
        self.etcd_ports = server_port(), server_port()
        self.port = server_port()
        self.processes = {}
        (self.directory / "tokens").write_text('admin-token,admin,1,system:masters\n')
        subprocess.run(["openssl", "genrsa", "-out", self.directory / "accounts.key", "2048"], check=True, capture_output=True)

    def run(self, name, *command):
        with open(self.directory / f"{name}.log", "ab") as log:
            self.processes[name] = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, preexec_fn=end_with_parent)

    def start_etcd(self):
        client, peer = (f"http://127.0.0.1:{port}" for port in self.etcd_ports)
        built = self.components / "etcd"
        self.run("etcd", built if built.exists() else "etcd", "--data-dir", self.directory / "etcd", "--listen-client-urls", client, "--advertise-client-urls", client,
                 "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", f"default={peer}", "--unsafe-no-fsync")

    def start_server(self, *more):
        self.run("apiserver", self.components / "kube-apiserver", f"--etcd-servers=http://127.0.0.1:{self.etcd_ports[0]}",
                 f"--bind-address={self.address}", f"--secure-port={self.port}", f"--cert-dir={self.directory / 'certs'}",
                 f"--token-auth-file={self.directory / 'tokens'}", "--authorization-mode=Node,RBAC",
                 f"--service-account-key-file={self.directory / 'accounts.key'}",
                 f"--service-account-signing-key-file={self.directory / 'accounts.key'}",
                 "--service-account-issuer=https://kubernetes.default.svc", "--service-cluster-ip-range=10.97.0.0/16",
                 "--endpoint-reconciler-type=none", *more)
        waits.until(self.is_ready, lambda: f"the API server is not ready:\n{self.tail('apiserver')}", waits.PATIENCE_S)

    def start_controllers(self, *more):
        """Those that `more` names."""
        config = self.kubeconfig("controllers.kubeconfig", {"token": "admin-token"})
        self.run("controllers", self.components / "kube-controller-manager", f"--kubeconfig={config}", "--leader-elect=false",
                 "--secure-port=0", *more)

    def start_scheduler(self, qps=5000):
        """The cluster's own, as fast as its client lets it."""
        path = self.directory / "scheduler.json"
        path.write_text(json.dumps({
            "apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration", "leaderElection": {"leaderElect": False},
            "clientConnection": {"kubeconfig": str(self.kubeconfig("scheduler.kubeconfig", {"token": "admin-token"})), "qps": qps, "burst": 2 * qps}}))
        self.run("scheduler", self.components / "kube-scheduler", f"--config={path}", "--secure-port=0")

    def is_ready(self):
        assert self.processes["apiserver"].poll() is None, self.tail("apiserver")
        try:
            self.call_once("GET", "/readyz")
            return True
        except (OSError, http.client.HTTPException, Refused):
            return False

    def start(self, *more):
        self.start_etcd()
        self.start_server(*more)
        self.apply("rights.yaml")
        self.create(f"/api/v1/namespaces/{self.NAMESPACE}/serviceaccounts", {"metadata": {"name": "default"}})

    def stop_one(self, name, how=signal.SIGTERM):
        process = self.processes.pop(name)
        process.send_signal(how)
        process.wait(60)

    def stop(self):
        for name in list(self.processes):
            self.stop_one(name, signal.SIGKILL)
        shutil.rmtree(self.directory, ignore_errors=True)

    def tail(self, name, lines=20):
        return "\n".join((self.directory / f"{name}.log").read_text(errors="replace").splitlines()[-lines:])

    def call(self, method, path, body=None, **more):
        """What only passes is asked for again. Then a write may have been carried out before."""
        answers, passing = [], []

        def is_answered():
            try:
                answers.append(self.call_once(method, path, body, **more))
            except Refused as refused:
                name = ((body or {}).get("metadata") or {}).get("name")
                if refused.status in PASSING:
                    passing.append(str(refused))
                elif passing and (method, refused.status) == ("DELETE", 404):
                    answers.append({})
                elif passing and (method, refused.status) == ("POST", 409) and name:
                    answers.append(self.call_once("GET", f"{path.partition('?')[0]}/{name}", **more))
                else:
                    raise
            return answers

        waits.until(is_answered, lambda: f"{method} {path}: {passing[-1]}")
        return answers[0]

    def call_once(self, method, path, body=None, kind="application/json", token="admin-token"):
        connection = http.client.HTTPSConnection(self.address, self.port, timeout=waits.PATIENCE_S, context=ssl._create_unverified_context())
        headers = {"Authorization": f"Bearer {token}"} | ({"Content-Type": kind} if body is not None else {})
        try:
            connection.request(method, path, json.dumps(body) if body is not None else None, headers)
            reply = connection.getresponse()
            data = reply.read().decode()
        finally:
            connection.close()
        if reply.status // 100 != 2:
            raise Refused(reply.status, data)
        return json.loads(data) if "json" in (reply.getheader("Content-Type") or "") else data

    @contextlib.contextmanager
    def changes(self, path, on_change):
        """`on_change` is called, from another thread, with each object of this list that comes or changes from now on."""
        version = self.call("GET", path)["metadata"]["resourceVersion"]
        connection = http.client.HTTPSConnection(self.address, self.port, context=ssl._create_unverified_context())
        connection.request("GET", f"{path}?watch=1&resourceVersion={version}", None, {"Authorization": "Bearer admin-token"})
        wire, reply = connection.sock, connection.getresponse()
        assert reply.status == 200, reply.status

        def follow():
            with contextlib.suppress(OSError, http.client.HTTPException, ValueError):  # it is shut down
                for line in reply:
                    change = json.loads(line)
                    assert change["type"] != "ERROR", line
                    on_change(change["object"])

        thread = threading.Thread(target=follow)
        thread.start()
        try:
            yield
        finally:
            socket.socket.shutdown(wire, socket.SHUT_RDWR)
            thread.join()
            connection.close()

    def create(self, path, body):
        return self.call("POST", path, body)

    def kubeconfig(self, name, user):
        path = self.directory / name
        path.write_text(json.dumps({
            "current-context": "test",
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test", "namespace": self.NAMESPACE}}],
            "clusters": [{"name": "test", "cluster": {"server": f"https://{self.address}:{self.port}",
                                                      "certificate-authority": "certs/apiserver.crt"}}],
            "users": [{"name": "test", "user": user}],
        }))
        return path

    def apply(self, name, image=None):
        """The manifests that operators get, each field checked; what is there already stays. `image`: instead of the manifest's own."""
        plurals = {"NetworkPolicy": "networkpolicies"}
        text = (DEPLOY / name).read_text()
        for item in yaml.safe_load_all(text.replace("registry.lab/skep:0.1", image) if image else text):
            group, space = item["apiVersion"], item["metadata"].get("namespace")
            base = (f"/apis/{group}" if "/" in group else f"/api/{group}") + (f"/namespaces/{space}" if space else "")
            kind = plurals.get(item["kind"], item["kind"].lower() + "s")
            try:
                self.create(f"{base}/{kind}?fieldValidation=Strict", item)
            except Refused as refused:
                if refused.status != 409:
                    raise

    def token(self, bound=None):
        """A token of skepd's service account; with the name of a secret it ends when that is deleted."""
        more = {"boundObjectRef": {"kind": "Secret", "apiVersion": "v1", "name": bound}} if bound else {}
        if bound:
            self.create("/api/v1/namespaces/skep/secrets", {"metadata": {"name": bound}})
        answer = self.create("/api/v1/namespaces/skep/serviceaccounts/skep/token", {"spec": {"expirationSeconds": 3600, "audiences": [], **more}})
        return answer["status"]["token"]

    def grant(self):
        """The kubeconfig that has skepd's rights; the file that is returned beside it has its token, which ends with the secret `first`."""
        path = self.directory / "token"
        path.write_text(self.token("first"))
        return self.kubeconfig("skepd.kubeconfig", user={"tokenFile": "token"}), path

    # --- nodes without a kubelet, and pods whose status the test plays ---

    def add_node(self, name, amounts=None, labels=None, taints=()):
        self.create("/api/v1/nodes", {"metadata": {"name": name, "labels": labels or {}}})
        # the API server adds the taint not-ready, which a controller would take off
        self.merge(f"/api/v1/nodes/{name}", {"spec": {"taints": list(taints)}})
        self.set_node(name, amounts or {"cpu": "8", "memory": "16Gi", "pods": "110"})

    def set_node(self, name, amounts=None, ready="True", reason="KubeletReady", message=""):
        status = {"conditions": [{"type": "Ready", "status": ready, "reason": reason, "message": message}],
                  "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],  # nobody listens there
                  "daemonEndpoints": {"kubeletEndpoint": {"Port": 1}}}
        if amounts:
            status |= {"capacity": amounts, "allocatable": amounts}
        self.merge(f"/api/v1/nodes/{name}/status", {"status": status})

    def merge(self, path, body):
        return self.call("PATCH", path, body, kind="application/merge-patch+json")

    def pods(self):
        return {pod["metadata"]["name"]: pod for pod in self.call("GET", f"/api/v1/namespaces/{self.NAMESPACE}/pods")["items"]}

    def wait_pods(self, count, limit=waits.PATIENCE_S):
        waits.until(lambda: len(self.pods()) == count, lambda: f"not {count} pods: {list(self.pods())}", limit)
        return self.pods()

    def play(self, name, phase, state=None, **more):
        """What a kubelet would say of a pod."""
        status = {"phase": phase, **more}
        if state:
            status["containerStatuses"] = [{"name": "task", "state": state, "image": "x", "imageID": "x", "ready": "running" in state,
                                            "restartCount": 0}]
        self.merge(f"/api/v1/namespaces/{self.NAMESPACE}/pods/{name}/status", {"status": status})

    def play_running(self, name, address=None):
        self.play(name, "Running", {"running": {"startedAt": "2026-01-01T00:00:00Z"}})
        if address:
            self.merge(f"/api/v1/namespaces/{self.NAMESPACE}/pods/{name}/status", {"status": {"podIP": address, "podIPs": [{"ip": address}]}})

    def play_end(self, name, code=0, **more):
        self.play(name, "Failed" if code else "Succeeded", {"running": None, "terminated": {"exitCode": code, "reason": "Error" if code else "Completed",
                                                                        "startedAt": "2026-01-01T00:00:00Z", "finishedAt": "2026-01-01T00:00:01Z", **more}})

    def play_gone(self, name):
        """kubelet's last word on a pod that is being deleted."""
        self.call("DELETE", f"/api/v1/namespaces/{self.NAMESPACE}/pods/{name}", {"gracePeriodSeconds": 0})
