"""The engine against an API server that misbehaves: test_faults.py SKEPD SKEP

Covers: src/engine/kubernetes/client.c, src/engine/kubernetes/follow.c, src/engine/kubernetes/tasks.c, src/engine/kubernetes/claims.c,
src/engine/kubernetes/patience.c, src/engine/kubernetes/secrets.c, src/engine/kubernetes/reason.c, src/engine/kubernetes/node_ask.c,
src/cli/kube_wants.c
"""
import json
import os
import pathlib
import shutil
import ssl
import subprocess
import sys
import tempfile
import time
import unittest

import beside
from faulty_server import FaultyServer
from metrics_server import node_metrics
import skepd as server
import waits

SKEPD, SKEP = (sys.argv.pop(1), sys.argv.pop(1)) if __name__ == "__main__" else ("", "")


class Base(unittest.TestCase):
    KEYS = {}  # of engine.kubernetes
    CLUSTER = {}  # of the kubeconfig's cluster
    MORE = {}  # of the configuration

    def setUp(self):
        self.api = self.server()
        self.addCleanup(self.api.stop)
        self.addCleanup(lambda: self.assertEqual(self.api.forced, []))
        for number in range(5):  # three pages
            self.api.node(f"n{number}")
        self.skepd = server.Skepd(SKEPD, {"engine": {"kind": "fake"}})
        self.addCleanup(self.skepd.remove)
        self.addCleanup(lambda: self.assertEqual(self.skepd.stop(), 0, self.skepd.tail()))
        self.token_path = self.skepd.directory / "token"
        self.present("one")
        self.configure()

    def configure(self, **scheduling):
        self.skepd.write_config({
            "engine": {"kind": "kubernetes", "kubernetes": {"kubeconfig": self.write_kubeconfig(), "initImage": "skep:1"} | self.KEYS},
            "scheduling": {"portFirst": 15000, "portLast": 40000, "policy": "spread"} | scheduling} | self.MORE)

    def server(self):
        return FaultyServer()

    def kubeconfig(self):
        return {"current-context": "c", "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}],
                "clusters": [{"name": "c", "cluster": {"server": self.api.url} | self.CLUSTER}],
                "users": [{"name": "c", "user": {"tokenFile": "token"}}]}

    def write_kubeconfig(self):
        path = self.skepd.directory / "kubeconfig"
        path.write_text(json.dumps(self.kubeconfig()))
        return str(path)

    def present(self, token):
        """The token is another one from now on, here and there."""
        self.token_path.write_text(token + "\n")
        with self.api.changed:
            self.api.token = token

    def start(self, *faults):
        self.api.fault(*faults)
        self.skepd.start()
        self.skepd.login()

    def submit(self, name, instances=1, gpus=0):
        job = json.loads(server.job_file(name, {"main": (instances, "true", {})}, "task:1"))
        job["taskRoles"]["main"]["resourcePerInstance"]["gpu"] = gpus
        self.skepd.submit(json.dumps(job))
        return f"admin~{name}"

    def pods(self, count=1):
        self.api.wait(lambda api: len(api.objects["pods"]) == count, f"not {count} pods")
        with self.api.changed:
            return sorted(self.api.objects["pods"])

    def state(self, name, state):
        waits.until(lambda: self.skepd.job(name)["jobStatus"]["state"] == state,
                    lambda: f"{name} is not {state}\n{self.skepd.tail()}", waits.PATIENCE_S)

    def finish(self, name):
        self.assertEqual(self.skepd.wait_final([name], waits.PATIENCE_S)[name], "SUCCEEDED", f"{self.skepd.job(name)}\n{self.skepd.tail()}")
        self.pods(0)
        self.api.wait(lambda api: not api.faults, f"not asked for: {self.api.faults}")

    def nodes(self):
        return sorted(node["name"] for node in self.skepd.call("GET", "/api/v2/nodes")["data"] if node["state"] == "READY")

    def wait_nodes(self, count):
        waits.until(lambda: len(self.nodes()) == count, lambda: f"not {count} nodes: {self.nodes()}\n{self.skepd.tail()}", waits.PATIENCE_S)

    def running(self):
        """The only job, and its pod, which runs."""
        self.start()
        self.wait_nodes(5)
        job = self.submit("job")
        (pod,) = self.pods()
        self.api.run(pod)
        self.state(job, "RUNNING")
        return job, pod

    def run_one(self, name):
        job = self.submit(name)
        (pod,) = self.pods()
        self.api.run(pod)
        self.state(job, "RUNNING")
        self.api.end(pod)
        self.finish(job)


