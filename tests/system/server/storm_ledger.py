"""What a storm is judged by: what tasks say themselves, and what a snapshot of the store says at any moment."""

import collections
import contextlib
import selectors
import socket
import sqlite3
import struct
import threading

from crash import ports_of

# The first line of every command. The connection lasts as long as the container, and its ends are told by the kernel
# before that of the container: the ledger sees who has which ports and GPUs at the same time.
TELL = ("mkfifo /dev/shm/heard || exit 96; (echo \"$SKEP_JOB_ID $PAI_CURRENT_TASK_ROLE_NAME $PAI_TASK_INDEX $SKEP_ATTEMPT_ID "
        "g:$SKEP_GPUS p:$PAI_CONTAINER_HOST_PORT_LIST\"; exec sleep 1000000) 2>/dev/null "
        "| nc 127.0.0.1 {port} >/dev/shm/heard 2>/dev/null & "
        "read heard </dev/shm/heard || exit 96; ")


class Ledger(threading.Thread):
    """Hears each task when it starts, and until it ends."""

    def __init__(self):
        super().__init__(daemon=True)
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=500)
        self.port = self.listener.getsockname()[1]
        self.selector = selectors.DefaultSelector()
        self.selector.register(self.listener, selectors.EVENT_READ)
        self.lines = {}  # connection: what it has said of its line
        self.live = {}  # connection: (task, attempt, things)
        self.holders = {}  # a port or a GPU, or a task: connection
        self.starts = collections.Counter()  # by attempt
        self.wrong = []
        self.is_over = False

    def run(self):
        while not self.is_over:
            for key, _ in self.selector.select(0.2):
                if key.fileobj is self.listener:
                    self.arrived()
                elif key.fileobj in self.lines:
                    self.spoke(key.fileobj)
                elif key.fileobj in self.live:
                    self.ended(key.fileobj)

    def arrived(self):
        connection = self.listener.accept()[0]
        connection.settimeout(0)
        self.lines[connection] = b""
        self.selector.register(connection, selectors.EVENT_READ)

    def spoke(self, connection):
        try:
            more = connection.recv(4096)
        except BlockingIOError:
            return
        except OSError:
            more = b""
        line = self.lines[connection] + more
        self.lines[connection] = line
        if more and not line.endswith(b"\n"):
            return
        del self.lines[connection]
        words = line.decode(errors="replace").split()
        if not line.endswith(b"\n") or len(words) < 5:
            self.selector.unregister(connection)
            connection.close()  # killed while it spoke
            return
        self.note(connection, words)
        with contextlib.suppress(OSError):
            connection.sendall(b"heard\n")

    def note(self, connection, words):
        job, role, index, attempt, gpus, *ports = words
        things = {("gpu", gpu) for gpu in gpus[2:].split(",") if gpu} | {("task", job, role, index)}
        for group in ports[0][2:].split(";") if ports else []:
            things |= {("port", port) for port in group.partition(":")[2].split(",") if port}
        self.starts[attempt] += 1
        if self.starts[attempt] > 1:
            self.wrong.append(f"attempt {attempt} of task {job} {role} {index} starts again")
        for thing in things:
            other = self.holders.get(thing)
            if other and not self.ended(other):
                self.wrong.append(f"{thing}: attempts {self.live[other][1]} and {attempt} at the same time")
            self.holders[thing] = connection
        self.live[connection] = ((job, role, index), attempt, things)

    def ended(self, connection):
        """Whether the container at the other side has gone; nothing more is ever said by one."""
        try:
            if connection.recv(4096):
                return False
        except BlockingIOError:
            return False
        except OSError:
            pass
        self.selector.unregister(connection)
        connection.close()
        for thing in self.live.pop(connection)[2]:
            if self.holders.get(thing) is connection:
                del self.holders[thing]
        return True

    def close(self):
        self.is_over = True
        self.join()
        for connection in [*self.lines, *self.live]:
            connection.close()
        self.listener.close()


class Snapshot:
    """A reader with an open transaction, as somebody's forgotten shell has."""

    PLACED = "state BETWEEN 1 AND 6 AND node <> ''"

    def __init__(self, path, is_read_only):
        mode = "ro" if is_read_only else "rw"
        self.database = sqlite3.connect(f"file:{path}?mode={mode}", uri=True, isolation_level=None, timeout=10)
        try:
            self.database.execute("BEGIN")
            self.before = self.look()
        except BaseException:
            self.database.close()
            raise

    def look(self):
        count = lambda table: self.database.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
        return {table: count(table) for table in ("jobs", "tasks", "task_attempts", "stories")}

    def check(self):
        """The snapshot is still the same, and nothing in it is given twice."""
        assert self.look() == self.before, "a snapshot has changed"
        held = set()
        for node, gpus, ports, attempt in self.database.execute(
                f"SELECT node, gpus, ports, attempt FROM tasks WHERE {self.PLACED}"):
            things = [("gpu", gpu) for gpu, in struct.iter_unpack("<H", gpus)]
            things += [("port", port) for port in ports_of(ports)] + [("attempt", attempt)]
            for thing in things:
                assert (node, thing) not in held, f"{node} {thing}: given twice"
                held.add((node, thing))
        twice = self.database.execute(
            "SELECT attempt FROM task_attempts WHERE attempt IN (SELECT attempt FROM tasks WHERE state < 7)").fetchall()
        assert not twice, f"attempts that have ended and go on: {twice}"

    def close(self):
        self.check()
        self.database.close()
