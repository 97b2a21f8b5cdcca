#!/usr/bin/env python3
"""engine-bench beside a whole skepd with the local engine.

usage: bench_engine.py [RUNS [CONTAINERS [AT_ONCE]]]     (SKEPD, ENGINE_BENCH and PYTHONPATH as `meson compile bench-engine` sets them)
"""
import argparse
import os
import subprocess
import sys

from skepd import Skepd


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
        return done.returncode
    finally:
        server.stop()
        server.remove()


if __name__ == "__main__":
    sys.exit(main())
