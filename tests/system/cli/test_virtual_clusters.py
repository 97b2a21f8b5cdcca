"""Virtual clusters on one machine with eight (simulated) GPUs: what a team owns it gets, whatever the others do, with real containers.

Four pairs of GPUs: two are alpha's, wherever they are, one is beta's, and the pair 2,3 is pinned and beta's, too.
"""
import datetime
import os
import re
import signal
import sys
import time
import unittest
import urllib.parse

import processes
import waits
import world

CONFIG = """
scheduling: {{policy: hived, cellsFile: {cells}, killGraceSeconds: 5, preemptionGraceSeconds: 7}}
engine:
  kind: local
  nodeName: gpu-node
  initPath: {init}
  images: {{localRoots: [{images}]}}
  devices: {{simulatedGpus: 8, simulatedGpuType: SIM}}
  cpu: 8
  memoryMB: 4096
"""
CELLS = """\
physicalCluster:
  skuTypes:
    SIM: {{gpu: 1, cpu: 1, memory: 100Mi}}
  cellTypes:
    SIM-PAIR: {{childCellType: SIM, childCellNumber: 2}}
    SIM-NODE: {{childCellType: SIM-PAIR, childCellNumber: 4, isNodeLevel: true}}
  physicalCells:
  - {{cellType: SIM-NODE, cellAddress: gpu-node, cellChildren: [{{}}, {{pinnedCellId: special}}, {{}}, {{}}]}}
virtualClusters:
  alpha:
    virtualCells: [{{cellType: SIM-NODE.SIM-PAIR, cellNumber: {alpha}}}]
  beta:
    virtualCells: [{{cellType: SIM-NODE.SIM-PAIR, cellNumber: {beta}}}]
    pinnedCells: [{{pinnedCellId: special}}]
"""
PRIORITIES = {"oppo": -1, "test": 10, "prod": 100}
PINNED = ", taskRoles: {worker: {pinnedCellId: special}}"
PAIRS, SPECIAL = ([0, 1], [2, 3], [4, 5], [6, 7]), [2, 3]
# saves its work when it is told to end
PROGRAM = ("trap 'cat $SKEP_STOP_REASON_FILE; echo saved; exit 0' TERM; echo ready with $SKEP_GPUS, attempt $SKEP_JOB_ATTEMPT; "
           "while :; do sleep 0.1; done")
WHY_NOT = world.can_run_containers()


def leaves(cells):
    for cell in cells:
        yield from leaves(cell["cellChildren"]) if cell.get("cellChildren") else [cell]


def gpu_of(address):
    return int(address.rpartition("/")[2])


class World(world.World):
    def __init__(self):
        super().__init__(local=True)
        self.cells = self.folder / "cells.yaml"
        self.log = self.folder / "skepd.log"
        self.write_cells(2, 1)
        (self.folder / "skepd.yaml").write_text(CONFIG.format(cells=self.cells, init=os.environ["SKEP_INIT"], images=self.images))

    def write_cells(self, alpha, beta):
        self.cells.write_text(CELLS.format(alpha=alpha, beta=beta))

    def reload(self, alpha, beta):
        """The log from there on."""
        at = self.log.stat().st_size
        self.write_cells(alpha, beta)
        self.process.send_signal(signal.SIGHUP)
        return waits.file_says(self.log, "read again|stays as it was", since=at)

    def submit(self, name, cluster, priority="prod", tasks=1, more=""):
        extra = f"defaults: {{virtualCluster: {cluster}}}\nextras: {{hivedScheduler: {{jobPriorityClass: {priority}{more}}}}}\n"
        return self.skep("submit", self.file(world.job(name, [PROGRAM], instances=tasks, image=self.image, extra=extra, gpu=2)))

    def until_event(self, name, pattern, count=1):
        with processes.follow(self, "events", "--follow", name) as story:
            return processes.until(story, pattern, count)

    def until_ready(self, name, tasks=1):
        """Its programs run and can be told to end; the server knows it, too, which may hear it after their words."""
        for index in range(tasks):
            with processes.follow(self, "logs", "--follow", "--role", "worker", "--index", str(index), name) as log:
                processes.until(log, "^ready with ")
        waits.until(lambda: set(self.states(name)) == {"RUNNING"}, lambda: f"the server does not know that it runs: {self.states(name)}")

    def end(self, *names):
        done = self.skep("stop", *names)
        assert done.returncode == 0, done.stderr
        self.skep("wait", "--quiet", *names)

    def job(self, name):
        return self.json("GET", f"/api/v2/jobs/admin~{name}")[1]

    def statuses(self, name):
        return self.job(name)["taskRoles"]["worker"]["taskStatuses"]

    def states(self, name):
        return [task["taskState"] for task in self.statuses(name)]

    def tasks(self, name):
        """GPUs and containers of its tasks."""
        return [(task["gpus"], task["containerId"]) for task in self.statuses(name)]

    def gpus(self, name):
        return [gpus for gpus, _ in self.tasks(name)]

    def inspect(self, path):
        status, answer = self.json("GET", "/v1/inspect/" + path)
        assert status == 200, answer
        return answer

    def groups(self):
        return waits.settled(self.groups_now)

    def groups_now(self):
        """By job: virtual cluster, priority (of what has lost its guarantee: -1), GPUs."""
        found = {}
        for group in self.inspect("affinitygroups/")["items"]:
            name, status = group["metadata"]["name"], group["status"]
            assert self.inspect("affinitygroups/" + urllib.parse.quote(name, safe="")) == group
            assert status["state"] == "Allocated", group
            found[name.partition("~")[2].partition("/")[0]] = (
                status["vc"], -1 if "lazyPreemptionStatus" in status else status["priority"], sorted(status["physicalPlacement"]["gpu-node"]))
        return found


