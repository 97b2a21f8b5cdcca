"""Where is a job's secret to be found? In the memory file system of its tasks, as long as they run, and nowhere else.

    secrets.py     exit code 1 when it is anywhere else, 77 to skip

Looked at, while a task runs, after a restart of the server, and after the job's end: every file of the data directory (the database, its
log of events and its write-ahead log among them), the run directory, the server's log, what the API says of the job, and the command lines and
environments of all processes of the machine.
"""
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "corpus"))
import processes  # noqa: E402
import world  # noqa: E402

# put together here, so that no command line of this test has it
SECRET = "correct-horse-" + f"{os.getpid()}" + "-battery-staple"
JOB = """
protocolVersion: 2
name: keeper
type: job
secrets: {{word: {secret}}}
prerequisites:
- {{name: image, type: dockerimage, uri: "{image}"}}
taskRoles:
  worker:
    instances: 1
    dockerImage: image
    resourcePerInstance: {{cpu: 1, memoryMB: 64, gpu: 0}}
    commands:
    - WORD=<% $secrets.word %>
    - test ${{#WORD}} -gt 10 && echo known
    - while [ ! -e /skep/run/over ]; do sleep 0.1; done
"""


def in_files(folder):
    """The files below a folder that have it, as paths below that."""
    done = subprocess.run(["grep", "-rlaFD", "skip", "-f", "-", folder], input=SECRET, capture_output=True, text=True)
    return sorted(str(pathlib.Path(path).relative_to(folder)) for path in done.stdout.splitlines())


def in_processes():
    found = []
    for name in ("cmdline", "environ"):
        for path in pathlib.Path("/proc").glob(f"[0-9]*/{name}"):
            try:
                if SECRET.encode() in path.read_bytes():
                    found.append(str(path))
            except OSError:
                pass  # it has ended
    return found


def in_answers(the):
    found = []
    for path in ("", "/config", "/events", "/job-attempts", "/tasks"):
        status, _, body = the.ask("GET", f"/api/v2/jobs/admin~keeper{path}")
        if SECRET.encode() in body:
            found.append(f"{path} {status}")
    for words in (("describe", "--attempts", "--events", "keeper"), ("config", "keeper"), ("logs", "--stream", "runtime", "keeper")):
        done = the.skep(*words)
        if SECRET in done.stdout + done.stderr:
            found.append(" ".join(words))
    return found


def look(the, run, when, is_running):
    """What is wrong."""
    wrong = [f"{when}: in the data directory: {path}" for path in in_files(the.folder / "data")]
    wrong += [f"{when}: {path}" for path in in_processes() + in_answers(the)]
    if SECRET in (the.folder / "skepd.log").read_text(errors="replace"):
        wrong.append(f"{when}: in the server's log")
    there = in_files(run) if run.exists() else []
    kind = subprocess.run(["stat", "-f", "-c", "%T", run], capture_output=True, text=True).stdout.strip() if run.exists() else "gone"
    # the task's file, of root alone, until the task ends
    expected = [path for path in there if path.endswith("/skep/task")] if is_running else []
    if there != expected or (is_running and len(there) != 1) or kind not in ("tmpfs", "gone"):
        wrong.append(f"{when}: in the run directory ({kind}): {there}")
    if is_running and (run / there[0]).stat().st_mode & 0o077:
        wrong.append(f"{when}: others may read {there[0]}")
    return wrong


def main():
    with world.World(local=True) as the:
        done = the.skep("submit", the.file(JOB.format(secret=SECRET, image=the.image)))
        assert done.returncode == 0, done.stderr
        (the.folder / "job.yaml").unlink()
        with processes.follow(the, "logs", "--follow", "keeper") as log:
            processes.until(log, "^known$")
        run = processes.task_folder(the.folder).parents[1]  # the server's, which has this task alone
        wrong = look(the, run, "while it runs", True)
        the.stop()
        the.start()
        wrong += look(the, run, "after a restart", True)
        (next((the.folder / "data/engine/containers").iterdir()) / "run/over").touch()
        the.skep("wait", "--quiet", "--timeout", processes.PATIENCE_S, "keeper", timeout=processes.PATIENCE_S + 30)
        job = the.json("GET", "/api/v2/jobs/admin~keeper")[1]
        if job["jobStatus"]["state"] != "SUCCEEDED":
            wrong.append(f"the job ended as {job['jobStatus']['state']}: {the.skep('logs', 'keeper').stdout}")
        wrong += look(the, run, "after its end", False)
    for line in wrong:
        print("WRONG", line)
    return 1 if wrong else 0


if __name__ == "__main__":
    reason = world.can_run_containers()
    if reason:
        print("skip:", reason)
        sys.exit(77)
    sys.exit(main())
