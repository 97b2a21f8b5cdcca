"""The portal over much, in a real browser: a job of 20,000 tasks on the fake engine.

Covers: web/src/pages/job/tasks.tsx, web/src/lib/task-states.ts

usage: test_portal_large.py [ARGUMENT…]    further arguments are Playwright's

Exit 77: something that it needs is not installed, or skepd was built without the portal.
"""
import sys

from browser import SKIP, packages_install, playwright, why_not
from world import World

TASKS, RUNNING = 20000, 15000

JOB = f"""protocolVersion: 2
name: large
type: job
prerequisites: [{{name: image, type: dockerimage, uri: a/b}}]
taskRoles:
  first: {{instances: {TASKS // 2}, dockerImage: image, resourcePerInstance: {{cpu: 1, memoryMB: 1, gpu: 0}}, commands: [train]}}
  second: {{instances: {TASKS // 2}, dockerImage: image, resourcePerInstance: {{cpu: 1, memoryMB: 1, gpu: 0}}, commands: [train]}}
extras: {{gangAllocation: false}}
"""


def world_of():
    """Room for three tasks of four; nothing ends by itself."""
    world = World()
    (world.folder / "skepd.yaml").write_text(
        f"engine: {{kind: fake, fake: {{nodes: 100, cpu: {RUNNING // 100}, memoryMB: 1000000, gpus: 0, runMilliseconds: 86400000}}}}\n")
    return world


def main():
    reason = why_not(needs_containers=False)
    if reason:
        print(f"skip: {reason}")
        return SKIP
    packages_install()
    with world_of() as world:
        return playwright(world, "large.spec.ts", *sys.argv[1:], PORTAL_LARGE_JOB=JOB)


if __name__ == "__main__":
    sys.exit(main())
