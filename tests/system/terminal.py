"""A program that a test starts in a terminal."""

import contextlib
import fcntl
import os
import pty
import select
import struct
import subprocess
import termios
import time

from waits import PATIENCE_S


class Terminal:
    """A program in a terminal of ours."""

    def __init__(self, environment, *words, rows=24, columns=80):
        self.master, slave = pty.openpty()
        self.size(rows, columns)
        self.process = subprocess.Popen(words, stdin=slave, stdout=slave, stderr=slave, env=environment,
                                        start_new_session=True, preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        os.close(slave)
        self.said = ""

    def size(self, rows, columns):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, text):
        os.write(self.master, text.encode())

    def until(self, words):
        limit = time.monotonic() + PATIENCE_S
        while words not in self.said:
            if not select.select([self.master], [], [], max(0, limit - time.monotonic()))[0]:
                raise AssertionError(f"{words!r} does not come, only {self.said!r}")
            try:
                self.said += os.read(self.master, 65536).decode()
            except OSError:
                raise AssertionError(f"{words!r} does not come, only {self.said!r}, then the end") from None
        before, _, self.said = self.said.partition(words)
        return before

    def wait(self):
        with contextlib.suppress(OSError):  # to its end: it must not wait for us
            while part := os.read(self.master, 65536):
                self.said += part.decode()
        os.close(self.master)
        return self.process.wait(PATIENCE_S)
