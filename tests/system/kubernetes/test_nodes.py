"""Tasks as pods that real kubelets run: test_nodes.py SKEPD IMAGE

IMAGE is the archive that deploy/image/make-image wrote: it brings skep-init into the pods, and the tasks run in it, too.
The engine has exactly the rights of deploy/kubernetes/rights.yaml.
Covers: src/engine/kubernetes/client.c, src/engine/kubernetes/follow.c, src/engine/kubernetes/kubernetes.c,
src/engine/kubernetes/logs.c, src/engine/kubernetes/nodes.c, src/engine/kubernetes/tasks.c, src/engine/kubernetes/tells.c
"""
import sys
import unittest

import yaml

from nodes import Nodes
import skepd as server
import waits

SKEPD, IMAGE = (sys.argv.pop(1), sys.argv.pop(1)) if __name__ == "__main__" else ("", "")
PATIENCE_S = 120


class Pods(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.nodes = Nodes(2)
        cls.cluster = cls.nodes.cluster
        cls.skepd = None
        cls.addClassCleanup(cls.clean)
        cls.nodes.start(IMAGE)
        kubeconfig, _ = cls.cluster.grant()
        cls.skepd = server.Skepd(SKEPD, {
            "engine": {"kind": "kubernetes", "kubernetes": {
                "kubeconfig": str(kubeconfig), "nodeSelector": "skep=yes", "initImage": cls.nodes.images.name("skep")}},
            "scheduling": {"policy": "spread", "portFirst": 15000, "portLast": 40000, "retryPauseFirstSeconds": 1, "retryPauseMaxSeconds": 1},
        })
        cls.skepd.start()
        cls.skepd.login()

    @classmethod
    def clean(cls):
        try:
            if cls.skepd:
                code, tail = cls.skepd.stop(), cls.skepd.tail()
                cls.skepd.remove()
                assert code == 0, tail
        finally:
            cls.nodes.stop()

    def tearDown(self):
        self.assertEqual(self.cluster.wait_pods(0), {}, self.trouble())

    def trouble(self):
        return "\n".join([self.skepd.tail(), *(node.tail("kubelet", 20) for node in self.nodes)])

    def submit(self, name, command, instances=1, image=None, **more):
        job = yaml.safe_load(server.job_file(name, {"main": (instances, command, {})}, image or self.nodes.images.name("skep"), {}))
        job["taskRoles"]["main"]["resourcePerInstance"]["memoryMB"] = 64
        job["taskRoles"]["main"] |= more
        self.skepd.submit(yaml.safe_dump(job))
        return f"admin~{name}"

    def finish(self, name, state="SUCCEEDED"):
        self.assertEqual(self.skepd.wait_final([name], PATIENCE_S)[name], state, f"{self.skepd.job(name)}\n{self.trouble()}")
        return self.skepd.job(name)["jobStatus"]

    def wait_state(self, name, state):
        waits.until(lambda: self.skepd.job(name)["jobStatus"]["state"] == state,
                    lambda: f"{name} is not {state}: {self.skepd.job(name)}\n{self.trouble()}", PATIENCE_S)

    def log(self, name, **more):
        query = "&".join(f"{key}={value}" for key, value in ({"index": 0} | more).items())
        return self.skepd.call("GET", f"/api/v2/jobs/{name}/logs?{query}")

    def test_hello(self):
        name = self.submit("hello", "echo hello from $PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX; echo a word >&2", instances=2)
        self.finish(name)
        self.cluster.wait_pods(0)
        for index in range(2):
            self.assertEqual(self.log(name, index=index, stream="stdout"), f"hello from {index}\n")
            self.assertEqual(self.log(name, index=index, stream="stderr"), "a word\n")
            self.assertEqual(sorted(self.log(name, index=index).splitlines()), ["a word", f"hello from {index}"])
        tasks = self.skepd.job(name)["taskRoles"]["main"]["taskStatuses"]
        self.assertEqual(sorted(task["containerIp"] for task in tasks), [node.address for node in self.nodes], tasks)

    def test_the_code_of_a_command(self):
        self.assertEqual(self.finish(self.submit("code", "exit 7"), "FAILED")["appExitCode"], 7)

    def test_more_memory_than_there_is(self):
        status = self.finish(self.submit("memory", "tail /dev/zero"), "FAILED")
        self.assertEqual(status["appExitCode"], -1200, status)

    def test_stop(self):
        name = self.submit("stopped", "sleep 1000")
        self.wait_state(name, "RUNNING")
        self.skepd.act(name, "STOP")
        self.finish(name, "STOPPED")

    def test_an_image_that_the_registry_does_not_have(self):
        status = self.finish(self.submit("missing", "true", image=self.nodes.images.name("nobody")), "FAILED")
        self.assertEqual(status["appExitCode"], 254, status)


if __name__ == "__main__":
    unittest.main()
