"""The examples, unchanged, as pods that real kubelets run: test_examples.py SKEPD SKEP SKEP-INIT MAKE-IMAGE SOURCE-ROOT [NAME…]

Three nodes; tasks of one job are spread over them. The same jobs and the same expectations as of the local engine (tests/system/init/examples.py),
and the jobs of tests/system/init/jobs. Images are built once into SKEP_TEST_IMAGES, and named as in the job files: the nodes take this test's registry
for Docker Hub.
SKEP_TEST_NETWORK: `pod` gives each task's pod an address of its own; `host`, the default, does not. SKEP_TEST_EXAMPLES: the names of those to run.
Covers: src/engine/kubernetes/pod_make.c, src/init/ssh.c, src/init/barrier.c
"""
import os
import pathlib
import re
import shutil
import sys
import tempfile
import time
import unittest

import examples
import installation
import nodes

PROGRAMS = [pathlib.Path(sys.argv.pop(1)).resolve() for _ in range(4)] if __name__ == "__main__" else []
ROOT = pathlib.Path(sys.argv.pop(1)).resolve() if __name__ == "__main__" else pathlib.Path()


def jobs():
    return [path.parent for folder in ("examples", "tests/system/init/jobs") for path in sorted((ROOT / folder).glob("*/expected"))]


def images_needed(folders):
    text = "".join(job.read_text() for folder in folders for job in folder.glob("job.*"))
    return sorted({word for word in re.findall(r"skep/([a-z]+)", text) if (ROOT / "images" / word).is_dir()})


class Examples(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if not shutil.which("mmdebstrap"):
            nodes.skip("mmdebstrap is not installed (tools/install-deps)")
        wanted = os.environ.get("SKEP_TEST_EXAMPLES", "").split()
        cls.jobs = [folder for folder in jobs() if not wanted or folder.name in wanted]
        network = os.environ.get("SKEP_TEST_NETWORK", "host")
        cls.place = installation.Installation(PROGRAMS, 3, has_pod_network=network == "pod")
        cls.addClassCleanup(cls.place.stop)
        folder = tempfile.TemporaryDirectory(prefix="skep-examples-")
        cls.addClassCleanup(folder.cleanup)
        images, needed = pathlib.Path(os.environ.get("SKEP_TEST_IMAGES", folder.name)), images_needed(cls.jobs)
        examples.images_build(ROOT, images, needed)
        cls.place.start_nodes()
        for name in needed:
            installation.push_folder(cls.place.nodes.images, (images / "skep" / name).resolve(), f"skep/{name}:latest")
        cls.place.start_skepd(network=network)
        cls.client = examples.Client(PROGRAMS[1], cls.place.environment())

    def test_each(self):
        for folder in self.jobs:
            with self.subTest(folder.name):
                begun = time.monotonic()
                wrong = examples.check(self.client, folder) or self.on_one_node()
                print(f"{folder.name}: {time.monotonic() - begun:.1f} s", flush=True)
                if wrong:
                    name = f"admin~{self.names()[0]}"
                    wrong.append(self.client.run("describe", "--attempts", name)[1] + self.client.run("events", name)[1])
                self.assertEqual(wrong, [], "\n".join(wrong) + self.place.trouble())
                self.place.cluster.wait_pods(0)

    def names(self):
        """Jobs, the newest first."""
        return [job["name"] for job in self.place.skepd.jobs()]

    def on_one_node(self):
        """What is wrong when several tasks of the last job have not been spread."""
        roles = self.place.skepd.job(f"admin~{self.names()[0]}")["taskRoles"]
        found = [task["containerNodeName"] for role in roles.values() for task in role["taskStatuses"]]
        return [f"all tasks on {found[0]}"] if len(found) > 1 and len(set(found)) == 1 else []


if __name__ == "__main__":
    unittest.main()
