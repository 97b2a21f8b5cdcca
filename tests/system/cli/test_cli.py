"""skep against a real skepd with the fake engine: what a user types and sees.

Covers: src/cli/main.c, src/cli/client.c, src/cli/connect.c, src/cli/history.c, src/cli/cmd_admin.c, src/cli/cmd_archive.c, src/cli/cmd_cluster.c,
src/cli/cmd_context.c, src/cli/cmd_convert.c, src/cli/cmd_describe.c, src/cli/cmd_job.c, src/cli/cmd_login.c, src/cli/cmd_show.c, src/cli/cmd_validate.c
"""
import json
import os
import shutil
import socket
import stat
import subprocess
import unittest

import waits
import world
from world import SKEP, job

# zsh completes only for a person: it gets a terminal of its own. Keys are sent when its line editor reads them (before that the terminal
# itself would take the tabs), and what is printed ends with the line as the editor has it. Both marks are computed, so that the echo of the
# words that make them is not taken for them.
ZSH_DRIVER = r"""
zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell "
    PROMPT=; setopt noautomenu; fpath=(${(q)1} \$fpath); autoload -Uz compinit; compinit -u -D
    mark() { print -rn -- \"<\$1:\$2>\" }
    editor-reads() { mark EDITOR reads }; zle -N zle-line-init editor-reads
    line-show() { mark LINE \"\$BUFFER\" }; zle -N line-show; bindkey '^Xl' line-show"
zpty -r shell text '*<EDITOR:reads>*'
zpty -w -n shell $'skep li\t--st\t\x18l'
zpty -r shell text '*<LINE:*>*'
print -r -- $text
"""