class NodeUse(Base):
    """What nodes use, where metrics-server tells it."""
    KEYS = {"nodeSelector": "skep=yes"}

    def use(self, node):
        return self.skepd.call("GET", f"/api/v2/nodes/{node}/use?resolution=recent")

    def test_what_metrics_server_says_of_each_node(self):
        self.api.metrics = lambda: [
            node_metrics("n0", "1499999999n", "3145728Ki"), node_metrics("n1", "9", "9Gi", age_s=600) | {"timestamp": "2026-01-01T00:00:00Z"},
            node_metrics("n2", "many", "9Gi"), node_metrics("n3", "-1", "9Gi"), node_metrics("elsewhere", "9", "9Gi")]
        job, pod = self.running()  # whose use is not taken for its node's

        def is_told():  # the first figure may be of a moment
            use = self.use("n0")["use"]
            points = use.get("cpu", {}).get("points", [])
            return "memory" in use and any(point is not None and abs(point - 1.5) < 0.05 for point in points)
        waits.until(is_told, lambda: f"n0 has no figures: {self.use('n0')}\n{self.skepd.tail()}", waits.PATIENCE_S)
        use = self.use("n0")
        self.assertEqual(use["use"].keys(), {"cpu", "memory"})  # of disks, which nobody tells of, there is no zero
        self.assertAlmostEqual(use["use"]["memory"]["most"], 3 << 30, delta=2 << 20)
        self.assertEqual(use["given"], {"cpu": 8, "memory": 8 << 30, "gpu": 0})
        for node in ("n1", "n2", "n3", "n4"):  # it is old, cannot be read, or is not told
            self.assertEqual(self.use(node)["use"], {}, node)
        self.assertEqual(set(self.api.metrics_asked), {"/apis/metrics.k8s.io/v1beta1/nodes?labelSelector=skep%3Dyes&limit=500"})
        self.assertIn("metrics.k8s.io says nothing that is understood of what 2 of the nodes use", self.skepd.tail(2000))
        self.api.end(pod)
        self.finish(job)


