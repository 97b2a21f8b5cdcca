"""Whose network a job gets while accounts are made and removed: networks.py SKEPD SKEP

The configuration names no mode and the store is new, so that the number of accounts decides.

Covers: src/server/job_network.c, src/store/sole_account.c, src/engine/local/network_task.c
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import skepd as server
import waits

SKEPD, SKEP = (sys.argv.pop(1), sys.argv.pop(1)) if __name__ == "__main__" else ("", "")
MACHINES = os.readlink("/proc/self/ns/net")
IN_MACHINES = f'test "$(readlink /proc/self/ns/net)" = "{MACHINES}"'
IN_OWN = f'test "$(readlink /proc/self/ns/net)" != "{MACHINES}"'
# its first try waits for a file and fails, its second one ends well where it is in the machine's network
TWO_TRIES = f"""{IN_MACHINES} || exit 9
if [ ! -e /mnt/sync/tried ]; then touch /mnt/sync/tried; while [ ! -e /mnt/sync/go ]; do sleep 0.1; done; exit 1; fi"""


class Networks(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="skepd-test-")
        self.sync = pathlib.Path(self.folder.name, "sync")
        self.sync.mkdir()
        self.sync.chmod(0o777)
        self.config = {
            "engine": {"kind": "local", "cpu": 8, "memoryMB": 4096, "images": {"localRoots": [self.folder.name]}},
            "storages": [{"name": "sync", "directory": str(self.sync)}],
        }
        self.skepd = server.Skepd(SKEPD, self.config, self.folder.name)
        self.image = server.busybox_image(self.skepd.directory)
        self.skepd.start()
        self.skepd.login()

    def tearDown(self):
        self.skepd.stop()
        self.skepd.remove()
        self.folder.cleanup()

    def put(self, method, what, body=None):
        return self.skepd.call(method, f"/api/v2/{what}", json.dumps(body) if body else None)

    def submit(self, name, command, extras=None, token="own", **more):
        text = server.job_file(name, {"main": (1, command, {})}, self.image, {"extras": extras or {}} | more)
        return self.skepd.call("POST", "/api/v2/jobs", text, token=token, kind="text/yaml")

    def succeeds(self, name):
        self.assertEqual(self.skepd.wait_final([name])[name], "SUCCEEDED", self.skepd.job(name))

    def runs(self, name, command, extras=None, token="own", user="admin"):
        self.submit(name, command, extras, token)
        self.succeeds(f"{user}~{name}")

    def refused(self, name, token="own"):
        with self.assertRaises(server.Refused) as refused:
            self.submit(name, "true", {"hostNetwork": True}, token)
        self.assertEqual(refused.exception.status, 403)
        for word in ("extras.hostNetwork", "engine.rights.hostNetwork", "virtual cluster default"):
            self.assertIn(word, refused.exception.body)
        with self.assertRaises(server.Refused) as refused:
            self.put("GET", f"jobs/admin~{name}")
        self.assertEqual(refused.exception.status, 404)

    def network(self):
        self.skepd.wait_ready()  # a login may be answered a moment before nodes are counted
        return self.skepd.call("GET", "/readyz?verbose")

    def user_add(self, name):
        """What the command line says of it."""
        variables = {"SKEP_SERVER": f"http://127.0.0.1:{self.skepd.port}", "SKEP_TOKEN": self.skepd.token, "HOME": self.folder.name}
        done = subprocess.run([SKEP, "user", "add", name, "--password-stdin"], input="a-password\n", capture_output=True, text=True, check=True,
                              env=os.environ | variables, timeout=server.PATIENCE_S)
        return done.stdout.splitlines()

    def restart(self, **engine):
        self.skepd.stop()
        self.skepd.write_config(self.config | {"engine": self.config["engine"] | engine})
        self.skepd.start()

    def test_the_second_account_parts_the_jobs(self):
        self.assertIn("as long as there is one account", self.network())
        self.runs("alone", IN_MACHINES, {"hostNetwork": True})
        self.submit("paused", f"{IN_MACHINES} || exit 9; while [ ! -e /mnt/sync/go ]; do sleep 0.1; done", {"storages": [{"name": "sync"}]})
        self.skepd.act("admin~paused", "STOP")
        self.assertEqual(self.skepd.wait_final(["admin~paused"])["admin~paused"], "STOPPED")
        self.submit("tries", TWO_TRIES, {"storages": [{"name": "sync"}]}, jobRetryCount=1)
        waits.until((self.sync / "tried").exists, "the first try began", server.PATIENCE_S)
        added, note = self.user_add("ann")
        self.assertEqual(added, "added user ann")
        self.assertIn("each job that is submitted has a network of its own", note)
        self.assertIn("several accounts", self.network())
        self.assertEqual(self.user_add("bob"), ["added user bob"])  # nothing has changed
        ann = self.put("POST", "tokens", {"username": "ann", "password": "a-password"})["token"]
        # what was accepted goes on as it was
        (self.sync / "go").touch()
        self.succeeds("admin~tries")
        self.assertEqual(self.skepd.job("admin~tries")["jobStatus"]["retries"], 1)
        # what comes now has a network of its own, whoever's it is
        self.runs("ann", IN_OWN, token=ann, user="ann")
        self.runs("admin", IN_OWN)
        self.refused("ann-asks", ann)
        self.refused("admin-asks")
        # the right gives it back; a job of before the account, when it is started again, keeps what it had
        self.restart(rights={"hostNetwork": ["default"]})
        self.runs("given", IN_MACHINES, {"hostNetwork": True}, ann, "ann")
        self.restart()
        self.skepd.act("admin~paused", "START")
        self.succeeds("admin~paused")
        # an account that has gone changes nothing
        for name in ("ann", "bob"):
            self.put("DELETE", f"users/{name}")
        self.runs("behind", IN_OWN)
        self.refused("still")
        # and the operator's word counts
        self.restart(network={"mode": "host"})
        self.runs("host", IN_MACHINES, {"hostNetwork": True})


if __name__ == "__main__":
    if not server.can_run_containers() or not shutil.which("nft", path=os.environ["PATH"] + ":/usr/sbin:/sbin"):
        sys.exit(77)
    unittest.main()