class Cli(unittest.TestCase):
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

    def test_admin_check(self):
        """What the machine gives, for people and for programs; without a server."""
        folder = str(self.world.folder)
        done = self.world.skep("admin", "check", "--data", folder, "-o", "json")
        findings = {finding["check"]: finding for finding in json.loads(done.stdout)}
        self.assertEqual(done.returncode, 1 if "missing" in [finding["state"] for finding in findings.values()] else 0)
        self.assertEqual(findings["namespaces"], {"check": "namespaces", "state": "good", "found": "mnt pid ipc net", "meaning": ""})
        self.assertIn(folder, findings["project quotas"]["found"])
        self.assertTrue(all(finding["meaning"] for finding in findings.values() if finding["state"] != "good"))
        table = self.world.skep("admin", "check", "--data", folder).stdout
        self.assertTrue(all(name in table for name in findings))
        self.assertEqual([name for name in os.listdir(folder) if name.startswith(".skep-check")], [])
        config = self.world.file("engine: {kind: local, network: {mode: host}, rights: {sysAdmin: [hpc]}}\n", "check.yaml")
        done = self.world.skep("admin", "check", "--config", config, "--data", folder, "-o", "json")
        wanted = {finding["check"]: (finding["state"], finding["found"]) for finding in json.loads(done.stdout)}
        self.assertEqual(wanted["engine.network"], ("less", "host"))
        self.assertEqual(wanted["right sysAdmin"], ("less", "hpc"))
        lost = self.world.skep("admin", "check", "--config", folder + "/none")
        self.assertEqual((lost.returncode, lost.stdout), (2, ""))
        wrong = self.world.skep("admin", "look")
        self.assertEqual(wrong.returncode, 2)
        self.assertIn("there are: check, log, settings, storages", wrong.stderr)

    def test_submit_and_see(self):
        path = self.world.file(job("see", ["true"], instances=2))
        self.assertEqual(self.ok("submit", path), "submitted admin~see\n")
        self.assertEqual(self.world.skep("wait", "see").returncode, 0)
        table = self.ok("list")
        self.assertIn("admin~see", table)
        self.assertNotIn("\033", table)
        self.assertIn("\033", self.ok("list", "--color", "always"))
        self.assertIn("SUBSTATE", self.ok("list", "-o", "wide"))
        self.assertEqual([j["state"] for j in json.loads(self.ok("list", "-o", "json", "-k", "see"))], ["SUCCEEDED"])
        self.assertIn("state: SUCCEEDED", self.ok("list", "-o", "yaml", "--keyword=see"))
        self.assertIn("admin~see\n", self.ok("list", "-q", "--user", "@me"))
        text = self.ok("describe", "--attempts", "--events", "admin~see")
        for part in ("State:", "worker-1", "JOB ATTEMPT", "fake", "started on node"):
            self.assertIn(part, text)
        self.assertEqual(json.loads(self.ok("describe", "-o", "json", "see"))["name"], "see")
        self.assertIn("protocolVersion: 2", self.ok("config", "see"))
        self.assertIn("TaskSucceeded", self.ok("events", "see"))
        self.assertIn("Succeeded", self.ok("events", "--follow", "see"))
        for line in self.ok("events", "-f", "-o", "json", "see").splitlines():
            json.loads(line)
        self.assertEqual(self.ok("tag", "see", "blue"), "tagged see\n")
        self.assertIn("admin~see", self.ok("list", "-t", "blue"))
        self.assertEqual(self.ok("delete", "see"), "deleted see\n")
        self.assertEqual(self.world.skep("describe", "see").returncode, 1)

    def on_a_terminal(self, answer, *words):
        """skep with a terminal as its standard input, on which somebody answers."""
        master, slave = os.openpty()
        with os.fdopen(master, "w") as keys:
            keys.write(answer + "\n")
            keys.flush()
            done = subprocess.run([SKEP, *words], env=self.world.environment("admin"), stdin=slave, capture_output=True, text=True,
                                  timeout=waits.PATIENCE_S)
            os.close(slave)
        return done

    def test_many_jobs(self):
        names = ["admin~many-1", "admin~many-2"]
        for name in names:
            self.ok("submit", self.world.file(job(name.split("~")[1], ["true"])))
        self.assertEqual(self.world.skep("wait", *names).returncode, 0)
        folder = self.world.folder / "archives"
        self.assertEqual(sorted(self.ok("archive", "--keyword", "many-", "--dry-run", folder).split()), names)
        self.assertFalse(folder.exists())
        self.assertEqual(sorted(self.ok("archive", "--keyword", "many-", folder).splitlines()), [f"archived {name}" for name in names])
        for name in names:
            kept = json.loads((folder / name / "job.json").read_text())
            self.assertEqual(kept["name"], name.split("~")[1])
        again = self.world.skep("archive", "--keyword", "many-", folder)
        self.assertEqual((again.returncode, again.stdout), (0, ""))
        self.assertIn("job admin~many-1 is archived already", again.stderr)
        self.assertIn("name a job, or choose", self.world.skep("archive", folder).stderr)
        # nothing failed that could be let go
        self.assertIn("no job matches", self.world.skep("release", "--keyword", "many-").stderr)
        # --all asks a person, and no script
        asked = self.on_a_terminal("no", "delete", "--all", "--keyword", "many-")
        self.assertEqual(asked.returncode, 1)
        self.assertIn("delete: 2 jobs. Go on? [y/N]", asked.stderr)
        self.assertIn("nothing was done", asked.stderr)
        self.assertEqual(self.on_a_terminal("y", "delete", "--all", "--keyword", "many-1").stdout, "deleted admin~many-1\n")
        self.assertEqual(self.on_a_terminal("no", "delete", "--all", "--yes", "--keyword", "many-").stdout, "deleted admin~many-2\n")

    def test_wait_and_codes(self):
        path = self.world.file(job("wait", ["true"]), "wait.yaml")
        self.assertEqual(self.world.skep("submit", "--wait", path).returncode, 0)
        again = self.world.skep("submit", path)
        self.assertEqual(again.returncode, 1)
        self.assertIn("wait", again.stderr)
        self.assertEqual(self.world.skep("wait", "no-such-job").returncode, 125)
        self.assertEqual(self.world.skep("describe", "no-such-job").returncode, 1)
        self.assertEqual(self.world.skep("describe").returncode, 2)
        self.assertEqual(self.world.skep("frobnicate").returncode, 2)
        self.assertEqual(self.world.skep("list", "--server", "http://127.0.0.1:1").returncode, 3)
        self.assertEqual(self.world.skep("list", user="nobody").returncode, 4)

    def test_bad_file(self):
        bad = self.world.file("protocolVersion: 2\nname: x\ntype: job\ntaskRols: {}\n", "bad.yaml")
        done = self.world.skep("submit", bad)
        self.assertEqual(done.returncode, 1)
        self.assertIn(f"{bad}:4:1: taskRols", done.stderr)
        self.assertIn("did you mean taskRoles", done.stderr)
        checked = self.world.skep("validate", bad)
        self.assertEqual(checked.returncode, 1)
        self.assertIn(f"{bad}:4:1: taskRols", checked.stderr)
        self.assertEqual(self.world.skep("validate", self.world.folder / "none.yaml").returncode, 2)
        self.assertEqual(self.world.skep("validate", "-", stdin=job("fine", ["true"])).returncode, 0)

    def test_early_formats(self):
        """A file of the marketplace is submitted as it is; convert makes one of protocol 2 of it, which is submitted, too."""
        early = ("# mine\nprotocol_version: v2\nname: early\ntype: job\nparameters: {n: 2}\n"
                 "tasks:\n- {role: w, dockerimage: d, resource: {instances: $$n$$}, command: [echo $$n$$]}\n"
                 "prerequisites: [{name: d, type: dockerimage, uri: 'debian:12'}]\n")
        path = self.world.file(early, "early.yaml")
        self.ok("validate", path)
        self.ok("submit", "--wait", path)
        self.assertEqual(self.ok("config", "early"), early)
        converted = self.ok("convert", path)
        self.assertIn("# mine\nprotocolVersion: 2\n", converted)
        self.ok("submit", "--wait", self.world.file(converted.replace("name: early", "name: late"), "late.yaml"))
        roles = json.loads(self.ok("-o", "json", "describe", "late"))["taskRoles"]
        self.assertEqual(len(roles["w"]["taskStatuses"]), 2)
        self.assertEqual(self.ok("convert", "-", stdin=converted), converted)
        lossy = '{"jobName": "j", "image": "i", "codeDir": "/c", "taskRoles": [{"name": "r", "command": "true"}]}'
        refused = self.world.skep("convert", "-", stdin=lossy)
        self.assertEqual((refused.returncode, refused.stdout), (1, ""))
        self.assertIn("codeDir: protocol 2 has no file space", refused.stderr)
        self.assertIn("# Lost: codeDir", self.ok("convert", "--lossy", "-", stdin=lossy))
        self.assertEqual(self.world.skep("convert", "-", stdin="name: x").returncode, 1)

    def test_run(self):
        self.assertEqual(self.world.skep("run", "--image", "debian:12", "--", "true").returncode, 0)
        printed = self.ok("run", "--print", "--image", "i", "--name", "n", "-g", "2", "-e", "A=it's", "--priority", "prod",
                          "--", "echo", "a b", "$HOME")
        file = json.loads(printed)
        self.assertEqual(file["taskRoles"]["main"]["commands"], ["export A='it'\\''s'", "echo 'a b' '$HOME'"])
        self.assertEqual(file["taskRoles"]["main"]["resourcePerInstance"]["gpu"], 2)
        self.assertEqual(self.world.skep("validate", "-", stdin=printed).returncode, 0)
        self.assertEqual(self.world.skep("run", "--", "true").returncode, 2)
        self.assertEqual(self.world.skep("run", "--image", "i", "--env", "1A=2", "--", "true").returncode, 2)

    def test_options_before_the_command(self):
        """What all commands know may stand on either side of the command's name."""
        self.ok("submit", self.world.file(job("sides", ["true"]), "sides.yaml"))
        self.assertEqual(json.loads(self.ok("-o", "json", "describe", "sides"))["name"], "sides")
        self.assertIn("name: sides", self.ok("--output=json", "describe", "sides", "-o", "yaml"))
        self.assertEqual(self.world.skep("--server", "http://127.0.0.1:1", "list").returncode, 3)
        self.assertIn("Usage: skep list", self.ok("-o", "json", "--help", "list"))
        self.assertIn("Commands:", self.ok("-o", "json", "--help"))
        wrong = self.world.skep("--limit", "5", "list")
        self.assertEqual((wrong.returncode, wrong.stderr), (2, "skep: before the command: unknown option --limit\n"))
        self.assertEqual(self.world.skep("-o", "json").returncode, 2)

    def test_attempts_of_a_waiting_job(self):
        """A task without an attempt is no error: its table of attempts is empty."""
        self.ok("submit", self.world.file(job("too-big", ["true"], instances=100), "too-big.yaml"))
        done = self.world.skep("describe", "--attempts", "too-big")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("JOB ATTEMPT", done.stdout)
        self.ok("stop", "too-big")

    def test_no_server(self):
        done = self.world.skep("list", "--server", "http://127.0.0.1:1")
        self.assertEqual(done.stderr, "skep: cannot reach http://127.0.0.1:1: connection refused — is skepd running? "
                                      "Start it with: skepd\n")

    def test_settings(self):
        path = self.world.folder / "config-admin/skep/settings"
        self.assertEqual(stat.S_IMODE(path.stat().st_mode), 0o600)
        # the token goes to nobody but the server that gave it
        other = self.world.skep("list", "--server", f"http://localhost:{self.world.port}")
        self.assertEqual(other.returncode, 4)
        token = self.world.token()
        self.assertEqual(self.world.skep("list", user="nobody", SKEP_TOKEN=token).returncode, 0)
        path.chmod(0o644)
        loose = self.world.skep("list")
        path.chmod(0o600)
        self.assertEqual(loose.returncode, 1)
        self.assertIn("chmod 600", loose.stderr)
        wrong = self.world.skep("login", "-u", "admin", "--password-stdin", user="wrong", stdin="no\n")
        self.assertEqual(wrong.returncode, 1)
        self.assertEqual(wrong.stderr, "skep: Password is incorrect.\n")

    def test_logout(self):
        self.world.login("admin", self.world.admin_password)
        done = self.world.skep("login", "--username", "admin", "--password-stdin", user="leaver",
                               stdin=self.world.admin_password + "\n")
        self.assertEqual(done.returncode, 0)
        self.assertEqual(self.world.skep("list", user="leaver").returncode, 0)
        self.assertEqual(self.world.skep("logout", user="leaver").returncode, 0)
        self.assertEqual(self.world.skep("list", user="leaver").returncode, 4)

    def test_contexts(self):
        skep = lambda *words, **more: self.world.skep(*words, user="contexts", **{"SKEP_SERVER": ""} | more)  # noqa: E731
        url, password = f"http://127.0.0.1:{self.world.port}", self.world.admin_password
        self.ok("user", "add", "ctx", "--password-stdin", stdin="a password of ctx\n")
        for name, context, own in (("admin", "root", password), ("ctx", "own", "a password of ctx")):
            done = skep("login", "--context", context, "-u", name, "--password-stdin", url, stdin=own + "\n")
            self.assertEqual((done.returncode, done.stderr), (0, ""))
        who = lambda *words, **more: skep("whoami", "-o", "json", *words, **more)  # noqa: E731
        self.assertEqual(json.loads(who().stdout)["username"], "ctx")  # the last login is the current one
        self.assertEqual(json.loads(who("--context", "root").stdout)["username"], "admin")
        self.assertEqual(json.loads(who(SKEP_CONTEXT="root").stdout)["username"], "admin")
        self.assertEqual(who("--context", "none").returncode, 1)
        self.assertIn("skep context list", who("--context", "none").stderr)
        self.assertIn("give one of them", who("--context", "root", "--server", url).stderr)
        again = skep("login", "-u", "admin", "--password-stdin", SKEP_CONTEXT="root", stdin=password + "\n")
        self.assertEqual((again.returncode, again.stderr), (0, ""))  # the login of that context, not of the current one
        self.assertEqual(json.loads(who("--context", "own").stdout)["username"], "ctx")
        self.assertEqual(json.loads(who().stdout)["username"], "admin")
        self.assertEqual(skep("context", "use", "root").returncode, 0)
        self.assertEqual(json.loads(who().stdout)["username"], "admin")
        self.assertEqual(skep("context", "rename", "root", "own").returncode, 1)
        self.assertEqual(skep("context", "rename", "root", "a b").returncode, 2)
        self.assertEqual(skep("context", "rename", "root", "boss").returncode, 0)
        self.assertEqual([(row["name"], row["user"], row["current"], row["loggedIn"]) for row in
                          json.loads(skep("context", "-o", "json").stdout)], [("boss", "admin", True, True), ("own", "ctx", False, True)])
        self.assertNotIn("token", skep("context", "list", "-o", "json").stdout)
        with socket.create_server(("127.0.0.1", 0)) as other:
            other.setblocking(False)
            stranger = f"http://127.0.0.1:{other.getsockname()[1]}"
            for refused in (who("--server", stranger, SKEP_TOKEN="secret"), who("--context", "own", SKEP_SERVER=stranger, SKEP_TOKEN="secret")):
                self.assertEqual(refused.returncode, 1)
                self.assertIn("SKEP_TOKEN is not sent to ", refused.stderr)
            self.assertRaises(BlockingIOError, other.accept)
        token = (self.world.folder / "config-contexts/skep/settings").read_text().split("token: ")[2].split()[0]
        self.assertEqual(self.world.skep("whoami", user="nobody", SKEP_TOKEN=token).returncode, 0)
        self.assertEqual(skep("context", "delete", "own").returncode, 0)
        self.assertEqual(self.world.skep("whoami", user="nobody", SKEP_TOKEN=token).returncode, 4)  # it is revoked
        self.assertEqual(skep("logout").returncode, 0)
        self.assertEqual(who().returncode, 4)
        self.assertRegex(skep("context").stdout, r"(?m)^\* +boss +http\S+ +admin +no *$")
        self.assertEqual(skep("context", "delete", "boss").returncode, 0)
        self.assertEqual(skep("context", "use", "boss").returncode, 1)

    def test_nodes(self):
        self.assertEqual(len(json.loads(self.ok("nodes", "-o", "json"))), 4)
        self.assertRegex(self.ok("exits"), r"(?m)^ *137 +\S+ .* built in ")
        self.assertEqual([row["code"] for row in json.loads(self.ok("exits", "137", "-o", "json"))], [137])
        self.assertEqual(self.world.skep("exits", "7").returncode, 1)
        self.assertEqual(self.world.skep("exits", "many").returncode, 2)
        self.assertIn("default", self.ok("vc"))
        self.assertIn("└─", self.ok("vc", "default"))
        self.assertIn("fake3/3", self.ok("cells"))
        self.assertRegex(self.ok("cells"), r"^physical cluster: \d+ of 16 FAKE used, \d+ free; \d+ of 16 CPU\S+ used, \d+ free\n")
        self.assertRegex(self.ok("vc", "default"), r"default/0: 0 of 4 used, 4 free")
        self.assertEqual(len(json.loads(self.ok("cells", "-o", "json"))) > 3, True)
        self.assertEqual(self.world.skep("vc", "none").returncode, 1)
        self.assertIn("fake3", self.ok("nodes"))

    def test_completion_of_fish(self):
        if not shutil.which("fish"):
            self.skipTest("fish is not installed")
        script = self.world.file(self.ok("completion", "fish"), "skep.fish")
        for line, wanted in (("skep li", "list"), ("skep list --st", "--state"), ("skep list --output ", "yaml"), ("skep help desc", "describe")):
            done = subprocess.run(["fish", "--no-config", "-c", f"source {script}; complete -C '{line}'"],
                                  env=self.world.environment() | {"HOME": str(self.world.folder),
                                                                  "PATH": os.environ["PATH"] + ":" + os.path.dirname(world.SKEP)},
                                  capture_output=True, text=True, timeout=waits.PATIENCE_S)
            self.assertIn(wanted, done.stdout, line + done.stderr)

    def test_completion_of_zsh(self):
        if not shutil.which("zsh"):
            self.skipTest("zsh is not installed")
        folder = self.world.folder / "zsh"
        folder.mkdir()
        (folder / "_skep").write_text(self.ok("completion", "zsh"))
        done = subprocess.run(["zsh", "-f", "-c", ZSH_DRIVER, "driver", folder], env=self.world.environment() | {
            "PATH": os.environ["PATH"] + ":" + os.path.dirname(world.SKEP), "TERM": "dumb"}, capture_output=True, text=True,
                              timeout=waits.PATIENCE_S)
        self.assertIn("<LINE:skep list --st>", done.stdout, done.stderr)  # the command was made whole, …
        self.assertIn("--state  -- in these states", done.stdout, done.stderr)  # and the option explained

    def test_completion(self):
        script = self.ok("completion", "bash")
        for line, wanted in (("skep sub", "submit"), ("skep list --sta", "--state"), ("skep --ser", "--server"),
                             ("skep -o json li", "list"), ("skep -o ya", "yaml"), ("skep -o json list --sta", "--state"),
                             ("skep list --output ", "yaml"), ("skep completion ", "fish"), ("skep help desc", "describe")):
            words = line.split(" ")
            probe = (f"{script}\nCOMP_WORDS=({' '.join(repr(w) for w in words)})\nCOMP_CWORD={len(words) - 1}\n"
                     "_skep\nprintf '%s\\n' \"${COMPREPLY[@]}\"\n")
            done = subprocess.run(["bash", "-c", probe], capture_output=True, text=True, env=self.world.environment())
            self.assertIn(wanted, done.stdout.split(), line + done.stderr)
        for shell in ("zsh", "fish"):
            text = self.ok("completion", shell)
            try:
                done = subprocess.run([shell, "-n"], input=text, capture_output=True, text=True)
            except FileNotFoundError:
                print(f"{shell} is not installed: its completion was not checked")
                continue
            self.assertEqual(done.returncode, 0, done.stderr)

    def test_help_and_man(self):
        overview = self.ok("help")
        for name in [line.split()[0] for line in overview.split("Commands:\n")[1].split("\n\n")[0].splitlines()]:
            self.assertIn("Usage: skep " + name, self.ok("help", name))
            self.assertIn("Usage: skep " + name, self.ok(name, "--help"))
            self.assertIn(".SH SYNOPSIS", self.ok("man", name))


class Restart(unittest.TestCase):
    def test_wait_survives_a_restart(self):
        """A server that is killed and comes back is waited for; the job's end is seen."""
        with world.World(run_ms=3600000) as server:
            server.skep("submit", server.file(job("survivor", ["true"], extra="jobRetryCount: 3\n")))
            waiter = subprocess.Popen([SKEP, "wait", "survivor"], env=server.environment(), stderr=subprocess.PIPE, text=True)
            self.assertIn("started on node", waiter.stderr.readline())
            server.process.kill()
            server.process.wait()
            config = server.folder / "skepd.yaml"
            config.write_text(config.read_text().replace("runMilliseconds: 3600000", "runMilliseconds: 300"))
            server.start()  # the machines have lost the task, and the next attempt ends
            _, rest = waiter.communicate(timeout=waits.PATIENCE_S)
            self.assertEqual(waiter.returncode, 0, rest)


if __name__ == "__main__":
    world.main()
