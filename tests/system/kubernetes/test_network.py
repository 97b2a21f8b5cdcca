"""Pods with addresses of their own: test_network.py SKEPD SKEP SKEP-INIT MAKE-IMAGE

Two kubelets whose pods are in a network of the cluster and not in that of their nodes; skepd is outside, as is the API server.
The namespace allows no more than Pod Security's level `baseline`. The engine has exactly the rights of deploy/kubernetes/rights.yaml.
Covers: src/engine/kubernetes/pod_make.c, src/engine/kubernetes/pod_network.c, src/init/addresses.c, src/engine/kubernetes/forward.c
"""
import json
import re
import signal
import sys
import unittest

from installation import Installation
from jobs import FINAL, Jobs, PODS
from task_ports import server_port
from terminal import Terminal
import waits
from waits import PATIENCE_S
from web_port import assert_served, PORTS, SERVE

PROGRAMS = [sys.argv.pop(1) for _ in range(4)] if __name__ == "__main__" else []
SPACE = "/api/v1/namespaces/skep-jobs"
ADDRESSES = "set | grep -E '^PAI_HOST_IP_' | sort"
# it serves its own word, and waits for that of the other; the client's end ends the job
FETCH = "until wget -q -O - http://$PAI_HOST_IP_{0}_0:$PAI_PORT_LIST_{0}_0_web/{1}; do sleep 0.2; done"
OFFER = "mkdir /tmp/w; echo word of $PAI_TASK_ROLE_NAME >/tmp/w/word; httpd -p $PAI_PORT_LIST_{0}_0_web -h /tmp/w"
GANG = {
    "client": {"commands": [OFFER.format("client"), FETCH.format("server", "word"), FETCH.format("server", "seen")],
               "completion": {"minSucceededInstances": 1}},
    "server": {"commands": [OFFER.format("server"), FETCH.format("client", "word"), "echo seen >/tmp/seen; mv /tmp/seen /tmp/w/seen",
                            "trap 'cat $SKEP_STOP_REASON_FILE; exit 0' TERM; sleep 100000 & wait"]},
}


