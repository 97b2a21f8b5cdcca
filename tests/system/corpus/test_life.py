"""What follows from an end, and from none: hung tasks, rules read again while a task runs, nodes blamed and pardoned.

Covers: src/server/hang_watch.c
"""
import json
import os
import signal
import sys
import unittest

import image
import job_world
import processes
import waits
import world
from job_world import MOVES

CONFIG = """
exitRulesFile: {rules}
scheduling: {{killGraceSeconds: 5, blameAvoid: 2, blameCordon: 4}}
engine:
  kind: local
  initPath: {init}
  images: {{localRoots: [{images}]}}
  devices: {{nvmlPath: {nvml}, cdiDirectories: [{cdi}], sampleSeconds: 1}}
  cpu: 8
  memoryMB: 2048
"""
# a peer that has not moved for a while, because the machine had no processor for it, makes it say something else first
IDLE = r"Idle: worker-1: no work on the processor and no output for \d+ s while its peers moved"
WHY_NOT = world.can_run_containers() or image.why_not()
STANDS = "exec sleep 600"


class World(job_world.JobWorld):
    def __init__(self):
        super().__init__(local=True)
        self.rules = self.folder / "rules.yaml"
        self.rules.write_text("spec: []\n")
        (self.folder / "skepd.yaml").write_text(
            CONFIG.format(init=os.environ["SKEP_INIT"], images=self.images, rules=self.rules, nvml=os.environ["FAKE_NVML"],
                          cdi=job_world.gpus_stand_in(self.folder)))
        os.environ["FAKE_NVML_STATE"] = str(self.folder / "gpus")  # of the server
        job_world.gpus_say(self.folder)

    def make_image(self):
        self.images.mkdir()
        image.make(self.images / "corpus", [])
        self.image = f"dir:{self.images}/corpus"
        for path in (self.folder, self.images):
            path.chmod(0o755)


