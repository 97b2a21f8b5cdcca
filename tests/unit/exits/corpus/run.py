#!/usr/bin/env python3
"""Run the failing programs as plain processes, judge each, print the confusion table.

usage: run.py EXIT_JUDGE [--table]
Exit 0: every program ended and was judged as it is known to be.
"""
import collections
import os
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from programs import PROGRAMS  # noqa: E402


def run(judge, shell):
    with tempfile.TemporaryDirectory() as folder:
        environment = {"PATH": os.environ["PATH"], "LANG": "C", "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(["bash", "-c", shell], cwd=folder, env=environment, timeout=60,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT)
    exit_code = done.returncode if done.returncode >= 0 else 128 - done.returncode
    said = subprocess.run([judge, str(exit_code)], input=done.stdout, stdout=subprocess.PIPE,
                          check=True)
    code, phrase = said.stdout.decode().split()[:2]
    return exit_code, int(code), phrase, done.stdout.decode(errors="replace")


def main():
    # A shell's background job ignores these two; the programs here must be able to die of them.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)
    judge = sys.argv[1]
    table = collections.defaultdict(collections.Counter)
    wrong = 0
    for name, kind, want_exit, want, shell in PROGRAMS:
        exit_code, code, phrase, log = run(judge, shell)
        table[kind][f"{code} {phrase}"] += 1
        exits = want_exit if isinstance(want_exit, tuple) else (want_exit,)
        if exit_code not in exits or code != want:
            wrong += 1
            print(f"{name}: wanted exit {want_exit}, code {want}; got {exit_code}, {code} {phrase}")
            print("    " + log[-600:].replace("\n", "\n    "))
    if wrong or "--table" in sys.argv:
        for kind, verdicts in table.items():
            print(f"{kind:12s} " + ", ".join(f"{v} × {n}" for v, n in sorted(verdicts.items())))
    print(f"{len(PROGRAMS)} programs, {wrong} judged wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
