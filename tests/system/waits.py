"""How tests wait: for what the kernel tells (ends of processes, files), and for what nothing tells."""

import contextlib
import ctypes
import errno
import os
import re
import select
import time

MODIFIED, MOVED_AWAY, DELETED = 0x2, 0x40, 0x200
# what comes at once on a quiet machine comes within this on a busy one; a virtual one needs more
PATIENCE_S = int(os.environ.get("SKEP_TEST_PATIENCE", "180"))


@contextlib.contextmanager
def changes(path, kinds):
    """An inotify descriptor that is readable after each change of these kinds. A user has 128 instances on a machine, however many tests
    run there: while all are taken it waits for one."""
    libc = ctypes.CDLL(None, use_errno=True)
    end = time.monotonic() + PATIENCE_S
    while (watch := libc.inotify_init1(os.O_CLOEXEC)) < 0 and ctypes.get_errno() == errno.EMFILE and time.monotonic() < end:
        time.sleep(0.02)
    assert watch >= 0, os.strerror(ctypes.get_errno())
    try:
        assert libc.inotify_add_watch(watch, os.fsencode(path), kinds) >= 0, os.strerror(ctypes.get_errno())
        yield watch
    finally:
        os.close(watch)


def ended(pids, limit):
    """Wait for the end of processes that need not be ours; those that are left when the time is over."""
    end, left = time.monotonic() + limit, []
    for pid in pids:
        try:
            watch = os.pidfd_open(pid)
        except ProcessLookupError:
            continue
        if not select.select([watch], [], [], max(0, end - time.monotonic()))[0]:
            left.append(pid)
        os.close(watch)
    return left


def emptied(folder, limit):
    """Wait until a folder is empty; what is left when the time is over."""
    end = time.monotonic() + limit
    with changes(folder, MOVED_AWAY | DELETED) as watch:
        while (left := list(folder.iterdir())) and select.select([watch], [], [], max(0, end - time.monotonic()))[0]:
            os.read(watch, 65536)
        return left


def file_says(path, pattern, since=0, limit=PATIENCE_S, process=None):
    """Wait until a file matches behind byte `since`: all that stands there then. No longer than `process` lives, when one is given."""
    end = time.monotonic() + limit
    life = os.pidfd_open(process.pid) if process else None
    try:
        with changes(path, MODIFIED) as watch:
            while not re.search(pattern, text := path.read_bytes()[since:].decode(errors="replace")):
                left = max(0, end - time.monotonic())
                told = select.select([watch] + ([life] if process else []), [], [], left)[0]
                assert watch in told, f"{pattern!r} is not in {path}:\n{text[-4000:]}"
                os.read(watch, 65536)
            return text
    finally:
        if process:
            os.close(life)


def until(is_so, what, limit=PATIENCE_S):
    """For answers of the server that change without a line of a story or a log to wait for: they are asked for again and again."""
    end = time.monotonic() + limit
    while not is_so():
        assert time.monotonic() < end, what() if callable(what) else f"not within {limit} s: {what}"
        time.sleep(0.02)


def settled(look, limit=PATIENCE_S):
    """For what the server shows of a copy that may be older than its last answer: it is looked at again until no assertion fails."""
    end = time.monotonic() + limit
    while True:
        try:
            return look()
        except AssertionError:
            if time.monotonic() > end:
                raise
        time.sleep(0.02)
