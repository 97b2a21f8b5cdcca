"""Tasks as pods of a real API server, whose nodes and pods the test plays: test_api.py SKEPD

The engine has exactly the rights of deploy/kubernetes/rights.yaml.
Covers: src/engine/kubernetes/client.c, src/engine/kubernetes/follow.c, src/engine/kubernetes/kubernetes.c,
src/engine/kubernetes/node_ask.c, src/engine/kubernetes/nodes.c, src/engine/kubernetes/tasks.c, src/engine/kubernetes/tells.c
"""
import signal
import sys
import unittest

import yaml

from cluster import Cluster, Refused
from metrics_server import MetricsServer
import skepd as server
import waits

SKEPD = sys.argv.pop(1) if __name__ == "__main__" else ""


class Api(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster()
        try:
            cls.cluster.start()
            kubeconfig, cls.token = cls.cluster.grant()
            for name in ("n1", "n2"):
                cls.cluster.add_node(name, labels={"skep": "yes"}, taints=[{"key": "skep.internal/dedicated", "effect": "NoSchedule"}])
            cls.cluster.add_node("other")
            cls.metrics = MetricsServer(cls.cluster, {"n1": ("1500m", "3Gi", {"skep": "yes"}), "other": ("9", "9Gi", {})})
            cls.skepd = server.Skepd(SKEPD, {
                "engine": {"kind": "kubernetes", "kubernetes": {
                    "kubeconfig": str(kubeconfig), "nodeSelector": "skep=yes", "initImage": "registry.invalid/skep:1",
                    "nodeLostSeconds": 1}},
                "scheduling": {"policy": "spread", "portFirst": 15000, "portLast": 40000,
                               "retryPauseFirstSeconds": 1, "retryPauseMaxSeconds": 1},
            })
            cls.skepd.start()
            cls.skepd.login()
        except BaseException:
            cls.cluster.stop()
            raise

    @classmethod
    def tearDownClass(cls):
        code, tail = cls.skepd.stop(), cls.skepd.tail()
        cls.skepd.remove()
        cls.metrics.stop()
        cls.cluster.stop()
        assert code == 0, tail

    def tearDown(self):
        self.assertEqual(self.cluster.wait_pods(0), {}, self.skepd.tail())

    def submit(self, name, instances=1, **more):
        job = yaml.safe_load(server.job_file(name, {"main": (instances, "true", {})}, "registry.invalid/task:1", {}))
        job["taskRoles"]["main"] |= more
        self.skepd.submit(yaml.safe_dump(job))
        return f"admin~{name}"

    def finish(self, name, state="SUCCEEDED"):
        self.assertEqual(self.skepd.wait_final([name], 120)[name], state, self.skepd.job(name))

    def wait_state(self, name, state, limit=120):
        waits.until(lambda: self.skepd.job(name)["jobStatus"]["state"] == state,
                    lambda: f"{name} is not {state}: {self.skepd.job(name)}\n{self.skepd.tail()}", limit)

    def test_only_selected_nodes_are_there(self):
        nodes = {node["name"]: node for node in self.skepd.call("GET", "/api/v2/nodes")["data"]}
        self.assertEqual(sorted(nodes), ["n1", "n2"])
        self.assertEqual(nodes["n1"]["state"], "READY", nodes)

    def test_what_a_node_uses_is_told_by_the_cluster(self):
        """By the aggregation layer, from a server behind it, with the right of the manifest."""
        def use(node):
            return self.skepd.call("GET", f"/api/v2/nodes/{node}/use?resolution=recent")["use"]
        waits.until(lambda: "memory" in use("n1"), lambda: f"it is not told: {use('n1')}\n{self.skepd.tail()}", 120)
        self.assertAlmostEqual(use("n1")["memory"]["most"], 3 << 30, delta=2 << 20)
        self.assertEqual(use("n2"), {})
        self.assertIn({"labelSelector": "skep=yes", "limit": "500"}, self.metrics.asked)

    def test_an_etcd_that_hangs(self):
        """The API server still answers what it knows, and says itself that it can write nothing (/readyz): nothing is placed until it can."""
        def ready():
            return [node["name"] for node in self.skepd.call("GET", "/api/v2/nodes")["data"] if node["state"] == "READY"]
        self.cluster.processes["etcd"].send_signal(signal.SIGSTOP)
        try:
            name = self.submit("kept-waiting")
            waits.until(lambda: not ready(), lambda: f"{ready()} are ready\n{self.skepd.tail()}", 240)
        finally:
            self.cluster.processes["etcd"].send_signal(signal.SIGCONT)
        waits.until(lambda: sorted(ready()) == ["n1", "n2"], lambda: f"only {ready()} are ready\n{self.skepd.tail()}", 120)
        (pod,) = self.cluster.wait_pods(1)
        self.cluster.play_running(pod)
        self.cluster.play_end(pod)
        self.finish(name)

    def test_a_job_of_two_tasks(self):
        name = self.submit("two", instances=2)
        pods = self.cluster.wait_pods(2)
        self.assertEqual(sorted(pod["spec"]["nodeName"] for pod in pods.values()), ["n1", "n2"])
        for pod in pods.values():
            self.assertEqual(pod["metadata"]["annotations"]["skep.internal/job"], name)
            self.assertNotIn("finalizers", pod["metadata"])
            secret = self.cluster.call("GET", f"/api/v1/namespaces/skep-jobs/secrets/{pod['metadata']['name']}")
            self.assertEqual(sorted(secret["data"]), ["job", "task"])
            self.assertEqual(pod["status"]["qosClass"], "Guaranteed")
        for pod in pods:
            self.cluster.play_running(pod)
        self.wait_state(name, "RUNNING")
        for pod in pods:
            self.cluster.play_end(pod)
        self.finish(name)
        self.cluster.wait_pods(0)
        waits.until(lambda: not self.cluster.call("GET", "/api/v1/namespaces/skep-jobs/secrets")["items"], lambda: "secrets are left", 120)

    def test_a_restart_adopts_pods(self):
        name = self.submit("adopted", instances=2)
        pods = self.cluster.wait_pods(2)
        first, second = sorted(pods)
        self.cluster.play_running(first)
        self.cluster.play_running(second)
        self.wait_state(name, "RUNNING")
        self.skepd.kill()
        self.cluster.play_end(first)  # while nobody looks
        self.skepd.start()
        self.cluster.play_end(second)
        self.finish(name)
        status = self.skepd.job(name)["taskRoles"]["main"]["taskStatuses"]
        self.assertEqual([task["retries"] if "retries" in task else 0 for task in status], [0, 0])

    def test_a_failure_has_its_code(self):
        name = self.submit("failed")
        (pod,) = self.cluster.wait_pods(1)
        self.cluster.play_running(pod)
        self.cluster.play_end(pod, 137, reason="OOMKilled")
        self.finish(name, "FAILED")
        self.assertEqual(self.skepd.job(name)["jobStatus"]["appExitCode"], -1200)

    def test_that_memory_ran_out_may_be_told_later(self):
        name = self.submit("late")
        (pod,) = self.cluster.wait_pods(1)
        self.cluster.play_running(pod)
        self.wait_state(name, "RUNNING")
        self.skepd.process.send_signal(signal.SIGSTOP)  # it hears of the second within its patience
        try:
            self.cluster.play_end(pod, 137)
            self.cluster.play_end(pod, 137, reason="OOMKilled")
        finally:
            self.skepd.process.send_signal(signal.SIGCONT)
        self.finish(name, "FAILED")
        self.assertEqual(self.skepd.job(name)["jobStatus"]["appExitCode"], -1200)

    def test_a_refusal_goes_back_to_the_queue(self):
        name = self.submit("refused")
        (pod,) = self.cluster.wait_pods(1)
        self.cluster.play(pod, "Failed", reason="OutOfcpu", message="Node didn't have enough resource: cpu")
        waits.until(lambda: list(self.cluster.pods()) not in ([pod], []), lambda: f"it is not tried again: {self.skepd.tail()}", 120)
        (second,) = self.cluster.wait_pods(1)
        self.cluster.play_running(second)
        self.cluster.play_end(second)
        self.finish(name)

    def test_stop_deletes_the_pod(self):
        name = self.submit("stopped")
        (pod,) = self.cluster.wait_pods(1)
        self.cluster.play_running(pod)
        self.wait_state(name, "RUNNING")
        self.skepd.act(name, "STOP")
        waits.until(lambda: "deletionTimestamp" in self.cluster.pods()[pod]["metadata"], lambda: "it is not being deleted", 120)
        self.cluster.play_end(pod, 143)  # as kubelet says it before the object goes
        self.finish(name, "STOPPED")

    def test_what_others_delete_is_tried_again(self):
        name = self.submit("deleted")
        (pod,) = self.cluster.wait_pods(1)
        self.cluster.play_running(pod)
        self.wait_state(name, "RUNNING")
        self.cluster.play_gone(pod)
        waits.until(lambda: list(self.cluster.pods()) not in ([pod], []), lambda: f"it is not tried again: {self.skepd.tail()}", 120)
        (second,) = self.cluster.wait_pods(1)
        self.cluster.play_end(second)
        self.finish(name)

    def test_a_node_that_is_not_ready_says_why(self):
        def state():
            return next(node for node in self.skepd.call("GET", "/api/v2/nodes")["data"] if node["name"] == "n2")

        self.cluster.set_node("n2", ready="Unknown", reason="NodeStatusUnknown", message="Kubelet stopped posting node status.")
        waits.until(lambda: state()["state"] != "READY", lambda: str(state()), 120)
        self.assertIn("Kubelet stopped posting", str(state()))
        self.cluster.set_node("n2")
        waits.until(lambda: state()["state"] == "READY", lambda: str(state()), 120)

    def node(self, name):
        return next(node for node in self.skepd.call("GET", "/api/v2/nodes")["data"] if node["name"] == name)

    def wait_node(self, name, state, why=""):
        waits.until(lambda: self.node(name)["state"] == state and why in str(self.node(name)),
                    lambda: f"{name} is not {state} for \"{why}\": {self.node(name)}\n{self.skepd.tail()}", 120)

    def lose(self, name):
        """A job whose node is silent; its first pod with that node, and the one that is tried elsewhere."""
        job = self.submit(name)
        (first,) = self.cluster.wait_pods(1)
        node = self.cluster.pods()[first]["spec"]["nodeName"]
        self.cluster.play_running(first)
        self.wait_state(job, "RUNNING")
        self.cluster.set_node(node, ready="Unknown", reason="NodeStatusUnknown", message="Kubelet stopped posting node status.")
        second = next(iter(set(self.cluster.wait_pods(2)) - {first}))
        self.assertNotEqual(self.cluster.pods()[second]["spec"]["nodeName"], node)
        waits.until(lambda: "deletionTimestamp" in self.cluster.pods()[first]["metadata"],
                    lambda: f"{first} is not being deleted: {self.skepd.tail()}")
        self.cluster.play_running(second)
        return job, node, first, second

    def test_a_node_that_is_lost_gets_no_tasks_until_its_pods_have_gone(self):
        job, node, first, second = self.lose("lost")
        self.wait_state(job, "RUNNING")
        self.cluster.set_node(node)  # its kubelet is back, and the old pod runs there
        self.wait_node(node, "UNHEALTHY", "1 pod of tasks that were given up is not gone yet")
        self.skepd.kill()
        self.skepd.start()
        self.wait_node(node, "UNHEALTHY", "not gone yet")
        self.cluster.play_gone(first)
        self.wait_node(node, "READY")
        self.cluster.play_end(second)
        self.finish(job)
        self.assertEqual(waits.emptied(self.given_up, 120), [])

    def test_a_node_that_is_deleted_and_comes_back(self):
        job, node, first, second = self.lose("deleted-node")
        self.cluster.call("DELETE", f"/api/v1/nodes/{node}")
        self.cluster.add_node(node, labels={"skep": "yes"}, taints=[{"key": "skep.internal/dedicated", "effect": "NoSchedule"}])
        self.wait_node(node, "UNHEALTHY", "not gone yet")
        self.cluster.play_gone(first)
        self.wait_node(node, "READY")
        self.cluster.play_end(second)
        self.finish(job)

    def test_where_no_node_is_heard_none_is_lost(self):
        job = self.submit("silence")
        (pod,) = self.cluster.wait_pods(1)
        self.cluster.play_running(pod)
        self.wait_state(job, "RUNNING")
        mine = self.cluster.pods()[pod]["spec"]["nodeName"]
        for node in sorted(("n1", "n2"), key=lambda name: name == mine):  # the last that is heard is its own
            self.cluster.set_node(node, ready="Unknown", reason="NodeStatusUnknown")
            self.wait_node(node, "UNHEALTHY")
        waits.until(lambda: "all nodes are silent" in self.skepd.tail(), self.skepd.tail, 120)
        self.assertEqual(list(self.cluster.pods()), [pod])
        for node in sorted(("n1", "n2"), key=lambda name: name != mine):  # the first that is heard is its own
            self.cluster.set_node(node)
            self.wait_node(node, "READY")
        self.assertEqual(list(self.cluster.pods()), [pod])
        self.cluster.play_end(pod)
        self.finish(job)

    def test_a_node_whose_devices_are_refused_is_held_back(self):
        self.cluster.merge("/api/v1/nodes/n2", {"spec": {"unschedulable": True}})
        self.wait_node("n2", "UNHEALTHY", "cordoned")
        job = self.submit("devices")
        for _ in range(3):
            (pod,) = self.cluster.wait_pods(1)
            self.cluster.play(pod, "Failed", reason="UnexpectedAdmissionError", message="Allocate failed due to no healthy devices present")
            waits.until(lambda: pod not in self.cluster.pods(), lambda: f"{pod} is not taken back: {self.skepd.tail()}", 120)
        self.wait_node("n1", "UNHEALTHY", "refused 3 times in a row: Allocate failed")
        self.cluster.merge("/api/v1/nodes/n2", {"spec": {"unschedulable": None}})
        (pod,) = self.cluster.wait_pods(1)
        self.assertEqual(self.cluster.pods()[pod]["spec"]["nodeName"], "n2")
        self.cluster.play_end(pod)
        self.finish(job)
        amounts = {"cpu": "8", "memory": "16Gi", "pods": "110"}
        self.cluster.set_node("n1", amounts | {"nvidia.com/gpu": "1"})  # its plugin has told of its devices anew
        self.wait_node("n1", "READY")
        self.cluster.set_node("n1", amounts | {"nvidia.com/gpu": "0"})

    def test_the_manifests_are_the_api_servers(self):
        self.cluster.apply("skepd.yaml")
        (skepd,) = self.cluster.call("GET", "/apis/apps/v1/namespaces/skep/statefulsets")["items"]
        # the level of its namespace would refuse another one
        pod = {"metadata": {"name": "probe", "labels": {"probe": "yes"}}, "spec": skepd["spec"]["template"]["spec"]}
        self.cluster.create("/api/v1/namespaces/skep/pods?dryRun=All", pod)

    def test_a_token_that_is_renewed(self):
        old = self.token.read_text()

        def is_refused():
            try:
                self.cluster.call("GET", "/api/v1/namespaces/skep-jobs/pods", token=old)
                return False
            except Refused as refused:
                return refused.status == 401

        self.token.write_text(self.cluster.token())
        self.cluster.call("DELETE", "/api/v1/namespaces/skep/secrets/first")
        waits.until(is_refused, "the old token is still taken", 120)
        job = self.submit("renewed")
        (pod,) = self.cluster.wait_pods(1)
        self.cluster.play_end(pod)
        self.finish(job)

    def give_up(self, name):
        """A job whose image has no good name; its pod, which the engine is deleting."""
        job = self.submit(name)
        (pod,) = self.cluster.wait_pods(1)
        self.cluster.play(pod, "Pending", {"waiting": {"reason": "InvalidImageName", "message": "no good name"}})
        waits.until(lambda: "deletionTimestamp" in self.cluster.pods()[pod]["metadata"], lambda: f"it is not given up: {self.skepd.tail()}", 120)
        return job, pod

    @property
    def given_up(self):
        return self.skepd.data / "kubernetes-kubernetes/given-up"

    def code(self, name):
        self.finish(name, "FAILED")
        return self.skepd.job(name)["jobStatus"]["appExitCode"]

    def test_what_was_given_up_before_a_restart_keeps_its_reason(self):
        name, pod = self.give_up("given-up")
        self.cluster.play_gone(pod)
        code = self.code(name)
        self.assertNotEqual(code, -101)
        name, pod = self.give_up("given-up-and-seen-after")
        self.skepd.kill()
        self.skepd.start()
        self.cluster.play_gone(pod)
        self.assertEqual(self.code(name), code)
        name, pod = self.give_up("given-up-and-gone-before")
        self.skepd.kill()
        self.cluster.play_gone(pod)
        self.skepd.start()
        self.assertEqual(self.code(name), code)
        self.assertEqual(waits.emptied(self.given_up, 120), [])

    def test_what_cannot_be_read_of_one_that_was_given_up_is_dropped(self):
        self.given_up.mkdir(exist_ok=True)
        self.skepd.kill()
        (self.given_up / "999999").write_text("x" * (1 << 20))
        self.skepd.start()
        self.assertEqual(waits.emptied(self.given_up, 120), [])

    def test_without_a_kubelet_a_log_is_empty(self):
        name = self.submit("logs")
        (pod,) = self.cluster.wait_pods(1)
        self.cluster.play_running(pod)
        self.wait_state(name, "RUNNING")
        self.assertEqual(self.skepd.call("GET", f"/api/v2/jobs/{name}/logs"), "")
        self.cluster.play_end(pod)
        self.finish(name)
        self.assertEqual(self.skepd.call("GET", f"/api/v2/jobs/{name}/logs"), "")

    def test_the_api_server_may_be_away(self):
        name = self.submit("away")
        (pod,) = self.cluster.wait_pods(1)
        self.cluster.play_running(pod)
        self.wait_state(name, "RUNNING")
        self.cluster.stop_one("apiserver", signal.SIGKILL)
        self.cluster.start_server()
        self.cluster.play_end(pod)
        self.finish(name)


if __name__ == "__main__":
    unittest.main()
