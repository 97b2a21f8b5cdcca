"""The portal over GPUs that are sampled, in a real browser: what is allocated, and what of it works.

The library of the driver is a stand-in with four GPUs (tests/unit/engine/fake_nvml.c), which says what a file says; their device files are
those of /dev/null. skepd, its containers and the browser are real.

Covers: web/src/pages/cluster/busy.tsx, web/src/ui/use.tsx, web/src/lib/cells.ts

usage: test_portal_gpus.py [ARGUMENT…]    further arguments are Playwright's

Exit 77: something that it needs is not installed, or skepd was built without the portal.
"""
import os
import sys

import job_world
from browser import SKIP, packages_install, playwright, why_not
from world import World

CONFIG = """
engine:
  kind: local
  initPath: {init}
  nodeName: gpu-node
  images: {{localRoots: [{images}]}}
  devices: {{nvmlPath: {nvml}, cdiDirectories: [{cdi}], sampleSeconds: 1}}
  cpu: 8
  memoryMB: 4096
"""


def main():
    reason = why_not(needs_containers=True)
    if reason:
        print(f"skip: {reason}")
        return SKIP
    packages_install()
    world = World(local=True)
    (world.folder / "skepd.yaml").write_text(CONFIG.format(
        init=os.environ["SKEP_INIT"], images=world.images, nvml=os.environ["FAKE_NVML"], cdi=job_world.gpus_stand_in(world.folder)))
    os.environ["FAKE_NVML_STATE"] = str(world.folder / "gpus")  # of the server
    job_world.gpus_say(world.folder)
    with world:
        return playwright(world, "gpus.spec.ts", *sys.argv[1:], PORTAL_IMAGE=world.image, PORTAL_GPUS=os.environ["FAKE_NVML_STATE"])


if __name__ == "__main__":
    sys.exit(main())
