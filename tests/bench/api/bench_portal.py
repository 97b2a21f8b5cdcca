#!/usr/bin/env python3
"""The portal over much, in real Chromium against a real skepd: figures, no verdict.

usage: bench_portal.py [--parts PART,PART…] [--jobs N] [--lines N] [--minutes N] [--portals N] [--runs N]
                       [--pages PAGE,PAGE…]

  --parts     which of: sizes, list, job, log, heap, portals (default: all)
              sizes    initial JavaScript with gzip, skepd with the portal
              list     the list of N jobs: largest contentful paint, time to the last row, interaction to next paint
              job      a job of 20,000 tasks: from its address to its rows, filter by state
              log      a log of N lines: from its address to its last line, search, jump to a time, frames while it scrolls; needs root
              heap     the heaps of two tabs after garbage collection, while jobs come and go for N minutes: one shows the list, one goes through all pages
              portals  what N open portals cost the server while nothing happens, and while jobs come and go
              lighthouse  its scores of every page, in a window of a desk's machine; needs root, and npm's registry the first time
  --jobs N    how many jobs are submitted for the list; they wait (default 100000)
  --lines N   of the log (default 1000000)
  --minutes N of a busy cluster (default 10)
  --portals N open streams of changes (default 1000)
  --runs N    of Lighthouse over each page; the one in the middle counts (default 3)
  --pages PAGE,PAGE…  which pages Lighthouse reads (default: all of web/lighthouse/run.mjs)

Needs the variables SKEPD, SKEP and SKEP_INIT (programs), PYTHONPATH with tests/system and tests/system/api, node and Debian's chromium-headless-shell; `meson
compile bench-portal` sets them.
"""
import argparse
import concurrent.futures
import contextlib
import gzip
import http.client
import os
import pathlib
import re
import resource
import selectors
import socket
import subprocess
import sys
import tempfile
import threading
import time

WEB = pathlib.Path(__file__).resolve().parents[3] / "web"
CLIENTS = 8
PARTS = ("sizes", "list", "job", "log", "heap", "portals", "lighthouse")
WATCH_S = 30


def submitter(world):
    """A function that submits a job by a connection of its own."""
    token = world.token()
    connection = http.client.HTTPConnection("127.0.0.1", world.port, timeout=300)

    def submit(text):
        while True:
            connection.request("POST", "/api/v2/jobs", text, {"Authorization": "Bearer " + token, "Content-Type": "text/yaml"})
            reply = connection.getresponse()
            body = reply.read()
            if reply.status == 202:
                return
            if reply.status != 429:
                raise SystemExit(f"a job was refused: {reply.status} {body[:300]!r}")

    return submit


def submit_all(world, count):
    from world import job

    def some(first):
        submit = submitter(world)
        for i in range(first, count, CLIENTS):
            submit(job(f"job-{i:06d}", ["true"], gpu=1))

    begun = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(CLIENTS) as pool:
        list(pool.map(some, range(CLIENTS)))
    print(f"{count} jobs submitted in {time.monotonic() - begun:.1f} s", flush=True)


@contextlib.contextmanager
def busy(world, most):
    """Short jobs come, one after the other, `most` a second at most; they end by themselves."""
    from world import job

    over = threading.Event()

    def run():
        submit, begun, count = submitter(world), time.monotonic(), 0
        while not over.wait(max(0, begun + count / most - time.monotonic())):
            submit(job(f"busy-{os.getpid()}-{count:07d}", ["true"]))
            count += 1
        print(f"{count} jobs in {time.monotonic() - begun:.0f} s", flush=True)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def browse(world, part, **more):
    environment = os.environ | {"PORTAL_URL": f"http://127.0.0.1:{world.port}", "PORTAL_PASSWORD": world.admin_password, "PORTAL_PART": part}
    environment |= {key: str(value) for key, value in more.items()}
    subprocess.run(["node", "e2e/bench.mjs"], cwd=WEB, env=environment, check=True)


def configured(text, **more):
    from world import World

    world = World(**more)
    config = world.folder / "skepd.yaml"
    config.write_text(text or config.read_text().replace("logSegmentMB: 1", "logSegmentMB: 256"))
    return world


# ---- parts ----

def sizes(_):
    with configured("engine: {kind: fake}\n") as world:
        page = world.ask("GET", "/", token=False)[2].decode()
        total = 0
        for path in re.findall(r'"(/assets/[^"]+\.js)"', page):
            total += len(gzip.compress(world.ask("GET", path, token=False)[2], 9))
    print(f"initial JavaScript: {total} bytes with gzip")
    with tempfile.NamedTemporaryFile() as stripped:
        subprocess.run(["strip", "-o", stripped.name, os.environ["SKEPD"]], check=True)
        print(f"skepd with the portal: {pathlib.Path(stripped.name).stat().st_size} bytes, stripped", flush=True)


def long_list(arguments):
    from world import World

    with World(run_ms=3600000) as world:
        submit_all(world, arguments.jobs)
        browse(world, "list")


