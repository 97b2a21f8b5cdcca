"""What happens to tasks when nodes do: test_trouble.py SKEPD SKEP SKEP-INIT MAKE-IMAGE

Three real kubelets, and the controllers that notice silent nodes and collect their pods. The engine has exactly the rights of
deploy/kubernetes/rights.yaml.
Covers: src/engine/kubernetes/nodes.c, src/engine/kubernetes/tasks.c
"""
import signal
import subprocess
import sys
import unittest

import yaml

import cluster as api
from installation import Installation
from nodes import group_processes, skip
import skepd as server
import waits
from waits import PATIENCE_S

SKEPD, SKEP, INIT, MAKE_IMAGE = (sys.argv.pop(1) for _ in range(4)) if __name__ == "__main__" else ("", "", "", "")
GPU = "skep.test/gpu"
SETTINGS = {"nodeLeaseDurationSeconds": 8, "evictionPressureTransitionPeriod": "1s", "housekeepingInterval": "1s"}
DISK_IS_FULL = {"memory.available": "10Mi", "nodefs.available": "99.9%"}


installation = None


def setUpModule():
    global installation
    if subprocess.run(["swapon", "--noheadings"], capture_output=True).stdout:
        skip("a kubelet evicts nothing in time where there is swap")
    api.need("kube-apiserver", "kubelet", "kube-controller-manager", "device-plugin")
    installation = Installation((SKEPD, SKEP, INIT, MAKE_IMAGE), 3, SETTINGS)
    unittest.addModuleCleanup(installation.stop)
    installation.start_nodes()
    installation.cluster.start_controllers("--controllers=node-lifecycle-controller,pod-garbage-collector-controller,taint-eviction-controller",
                                           "--node-monitor-grace-period=25s", "--node-monitor-period=1s")
    installation.start_skepd(gpuResource=GPU)


class Trouble(unittest.TestCase):
    """What its classes share. A server of theirs waits for silent nodes as long as they say."""
    NODE_LOST_S = 0

    @classmethod
    def setUpClass(cls):
        cls.nodes, cls.cluster, cls.skepd = installation.nodes, installation.cluster, installation.skepd
        cls.skepd.stop()
        cls.skepd.write_config(installation.configuration(gpuResource=GPU, nodeLostSeconds=cls.NODE_LOST_S))
        cls.skepd.start()

    def setUp(self):
        for node in self.nodes:
            self.wait_node(node.name, "READY")

    def tearDown(self):
        for job in self.skepd.call("GET", "/api/v2/jobs"):  # what a test that failed has left would fail the others
            if job["state"] not in ("SUCCEEDED", "FAILED", "STOPPED"):
                self.skepd.act(job["name"], "STOP")
        self.assertEqual(self.cluster.wait_pods(0, PATIENCE_S), {}, self.trouble())

    def trouble(self):
        return installation.trouble()

    def submit(self, name, command="sleep 100000", **resources):
        job = yaml.safe_load(server.job_file(name, {"main": (1, command, {})}, self.nodes.images.name("skep"), {}))
        job["taskRoles"]["main"]["resourcePerInstance"] |= {"memoryMB": 64} | resources
        self.skepd.submit(yaml.safe_dump(job))
        return f"admin~{name}"

    def wait_running(self, name, but=()):
        """Its pod that runs, which is none of `but`, and that pod's node."""
        found = []

        def is_running():
            found[:] = [(pod, item["spec"]["nodeName"]) for pod, item in self.cluster.pods().items()
                        if pod not in but and item["status"].get("phase") == "Running" and item["metadata"]["annotations"]["skep.internal/job"] == name]
            return found and self.skepd.job(name)["jobStatus"]["state"] == "RUNNING"

        waits.until(is_running, lambda: f"{name} does not run: {self.skepd.job(name)}\n{self.trouble()}", PATIENCE_S)
        pod, node = found[0]
        return pod, next(each for each in self.nodes if each.name == node)

    def node(self, name):
        return next((node for node in self.skepd.call("GET", "/api/v2/nodes")["data"] if node["name"] == name), {"state": "unknown"})

    def wait_node(self, name, state, why=""):
        waits.until(lambda: self.node(name)["state"] == state and why in str(self.node(name)),
                    lambda: f"{name} is not {state} for \"{why}\": {self.node(name)}\n{self.trouble()}", PATIENCE_S)

    def stop(self, name):
        self.skepd.act(name, "STOP")
        self.assertEqual(self.skepd.wait_final([name], PATIENCE_S)[name], "STOPPED", self.trouble())

    def first_end(self, name):
        """How its first try ended. It has cost the user nothing."""
        details = self.skepd.job(name)["jobStatus"]["retryDetails"]
        self.assertEqual(details["user"], 0, details)
        self.assertGreaterEqual(details["platform"], 1, details)  # a node under pressure may be tried again before it says so
        return self.skepd.call("GET", f"/api/v2/jobs/{name}/job-attempts/0")["exitCode"]

    def programs(self, node, word):
        """How many programs with this word on their command line run in the pods of a node."""
        count = 0
        for process in group_processes(node.group):
            try:
                with open(f"/proc/{process}/cmdline", "rb") as line:
                    count += word.encode() in line.read().split(b"\0")
            except OSError:
                pass
        return count


