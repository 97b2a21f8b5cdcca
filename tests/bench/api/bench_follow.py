#!/usr/bin/env python3
"""What following logs costs: threads, memory and CPU of the server while nothing is written, and how late the followers hear of the end.

usage: bench_follow.py [--followers 700] [--idle 10]     (SKEPD, SKEP, SKEP_INIT and PYTHONPATH as `meson compile bench-follow` sets them)

Fake engine, real HTTP. Each follower has a connection of its own. Figures, no verdict.
"""
import argparse
import resource
import selectors
import socket
import time

import world
from process_use import cpu_s, status_kib


def follow(port, token, job):
    """A connection whose reply has begun."""
    follower = socket.create_connection(("127.0.0.1", port))
    follower.sendall(f"GET /api/v2/jobs/{job}/logs?follow=true HTTP/1.1\r\nHost: x\r\n"
                     f"Authorization: Bearer {token}\r\n\r\n".encode())
    reply = b""
    while b"started" not in reply:
        got = follower.recv(65536)
        if not got:
            raise SystemExit(f"a follower was refused: {reply[:200]!r}")
        reply += got
    return follower


def ends(followers):
    """When each has heard the end, in milliseconds from now."""
    begin, heard = time.monotonic(), []
    with selectors.DefaultSelector() as selector:
        for follower in followers:
            follower.setblocking(False)
            selector.register(follower, selectors.EVENT_READ)
        while selector.get_map():
            for key, _ in selector.select():
                got = key.fileobj.recv(65536)
                if not got or got.endswith(b"0\r\n\r\n"):
                    selector.unregister(key.fileobj)
                    heard.append((time.monotonic() - begin) * 1000)
    return sorted(heard)


def main():
    options = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1].removeprefix("usage: "))
    options.add_argument("--followers", type=int, default=700)
    options.add_argument("--idle", type=float, default=10)
    given = options.parse_args()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with world.World(run_ms=3600000) as server:
        token, process = server.token(), server.process
        submitted = server.skep("submit", server.file(world.job("followed", ["run"])))
        assert submitted.returncode == 0, submitted.stderr
        threads, memory = status_kib(process, "Threads"), status_kib(process, "VmRSS")
        followers = [follow(server.port, token, "admin~followed") for _ in range(given.followers)]
        before = cpu_s(process)
        time.sleep(given.idle)
        idle = (cpu_s(process) - before) / given.idle * 100
        print(f"{given.followers} followers: threads {threads} -> {status_kib(process, 'Threads')}, "
              f"memory +{(status_kib(process, 'VmRSS') - memory) / given.followers:.1f} KiB each, "
              f"CPU while nothing is written {idle:.1f} %", flush=True)
        stopped = server.skep("stop", "followed")
        assert stopped.returncode == 0, stopped.stderr
        heard = ends(followers)
        print(f"after `skep stop` has returned, the end is heard within p50 {heard[len(heard) // 2]:.0f} ms, last {heard[-1]:.0f} ms")


if __name__ == "__main__":
    main()
