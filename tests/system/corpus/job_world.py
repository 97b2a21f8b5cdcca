"""A world for tests of what becomes of jobs: it submits them, and waits for what their stories and logs say."""
import json
import os
import random
import re
import signal

import processes
import waits
import world


# ends by SIGUSR1 with exit code 7
WAITS = "trap 'exit 7' USR1; echo ready; sleep 600 & wait"


# goes on until `stand` is called for it
MOVES = "while [ ! -e /skep/run/stand ]; do echo moving; sleep 0.2; done; "


class JobWorld(world.World):
    def submit(self, name, command, gpu=0, instances=1, extra=""):
        text = world.job(name, [command], instances=instances, image=self.image, extra=extra, gpu=gpu)
        done = self.skep("submit", self.file(text))
        assert done.returncode == 0, done.stderr

    def start_waiting(self, name, first="", **more):
        """A job that is ready, and whose program waits for `fail`. Returns the word by which it is found."""
        word = f"{name}-{random.randrange(10**9)}"
        self.submit(name, f"{first}exec sh -c {json.dumps(WAITS)} sh {word}", **more)
        self.until_log(name, "ready")
        return word

    @staticmethod
    def fail(word):
        os.kill(processes.find(word), signal.SIGUSR1)

    def until_running(self, name, instances=2):
        """Until all tasks of a job that has just been submitted run."""
        self.until(name, "Started: worker-", count=instances)

    def stand(self, name, *tasks):
        """Those of its tasks, which run, are told to stand still."""
        for task in self.json("GET", f"/api/v2/jobs/admin~{name}")[1]["taskRoles"]["worker"]["taskStatuses"]:
            if task["taskIndex"] in tasks:
                (self.folder / "data/engine/containers" / task["containerId"].removeprefix("skep-") / "run/stand").touch()

    def until(self, name, pattern, count=1):
        """The story of the job, up to its line number `count` that matches."""
        with processes.follow(self, "events", "--follow", name) as story:
            return processes.until(story, pattern, count)

    def until_log(self, name, line):
        with processes.follow(self, "logs", "--follow", name) as log:
            processes.until(log, f"^{line}$")

    def end_of(self, name, attempt=0):
        return self.json("GET", f"/api/v2/jobs/admin~{name}/job-attempts/{attempt}")[1]

    def metrics(self):
        return self.ask("GET", "/metrics")[2].decode()

    def metric(self, name):
        return float(re.search(rf"^{name} (\S+)$", self.metrics(), re.M)[1])

    def reload(self):
        """What is asked for afterwards comes after the new configuration."""
        log = self.folder / "skepd.log"
        at = log.stat().st_size
        self.process.send_signal(signal.SIGHUP)
        waits.file_says(log, "read again", since=at)


def gpus_stand_in(folder):
    """Device files of four GPUs, all of them /dev/null: the folder of the CDI specification that names them."""
    cdi = folder / "cdi"
    cdi.mkdir()
    devices = [{"name": str(i), "containerEdits": {"deviceNodes": [{"path": f"/dev/nvidia{i}", "hostPath": "/dev/null"}]}}
               for i in range(4)]
    (cdi / "nvidia.json").write_text(json.dumps({"cdiVersion": "0.6.0", "kind": "nvidia.com/gpu", "devices": devices}))
    return cdi


def gpus_say(folder, *lines):
    """How the GPUs of the stand-in for NVML, which reads `folder`/gpus, are from now on."""
    beside = folder / "gpus~"
    beside.write_text("".join(line + "\n" for line in lines))
    beside.rename(folder / "gpus")