def large_job(_):
    from test_portal_large import JOB, world_of

    with world_of() as world:
        browse(world, "job", PORTAL_LARGE_JOB=JOB)


def long_log(arguments):
    from world import job

    write = ('awk \'BEGIN { for (i = 1; i <= %d; i++) print "step", i, "of many, loss is", 1 / i, "and it takes 118 ms, rank 0",'
             ' (i == %d ? "needle" : "") }\'' % (arguments.lines, arguments.lines // 3))
    with configured(None, local=True) as world:
        submitter(world)(job("log", [write], image=world.image))
        assert world.skep("wait", "--quiet", "--timeout", "600", "log", timeout=900).returncode == 0
        browse(world, "log", PORTAL_LINES=arguments.lines)


def lighthouse(arguments):
    from world import job

    folder = WEB / "lighthouse"
    installed = folder / "node_modules/.package-lock.json"
    if not installed.exists() or installed.stat().st_mtime < (folder / "package-lock.json").stat().st_mtime:
        subprocess.run(["npm", "ci", "--ignore-scripts", "--loglevel=error"], cwd=folder, check=True)
        installed.touch()
    with configured(None, local=True) as world:
        submitter(world)(job("log", ["seq 1 5000"], image=world.image))
        assert world.skep("wait", "--quiet", "--timeout", "600", "log", timeout=900).returncode == 0
        environment = os.environ | {"PORTAL_URL": f"http://127.0.0.1:{world.port}", "PORTAL_PASSWORD": world.admin_password,
                                    "LIGHTHOUSE_RUNS": str(arguments.runs), "LIGHTHOUSE_PAGES": arguments.pages}
        subprocess.run(["node", "run.mjs"], cwd=folder, env=environment, check=True)


BUSY = "engine: {kind: fake, fake: {nodes: 20, cpu: 64, memoryMB: 1000000, gpus: 0, runMilliseconds: 2000}}\n"


def heap(arguments):
    with configured(BUSY) as world, busy(world, 20):
        browse(world, "heap", PORTAL_MINUTES=arguments.minutes)


def drain_for(selector, seconds):
    """Read what comes; how many bytes."""
    until, total = time.monotonic() + seconds, 0
    while (left := until - time.monotonic()) > 0:
        for key, _ in selector.select(left):
            got = key.fileobj.recv(1 << 16)
            if not got:
                raise SystemExit("a stream was cut")
            total += len(got)
    return total


def watched(world, selector, what):
    from process_use import cpu_s

    before = cpu_s(world.process)
    total = drain_for(selector, WATCH_S)
    print(f"{what}: {100 * (cpu_s(world.process) - before) / WATCH_S:.1f} % of a processor, {total / WATCH_S / 1000:.0f} kB/s to all", flush=True)


def portals(arguments):
    """Each as a browser has it: one stream of changes for all its tabs."""
    from process_use import status_kib

    resource.setrlimit(resource.RLIMIT_NOFILE, (min(65536, resource.getrlimit(resource.RLIMIT_NOFILE)[1]),) * 2)
    with configured(BUSY) as world, selectors.DefaultSelector() as selector, contextlib.ExitStack() as stack:
        token, before = world.token(), status_kib(world.process, "VmRSS")
        for _ in range(arguments.portals):
            stream = stack.enter_context(socket.create_connection(("127.0.0.1", world.port)))
            stream.sendall(f"GET /api/v2/changes HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n\r\n".encode())
            reply = b""
            while b'"start"' not in reply:
                got = stream.recv(1 << 16)
                reply += got
                if not got or b" 429 " in reply:
                    raise SystemExit(f"a portal was refused: {reply[:300]!r}")
            selector.register(stream, selectors.EVENT_READ)
        grown = status_kib(world.process, "VmRSS") - before
        print(f"{arguments.portals} portals: {grown} kB of memory, {1000 * grown / arguments.portals:.0f} bytes each", flush=True)
        watched(world, selector, "… while nothing happens")
        with busy(world, 5):
            watched(world, selector, "… while 5 jobs a second come and go")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0], epilog=__doc__.split("\n\n", 1)[1],
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", default=",".join(PARTS))
    for name, usual in (("jobs", 100000), ("lines", 1000000), ("minutes", 10), ("portals", 1000), ("runs", 3)):
        parser.add_argument(f"--{name}", type=int, default=usual)
    parser.add_argument("--pages", default="")
    arguments = parser.parse_args()
    parts = arguments.parts.split(",")
    if unknown := set(parts) - set(PARTS):
        parser.error(f"no such part: {', '.join(sorted(unknown))}")
    subprocess.run(["node", WEB / "build.mjs", "--packages", "--all"], check=True)
    for part, run in zip(PARTS, (sizes, long_list, large_job, long_log, heap, portals, lighthouse)):
        if part in parts:
            print(f"--- {part}", flush=True)
            run(arguments)
    return 0


if __name__ == "__main__":
    sys.exit(main())
