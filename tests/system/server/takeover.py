#!/usr/bin/env python3
"""Two skepd with the same key and one PostgreSQL: one serves, the other takes over when it is gone, and both never at once.
Then PostgreSQL loses commits beneath the one that serves.

usage: takeover.py SKEPD
"""
import pathlib
import shutil
import signal
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "common"))
from postgres import Postgres, programs  # noqa: E402
from skepd import Refused, Skepd, job_file  # noqa: E402
from waits import PATIENCE_S, until  # noqa: E402

SKIP = 77
IN_USE = 4


def refused_start(server):
    """Ends by itself, and says who has the database."""
    server.start(wait=False)
    assert server.process.wait(PATIENCE_S) == IN_USE, server.tail()
    assert "in use by another skepd" in server.tail(), server.tail()


def submit(server, name):
    server.submit(job_file(name, {"worker": (2, "true", {})}, "debian:12"))
    return f"admin~{name}"


def submit_when_back(server, name):
    """After PostgreSQL was away, which the server notices by this."""
    refusals = []

    def is_taken():
        try:
            submit(server, name)
        except Refused as refused:
            # in doubt: it was stored, and answered as if it was not
            if refused.status == 409 and refusals:
                return True
            assert refused.status == 503, refused
            refusals.append(str(refused))
            return False
        return True

    until(is_taken, lambda: f"{refusals[-1]}\n{server.tail()}")
    return f"admin~{name}"


def commits_are_lost(server, postgres):
    """What a failover to a standby that lags does: the state of before the last commits, beneath a server that runs."""
    kept = submit(server, "kept")
    data, older = postgres.directory / "data", postgres.directory / "older"
    postgres.stop()
    subprocess.run(["cp", "-a", data, older], check=True)
    postgres.start()
    lost = submit_when_back(server, "lost")
    postgres.stop()
    shutil.rmtree(data)
    older.rename(data)
    postgres.start()
    try:
        submit(server, "refused")
        raise AssertionError("what is lost was built upon")
    except (Refused, OSError):
        pass
    assert server.process.wait(PATIENCE_S) == 1, server.tail()
    assert "has lost its last" in server.tail(), server.tail()
    server.start()
    assert "epoch" in server.tail(), server.tail()
    assert submit(server, "lost") == lost  # nobody knows of the first
    states = server.wait_final([kept, lost])
    assert states[kept] == states[lost] == "SUCCEEDED", states


def check(first, second, postgres):
    first.start()
    first.login()
    accepted = [submit(first, f"before{number}") for number in range(20)]
    refused_start(second)
    accepted.append(submit(first, "meanwhile"))

    first.kill()
    # its key goes with it, as an operator's copy
    shutil.copy(first.data / "key", second.data / "key")
    second.start()
    second.token = first.token  # a token of the one is good for the other
    accepted += [submit(second, f"after{number}") for number in range(20)]
    refused_start(first)

    # the one that serves loses all of its sessions, and is back by itself
    postgres.stop(signal.SIGQUIT)
    postgres.start()
    accepted.append(submit_when_back(second, "again"))
    states = second.wait_final(accepted)
    assert set(states) >= set(accepted), set(accepted) - set(states)
    assert {states[name] for name in accepted} == {"SUCCEEDED"}, states
    try:
        submit(second, "before1")
        raise AssertionError("a name was given twice")
    except Refused as refused:
        assert refused.status == 409, refused
    commits_are_lost(second, postgres)
    assert second.stop() == 0
    first.start()
    assert set(accepted) <= {f'{job["username"]}~{job["name"]}' for job in first.jobs()}
    assert first.stop() == 0
    print(f"{len(accepted)} jobs went from server to server")


def main():
    if not programs():
        print("skipped: PostgreSQL is not installed (tools/install-deps --test)")
        return SKIP
    postgres = Postgres()
    config = {"database": postgres.address(), "engine": {"kind": "fake", "fake": {"nodes": 3, "cpu": 8, "runMilliseconds": 50}}}
    servers = [Skepd(sys.argv[1], config), Skepd(sys.argv[1], config)]
    try:
        check(*servers, postgres)
    except BaseException:
        for server in servers:
            print(server.tail())
        raise
    finally:
        for server in servers:
            if server.process and server.process.poll() is None:
                server.kill()
        postgres.remove()
    for server in servers:
        server.remove()
    return 0


if __name__ == "__main__":
    sys.exit(main())
