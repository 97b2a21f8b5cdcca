"""skep user, group, token, audit, quota, template and whoami against a real skepd with the fake engine.

Covers: src/cli/account.c, src/cli/ask.c, src/cli/cmd_audit.c, src/cli/cmd_group.c, src/cli/cmd_quota.c, src/cli/cmd_template.c, src/cli/cmd_user.c
"""
import json
import unittest

import waits
import world

FILE = """username,password,email,admin,virtual cluster,groups
eve,eve-password,eve@example.org,false,default,lab
"ann",short,,,,
frank,"a ""quoted"", password",,true,,
"""

QUOTAS_FILE = """username,password,quota.gpus,quota.gpuHoursPerMonth
greta,greta-password,8,100
hugo,hugo-password,,
ines,ines-password,many,
"""
UNKNOWN_QUOTA = """username,password,quota.gpu
jana,jana-password,8
"""
TEMPLATE_JOB = """protocolVersion: 2
name: train # changed in each run
type: job
prerequisites:
  - {name: image, type: dockerimage, uri: debian}
taskRoles:
  worker:
    instances: 1
    dockerImage: image
    resourcePerInstance: {cpu: 1, memoryMB: 100, gpu: 0}
    commands: [echo hello]
"""


class Accounts(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.world = world.World(run_ms=300).__enter__()

    @classmethod
    def tearDownClass(cls):
        cls.world.__exit__()

    def ok(self, *words, **options):
        done = self.world.skep(*words, **options)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def users(self):
        return {user["username"]: user for user in json.loads(self.ok("user", "list", "-o", "json"))}

    def test_users(self):
        self.assertEqual(self.ok("user", "add", "bob", "--password-stdin", stdin="bob-password\n"), "added user bob\n")
        self.assertIn("bob", self.ok("user", "list"))
        self.assertEqual(self.world.skep("user", "add", "bob", "--password-stdin", stdin="bob-password\n").returncode, 1)
        self.ok("user", "set", "bob", "--email", "bob@example.org", "--admin", "yes", "--groups", "default")
        self.assertEqual(self.users()["bob"]["email"], "bob@example.org")
        self.assertTrue(self.users()["bob"]["admin"])
        self.assertEqual(self.world.skep("user", "remove", "bob").returncode, 4)  # an administrator
        self.ok("user", "set", "bob", "--admin", "no")
        self.ok("user", "deactivate", "bob")
        self.assertFalse(self.users()["bob"]["active"])
        self.ok("user", "activate", "bob")
        self.assertIn("bob@example.org", self.ok("user", "show", "bob"))
        self.assertEqual(self.ok("user", "remove", "bob"), "removed user bob\n")
        self.assertEqual(self.world.skep("user", "show", "bob").returncode, 1)
        self.assertEqual(self.world.skep("user", "set", "bob").returncode, 2)
        self.assertEqual(self.world.skep("user", "frobnicate").returncode, 2)
        self.assertEqual(self.world.skep("user", "show").returncode, 2)

    def test_import(self):
        self.ok("group", "add", "lab", "--description", "who trains")
        done = self.world.skep("user", "import", self.world.file(FILE, "users.csv"))
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("users.csv:3: not added", done.stderr)
        self.assertIn("password must have 6..", done.stderr)
        self.assertTrue(done.stdout.endswith("2 added, 0 there already, 1 not\n"), done.stdout)
        self.assertEqual(self.users()["eve"]["grouplist"], ["default", "lab"])
        self.assertTrue(self.users()["frank"]["admin"])
        done = self.world.skep("user", "import", self.world.file(QUOTAS_FILE, "quotas.csv"))
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("quotas.csv:4: quota.gpus must be a number, got 'many'", done.stderr)
        self.assertTrue(done.stdout.endswith("2 added, 0 there already, 1 not\n"), done.stdout)
        shown = json.loads(self.ok("quota", "show", "greta", "-o", "json"))
        self.assertEqual(shown["gpuHoursPerMonth"], {"value": 100, "group": None, "used": 0})
        self.assertEqual(shown["gpus"]["value"], 8)
        done = self.world.skep("user", "import", self.world.file(UNKNOWN_QUOTA, "unknown.csv"))
        self.assertIn("there is no quota 'gpu'", done.stderr)
        self.assertIn("unknown.csv:2: added without its quotas", done.stderr)
        done = self.world.skep("user", "import", self.world.file("name,password\n", "bad.csv"))
        self.assertEqual(done.returncode, 2)
        self.assertIn("bad.csv:1: unknown column 'name'", done.stderr)

    def test_import_of_who_is_there(self):
        """OpenPAI's administrator has the name of ours: ours stays, with the password of here."""
        file = self.world.file(f"username,passwordHash,admin\nadmin,{'ab' * 64},true\nolga,{'cd' * 64},false\n", "openpai.csv")
        done = self.world.skep("user", "import", file)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("openpai.csv:2: user admin was there already, and stays as they are", done.stderr)
        self.assertTrue(done.stdout.endswith("1 added, 1 there already, 0 not\n"), done.stdout)
        self.world.login("admin", self.world.admin_password)
        done = self.world.skep("user", "import", file)
        self.assertEqual((done.returncode, done.stdout), (0, "0 added, 2 there already, 0 not\n"))

    def test_quotas(self):
        self.ok("user", "add", "quinn", "--password-stdin", stdin="quinn-password\n")
        self.ok("group", "add", "few")
        self.ok("group", "join", "few", "quinn")
        self.assertEqual(self.ok("quota", "set", "--group", "few", "gpus=4", "liveJobs=2"), "changed the quotas of few\n")
        self.ok("quota", "set", "quinn", "gpus=8")
        shown = json.loads(self.ok("quota", "show", "quinn", "-o", "json"))
        self.assertEqual(shown["gpus"], {"value": 8, "group": None, "used": 0})
        self.assertEqual(shown["liveJobs"], {"value": 2, "group": "few", "used": 0})
        self.ok("quota", "unset", "quinn", "gpus")
        self.assertIn("group few", self.ok("quota", "show", "quinn"))
        self.assertIn("liveJobs", self.ok("quota", "show", "--group", "few"))
        self.assertIn("requestsPerSecond", self.ok("quota"))
        self.assertEqual(self.world.skep("quota", "set", "quinn", "gpus").returncode, 2)
        self.assertEqual(self.world.skep("quota", "set", "quinn", "gpu=1").returncode, 1)
        self.assertEqual(self.world.skep("quota", "show", "--group").returncode, 2)

    def test_templates(self):
        job = self.world.file(TEMPLATE_JOB, "train.yaml")
        self.assertEqual(self.ok("template", "save", "mnist", job, "--tag", "vision,small", "--summary", "digits"), "saved template mnist\n")
        self.assertIn("admin~mnist  private", self.ok("template", "list"))
        self.assertEqual(self.ok("template", "get", "mnist"), TEMPLATE_JOB)
        self.ok("template", "save", "mnist", job, "--share", "public", "--category", "training")
        shown = self.ok("template", "show", "admin~mnist")
        for line in ("State:       approved", "Tags:        vision,small", "Categories:  training", "Summary:     digits"):
            self.assertIn(line, shown)
        self.assertEqual(self.ok("template", "star", "mnist"), "starred mnist\n")
        one, = json.loads(self.ok("template", "list", "--keyword", "DIGIT", "--tag", "vision", "--order", "stars", "-o", "json"))
        self.assertEqual((one["starNumber"], one["starred"]), (1, True))
        self.assertNotIn("protocol", one)
        self.ok("template", "save", "mnist", job, "--description", "two\nlines\x1b]0;a title\x07 of it")
        self.assertIn("\ntwo\nlines of it\n", self.ok("template", "show", "mnist"))
        self.ok("template", "unstar", one["id"])
        self.assertEqual(self.world.skep("template", "reject", "mnist").returncode, 2)
        self.assertEqual(self.ok("template", "reject", "mnist", "--reason", "no image"), "rejected mnist\n")
        self.assertIn("Reason:      no image", self.ok("template", "show", "mnist"))
        self.assertEqual(self.ok("template", "approve", "mnist"), "approved mnist\n")
        self.assertEqual(self.ok("template", "official", "mnist"), "now official: mnist\n")
        self.assertIn("admin~mnist  official", self.ok("template", "list", "--official", "--shared"))
        self.assertEqual(self.ok("template", "unofficial", "mnist"), "no more official: mnist\n")
        self.assertEqual(json.loads(self.ok("template", "list", "--official", "-o", "json")), [])
        other = self.world.file(TEMPLATE_JOB + "# the second\n", "second.yaml")
        self.ok("template", "save", "mnist", other)
        versions = json.loads(self.ok("template", "versions", "mnist", "-o", "json"))
        now, before = versions[0]["version"], versions[1]["version"]
        self.assertIn(f"{now}, current", self.ok("template", "versions", "mnist"))
        self.assertEqual(self.ok("template", "get", "mnist", "--version", str(before)), TEMPLATE_JOB)
        self.assertEqual(self.ok("template", "get", "mnist"), TEMPLATE_JOB + "# the second\n")
        self.assertEqual(self.ok("template", "restore", "mnist", "--version", str(before)), f"restored version {before} of template mnist\n")
        self.assertEqual(self.ok("template", "get", "mnist"), TEMPLATE_JOB)
        self.assertEqual(self.world.skep("template", "restore", "mnist").returncode, 2)
        self.assertEqual(self.world.skep("template", "restore", "mnist", "--version", str(now + 1)).returncode, 1)  # it is what it says now
        self.assertEqual(self.world.skep("template", "get", "mnist", "--version", "99").returncode, 1)
        wrong = self.world.skep("template", "save", "wrong", self.world.file("name: x\n", "wrong.yaml"))
        self.assertEqual(wrong.returncode, 1)
        self.assertIn("wrong.yaml", wrong.stderr)
        self.assertEqual(self.world.skep("template", "save", "ann~x", job).returncode, 2)
        self.assertEqual(self.world.skep("template", "save", "x", "no-such-file").returncode, 2)
        self.assertEqual(self.world.skep("template", "show", "none").returncode, 1)
        self.assertEqual(self.ok("template", "remove", "mnist"), "removed template mnist\n")
        self.assertEqual(json.loads(self.ok("template", "list", "-o", "json")), [])

    def test_audit(self):
        self.ok("group", "add", "audited", "--description", "first")
        self.ok("group", "set", "audited", "--description", "second")
        self.assertEqual(self.world.skep("group", "remove", "nobody-here").returncode, 1)
        records = json.loads(self.ok("audit", "--subject", "audited", "--since", "1h", "-o", "json"))
        self.assertEqual([record["route"] for record in records], ["PUT /api/v2/groups", "POST /api/v2/groups"])
        self.assertEqual(records[0]["before"], {"description": "first"})
        self.assertEqual(records[0]["after"], {"description": "second"})
        self.assertEqual(records[0]["username"], "admin")
        self.assertEqual(records[0]["address"], "127.0.0.1")
        self.assertIn('"second"', self.ok("audit", "--user", "admin", "-o", "wide"))
        refused = ""

        def is_told():  # the record of a refusal is stored after the answer
            nonlocal refused
            refused = self.ok("audit", "--refused", "--limit", "5")
            return "nobody-here" in refused

        waits.until(is_told, lambda: f"nobody-here is not in {refused}")
        self.assertNotIn("audited", refused)
        self.assertEqual(len(json.loads(self.ok("audit", "--limit", "1", "-o", "json"))), 1)
        self.assertEqual(json.loads(self.ok("audit", "--until", "2001-02-03 04:05", "-o", "json")), [])
        self.assertEqual(self.world.skep("audit", "--since", "yesterday").returncode, 2)

    def test_groups(self):
        self.ok("group", "add", "vision", "--vc", "vc1,vc2")
        self.ok("user", "add", "gina", "--password-stdin", stdin="gina-password\n")
        self.assertEqual(self.ok("group", "join", "vision", "gina", "--admin", "yes"), "put in gina\n")
        self.assertIn("gina", self.ok("group", "members", "vision"))
        self.assertEqual(self.users()["gina"]["virtualCluster"], ["default", "vc1", "vc2"])
        self.ok("group", "set", "vision", "--description", "eyes")
        self.ok("group", "set", "vision", "--vc", "vc3")
        table = self.ok("group", "show", "vision")
        self.assertIn("eyes", table)
        self.assertIn("vc3", table)
        self.assertIn("vision", self.ok("group", "list"))
        self.ok("group", "leave", "vision", "gina")
        self.assertNotIn("gina", self.ok("group", "members", "vision"))
        self.assertEqual(self.ok("group", "remove", "vision"), "removed group vision\n")

    def test_tokens(self):
        self.assertIn("admin (admin) at http://", self.ok("whoami"))
        token = self.ok("token", "create", "--scope", "read", "--expires", "3600").strip()
        self.assertEqual(token.count("."), 2)
        rows = [row for row in json.loads(self.ok("token", "list", "-o", "json")) if row["scope"] == "read"]
        self.assertEqual(len(rows), 1)
        self.assertIn(rows[0]["id"], self.ok("token", "list"))
        self.assertEqual(self.ok("token", "revoke", rows[0]["id"]), f"revoked token {rows[0]['id']}\n")
        self.assertEqual(self.world.skep("token", "revoke", rows[0]["id"]).returncode, 1)


if __name__ == "__main__":
    unittest.main()
