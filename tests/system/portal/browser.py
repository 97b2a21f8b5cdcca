"""What the tests of the portal in a browser share: what they need, and Playwright's tests of web/e2e over a world."""
import os
import pathlib
import subprocess

import chromium
from world import can_run_containers

WEB = pathlib.Path(__file__).resolve().parents[3] / "web"
SKIP = 77


def why_not(needs_containers):
    """Why the tests cannot run here, or None."""
    reason = can_run_containers() if needs_containers else None
    return reason or chromium.missing()


def packages_install():
    subprocess.run(["node", WEB / "build.mjs", "--packages", "--all"], check=True)


def playwright(world, *arguments, **more):
    """Run the tests that `arguments` name against a server that runs; the exit status."""
    if world.ask("GET", "/", token=False)[0] != 200:
        print("skip: skepd was built without the portal")
        return SKIP
    environment = os.environ | {
        "PORTAL_URL": f"http://127.0.0.1:{world.port}", "PORTAL_PASSWORD": world.admin_password,
        "PORTAL_RESULTS": os.environ.get("PORTAL_RESULTS", str(world.folder / "results")),
    } | more
    return subprocess.run(["node", WEB / "node_modules/@playwright/test/cli.js", "test", *arguments], cwd=WEB, env=environment,
                          check=False).returncode
