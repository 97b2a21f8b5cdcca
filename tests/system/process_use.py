"""What the kernel tells of a process that runs: its memory and its processor time."""
import os
import pathlib


def status_kib(process, key):
    """A figure of /proc/PID/status, such as VmRSS; 0 when there is no such line."""
    for line in pathlib.Path(f"/proc/{process.pid}/status").read_text().splitlines():
        if line.startswith(key + ":"):
            return int(line.split()[1])
    return 0


def cpu_s(process):
    fields = pathlib.Path(f"/proc/{process.pid}/stat").read_text().rsplit(") ", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
