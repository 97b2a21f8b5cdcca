"""When a skepd of a test is ready: it says so on a socket, as to systemd."""

import os
import select
import socket


class Readiness:
    """For one start: give `environment` to the process, then wait."""

    def __init__(self):
        self.notices = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.notices.bind("")  # an abstract name of the kernel's choice
        name = "@" + self.notices.getsockname()[1:].decode()
        self.environment = os.environ | {"NOTIFY_SOCKET": name}

    def wait(self, process, limit):
        """True: it is ready. False: it has ended, or the time is over."""
        watch = os.pidfd_open(process.pid)
        try:
            said, _, _ = select.select([self.notices, watch], [], [], limit)
            return self.notices in said and self.notices.recv(4096) == b"READY=1"
        finally:
            os.close(watch)

    def close(self):
        self.notices.close()
