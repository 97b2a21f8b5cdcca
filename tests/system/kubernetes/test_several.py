"""This machine and a cluster under one skepd: test_several.py SKEPD

Tasks here are real containers; those of the cluster are pods of a real API server, whose nodes and pods the test plays.
Covers: src/server/engines.c, src/server/engine_health.c, src/server/recover.c
"""
import contextlib
import signal
import sys
import unittest

import yaml

from cluster import SKIPPED, Cluster
import skepd as server
import waits

SKEPD = sys.argv.pop(1) if __name__ == "__main__" else ""
# the cells of an engine have types of their own, so that each virtual cluster is on one
CELLS = """
physicalCluster:
  skuTypes: {CPU: {gpu: 0, cpu: 1, memory: 256Mi}}
  cellTypes:
    MACHINE: {childCellType: CPU, childCellNumber: 4, isNodeLevel: true}
    NODE: {childCellType: CPU, childCellNumber: 8, isNodeLevel: true}
  physicalCells:
  - {cellType: MACHINE, cellAddress: m1}
  - {cellType: NODE, cellAddress: n1}
  - {cellType: NODE, cellAddress: n2}
virtualClusters:
  default: {virtualCells: [{cellType: MACHINE, cellNumber: 1}]}
  far: {virtualCells: [{cellType: NODE, cellNumber: 2}]}
"""


