"""GPUs as resource claims, on real kubelets with a DRA driver of the tests: test_dra.py SKEPD SKEP SKEP-INIT MAKE-IMAGE

Each of two nodes has four devices. A task sees in SKEP_TEST_DEVICES which the driver has prepared for its pod's claim. skepd has exactly
the rights of deploy/kubernetes/rights.yaml and rights-dra.yaml.
Covers: src/engine/kubernetes/claims.c, src/engine/kubernetes/claim.c, src/engine/kubernetes/devices.c, src/engine/kubernetes/slices.c
"""
import json
import sys
import unittest

import yaml

import cluster as api
import installation
import skepd as server
import waits
from waits import PATIENCE_S

PROGRAMS = [sys.argv.pop(1) for _ in range(4)] if __name__ == "__main__" else []
DRIVER = "gpu.skep.test"
CLAIMS = "/apis/resource.k8s.io/v1/namespaces/skep-jobs/resourceclaims"
SLICES = "/apis/resource.k8s.io/v1/resourceslices"
WAIT = "echo $SKEP_TEST_DEVICES; while [ ! -e /mnt/open/go ]; do sleep 0.2; done"


def devices(count=4):
    return [{"name": f"gpu-{number}", "attributes": {
        "type": {"string": "gpu"}, "productName": {"string": "Tesla V100"},
        "resource.kubernetes.io/pcieRoot": {"string": f"pci0000:{number // 2}0"}}} for number in range(count)]


