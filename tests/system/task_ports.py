"""Ports for a test's servers and for their tasks, none of which anybody else takes: neither the servers of tests that run
beside it, nor the kernel, which gives its clients others. A task looks whether its ports are free by taking them for a
moment, and a server that is started again has to find its own port as it left it."""

import functools
import re
import shutil
import socket
import subprocess

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


def published(first, last):
    """Those of these ports that rules of the machine lead to an address: of tasks, or left by a server that was killed. What
    listens there itself is never reached, and no look at a socket tells."""
    nft = shutil.which("nft", path="/usr/sbin:/sbin:/usr/bin")
    rules = subprocess.run([nft, "list", "ruleset"], capture_output=True, text=True).stdout if nft else ""
    return sorted({int(port) for port in re.findall(r"\b(\d+) : \d+\.\d+\.\d+\.\d+", rules) if first <= int(port) <= last})


@functools.cache
def task_ports():
    """(first, last): this process's own until it ends."""
    for number in range(RANGES):
        first = FIRST + number * COUNT
        last = first + COUNT - 1
        if marked(f"ports-{number}") and not published(first, last):
            return first, last
    raise AssertionError(f"{RANGES} tests with servers run already, or were killed and have left rules (nft list ruleset)")


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
