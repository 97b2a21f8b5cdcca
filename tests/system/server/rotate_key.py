#!/usr/bin/env python3
"""skepd --rotate-key, ended at many instants: usage: rotate_key.py SKEPD

The program is traced, and killed at its Nth system call, for larger and larger N, until it ends by itself. After each kill the
directory must be sound, and in the end every secret is sealed by the new key alone. A server that runs has it refused.

Covers: src/server/rotate_key.c, src/store/sqlite/backup.c
"""
import contextlib
import ctypes
import os
import shutil
import signal
import sqlite3
import subprocess
import sys

from faults import FAKE, ONE
from skepd import Skepd, job_file

PTRACE_TRACEME, PTRACE_SYSCALL, PTRACE_SETOPTIONS, PTRACE_O_EXITKILL = 0, 24, 0x4200, 0x100000
JOBS = 230  # more than two of its transactions
LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]


def ptrace(request, pid=0, data=0):
    if LIBC.ptrace(request, pid, None, data) < 0:
        raise OSError(ctypes.get_errno(), f"ptrace {request}")


def run(server, *arguments, stop_at=None, at_stop=None):
    """Traces skepd. At that stop (two for each system call) it is killed, or waits for `at_stop`. The number of stops, and its exit
    status, None when it was killed."""
    child = os.fork()
    if child == 0:
        null = os.open(os.devnull, os.O_RDWR)
        for fd in (0, 1, 2):
            os.dup2(null, fd)
        ptrace(PTRACE_TRACEME)
        os.execv(server.program, [server.program, "--config", server.config_path, *arguments])
    _, status = os.waitpid(child, 0)
    assert os.WIFSTOPPED(status), status
    ptrace(PTRACE_SETOPTIONS, child, PTRACE_O_EXITKILL)
    stops, passed_on = 0, 0
    while os.WIFSTOPPED(status):
        if stops == stop_at and at_stop:
            at_stop()
        elif stops == stop_at:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return stops, None
        ptrace(PTRACE_SYSCALL, child, passed_on)
        _, status = os.waitpid(child, 0)
        stopped_by = os.WSTOPSIG(status) if os.WIFSTOPPED(status) else 0
        passed_on = stopped_by if stopped_by != signal.SIGTRAP else 0
        stops += 1
    assert os.WIFEXITED(status), status
    return stops, os.WEXITSTATUS(status)


def skepd(server, *arguments):
    done = subprocess.run([server.program, "--config", server.config_path, *arguments], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stderr


def key_lines(server):
    return (server.data / "key").read_text().splitlines()


def sealed(server):
    with contextlib.closing(sqlite3.connect(server.data / "skep.db")) as database:
        return dict(database.execute("SELECT job, sealed FROM job_sources"))


def rotate_beside(server, refusals):
    """A rotation beside a backup that stands still. Where that holds the lock of the whole database, as when it opens or closes
    it, the rotation is refused."""
    done = subprocess.run([server.program, "--config", server.config_path, "--rotate-key"], capture_output=True, text=True, timeout=120)
    if done.returncode != 0:
        assert "is in use by another program" in done.stderr, done.stderr
        refusals.append(done.stderr)


def backups_open(server):
    """A backup during which the key is rotated is refused, or opens every secret once restored."""
    folder = server.directory / "restored"
    whole, status = run(server, "--backup", server.directory / "whole.backup")
    assert status == 0, status
    refused, refusals = 0, []
    for number in range(10):
        backup = server.directory / f"{number}.backup"
        _, status = run(server, "--backup", backup, stop_at=whole * (number + 5) // 15, at_stop=lambda: rotate_beside(server, refusals))
        assert backup.exists() == (status == 0), status
        refused += status != 0
        if status == 0:
            skepd(server, "--data", folder, "--restore", backup)
            assert f"the secrets of {JOBS} jobs are" in skepd(server, "--data", folder, "--rotate-key")
            shutil.rmtree(folder)
    assert refused, "no backup met a rotation"
    assert len(refusals) < 5, refusals
    return refused


def main():
    server = Skepd(sys.argv[1], FAKE)
    with contextlib.ExitStack() as stack:
        stack.callback(server.remove)
        server.start()
        server.login()
        for number in range(JOBS):
            server.submit(job_file(f"job{number}", ONE, extra={"secrets": {"word": f"secret{number}"}}))
        server.submit(job_file("plain", ONE))
        refusal = subprocess.run([server.program, "--config", server.config_path, "--rotate-key"], capture_output=True, text=True, timeout=120)
        assert refusal.returncode != 0 and len(key_lines(server)) == 1, refusal
        server.stop()
        first = sealed(server)
        assert len(key_lines(server)) == 1 and sum(len(text) > 0 for text in first.values()) == JOBS
        whole, status = run(server, "--rotate-key")
        assert status == 0, status
        before, key = sealed(server), key_lines(server)
        assert len(key) == 2 and key[1].startswith("seal "), key
        assert all(before[job] != text for job, text in first.items() if text)
        step = max(1, whole // 60)
        kills, in_between = 0, 0
        for stop_at in range(1, whole + 5 * step, step):
            _, status = run(server, "--rotate-key", stop_at=stop_at)
            if status is not None:
                break
            kills += 1
            lines = key_lines(server)
            in_between += len(lines) == 3
            assert [line.split()[0] for line in lines[1:]] in (["seal"], ["seal", "old"]), lines
        assert status == 0 and in_between > 5, (status, kills, in_between)
        # each of these opens every secret by the key of the one before
        for _ in range(2):
            assert f"the secrets of {JOBS} jobs are sealed by a new key" in skepd(server, "--rotate-key")
        assert len(key_lines(server)) == 2 and key_lines(server)[0] == key[0]
        assert all(sealed(server)[job] != text for job, text in before.items() if text)
        refused = backups_open(server)
        skepd(server, "--check")
        server.start()  # the master key is what it was: the token is still good
        server.submit(job_file("after", ONE))
        server.stop()
        print(f"{kills} kills among {whole} stops, {in_between} in the midst of sealing, {refused} of 10 backups refused")


if __name__ == "__main__":
    main()
