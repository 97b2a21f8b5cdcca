#!/usr/bin/env python3
"""The portal over a long list: how soon the jobs are seen, how soon the last one, and what the page keeps.

usage: bench_portal.py [--jobs N]

  --jobs N   how many jobs are submitted to a server with the fake engine (default 100000); they wait

Needs the variables SKEPD, SKEP and SKEP_INIT (programs), PYTHONPATH with tests/system and tests/system/api, node and chromium.
Prints figures; never fails for being slow.
"""
import argparse
import concurrent.futures
import gzip
import http.client
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

WEB = pathlib.Path(__file__).resolve().parents[3] / "web"
CLIENTS = 8


def submit_all(world, count):
    from world import job

    token = world.token()

    def some(first):
        connection = http.client.HTTPConnection("127.0.0.1", world.port, timeout=300)
        for i in range(first, count, CLIENTS):
            while True:
                connection.request("POST", "/api/v2/jobs", job(f"job-{i:06d}", ["true"], gpu=1),
                                   {"Authorization": "Bearer " + token, "Content-Type": "text/yaml"})
                reply = connection.getresponse()
                reply.read()
                if reply.status == 202:
                    break
                assert reply.status == 429, reply.status
        connection.close()

    begun = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(CLIENTS) as pool:
        list(pool.map(some, range(CLIENTS)))
    print(f"{count} jobs submitted in {time.monotonic() - begun:.1f} s")


def sizes(world):
    page = world.ask("GET", "/", token=False)[2].decode()
    total = 0
    for path in re.findall(r'"(/assets/[^"]+\.js)"', page):
        total += len(gzip.compress(world.ask("GET", path, token=False)[2], 9))
    print(f"initial JavaScript: {total} bytes with gzip")
    with tempfile.NamedTemporaryFile() as stripped:
        subprocess.run(["strip", "-o", stripped.name, os.environ["SKEPD"]], check=True)
        print(f"skepd with the portal: {pathlib.Path(stripped.name).stat().st_size} bytes, stripped")


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1].removeprefix("usage: "), description=__doc__.split("\n")[0])
    parser.add_argument("--jobs", type=int, default=100000)
    arguments = parser.parse_args()
    from world import World

    subprocess.run(["node", WEB / "build.mjs", "--packages", "--all"], check=True)
    with World(run_ms=3600000) as world:
        sizes(world)
        submit_all(world, arguments.jobs)
        environment = os.environ | {"PORTAL_URL": f"http://127.0.0.1:{world.port}", "PORTAL_PASSWORD": world.admin_password}
        subprocess.run(["node", "e2e/bench.mjs"], cwd=WEB, env=environment, check=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
