"""GPUs that NVML finds, from the library to what people read: used, idle, with memory errors, lost, with a driver that hangs.

The library is a stand-in (tests/unit/engine/fake_nvml.c) that does as a file says; the device files are those of /dev/null, named by a
CDI specification; everything between is real: skepd, its containers, the judge, the command line.

Covers: src/engine/local/gpus.c
"""
import json
import os
import re
import sys
import unittest

import job_world
import waits
import world

CONFIG = """
scheduling: {{killGraceSeconds: 2, blameAvoid: 1000, blameCordon: 1000}}
engine:
  kind: local
  initPath: {init}
  nodeName: gpu-node
  images: {{localRoots: [{images}]}}
  devices: {{nvmlPath: {nvml}, cdiDirectories: [{cdi}], sampleSeconds: 1}}
  cpu: 12
  memoryMB: 4096
"""
WHY_NOT = world.can_run_containers()


class World(job_world.JobWorld):
    def __init__(self):
        super().__init__(local=True)
        (self.folder / "skepd.yaml").write_text(CONFIG.format(
            init=os.environ["SKEP_INIT"], images=self.images, nvml=os.environ["FAKE_NVML"], cdi=job_world.gpus_stand_in(self.folder)))
        os.environ["FAKE_NVML_STATE"] = str(self.folder / "gpus")  # of the server
        self.say()

    def say(self, *lines):
        job_world.gpus_say(self.folder, *lines)

    def submit(self, name, command, gpu=1, **more):
        super().submit(name, command, gpu=gpu, **more)

    def gpu_of(self, name, task=0):
        job = self.json("GET", f"/api/v2/jobs/admin~{name}")[1]
        return job["taskRoles"]["worker"]["taskStatuses"][task]["gpus"][0]

    def node(self):
        return json.loads(self.skep("nodes", "-o", "json").stdout)[0]

    def until_node(self, state, reason):
        """What the server has heard of its GPUs by now comes with the next sample."""
        waits.until(lambda: (self.node()["state"], self.node()["reason"]) == (state, reason), self.node)

    def start_waiting(self, name, first="", **more):
        self.word = super().start_waiting(name, first, **more)
        return self.word


