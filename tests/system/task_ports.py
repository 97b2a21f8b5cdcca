"""Ports for a test's servers and for their tasks, none of which anybody else takes: neither the servers of tests that run
beside it, nor the kernel, which gives its clients others. A task looks whether its ports are free by taking them for a
moment, and a server that is started again has to find its own port as it left it."""

import fcntl
import functools
import os
import random
import re
import shutil
import socket
import subprocess

FIRST, COUNT, RANGES = 11000, 1000, 10  # below the ports that the kernel gives to clients
LOCKS = "/run/lock" if os.path.isdir("/run/lock") else "/tmp"
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


def range_file(number):
    """The file whose lock says that a process has these ports. Any user's processes may."""
    file = os.open(f"{LOCKS}/skep-test-ports-{number}", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    if os.fstat(file).st_uid == os.getuid():
        os.fchmod(file, 0o666)
    return file


def range_lock(file, how):
    try:
        fcntl.flock(file, how)
        return True
    except BlockingIOError:
        return False


@functools.cache
def task_ports():
    """(first, last): this process's own until it ends. While others have all, it waits for one of them."""
    files = [range_file(number) for number in range(RANGES)]
    usable = list(range(RANGES))
    random.shuffle(usable)
    how = fcntl.LOCK_EX | fcntl.LOCK_NB
    while usable:
        for number in list(usable):
            first = FIRST + number * COUNT
            last = first + COUNT - 1
            if not range_lock(files[number], how):
                continue
            if not published(first, last):
                for other in set(range(RANGES)) - {number}:
                    os.close(files[other])
                return first, last
            fcntl.flock(files[number], fcntl.LOCK_UN)
            usable.remove(number)
            how = fcntl.LOCK_EX | fcntl.LOCK_NB
        how = fcntl.LOCK_EX
    raise AssertionError("tests that were killed have left rules for all ports of tests (nft list ruleset)")


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
