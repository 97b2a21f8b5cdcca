"""skep with real containers: exit codes, logs and their following, as a user meets them."""
import json
import shutil
import subprocess
import sys
import threading
import time
import unittest

import processes
import waits
import world
from world import job

WHY_NOT = world.can_run_containers()


@unittest.skipIf(WHY_NOT, WHY_NOT)
class Local(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.world = world.World(local=True).__enter__()

    @classmethod
    def tearDownClass(cls):
        cls.world.__exit__()

    def run_job(self, *words, options=()):
        return self.world.skep("run", "--memory", "64", "--image", self.world.image, *options, "--", *words)

    def test_output_and_code(self):
        done = self.run_job("echo out; echo err >&2; exit 7")
        self.assertEqual(done.returncode, 7, done.stderr)
        self.assertIn("out\n", done.stdout)
        self.assertIn("err\n", done.stdout)
        name = done.stderr.split()[1]
        self.assertEqual(self.world.skep("logs", "--stream", "stdout", name).stdout, "out\n")
        self.assertEqual(self.world.skep("logs", "--stream", "stderr", "--tail", "1", name).stdout, "err\n")
        self.assertEqual(self.world.skep("wait", "--quiet", name).returncode, 7)
        self.assertIn("7", self.world.skep("describe", name).stdout)

    def test_own_code(self):
        """A rule gives the exit another code; who waits gets the program's own, and both are shown."""
        done = self.run_job("no-such-program")
        self.assertEqual(done.returncode, 127, done.stderr)
        text = self.world.skep("describe", done.stderr.split()[1]).stdout
        self.assertIn("the program's own code: 127", text)

    def test_words_are_words(self):
        self.assertEqual(self.run_job("echo", "a  b", "$HOME", "it's").stdout, "a  b $HOME it's\n")

    def test_variables(self):
        done = self.run_job("echo $WHO $PAI_TASK_INDEX", options=["--env", "WHO=me you"])
        self.assertEqual(done.stdout, "me you 0\n", done.stderr)

    def test_without_gpus(self):
        """Six of eight CPUs belong to the two GPUs. Who needs more than the others lies there, and sees no GPU."""
        for cpus in (1, 5):
            done = self.run_job("echo devices $NVIDIA_VISIBLE_DEVICES, own \"$SKEP_GPUS\"", options=["--cpu", str(cpus)])
            self.assertEqual(done.stdout, "devices none, own \n", done.stderr)
            name = done.stderr.split()[1]
            task, = self.world.json("GET", f"/api/v2/jobs/{name}")[1]["taskRoles"]["main"]["taskStatuses"]
            self.assertIsNone(task["containerGpus"])
        done = self.world.skep("submit", self.world.file(job("filler", ["sleep 600"], instances=2, image=self.world.image)))
        self.assertEqual(done.returncode, 0, done.stderr)
        done = self.world.skep("submit", self.world.file(job("third", ["true"], image=self.world.image)))
        with processes.follow(self.world, "events", "--follow", "third") as story:
            processes.until(story, "Waiting: ")
        self.assertIn("would take the CPUs of GPU cells only if its skuType named them", self.world.skep("describe", "third").stdout)
        self.assertEqual(self.world.skep("stop", "filler").returncode, 0)
        self.assertEqual(self.world.skep("wait", "--quiet", "third").returncode, 0)

    def test_follow_through_a_retry(self):
        text = job("retried", ["echo try; exit 3"], image=self.world.image, extra="jobRetryCount: 2\n")
        done = self.world.skep("submit", "--follow", self.world.file(text))
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertEqual(done.stdout, "try\n" * 3)
        attempts = self.world.skep("describe", "--attempts", "retried").stdout
        self.assertIn("ATTEMPT", attempts)
        self.assertIn("worker-0, attempt 1.0:\n  last lines:\n    try\n", attempts)
        old = self.world.skep("logs", "--attempt", "0", "--role", "worker", "retried")
        self.assertEqual(old.stdout, "try\n", old.stderr)
        alone = self.world.skep("logs", "--attempt", "1", "retried")
        self.assertEqual((alone.returncode, alone.stdout), (0, "try\n"), "it has but one task")
        self.assertEqual(self.world.skep("logs", "--attempt", "7", "retried").returncode, 1)

    def test_what_is_kept_of_an_end(self):
        """The rule that recognised it and the last lines: in the table and as JSON, without colours and half characters."""
        line = "printf 'half \\346\\234\\n10%%\\r50%%\\r100%%\\n\\033[31mModuleNotFoundError: caf\\303\\251\\033[0m\\n'; exit 1"
        text = job("kept", [line], image=self.world.image)
        self.assertEqual(self.world.skep("submit", "--wait", self.world.file(text)).returncode, 1)
        table = self.world.skep("describe", "--attempts", "kept").stdout
        self.assertIn("worker-0, attempt 0.0:\n  recognised as ContainerImportError (232) by rule ", table)
        self.assertIn(", of the built-in table (line ", table)
        self.assertIn("\n  from the task log's line: ModuleNotFoundError: café\n", table)
        self.assertIn("\n  last lines:\n    half \ufffd\ufffd\n    100%\n    ModuleNotFoundError: café\n", table)
        whole = json.loads(self.world.skep("describe", "--attempts", "--events", "-o", "json", "kept").stdout)
        attempt = whole["attempts"][0]["tasks"][0]["attempts"][0]
        self.assertEqual(attempt["containerLogTail"], "half \ufffd\ufffd\n100%\nModuleNotFoundError: café\n")
        rule = attempt["matchedRule"]
        self.assertEqual((rule["code"], rule["name"], rule["file"], rule["log"], rule["text"]),
                         (232, "ContainerImportError", "built-in", "user", "ModuleNotFoundError: café"))
        self.assertIn("Started", [event["reason"] for event in whole["events"]])

    def test_follow_live(self):
        """What the task writes is seen at once, not at its end."""
        text = job("live", ["echo first; sleep 600"], image=self.world.image)
        self.assertEqual(self.world.skep("submit", self.world.file(text)).returncode, 0)
        follower = subprocess.Popen([world.SKEP, "logs", "-f", "live"], env=self.world.environment(),
                                    stdout=subprocess.PIPE, text=True)
        self.assertEqual(follower.stdout.readline(), "first\n")
        self.assertEqual(self.world.skep("stop", "live").returncode, 0)
        self.assertEqual(follower.wait(60), 0)
        follower.stdout.close()
        self.assertEqual(self.world.skep("wait", "live").returncode, 130)

    def test_from_a_time_on(self):
        """The pauses are what is tested: nothing waits for them."""
        text = job("timed", ["echo first; sleep 5; date +%s; sleep 5; echo third"], image=self.world.image)
        self.assertEqual(self.world.skep("submit", "--wait", self.world.file(text)).returncode, 0)
        when = self.world.skep("logs", "timed").stdout.splitlines()[1]
        local = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(int(when)))
        for words in ((), ("--attempt", "0"), ("--follow",)):
            self.assertEqual(self.world.skep("logs", "--since", local, *words, "timed").stdout, f"{when}\nthird\n", words)
        self.assertEqual(self.world.skep("logs", "--since", "1h", "timed").stdout, f"first\n{when}\nthird\n")
        self.assertEqual(self.world.skep("logs", "--since", "2099-01-01", "timed").stdout, "")
        both = self.world.skep("logs", "--since", "1h", "--tail", "1", "timed")
        self.assertEqual((both.returncode, both.stdout), (2, ""))

    def test_roles_and_indices(self):
        text = job("two", ["echo I am $PAI_TASK_INDEX"], instances=2, image=self.world.image)
        self.assertEqual(self.world.skep("submit", "--wait", self.world.file(text)).returncode, 0)
        for index in ("0", "1"):
            self.assertEqual(self.world.skep("logs", "--role", "worker", "--index", index, "two").stdout, f"I am {index}\n")
        unclear = self.world.skep("logs", "--attempt", "0", "two")
        self.assertEqual((unclear.returncode, unclear.stdout), (2, ""))
        self.assertIn("name one with --role and --index; there are worker (index 0 to 1)", unclear.stderr)
        named = self.world.skep("logs", "--attempt", "0", "--role", "worker", "--index", "1", "two")
        self.assertEqual(named.stdout, "I am 1\n", named.stderr)

    def archived_logs(self, folder):
        """The list in job.json, and that the files are those of it, each as long as it says."""
        logs = json.loads((folder / "job.json").read_text())["logs"]
        files = {str(path.relative_to(folder)): path.stat().st_size for path in (folder / "logs").iterdir()}
        self.assertEqual(files, {log["file"]: log["bytes"] for log in logs if log["file"]})
        return logs

    def test_archive(self):
        """All of it, with each attempt's log; only then does --delete delete."""
        line = "echo words of $PAI_TASK_INDEX; i=0; while [ $i -lt 600 ]; do i=$((i+1)); echo more; done; echo last; exit 3"
        text = job("old", [line], image=self.world.image, extra="jobRetryCount: 1\n")
        self.assertEqual(self.world.skep("submit", "--wait", self.world.file(text)).returncode, 3)
        missing, full, short = (self.world.folder / name for name in ("none", "full", "short"))
        full.mkdir()
        (full / "mine").write_text("")
        for folder, why in ((missing / "x", "No such file"), (full, "is not empty"), (full / "mine", "Not a directory"), ("-", "standard output")):
            done = self.world.skep("archive", "--delete", "old", folder)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(why, done.stderr)
        done = subprocess.run(["sh", "-c", 'trap "" XFSZ; ulimit -f 1; exec "$@"', "sh", world.SKEP, "archive", "--delete", "old", short],
                              env=self.world.environment(), capture_output=True, text=True)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("File too large", done.stderr)
        self.assertIn("is no whole archive; job old stays on the server", done.stderr)
        self.assertFalse((short / "job.json").exists())
        self.assertEqual(self.world.skep("describe", "old").returncode, 0, "nothing of this has deleted it")
        path = self.world.folder / "old"
        path.mkdir()
        done = self.world.skep("archive", "--delete", "old", path)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        whole = json.loads((path / "job.json").read_text())
        self.assertEqual([attempt["attemptIndex"] for attempt in whole["attempts"]], [1, 0])
        for attempt in whole["attempts"]:
            self.assertTrue(attempt["tasks"][0]["attempts"][0]["containerLogTail"].endswith("more\nlast\n"))
        self.assertEqual(whole["events"][-1]["reason"], "Failed")
        self.assertIn("name: old", whole["config"])
        logs = self.archived_logs(path)
        self.assertEqual([log["file"] for log in logs], ["logs/worker-0-0.0.log", "logs/worker-0-1.0.log"])
        for log in logs:
            self.assertEqual((log["removedBytes"], log["missing"]), (0, None))
            self.assertEqual((path / log["file"]).read_text(), "words of 0\n" + 600 * "more\n" + "last\n")
        self.assertEqual(self.world.skep("describe", "old").returncode, 1, "it is gone from the server")

    def test_archive_of_what_lives(self):
        self.assertEqual(self.world.skep("submit", self.world.file(job("lives", ["sleep 600"], image=self.world.image))).returncode, 0)
        folder = self.world.folder / "lives"
        lives = self.world.skep("archive", "lives", folder)
        self.assertEqual((lives.returncode, lives.stdout, folder.exists()), (1, "", False))
        self.assertIn("has not ended", lives.stderr)
        self.world.skep("stop", "lives")
        self.world.skep("wait", "-q", "lives")

    def test_archive_without_a_log(self):
        """A log that the server has no more is named; the other one is there."""
        text = job("half", ["echo words of $PAI_TASK_INDEX"], instances=2, image=self.world.image)
        self.assertEqual(self.world.skep("submit", "--wait", self.world.file(text)).returncode, 0)
        tasks = self.world.json("GET", "/api/v2/jobs/admin~half")[1]["taskRoles"]["worker"]["taskStatuses"]
        [gone] = [path for path in (self.world.folder / "data").rglob("logs/*") if path.name == tasks[0]["containerId"].removeprefix("skep-")]
        shutil.rmtree(gone)
        folder = self.world.folder / "half"
        done = self.world.skep("archive", "half", folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("skep: no log of worker-0, attempt 0.0: it has been removed", done.stderr)
        first, second = self.archived_logs(folder)
        self.assertIsNone(first["file"])
        self.assertIn("it has been removed", first["missing"])
        self.assertEqual((folder / second["file"]).read_text(), "words of 1\n")

    def test_scale(self):
        """Who was scaled away is no longer shown; who waits for a place is."""
        text = job("scaled", ["sleep 600"], instances=2, image=self.world.image, extra="extras: {gangAllocation: false}\n")
        self.assertEqual(self.world.skep("submit", self.world.file(text)).returncode, 0)
        self.until("scaled", {"worker-0": "RUNNING", "worker-1": "RUNNING"})
        self.assertEqual(self.world.skep("scale", "scaled", "worker", "1").returncode, 0)
        self.until("scaled", {"worker-0": "RUNNING"})
        self.assertEqual(self.world.json("GET", "/api/v2/jobs/admin~scaled")[1]["jobStatus"]["totalTaskNumber"], 1)
        history = self.world.skep("describe", "--attempts", "scaled").stdout
        self.assertRegex(history, r"worker-1 +0 +STOPPED .*-230 .*no longer among the 1 instances wanted")
        self.assertEqual(self.world.json("PUT", "/api/v2/jobs/admin~scaled/taskRoles/worker/instances", {"instances": 9})[0], 202)
        room = 2  # CPU cells of this machine
        self.until("scaled", {f"worker-{i}": "RUNNING" if i < room else "WAITING" for i in range(9)})
        self.world.skep("stop", "scaled")
        self.world.skep("wait", "-q", "scaled")

    def until(self, name, wanted):
        """The tasks that are shown, and how."""
        def shown():
            roles = self.world.json("GET", f"/api/v2/jobs/admin~{name}")[1]["taskRoles"]
            return {f'{role}-{task["taskIndex"]}': task["taskState"] for role, body in roles.items() for task in body["taskStatuses"]}

        waits.until(lambda: shown() == wanted, lambda: f"{shown()} is not {wanted}")

    def follow_with_pauses(self, name, pauses):
        """The lines of a log whose program waits for a line in the pipe /tmp/go after so many of its own."""
        until_there = "until [ -p /tmp/go ]; do sleep 0.1; done; cat >/tmp/go"
        lines = []
        with subprocess.Popen([world.SKEP, "exec", name, "--", "sh", "-c", until_there], env=self.world.environment(),
                              stdin=subprocess.PIPE) as go, processes.follow(self.world, "logs", "--follow", name) as log:
            limit = threading.Timer(waits.PATIENCE_S, log.terminate)
            limit.start()
            for line in log.stdout:
                lines.append(line.rstrip("\n"))
                if len(lines) in pauses:
                    go.stdin.write(b"\n")
                    go.stdin.flush()
            limit.cancel()
        self.assertEqual(log.returncode, 0)
        return lines

    def test_a_log_that_rotates(self):
        """6 MiB into pieces of 1 MiB, of which two are kept: who follows gets every line, the end is right in every view, and the rules see
        across pieces. The program waits for who follows after each half of a piece."""
        lines, size = 96 * 1024, 64
        script = ("mkfifo /tmp/go; exec 3<>/tmp/go; i=0; while [ $i -lt 96 ]; do i=$((i+1)); "
                  "[ $i = 96 ] && printf '%s\\n' 'ModuleNotFoundError: no luck'; "
                  "awk -v i=$i 'BEGIN { for (k = (i-1)*1024+1; k <= i*1024; k++) printf \"%063d\\n\", k }'; "
                  "[ $((i % 8)) != 0 ] || [ $i = 96 ] || read go <&3; done; exit 1")
        self.assertEqual(self.world.skep("submit", self.world.file(job("rotates", [script], image=self.world.image))).returncode, 0)
        with processes.follow(self.world, "events", "--follow", "rotates") as story:
            processes.until(story, "Started")
        followed = self.follow_with_pauses("rotates", range(8 * 1024, lines, 8 * 1024))
        wanted = [f"{i:063}" for i in range(1, lines + 1)]
        wanted.insert(95 * 1024, "ModuleNotFoundError: no luck")
        self.assertTrue(followed == wanted, f"{len(followed)} lines followed")
        self.assertEqual(self.world.skep("wait", "-q", "rotates").returncode, 1)
        for words in (["rotates"], ["--attempt", "0", "rotates"]):
            whole = self.world.skep("logs", *words)
            kept = whole.stdout.splitlines()
            self.assertGreater(len(kept), 1024 * 1024 // size)
            self.assertLess(len(kept), lines)
            self.assertTrue(kept[1:] == wanted[-len(kept) + 1:], "what is kept has no hole and ends with the last line")
            removed = sum(len(line) + 1 for line in wanted) - len(whole.stdout)
            self.assertIn(f"skep: the first {removed} bytes of this log have been removed", whole.stderr)
            tail = self.world.skep("logs", "--tail", "3", *words)
            self.assertEqual((tail.stdout.splitlines(), tail.stderr), (wanted[-3:], ""))
        folder = self.world.folder / "rotated"
        done = self.world.skep("archive", "rotates", folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(f"skep: the first {removed} bytes of the log of worker-0, attempt 0.0 have been removed", done.stderr)
        [log] = self.archived_logs(folder)
        self.assertEqual((log["removedBytes"], log["missing"]), (removed, None))
        self.assertTrue((folder / log["file"]).read_text() == whole.stdout)
        text = self.world.skep("describe", "--attempts", "rotates").stdout
        self.assertIn("recognised as ContainerImportError (232)", text)
        self.assertIn("from the task log's line: ModuleNotFoundError: no luck\n", text)
        self.assertTrue(text.endswith("".join(f"    {line}\n" for line in wanted[-64:])), text[-300:])

    def test_missing_image(self):
        done = self.world.skep("run", "--image", "dir:/no/such/image", "--memory", "64", "--", "true")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("skep describe", done.stderr)

    def test_server_restart_in_mid_follow(self):
        """The follower goes on where it was: no line is lost, none comes twice."""
        lines = "i=0; while [ $i -lt 40 ]; do echo line $i; i=$((i + 1)); sleep 0.1; done"
        self.assertEqual(self.world.skep("submit", self.world.file(job("restart", [lines], image=self.world.image))).returncode, 0)
        follower = subprocess.Popen([world.SKEP, "logs", "-f", "restart"], env=self.world.environment(),
                                    stdout=subprocess.PIPE, text=True)
        got = [follower.stdout.readline() for _ in range(5)]
        self.world.process.kill()
        self.world.process.wait()
        self.world.start()
        got += follower.stdout.readlines()
        follower.stdout.close()
        self.assertEqual(follower.wait(60), 0)
        self.assertEqual(got, [f"line {i}\n" for i in range(40)])


if __name__ == "__main__":
    if WHY_NOT:
        print("skip:", WHY_NOT)
        sys.exit(77)
    world.main()
