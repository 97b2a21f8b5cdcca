"""The engine against an API server that misbehaves: test_faults.py SKEPD

Covers: src/engine/kubernetes/client.c, src/engine/kubernetes/follow.c, src/engine/kubernetes/tasks.c
"""
import json
import sys
import unittest

from faulty_server import FaultyServer
import skepd as server
import waits

SKEPD = sys.argv.pop(1) if __name__ == "__main__" else ""


class Faults(unittest.TestCase):
    def setUp(self):
        self.api = FaultyServer()
        self.addCleanup(self.api.stop)
        for number in range(5):  # three pages
            self.api.node(f"n{number}")
        self.skepd = server.Skepd(SKEPD, {"engine": {"kind": "fake"}})
        self.addCleanup(self.skepd.remove)
        self.addCleanup(lambda: self.assertEqual(self.skepd.stop(), 0, self.skepd.tail()))
        self.token_path = self.skepd.directory / "token"
        self.present("one")
        kubeconfig = self.skepd.directory / "kubeconfig"
        kubeconfig.write_text(json.dumps({
            "current-context": "c", "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}],
            "clusters": [{"name": "c", "cluster": {"server": self.api.url}}],
            "users": [{"name": "c", "user": {"tokenFile": "token"}}]}))
        self.skepd.write_config({
            "engine": {"kind": "kubernetes", "kubernetes": {"kubeconfig": str(kubeconfig), "initImage": "skep:1"}},
            "scheduling": {"portFirst": 15000, "portLast": 40000, "policy": "spread"}})

    def present(self, token):
        """The token is another one from now on, here and there."""
        self.token_path.write_text(token + "\n")
        with self.api.changed:
            self.api.token = token

    def start(self, *faults):
        self.api.fault(*faults)
        self.skepd.start()
        self.skepd.login()

    def submit(self, name, instances=1):
        self.skepd.submit(server.job_file(name, {"main": (instances, "true", {})}, "task:1"))
        return f"admin~{name}"

    def pods(self, count=1):
        self.api.wait(lambda api: len(api.objects["pods"]) == count, f"not {count} pods")
        with self.api.changed:
            return sorted(self.api.objects["pods"])

    def state(self, name, state):
        waits.until(lambda: self.skepd.job(name)["jobStatus"]["state"] == state,
                    lambda: f"{name} is not {state}\n{self.skepd.tail()}", 120)

    def finish(self, name):
        self.assertEqual(self.skepd.wait_final([name], 120)[name], "SUCCEEDED", f"{self.skepd.job(name)}\n{self.skepd.tail()}")
        self.pods(0)
        self.assertEqual(self.api.faults, [])

    def nodes(self):
        return sorted(node["name"] for node in self.skepd.call("GET", "/api/v2/nodes")["data"] if node["state"] == "READY")

    def wait_nodes(self, count):
        waits.until(lambda: len(self.nodes()) == count, lambda: f"not {count} nodes: {self.nodes()}\n{self.skepd.tail()}", 120)

    def run_one(self, name):
        job = self.submit(name)
        (pod,) = self.pods()
        self.api.run(pod)
        self.state(job, "RUNNING")
        self.api.end(pod)
        self.finish(job)

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
        self.start()
        self.wait_nodes(5)
        job = self.submit("job")
        (pod,) = self.pods()
        self.api.run(pod)
        self.state(job, "RUNNING")
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

    def test_writes_that_fail_are_made_again(self):
        self.start()
        self.wait_nodes(5)
        for fault in ("429", "500", "lost"):
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
        self.assertEqual(len(posts), 2, posts)

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

    def test_a_token_is_renewed(self):
        self.start()
        self.wait_nodes(5)
        self.present("two")
        self.run_one("job")
        self.api.fault("401")
        self.run_one("again")


if __name__ == "__main__":
    unittest.main()
