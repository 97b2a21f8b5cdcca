"""The portal over much, in a real browser: a job of 20,000 tasks on the fake engine.

Covers: web/src/pages/job/tasks.tsx, web/src/lib/task-states.ts

usage: test_portal_large.py [ARGUMENT…]    further arguments are Playwright's

Exit 77: something that it needs is not installed, or skepd was built without the portal.
"""
import os
import pathlib
import shutil
import subprocess
import sys

from world import World

WEB = pathlib.Path(__file__).resolve().parents[3] / "web"
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
    for program in ("node", "npm", "chromium"):
        if not shutil.which(program):
            print(f"skip: {program} is not installed")
            return 77
    subprocess.run(["node", WEB / "build.mjs", "--packages", "--all"], check=True)
    with world_of() as world:
        if world.ask("GET", "/", token=False)[0] != 200:
            print("skip: skepd was built without the portal")
            return 77
        environment = os.environ | {
            "PORTAL_URL": f"http://127.0.0.1:{world.port}", "PORTAL_PASSWORD": world.admin_password, "PORTAL_LARGE_JOB": JOB,
            "PORTAL_RESULTS": os.environ.get("PORTAL_RESULTS", str(world.folder / "results")),
        }
        done = subprocess.run(["node", WEB / "node_modules/@playwright/test/cli.js", "test", "large.spec.ts", *sys.argv[1:]], cwd=WEB,
                              env=environment, check=False)
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
