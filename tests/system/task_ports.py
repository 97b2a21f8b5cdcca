"""Ports for the tasks of a test's server. A task looks whether its ports are free by taking them for a moment, so the
servers of tests that run beside each other must not give out the same ones."""

import functools
import socket

FIRST, COUNT, RANGES = 11000, 1500, 6  # below the ports that the kernel gives to clients


@functools.cache
def task_ports():
    """(first, last): this process's own until it ends, as its name in the machine's network says."""
    for number in range(RANGES):
        mark = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            mark.bind(f"\0skep-test-ports-{number}")
        except OSError:
            mark.close()
            continue
        task_ports.mark = mark  # bound for as long as the process lives
        first = FIRST + number * COUNT
        return first, first + COUNT - 1
    raise AssertionError(f"{RANGES} tests with servers run already")
