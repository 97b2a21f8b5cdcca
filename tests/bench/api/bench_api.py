#!/usr/bin/env python3
"""Figures of the API over HTTP: submissions, lists, details. Fake engine, real store.

--tls: instead of these, the same few requests over plain HTTP, the machine's socket and TLS in turn, each way three times, with connections
that are kept and with one for each request: what TLS costs.

usage: bench_api.py [--jobs 100000] [--submits 20000] [--tls [--requests 3000] [--connections 8]]     (SKEPD, SKEP, SKEP_INIT, LOAD and PYTHONPATH as `meson compile bench-api` sets them)
"""
import argparse
import contextlib
import json
import os
import subprocess
import time

import world
from process_use import cpu_s, status_kib


class Bench:
    def __init__(self, server, where=None):
        self.server = server
        self.token = server.token()
        self.where = where or server.port

    def ask(self, name, method, target, count, connections=8, rate=0, body=None, start=0, connects_each=False):
        words = [os.environ["LOAD"], self.where, self.token, connections, count, rate, method, target]
        if body:
            words.append(body)
        before = cpu_s(self.server.process)
        done = subprocess.run([str(w) for w in words], capture_output=True, text=True, check=True,
                              env=os.environ | {"START": str(start)} | ({"CONNECT": "each"} if connects_each else {}))
        result = json.loads(done.stdout)
        result["server_cpu_ms"] = (cpu_s(self.server.process) - before) * 1000 / count
        print(f"{name:46} {result['per_second']:>8.0f}/s  p50 {result['p50_ms']:8.2f} ms  p99 {result['p99_ms']:8.2f} ms  "
              f"max {result['max_ms']:8.1f} ms  {result['kib']:8.1f} KiB  server CPU {result['server_cpu_ms']:.3f} ms"
              + (f"  BAD {result['bad']}" if result["bad"] else ""), flush=True)
        return result


ROUNDS = 3


def tls_world(stack):
    """A server that speaks TLS with a certificate of its own: the token of its admin is from before."""
    server = stack.enter_context(world.World(run_ms=3600000))
    server.stop()
    with open(server.folder / "skepd.yaml", "a") as config:
        config.write("api: {tls: {mode: on}}\n")
    server.start()
    return server


def compare_tls(requests, connections):
    """All ways in one run and in turn, so that what else the machine does strikes each of them alike."""
    with contextlib.ExitStack() as stack:
        plain, tls = stack.enter_context(world.World(run_ms=3600000)), tls_world(stack)
        certificate = tls.folder / "data/tls/certificate.pem"
        ways = {"HTTP": Bench(plain), "socket": Bench(plain, plain.folder / "data/socket/api"), "TLS": Bench(tls, f"tls:{tls.port}:{certificate}")}
        body = {server: server.file(world.job("bench-%d", ["true"]), "bench.yaml") for server in (plain, tls)}
        start = bad = 0
        for turn in range(1, ROUNDS + 1):
            print(f"round {turn} of {ROUNDS}, load of the machine {os.getloadavg()[0]:.1f}", flush=True)
            for way, bench in ways.items():
                bad += bench.ask(f"{way}: submit", "POST", "/api/v2/jobs", requests, connections, 0, body[bench.server], start)["bad"]
                start += requests
            for name, target in (("healthz", "/healthz"), ("list page of 20", "/api/v2/jobs?limit=20")):
                for connects_each in (False, True):
                    for way, bench in ways.items():
                        bad += bench.ask(f"{way}: {name}{', a connection each' if connects_each else ''}", "GET", target, requests, connections,
                                         connects_each=connects_each)["bad"]
    if bad:
        raise SystemExit(f"{bad} requests were not answered with success")


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--jobs", type=int, default=100000)
    options.add_argument("--submits", type=int, default=20000)
    options.add_argument("--tls", action="store_true")
    options.add_argument("--requests", type=int, default=3000, help="of each measurement of --tls")
    options.add_argument("--connections", type=int, default=8, help="at a time, with --tls")
    given = options.parse_args()
    if not (1 <= given.requests <= 1000000 and 1 <= given.connections <= 200):
        options.error("1 <= requests <= 1000000, 1 <= connections <= 200")
    if given.tls:
        compare_tls(given.requests, given.connections)
        return
    if not 1 <= given.submits <= given.jobs:
        options.error("1 <= submits <= jobs")
    with world.World(run_ms=3600000) as server:
        bench = Bench(server)
        body = server.file(world.job("bench-%d", ["true"]).replace("cpu: 1", "cpu: 8"), "bench.yaml")
        bench.ask("submit, 1000 a second", "POST", "/api/v2/jobs", min(5000, given.submits), 16, 1000, body)
        bench.ask("submit, 64 connections, as fast as it goes", "POST", "/api/v2/jobs", given.submits, 64, 0, body, 1000000)
        rest = given.jobs - given.submits - min(5000, given.submits)
        if rest > 0:
            bench.ask("submit, the rest", "POST", "/api/v2/jobs", rest, 64, 0, body, 2000000)
        print(f"memory of skepd with {given.jobs} jobs: {status_kib(server.process, 'VmRSS') // 1024} MiB")
        big = server.file(world.job("big", ["true"], instances=2000), "big.yaml")
        assert server.skep("submit", big).returncode == 0
        for name, target in (("detail of a job of 2,000 tasks", "/api/v2/jobs/big"),
                             ("use of a job of 2,000 tasks", "/api/v2/jobs/big/use"),
                             ("detail of a job of 1 task", "/api/v2/jobs/bench-1"),
                             ("list page of 20", "/api/v2/jobs?limit=20"),
                             ("list page of 20, with count", "/api/v2/jobs?limit=20&withTotalCount=true"),
                             ("list page, by user", "/api/v2/jobs?limit=20&username=admin"),
                             ("list page, by state", "/api/v2/jobs?limit=20&state=RUNNING"),
                             ("list page, by virtual cluster", "/api/v2/jobs?limit=20&vc=default"),
                             ("list page, keyword found", "/api/v2/jobs?limit=20&keyword=bench-10"),
                             ("list page, keyword not found", "/api/v2/jobs?limit=20&keyword=nothing"),
                             ("list page, without a tag", "/api/v2/jobs?limit=20&tagsNotContain=a"),
                             ("list page, by priority", "/api/v2/jobs?limit=20&jobPriority=default"),
                             ("list page, ordered by name", "/api/v2/jobs?limit=20&order=jobName,ASC"),
                             ("list page, ordered by state, deep", "/api/v2/jobs?limit=20&offset=50000&order=state,DESC"),
                             ("events of a job", "/api/v2/jobs/bench-1/events"), ("healthz", "/healthz"),
                             ("metrics", "/metrics")):
            bench.ask(name, "GET", target, 300 if "2,000" in name else 1000, 4)
        began = time.monotonic()
        server.stop()
        print(f"stop: {time.monotonic() - began:.2f} s")
        began = time.monotonic()
        server.start()
        print(f"restart with {given.jobs} live jobs until ready: {time.monotonic() - began:.2f} s")


if __name__ == "__main__":
    main()
