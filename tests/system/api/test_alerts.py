"""Alerts of a real skepd with real containers: whose they are, and their times over a restart.

Covers: src/api/alert.c, src/server/alert_watch.c, src/cli/cmd_alerts.c
"""
import json
import sys
import unittest

import waits
import world
from world import job

WHY_NOT = world.can_run_containers()
STILL = "extras: {hang: {afterSeconds: 2}}\n"


@unittest.skipIf(WHY_NOT, WHY_NOT)
class Alerts(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.world = world.World(local=True).__enter__()

    @classmethod
    def tearDownClass(cls):
        cls.world.__exit__()

    def alerts(self, state="active", user="admin"):
        status, alerts = self.world.json("GET", f"/api/v2/alerts?state={state}", token=self.world.token(user))
        self.assertEqual(status, 200, alerts)
        return alerts

    def alert(self, name, **options):
        return next((alert for alert in self.alerts(**options) if alert["labels"]["alertname"] == name), None)

    def test_times_over_a_restart(self):
        skep = self.world.skep
        self.assertEqual(skep("user", "add", "bob", "--password-stdin", stdin="bob-password\n").returncode, 0)
        self.world.login("bob", "bob-password")
        still = self.world.file(job("still", ["exec sleep 100000"], image=self.world.image, extra=STILL))
        submitted = skep("submit", still, user="bob")
        self.assertEqual(submitted.returncode, 0, submitted.stderr)
        waits.until(lambda: self.alert("JobIdle"), "the job's standstill is told")
        idle = self.alert("JobIdle")
        self.assertEqual(idle["labels"], {"alertname": "JobIdle", "severity": "warn", "job_name": "bob~still", "username": "bob"})
        node = json.loads(skep("nodes", "-o", "json").stdout)[0]["name"]
        self.assertEqual(skep("cordon", node, "--reason", "a fan is loud").returncode, 0)
        closed = self.alert("NodeCordoned")
        self.assertIn("a fan is loud", closed["annotations"]["summary"])
        # others see what is about their own jobs
        self.assertEqual([alert["labels"]["alertname"] for alert in self.alerts(user="bob", state="all")], ["JobIdle"])

        self.world.stop()
        self.world.start()
        for before in (idle, closed):
            now = self.alert(before["labels"]["alertname"])
            self.assertEqual(now["startsAt"], before["startsAt"])
            self.assertEqual(now["fingerprint"], before["fingerprint"])
        self.assertIn("a fan is loud", skep("alerts").stdout)

        self.assertEqual(skep("uncordon", node).returncode, 0)
        self.assertEqual(skep("stop", "still", user="bob").returncode, 0)
        waits.until(lambda: not self.alert("JobIdle"), "the job's standstill is over")
        self.assertIsNone(self.alert("NodeCordoned"))
        self.world.stop()
        self.world.start()
        for before in (idle, closed):
            ended = self.alert(before["labels"]["alertname"], state="resolved")
            self.assertEqual(ended["startsAt"], before["startsAt"])
            self.assertLess(ended["startsAt"], ended["endsAt"])
            self.assertEqual(ended["status"]["state"], "resolved")
        self.assertNotIn("a fan is loud", skep("alerts").stdout)
        self.assertIn("a fan is loud", skep("alerts", "--all").stdout)
        self.assertEqual(len(json.loads(skep("alerts", "--all", "-o", "json", user="bob").stdout)), 1)


if __name__ == "__main__":
    sys.exit(world.main())
