"""What a pod of Skep holds, on real kubelets: test_pods.py SKEPD SKEP SKEP-INIT MAKE-IMAGE

Storages as claims and as folders of the node, what the operator's template adds, classes, a registry that asks for a password, InfiniBand.
The engine has exactly the rights of deploy/kubernetes/rights.yaml.
Covers: src/engine/kubernetes/pod_make.c, src/engine/kubernetes/pod_template.c, src/engine/kubernetes/pod_volumes.c, src/server/storage.c
"""
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import yaml

import cluster as api
import installation
import skepd as server
import waits
from waits import PATIENCE_S

PROGRAMS = [sys.argv.pop(1) for _ in range(4)] if __name__ == "__main__" else []
ADAPTER = "skep.test/hca"
TEMPLATE = """
metadata:
  labels: {team: vision}
spec:
  terminationGracePeriodSeconds: 7
  volumes: [{name: words, configMap: {name: words}}]
  containers:
  - name: task
    env: [{name: OF_THE_LAB, value: "yes"}]
    volumeMounts: [{name: words, mountPath: /words}]
"""


class Pods(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        api.need("kube-apiserver", "kubelet", "kube-controller-manager", "device-plugin")
        cls.place = installation.Installation(PROGRAMS, 2)
        cls.addClassCleanup(cls.place.stop)
        cls.cluster, cls.nodes = cls.place.cluster, cls.place.nodes
        cls.place.start_nodes()
        cls.nodes.images.start_closed("bob", "secret")
        cls.cluster.start_controllers("--controllers=persistentvolume-binder-controller")
        cls.folders = {name: cls.nodes.directory / f"volume-{name}" for name in ("corpus", "homes", "open")}
        for name, folder in cls.folders.items():
            folder.mkdir()
            folder.chmod(0o777)  # the image's user is not root
            if name != "open":
                cls.place.claim_make(name, folder)
        (cls.folders["corpus"] / "words").write_text("one two\n")
        cls.make("namespaces/skep-jobs/configmaps", {"metadata": {"name": "words"}, "data": {"first": "of a map\n"}})
        cls.make("runtimeclasses", {"metadata": {"name": "plain"}, "handler": "runc"}, "/apis/node.k8s.io/v1")
        cls.make("priorityclasses", {"metadata": {"name": "tasks"}, "value": 4711}, "/apis/scheduling.k8s.io/v1")
        template = cls.nodes.directory / "template.yaml"
        template.write_text(TEMPLATE)
        cls.nodes[1].start_plugin(ADAPTER, "good")
        # a task hears in a part of that why it is ended
        cls.place.start_skepd(scheduling={"killGraceSeconds": 240}, more={"storages": [
            {"name": "corpus", "claim": "corpus", "readOnly": True},
            {"name": "home", "claim": "homes", "share": False},
            {"name": "open", "directory": str(cls.folders["open"])},
            {"name": "nowhere", "claim": "nobody"},
        ]}, podTemplate=str(template), runtimeClass="plain", priorityClass="tasks", infinibandResource=ADAPTER)
        cls.skepd = cls.place.skepd

    @classmethod
    def make(cls, what, body, base="/api/v1"):
        return cls.cluster.create(f"{base}/{what}", body)

    def tearDown(self):
        for job in self.skepd.jobs():  # what a test that failed has left would fail the others
            if job["state"] not in ("SUCCEEDED", "FAILED", "STOPPED"):
                self.skepd.act(f"admin~{job['name']}", "STOP")
        self.cluster.wait_pods(0)

    def submit(self, name, command, image=None, auth=None, **more):
        job = yaml.safe_load(server.job_file(name, {"main": (1, command, {})}, image or self.nodes.images.name("skep"), more.pop("job", None)))
        job["taskRoles"]["main"]["resourcePerInstance"]["memoryMB"] = 64
        job["taskRoles"]["main"] |= more
        if auth:
            job["prerequisites"][0]["auth"] = auth
        self.skepd.submit(yaml.safe_dump(job))
        return f"admin~{name}"

    def finish(self, name, state="SUCCEEDED"):
        self.assertEqual(self.skepd.wait_final([name], PATIENCE_S)[name], state,
                         f"{self.skepd.job(name)}\n{self.skepd.call('GET', f'/api/v2/jobs/{name}/logs?index=0')}\n{self.place.trouble()}")

    def test_a_task_reads_why_it_is_ended(self):
        """Before SIGTERM, in the file that a task on one machine reads as well."""
        name = self.submit("why", "trap 'cat $SKEP_STOP_REASON_FILE; exit 0' TERM; sleep 100000 & echo ready; wait")
        log = lambda: self.skepd.call("GET", f"/api/v2/jobs/{name}/logs?index=0")
        waits.until(lambda: self.skepd.job(name)["jobStatus"]["state"] == "RUNNING" and "ready" in str(log()),
                    lambda: f"{self.skepd.job(name)}\n{self.place.trouble()}", PATIENCE_S)
        self.stop(name)
        self.assertIn("reason stopped", str(log()), self.skepd.tail())

    def stop(self, name):
        self.skepd.act(name, "STOP")
        self.finish(name, "STOPPED")

    def pod(self, name, is_good):
        """Of a job, once it is so."""
        found = []

        def look():
            found[:] = [pod for pod in self.cluster.pods().values() if pod["metadata"]["annotations"]["skep.internal/job"] == name]
            return found and is_good(found[0])

        waits.until(look, lambda: f"the pod of {name}: {json.dumps(found)}\n{self.place.trouble()}", PATIENCE_S)
        return found[0]

    def first_end(self, name):
        """The code of its first try, which has cost the user nothing."""
        details = self.skepd.job(name)["jobStatus"]["retryDetails"]
        self.assertEqual(details["user"], 0, details)
        self.assertGreaterEqual(details["platform"], 1, details)  # the same node may refuse it before another is tried
        return self.skepd.call("GET", f"/api/v2/jobs/{name}/job-attempts/0")["exitCode"]

    def test_a_deadline_that_the_cluster_sets(self):
        """As a policy of the namespace does; for Skep it is a time limit."""
        name = self.submit("deadline", "sleep 1000")
        pod = self.pod(name, lambda pod: pod["status"]["phase"] == "Running")
        self.cluster.merge(f"/api/v1/namespaces/skep-jobs/pods/{pod['metadata']['name']}", {"spec": {"activeDeadlineSeconds": 1}})
        self.finish(name, "FAILED")
        self.assertEqual(self.skepd.job(name)["jobStatus"]["appExitCode"], -1004)

    def test_a_pod_that_the_cluster_cannot_do_without(self):
        """Its kubelet makes room for it."""
        name = self.submit("preempted", "sleep 1000")
        pod = self.pod(name, lambda pod: pod["status"]["phase"] == "Running")
        first, node = pod["metadata"]["name"], pod["spec"]["nodeName"]
        amounts = self.cluster.call("GET", f"/api/v1/nodes/{node}")["status"]["allocatable"]
        self.make("namespaces/skep-jobs/pods", {"metadata": {"name": "critical"}, "spec": {
            "nodeName": node, "priorityClassName": "system-node-critical", "hostNetwork": True, "terminationGracePeriodSeconds": 0,
            "containers": [{"name": "all", "image": self.nodes.images.name("pause"), "resources": {"requests": {"cpu": amounts["cpu"]}}}]}})
        try:
            waits.until(lambda: any(each not in (first, "critical") and item["status"]["phase"] == "Running"
                                    for each, item in self.cluster.pods().items()),
                        lambda: f"it is not tried again: {self.skepd.job(name)}\n{self.place.trouble()}", PATIENCE_S)
            self.assertEqual(self.first_end(name), -1003)
        finally:
            self.cluster.call("DELETE", "/api/v1/namespaces/skep-jobs/pods/critical", {"gracePeriodSeconds": 0})
        self.stop(name)

    def test_an_image_that_brings_no_skep_init(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "bin").mkdir()
            shutil.copy(shutil.which("busybox"), root / "bin/sh")
            installation.push_folder(self.nodes.images, root, "bare:1")
        other = server.Skepd(PROGRAMS[0], self.place.configuration(initImage=f"{self.nodes.images.address}/bare:1", instance="bare"))
        try:
            other.start()
            other.login()
            other.submit(server.job_file("bare", {"main": (1, "true", {})}, self.nodes.images.name("skep")))
            self.assertEqual(other.wait_final(["admin~bare"], PATIENCE_S)["admin~bare"], "FAILED")
            end = other.call("GET", "/api/v2/jobs/admin~bare/job-attempts/0")
            self.assertEqual(end["exitCode"], -310, end)
            self.assertIn("skep-init could not be brought into the pod", json.dumps(end))
            self.cluster.wait_pods(0)  # the job may have ended before its pod is deleted, and no other skepd would do that
            self.assertEqual(other.stop(), 0, other.tail())
        finally:
            other.stop()
            other.remove()

    def test_a_task_that_hangs(self):
        """One stands still while its peer moves: the figures that skep-init tells are enough to see it."""
        name = self.submit("hung", "if [ $SKEP_JOB_ATTEMPT != 0 ]; then exit 0; fi; if [ $PAI_TASK_INDEX = 0 ]; then while :; do echo moves; "
                           "sleep 0.5; done; fi; sleep 1000", instances=2,
                           job={"jobRetryCount": 1, "extras": {"hang": {"afterSeconds": 15, "retry": True}}})
        self.finish(name)
        end = self.skepd.call("GET", f"/api/v2/jobs/{name}/job-attempts/0")
        self.assertEqual((end["exitCode"], end["exitPhrase"]), (-1400, "ContainerHung"))

    def test_a_failed_task_that_is_kept(self):
        name = self.submit("kept", "exit 3", job={"extras": {"debug": True}})
        self.finish(name, "FAILED")
        self.pod(name, lambda pod: pod["status"]["phase"] == "Failed")
        done = subprocess.run([PROGRAMS[1], "release", "kept"], env=self.place.environment(), capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.cluster.wait_pods(0)

    def test_storages(self):
        name = self.submit("storages", "cat /mnt/corpus/words > /work/copy; ! touch /mnt/corpus/new; cat /work/copy > /mnt/open/copy; "
                           "test ! -e /mnt/home", job={"extras": {"storages": [{"name": "corpus"}, {"name": "home", "mountPath": "/work"},
                                                                               {"name": "open"}]}})
        self.finish(name)
        self.assertEqual((self.folders["homes"] / "admin/copy").read_text(), "one two\n")
        self.assertEqual((self.folders["open"] / "copy").read_text(), "one two\n")
        self.assertEqual([path.name for path in self.folders["corpus"].iterdir()], ["words"])

    def test_a_claim_that_is_not_there(self):
        name = self.submit("nowhere", "true", job={"extras": {"storages": [{"name": "nowhere"}]}})
        conditions = self.pod(name, lambda pod: pod["status"].get("containerStatuses"))["status"]["conditions"]
        self.assertIn(("PodReadyToStartContainers", "False"), [(each["type"], each["status"]) for each in conditions])
        self.stop(name)

    def test_what_the_operator_adds(self):
        name = self.submit("template", "test \"$OF_THE_LAB\" = yes && cat /words/first && sleep 1000")
        pod = self.pod(name, lambda pod: pod["status"]["phase"] == "Running")
        self.assertEqual(pod["metadata"]["labels"]["team"], "vision")
        spec = pod["spec"]
        self.assertEqual((spec["terminationGracePeriodSeconds"], spec["runtimeClassName"], spec["priorityClassName"], spec["priority"]),
                         (7, "plain", "tasks", 4711))
        self.assertEqual(pod["status"]["qosClass"], "Guaranteed")
        waits.until(lambda: self.skepd.call("GET", f"/api/v2/jobs/{name}/logs?index=0") == "of a map\n",
                    lambda: f"its log: {self.place.trouble()}", PATIENCE_S)
        self.stop(name)

    def test_a_registry_that_asks_for_a_password(self):
        closed = f"{self.nodes.images.closed_address}/skep:1"
        uri = {"registryuri": self.nodes.images.closed_address, "username": "bob", "password": "<% $secrets.word %>"}
        name = self.submit("refused", "true", closed, uri, job={"secrets": {"word": "wrong"}})
        self.finish(name, "FAILED")
        self.assertEqual(self.skepd.job(name)["jobStatus"]["appExitCode"], 254)
        name = self.submit("closed", "true", closed, uri, job={"secrets": {"word": "secret"}})
        self.finish(name)

    def test_infiniband(self):
        """One of the two nodes has an adapter; the other must not run the task without."""
        path = "/api/v1/nodes/n2"
        waits.until(lambda: self.cluster.call("GET", path)["status"]["allocatable"].get(ADAPTER) == "1",
                    lambda: f"no adapter: {self.nodes[1].tail('plugin')}", PATIENCE_S)
        for number in range(2):
            name = self.submit(f"adapter{number}", "sleep 1000", extraContainerOptions={"infiniband": True})
            pod = self.pod(name, lambda pod: pod["status"]["phase"] == "Running")
            self.assertEqual(pod["spec"]["nodeName"], "n2")
            self.assertEqual(pod["spec"]["containers"][0]["resources"]["limits"][ADAPTER], "1")
            self.stop(name)
            self.cluster.wait_pods(0)

    def test_a_template_that_has_what_is_skeps(self):
        with tempfile.TemporaryDirectory() as folder:
            template, config = f"{folder}/template.yaml", f"{folder}/skepd.yaml"
            with open(template, "w") as file:
                file.write("spec: {nodeName: n1}\n")
            with open(config, "w") as file:
                file.write(json.dumps(self.place.configuration(podTemplate=template) | {"dataDirectory": f"{folder}/data", "api": {"listen": "127.0.0.1:0"}}))
            done = subprocess.run([PROGRAMS[0], "--config", config], capture_output=True, text=True, timeout=PATIENCE_S)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("engine.kubernetes.podTemplate: spec.nodeName is Skep's", done.stderr)


if __name__ == "__main__":
    unittest.main()
