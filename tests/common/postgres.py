#!/usr/bin/env python3
"""A PostgreSQL server of our own for a test, from Debian's package.

usage: postgres.py PROGRAM…

Makes a cluster in a temporary directory, reached through a Unix socket there and by no network, starts it as a user without
rights, runs the programs one after the other with SKEP_TEST_POSTGRES=postgres://… (a database named postgres, of whose server
the user owns all), and ends the server. Exit: as the first program that failed; 77 when PostgreSQL is not installed.
"""
import contextlib
import os
import pathlib
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "system"))
from readiness import Readiness  # noqa: E402

SKIP = 77
FAST = ("fsync=off", "full_page_writes=off", "synchronous_commit=on")


def programs():
    """Where initdb and postgres are: the newest version's."""
    found = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda path: int(path.parts[4]))
    if found:
        return found[-1].parent
    alone = shutil.which("postgres")
    return pathlib.Path(alone).parent if alone else None


class Postgres:
    def __init__(self, is_durable=False, directory=None):
        self.programs = programs()
        self.directory = pathlib.Path(directory or tempfile.mkdtemp(prefix="skep-postgres-"))
        self.settings = ("synchronous_commit=on",) if is_durable else FAST
        self.process = None
        self.own = []
        if os.geteuid() == 0:  # it refuses to run as root
            names = {user.pw_name for user in pwd.getpwall()}
            user = pwd.getpwnam("postgres" if "postgres" in names else "nobody")
            os.chown(self.directory, user.pw_uid, user.pw_gid)
            self.own = ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]
        # an order of texts that is not that of their bytes
        subprocess.run([*self.own, self.programs / "initdb", "-D", self.directory / "data", "-U", "skep", "-A", "trust",
                        "--no-sync", "-E", "UTF8", "--locale=C.UTF-8", "--locale-provider=icu", "--icu-locale=en-US"],
                       check=True, stdout=subprocess.DEVNULL, cwd="/")
        self.start()

    def address(self, database="postgres"):
        return f"postgres:///{database}?host={self.directory}&user=skep"

    def start(self, limit=60):
        readiness = Readiness()
        settings = [word for setting in (f"unix_socket_directories={self.directory}", "listen_addresses=",
                                         "max_connections=100", *self.settings) for word in ("-c", setting)]
        with open(self.directory / "log", "ab") as log, contextlib.closing(readiness):
            self.process = subprocess.Popen(  # ends with us, however we end
                ["setpriv", "--pdeathsig", "INT", *(self.own[1:]), self.programs / "postgres", "-D", self.directory / "data",
                 *settings],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=readiness.environment, cwd="/")
            if not readiness.wait(self.process, limit):
                raise AssertionError(f"PostgreSQL did not start:\n{(self.directory / 'log').read_text()}")

    def stop(self, how=signal.SIGINT, limit=60):
        """SIGINT: ends all sessions and writes what is to be written. SIGQUIT: ends at once, as in a crash."""
        self.process.send_signal(how)
        self.process.wait(limit)

    def rows(self, query, database="postgres"):
        """As lists of texts."""
        done = subprocess.run([self.programs / "psql", self.address(database), "-X", "-q", "-A", "-t", "-F", "\t", "-c", query],
                              check=True, capture_output=True, text=True)
        return [line.split("\t") for line in done.stdout.splitlines()]

    def remove(self):
        if self.process and self.process.poll() is None:
            self.stop()
        shutil.rmtree(self.directory)


def main():
    commands = sys.argv[1:]
    if not commands or commands[0] in ("-h", "--help"):
        print(__doc__)
        return 0 if commands else 2
    if not programs():
        print("skipped: PostgreSQL is not installed (tools/install-deps --test)")
        return SKIP
    server = Postgres()
    try:
        environment = os.environ | {"SKEP_TEST_POSTGRES": server.address()}
        codes = [subprocess.run([command], env=environment).returncode for command in commands]
        return next((code for code in codes if code != 0), 0)
    finally:
        server.remove()


if __name__ == "__main__":
    sys.exit(main())
