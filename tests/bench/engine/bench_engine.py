#!/usr/bin/env python3
"""engine-bench beside a whole skepd with the local engine.

usage: bench_engine.py [RUNS [CONTAINERS [AT_ONCE]]]     (SKEPD, ENGINE_BENCH and PYTHONPATH as `meson compile bench-engine` sets them)
"""
import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

from skepd import Skepd, busybox_image, job_file


def processor_ms(pid):
    """Processor time of a process and of all that it has waited for, its own and that of the others."""
    numbers = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    own, own_system, others, others_system = (int(n) * 1000 / os.sysconf("SC_CLK_TCK") for n in numbers[11:15])
    return own + own_system, others + others_system


def processor_print(server, folder, containers):
    """What a container costs of the processor's time from its submission to its end: as comparable on a busy machine."""
    image = busybox_image(folder)
    names = [server.submit(job_file("first", {"main": (1, "true", {})}, image))["name"]]
    server.wait_final(names)
    before = processor_ms(server.process.pid)
    names = [server.submit(job_file(f"cost-{n}", {"main": (1, "true", {})}, image))["name"] for n in range(containers)]
    states = server.wait_final(names)
    after = processor_ms(server.process.pid)
    assert all(states[name] == "SUCCEEDED" for name in names), states
    own, others = ((b - a) / containers for a, b in zip(before, after))
    print(f"processor time a job: {own + others:.1f} ms skepd, {own:.1f} of it in skepd itself")


def main():
    options = argparse.ArgumentParser()
    for name, usual in (("runs", 100), ("containers", 100), ("at_once", 8)):
        options.add_argument(name, type=int, nargs="?", default=usual)
    given = options.parse_args()
    if min(vars(given).values()) < 1:
        options.error("numbers begin at 1")
    # the image that engine-bench makes lies there
    images = os.environ.setdefault("TMPDIR", "/var/tmp")
    server = Skepd(os.environ["SKEPD"], {"engine": {"cpu": 400, "memoryMB": 65536, "images": {"localRoots": [images]}}})
    server.start()
    try:
        server.login()
        done = subprocess.run([os.environ["ENGINE_BENCH"], *(str(n) for n in vars(given).values())], check=False,
                              env=os.environ | {"SKEP_BENCH_PORT": str(server.port), "SKEP_BENCH_TOKEN": server.token})
        if done.returncode:
            print(server.tail())
        else:
            with tempfile.TemporaryDirectory(dir=images) as folder:
                processor_print(server, folder, given.containers)
        return done.returncode
    finally:
        server.stop()
        server.remove()


if __name__ == "__main__":
    sys.exit(main())
