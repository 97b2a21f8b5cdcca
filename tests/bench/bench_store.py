#!/usr/bin/env python3
"""Figures of the store on SQLite and on PostgreSQL, side by side, with their ratio.

usage: bench_store.py STORE_BENCH [DIRECTORY [COUNT]]     (the working directory, 2000)

DIRECTORY is on the disk that is to be measured: SQLite's files and a cluster of PostgreSQL, started from Debian's package and
reached through a Unix socket, are made there, and commits of both reach the disk.
"""
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
from postgres import Postgres, programs  # noqa: E402


def measure(bench, directory, count, *address):
    done = subprocess.run([bench, directory, count, *address], check=True, stdout=subprocess.PIPE, text=True)
    return {name: (float(value), unit) for name, value, unit in (line.split("\t") for line in done.stdout.splitlines())}


def main():
    arguments = sys.argv[1:]
    if any(word in ("-h", "--help") for word in arguments):
        print(__doc__)
        return 0
    if not 1 <= len(arguments) <= 3 or any(word.startswith("-") for word in arguments):
        print(__doc__, file=sys.stderr)
        return 2
    bench, parent, count = (arguments + [".", "2000"][len(arguments) - 1:])[:3]
    if not programs():
        print("bench_store.py: PostgreSQL is not installed (tools/install-deps --test)", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory(prefix="bench-store-", dir=parent) as directory:
        pathlib.Path(directory).chmod(0o711)  # PostgreSQL is of another user
        cluster = pathlib.Path(directory).absolute() / "postgres"
        cluster.mkdir(mode=0o700)
        server = Postgres(is_durable=True, directory=cluster)
        try:
            sqlite = measure(bench, directory, count)
            postgres = measure(bench, directory, count, server.address())
        finally:
            server.remove()
    print(f"{'':66} {'SQLite':>12} {'PostgreSQL':>12}        PostgreSQL / SQLite")
    for name, (value, unit) in sqlite.items():
        other = postgres[name][0]
        ratio = f"{other / value:10.2f}" if value else f"{'-':>10}"
        print(f"{name:66} {value:12,.2f} {other:12,.2f} {unit:5} {ratio}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