@unittest.skipIf(WHY_NOT, WHY_NOT)
class VirtualClusters(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.world = World().__enter__()

    @classmethod
    def tearDownClass(cls):
        cls.world.__exit__()

    def tearDown(self):
        self.world.end_jobs()
        waits.settled(lambda: self.assertEqual(self.world.groups_now(), {}, "all cells are free again"))

    def start(self, name, cluster, priority="prod", tasks=1, more=""):
        done = self.world.submit(name, cluster, priority, tasks, more)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.world.until_ready(name, tasks)

    def wait_for_cells(self, name, cluster, **more):
        """A job that gets no place; its reason."""
        done = self.world.submit(name, cluster, **more)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.world.until_event(name, "Waiting: ")
        shown = self.world.skep("describe", name).stdout
        return re.search("^Waits because: +(.*)$", shown, re.M)[1]

    def agree(self, quota, **wanted):
        """All views tell of just these jobs: name=(virtual cluster, priority class)."""
        waits.settled(lambda: self.agree_now(quota, **wanted))

    def agree_now(self, quota, **wanted):
        wanted = {name: (cluster, PRIORITIES[priority], sorted(sum(self.world.gpus(name), [])))
                  for name, (cluster, priority) in wanted.items()}
        self.assertEqual(self.world.groups_now(), wanted)
        holders = {gpu: (cluster, priority) for cluster, priority, gpus in wanted.values() for gpu in gpus}
        self.assertEqual(len(holders), sum(len(gpus) for _, _, gpus in wanted.values()), "no GPU is given twice")
        self.agree_physical(holders)
        virtual = self.world.inspect("clusterstatus/virtualclusters/")
        self.assertEqual(self.world.inspect("clusterstatus")["virtualClusters"], virtual)
        numbers = self.world.json("GET", "/api/v2/virtual-clusters")[1]
        self.assertEqual([virtual.keys(), numbers.keys()], [quota.keys(), quota.keys()])
        table = self.world.skep("vc").stdout
        for name, total in quota.items():
            own = {gpu for gpu, (cluster, priority) in holders.items() if cluster == name and priority >= 0}
            oppo = {gpu for gpu, (cluster, priority) in holders.items() if cluster == name and priority < 0}
            self.assertEqual(self.world.inspect(f"clusterstatus/virtualclusters/{name}"), virtual[name])
            for is_own, gpus in ((True, own), (False, oppo)):
                shown = {gpu_of(leaf["physicalCell"]["cellAddress"]) for leaf in leaves(virtual[name])
                         if leaf["cellPriority"] >= -1 and (leaf["cellPriority"] >= 0) == is_own}
                self.assertEqual(shown, gpus, name)
            self.assertEqual(numbers[name]["skus"], {"SIM": {"total": total, "used": len(own), "bad": 0, "opportunistic": len(oppo)}})
            self.assertEqual([numbers[name][key]["gpu"] for key in ("resourcesTotal", "resourcesUsed")], [total, len(own)])
            self.assertRegex(table, rf"(?m)^{name} +SIM +{total} +{len(own)} +0 +{len(oppo)} +open$")
            beyond = rf", {len(oppo)} more by opportunistic jobs" if oppo else ""
            self.assertRegex(self.world.skep("vc", name).stdout,
                             rf"(?m)^{name}: {len(own)} of {total} used, {total - len(own)} free{beyond}$")

    def agree_physical(self, holders):
        cells = self.world.inspect("clusterstatus/physicalcluster")
        self.assertEqual(self.world.inspect("clusterstatus")["physicalCluster"], cells)
        used = {gpu_of(leaf["cellAddress"]): (leaf["vc"], leaf["cellPriority"])
                for leaf in leaves(cells) if leaf["cellState"] == "Used"}
        self.assertEqual(used, holders)
        tree = self.world.skep("cells").stdout
        oppo = sum(priority < 0 for _, priority in holders.values())
        beside = f" ({oppo} by opportunistic jobs)" if oppo else ""
        self.assertIn(f"physical cluster: {len(holders)} of 8 used{beside}, {8 - len(holders)} free\n", tree)
        for gpu in range(8):
            cluster, priority = holders.get(gpu, (None, None))
            word = "opportunistic" if priority == -1 else f"priority {priority}"
            use = f"  Used by {cluster}, {word}" if cluster else ""
            self.assertIn(f" SIM gpu-node/{gpu // 2}/{gpu}{use}\n", tree)

    def test_a_gang_gets_its_own(self):
        self.start("gang", "alpha", tasks=2)
        gpus = self.world.gpus("gang")
        for index, pair in enumerate(gpus):
            self.assertIn(pair, PAIRS, "near each other")
            log = self.world.skep("logs", "--role", "worker", "--index", index, "gang").stdout
            self.assertEqual(log, f"ready with {pair[0]},{pair[1]}, attempt 0\n")
        self.assertNotIn(SPECIAL, gpus)
        self.agree({"alpha": 4, "beta": 4}, gang=("alpha", "prod"))

    def test_the_owner_wants_it_back(self):
        self.start("guest", "beta", "oppo", tasks=4)  # all there is: alpha's, too, as nobody uses it
        self.agree({"alpha": 4, "beta": 4}, guest=("beta", "oppo"))
        self.assertIn("SIM-PAIR beta/1: 0 of 2 used, 2 free  Used, by opportunistic jobs  on gpu-node/1\n",
                      self.world.skep("vc", "beta").stdout)
        self.start("owner", "alpha")
        self.world.until_event("guest", "Waiting: ")
        story = self.world.skep("events", "guest").stdout
        self.assertRegex(story, r"Preempted: preempted by admin~owner \(priority 100\)\n.*Retrying: attempt 0 ended with -1003 "
                                r"\(PodPreemptedForCriticalPod\); retried, not counted\n")
        for index in range(4):  # a gang ends whole
            log = self.world.skep("logs", "--stream", "stdout", "--attempt", 0, "--role", "worker", "--index", index, "guest").stdout
            told = re.fullmatch(r"ready with .*, attempt 0\nreason preempted\ngrace_ms (\d+)\nsaved\n", log)
            self.assertTrue(told, log)
            self.assertTrue(5000 < int(told[1]) <= 7000, "what is left of a preemption's grace; another end has five seconds")
        status = self.world.job("guest")["jobStatus"]
        self.assertEqual((status["state"], status["retryDetails"]), ("WAITING", {"user": 0, "platform": 1, "resource": 0}))
        self.agree({"alpha": 4, "beta": 4}, owner=("alpha", "prod"))
        self.world.end("owner")
        self.world.until_event("guest", r"Started: ", count=8)
        self.world.until_ready("guest", 4)
        self.assertIn(", attempt 1\n", self.world.skep("logs", "guest", "--role", "worker", "--index", 0).stdout)
        self.agree({"alpha": 4, "beta": 4}, guest=("beta", "oppo"))

    def test_beyond_the_quota(self):
        self.start("first", "alpha")
        self.start("second", "alpha", "test")
        reason = self.wait_for_cells("third", "alpha", priority="test")
        self.assertRegex(reason, r"^it needs 1 x 2 SIM for alpha at priority 10 in its cells of SIM-NODE: "
                                 r"0 of 4 leaves are free; held by admin~first/0 \(2\), admin~second/0 \(2\)$")
        reason = self.wait_for_cells("large", "alpha", priority="test", tasks=3)
        self.assertRegex(reason, "needs 3 x 2 SIM for alpha .*; this is more than there is, it can never start$")
        self.agree({"alpha": 4, "beta": 4}, first=("alpha", "prod"), second=("alpha", "test"))
        self.world.end("second")
        self.world.until_event("third", "Started: worker-0")

    def test_the_pinned_cell(self):
        self.start("unnamed", "beta")
        self.assertNotIn(SPECIAL, self.world.gpus("unnamed"))
        self.assertRegex(self.wait_for_cells("another", "beta"), "needs 1 x 2 SIM for beta .*held by admin~unnamed/0")
        refused = self.world.submit("foreign", "alpha", more=PINNED)
        self.assertEqual((refused.returncode, refused.stderr.strip()), (1, "skep: alpha has no pinned cell special"))
        self.start("named", "beta", more=PINNED)
        self.assertEqual(self.world.gpus("named"), [SPECIAL])
        self.agree({"alpha": 4, "beta": 4}, unnamed=("beta", "prod"), named=("beta", "prod"))
        self.assertEqual(self.world.job("another")["jobStatus"]["state"], "WAITING")

    def test_the_quota_moves(self):
        self.start("a1", "alpha")
        self.start("b1", "beta")
        self.wait_for_cells("b2", "beta")
        before = self.world.tasks("a1") + self.world.tasks("b1")
        said = self.world.reload(3, 1)
        self.assertIn(f"{self.world.cells}:14:19: virtualClusters.beta: 5 cells SIM-PAIR of chain SIM-NODE are given away "
                      "(alpha 3, beta 2), but only 4 are left for them", said)
        self.assertIn("the configuration stays as it was", said)
        self.agree({"alpha": 4, "beta": 4}, a1=("alpha", "prod"), b1=("beta", "prod"))
        self.assertEqual(self.world.job("b2")["jobStatus"]["state"], "WAITING")
        self.assertIn("read again", self.world.reload(1, 2))
        self.world.until_ready("b2")
        self.agree({"alpha": 2, "beta": 6}, a1=("alpha", "prod"), b1=("beta", "prod"), b2=("beta", "prod"))
        since = time.time()
        # back: one of the two goes on without its guarantee, until alpha wants the place
        self.world.reload(2, 1)
        waits.until(lambda: -1 in (priority for _, priority, _ in self.world.groups().values()), "one has lost its guarantee")
        lost, = (name for name, (_, priority, _) in self.world.groups().items() if priority == -1)
        kept, = {"b1", "b2"} - {lost}
        status = self.world.inspect(f"affinitygroups/admin~{lost}%2F0")["status"]["lazyPreemptionStatus"]
        when = datetime.datetime.fromisoformat(status["preemptionTime"].replace("Z", "+00:00")).timestamp()
        self.assertTrue(int(since) <= when <= time.time(), status)
        self.agree({"alpha": 4, "beta": 4}, a1=("alpha", "prod"), **{kept: ("beta", "prod"), lost: ("beta", "oppo")})
        self.assertEqual(self.world.tasks("a1") + self.world.tasks("b1"), before, "nothing was ended")
        self.start("a2", "alpha")
        self.world.until_event(lost, "Preempted: preempted by admin~a2")
        self.world.until_event(lost, "Waiting: ", count=2 if lost == "b2" else 1)
        self.agree({"alpha": 4, "beta": 4}, a1=("alpha", "prod"), a2=("alpha", "prod"), **{kept: ("beta", "prod")})
        self.assertEqual(self.world.tasks("a1"), before[:1])

    def test_a_crash(self):
        self.start("visitor", "beta", "oppo", tasks=2)
        self.start("holder", "alpha")
        self.start("pinned", "beta", more=PINNED)
        jobs = {"visitor": ("beta", "oppo"), "holder": ("alpha", "prod"), "pinned": ("beta", "prod")}
        self.world.until_event("visitor", "Started: ", count=2)
        reason = self.wait_for_cells("wide", "alpha", tasks=3)

        def seen():
            return ({name: self.world.tasks(name) for name in jobs}, self.world.inspect("affinitygroups/"),
                    self.world.inspect("clusterstatus"), self.world.json("GET", "/api/v2/virtual-clusters"))
        self.agree({"alpha": 4, "beta": 4}, **jobs)
        before = seen()
        self.world.process.kill()
        self.world.process.wait()
        self.world.start()
        waits.settled(lambda: self.assertEqual(seen(), before))
        self.agree({"alpha": 4, "beta": 4}, **jobs)
        self.assertIn(f"Waits because:   {reason}\n", self.world.skep("describe", "wide").stdout)
        self.start("next", "alpha")  # within its quota: it is as before
        self.world.until_event("visitor", "Waiting: ")
        self.assertIn("Preempted: preempted by admin~next", self.world.skep("events", "visitor").stdout)
        self.agree({"alpha": 4, "beta": 4}, next=("alpha", "prod"), holder=("alpha", "prod"), pinned=("beta", "prod"))
        self.assertIn("reason preempted\n", self.world.skep("logs", "--attempt", 0, "--role", "worker", "--index", 1, "visitor").stdout)


if __name__ == "__main__":
    if WHY_NOT:
        print("skip:", WHY_NOT)
        sys.exit(77)
    world.main()