class Faults(Base):
    def test_the_first_lists_expire(self):
        self.start("list-410", "continue-410")
        self.wait_nodes(5)
        self.run_one("job")

    def test_lists_that_are_the_begin_of_a_watch(self):
        self.api.has_streamed_lists = True
        self.start("watch-410", "stream-410")
        self.wait_nodes(5)
        self.run_one("job")
        self.assertFalse([each for each in self.api.requests if "limit=" in each])

    def test_nobody_has_gone_who_is_not_in_half_a_list(self):
        self.api.has_streamed_lists = True
        job, pod = self.running()
        self.api.fault("end", "stream-410", "list-cut")
        self.api.end(pod)
        self.finish(job)

    def test_the_first_watches_expire(self):
        self.start("watch-410", "stream-410")
        self.wait_nodes(5)
        self.run_one("job")

    def test_what_was_missed_is_found_by_a_new_list(self):
        self.start()
        self.wait_nodes(5)
        job = self.submit("job", 2)
        first, second = self.pods(2)
        self.api.run(first)
        self.api.run(second)
        self.state(job, "RUNNING")
        # the stream breaks with the next event, and the past is forgotten before it is asked for again
        self.api.fault("cut", "stream-410")
        self.api.end(first)
        self.api.end(second)
        self.finish(job)

    def test_nodes_come_and_go_over_a_new_list(self):
        self.start()
        self.wait_nodes(5)
        self.api.fault("end", "stream-410")
        self.api.node("n1", is_ready=False)
        self.wait_nodes(4)
        self.api.remove("nodes", "n0")
        self.api.node("n5")
        waits.until(lambda: self.nodes() == ["n2", "n3", "n4", "n5"], lambda: f"{self.nodes()}\n{self.skepd.tail()}", 120)

    def test_streams_that_break(self):
        self.start()
        self.wait_nodes(5)
        for fault in ("cut", "twice", "end", "garbage"):
            with self.subTest(fault=fault):
                job = self.submit(fault)
                (pod,) = self.pods()
                self.api.run(pod)
                self.state(job, "RUNNING")
                self.api.fault(fault)
                self.api.end(pod)
                self.finish(job)

    def test_lists_and_watches_that_are_refused(self):
        """What a server in trouble answers for a while; afterwards nothing has been missed."""
        self.start(*[f"{what}-{status}" for what in ("list", "watch") for status in (500, 429, 401)])
        self.wait_nodes(5)
        self.run_one("job")

    def test_watches_that_are_refused_while_a_task_runs(self):
        job, pod = self.running()
        self.api.fault("end", "watch-500", "watch-429", "watch-401")
        self.api.end(pod)
        waits.until(lambda: not self.api.faults, lambda: f"{self.api.faults}\n{self.skepd.tail()}", 120)
        self.finish(job)

    def test_a_server_that_closes_each_connection(self):
        """As one that sends its clients to another (GOAWAY): no write is lost, and none is done twice."""
        self.start()
        self.wait_nodes(5)
        self.api.closes = True
        self.run_one("closed")
        self.api.closes = False
        for name in "first", "second":  # by connections that were kept, and that the server has closed since
            self.run_one(name)
            self.api.cut_idle()
        with self.api.changed:
            posts = [request for request in self.api.requests if request.startswith("POST") and request.endswith("/pods")]
        self.assertEqual(len(posts), 3, posts)

    def test_clocks_that_do_not_agree(self):
        """Those of the server and of the kubelets are years behind, or ahead: skepd goes by its own."""
        self.start()
        self.wait_nodes(5)
        for year in (2001, 2101):
            with self.subTest(year=year):
                with self.api.changed:
                    self.api.year = year
                self.api.fault("429")
                before = time.time()
                job = self.submit(f"in-{year}")
                (pod,) = self.pods()
                self.api.run(pod)
                self.state(job, "RUNNING")
                self.api.end(pod)
                self.finish(job)
                status = self.skepd.job(job)["jobStatus"]
                for key in ("createdTime", "completedTime"):
                    self.assertGreater(status[key], 1000 * (before - 60), key)
                    self.assertLess(status[key], 1000 * (time.time() + 60), key)

    def test_writes_that_fail_are_made_again(self):
        self.start()
        self.wait_nodes(5)
        for fault in ("429", "500", "403", "lost"):
            with self.subTest(fault=fault):
                self.api.fault(fault)
                job = self.submit(f"write-{fault}")
                (pod,) = self.pods()
                self.api.run(pod)
                self.state(job, "RUNNING")
                self.api.end(pod)
                self.finish(job)

    def test_a_pod_whose_creation_was_not_answered_is_adopted(self):
        self.start()
        self.wait_nodes(5)
        # the first write is the secret's, the second the pod's: both are carried out and not answered
        self.api.fault("lost", "lost")
        self.run_one("job")
        with self.api.changed:
            posts = [request for request in self.api.requests if request.startswith("POST") and request.endswith("/pods")]
        self.assertIn(len(posts), (1, 2), posts)  # it is asked for again, unless the watch has shown it by then

    def test_what_another_skepd_has_begun_is_not_started_again(self):
        self.start()
        self.wait_nodes(5)
        # an earlier process has made the secret, and perhaps the pod, which has gone since
        self.api.put("secrets", {"metadata": {"name": "skep-1"}})
        self.run_one("job")
        with self.api.changed:
            posts = [request for request in self.api.requests if request.startswith("POST") and request.endswith("/pods")]
            self.assertEqual(len(posts), 1, posts)
            self.assertIn("skep-2", str(self.api.history))
            self.assertNotIn("'name': 'skep-1'}, 'status'", str(self.api.history))

    def test_what_is_refused_before_it_is_done_has_not_been_done(self):
        self.start()
        self.wait_nodes(5)
        # as above, but a server that has just begun refuses the first question
        self.api.put("secrets", {"metadata": {"name": "skep-1"}})
        self.api.fault("403")
        self.run_one("job")
        with self.api.changed:
            self.assertNotIn("'name': 'skep-1'}, 'status'", str(self.api.history))

    def test_a_pod_that_has_gone_is_not_deleted(self):
        self.start()
        self.wait_nodes(5)
        job = self.submit("job")
        (pod,) = self.pods()
        # the watch may be faster: a pod that is known only from a late answer would be deleted as a stray one
        self.api.wait(lambda api: any(write.startswith("POST") and write.endswith("/pods") for write in api.answered), "the pod's create is not answered")
        self.api.run(pod)
        self.state(job, "RUNNING")
        self.skepd.act(job, "STOP")
        self.state(job, "STOPPED")
        self.api.wait(lambda api: not api.objects["secrets"], "the secret is not deleted")
        with self.api.changed:
            deletes = [request for request in self.api.requests if request.startswith("DELETE") and "/pods/" in request]
        self.assertEqual(len(deletes), 1, deletes)

    def test_a_task_is_told_why_before_its_pod_is_deleted(self):
        """This server knows no programs in pods: the pod is deleted all the same. That a task reads it is tested with kubelets."""
        self.configure(killGraceSeconds=240)  # in a part of which it is asked
        job, pod = self.running()
        self.skepd.act(job, "STOP")
        self.state(job, "STOPPED")
        with self.api.changed:
            asked = [request for request in self.api.requests if f"/pods/{pod}" in request and not request.startswith("GET /api/v1/namespaces/default/pods?")
                     and "/log" not in request]
        words = "command=%2Fskep%2Finit&command=reason&command=%2Fskep&command=stopped&command=240000"
        self.assertIn(f"/pods/{pod}/exec?", asked[0])
        self.assertIn(words, asked[0])
        self.assertEqual([request.split()[0] for request in asked[1:]], ["DELETE"], asked)

    def test_a_right_that_is_missing_for_long(self):
        """Longer than a server that has just begun takes: what must end ends when it may."""
        job, pod = self.running()
        with self.api.changed:
            self.api.forbids = ("DELETE", "pods")
        self.skepd.act(job, "STOP")
        waits.until(lambda: f"/pods/{pod} is refused, and asked for again" in self.skepd.tail(), self.skepd.tail, 240)
        self.assertEqual(self.pods(), [pod])
        with self.api.changed:
            self.api.forbids = None
        self.pods(0)
        self.state(job, "STOPPED")

    def test_a_token_is_renewed(self):
        self.start()
        self.wait_nodes(5)
        self.present("two")
        self.run_one("job")
        self.api.fault("401")
        self.run_one("again")


