"""Ends that no program makes by itself: the platform, its nodes, GPUs, disks and other jobs make them. Each is produced for real — a
memory error that the (stand-in) driver counts, a full disk, a job of higher priority, a machine that was restarted — and judged as any
other.

A case has its name, the code that its first attempt is known to end with, what must follow, and a function that makes it happen in a
world of its kind.
"""
import contextlib
import dataclasses
import json
import os
import shutil
import signal
import socket
import subprocess

import job_world
import processes
import waits
from cases import ALWAYS, BUDGET, NEVER
from task_ports import task_ports

GPUS = """
scheduling: {{killGraceSeconds: 2, preemptionGraceSeconds: 2, blameAvoid: 100000, blameCordon: 100000, portFirst: {port}, portLast: {last}}}
engine:
  kind: local
  initPath: {init}
  images: {{localRoots: [{images}]}}
  devices: {{nvmlPath: {nvml}, cdiDirectories: [{cdi}], sampleSeconds: 1}}
  cpu: 8
  memoryMB: 4096
"""
DISK = """
scheduling: {{killGraceSeconds: 2, blameAvoid: 100000, blameCordon: 100000}}
engine: {{kind: local, initPath: {init}, diskReserveMB: 1, images: {{localRoots: [{images}]}}, cpu: 4, memoryMB: 1024}}
"""
FAKE = """
engine: {kind: fake, fake: {nodes: 1, cpu: 4, memoryMB: 4096, runMilliseconds: 600000, loseEveryMilliseconds: 1000}}
"""


class PlatformWorld(job_world.JobWorld):
    def end(self, name):
        self.skep("wait", "--quiet", "--timeout", waits.PATIENCE_S, name, timeout=waits.PATIENCE_S + 30)

    def task_end(self, name, index):
        """Of the task's only attempt: code, name, what followed, diagnostics. It has ended, or will soon."""
        path = f"/api/v2/jobs/admin~{name}/attempts/0/taskRoles/worker/taskIndex/{index}/attempts"
        attempts = []

        def has_ended():
            attempts[:] = self.json("GET", path)[1]["attempts"]
            return attempts and attempts[-1].get("currentAttemptCompletedTime")

        waits.until(has_ended, f"task {index} of {name} ends")
        last = attempts[-1]
        return (last["containerExitCode"], last["containerExitSpec"]["phrase"], NEVER if len(attempts) == 1 else "again",
                last["containerExitDiagnostics"])

    def stop_job(self, name):
        self.skep("stop", name)
        self.end(name)


class GpuWorld(PlatformWorld):
    """Four GPUs, as a file says."""

    def __init__(self):
        super().__init__(local=True)
        self.first_port = task_ports()[0]
        (self.folder / "skepd.yaml").write_text(GPUS.format(
            init=os.environ["SKEP_INIT"], images=self.images, nvml=os.environ["FAKE_NVML"], cdi=job_world.gpus_stand_in(self.folder),
            port=self.first_port, last=self.first_port + 39))
        os.environ["FAKE_NVML_STATE"] = str(self.folder / "gpus")  # of the server
        self.say()

    @contextlib.contextmanager
    def first_port_taken(self):
        with socket.socket() as other:
            other.bind(("0.0.0.0", self.first_port))
            other.listen()
            yield

    def say(self, *lines):
        job_world.gpus_say(self.folder, *lines)

    def start_waiting_once(self, name, retries):
        """Its second attempt ends at once, with exit code 3."""
        return self.start_waiting(name, "if [ $SKEP_JOB_ATTEMPT != 0 ]; then exit 3; fi; ", gpu=1, extra=f"jobRetryCount: {retries}\n")


class DiskWorld(PlatformWorld):
    """The engine has a small disk of its own."""

    def __init__(self):
        super().__init__(local=True)
        self.disk = self.folder / "data/engine"
        self.disk.mkdir(parents=True)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m", "skep-corpus", self.disk], check=True)
        (self.folder / "skepd.yaml").write_text(DISK.format(init=os.environ["SKEP_INIT"], images=self.images))

    def __exit__(self, *_):
        subprocess.run(["umount", "-l", self.disk], check=True)
        super().__exit__()


class FakeWorld(PlatformWorld):
    """One machine that is lost again and again."""

    def __init__(self):
        super().__init__()
        self.image = "any:1"
        (self.folder / "skepd.yaml").write_text(FAKE)


# ---- what makes them happen ----

def port_taken(the, name):
    with the.first_port_taken():
        the.submit(name, "exit 0", extra="jobRetryCount: 0\n")
        the.end(name)


def gpu_memory_errors(the, name):
    word = the.start_waiting_once(name, 1)
    the.say(*[f"gpu {i} ecc 1" for i in range(4)])
    the.fail(word)
    the.end(name)
    the.say()


def gpu_lost(the, name):
    word = the.start_waiting_once(name, 0)
    the.say(*[f"gpu {i} lost" for i in range(4)])
    the.until(name, "GpuLost")
    the.fail(word)
    the.until(name, "Retrying")
    the.say()
    the.end(name)


