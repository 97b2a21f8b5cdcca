"""`skep import openpai`: what it writes is sound, and a server that has it has the virtual clusters and groups of before.

Covers: src/cli/cmd_import.c
"""
import json
import os
import pathlib
import shutil
import stat
import subprocess
import sys
import tempfile
import unittest

import yaml

import world

SKEPD = os.environ["SKEPD"]
SERVICES = """\
rest-server:
  default-pai-admin-username: boss
  default-pai-admin-password: a password
  schedule-port-start: 20000
  schedule-port-end: "39999"
  github-owner: someone
authentication:
  OIDC: "true"
  AAD:
    wellKnownURL: https://login.example.org/{tenantID}/v2.0/.well-known/openid-configuration
    tenantID: '17'
    clientID: portal
    clientSecret: between us
  group-manager:
    group-data-source: basic
    admin-group: {groupname: admingroup, description: "the admins' $(touch here)", externalName: ''}
    default-group: {groupname: default, description: everybody, externalName: ''}
    grouplist:
    - {groupname: readers, description: who reads, externalName: Readers, extension: {acls: {virtualClusters: [vision, default], storageConfigs: [team]}}}
alert-manager:
  alert-handler:
    email-configs: {admin-receiver: ops@example.org, smtp-host: mail.example.org, smtp-port: 587, smtp-from: pai@example.org,
                    smtp-auth-username: pai, smtp-auth-password: mail word}
hivedscheduler:
  config: |
    physicalCluster:
      skuTypes: {SIM: {gpu: 1, cpu: 2, memory: 1024Mi}}
      cellTypes:
        SIM-NODE: {childCellType: SIM, childCellNumber: 4, isNodeLevel: true}
        SIM-POOL: {childCellType: SIM-NODE, childCellNumber: 4}
      physicalCells:
      - {cellType: SIM-POOL, cellChildren: [{cellAddress: fake0}, {cellAddress: fake1}, {cellAddress: fake2}, {cellAddress: fake3}]}
    virtualClusters:
      default: {virtualCells: [{cellType: SIM-POOL.SIM-NODE, cellNumber: 1}]}
      vision: {virtualCells: [{cellType: SIM-POOL.SIM-NODE, cellNumber: 3}]}
"""
VOLUMES = """\
items:
- {kind: PersistentVolumeClaim, metadata: {name: team}, spec: {volumeName: v1}}
- {kind: PersistentVolume, metadata: {name: v1}, spec: {nfs: {server: 192.0.2.9, path: /team}}}
"""
LAYOUT = """\
machine-sku: {sim: {computing-device: {type: nvidia.com/gpu, model: SIM, count: 4}}}
machine-list:
- {hostname: master, hostip: 192.0.2.1, pai-master: "true"}
- {hostname: fake0, machine-type: sim, pai-worker: "true"}
- {hostname: other-name, nodename: fake1, pai-worker: "true"}
- {hostname: spare, pai-worker: "true"}
"""