class Webhook(Base):
    """One kind of writes fails for ever, as with a webhook that is away: it is the trouble of those who ask for it."""

    def fail(self, is_so):
        with self.api.changed:
            self.api.fails = is_so

    def job_of(self, body):
        return ((body or {}).get("metadata", {}).get("annotations") or {}).get("skep.internal/job")

    def posts(self, kind):
        with self.api.changed:
            return len([request for request in self.api.requests if request.startswith("POST") and f"/{kind}" in request])

    def test_pods_of_one_job_that_are_refused_for_ever(self):
        self.start()
        self.wait_nodes(5)
        self.fail(lambda method, kind, body: (method, kind) == ("POST", "pods") and self.job_of(body) == "admin~bad")
        bad = self.submit("bad")
        waits.until(lambda: "CreationFails" in json.dumps(self.skepd.call("GET", f"/api/v2/jobs/{bad}/events")), self.skepd.tail, 240)
        self.assertIn("fault 500", json.dumps(self.skepd.call("GET", f"/api/v2/jobs/{bad}/events")))
        self.assertEqual(len(self.nodes()), 5)  # half a minute of failures is no trouble of the server's
        waits.until(lambda: "/pods is answered 500, and asked for again" in self.skepd.tail(2000), self.skepd.tail)
        self.run_one("good")
        self.skepd.act(bad, "STOP")
        self.state(bad, "STOPPED")
        before = self.posts("pods")
        self.api.wait(lambda api: not api.objects["secrets"], "a secret is left")
        self.assertEqual(self.posts("pods"), before)

    def test_secrets_that_are_refused_for_ever(self):
        self.start()
        self.wait_nodes(5)
        self.fail(lambda method, kind, body: (method, kind) == ("POST", "secrets"))
        job = self.submit("job")
        waits.until(lambda: self.posts("secrets") > 1, self.skepd.tail, 120)
        self.skepd.act(job, "STOP")
        self.state(job, "STOPPED")
        self.assertEqual(self.posts("pods"), 0)

    def test_a_server_that_can_write_nothing(self):
        """It says so itself (/readyz), as when its etcd is away: nothing is placed until it can."""
        self.start()
        self.wait_nodes(5)
        self.api.is_ready = False
        self.fail(lambda *_: True)
        job = self.submit("job")
        self.wait_nodes(0)
        self.api.is_ready = True
        self.fail(None)
        self.wait_nodes(5)
        (pod,) = self.pods()
        self.api.run(pod)
        self.state(job, "RUNNING")
        self.api.end(pod)
        self.finish(job)


class Graceless(Base):
    """An operator who gives tasks no time."""
    MORE = {"scheduling": {"portFirst": 15000, "portLast": 40000, "policy": "spread", "killGraceSeconds": 0}}

    def test_a_pod_that_runs_is_never_deleted_by_force(self):
        job, _ = self.running()
        self.skepd.act(job, "STOP")
        self.state(job, "STOPPED")
        self.pods(0)


class Operators(Base):
    """What the operator of the cluster must mend: no job fails for it, or pays with a retry."""

    def begin(self, *faults):
        self.start()
        self.wait_nodes(5)
        self.api.fault(*faults)
        return self.submit("job")

    def end_as_if_nothing_were(self, job, pod, word):
        self.api.run(pod)
        self.state(job, "RUNNING")
        self.api.end(pod)
        self.finish(job)
        self.assertEqual(self.skepd.job(job)["jobStatus"]["retryDetails"]["user"], 0)
        self.assertIn(word, str(self.skepd.call("GET", f"/api/v2/jobs/{job}/events")))

    def test_a_pod_that_is_not_let_in(self):
        job = self.begin("denied", "denied")
        (pod,) = self.pods()
        self.assertEqual(pod, "skep-3")
        self.end_as_if_nothing_were(job, pod, 'AdmissionRefused: skep-1 is forbidden: violates PodSecurity "baseline:latest"')

    def test_an_image_of_skep_init_that_is_not_there(self):
        job = self.begin()
        (first,) = self.pods()
        self.api.init_waits(first, "ErrImagePull", "rpc error: code = NotFound desc = registry.lab/skpe:1: not found")
        self.api.wait(lambda api: api.objects["pods"] and first not in api.objects["pods"], f"no new pod; {self.skepd.tail()}")
        (pod,) = self.pods()
        self.end_as_if_nothing_were(job, pod, "InitImageFailed: ")


