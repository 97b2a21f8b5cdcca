"""Logs that a kubelet rotates away faster than they are read arrive whole: test_logs.py SKEPD SKEP SKEP-INIT MAKE-IMAGE

One real kubelet, which keeps 256 KiB of a container's log. What must be true each time: the log has every line once, in order.
Covers: src/engine/kubernetes/fetch.c, src/engine/kubernetes/logs.c, src/init/fetch.c, src/init/relay.c
"""
import sys
import time
import unittest

import yaml

from installation import Installation
import skepd as server
import waits

SKEPD, SKEP, INIT, MAKE_IMAGE = (sys.argv.pop(1) for _ in range(4)) if __name__ == "__main__" else ("", "", "", "")
PATIENCE_S = 300
LINES = 2_000_000  # 15 MB, of which the kubelet keeps half a megabyte


class Logs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.installation = Installation((SKEPD, SKEP, INIT, MAKE_IMAGE), 1, {"containerLogMaxSize": "256Ki", "containerLogMaxFiles": 2, "containerLogMonitorInterval": "3s"})
        cls.nodes, cls.cluster = cls.installation.nodes, cls.installation.cluster
        cls.addClassCleanup(cls.installation.stop)
        cls.installation.start_nodes()
        cls.installation.start_skepd(scheduling={"killGraceSeconds": 120})  # in which the rest of a log is fetched
        cls.skepd = cls.installation.skepd

    def tearDown(self):
        self.assertEqual(self.cluster.wait_pods(0), {}, self.trouble())

    def trouble(self):
        return self.installation.trouble(20)

    def submit(self, name, command):
        job = yaml.safe_load(server.job_file(name, {"main": (1, command, {})}, self.nodes.images.name("skep"), {}))
        job["taskRoles"]["main"]["resourcePerInstance"]["memoryMB"] = 128
        self.skepd.submit(yaml.safe_dump(job))
        return f"admin~{name}"

    def finish(self, name, state="SUCCEEDED"):
        self.assertEqual(self.skepd.wait_final([name], PATIENCE_S)[name], state, f"{self.skepd.job(name)}\n{self.trouble()}")

    def log(self, name, stream="stdout"):
        return self.skepd.call("GET", f"/api/v2/jobs/{name}/logs?index=0&stream={stream}&offset=0")

    def wait_log(self, name, least):
        def length():
            try:
                return len(self.log(name))
            except server.Refused:  # there is none yet
                return 0

        waits.until(lambda: length() >= least, lambda: f"no {least} bytes of its log come: {self.trouble()}", PATIENCE_S)

    def check(self, name, last=LINES):
        """All lines of `seq`, once and in order."""
        wanted = "".join(f"{number}\n" for number in range(1, last + 1))
        for stream in ("stdout", "all"):
            got = self.log(name, stream)
            if got != wanted:
                at = next((i for i, (a, b) in enumerate(zip(got, wanted)) if a != b), min(len(got), len(wanted)))
                self.fail(f"{stream}: {len(got)} of {len(wanted)} bytes; at {at}: {got[at - 40:at + 40]!r}, not {wanted[at - 40:at + 40]!r}\n{self.trouble()}")

    def test_three_logs_at_a_time(self):
        """One task prints as fast as it can, one goes on for a while, and one is stopped while it prints."""
        begin = time.monotonic()
        fast = self.submit("fast", f"seq 1 {LINES}")
        slow = self.submit("slow", f"for i in 1 2 3 4; do seq $((i * {LINES} / 4 - {LINES} / 4 + 1)) $((i * {LINES} / 4)); sleep 4; done")
        stopped = self.submit("stopped", "seq 1 1000000000")
        self.wait_log(stopped, 5_000_000)
        self.skepd.act(stopped, "STOP")
        self.finish(stopped, "STOPPED")
        self.finish(fast)
        print(f"{LINES} lines: {time.monotonic() - begin:.1f} s from submission to end", flush=True)
        self.finish(slow)
        self.cluster.wait_pods(0, PATIENCE_S)
        self.check(fast)
        self.check(slow)
        self.check_stopped(stopped)

    def check_stopped(self, name):
        got = self.log(name)
        last = int(got.rsplit("\n", 2)[-2])
        self.assertGreater(last, 600_000)
        self.assertEqual(got[:got.rindex("\n") + 1], "".join(f"{number}\n" for number in range(1, last + 1)))

    def test_skepd_is_killed_in_the_middle(self):
        name = self.submit("killed", f"seq 1 {LINES}")
        self.wait_log(name, 1)
        self.skepd.kill()
        self.skepd.start()
        self.finish(name)
        self.check(name)

    def test_the_kubelet_is_killed_in_the_middle(self):
        name = self.submit("restarted", f"seq 1 {LINES}")
        self.wait_log(name, 1)
        node = self.nodes[0]
        node.stop_one("kubelet")
        node.start_kubelet()
        node.wait_ready()
        self.finish(name)
        self.check(name)


if __name__ == "__main__":
    unittest.main()