class Import(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="skep-import-"))
        self.addCleanup(shutil.rmtree, self.folder)
        self.old, self.new = self.folder / "old", self.folder / "new"
        self.old.mkdir()
        (self.old / "services-configuration.yaml").write_text(SERVICES)
        (self.old / "layout.yaml").write_text(LAYOUT)
        (self.old / "volumes.yaml").write_text(VOLUMES)

    def run_import(self, *words):
        return subprocess.run([world.SKEP, "import", "openpai", self.old, "--to", self.new, *words], capture_output=True, text=True)

    def test_what_is_written_is_sound(self):
        done = self.run_import("--init-image", "registry.example.org/skep:1", "-o", "json")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        notes = {(note["setting"], note["kind"]) for note in json.loads(done.stdout)}
        for setting, kind in (("rest-server.schedule-port-start", "taken"), ("rest-server.default-pai-admin-password", "to do"),
                              ("rest-server.github-owner", "left out"), ("machine-list: spare", "to do"), ("authentication.OIDC", "taken"),
                              ("alert-manager.alert-handler.email-configs", "taken")):
            self.assertIn((setting, kind), notes)
        self.assertNotIn(("machine-list: other-name", "to do"), notes)
        self.assertIn("put them beside these files as users.json", done.stdout)
        config = (self.new / "skepd.yaml").read_text()
        for line in ('adminName: "boss"', "  portFirst: 20000", "  portLast: 39999", '    issuer: "https://login.example.org/17/v2.0"',
                     '    publicUrl: "https://192.0.2.1:9186"', '    initImage: "registry.example.org/skep:1"'):
            self.assertIn(line, config.splitlines())
        self.assertIn('- name: "team"', config.splitlines())
        self.assertIn("\nnode 'fake0' nvidia.com/gpu.count=4\n", (self.new / "nodes.sh").read_text())
        subprocess.run(["sh", "-n", self.new / "nodes.sh"], check=True)
        self.assertIn('  claim: "team"', config.splitlines())
        self.assertEqual([each["kind"] for each in yaml.safe_load_all((self.new / "claims.yaml").read_text())], ["PersistentVolume", "PersistentVolumeClaim"])
        self.assertEqual((self.new / "oidc-secret").read_text(), "between us\n")
        self.assertEqual((self.new / "smtp-password").read_text(), "mail word\n")
        for secret in ("between us", "mail word"):
            self.assertNotIn(secret, config + (self.new / "report.txt").read_text())
        for path in self.new.iterdir():
            self.assertEqual(stat.S_IMODE(path.stat().st_mode) & 0o077, 0, path)
        checked = subprocess.run([SKEPD, "--check", "--data", self.folder / "data", "--config", self.new / "skepd.yaml"],
                                 capture_output=True, text=True)
        self.assertEqual(checked.returncode, 0, checked.stderr)

    def test_a_folder_that_exists_is_left_alone(self):
        self.new.mkdir()
        done = self.run_import()
        self.assertEqual(done.returncode, 2)
        self.assertIn("name a new folder", done.stderr)
        self.assertEqual(list(self.new.iterdir()), [])

    def test_wrong_input_writes_nothing(self):
        for text, error in (("a: [", ":1:"), ("- 1\n", "must be a map"), ("a: 1\na: 2\n", ":2:1:")):
            (self.old / "services-configuration.yaml").write_text(text)
            done = self.run_import()
            self.assertEqual(done.returncode, 1)
            self.assertIn(error, done.stderr)
            self.assertFalse(self.new.exists())
        (self.old / "services-configuration.yaml").unlink()
        self.assertEqual(self.run_import().returncode, 2)

    def test_a_server_has_what_was_there(self):
        done = self.run_import("--engine", "local")
        self.assertEqual(done.returncode, 0, done.stderr)
        the = world.World()
        config = the.folder / "skepd.yaml"
        config.write_text(config.read_text() + f"scheduling: {{policy: hived, cellsFile: {self.new}/cells.yaml}}\n")
        with the:
            clusters = the.json("GET", "/api/v2/virtual-clusters")[1]
            self.assertEqual({name: cluster["resourcesTotal"]["gpu"] for name, cluster in clusters.items()}, {"default": 4, "vision": 12})
            (the.folder / "bin").mkdir()
            (the.folder / "bin/skep").symlink_to(world.SKEP)
            environment = the.environment("admin") | {"PATH": f"{the.folder}/bin:{os.environ['PATH']}"}
            for _ in range(2):  # and again, which changes nothing
                made = subprocess.run([self.new / "groups.sh"], env=environment, cwd=self.folder, capture_output=True, text=True)
                self.assertEqual((made.returncode, made.stderr), (0, ""))
            self.assertFalse((self.folder / "here").exists())
            groups = {group["groupname"]: group for group in the.json("GET", "/api/v2/groups")[1]}
            self.assertEqual(groups["admingroup"]["description"], "the admins' $(touch here)")
            self.assertTrue(groups["admingroup"]["extension"]["acls"]["admin"])
            self.assertEqual(groups["readers"]["externalName"], "Readers")
            self.assertEqual(sorted(groups["readers"]["extension"]["acls"]["virtualClusters"]), ["default", "vision"])
            self.assertEqual(groups["vision"]["extension"]["acls"]["virtualClusters"], ["vision"])
            self.assertEqual(groups["readers"]["extension"]["acls"]["storageConfigs"], ["team"])


if __name__ == "__main__":
    sys.exit(unittest.main())