class Left(Base):
    """Of an attempt nothing is left in the cluster, whenever skepd is killed: each test has its job end well after that."""

    def killed_in(self, method, kind):
        """When such a write has been carried out, and not answered."""
        self.start()
        self.wait_nodes(5)
        with self.api.changed:
            self.api.hold, self.api.held = (method, kind), False
        job = self.submit("job")
        self.api.wait(lambda api: api.held, f"no {method} of {kind}")
        self.skepd.kill()
        with self.api.changed:
            self.api.hold = None
            self.api.changed.notify_all()
        return job

    def again(self):
        self.skepd.start()
        self.skepd.login()

    def nothing_is_left(self):
        self.api.wait(lambda api: not api.objects["secrets"] and not api.objects["pods"],
                      f"left: {self.api.objects['secrets'].keys()}, {self.api.objects['pods'].keys()}; {self.skepd.tail()}")

    def end_well(self, job, *old):
        """The job has another attempt, whose pod ends well."""
        self.api.wait(lambda api: set(api.objects["pods"]) - set(old), f"no new pod; {self.skepd.tail()}")
        (pod,) = set(self.api.objects["pods"]) - set(old)
        self.api.run(pod)
        self.state(job, "RUNNING")
        self.api.wait(lambda api: set(api.objects["secrets"]) == {pod}, f"left: {self.api.objects['secrets'].keys()}; {self.skepd.tail()}")
        self.api.end(pod)
        self.finish(job)
        self.nothing_is_left()

    def test_killed_between_secret_and_pod(self):
        job = self.killed_in("POST", "secrets")
        self.again()
        self.end_well(job)

    def test_the_pod_is_gone_before_anybody_knew_of_it(self):
        job = self.killed_in("POST", "pods")
        self.api.remove("pods", "skep-1")
        self.again()
        self.end_well(job)

    def test_the_pod_of_a_task_that_ran_is_gone(self):
        job, pod = self.running()
        self.skepd.kill()
        self.api.remove("pods", pod)
        self.again()
        self.end_well(job, pod)

    def test_killed_while_a_job_is_stopped(self):
        job, pod = self.running()
        with self.api.changed:
            self.api.keeps_pods = True
        self.skepd.act(job, "STOP")
        self.api.wait(lambda api: "deletionTimestamp" in api.objects["pods"][pod]["metadata"], "the pod is not deleted")
        self.skepd.kill()
        with self.api.changed:
            self.api.keeps_pods = False
        self.api.remove("pods", pod)
        self.again()
        self.state(job, "STOPPED")
        self.nothing_is_left()

    def test_killed_before_the_secret_of_an_end_is_deleted(self):
        job, pod = self.running()
        with self.api.changed:
            self.api.forbids = ("DELETE", "secrets")
        self.api.end(pod)
        self.finish(job)
        self.assertEqual(list(self.api.objects["secrets"]), [pod])
        self.skepd.kill()
        with self.api.changed:
            self.api.forbids = None
        self.again()
        self.nothing_is_left()

    def test_a_pod_that_is_made_after_its_attempt_was_given_up(self):
        """The create was under way when an earlier skepd was killed."""
        job, pod = self.running()
        with self.api.changed:
            late = json.loads(json.dumps(self.api.objects["pods"][pod]))
        late["metadata"] |= {"name": "skep-99", "labels": late["metadata"]["labels"] | {"skep.internal/attempt": "99"}}
        self.api.put("pods", late)
        self.api.wait(lambda api: "skep-99" not in api.objects["pods"], "the late pod is left")
        self.api.end(pod)
        self.finish(job)
        self.nothing_is_left()


class Authorities(Base):
    """The server has a certificate, and skepd's kubeconfig is in two files."""
    CLUSTER = {"certificate-authority": "ca.pem"}

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="skep-test-"))
        self.addCleanup(shutil.rmtree, self.folder)
        self.vouched("first")
        super().setUp()
        (self.skepd.directory / "ca.pem").write_bytes(self.authority("first"))

    def server(self):
        self.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.show("first")
        return FaultyServer(self.tls)

    def write_kubeconfig(self):
        """The context stands in one file, the cluster and the user in another, as kubectl's KUBECONFIG allows."""
        context, rest = self.skepd.directory / "context", self.skepd.directory / "kubeconfig"
        kubeconfig = self.kubeconfig()
        context.write_text(json.dumps({key: kubeconfig.pop(key) for key in ("current-context", "contexts")}))
        rest.write_text(json.dumps(kubeconfig))
        return f"{self.skepd.directory / 'nowhere'}:{context}:{rest}"

    def openssl(self, *words):
        subprocess.run(["openssl", *words], check=True, capture_output=True, cwd=self.folder, timeout=120)

    def vouched(self, name):
        """A certificate for the server, from an authority of that name."""
        key = "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"
        (self.folder / "san").write_text("subjectAltName=IP:127.0.0.1")
        self.openssl("req", "-x509", *key, "-days", "9", "-subj", f"/CN={name}", "-keyout", f"{name}.ca.key", "-out", f"{name}.ca.pem")
        self.openssl("req", *key, "-subj", "/CN=server", "-keyout", f"{name}.key", "-out", f"{name}.csr")
        self.openssl("x509", "-req", "-in", f"{name}.csr", "-CA", f"{name}.ca.pem", "-CAkey", f"{name}.ca.key", "-CAcreateserial", "-days", "9",
                     "-extfile", "san", "-out", f"{name}.pem")

    def authority(self, name):
        return (self.folder / f"{name}.ca.pem").read_bytes()

    def show(self, name):
        """From now on, to new connections."""
        self.tls.load_cert_chain(self.folder / f"{name}.pem", self.folder / f"{name}.key")

    def test_an_authority_that_is_replaced(self):
        job, pod = self.running()
        self.vouched("second")
        self.show("second")
        self.api.cut_all()
        waits.until(lambda: "certificate" in self.skepd.tail(), lambda: f"the server is believed: {self.skepd.tail()}", 120)
        (self.skepd.directory / "ca.pem").write_bytes(self.authority("second"))
        self.api.end(pod)
        self.finish(job)
        self.run_one("again")

    def test_a_server_that_nobody_vouches_for(self):
        self.vouched("second")
        self.show("second")
        self.skepd.start(wait=False)
        self.assertFalse(self.skepd.readiness.wait(self.skepd.process, 120))
        self.assertIn("certificate", self.skepd.tail())
        self.assertEqual(self.api.requests, [])
        self.show("first")
        self.start()
        self.wait_nodes(5)

    def test_skep_reads_the_files_of_KUBECONFIG(self):
        """It asks the server of which the second file tells, as whom the third says."""
        self.start()
        env = os.environ | {"KUBECONFIG": self.write_kubeconfig(), "HOME": str(self.folder)}
        done = subprocess.run([SKEP, "kube", "check", "--namespace", "default"], env=env, capture_output=True, text=True, timeout=120)
        with self.api.changed:
            self.assertIn("GET /version", self.api.requests, done.stdout + done.stderr)
        self.assertNotIn("401", done.stdout + done.stderr)
        for wrong, words in ((f"{self.folder}/a:{self.folder}/b", "no kubeconfig is there"), (str(self.skepd.directory / "kubeconfig"), "context")):
            done = subprocess.run([SKEP, "kube", "check"], env=env | {"KUBECONFIG": wrong}, capture_output=True, text=True, timeout=120)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(words, done.stderr)


