"""Tasks as pods that real kubelets run: test_nodes.py SKEPD SKEP SKEP-INIT MAKE-IMAGE

The image that MAKE-IMAGE (deploy/image/make-image) makes of the three programs brings skep-init into the pods, and the tasks run in it, too.
The engine has exactly the rights of deploy/kubernetes/rights.yaml.
Covers: src/engine/kubernetes/ask.c, src/engine/kubernetes/client.c, src/engine/kubernetes/exec.c, src/engine/kubernetes/follow.c,
src/engine/kubernetes/forward.c, src/engine/kubernetes/kubernetes.c, src/engine/kubernetes/logs.c, src/engine/kubernetes/nodes.c, src/engine/kubernetes/tasks.c, src/engine/kubernetes/tells.c,
src/engine/kubernetes/upgrade.c, src/init/beside.c
"""
import subprocess
import sys
import unittest

import yaml

from installation import Installation
import skepd as server
from task_ports import server_port
from terminal import Terminal
import waits
from waits import PATIENCE_S
from web_port import assert_served, PORTS, SERVE

SKEPD, SKEP, INIT, MAKE_IMAGE = (sys.argv.pop(1) for _ in range(4)) if __name__ == "__main__" else ("", "", "", "")


class Pods(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.installation = Installation((SKEPD, SKEP, INIT, MAKE_IMAGE), 2, {"containerLogMaxSize": "256Ki", "containerLogMaxFiles": 2, "containerLogMonitorInterval": "3s"})
        cls.nodes, cls.cluster = cls.installation.nodes, cls.installation.cluster
        cls.addClassCleanup(cls.installation.stop)
        cls.installation.start_nodes()
        cls.relay = server_port()
        cls.installation.start_skepd(more={"api": {"webPorts": {"listen": f"127.0.0.1:{cls.relay}"}}})
        cls.skepd = cls.installation.skepd

    def tearDown(self):
        self.assertEqual(self.cluster.wait_pods(0), {}, self.trouble())

    def trouble(self):
        return self.installation.trouble(20)

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

    def skep(self, *words, **more):
        return subprocess.run([SKEP, *words], env=self.installation.environment(), capture_output=True, text=True, timeout=PATIENCE_S, **more)

    def test_programs_beside_a_task(self):
        name = self.submit("box", "echo ready; sleep 1000")
        self.wait_state(name, "RUNNING")
        waits.until(lambda: self.log(name) == "ready\n", lambda: f"its log does not come: {self.trouble()}", PATIENCE_S)
        done = self.skep("exec", "box", "--", "sh", "-c", "echo out $PAI_TASK_INDEX; echo err >&2; exit 7")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (7, "out 0\n", "err\n"), self.trouble())
        done = self.skep("exec", "box", "--", "no-such-program")
        self.assertEqual(done.returncode, 127)
        self.assertIn("cannot run no-such-program", done.stderr)
        text = "".join(f"line {i}\n" for i in range(50000))
        done = self.skep("exec", "box", "--", "cat", input=text)
        self.assertEqual((done.returncode, len(done.stdout)), (0, len(text)), done.stderr)
        self.assertEqual(done.stdout, text)
        environment = self.installation.environment()
        terminal = Terminal(environment, SKEP, "shell", "box", rows=30, columns=100)
        terminal.type("until stty size | grep -q '30 100'; do :; done; stty size; echo $TERM $((40+2)).\r")  # its size comes behind its start
        terminal.until("30 100\r\nxterm 42.")
        terminal.type("exit 9\r")
        self.assertEqual(terminal.wait(), 9)
        self.skepd.act(name, "STOP")
        self.finish(name, "STOPPED")
        self.assertNotEqual(self.skep("exec", "box", "--", "true").returncode, 0)

    def test_a_web_port(self):
        name = self.submit("served", SERVE, **PORTS)
        self.wait_state(name, "RUNNING")
        assert_served(self, self.skepd, self.relay, name, self.trouble)
        self.skepd.act(name, "STOP")
        self.finish(name, "STOPPED")

    def test_what_a_task_uses(self):
        name = self.submit("busy", "while :; do :; done")
        self.wait_state(name, "RUNNING")

        def use():
            return self.skepd.call("GET", f"/api/v2/jobs/{name}/use")["use"]

        waits.until(lambda: use().get("cpu", {}).get("most", 0) > 0, lambda: f"{use()}\n{self.trouble()}", PATIENCE_S)
        self.assertGreater(use()["memory"]["most"], 100000)
        self.skepd.act(name, "STOP")
        self.finish(name, "STOPPED")

    def test_an_image_that_the_registry_does_not_have(self):
        status = self.finish(self.submit("missing", "true", image=self.nodes.images.name("nobody")), "FAILED")
        self.assertEqual(status["appExitCode"], 254, status)


if __name__ == "__main__":
    unittest.main()