class LostNodes(Trouble):
    NODE_LOST_S = 2

    def test_a_kubelet_that_dies_and_comes_back(self):
        name = self.submit("silent", "sleep 100001")
        pod, node = self.wait_running(name)
        node.stop_one("kubelet")
        other = self.wait_running(name, {pod})[1]
        self.assertNotEqual(node.name, other.name)
        self.assertEqual(self.programs(node, "100001"), 1)  # nobody could end it
        self.assertEqual(self.node(node.name)["state"], "UNHEALTHY")
        self.assertEqual(self.first_end(name), -1001)
        node.start_kubelet()
        node.wait_ready()
        self.wait_node(node.name, "READY")  # which it is not told to be while the old one runs
        self.assertEqual(self.programs(node, "100001"), 0)
        self.assertEqual(self.programs(other, "100001"), 1)
        self.stop(name)

    def test_a_node_that_is_deleted(self):
        name = self.submit("removed", "sleep 100003")
        pod, node = self.wait_running(name)
        node.stop_one("kubelet")
        self.cluster.call("DELETE", f"/api/v1/nodes/{node.name}")
        self.wait_running(name, {pod})
        self.assertEqual(self.first_end(name), -1001)
        waits.until(lambda: pod not in self.cluster.pods(), lambda: f"{pod} is not collected: {self.trouble()}", PATIENCE_S)
        node.start_kubelet()
        node.wait_ready()
        self.wait_node(node.name, "READY")
        waits.until(lambda: self.programs(node, "100003") == 0, lambda: f"what runs of it is not ended: {self.trouble()}", PATIENCE_S)
        self.stop(name)


class Others(Trouble):
    """A busy machine may start a kubelet so late that its node is silent for a while: it is not lost for that."""
    NODE_LOST_S = 3600

    def test_a_kubelet_that_comes_back_in_time(self):
        name = self.submit("short", "sleep 100002")
        pod, node = self.wait_running(name)
        node.stop_one("kubelet")
        node.start_kubelet()
        node.wait_ready()
        self.assertEqual(self.wait_running(name)[0], pod)
        self.stop(name)

    def test_a_drain(self):
        name = self.submit("drained")
        pod, node = self.wait_running(name)
        self.cluster.merge(f"/api/v1/nodes/{node.name}", {"spec": {"unschedulable": True}})
        self.wait_node(node.name, "UNHEALTHY", "cordoned")
        self.cluster.create(f"/api/v1/namespaces/{self.cluster.NAMESPACE}/pods/{pod}/eviction",
                            {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod, "namespace": self.cluster.NAMESPACE}})
        self.assertNotEqual(self.wait_running(name, {pod})[1].name, node.name)
        self.assertEqual(self.first_end(name), -1000)
        self.cluster.merge(f"/api/v1/nodes/{node.name}", {"spec": {"unschedulable": None}})
        self.stop(name)

    def test_a_pod_that_somebody_deletes(self):
        name = self.submit("deleted")
        pod, _ = self.wait_running(name)
        self.cluster.call("DELETE", f"/api/v1/namespaces/{self.cluster.NAMESPACE}/pods/{pod}", {"gracePeriodSeconds": 1})
        self.wait_running(name, {pod})
        self.assertEqual(self.first_end(name), -101)
        self.stop(name)

    def test_a_node_whose_disk_is_full(self):
        name = self.submit("pressed")
        pod, node = self.wait_running(name)
        node.stop_one("kubelet", signal.SIGTERM)
        node.start_kubelet({"evictionHard": DISK_IS_FULL})
        node.wait_ready()
        self.assertNotEqual(self.wait_running(name, {pod})[1].name, node.name)
        self.assertEqual(self.first_end(name), -1000)
        self.wait_node(node.name, "UNHEALTHY", "node.kubernetes.io/disk-pressure")
        node.stop_one("kubelet", signal.SIGTERM)
        node.start_kubelet()
        node.wait_ready()
        self.wait_node(node.name, "READY")
        self.stop(name)

    def test_a_device_that_does_not_work(self):
        broken, good = self.nodes[0], self.nodes[1]
        broken.start_plugin(GPU, "broken")
        waits.until(lambda: self.node(broken.name).get("gpu") == 1, lambda: f"no GPU: {self.node(broken.name)} {broken.tail('plugin')}", PATIENCE_S)
        name = self.submit("device", gpu=1)
        waits.until(lambda: self.node(broken.name).get("refusals"), lambda: f"it is not refused: {self.skepd.job(name)}\n{self.trouble()}", PATIENCE_S)
        good.start_plugin(GPU, "good")
        self.assertEqual(self.wait_running(name)[1].name, good.name)
        details = self.skepd.job(name)["jobStatus"]["retryDetails"]
        self.assertEqual(details["user"], 0, details)
        self.stop(name)
        for node in (broken, good):
            node.stop_one("plugin")


if __name__ == "__main__":
    unittest.main()