class Several(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster()
        try:
            cls.cluster.start()
            cls.kubeconfig, _ = cls.cluster.grant()
            for name in ("n1", "n2"):
                cls.cluster.add_node(name, labels={"skep": "yes"}, taints=[{"key": "skep.internal/dedicated", "effect": "NoSchedule"}])
        except BaseException:
            cls.cluster.stop()
            raise

    @classmethod
    def tearDownClass(cls):
        cls.cluster.stop()

    def setUp(self):
        self.skepd = server.Skepd(SKEPD, {})
        self.image = server.busybox_image(self.skepd.directory)
        self.sync = self.skepd.directory / "sync"
        self.sync.mkdir()
        self.sync.chmod(0o777)

    def tearDown(self):
        with contextlib.suppress(AssertionError, OSError):  # which is said below
            self.cluster.wait_pods(0)
        code, tail = self.skepd.stop(), self.skepd.tail()
        pods = list(self.cluster.pods())
        for pod in pods:  # of a test that has failed: the next one has a server that does not know them
            self.cluster.play_gone(pod)
        self.skepd.remove()
        self.assertEqual(code, 0, tail)
        self.assertEqual(pods, [], tail)

    def configuration(self, scheduling):
        return {
            "engines": [
                {"name": "here", "kind": "local", "nodeName": "m1", "cpu": 4, "memoryMB": 2048,
                 "images": {"localRoots": [str(self.skepd.directory)]}},
                {"name": "far", "kind": "kubernetes", "kubernetes": {
                    "kubeconfig": str(self.kubeconfig), "nodeSelector": "skep=yes", "initImage": "registry.invalid/skep:1"}},
            ],
            "storages": [{"name": "sync", "directory": str(self.sync)},
                         {"name": "both", "directory": str(self.sync), "claim": "lab"}, {"name": "volume", "claim": "lab"}],
            "scheduling": {"retryPauseFirstSeconds": 1, "retryPauseMaxSeconds": 1} | scheduling,
        }

    def begin(self, **scheduling):
        self.skepd.write_config(self.configuration(scheduling))
        self.skepd.start()
        self.skepd.login()

    def begin_with_cells(self):
        path = self.skepd.directory / "cells.yaml"
        path.write_text(CELLS)
        self.begin(cellsFile=str(path))

    def submit(self, name, command="true", instances=1, cpu=1, virtual_cluster="default", image=None, more=None):
        job = yaml.safe_load(server.job_file(name, {"main": (instances, command, {})}, image or self.image, more))
        job["taskRoles"]["main"]["resourcePerInstance"]["cpu"] = cpu
        job["defaults"] = {"virtualCluster": virtual_cluster}
        self.skepd.submit(yaml.safe_dump(job))
        return f"admin~{name}"

    def submit_far(self, name, instances=1, **more):
        return self.submit(name, "true", instances, virtual_cluster="far", image="registry.invalid/task:1", **more)

    def submit_here(self, name):
        """It runs until there is a file of its name."""
        return self.submit(name, f"echo here; while [ ! -e /mnt/sync/{name} ]; do sleep 0.1; done",
                           more={"extras": {"storages": [{"name": "sync"}]}})

    def end_here(self, job):
        (self.sync / job.split("~")[1]).touch()

    def wait_state(self, job, state):
        waits.until(lambda: self.skepd.job(job)["jobStatus"]["state"] == state,
                    lambda: f"{job} is not {state}: {self.skepd.job(job)}\n{self.skepd.tail()}", 120)

    def finish(self, job, state="SUCCEEDED"):
        self.assertEqual(self.skepd.wait_final([job], 120)[job], state, self.skepd.job(job))
        self.assertEqual(self.skepd.job(job)["jobStatus"]["retries"], 0)

    def nodes(self):
        return {node["name"]: node for node in self.skepd.call("GET", "/api/v2/nodes")["data"]}

    def wait_node(self, name, state, why=""):
        waits.until(lambda: name in self.nodes() and self.nodes()[name]["state"] == state and why in str(self.nodes()[name]),
                    lambda: f"{name} is not {state}: {self.nodes()}\n{self.skepd.tail()}", 120)

    def ready(self):
        return self.skepd.call("GET", "/readyz?verbose", token=None)

    def run_both(self):
        """A job on each engine; the pods of the second."""
        here, far = self.submit_here("near"), self.submit_far("distant", 2)
        pods = sorted(self.cluster.wait_pods(2))
        for pod in pods:
            self.cluster.play_running(pod)
        for job in (here, far):
            self.wait_state(job, "RUNNING")
        return here, far, pods

    def pods_of(self, job):
        return [name for name, pod in self.cluster.pods().items() if pod["metadata"]["annotations"]["skep.internal/job"] == job]

    def test_a_job_in_each_virtual_cluster_and_a_restart(self):
        self.begin_with_cells()
        for name, engine in (("m1", "here"), ("n1", "far"), ("n2", "far")):
            self.wait_node(name, "READY")
            self.assertEqual(self.nodes()[name]["engine"], engine)
        here, far, (first, second) = self.run_both()
        (task,) = self.skepd.job(here)["taskRoles"]["main"]["taskStatuses"]
        self.assertEqual(task["containerNodeName"], "m1")
        self.assertEqual({pod["spec"]["nodeName"] for pod in self.cluster.pods().values()} - {"n1", "n2"}, set())
        waits.until(lambda: "here" in self.skepd.call("GET", f"/api/v2/jobs/{here}/logs"), self.skepd.tail, 120)
        self.skepd.kill()
        self.cluster.play_end(first)  # while nobody looks
        self.skepd.start()
        self.cluster.play_end(second)
        self.finish(far)
        self.wait_state(here, "RUNNING")
        self.end_here(here)
        self.finish(here)
        self.assertIn("skep_adopted_total 3\n", self.skepd.call("GET", "/metrics"))
        self.assertIn("[+] engine far ok: 2 nodes, 2 healthy", self.ready())

    def test_one_engine_away(self):
        self.begin_with_cells()
        here, far, pods = self.run_both()
        stopped = self.submit_far("stopped")
        (third,) = set(self.cluster.wait_pods(3)) - set(pods)
        self.cluster.play_running(third)
        self.wait_state(stopped, "RUNNING")
        self.skepd.kill()
        self.cluster.stop_one("apiserver", signal.SIGKILL)
        self.skepd.start()
        self.wait_node("n1", "UNHEALTHY", "its engine is not there")
        self.wait_node("m1", "READY")
        self.assertIn("[!] engine far degraded: not open; 2 nodes, 0 healthy", self.ready())
        self.assertIn("[+] engine here ok: 1 node, 1 healthy", self.ready())
        self.assertIn('skep_engine_open{engine="far"} 0\n', self.skepd.call("GET", "/metrics"))
        self.assertIn("engine far", str(self.skepd.call("GET", "/api/v2/alerts")))
        self.end_here(here)
        self.finish(here)
        self.finish(self.submit("meanwhile"))
        waiting = self.submit_far("waiting")
        self.skepd.act(stopped, "STOP")
        self.assertEqual(self.skepd.job(far)["jobStatus"]["state"], "RUNNING")
        self.cluster.start_server()
        self.wait_node("n1", "READY")
        waits.until(lambda: "deletionTimestamp" in self.cluster.pods()[third]["metadata"], self.skepd.tail, 120)
        self.cluster.play_end(third, 143)
        self.finish(stopped, "STOPPED")
        for pod in pods:
            self.cluster.play_end(pod)
        self.finish(far)
        waits.until(lambda: self.pods_of(waiting), lambda: f"{list(self.cluster.pods())}\n{self.skepd.tail()}")
        (fourth,) = self.pods_of(waiting)
        self.cluster.play_end(fourth)
        self.finish(waiting)

    def test_a_gang_lies_on_one_engine(self):
        self.begin(policy="spread")
        for name in ("m1", "n1", "n2"):
            self.wait_node(name, "READY")
        wide = self.submit("wide", "true", 5, 4, image="registry.invalid/task:1")  # four nodes of 4 CPUs in the cluster, one here
        waits.until(lambda: "no engine has room for all of its tasks" in str(self.skepd.call("GET", f"/api/v2/jobs/{wide}/events")),
                    lambda: f"{self.skepd.call('GET', f'/api/v2/jobs/{wide}/events')}\n{self.skepd.tail()}", 120)
        self.assertEqual(self.cluster.pods(), {})
        self.skepd.act(wide, "STOP")
        self.finish(wide, "STOPPED")
        gang = self.submit("gang", "true", 4, 4, image="registry.invalid/task:1")
        pods = self.cluster.wait_pods(4)
        self.assertEqual({pod["spec"]["nodeName"] for pod in pods.values()}, {"n1", "n2"})
        for pod in pods:
            self.cluster.play_end(pod)
        self.finish(gang)
        self.finish(self.submit("small", "true", 2))  # the first engine of the file has room for it

    def test_each_engine_mounts_what_it_has_of_a_storage(self):
        self.begin_with_cells()
        for name in ("m1", "n1", "n2"):
            self.wait_node(name, "READY")
        storages = [{"name": name} for name in ("both", "sync", "volume")]
        far = self.submit_far("distant", more={"extras": {"storages": storages}})
        ((pod, made),) = self.cluster.wait_pods(1).items()
        volumes = {volume["name"]: volume for volume in made["spec"]["volumes"]}
        mounts = {mount["mountPath"]: volumes[mount["name"]] for mount in made["spec"]["containers"][0]["volumeMounts"]}
        self.assertEqual(mounts["/mnt/sync"]["hostPath"]["path"], str(self.sync))
        self.assertEqual(mounts["/mnt/both"]["persistentVolumeClaim"], {"claimName": "lab"})
        self.assertEqual(mounts["/mnt/volume"], mounts["/mnt/both"])
        self.cluster.play_end(pod)
        self.finish(far)
        near = self.submit("near", "touch /mnt/both/came", more={"extras": {"storages": storages[:2]}})
        self.finish(near)
        self.assertTrue((self.sync / "came").exists())
        lost = self.submit("lost", more={"extras": {"storages": storages}})
        self.skepd.wait_final([lost], 120)
        self.assertIn("storage volume is a claim of Kubernetes clusters, and no directory", str(self.skepd.job(lost)))

    def test_what_a_reload_says_of_the_engines(self):
        self.begin_with_cells()
        config = self.configuration({})
        config["engines"][0]["cpu"] = 3
        config["engines"].append({"name": "trial", "kind": "fake"})
        self.skepd.write_config(config)
        self.skepd.process.send_signal(signal.SIGHUP)
        waits.until(lambda: "takes effect only after a restart" in self.skepd.tail(), self.skepd.tail, 120)
        self.assertIn("engines.here.cpu, engines.trial (trial is new)", self.skepd.tail())
        waits.until(lambda: "engines.here.cpu" in self.skepd.call("GET", "/api/v2/settings")["needRestart"],
                    lambda: str(self.skepd.call("GET", "/api/v2/settings")["needRestart"]), 120)
        self.assertEqual(self.nodes()["m1"]["cpu"], 4)


if __name__ == "__main__":
    if not server.can_run_containers():
        print("skipped: containers cannot be run here")
        sys.exit(SKIPPED)
    unittest.main()