@unittest.skipIf(WHY_NOT, WHY_NOT)
class Gpus(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.world = World().__enter__()

    @classmethod
    def tearDownClass(cls):
        cls.world.__exit__()

    def setUp(self):
        self.world.say()
        self.world.until_node("READY", None)

    def end(self, name):
        return self.world.skep("wait", "-q", name).returncode

    def test_they_are_found_and_shown(self):
        self.world.submit("looks", "ls /dev/nvidia*; echo $NVIDIA_VISIBLE_DEVICES", gpu=2)
        self.assertEqual(self.end("looks"), 0)
        log = self.world.skep("logs", "looks").stdout
        self.assertEqual(len(re.findall("^/dev/nvidia[0-3]$", log, re.M)), 2, log)
        node = self.world.node()
        self.assertEqual((node["gpu"], node["gpuType"], node["state"]), (4, "Test-V100-16GB", "READY"))
        self.assertEqual([gpu["uuid"] for gpu in node["gpus"]], [f"GPU-0000000{i}" for i in range(4)])
        wide = self.world.skep("nodes", "-o", "wide").stdout
        self.assertRegex(wide, r"GPU USE +GPU MEMORY MIB")
        self.assertRegex(wide, r"0 % +0/65536")
        self.assertIn('skep_gpu_memory_bytes{node="gpu-node",gpu="3",uuid="GPU-00000003"} 17179869184', self.world.metrics())

    def test_the_use_of_gpus_is_work(self):
        self.world.submit("still", job_world.MOVES + "exec sleep 600", instances=2, extra="extras: {hang: {afterSeconds: 10}}\n")
        self.world.until_running("still")
        busy = self.world.gpu_of("still", 0)
        self.world.say(f"gpu {busy} busy 80", f"gpu {busy} used 4096")
        waits.until(lambda: self.world.node()["gpus"][busy]["utilizationPercent"] == 80, self.world.node)
        self.world.stand("still", 0, 1)
        story = self.world.until("still", "Idle: worker-1")
        self.assertRegex(story, r"Idle: worker-1: no work on the processor, no use of its GPUs and no output for \d+ s "
                                "while its peers moved")
        self.assertNotIn("Idle: worker-0", story)
        metrics = self.world.metrics()
        self.assertRegex(metrics, r'skep_task_gpu_utilization_percent\{job="admin~still",role="worker",task="0",node="gpu-node",'
                                  rf'gpu="{busy}"\}} 80\n')
        self.assertRegex(metrics, rf'skep_gpu_memory_used_bytes\{{node="gpu-node",gpu="{busy}",uuid="\S+"\}} {4 << 30}\n')
        self.assertRegex(self.world.skep("nodes", "-o", "wide").stdout, r" 20 % +4096/65536")
        self.world.skep("stop", "still")
        self.end("still")

    def test_memory_errors_of_its_time_are_why(self):
        self.world.say(*[f"gpu {i} ecc 5" for i in range(4)], *[f"gpu {i} retired 1" for i in range(4)])
        self.world.start_waiting("old-errors")
        self.world.fail(self.world.word)
        self.assertEqual(self.end("old-errors"), 7)
        self.assertEqual(self.world.end_of("old-errors")["exitCode"], 7, "errors of before are nobody's")
        self.world.start_waiting("errors")
        gpu = self.world.gpu_of("errors")
        self.world.say(*[f"gpu {i} ecc {6 if i == gpu else 5}" for i in range(4)], *[f"gpu {i} retired 1" for i in range(4)])
        self.world.fail(self.world.word)
        self.assertEqual(self.end("errors"), 7, "the program's own")
        end = self.world.end_of("errors")
        self.assertEqual((end["exitCode"], end["exitPhrase"]), (128, "ContainerMayFailDueToGpuDeviceEccError"))
        self.assertRegex(self.world.skep("events", "errors").stdout,
                         rf"GpuMemoryErrors: GPU {gpu} \(GPU-0000000{gpu}\) of worker-0 counted 1 uncorrectable memory errors")
        self.assertIn("128", self.world.skep("describe", "errors").stdout)
        self.assertRegex(self.world.metrics(), rf'skep_gpu_ecc_uncorrectable\{{node="gpu-node",gpu="{gpu}",uuid="\S+"\}} 6\n')
        self.assertGreaterEqual(self.world.node()["blame"], 0.9)

    def test_memory_errors_across_a_restart(self):
        self.world.start_waiting("adopted")
        gpu = self.world.gpu_of("adopted")
        self.world.stop()
        self.world.say(f"gpu {gpu} retired 1")
        self.world.start()
        self.world.fail(self.world.word)
        self.assertEqual(self.end("adopted"), 7)
        self.assertEqual(self.world.end_of("adopted")["exitCode"], 128)
        self.assertRegex(self.world.skep("events", "adopted").stdout, "retired 1 pages")

    def test_a_gpu_is_lost_and_comes_back(self):
        self.world.start_waiting("loses", extra="jobRetryCount: 0\n")
        gpu = self.world.gpu_of("loses")
        self.world.say(f"gpu {gpu} lost")
        story = self.world.until("loses", "GpuLost")
        self.assertIn(f"GpuLost: GPU {gpu} (GPU-0000000{gpu}) of worker-0 is lost", story)
        node = self.world.node()
        self.assertEqual((node["state"], node["reason"]), ("READY", f"GPU {gpu} (GPU-0000000{gpu}) is lost"))
        self.assertTrue(node["gpus"][gpu]["isLost"])
        self.assertIsNone(node["gpus"][gpu]["utilizationPercent"])
        self.assertIn(f'skep_gpu_lost{{node="gpu-node",gpu="{gpu}",uuid="GPU-0000000{gpu}"}} 1', self.world.metrics())
        self.world.fail(self.world.word)
        self.world.until("loses", "Started: worker-0", count=2)  # again, on one that works
        end = self.world.end_of("loses")
        self.assertEqual((end["exitCode"], end["exitPhrase"]), (240, "ContainerGpuLost"))
        self.assertNotEqual(self.world.gpu_of("loses"), gpu)
        self.world.submit("others", "exit 0", gpu=2)  # three are left, and one of these is in use
        self.assertEqual(self.end("others"), 0)
        self.world.submit("too-many", "exit 0", gpu=4)
        self.world.until("too-many", "Waiting: ")
        self.world.skep("stop", "loses")
        self.world.say()
        self.assertEqual(self.end("too-many"), 0)  # it is back
        node = self.world.node()
        self.assertEqual((node["state"], node["reason"]), ("READY", None))

    def test_without_any_gpu_the_node_is_bad(self):
        self.world.say(*[f"gpu {i} lost" for i in range(4)])
        self.world.until_node("UNHEALTHY", ", ".join(f"GPU {i} (GPU-0000000{i}) is lost" for i in range(4)))
        self.world.submit("waits", "exit 0")
        self.world.until("waits", "Waiting: .*not healthy: GPU 0 .* is lost")
        self.world.say()
        self.assertEqual(self.end("waits"), 0)

    def test_z_a_driver_that_hangs_holds_up_nobody(self):
        pipe = self.world.folder / "pipe"
        os.mkfifo(pipe)
        running = self.world.start_waiting("running")
        self.world.say(f"hang {pipe}")
        self.world.submit("with", "exit 3")
        self.world.submit("without", "exit 4", gpu=0)
        self.assertEqual(self.end("with"), 3)
        self.assertEqual(self.end("without"), 4)
        self.world.fail(running)
        self.assertEqual(self.end("running"), 7)
        self.assertEqual(len(self.world.node()["gpus"]), 4)
        self.assertIn("skep_gpu_lost", self.world.metrics())
        self.assertEqual(self.world.stop(), 0)
        log = (self.world.folder / "skepd.log").read_text()
        self.assertIn("NVML does not come back", log)
        self.world.say()
        self.world.start()


if __name__ == "__main__":
    if WHY_NOT:
        print("skip:", WHY_NOT)
        sys.exit(77)
    world.main()