class Claims(Base):
    """GPUs as resource claims: each of the nodes has two devices."""
    KEYS = {"gpus": "dra", "nodeLostSeconds": 1}

    def setUp(self):
        super().setUp()
        for number in range(5):
            self.api.slice(f"n{number}", ["gpu-0", "gpu-1"])

    def claim(self, name):
        with self.api.changed:
            return json.loads(json.dumps(self.api.objects["resourceclaims"].get(name)))

    def wait_claim(self, name, is_so=lambda claim: claim.get("status")):
        self.api.wait(lambda api: name in api.objects["resourceclaims"] and is_so(api.objects["resourceclaims"][name]),
                      f"the claim {name}; {self.skepd.tail()}")
        return self.claim(name)

    def uid(self, pod):
        with self.api.changed:
            return self.api.objects["pods"][pod]["metadata"]["uid"]

    def check_claim(self, pod, count=1):
        """It is the pod's alone; its devices."""
        claim = self.wait_claim(pod)
        self.assertEqual([each["uid"] for each in claim["status"]["reservedFor"]], [self.uid(pod)])
        self.assertEqual([each["uid"] for each in claim["metadata"]["ownerReferences"]], [self.uid(pod)])
        results = claim["status"]["allocation"]["devices"]["results"]
        self.assertEqual(len(results), count)
        self.assertEqual({(each["driver"], each["request"]) for each in results}, {("gpu.nvidia.com", "gpus")})
        return [each["device"] for each in results]

    def end(self, job, pod):
        self.api.run(pod)
        self.state(job, "RUNNING")
        self.api.end(pod)
        self.finish(job)
        self.api.wait(lambda api: pod not in api.objects["resourceclaims"], f"the claim of {pod} is left")

    def posts(self, kind):
        with self.api.changed:
            return [request for request in self.api.requests if request.startswith("POST") and request.endswith(f"/{kind}")]

    def test_a_claim_lives_as_long_as_its_pod(self):
        self.start()
        self.wait_nodes(5)
        job = self.submit("job", gpus=2)
        (pod,) = self.pods()
        self.assertEqual(self.check_claim(pod, 2), ["gpu-0", "gpu-1"])
        with self.api.changed:
            spec = self.api.objects["pods"][pod]["spec"]
        self.assertEqual(spec["resourceClaims"], [{"name": "gpus", "resourceClaimName": pod}])
        self.assertEqual(spec["containers"][0]["resources"]["claims"], [{"name": "gpus"}])
        self.end(job, pod)
        with self.api.changed:
            writes = [request.split()[0] for request in self.api.requests if "resourceclaims" in request]
        self.assertEqual(writes, ["POST", "PUT", "DELETE"])

    def test_writes_that_are_not_answered(self):
        self.start()
        self.wait_nodes(5)
        self.api.fault("lost", "lost", "lost", "lost")  # the secret, the pod, the claim, its status
        job = self.submit("job", gpus=1)
        (pod,) = self.pods()
        self.check_claim(pod)
        self.end(job, pod)

    def test_writes_that_fail_for_a_while(self):
        self.start()
        self.wait_nodes(5)
        self.api.fault("500", "500", "500", "429")
        job = self.submit("job", gpus=1)
        (pod,) = self.pods()
        self.check_claim(pod)
        self.end(job, pod)

    def test_skepd_is_killed_between_two_writes(self):
        self.start()
        self.wait_nodes(5)
        for method, kind in (("POST", "secrets"), ("POST", "pods"), ("POST", "resourceclaims"), ("PUT", "resourceclaims")):
            with self.subTest(method=method, kind=kind):
                with self.api.changed:
                    self.api.hold, self.api.held = (method, kind), False
                before = len(self.posts("pods"))
                job = self.submit(f"{method}-{kind}".lower(), gpus=2)
                self.api.wait(lambda api: api.held, f"no {method} of {kind}")
                self.skepd.kill()
                with self.api.changed:
                    self.api.hold = None
                    self.api.changed.notify_all()
                self.skepd.start()
                self.skepd.login()
                (pod,) = self.pods()
                self.assertEqual(self.check_claim(pod, 2), ["gpu-0", "gpu-1"])
                self.end(job, pod)
                self.assertEqual(len(self.posts("pods")) - before, 1)

    def test_a_claim_that_somebody_deletes(self):
        self.start()
        self.wait_nodes(5)
        job = self.submit("job", gpus=1)
        (pod,) = self.pods()
        first = self.wait_claim(pod)["metadata"]["uid"]
        self.api.remove("resourceclaims", pod)
        self.api.unprepared(pod)
        self.wait_claim(pod, lambda claim: claim["metadata"]["uid"] != first and claim.get("status"))
        self.check_claim(pod)
        self.end(job, pod)

    def test_a_claim_that_is_anothers(self):
        self.start()
        self.wait_nodes(5)
        self.api.put("resourceclaims", {"metadata": {"name": "skep-1"}, "spec": {}})
        job = self.submit("job", gpus=1)
        self.assertEqual(self.skepd.wait_final([job], 120)[job], "FAILED")
        end = self.skepd.call("GET", f"/api/v2/jobs/{job}/job-attempts/0")
        self.assertIn("a resource claim of its name is there", json.dumps(end))
        self.pods(0)
        self.assertIsNotNone(self.claim("skep-1"))

    def test_a_claim_of_anothers_in_the_place_of_ours(self):
        self.start()
        self.wait_nodes(5)
        job = self.submit("job", gpus=1)
        (pod,) = self.pods()
        self.wait_claim(pod)
        self.api.remove("resourceclaims", pod)
        self.api.put("resourceclaims", {"metadata": {"name": pod}, "spec": {}})
        self.api.unprepared(pod)
        self.assertEqual(self.skepd.wait_final([job], 120)[job], "FAILED")
        self.pods(0)
        self.api.wait(lambda api: not api.objects["secrets"], "its secret is left")
        self.assertIsNotNone(self.claim(pod))

    def test_a_claim_that_another_pod_has(self):
        self.start()
        self.wait_nodes(5)
        with self.api.changed:
            self.api.hold, self.api.held = ("POST", "resourceclaims"), False
        job = self.submit("job", gpus=1)
        self.api.wait(lambda api: api.held, "no claim")
        claim = self.claim("skep-1")
        self.api.put("resourceclaims", claim | {"status": {"reservedFor": [{"resource": "pods", "name": "other", "uid": "other"}]}})
        with self.api.changed:
            self.api.hold = None
            self.api.changed.notify_all()
        self.assertEqual(self.skepd.wait_final([job], 120)[job], "FAILED")
        self.pods(0)
        self.assertEqual(self.claim("skep-1")["status"]["reservedFor"][0]["uid"], "other")

    def test_a_claim_stays_while_its_pod_may_run(self):
        self.start()
        self.wait_nodes(5)
        job = self.submit("job", gpus=2)
        (pod,) = self.pods()
        self.check_claim(pod, 2)
        self.api.run(pod)
        self.state(job, "RUNNING")
        with self.api.changed:
            self.api.keeps_pods = True
            node = self.api.objects["pods"][pod]["spec"]["nodeName"]
        self.api.node(node, is_ready=False)
        self.check_claim("skep-2", 2)
        self.assertIsNotNone(self.claim(pod))
        with self.api.changed:
            self.api.keeps_pods = False
        self.api.remove("pods", pod)
        self.api.wait(lambda api: pod not in api.objects["resourceclaims"], "the claim of a pod that has gone is left")
        self.end(job, "skep-2")

    def test_a_quota(self):
        """It is as if the cluster were full."""
        self.start()
        self.wait_nodes(5)
        self.api.fault("quota")
        job = self.submit("job", gpus=1)
        self.wait_claim("skep-2")
        (pod,) = self.pods()
        self.assertEqual(pod, "skep-2")
        self.end(job, pod)
        self.assertEqual(self.skepd.job(job)["jobStatus"]["retryDetails"]["user"], 0)

    def test_an_allocation_that_is_refused(self):
        self.start()
        self.wait_nodes(5)
        self.api.fault("refused")
        job = self.submit("job", gpus=1)
        self.assertEqual(self.skepd.wait_final([job], 120)[job], "FAILED")
        self.assertIn("fault 422", json.dumps(self.skepd.call("GET", f"/api/v2/jobs/{job}/job-attempts/0")))
        self.pods(0)
        self.api.wait(lambda api: not api.objects["resourceclaims"], "its claim is left")

    def test_keys_that_would_mean_nothing(self):
        self.start()
        for keys, words in (({"deviceClass": "c"}, "engine.kubernetes: deviceDriver, deviceClass and gpuTypeAttribute are of gpus: dra"),
                            ({"gpus": "dra", "gpuResource": "g"}, "engine.kubernetes.gpuResource: with gpus: dra nothing is asked of a device plugin")):
            config = self.skepd.directory / "other.json"
            config.write_text(json.dumps({
                "dataDirectory": str(self.skepd.directory / "other"), "api": {"listen": "127.0.0.1:0"}, "engine": {"kind": "kubernetes", "kubernetes": {
                    "kubeconfig": str(self.skepd.directory / "kubeconfig"), "initImage": "skep:1"} | keys}}))
            done = subprocess.run([SKEPD, "--config", config], capture_output=True, text=True, timeout=120)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(words, done.stderr)

    def gpus(self):
        return {node["name"]: node["gpu"] for node in self.skepd.call("GET", "/api/v2/nodes")["data"] if node["state"] == "READY"}

    def wait_gpus(self, **wanted):
        waits.until(lambda: self.gpus().items() >= wanted.items(), lambda: f"not {wanted}: {self.gpus()}\n{self.skepd.tail()}", 120)

    def test_a_pool_is_believed_when_all_of_it_is_here(self):
        for number in range(5):
            self.api.remove("resourceslices", f"n{number}")
        self.api.slice("n0", ["gpu-0", "gpu-1"], "a", 1, 2)
        self.api.slice("n1", ["gpu-0"], "other", driver="other.test")
        self.start()
        self.wait_nodes(5)
        self.assertEqual(set(self.gpus().values()), {0})
        self.api.slice("n0", ["gpu-2"], "b", 1, 2)
        self.wait_gpus(n0=3)
        # the next generation begins with one more device, and counts when it is whole
        self.api.slice("n0", ["gpu-0", "gpu-1", "gpu-3"], "a", 2, 2)
        self.api.slice("n1", ["gpu-0"])
        self.wait_gpus(n1=1)
        self.assertEqual(self.gpus()["n0"], 3)
        self.api.slice("n0", ["gpu-2"], "b", 2, 2)
        self.wait_gpus(n0=4)

    def test_devices_that_must_not_be_used(self):
        for number in range(1, 5):
            self.api.remove("resourceslices", f"n{number}")
        self.api.slice("n0", [{"name": "gpu-0", "taints": [{"key": "broken", "effect": "NoExecute"}]}, "gpu-1"])
        self.start()
        self.wait_nodes(5)
        self.wait_gpus(n0=2)
        job = self.submit("job", gpus=1)
        (pod,) = self.pods()
        self.assertEqual(self.check_claim(pod), ["gpu-1"])
        self.end(job, pod)
        self.api.remove("resourceslices", "n0")  # as a kubelet does whose driver has gone
        waits.until(lambda: "n0" not in self.gpus(), lambda: f"{self.gpus()}", 120)
        node = self.skepd.call("GET", "/api/v2/nodes")["data"][0]
        self.assertIn("offers none of its 2 GPUs", node["reason"])
        self.api.slice("n0", ["gpu-0", "gpu-1"])
        self.wait_gpus(n0=2)

    def test_devices_keep_their_numbers_over_a_restart(self):
        for number in range(1, 5):
            self.api.remove("resourceslices", f"n{number}")
        self.api.slice("n0", ["gpu-0", "gpu-1", "gpu-2"])
        self.start()
        self.wait_gpus(n0=3)
        jobs = [self.submit(name, gpus=1) for name in ("one", "two")]
        pods = self.pods(2)
        self.assertEqual(sorted(self.check_claim(pod)[0] for pod in pods), ["gpu-0", "gpu-1"])
        for pod in pods:
            self.api.run(pod)
        for job in jobs:
            self.state(job, "RUNNING")
        self.skepd.kill()
        first = next(pod for pod in pods if self.check_claim(pod) == ["gpu-0"])
        self.api.slice("n0", ["gpu-1", "gpu-2"], generation=2)  # the device of one of them is lost
        self.skepd.start()
        self.skepd.login()
        self.wait_gpus(n0=3)
        third = self.submit("third", gpus=1)
        (new,) = set(self.pods(3)) - set(pods)
        self.assertEqual(self.check_claim(new), ["gpu-2"])
        fourth = self.submit("fourth", gpus=1)
        for pod in (first, new):
            self.api.run(pod)
            self.api.end(pod)
        (other,) = (pod for pod in pods if pod != first)
        self.api.wait(lambda api: set(api.objects["pods"]) - {*pods, new}, "the fourth has no pod")
        (last,) = set(self.pods(2)) - {other}
        self.assertEqual(self.check_claim(last), ["gpu-2"])  # what was gpu-0 is nobody's
        for pod in (other, last):
            self.api.run(pod)
            self.api.end(pod)
        for job in (*jobs, third, fourth):
            self.finish_one(job)

    def finish_one(self, job):
        self.assertEqual(self.skepd.wait_final([job], 120)[job], "SUCCEEDED", f"{self.skepd.job(job)}\n{self.skepd.tail()}")


if __name__ == "__main__":
    beside.main(SKEPD, SKEP, first=("Faults.test_a_right_that_is_missing_for_long", "Webhook.test_pods_of_one_job_that_are_refused_for_ever",
                                     "Authorities.test_a_server_that_nobody_vouches_for"))