class Claims(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        api.need("kube-apiserver", "kubelet", "dra-driver")
        cls.place = installation.Installation(PROGRAMS, 2, {"syncFrequency": "10s"}, has_driver=True)  # how soon a pod that could not be prepared is tried again
        cls.addClassCleanup(cls.place.stop)
        cls.cluster, cls.nodes = cls.place.cluster, cls.place.nodes
        cls.place.start_nodes()
        cls.cluster.apply("rights-dra.yaml")
        cls.cluster.create("/apis/resource.k8s.io/v1/deviceclasses", {"metadata": {"name": "gpus"}, "spec": {"selectors": [
            {"cel": {"expression": f'device.driver == "{DRIVER}"'}}]}})
        for node in cls.nodes:
            node.set_devices(devices())
            node.start_driver(DRIVER)
        cls.open = cls.nodes.directory / "open"
        cls.open.mkdir()
        cls.place.start_skepd(more={"storages": [{"name": "open", "directory": str(cls.open)}]},
                              gpus="dra", deviceDriver=DRIVER, deviceClass="gpus")
        cls.skepd = cls.place.skepd
        cls.wait_gpus({"n1": 4, "n2": 4})

    @classmethod
    def rows(cls):
        return {node["name"]: node for node in cls.skepd.call("GET", "/api/v2/nodes")["data"]}

    @classmethod
    def wait_gpus(cls, wanted):
        """How many GPUs each node that takes tasks has."""
        waits.until(lambda: {name: row["gpu"] for name, row in cls.rows().items() if row["state"] == "READY"} == wanted,
                    lambda: f"not {wanted}: {cls.rows()}\n{cls.place.trouble()}\n{cls.nodes[0].tail('driver')}", PATIENCE_S)

    def tearDown(self):
        (self.open / "go").touch()
        for job in self.skepd.jobs():  # what a test that failed has left would fail the others
            if job["state"] not in ("SUCCEEDED", "FAILED", "STOPPED"):
                self.skepd.act(f"admin~{job['name']}", "STOP")
        self.cluster.wait_pods(0)
        waits.until(lambda: not self.claims(), lambda: f"claims are left: {self.claims()}", PATIENCE_S)
        (self.open / "go").unlink()

    def claims(self):
        return {claim["metadata"]["name"]: claim for claim in self.cluster.call("GET", CLAIMS)["items"]}

    def submit(self, name, instances=1, gpus=2, command=WAIT, **more):
        job = yaml.safe_load(server.job_file(name, {"main": (instances, command, {})}, self.nodes.images.name("skep"),
                                             {"extras": {"storages": [{"name": "open"}]}} | more))
        job["taskRoles"]["main"]["resourcePerInstance"] |= {"memoryMB": 64, "gpu": gpus}
        self.skepd.submit(yaml.safe_dump(job))
        return f"admin~{name}"

    def wait_state(self, name, state):
        waits.until(lambda: self.skepd.job(name)["jobStatus"]["state"] == state,
                    lambda: f"{name} is not {state}: {self.skepd.job(name)}\n{self.warnings()}\n{self.place.trouble()}", PATIENCE_S)

    def finish(self, name):
        (self.open / "go").touch()
        self.wait_state(name, "SUCCEEDED")

    def wait_log(self, words):
        waits.until(lambda: words in self.skepd.tail(1000), lambda: f"not told: {words}\n{self.skepd.tail()}\n{self.nodes[0].tail('driver')}", PATIENCE_S)

    def warnings(self):
        events = self.cluster.call("GET", "/api/v1/namespaces/skep-jobs/events")["items"]
        return [(event["involvedObject"]["name"], event["reason"], event["message"]) for event in events if event["type"] == "Warning"]

    def chosen(self, name):
        """The names of the devices that Skep says each task has, by its index."""
        tasks = self.skepd.job(name)["taskRoles"]["main"]["taskStatuses"]
        return [",".join(f"gpu-{number}" for number in task["containerGpus"].split(",")) if task["containerGpus"] else "" for task in tasks]

    def seen(self, name):
        """What each task has printed."""
        count = len(self.skepd.job(name)["taskRoles"]["main"]["taskStatuses"])
        return [self.skepd.call("GET", f"/api/v2/jobs/{name}/logs?index={index}&stream=stdout").strip() for index in range(count)]

    def prepared(self):
        return sorted(path.name for node in self.nodes for path in node.prepared().glob("*.json"))

    def test_a_task_sees_the_devices_that_skep_chose(self):
        name = self.submit("pair", instances=2, gpus=3)
        self.wait_state(name, "RUNNING")
        other = self.submit("single", gpus=1)
        self.wait_state(other, "RUNNING")
        waits.until(lambda: all(self.seen(each) == self.chosen(each) for each in (name, other)),
                    lambda: f"{self.seen(name)} {self.chosen(name)}\n{self.seen(other)} {self.chosen(other)}\n{self.place.trouble()}", PATIENCE_S)
        self.assertEqual([len(each.split(",")) for each in self.seen(name) + self.seen(other)], [3, 3, 1])
        pods = self.cluster.pods()
        self.assertEqual(sorted(self.claims()), sorted(pods))
        for pod, claim in ((pods[each], claim) for each, claim in self.claims().items()):
            self.assertEqual([each["uid"] for each in claim["status"]["reservedFor"]], [pod["metadata"]["uid"]])
            self.assertEqual([each["uid"] for each in claim["metadata"]["ownerReferences"]], [pod["metadata"]["uid"]])
        late = {pod: text for pod, reason, text in self.warnings() if reason == "FailedPrepareDynamicResources" and pod in pods}
        print(f"{len(late)} of {len(pods)} kubelets have looked before the claim was there: {late}", file=sys.stderr)
        before = pods
        self.skepd.kill()
        self.skepd.start()
        self.skepd.login()
        self.wait_gpus({"n1": 4, "n2": 4})
        self.assertEqual({name: pod["metadata"]["uid"] for name, pod in self.cluster.pods().items()},
                         {name: pod["metadata"]["uid"] for name, pod in before.items()})
        waiting = self.submit("waiting", gpus=4)  # no node has so many free
        third = self.submit("third", gpus=1)
        self.wait_state(third, "RUNNING")
        waits.until(lambda: self.seen(third) == self.chosen(third) != [""], lambda: f"{self.seen(third)} {self.chosen(third)}", PATIENCE_S)
        self.assertEqual(self.skepd.job(waiting)["jobStatus"]["state"], "WAITING")
        for each in (name, other, third, waiting):
            self.finish(each)
        self.assertEqual(self.seen(waiting), ["gpu-0,gpu-1,gpu-2,gpu-3"])
        self.cluster.wait_pods(0)
        waits.until(lambda: not self.claims() and not self.prepared(), lambda: f"{self.claims()} {self.prepared()}", PATIENCE_S)

    def test_what_becomes_of_a_claim_that_somebody_deletes(self):
        """A task that runs goes on: its devices are prepared until it ends."""
        name = self.submit("deleted")
        self.wait_state(name, "RUNNING")
        (claim,) = self.claims()
        self.cluster.call("DELETE", f"{CLAIMS}/{claim}")
        self.finish(name)
        waits.until(lambda: not self.prepared(), lambda: f"{self.prepared()}", PATIENCE_S)

    def test_a_driver_that_is_away(self):
        """Its kubelet tries again until it is back; what runs goes on."""
        running = self.submit("running", gpus=4)
        self.wait_state(running, "RUNNING")
        (pod,) = self.cluster.pods().values()
        number = 1 if pod["spec"]["nodeName"] == "n1" else 0
        self.nodes[number].stop_one("driver")
        name = self.submit("later", gpus=2)
        waits.until(lambda: any("not registered" in message or "no longer" in message or "rpc error" in message or "connect" in message
                                for _, reason, message in self.warnings() if reason == "FailedPrepareDynamicResources"),
                    lambda: f"{self.warnings()}\n{self.place.trouble()}", PATIENCE_S)
        self.nodes[number].start_driver(DRIVER)
        self.wait_state(name, "RUNNING")
        self.wait_gpus({"n1": 4, "n2": 4})
        self.finish(name)
        self.finish(running)

    def test_devices_that_go_and_come(self):
        self.nodes[0].set_devices([device for device in devices() if device["name"] != "gpu-1"])
        self.wait_log("GPU 1 of n1 (n1/gpu-1) is not offered any more")
        name = self.submit("few", instances=2, gpus=3)
        self.wait_state(name, "RUNNING")
        waits.until(lambda: self.seen(name) == self.chosen(name), lambda: f"{self.seen(name)} {self.chosen(name)}", PATIENCE_S)
        self.assertIn("gpu-0,gpu-2,gpu-3", self.seen(name))
        self.nodes[0].set_devices(devices())
        self.wait_log("GPU 1 of n1 (n1/gpu-1) is offered again")
        other = self.submit("other", gpus=1)
        self.wait_state(other, "RUNNING")
        self.finish(name)
        self.finish(other)


if __name__ == "__main__":
    unittest.main()
