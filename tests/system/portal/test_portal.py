"""The portal in a real browser: Debian's chromium, driven by Playwright (web/e2e), against a skepd with real containers.

Covers: src/api/portal.c, src/api/relay.c

usage: test_portal.py [ARGUMENT…]    further arguments are Playwright's: a file, --grep TEXT

Exit 77: something that it needs is not installed, or skepd was built without the portal.
"""
import http.server
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import threading

from task_ports import server_port
from world import World, can_run_containers

WEB = pathlib.Path(__file__).resolve().parents[3] / "web"


def why_not():
    reason = can_run_containers()
    for program in ("node", "npm", "chromium"):
        if not reason and not shutil.which(program):
            reason = f"{program} is not installed"
    return reason


def control(world):
    """A door by which the browser's tests kill the server and start it again."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            world.stop(signal.SIGKILL)
            world.start()
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def main():
    reason = why_not()
    if reason:
        print(f"skip: {reason}")
        return 77
    subprocess.run(["node", WEB / "build.mjs", "--packages", "--all"], check=True)
    world = World(local=True)
    config = world.folder / "skepd.yaml"
    config.write_text(config.read_text() + f"api: {{webPorts: {{listen: '127.0.0.1:{server_port()}'}}}}\n")
    with world:
        if world.ask("GET", "/", token=False)[0] != 200:
            print("skip: skepd was built without the portal")
            return 77
        server = control(world)
        environment = os.environ | {
            "PORTAL_URL": f"http://127.0.0.1:{world.port}", "PORTAL_PASSWORD": world.admin_password, "PORTAL_IMAGE": world.image,
            "PORTAL_CONTROL": f"http://127.0.0.1:{server.server_port}",
            "PORTAL_RESULTS": os.environ.get("PORTAL_RESULTS", str(world.folder / "results")),
        }
        done = subprocess.run(["node", WEB / "node_modules/@playwright/test/cli.js", "test", *sys.argv[1:]], cwd=WEB, env=environment,
                              check=False)
        server.shutdown()
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
