"""Runs the tests of a program beside each other, each in a process of its own: for tests that mostly wait, each for what is its own."""

import concurrent.futures
import os
import subprocess
import sys
import time
import unittest

AT_ONCE = 4


def tests_of(suite):
    for item in suite:
        if isinstance(item, unittest.TestSuite):
            yield from tests_of(item)
        else:
            yield ".".join(item.id().split(".")[-2:])


def run(programs, name):
    """Whether it passed; what it wrote is shown when it has not."""
    begun = time.monotonic()
    done = subprocess.run([sys.executable, sys.argv[0], *programs, name], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    word = "ok" if done.returncode == 0 else f"FAIL, code {done.returncode}\n{done.stdout}"
    print(f"{time.monotonic() - begun:6.1f} s {name}: {word}", flush=True)
    return done.returncode == 0


def main(*programs, first=()):
    """In the place of unittest.main(). `programs`: arguments that the test has taken away; `first`: those that take longest begin
    first. With more arguments, as names of tests, it is unittest.main()."""
    if len(sys.argv) > 1:
        unittest.main()
    names = list(tests_of(unittest.defaultTestLoader.loadTestsFromModule(sys.modules["__main__"])))
    assert names and set(first) <= set(names), f"no such tests: {set(first) - set(names)}"
    names.sort(key=lambda name: first.index(name) if name in first else len(first))
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        passed = list(pool.map(lambda name: run(programs, name), names))
    print(f"{sum(passed)} of {len(passed)} tests passed")
    sys.exit(os.EX_OK if all(passed) else 1)