def preempted(the, name):
    the.submit(name, "if [ $SKEP_JOB_ATTEMPT != 0 ]; then exit 0; fi; echo ready; exec sleep 600", gpu=4,
               extra="extras: {hivedScheduler: {jobPriorityClass: oppo}}\n")
    the.until_log(name, "ready")
    the.submit("stronger", "exit 0", gpu=4, extra="extras: {hivedScheduler: {jobPriorityClass: prod}}\n")
    the.end("stronger")
    the.end(name)


def scaled_down(the, name):
    the.submit(name, "echo ready; exec sleep 600", instances=2, extra="extras: {gangAllocation: false}\n")
    the.until_running(name)
    assert the.json("PUT", f"/api/v2/jobs/admin~{name}/taskRoles/worker/instances", {"instances": 1})[0] == 202
    the.task_end(name, 1)
    tasks = the.json("GET", f"/api/v2/jobs/admin~{name}")[1]["taskRoles"]["worker"]["taskStatuses"]
    assert [task["taskState"] for task in tasks] == ["RUNNING"], tasks  # the other is no more


def ssh_barrier(the, name):
    the.submit(name, "exit 0", instances=2, extra="jobRetryCount: 1\nextras:\n  com.microsoft.pai.runtimeplugin:\n"
               "    - {plugin: ssh, parameters: {jobssh: true, sshbarrier: true, sshbarrierTimeout: 1}}\n")
    the.end(name)


def ssh_missing(the, name):
    """The image is busybox: it has no ssh server, and no barrier would tell."""
    the.submit(name, "exit 0", extra="jobRetryCount: 1\nextras:\n  com.microsoft.pai.runtimeplugin:\n"
               "    - {plugin: ssh, parameters: {jobssh: true}}\n")
    the.end(name)


def node_restarted(the, name):
    """What a restart of the machine leaves: a state of another boot, and nothing that runs."""
    the.submit(name, "if [ $SKEP_JOB_ATTEMPT != 0 ]; then exit 0; fi; echo ready; exec sleep 600", extra="jobRetryCount: 0\n")
    the.until_log(name, "ready")
    uid = the.json("GET", f"/api/v2/jobs/admin~{name}")[1]["taskRoles"]["worker"]["taskStatuses"][0]["containerId"]
    attempt = uid.removeprefix("skep-")
    the.process.kill()
    the.process.wait()
    run = processes.task_folder(the.folder, attempt)
    for pid in ("conmon.pid", "init.pid"):
        os.kill(int((run / pid).read_text()), signal.SIGKILL)
    state = the.folder / "data/engine/containers" / attempt / "state"
    text = json.loads(state.read_text())
    text["boot"] = "of the day before"
    state.write_text(json.dumps(text))
    shutil.rmtree(run)
    the.start()
    the.end(name)


def node_disk_full(the, name):
    with open(the.disk / "filler", "wb", 0) as filler:
        try:
            while True:
                filler.write(b"x" * 65536)
        except OSError:
            pass
    the.submit(name, "exit 0", extra="jobRetryCount: 0\n")
    the.until(name, "Retrying")
    the.stop_job(name)


def node_lost(the, name):
    the.submit(name, "sleep 600", extra="jobRetryCount: 0\n")
    the.until(name, "Retrying")
    the.stop_job(name)


@dataclasses.dataclass
class PlatformCase:
    name: str
    code: int
    retries: str
    happen: object
    task: int | None = None  # its end, not the attempt's
    exit_code: int | None = None


WORLDS = (
    (GpuWorld, (
        PlatformCase("port-taken", 253, ALWAYS, port_taken),
        PlatformCase("gpu-memory-errors", 128, BUDGET, gpu_memory_errors),
        PlatformCase("gpu-lost", 240, ALWAYS, gpu_lost),
        PlatformCase("preempted", -1003, ALWAYS, preempted),
        PlatformCase("scaled-down", -230, NEVER, scaled_down, task=1),
        PlatformCase("ssh-barrier", 249, NEVER, ssh_barrier),
        PlatformCase("ssh-missing", 217, NEVER, ssh_missing),
        PlatformCase("node-restarted", -1001, ALWAYS, node_restarted),
    )),
    (DiskWorld, (PlatformCase("node-disk-full", -1211, ALWAYS, node_disk_full),)),
    (FakeWorld, (PlatformCase("node-lost", -1001, ALWAYS, node_lost),)),
)


def run(names, judged, worlds=WORLDS):
    """(case, what it was judged) of all cases, or of these."""
    rows = []
    for make, cases in worlds:
        wanted = [case for case in cases if not names or case.name in names]
        if not wanted:
            continue
        with make() as the:
            for case in wanted:
                try:
                    case.happen(the, case.name)
                    result = judged(the, case) if case.task is None else the.task_end(case.name, case.task)
                except (AssertionError, KeyError, OSError) as error:  # the others are to be seen all the same
                    result = ("not seen", "", "", f"{error}\n{the.skep('events', case.name).stdout}")
                rows.append((case, result))
                the.stop_job(case.name)
    return rows
