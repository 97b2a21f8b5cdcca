"""The portal in a real browser: Debian's chromium, driven by Playwright (web/e2e), against a skepd with real containers.

Covers: src/api/portal.c, src/api/relay.c, src/init/ssh.c

usage: test_portal.py [ARGUMENT…]    further arguments are Playwright's: a file, --grep TEXT

Exit 77: something that it needs is not installed, or skepd was built without the portal.
"""
import http.server
import signal
import sys
import threading

from browser import SKIP, packages_install, playwright, why_not
import ssh_image
from task_ports import server_port
from world import World


STORAGES = """storages:
- {{name: datasets, directory: {0}/datasets, readOnly: true}}
- {{name: home, type: nfs, server: files.example.org, path: /export/home, directory: {0}/home, share: false}}
"""
PORTAL = """portal:
  manualUrl: https://wiki.example.org/cluster
  feedbackUrl: https://tracker.example.org/new
  images:
  - {name: Small, uri: "example.org/small:1", about: A shell and little else}
  - {name: PyTorch 2.4, uri: "example.org/pytorch:2.4", about: "Python 3.11, CUDA 12.4"}
"""


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
    reason = why_not(needs_containers=True)
    if reason:
        print(f"skip: {reason}")
        return SKIP
    packages_install()
    world = World(local=True)
    config = world.folder / "skepd.yaml"
    (world.folder / "datasets/lab").mkdir(parents=True)
    (world.folder / "home").mkdir()
    text = config.read_text().replace("logSegmentMB: 1\n", "logSegmentMB: 16\n")  # of a log of 400,000 lines nothing is removed
    config.write_text(text + f"api: {{webPorts: {{listen: '127.0.0.1:{server_port()}'}}}}\n" + STORAGES.format(world.folder) + PORTAL)
    with world:
        server = control(world)
        with_ssh = ssh_image.make(world)
        code = playwright(world, *sys.argv[1:], **({"PORTAL_SSH_IMAGE": with_ssh} if with_ssh else {}), PORTAL_IMAGE=world.image, PORTAL_CONTROL=f"http://127.0.0.1:{server.server_port}")
        server.shutdown()
    return code


if __name__ == "__main__":
    sys.exit(main())
