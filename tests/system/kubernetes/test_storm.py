"""Everything is killed at random while pods come and go: test_storm.py SKEPD [--minutes M] [--seed S] [--pods N]

Variable: SKEP_STORM_MINUTES, how long it lasts where --minutes does not say it.

skepd, the API server, etcd, and what plays the kubelets, each with SIGKILL. What must be true at the end: every job whose submission was
answered has succeeded, no attempt had a second pod (the API server's audit log has every creation), and neither a pod nor a secret is left.
Covers: src/engine/kubernetes/client.c, src/engine/kubernetes/follow.c, src/engine/kubernetes/tasks.c
"""
import argparse
import collections
import http.client
import json
import os
import random
import signal
import sys
import time

from cluster import Cluster, need
from kwok import Kwok
import skepd as server
import waits

CPUS = 16  # of a node
TASKS_MEAN = 2.5  # of a job
PAUSE_S = 0.5, 4  # between two kills
PATIENCE_S = 300
AUDIT = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"],
         "rules": [{"level": "Metadata", "verbs": ["create"], "resources": [{"group": "", "resources": ["pods"]}]}, {"level": "None"}]}
AWAY = (OSError, http.client.HTTPException, server.Refused, json.JSONDecodeError)


class Storm:
    def __init__(self, options):
        self.options = options
        self.random = random.Random(options.seed)
        self.cluster = Cluster()
        self.kwok = Kwok(self.cluster, 200, 4000)
        self.skepd = None
        self.accepted, self.unanswered, self.kills = {}, {}, collections.Counter()
        self.audit = self.cluster.directory / "audit.log"

    def __enter__(self):
        policy = self.cluster.directory / "audit.json"
        policy.write_text(json.dumps(AUDIT))
        self.flags = f"--audit-policy-file={policy}", f"--audit-log-path={self.audit}", "--audit-log-mode=blocking-strict"
        self.cluster.start(*self.flags)
        kubeconfig, _ = self.cluster.grant()
        for number in range(max(20, self.options.pods // 10)):
            self.cluster.add_node(f"n{number}", {"cpu": str(CPUS), "memory": "256Gi", "pods": "110"})
        self.kwok.start()
        self.skepd = server.Skepd(self.options.skepd, {
            "engine": {"kind": "kubernetes", "kubernetes": {"kubeconfig": str(kubeconfig), "initImage": "registry.invalid/skep:1"}},
            "scheduling": {"policy": "spread", "portFirst": 15000, "portLast": 40000, "retryPauseFirstSeconds": 1, "retryPauseMaxSeconds": 1}})
        self.skepd.start()
        self.skepd.login()
        return self

    def __exit__(self, *_):
        if self.skepd:
            self.skepd.stop()
            self.skepd.remove()
        self.cluster.stop()

    # ---- what is killed ----

    def kill_skepd(self):
        self.skepd.kill()
        if self.random.random() < 0.3:  # it may also find no API server
            self.kill_apiserver()
        self.revive_skepd()

    def revive_skepd(self):
        """Where the API server does not answer it ends, as its unit would see it, and is started again."""
        while True:
            self.skepd.start(wait=False)
            if self.skepd.readiness.wait(self.skepd.process, PATIENCE_S):
                return
            assert self.skepd.process.poll() is not None, self.skepd.tail()

    def kill_apiserver(self):
        self.cluster.stop_one("apiserver", signal.SIGKILL)
        self.cluster.start_server(*self.flags)

    def kill_etcd(self):
        self.cluster.stop_one("etcd", signal.SIGKILL)
        self.cluster.start_etcd()
        waits.until(self.cluster.is_ready, lambda: self.cluster.tail("apiserver"), PATIENCE_S)

    def kill_kubelets(self):
        self.kwok.stop()
        self.kwok.start()

    def kill_one(self):
        name = self.random.choice(["skepd", "skepd", "apiserver", "etcd", "kubelets"])
        self.kills[name] += 1
        getattr(self, f"kill_{name}")()

    # ---- what runs meanwhile ----

    def submit(self):
        name, tasks = f"j{len(self.accepted) + len(self.unanswered)}", self.random.randint(1, 4)
        try:
            self.skepd.submit(server.job_file(name, {"main": (tasks, "true", {})}, "registry.invalid/task:1", {}))
            self.accepted[f"admin~{name}"] = tasks
        except server.Refused:
            raise
        except AWAY:
            self.unanswered[f"admin~{name}"] = tasks

    def live(self):
        return self.skepd.call("GET", "/api/v2/jobs?state=WAITING,RUNNING,STOPPING&withTotalCount=true&limit=1")["totalCount"]

    def blow(self):
        end = time.monotonic() + 60 * self.options.minutes
        due = time.monotonic()
        while time.monotonic() < end:
            if self.live() * TASKS_MEAN < self.options.pods:
                self.submit()
            if time.monotonic() >= due:
                self.kill_one()
                due = time.monotonic() + self.random.uniform(*PAUSE_S)

    # ---- what must be true ----

    def settle(self):
        def states():
            return {f'{job["username"]}~{job["name"]}': job["state"] for job in self.skepd.jobs()}

        known = states()
        lost = [name for name in self.accepted if name not in known]
        assert not lost, f"accepted and not there: {lost}"
        names = [name for name in known if name in self.accepted or name in self.unanswered]
        ends = self.skepd.wait_final(names, PATIENCE_S)
        bad = {name: ends.get(name) for name in names if ends.get(name) != "SUCCEEDED"}
        assert not bad, f"{bad}\n{[self.skepd.job(name)['jobStatus'] for name in list(bad)[:3]]}\n{self.skepd.tail(20)}"
        self.cluster.wait_pods(0, PATIENCE_S)
        waits.until(lambda: not self.secrets(), lambda: f"secrets are left: {self.secrets()[:10]}\n{self.skepd.tail(20)}", PATIENCE_S)
        return names

    def secrets(self):
        """Those of tasks."""
        path = f"/api/v1/namespaces/{self.cluster.NAMESPACE}/secrets?labelSelector=skep.internal/instance"
        return [each["metadata"]["name"] for each in self.cluster.call("GET", path)["items"]]

    def creations(self):
        made = collections.Counter()
        for line in self.audit.read_text(errors="replace").splitlines():
            try:
                entry = json.loads(line)
            except json.JSONDecodeError:  # the server was killed in the middle of it
                continue
            if entry["objectRef"]["resource"] == "pods" and "subresource" not in entry["objectRef"] and entry["responseStatus"]["code"] == 201:
                made[entry["objectRef"]["name"]] += 1
        return made

    def run(self):
        self.blow()
        names = self.settle()
        made = self.creations()
        twice = [name for name, count in made.items() if count > 1]
        assert not twice, f"more than one pod of an attempt: {twice}"
        print(f"{len(names)} jobs ({len(self.unanswered)} submissions were not answered), {len(made)} pods, killed: {dict(self.kills)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("skepd")
    parser.add_argument("--minutes", type=float, default=float(os.environ.get("SKEP_STORM_MINUTES", 1)), help="how long it lasts (%(default)s)")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32), help="what chance begins with")
    parser.add_argument("--pods", type=int, default=100, help="about so many are there at a time (%(default)s)")
    options = parser.parse_args()
    need("kube-apiserver", "kwok")
    print(f"seed {options.seed}", flush=True)
    with Storm(options) as storm:
        storm.run()


if __name__ == "__main__":
    sys.exit(main())