def enforce(cluster, level):
    cluster.merge(SPACE, {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": level}}})


class Network(Jobs):
    @classmethod
    def setUpClass(cls):
        cls.place = Installation(PROGRAMS, 2, has_pod_network=True)
        cls.addClassCleanup(cls.place.stop)
        cls.place.start_nodes()
        enforce(cls.place.cluster, "baseline")
        cls.relay = server_port()
        # a task hears in a part of its grace why it is ended
        cls.place.start_skepd(scheduling={"killGraceSeconds": 240}, more={"api": {"webPorts": {"listen": f"127.0.0.1:{cls.relay}"}}},
                              network="pod")

    # --- the network itself: what the other tests stand on ---

    def pod_make(self, name, node, command):
        """One that is not Skep's."""
        self.cluster.create(PODS, {"metadata": {"name": name}, "spec": {
            "nodeName": node, "restartPolicy": "Never", "terminationGracePeriodSeconds": 0, "tolerations": [{"operator": "Exists"}],
            "automountServiceAccountToken": False,
            "containers": [{"name": "task", "image": self.nodes.images.name("skep"), "command": ["sh", "-c", command]}]}})
        self.addCleanup(self.cluster.call, "DELETE", f"{PODS}/{name}", {"gracePeriodSeconds": 0})

    def pod_wait(self, name, phase):
        waits.until(lambda: self.cluster.pods()[name]["status"]["phase"] == phase,
                    lambda: f"{json.dumps(self.cluster.pods()[name]['status'])}\n{self.place.trouble()}", PATIENCE_S)
        return self.cluster.pods()[name]["status"]

    def test_pods_of_two_nodes(self):
        self.pod_make("server", "n1", "mkdir /tmp/w && echo word >/tmp/w/file && httpd -f -p 8000 -h /tmp/w")
        address = self.pod_wait("server", "Running")["podIP"]
        self.assertNotIn(address, [node.address for node in self.nodes])
        self.pod_make("client", "n2", f"until wget -q -O - http://{address}:8000/file; do sleep 0.2; done")
        self.pod_wait("client", "Succeeded")
        self.assertTrue(self.cluster.call("GET", f"{PODS}/client/log").endswith("word\n"))

    # --- Skep's pods ---

    def is_of_pods(self, address):
        return address.startswith(f"{self.nodes.pod_subnet}.")

    def test_a_task_alone(self):
        """It knows its own address, and the server tells it."""
        name = self.submit("alone", {"main": "echo $PAI_HOST_IP_main_0; hostname -i; sleep 100000"})
        self.wait_state(name, "RUNNING")
        (pod,) = self.wait_pods_of(name, lambda pod: pod["status"].get("podIP"), "it has no address").values()
        address = pod["status"]["podIP"]
        self.assertTrue(self.is_of_pods(address), address)
        self.assertFalse(pod["spec"].get("hostNetwork"), pod["spec"])
        self.wait_log(name, f"{address}\n{address}\n")
        self.assertEqual(self.tasks(name)["main"][0]["containerIp"], address)
        done = self.skep("exec", "alone", "--", "sh", "-c", "echo out $PAI_HOST_IP_main_0; echo err >&2; exit 7")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (7, f"out {address}\n", "err\n"), self.trouble(name))
        terminal = Terminal(self.place.environment(), self.place.programs[1], "shell", "alone", rows=30, columns=100)
        terminal.type("echo at $PAI_HOST_IP_main_0; exit 9\r")
        terminal.until(f"at {address}\r\n")
        self.assertEqual(terminal.wait(), 9)
        self.stop(name)

    def test_a_web_port(self):
        """skepd is in another network than the pods."""
        name = self.submit("served", {"main": {"commands": [SERVE]} | PORTS})
        self.wait_state(name, "RUNNING")
        assert_served(self, self.skepd, self.relay, name, lambda: self.trouble(name))
        self.stop(name)

    def test_its_end_is_told(self):
        self.assertEqual(self.finish(self.submit("code", {"main": "exit 7"}), "FAILED")["appExitCode"], 7)

    def test_a_gang_of_two_roles(self):
        """Each reaches the other by what the environment says. The end of one is the end of the job, which the other reads."""
        name = self.submit("gang", GANG)
        self.finish(name)
        self.assertEqual(self.log(name, "client", stream="stdout").splitlines(), ["word of server", "seen"])
        self.assertEqual(self.log(name, "server", stream="stdout").splitlines()[:2], ["word of client", "reason attempt completed"])
        tasks = [task for role in self.tasks(name).values() for task in role]
        self.assertEqual(sorted(task["containerNodeName"] for task in tasks), ["n1", "n2"], tasks)
        self.assertTrue(all(self.is_of_pods(task["containerIp"]) for task in tasks), tasks)

    def test_a_task_that_is_tried_again_alone(self):
        """It has a new pod and a new address, and is told that of its peer; the peer keeps what it was told."""
        name = self.submit("again", {"first": f"{ADDRESSES}; sleep 100000",
                                     "second": {"commands": ["mkfifo /tmp/go", ADDRESSES, "if [ $SKEP_TASK_ATTEMPT = 0 ]; then read go </tmp/go; exit 3; fi", "sleep 100000"],
                                                "taskRetryCount": 1}}, extras={"gangAllocation": False})
        before = self.wait_pods_of(name, lambda pod: pod["status"].get("podIP"), "no addresses")
        self.wait_log(name, "PAI_HOST_IP_second_0", "second")
        self.skep("exec", "again", "second", "--", "sh", "-c", "echo now >/tmp/go")  # it may end with the container
        waits.until(lambda: self.tasks(name)["second"][0]["retries"] == 1 and self.tasks(name)["second"][0]["taskState"] == "RUNNING",
                    lambda: f"it is not tried again: {self.trouble(name)}", PATIENCE_S)
        first, second = (self.tasks(name)[role][0]["containerIp"] for role in ("first", "second"))
        self.assertNotIn(second, [pod["status"]["podIP"] for pod in before.values()])
        self.wait_log(name, f"PAI_HOST_IP_first_0={first}\nPAI_HOST_IP_second_0={second}\n".replace("=", "='").replace("\n", "'\n"), "second")
        self.stop(name)

    # --- while one waits for the addresses of its peers: the kubelet of the other's node stands still ---

    def hold(self, name, **more):
        """A gang of which one task runs and waits; the name of its pod, and the other's node."""
        held = self.nodes[1]
        held.processes["kubelet"].send_signal(signal.SIGSTOP)
        self.addCleanup(self.go_on, held)
        name = self.submit(name, GANG, **more)
        pods = self.wait_pods_of(name, lambda pod: pod["status"]["phase"] == "Running", "none runs")
        (pod,) = pods
        role = pods[pod]["metadata"]["annotations"]["skep.internal/task"].partition("/")[0]
        self.wait_log(name, "waits until all tasks of the job have an address", role, stream="runtime")
        return name, pod, held

    @staticmethod
    def go_on(node):
        node.processes["kubelet"].send_signal(signal.SIGCONT)

    def retries(self, name):
        return self.skepd.job(name)["jobStatus"]["retryDetails"]

    def test_skepd_is_killed_before_the_addresses_are_known(self):
        name, pod, held = self.hold("killed")
        self.skepd.kill()
        self.go_on(held)
        waits.until(lambda: all(each["status"].get("podIP") for each in self.pods_of(name).values()), lambda: self.place.trouble(), PATIENCE_S)
        self.assertIn(pod, self.pods_of(name))
        self.skepd.start()
        status = self.finish(name)
        self.assertEqual((status["retries"], status["retryDetails"]["platform"]), (0, 0), status)
        self.assertEqual(self.log(name, "client", stream="stdout").splitlines()[-2:], ["word of server", "seen"])

    def test_a_pod_is_deleted_meanwhile(self):
        name, pod, held = self.hold("deleted")
        self.cluster.call("DELETE", f"{PODS}/{pod}", {"gracePeriodSeconds": 1})
        waits.until(lambda: pod not in self.pods_of(name), lambda: f"{pod} does not go: {self.trouble(name)}", PATIENCE_S)
        self.go_on(held)
        status = self.finish(name)
        self.assertEqual((status["retryDetails"]["user"], status["retryDetails"]["platform"]), (0, 1), status)
        self.assertEqual(self.skepd.call("GET", f"/api/v2/jobs/{name}/job-attempts/0")["exitCode"], -101)

    def test_stop_while_one_waits(self):
        """It is told to end, and does: nobody has to kill it."""
        name, pod, held = self.hold("stopped")
        self.skepd.act(name, "STOP")
        waits.until(lambda: pod not in self.pods_of(name), lambda: f"{pod} does not go: {self.trouble(name)}", PATIENCE_S)
        self.go_on(held)
        self.finish(name, "STOPPED")
        codes = [task["containerExitCode"] for role in self.tasks(name).values() for task in role]
        self.assertNotIn(137, codes, self.tasks(name))

    # --- Pod Security ---

    def test_the_network_of_nodes_is_refused(self):
        """The namespace allows no pods there, which is the operator's to mend: the job waits, and the user reads why."""
        other = self.other()
        name = self.submit("host", {"main": "true"}, other)
        said = re.compile('AdmissionRefused: .*violates PodSecurity "baseline.*hostNetwork=true')
        waits.until(lambda: said.search(str(other.call("GET", f"/api/v2/jobs/{name}/events"))),
                    lambda: self.trouble(name, other), PATIENCE_S)
        self.assertNotIn(other.job(name)["jobStatus"]["state"], FINAL)
        self.stop(name, other)


if __name__ == "__main__":
    unittest.main()
