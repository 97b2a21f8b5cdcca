"""Virtual clusters that are closed, with a real skepd: over kill -9, a reload and a configuration that no longer names one.

Covers: src/api/cluster_status.c, src/store/clusters.c
"""
import json
import signal
import unittest

import waits
import world
from world import job

CELLS = """\
physicalCluster:
  cellTypes:
    NODE: {childCellType: FAKE, childCellNumber: 4, isNodeLevel: true}
  physicalCells: [{cellType: NODE, cellAddress: fake0}, {cellType: NODE, cellAddress: fake1}]
virtualClusters:
"""
CLUSTER = "  %s: {virtualCells: [{cellType: NODE, cellNumber: 1}]}\n"


class Clusters(unittest.TestCase):
    def setUp(self):
        self.world = world.World(run_ms=100)
        self.cells = self.world.folder / "cells.yaml"
        self.log = self.world.folder / "skepd.log"
        self.cells.write_text(CELLS + CLUSTER % "red" + CLUSTER % "blue")
        with open(self.world.folder / "skepd.yaml", "a") as config:
            config.write(f"\nscheduling: {{policy: hived, cellsFile: {self.cells}}}\n")
        self.world.__enter__()
        self.addCleanup(self.world.__exit__)

    def ok(self, *words):
        done = self.world.skep(*words)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def submit(self, name, cluster, *options):
        text = job(name, ["true"], gpu=1, extra=f"defaults: {{virtualCluster: {cluster}}}\n")
        return self.ok("submit", *options, self.world.file(text))

    def status(self, name):
        return self.world.json("GET", f"/api/v2/jobs/admin~{name}")[1]["jobStatus"]

    def assert_waits(self, name, why):
        status = self.status(name)
        self.assertEqual(status["state"], "WAITING")
        self.assertRegex(status["waitingReason"], rf"^virtual cluster \w+ is closed by admin since \S+ \S+ UTC{why}$")

    def reload(self, text):
        at = self.log.stat().st_size
        self.cells.write_text(text)
        self.world.process.send_signal(signal.SIGHUP)
        said = waits.file_says(self.log, "read again|stays as it was", since=at)
        self.assertIn("read again", said)

    def test_it_stays_closed_until_it_is_opened(self):
        self.assertEqual(self.ok("vc", "close", "--reason", "a course", "red"), "closed red\n")
        self.assertRegex(self.ok("vc"), r"(?m)^ *red .* closed by admin since .*: a course *$")
        self.assertRegex(self.ok("vc"), r"(?m)^ *blue .* open *$")
        self.submit("first", "red")
        self.submit("second", "red")
        self.submit("other", "blue")
        self.ok("wait", "--quiet", "admin~other")
        for name in ("first", "second"):
            self.assert_waits(name, ": a course")
        self.assertIn("virtual cluster red is closed by admin", self.ok("describe", "second"))
        text = job("dry", ["true"], gpu=1, extra="defaults: {virtualCluster: red}\n")
        status, _, said = self.world.ask("POST", "/api/v2/jobs?dryRun=true", text, headers={"Content-Type": "text/yaml"})
        self.assertEqual(status, 200, said)
        self.assertIn("virtual cluster red is closed by admin", json.loads(said)["reason"])
        self.world.stop(signal.SIGKILL)
        self.world.start()
        self.reload(CELLS + CLUSTER % "red" + CLUSTER % "green")
        self.submit("third", "green")
        self.ok("wait", "--quiet", "admin~third")
        for name in ("first", "second"):
            self.assert_waits(name, ": a course")
        alert, = [one for one in json.loads(self.ok("alerts", "-o", "json")) if one["labels"]["alertname"] == "VirtualClusterClosed"]
        self.assertEqual(alert["labels"]["virtual_cluster"], "red")
        audit = self.world.json("GET", "/api/v2/audit?subject=red")[1]["data"]
        self.assertEqual(audit[0]["after"], {"status": "stopped: a course"})
        self.assertEqual(self.ok("vc", "open", "red"), "opened red\n")
        self.ok("wait", "--quiet", "admin~first", "admin~second")

    def test_one_that_the_configuration_no_longer_names(self):
        self.ok("vc", "close", "red", "blue")
        self.reload(CELLS + CLUSTER % "red")
        self.assertEqual(self.world.skep("vc", "close", "blue").returncode, 1)
        self.world.stop(signal.SIGKILL)
        self.world.start()
        self.assertEqual(self.ok("vc", "open", "blue"), "opened blue\n")
        self.assertIn("there is no virtual cluster blue", self.world.skep("vc", "open", "blue").stderr)
        self.submit("waits", "red")
        self.assert_waits("waits", "")
        # OpenPAI's request, as its clients send it
        self.assertEqual(self.world.json("PUT", "/api/v1/virtual-clusters/red/status", {"vcStatus": "running"})[0], 201)
        self.ok("wait", "--quiet", "admin~waits")

    def test_the_command_line_says_what_is_wrong(self):
        for words, said in ((("shut", "red"), "close or open, not shut"), (("open", "--reason", "x", "red"), "--reason goes with close"),
                            (("--reason", "x"), "--reason goes with close")):
            done = self.world.skep("vc", *words)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(said, done.stderr)


if __name__ == "__main__":
    world.main()