@unittest.skipIf(WHY_NOT, WHY_NOT)
class Life(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.world = World().__enter__()

    @classmethod
    def tearDownClass(cls):
        cls.world.__exit__()

    # ---- hung ----

    def test_a_task_stands_still_while_its_peer_moves(self):
        before = self.world.metric("skep_idle_tasks_total")
        self.world.submit("still", MOVES + STANDS, instances=2, extra="extras: {hang: {afterSeconds: 10}}\n")
        self.world.until_running("still")
        self.world.stand("still", 1)
        story = self.world.until("still", "Idle")
        self.assertRegex(story, f"Warning +{IDLE}")
        self.assertEqual(self.world.metric("skep_idle_tasks_total"), before + 1)
        waits.until(lambda: self.world.metric("skep_tasks_idle") >= 1, "the task is counted among those that stand still")
        job = self.world.json("GET", "/api/v2/jobs/admin~still")[1]
        self.assertEqual(job["jobStatus"]["state"], "RUNNING", "told, not ended")
        self.world.skep("stop", "still")
        self.assertEqual(self.world.skep("wait", "-q", "still").returncode, 130)
        self.assertNotIn("worker-0: no work", self.world.skep("events", "still").stdout)

    def test_a_hung_task_is_tried_again_when_the_job_asks_for_it(self):
        command = (f"if [ $SKEP_JOB_ATTEMPT != 0 ]; then exit 0; fi; {MOVES}"
                   "exec python3 -X faulthandler -c 'import time\ndef waits_for_ever():\n    time.sleep(600)\nwaits_for_ever()'")
        self.world.submit("hung", command, instances=2,
                          extra="jobRetryCount: 1\nextras: {hang: {afterSeconds: 10, retry: true}}\n")
        self.world.until_running("hung")
        self.world.stand("hung", 1)
        self.assertEqual(self.world.skep("wait", "-q", "hung").returncode, 0, self.world.skep("events", "hung").stdout)
        end = self.world.end_of("hung")
        self.assertEqual((end["exitCode"], end["exitPhrase"]), (-1400, "ContainerHung"))
        log = "/api/v2/jobs/admin~hung/attempts/0/taskRoles/worker/taskIndex/1/attempts/0/logs"
        names = {item["name"]: item["uri"] for item in self.world.json("GET", log)[1]["locations"]}
        texts = {name: self.world.ask("GET", uri)[2].decode() for name, uri in names.items()}
        self.assertTrue(any("stack dump: pid" in text for text in texts.values()), texts)
        self.assertTrue(any("waits_for_ever" in text for text in texts.values()), texts)

    def test_nothing_is_ended_when_all_stand_still(self):
        self.world.submit("all-still", MOVES + STANDS, instances=2,
                          extra="jobRetryCount: 1\nextras: {hang: {afterSeconds: 20, retry: true}}\n")
        self.world.until_running("all-still")
        self.world.stand("all-still", 0, 1)
        story = self.world.until("all-still", "Idle", count=2)
        self.assertIn("like all tasks of the job", story)
        self.assertNotIn("while its peers moved", story)
        job = self.world.json("GET", "/api/v2/jobs/admin~all-still")[1]
        self.assertEqual((job["jobStatus"]["state"], job["jobStatus"]["retries"]), ("RUNNING", 0))
        self.world.skep("stop", "all-still")
        self.world.skep("wait", "-q", "all-still")

    def test_a_server_that_starts_again_goes_on_watching(self):
        self.world.submit("adopted", MOVES + STANDS, instances=2, extra="extras: {hang: {afterSeconds: 3}}\n")
        self.world.until_running("adopted")
        self.world.stop()
        self.world.start()
        self.world.stand("adopted", 1)
        self.world.until("adopted", IDLE)
        self.world.skep("stop", "adopted")
        self.world.skep("wait", "-q", "adopted")

    def test_a_new_time_counts_for_tasks_that_run(self):
        """hangAfterSeconds, read again: neither the job nor the first configuration asked for it."""
        config = self.world.folder / "skepd.yaml"
        before = config.read_text()
        self.world.submit("watched", MOVES + STANDS, instances=2)
        self.world.until_running("watched")
        self.world.stand("watched", 1)
        config.write_text(before.replace("scheduling: {", "scheduling: {hangAfterSeconds: 2, "))
        self.world.reload()
        self.world.until("watched", IDLE)
        config.write_text(before)
        self.world.reload()
        self.world.skep("stop", "watched")
        self.world.skep("wait", "-q", "watched")

    # ---- rules ----

    def test_new_rules_count_for_tasks_that_run(self):
        word = f"licence-{os.getpid()}"
        wait = ("python3 -c 'import signal, sys\ndef end(*_):\n    print(\"no licence left\")\n    sys.exit(9)\n"
                f"signal.signal(signal.SIGUSR1, end)\nprint(\"ready\", flush=True)\nwhile True: signal.pause()' {word}")
        self.world.submit("licence", wait, extra="jobRetryCount: 5\n")
        self.world.until_log("licence", "ready")
        self.world.rules.write_text(
            "spec:\n- code: 219\n  phrase: NoLicence\n  behavior: PERMANENT\n  reason: all licences are in use\n"
            "  pattern: {runtimeContainerPatterns: [{exitCode: 9, userLogRegex: 'no licence left'}]}\n")
        self.world.reload()
        self.world.skep("tag", "licence", "after")  # goes the same way, so it comes later
        os.kill(processes.find(word), signal.SIGUSR1)
        self.assertEqual(self.world.skep("wait", "-q", "licence").returncode, 9, "the program's own")
        end = self.world.end_of("licence")
        self.assertEqual((end["exitCode"], end["exitPhrase"]), (219, "NoLicence"))
        job = self.world.json("GET", "/api/v2/jobs/admin~licence")[1]
        self.assertEqual(job["jobStatus"]["retries"], 0, "permanent by the new rule")
        self.world.rules.write_text("spec: [{code: twelve}]\n")  # refused: the rules stay as they were
        self.world.reload()
        self.world.submit("licence-2", "echo no licence left; exit 9")
        self.world.skep("wait", "-q", "licence-2")
        self.assertEqual(self.world.end_of("licence-2")["exitCode"], 219)
        self.assertIn("the exit rules stay as they were", (self.world.folder / "skepd.log").read_text())
        self.world.rules.write_text("spec: []\n")
        self.world.reload()

    # ---- blame ----

    def node(self):
        return json.loads(self.world.skep("nodes", "-o", "json").stdout)[0]

    def fail_by_memory_errors(self, name, errors):
        """A job that fails after its GPU has counted that many errors, one more than before."""
        word = self.world.start_waiting(name, gpu=1, extra="jobRetryCount: 0\n")
        job_world.gpus_say(self.world.folder, *[f"gpu {i} ecc {errors}" for i in range(4)])
        self.world.fail(word)
        self.world.skep("wait", "-q", name)
        self.assertEqual(self.world.end_of(name)["exitCode"], 128)
        return self.world.skep("events", name).stdout

    def test_z_a_node_is_blamed_cordoned_and_pardoned(self):
        self.world.submit("user-fails", "exit 3", extra="jobRetryCount: 5\n")
        self.world.skep("wait", "-q", "user-fails")
        self.world.submit("says-so", "echo 'RuntimeError: CUDA error: uncorrectable ECC error encountered'; exit 1")
        self.world.until("says-so", "TaskFailed: worker-0 exited 1 .223 ", count=4)
        self.world.skep("stop", "says-so")
        self.assertEqual((self.node()["state"], self.node()["blame"]), ("READY", 0), "what users do and say does not count")
        stories = []
        for errors in range(1, 6):  # one more than blameCordon: each weighs a little less by the next
            self.assertEqual(self.node()["state"], "READY")
            stories.append(self.fail_by_memory_errors(f"ecc-{errors - 1}", errors))
        self.assertRegex(stories[2], r"NodeAvoided: node \S+ is taken last now; taken last by the platform since [-0-9]+ [:0-9]+ UTC: [23]\.\d failures")
        self.assertRegex(stories[4], r"NodeCordoned: node \S+ is taken no more until it is pardoned or they are forgotten; cordoned by the platform since ")
        self.world.submit("ecc", "exit 0")
        self.world.until("ecc", r"Waiting: .*; not used: \S+ \(cordoned by the platform since [-0-9]+ [:0-9]+ UTC: \d\.\d failures of the platform were "
                         r"counted there, the last: 128 ContainerMayFailDueToGpuDeviceEccError of admin~ecc-4 worker-0\)")
        detail = self.world.skep("describe", "ecc").stdout
        self.assertRegex(detail, r"Waits because: .*cordoned by the platform since ")
        node = self.node()
        self.assertEqual((node["state"], node["isCordoned"]), ("CORDONED", True))
        self.assertIn("failures of the platform", node["reason"])
        self.world.stop()
        self.world.start()
        again = self.node()
        self.assertEqual((again["state"], again["reason"]), ("CORDONED", node["reason"]), "a restart is no pardon")
        self.world.skep("stop", "ecc")
        self.world.submit("waits", "exit 0")
        self.assertEqual(self.world.skep("pardon", "no-such-node").returncode, 1)
        done = self.world.skep("pardon", node["name"])
        self.assertEqual((done.returncode, done.stdout), (0, f"pardoned {node['name']}\n"), done.stderr)
        self.assertEqual(self.world.skep("wait", "-q", "waits").returncode, 0)
        self.assertEqual((self.node()["state"], self.node()["blame"]), ("READY", 0))

    def test_z_a_node_is_drained_and_opened(self):
        self.world.submit("moved", "sleep 600")
        self.world.until("moved", "Started: .*started on node")
        name = self.node()["name"]
        done = self.world.skep("drain", "--reason", "a new kernel", name)
        self.assertEqual((done.returncode, done.stdout), (0, f"draining {name}\n"), done.stderr)
        self.world.until("moved", r"(NodeDrained|Preempted): node \S+ is drained by admin: a new kernel")
        self.world.until("moved", r"Waiting: .*; not used: \S+ \(cordoned by admin since [-0-9]+ [:0-9]+ UTC: a new kernel\)")
        self.assertRegex(self.world.skep("nodes").stdout, r"CORDONED.*cordoned by admin since .*: a new kernel")
        self.world.stop()
        self.world.start()
        self.assertEqual((self.node()["state"], self.node()["cordonReason"]), ("CORDONED", "a new kernel"), "a restart opens nothing")
        done = self.world.skep("uncordon", name)
        self.assertEqual((done.returncode, done.stdout), (0, f"uncordoned {name}\n"), done.stderr)
        self.world.until("moved", "Started: .*started on node", count=2)
        self.world.skep("stop", "moved")


if __name__ == "__main__":
    if WHY_NOT:
        print("skip:", WHY_NOT)
        sys.exit(77)
    world.main()
