"""Ports for a test's servers and for their tasks, none of which anybody else takes: neither the servers of tests that run
beside it, nor the kernel, which gives its clients others. A task looks whether its ports are free by taking them for a
moment, and a server that is started again has to find its own port as it left it."""

import functools
import socket

FIRST, COUNT, RANGES = 11000, 1000, 10  # below the ports that the kernel gives to clients
SERVERS = range(FIRST + COUNT * RANGES, 22000)

MARKS = []  # bound for as long as the process lives


def marked(name):
    """Whether a name in the machine's network is this process's own from now on."""
    mark = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        mark.bind(f"\0skep-test-{name}")
    except OSError:
        mark.close()
        return False
    MARKS.append(mark)
    return True


@functools.cache
def task_ports():
    """(first, last): this process's own until it ends."""
    for number in range(RANGES):
        if marked(f"ports-{number}"):
            first = FIRST + number * COUNT
            return first, first + COUNT - 1
    raise AssertionError(f"{RANGES} tests with servers run already")


def server_port():
    """One at which nothing listens on loopback, this process's own until it ends."""
    for port in SERVERS:
        if not marked(f"server-{port}"):
            continue
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:  # a stranger's
                continue
        return port
    raise AssertionError(f"all ports of {SERVERS} are taken")
