"""Jobs on real kubelets, for tests whose class has `place` (an Installation)."""

import json
import subprocess
import unittest

import yaml

import cluster as api
import skepd as server
import waits
from waits import PATIENCE_S

PODS = f"/api/v1/namespaces/{api.Cluster.NAMESPACE}/pods"
FINAL = ("SUCCEEDED", "FAILED", "STOPPED")


class Jobs(unittest.TestCase):
    place = None

    @property
    def cluster(self):
        return self.place.cluster

    @property
    def nodes(self):
        return self.place.nodes

    @property
    def skepd(self):
        return self.place.skepd

    def setUp(self):
        self.addCleanup(self.cluster.wait_pods, 0, PATIENCE_S)  # after all other cleanups
        self.addCleanup(self.jobs_end)

    def jobs_end(self):
        """What a test that failed has left would fail the others."""
        if self.skepd:
            for job in self.skepd.jobs():
                if job["state"] not in FINAL:
                    self.skepd.act(f"admin~{job['name']}", "STOP")

    def other(self, **kubernetes):
        """Another skepd on the same cluster, until its pods have gone: a job may have ended before they are deleted, and no other skepd would do that."""
        other = server.Skepd(self.place.programs[0], self.place.configuration(instance="other", **kubernetes))
        self.addCleanup(other.remove)
        self.addCleanup(other.stop)
        self.addCleanup(self.cluster.wait_pods, 0, PATIENCE_S)
        other.start()
        other.login()
        return other

    def submit(self, name, roles, skepd=None, image=None, **more):
        """`roles`: the command of each, or more of the role beside it ({"commands": …, "instances": …})."""
        job = yaml.safe_load(server.job_file(name, {role: (1, "", {}) for role in roles}, image or self.nodes.images.name("skep"), more))
        for role, what in roles.items():
            task = job["taskRoles"][role]
            task["resourcePerInstance"] |= {"memoryMB": 64, "ports": {"web": 1}}
            task |= what if isinstance(what, dict) else {"commands": [what]}
        (skepd or self.skepd).submit(yaml.safe_dump(job))
        return f"admin~{name}"

    def trouble(self, name, skepd=None):
        pods = {each: pod["status"] for each, pod in self.cluster.pods().items()}
        return f"{(skepd or self.skepd).job(name)}\n{json.dumps(pods)}\n{(skepd or self.skepd).tail()}\n{self.place.trouble()}"

    def wait_state(self, name, state, skepd=None):
        waits.until(lambda: (skepd or self.skepd).job(name)["jobStatus"]["state"] == state,
                    lambda: f"{name} is not {state}: {self.trouble(name, skepd)}", PATIENCE_S)

    def finish(self, name, state="SUCCEEDED", skepd=None):
        """How it ended, once it has."""
        skepd = skepd or self.skepd
        self.assertEqual(skepd.wait_final([name], PATIENCE_S)[name], state, f"{self.logs(name, skepd)}\n{self.trouble(name, skepd)}")
        return skepd.job(name)["jobStatus"]

    def stop(self, name, skepd=None):
        (skepd or self.skepd).act(name, "STOP")
        self.finish(name, "STOPPED", skepd)

    def tasks(self, name, skepd=None):
        """{role: its tasks}"""
        return {role: each["taskStatuses"] for role, each in (skepd or self.skepd).job(name)["taskRoles"].items()}

    def log(self, name, role=None, index=0, skepd=None, stream="all"):
        which = f"&role={role}" if role else ""
        return (skepd or self.skepd).call("GET", f"/api/v2/jobs/{name}/logs?index={index}&stream={stream}{which}")

    def logs(self, name, skepd=None):
        found = {}
        for role, tasks in self.tasks(name, skepd).items():
            for task in tasks:
                try:
                    found[f"{role}-{task['taskIndex']}"] = self.log(name, role, task["taskIndex"], skepd)
                except server.Refused as refused:  # one that never began has none
                    found[f"{role}-{task['taskIndex']}"] = str(refused)
        return found

    def wait_log(self, name, words, role=None, index=0, skepd=None, stream="all"):
        def has():
            try:
                return words in self.log(name, role, index, skepd, stream)
            except server.Refused:  # not before it runs
                return False

        waits.until(has, lambda: f"{words!r} is not in {self.logs(name, skepd)}\n{self.trouble(name, skepd)}", PATIENCE_S)

    def pods_of(self, name):
        return {each: pod for each, pod in self.cluster.pods().items() if pod["metadata"].get("annotations", {}).get("skep.internal/job") == name}

    def wait_pods_of(self, name, is_good, what):
        """Those that are so, once there are some."""
        found = {}

        def look():
            found.clear()
            found.update({each: pod for each, pod in self.pods_of(name).items() if is_good(pod)})
            return found

        waits.until(look, lambda: f"{what}: {self.trouble(name)}", PATIENCE_S)
        return dict(found)

    def skep(self, *words, **more):
        return subprocess.run([self.place.programs[1], *words], env=self.place.environment(), capture_output=True, text=True, timeout=PATIENCE_S, **more)
